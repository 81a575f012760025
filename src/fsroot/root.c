/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - the shared root itself: is it there, what must be in it, and how paths
 * on it are called; see fsroot.h.
 *
 * A marker file says that this directory was prepared. An empty mount point looks
 * like a healthy directory, so "prepared once, marker gone" means "not mounted". */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "fsroot/fsroot.h"

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
    _cleanup_(freep) char *probe = xasprintf("%s/.argus-probe.%d", root, (int)gettid());
    int r = file_write(probe, "probe\n", 6, 0600, FILE_SYNC, NULL);
    if (r == 0 && unlink(probe) < 0)
        r = -errno;
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

int fsroot_check(const char *root, struct fsroot_status *ret, struct err *err)
{
    int r = check_directory(root, err);
    if (r == 0)
        r = check_writing(root, err);
    if (r < 0)
        return r;
    struct statvfs vfs;
    if (statvfs(root, &vfs) < 0)
        return err_set(err, -errno, "the shared root '%s' does not tell its free space: %s", root,
                       strerror(errno));
    _cleanup_(freep) char *marker = xasprintf("%s/" MARKER, root);
    *ret = (struct fsroot_status){
        .free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize,
        .total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize,
        .prepared = file_is_there(marker),
    };
    return 0;
}

int fsroot_check_mounted(const char *root, struct err *err)
{
    _cleanup_(freep) char *marker = xasprintf("%s/" MARKER, root);
    int r = check_directory(root, err);
    if (r < 0 || file_is_there(marker))
        return r;
    return err_set(err, -ENOENT,
                   "the shared root '%s' was prepared and is empty now: mount it, or restart "
                   "argusd to use it as it is",
                   root);
}

static int make_all(const char *base, const char *const *names, mode_t mode, struct err *err)
{
    for (; *names; names++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", base, *names);
        int r = file_mkdirs(path, mode, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int fsroot_prepare(const char *root, struct err *err)
{
    static const char *const shared[] = {
        "common", "common/datasets", "common/models", "common/code", "hf", NULL};
    static const char *const own[] = {"users",      "jobs",         "argus",         "argus/bin",
                                      "argus/hook", "argus/backup", "argus/archive", NULL};
    int r = check_directory(root, err);
    if (r == 0)
        r = make_all(root, shared, MODE_ALL, err);
    if (r == 0)
        r = make_all(root, own, MODE_OWN, err);
    _cleanup_(freep) char *marker = xasprintf("%s/" MARKER, root);
    if (r == 0 && !file_is_there(marker)) {
        static const char text[] = "This directory is a shared root of Argus.\n";
        r = file_write(marker, text, sizeof(text) - 1, 0644, FILE_SYNC, err);
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
    _cleanup_(freep) char *base = xasprintf("%s/users/%s", root, user);
    return make_all(base, dirs, MODE_OWN, err);
}

/* ---- paths that users give ---- */

static bool is_under(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return !strncmp(path, dir, n) && (path[n] == '/' || !path[n] || (n && dir[n - 1] == '/'));
}

int fsroot_resolve_under(const char *root, const char *path, char **ret, struct err *err)
{
    _cleanup_(freep) char *whole = path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", root, path);
    _cleanup_(freep) char *real_root = realpath(root, NULL);
    if (!real_root)
        return err_set(err, -errno, "the shared root '%s' cannot be reached: %s", root,
                       strerror(errno));
    char *real = realpath(whole, NULL);
    if (!real)
        return err_set(err, -errno, "'%s' cannot be reached: %s", whole, strerror(errno));
    if (!is_under(real, real_root)) {
        int r = err_set(err, ERR_REFUSED, "'%s' leads to '%s', which is outside the shared root",
                        whole, real);
        free(real);
        return r;
    }
    *ret = real;
    return 0;
}

/* The trimmed text of a version file, NULL when it is none. */
static char *root_read_version(const char *path)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(VERSION_MAX);
    if (file_read(path, &text, NULL) < 0)
        return NULL;
    const char *s = buf_str(&text);
    s += strspn(s, " \t\r\n");
    size_t n = strcspn(s, " \t\r\n");
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_", s[i]))
            return NULL;
    return n ? xstrndup(s, n) : NULL;
}

/* The one installed in <venv>/lib/python3.x/site-packages. */
static char *installed_version(const char *venv)
{
    _cleanup_(freep) char *lib = xasprintf("%s/lib", venv);
    DIR *dir = opendir(lib);
    char *found = NULL;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        if (!str_starts(e->d_name, "python3"))
            continue;
        _cleanup_(freep) char *path =
            xasprintf("%s/%s/site-packages/verl/version/version", lib, e->d_name);
        found = root_read_version(path);
    }
    if (dir)
        (void)closedir(dir); /* it was only read */
    return found;
}

char *fsroot_verl_version(const char *path)
{
    _cleanup_(freep) char *tree = xasprintf("%s/verl/version/version", path);
    char *version = root_read_version(tree);
    /* Not realpath: a venv's interpreter is a link to one that knows nothing of it. */
    const char *bin = strrchr(path, '/');
    if (version || !bin || bin - path < 4 || strncmp(bin - 4, "/bin", 4) != 0)
        return version;
    _cleanup_(freep) char *venv = xstrndup(path, (size_t)(bin - 4 - path));
    return installed_version(venv);
}
