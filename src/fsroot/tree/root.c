/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - the shared root itself: is it there, and what must be in it; see root.h.
 *
 * A marker file says that this directory was prepared. An empty mount point looks
 * like a healthy directory, so "prepared once, marker gone" means "not mounted". */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootfile.h"

#define MARKER "argus/.shared-root"

/* common/ and hf/ are for every user of the cluster; the rest belongs to one. */
enum { MODE_ALL = 0777, MODE_OWN = 0755 };

static int check_directory(const char *root, struct err *err)
{
    struct stat st;
    if (stat(root, &st) < 0 && (errno != ESTALE || stat(root, &st) < 0)) {
        int error = errno;
        if (error == ENOENT)
            return message_refuse(err, -error, "root_missing",
                                  MESSAGE_ARGS(MESSAGE_STR("root", root)));
        return message_refuse(
            err, -error, "root_no_reach",
            MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("why", strerror(error))));
    }
    if (!S_ISDIR(st.st_mode))
        return message_refuse(err, -ENOTDIR, "root_no_directory",
                              MESSAGE_ARGS(MESSAGE_STR("root", root)));
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
        return message_refuse(
            err, r, "root_no_space",
            MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("why", strerror(-r))));
    if (r == -EACCES || r == -EPERM || r == -EROFS)
        return message_refuse(err, r, "root_not_ours",
                              MESSAGE_ARGS(MESSAGE_STR("root", root),
                                           MESSAGE_NUM("uid", (unsigned)geteuid()),
                                           MESSAGE_STR("why", strerror(-r))));
    if (r < 0)
        return message_refuse(
            err, r, "root_no_write",
            MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("why", strerror(-r))));
    return 0;
}

/* A look that fails is no empty root: nobody is told to mount what is mounted. */
static int root_has_marker(const char *root, bool *ret, struct err *err)
{
    struct err why = {0};
    int r = rootfile_look_for(root, MARKER, ret, &why);
    return r < 0 ? message_refuse(err, r, "root_unseen",
                                  MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_ERR("why", &why)))
                 : 0;
}

int fsroot_check(const char *root, usec_t (*now)(void), struct fsroot_status *ret, struct err *err)
{
    bool prepared = false;
    int r = check_directory(root, err);
    usec_t began = now(), took;
    if (r == 0)
        r = check_writing(root, err);
    took = now() - began;
    if (r == 0)
        r = root_has_marker(root, &prepared, err);
    if (r < 0)
        return r;
    struct statvfs vfs;
    if (statvfs(root, &vfs) < 0)
        return message_refuse(
            err, -errno, "root_no_room_told",
            MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("why", strerror(errno))));
    *ret = (struct fsroot_status){
        .free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize,
        .total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize,
        .write_took = took ? took : 1,
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
    return message_refuse(err, -ENOENT, "root_is_empty", MESSAGE_ARGS(MESSAGE_STR("root", root)));
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
        return message_refuse(err, -ENOTDIR, "root_in_the_way",
                              MESSAGE_ARGS(MESSAGE_STR("dir", d->path), MESSAGE_STR("name", name)));
    return r < 0 && r != -EEXIST ? err_copy(err, r, &why) : 0;
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
        return err_copy(err, r, &why);
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
        return message_refuse(err, -EINVAL, "bad_user_dir",
                              MESSAGE_ARGS(MESSAGE_STR("name", user)));
    int r = fsroot_check_mounted(root, err); /* else the whole path would be made where it is not */
    if (r < 0)
        return r;
    _cleanup_(freep) char *base = xasprintf("users/%s", user);
    return make_all(root, base, dirs, MODE_OWN, err);
}
