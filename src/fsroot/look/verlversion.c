/* SPDX-License-Identifier: Apache-2.0 */
/* verlversion.c - which verl lies in a snapshot, or in the venv of an interpreter; see
 * verlversion.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "fsroot/look/verlversion.h"
#include "fsroot/tree/rootdir.h"

enum { VERSION_MAX = 64 };

/* The trimmed text of a version file, NULL when it is none. */
static char *root_read_version(const struct rootdir *top, const char *below)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(VERSION_MAX);
    _cleanup_(closep) int fd = rootdir_open_followed(top, below, O_RDONLY, NULL);
    if (fd < 0 || file_read_open(fd, below, &text, NULL) < 0)
        return NULL;
    const char *s = buf_str(&text);
    s += strspn(s, " \t\r\n");
    size_t n = strcspn(s, " \t\r\n");
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_", s[i]))
            return NULL;
    return n ? xstrndup(s, n) : NULL;
}

char *fsroot_beside_interpreter(const struct rootdir *top, const char *below, const char *name)
{
    /* Its links are not followed: a venv's interpreter is a link to one that knows nothing of it.
     */
    const char *bin = strrchr(below, '/');
    if (!bin || bin - below < 4 || strncmp(bin - 4, "/bin", 4) != 0)
        return NULL;
    _cleanup_(freep) char *lib = xasprintf("%.*s/lib", (int)(bin - 4 - below), below);
    int fd = rootdir_open_followed(top, lib, O_RDONLY | O_DIRECTORY, NULL);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    char *found = NULL;
    if (!dir)
        closep(&fd);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        if (!str_starts(e->d_name, "python3"))
            continue;
        char *path = xasprintf("%s/%s/site-packages/%s", lib, e->d_name, name);
        _cleanup_(closep) int one = rootdir_open_followed(top, path, O_PATH, NULL);
        if (one >= 0)
            found = path;
        else
            free(path);
    }
    if (dir)
        (void)closedir(dir); /* it was only read */
    return found;
}

char *fsroot_verl_version(const char *root, const char *path)
{
    static const char FILE_NAME[] = "verl/version/version";
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    const char *below = rootdir_below(root, path);
    if (!below || rootdir_open(root, "", 0, &top, NULL) < 0)
        return NULL;
    _cleanup_(freep) char *tree = xasprintf("%s/%s", below, FILE_NAME);
    char *version = root_read_version(&top, tree);
    _cleanup_(freep) char *installed =
        version ? NULL : fsroot_beside_interpreter(&top, below, FILE_NAME);
    return installed ? root_read_version(&top, installed) : version;
}
