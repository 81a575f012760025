/* SPDX-License-Identifier: Apache-2.0 */
/* verlversion.c - which verl lies in a snapshot, or in the venv of an interpreter; see
 * verlversion.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/look/verlversion.h"
#include "fsroot/tree/rootdir.h"

enum { VERSION_MAX = 64 };

/* The trimmed text of a version file in *ret, NULL when it is none. */
static int root_read_version(const struct rootdir *top, const char *below, char **ret)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(VERSION_MAX);
    _cleanup_(closep) int fd = rootdir_open_followed(top, below, O_RDONLY, NULL);
    int r = fd < 0 ? fd : file_read_open(fd, below, &text, NULL);
    *ret = NULL;
    if (r < 0)
        return rootdir_is_answer(r) ? 0 : r;
    const char *s = buf_str(&text);
    s += strspn(s, " \t\r\n");
    size_t n = strcspn(s, " \t\r\n");
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_", s[i]))
            return 0;
    *ret = n ? xstrndup(s, n) : NULL;
    return 0;
}

/* The first <lib>/python3…/site-packages/<name> that is there; dir is lib. */
static int root_find_package(const struct rootdir *top,
                             DIR *dir,
                             const char *lib,
                             const char *name,
                             char **ret)
{
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)); errno = 0) {
        if (!str_starts(e->d_name, "python3"))
            continue;
        char *path = xasprintf("%s/%s/site-packages/%s", lib, e->d_name, name);
        _cleanup_(closep) int one = rootdir_open_followed(top, path, O_PATH, NULL);
        if (one >= 0) {
            *ret = path;
            return 0;
        }
        free(path);
        if (!rootdir_is_answer(one))
            return one;
    }
    return -errno;
}

int fsroot_beside_interpreter(const struct rootdir *top,
                              const char *below,
                              const char *name,
                              char **ret)
{
    /* Its links are not followed: a venv's interpreter is a link to one that knows nothing of it.
     */
    const char *bin = strrchr(below, '/');
    *ret = NULL;
    if (!bin || bin - below < 4 || strncmp(bin - 4, "/bin", 4) != 0)
        return 0;
    _cleanup_(freep) char *lib = xasprintf("%.*s/lib", (int)(bin - 4 - below), below);
    int fd = rootdir_open_followed(top, lib, O_RDONLY | O_DIRECTORY, NULL);
    if (fd < 0)
        return rootdir_is_answer(fd) ? 0 : fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int r = -errno;
        (void)close(fd); /* it was only opened */
        return r;
    }
    int r = root_find_package(top, dir, lib, name, ret);
    (void)closedir(dir); /* it was only read */
    return r;
}

int fsroot_verl_version(const char *root, const char *path, char **ret, struct err *err)
{
    static const char FILE_NAME[] = "verl/version/version";
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    _cleanup_(freep) char *installed = NULL;
    char *version = NULL;
    const char *below = rootdir_below(root, path);
    int r = below ? rootdir_open(root, "", 0, &top, err) : 0;
    if (r < 0)
        return r;
    if (below) {
        _cleanup_(freep) char *tree = xasprintf("%s/%s", below, FILE_NAME);
        r = root_read_version(&top, tree, &version);
        if (r == 0 && !version)
            r = fsroot_beside_interpreter(&top, below, FILE_NAME, &installed);
        if (r == 0 && installed)
            r = root_read_version(&top, installed, &version);
    }
    if (r < 0)
        return message_refuse(
            err, r, "verl_no_look",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-r))));
    *ret = version;
    return 0;
}
