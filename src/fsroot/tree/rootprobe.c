/* SPDX-License-Identifier: Apache-2.0 */
/* rootprobe.c - see rootprobe.h. Each step is one call of rootdir.h on one name; what has to be
 * refused is tried a second time. */
#define _GNU_SOURCE
#include "fsroot/tree/rootprobe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/rootdir.h"

#define ROOTPROBE_PREFIX ".doctor-"
enum { ROOTPROBE_RANDOM = 8, ROOTPROBE_NAME_MAX = 64 };
enum { ROOTPROBE_LIST_MAX = 4096 }; /* a job can put any number of names there */

struct rootprobe_names {
    char first[ROOTPROBE_NAME_MAX], second[ROOTPROBE_NAME_MAX];
};

static int rootprobe_refuse(const char *code, int e, struct err *err)
{
    return message_refuse(err, e < 0 ? e : -EIO, code,
                          MESSAGE_ARGS(MESSAGE_STR("why", e < 0 ? strerror(-e) : "")));
}

/* A second one with O_EXCL must fail, and only because the name is there. */
static int rootprobe_make(const struct rootdir *d, const char *name, struct err *err)
{
    struct err again = {0};
    int fd = rootdir_open_for(d, name, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
    if (fd < 0)
        return fd;
    int twice = rootdir_open_for(d, name, O_WRONLY | O_CREAT | O_EXCL, 0600, &again);
    if (twice == -EEXIST)
        return fd;
    close(fd);
    if (twice < 0) {
        if (err)
            *err = again;
        return twice;
    }
    close(twice);
    return rootprobe_refuse("rootprobe_twice", 0, err);
}

/* fd keeps it until it is closed; another open of the same file must not get it meanwhile. */
static int rootprobe_lock(const struct rootdir *d, const char *name, int fd, struct err *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return rootprobe_refuse("rootprobe_lock", -errno, err);
    _cleanup_(closep) int other = rootdir_open_for(d, name, O_WRONLY, 0, err);
    if (other < 0)
        return other;
    if (flock(other, LOCK_EX | LOCK_NB) == 0)
        return rootprobe_refuse("rootprobe_lock_twice", 0, err);
    return errno == EWOULDBLOCK ? 0 : rootprobe_refuse("rootprobe_lock", -errno, err);
}

static int rootprobe_name(const struct rootdir *d,
                          const struct rootprobe_names *n,
                          int fd,
                          struct err *err)
{
    struct stat st;
    int r = rootdir_rename(d, n->first, d, n->second, 0, err);
    if (r == 0)
        r = rootdir_link(d, n->second, d, n->first, err);
    if (r == 0 && (fstat(fd, &st) < 0 || st.st_nlink != 2))
        r = rootprobe_refuse("rootprobe_names", 0, err);
    return r;
}

static int rootprobe_steps(const struct rootdir *d,
                           const struct rootprobe_names *n,
                           struct err *err)
{
    _cleanup_(closep) int fd = rootprobe_make(d, n->first, err);
    int r = fd;
    if (r >= 0)
        r = rootprobe_lock(d, n->first, fd, err);
    return r < 0 ? r : rootprobe_name(d, n, fd, err);
}

/* The names of a probe that was killed; of another that runs there is none. */
static int rootprobe_clean(const struct rootdir *d, struct err *err)
{
    DIR *list;
    struct dirent *e;
    int r = rootdir_list(d, &list, err);
    if (r < 0)
        return r;
    for (size_t n = 0; n < ROOTPROBE_LIST_MAX && (e = readdir(list)); n++)
        if (str_starts(e->d_name, ROOTPROBE_PREFIX))
            (void)rootdir_unlink(d, e->d_name, NULL); /* the next probe tries again */
    closedir(list);
    return 0;
}

int rootprobe_run(const char *root, usec_t (*now)(void), struct rootprobe *ret, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    char hex[2 * ROOTPROBE_RANDOM + 1];
    struct rootprobe_names n;
    struct statvfs vfs = {0};
    text_printf(n.first, ROOTPROBE_PREFIX "%s", random_hex(hex));
    text_printf(n.second, ROOTPROBE_PREFIX "%s-moved", hex);
    usec_t began = now();
    int r = rootdir_open(root, "argus", 0, &d, err);
    if (r < 0)
        return r;
    r = rootprobe_clean(&d, err);
    if (r == 0)
        r = rootprobe_steps(&d, &n, err);
    (void)rootdir_unlink(&d, n.first, NULL); /* what a step said is said already */
    (void)rootdir_unlink(&d, n.second, NULL);
    if (r == 0 && fstatvfs(d.fd, &vfs) < 0)
        r = message_refuse(
            err, -errno, "root_no_room_told",
            MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("why", strerror(errno))));
    if (r < 0)
        return r;
    usec_t took = now() - began;
    *ret = (struct rootprobe){.took = took ? took : 1,
                              .free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize,
                              .total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize};
    return 0;
}
