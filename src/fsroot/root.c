/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - the shared root itself: is it there, what must be in it, and how paths
 * on it are called; see fsroot.h.
 *
 * A marker file says that this directory was prepared. An empty mount point looks
 * like a healthy directory, so "prepared once, marker gone" means "not mounted". */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/fsroot.h"
#include "fsroot/rootfile.h"

#define MARKER "argus/.shared-root"

enum { VERSION_MAX = 64, NAME_MAX_BYTES = 200 };

/* common/ and hf/ are for every user of the cluster; the rest belongs to one. */
enum { MODE_ALL = 0777, MODE_OWN = 0755 };

bool fsroot_is_name(const char *name)
{
    size_t n = strlen(name);
    return n && n <= NAME_MAX_BYTES && name[0] != '.' && !strpbrk(name, "/\\\n\r\t\x7f");
}

char *fsroot_job_dir(const char *root, const char *job)
{
    return xasprintf("%s/jobs/%s", root, job);
}

char *fsroot_attempt_dir(const char *root, const char *job, int attempt, const char *sub)
{
    return xasprintf("%s/jobs/%s/attempts/%d%s%s", root, job, attempt, sub ? "/" : "",
                     str_or(sub, ""));
}

char *fsroot_hook_dir(const char *root)
{
    return xasprintf("%s/argus/hook", root);
}

void fsroot_entrypoint(struct buf *out, const char *root, const char *job, int attempt)
{
    _cleanup_(freep) char *dir = fsroot_attempt_dir(root, job, attempt, NULL);
    _cleanup_(freep) char *bin = xasprintf("%s/argus/bin/", root);
    /* overflow: out->failed */
    (void)buf_adds(out, "exec ");
    (void)str_shell_quote(out, bin);
    (void)buf_adds(out, "$(uname -m)/argus-shepherd ");
    (void)str_shell_quote(out, dir);
}

/* ---- is it there ---- */

static int check_directory(const char *root, struct err *err)
{
    struct stat st;
    if (stat(root, &st) < 0 && (errno != ESTALE || stat(root, &st) < 0)) {
        int error = errno;
        if (error == ENOENT)
            return err_set(
                err, -error,
                "the shared root '%s' does not exist: mount it, or correct 'shared_root'", root);
        return err_set(err, -error, "the shared root '%s' cannot be reached (%s): mount it again",
                       root, strerror(error));
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, -ENOTDIR, "the shared root '%s' is no directory: correct 'shared_root'",
                       root);
    return 0;
}

static int check_writing(const char *root, struct err *err)
{
    _cleanup_(freep) char *probe = xasprintf(".argus-probe.%d", (int)gettid());
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    int r = rootdir_open(root, "", 0, &top, NULL);
    if (r == 0)
        r = rootdir_write(&top, probe, "probe\n", 6, 0600, FILE_SYNC, NULL);
    if (r == 0)
        r = rootdir_unlink(&top, probe, NULL);
    if (r == -ENOSPC || r == -EDQUOT)
        return err_set(err, r, "the shared root '%s' is full (%s): free some space on it", root,
                       strerror(-r));
    if (r == -EACCES || r == -EPERM || r == -EROFS)
        return err_set(err, r,
                       "the shared root '%s' cannot be written by user %u (%s): change its owner "
                       "or its mount options",
                       root, (unsigned)geteuid(), strerror(-r));
    if (r < 0)
        return err_set(err, r, "the shared root '%s' cannot be written: %s", root, strerror(-r));
    return 0;
}

/* A look that fails is no empty root: nobody is told to mount what is mounted. */
static int root_has_marker(const char *root, bool *ret, struct err *err)
{
    struct err why = {0};
    int r = rootfile_look_for(root, MARKER, ret, &why);
    return r < 0 ? message_refuse(
                       err, r, "root_unseen",
                       MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("says", why.text)))
                 : 0;
}

int fsroot_check(const char *root, struct fsroot_status *ret, struct err *err)
{
    bool prepared = false;
    int r = check_directory(root, err);
    if (r == 0)
        r = check_writing(root, err);
    if (r == 0)
        r = root_has_marker(root, &prepared, err);
    if (r < 0)
        return r;
    struct statvfs vfs;
    if (statvfs(root, &vfs) < 0)
        return err_set(err, -errno, "the shared root '%s' does not tell its free space: %s", root,
                       strerror(errno));
    *ret = (struct fsroot_status){
        .free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize,
        .total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize,
        .prepared = prepared,
    };
    return 0;
}

int fsroot_check_mounted(const char *root, struct err *err)
{
    bool prepared = false;
    int r = check_directory(root, err);
    if (r == 0)
        r = root_has_marker(root, &prepared, err);
    if (r < 0 || prepared)
        return r;
    return err_set(err, -ENOENT,
                   "the shared root '%s' is not prepared yet, or was prepared and is empty now: "
                   "mount it, or restart argusd to use it as it is",
                   root);
}

/* One directory. What has the name already stays as it is, and so does its mode. */
static int root_make_one(const struct rootdir *d, const char *name, mode_t mode, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir made = ROOTDIR_NONE;
    struct err why = {0};
    struct stat st;
    int r = rootdir_make_new(d, name, mode, &made, &why);
    if (r == -EEXIST && rootdir_look(d, name, &st) == 0 && !S_ISDIR(st.st_mode) &&
        !S_ISLNK(st.st_mode))
        return err_set(err, -ENOTDIR, "'%s/%s' is no directory: move it away", d->path, name);
    return r < 0 && r != -EEXIST ? err_set(err, r, "%s", why.text) : 0;
}

/* These directories in base, which is made as well. Behind a link nothing is made: who put the link
 * there has made what it leads to. */
static int make_all(const char *root,
                    const char *base,
                    const char *const *names,
                    mode_t mode,
                    struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    struct err why = {0};
    int r = rootdir_open(root, base, mode, &d, &why);
    if (r == -ELOOP)
        return 0;
    if (r < 0)
        return err_set(err, r, "%s", why.text);
    for (; *names && r == 0; names++)
        r = root_make_one(&d, *names, mode, err);
    return r;
}

int fsroot_prepare(const char *root, struct err *err)
{
    static const struct {
        const char *base, *names[8];
        mode_t mode;
    } all[] = {
        {"", {"common", "hf"}, MODE_ALL},
        {"common", {"datasets", "models", "code"}, MODE_ALL},
        {"", {"users", "jobs", "argus"}, MODE_OWN},
        {"argus", {"bin", "hook", "backup", "archive"}, MODE_OWN},
    };
    int r = check_directory(root, err);
    for (size_t i = 0; i < array_len(all) && r == 0; i++)
        r = make_all(root, all[i].base, all[i].names, all[i].mode, err);
    bool prepared = false;
    if (r == 0)
        r = root_has_marker(root, &prepared, err);
    if (r == 0 && !prepared) {
        static const char text[] = "This directory is a shared root of Argus.\n";
        r = rootfile_write(root, MARKER, 0, text, sizeof(text) - 1, 0644, FILE_SYNC, err);
    }
    return r;
}

int fsroot_user_prepare(const char *root, const char *user, struct err *err)
{
    static const char *const dirs[] = {"datasets", "models", "code", NULL};
    if (!fsroot_is_name(user))
        return err_set(err, -EINVAL, "'%.60s' cannot be the name of a user's directory", user);
    int r = fsroot_check_mounted(root, err); /* else the whole path would be made where it is not */
    if (r < 0)
        return r;
    _cleanup_(freep) char *base = xasprintf("users/%s", user);
    return make_all(root, base, dirs, MODE_OWN, err);
}

/* ---- the version of verl ---- */

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
        return err_set(err, r, "cannot look which verl lies at '%s': %s", path, strerror(-r));
    *ret = version;
    return 0;
}
