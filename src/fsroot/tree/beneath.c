/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.c - opens a path without leaving a directory; see beneath.h.
 *
 * The kernel does it in one call (openat2, RESOLVE_BENEATH). Where it cannot, or a sandbox forbids
 * it, we walk: each part is opened below the descriptor of the one before and never followed by the
 * kernel; a link's text is put in front of what is left; ".." goes back to a descriptor that we
 * hold, and not to what the disk says is above. */
#define _GNU_SOURCE
#include "fsroot/tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum {
    LINKS_MAX = 40,
    AGAIN_MAX = 64,
    TEXT_MAX = 16384,
    DEPTH_MAX = 64,
    NAME_BYTES_MAX = 255,
    LINK_TEXT_MAX = 4000,
};

/* ---- by the kernel ---- */

/* -ENOSYS: ask ourselves. */
static int open_by_kernel(int dir, const char *path, int flags, uint64_t how)
{
    struct open_how ask = {.flags = (uint64_t)(unsigned)flags, .resolve = how};
    for (int k = 0;; k++) {
        long fd = syscall(SYS_openat2, dir, path, &ask, sizeof(ask));
        if (fd >= 0)
            return (int)fd;
        if (errno == EINTR || (errno == EAGAIN && k < AGAIN_MAX))
            continue; /* something was renamed somewhere */
        /* EPERM: a sandbox that does not know it. */
        return errno == EPERM || errno == EAGAIN ? -ENOSYS : -errno;
    }
}

/* ---- by ourselves ---- */

struct walking {
    int held[DEPTH_MAX + 2]; /* descriptors of the directories on the way; [0] is borrowed */
    char *names[DEPTH_MAX + 2];
    size_t depth; /* of the last of them */
    char *left;   /* names still to go */
    char *link;   /* the text of the last link */
    beneath_own_f own;
    const void *own_arg;
    int links;
    bool follow;
};

static void back(struct walking *w)
{
    freep(&w->names[w->depth]);
    (void)close(w->held[w->depth--]); /* it was only looked into */
}

static void walking_end(struct walking *w)
{
    while (w->depth)
        back(w);
    free(w->left);
    free(w->link);
}

/* What an absolute link names below the directory where the walk began. NULL: nothing. */
static const char *begin_again(struct walking *w, const char *text)
{
    const char *below = w->own ? w->own(text, w->own_arg) : NULL;
    while (below && w->depth)
        back(w);
    return below;
}

/* Put the text of a link in front of what is left. */
static int take_link(struct walking *w, const char *name, const char *left)
{
    char text[LINK_TEXT_MAX + 1];
    ssize_t n = readlinkat(w->held[w->depth], name, text, sizeof(text) - 1);
    if (n < 0)
        return errno == EINVAL ? -EAGAIN : -errno; /* no link any more */
    text[n] = 0;
    set_str(&w->link, text);
    const char *to = text[0] == '/' ? begin_again(w, text) : text;
    if (!to)
        return -EXDEV;
    if (!n || !w->follow || ++w->links > LINKS_MAX)
        return -ELOOP;
    char *both = xasprintf("%s%s%s", to, *left ? "/" : "", left);
    free(w->left);
    w->left = both;
    return strlen(both) > TEXT_MAX ? -ELOOP : 0;
}

/* The next name of the way. */
struct next {
    char part[NAME_BYTES_MAX + 1];
    const char *left;
    bool is_last, must_be_dir, stays; /* stays: the descriptor that we stand on */
};

static int cut_next(struct walking *w, struct next *ret)
{
    const char *name = w->left + strspn(w->left, "/");
    size_t n = strcspn(name, "/");
    if (n > NAME_BYTES_MAX)
        return -ENAMETOOLONG;
    *ret = (struct next){.left = name + n + strspn(name + n, "/")};
    memcpy(ret->part, n ? name : ".", n ? n : 1);
    ret->is_last = !*ret->left;
    ret->must_be_dir = ret->is_last && name[n] == '/';
    bool up = !strcmp(ret->part, "..");
    if (up && !w->depth)
        return -EXDEV;
    if (up)
        back(w);
    ret->stays = up || !strcmp(ret->part, ".");
    if (up)
        ret->part[1] = 0;
    return 0;
}

static bool is_link(int fd, int error, int how)
{
    struct stat st;
    if (fd < 0)
        return error == ELOOP || error == ENOTDIR || error == EMLINK;
    return (how & O_PATH) && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Stand on it; fd is taken. */
static int stand_on(struct walking *w, int fd, const struct next *n)
{
    if (!n->stays && w->depth + 1 < array_len(w->held)) {
        w->held[++w->depth] = fd;
        w->names[w->depth] = xstrdup(n->part);
    } else {
        (void)close(fd); /* it was only looked at */
        if (!n->stays)
            return -ENAMETOOLONG;
    }
    char *rest = xstrdup(n->left);
    free(w->left);
    w->left = rest;
    return 0;
}

/* Follows one name of the path. 1: *ret_fd is the end of the path; *ret_name, to be freed, its name
 * where we stand, or "." */
static int beneath_step(struct walking *w, int flags, int *ret_fd, char **ret_name)
{
    struct next n;
    int r = cut_next(w, &n);
    if (r < 0)
        return r;
    int how = n.is_last ? flags | (n.must_be_dir ? O_DIRECTORY : 0) : O_PATH | O_DIRECTORY;
    int fd = openat(w->held[w->depth], n.part, how | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    if (is_link(fd, error, how)) {
        closep(&fd);
        r = take_link(w, n.part, n.left);
        return r == -EAGAIN && error ? -error : r;
    }
    if (fd < 0)
        return -error;
    if (!n.is_last)
        return stand_on(w, fd, &n);
    *ret_fd = fd;
    *ret_name = xstrdup(n.part);
    return 1;
}

static int open_by_steps(int dir, const char *path, int flags, bool follow)
{
    struct walking w = {.held = {dir}, .left = xstrdup(path), .follow = follow};
    _cleanup_(freep) char *name = NULL;
    int fd = -1, r = 0;
    while (r == 0)
        r = beneath_step(&w, flags, &fd, &name);
    walking_end(&w);
    return r < 0 ? r : fd;
}

/* Where we stand, and this name in it. */
static char *walking_text(const struct walking *w, const char *name)
{
    char *all = xstrdup("");
    for (size_t i = 1; i <= w->depth + 1; i++) {
        const char *part = i <= w->depth ? w->names[i] : name;
        if (!part || !strcmp(part, "."))
            continue;
        char *more = xasprintf("%s%s%s", all, *all ? "/" : "", part);
        free(all);
        all = more;
    }
    return all;
}

int beneath_resolve(int dir, const char *path, beneath_own_f own, const void *arg, char **ret)
{
    struct walking w = {
        .held = {dir}, .left = xstrdup(path), .follow = true, .own = own, .own_arg = arg};
    _cleanup_(freep) char *name = NULL;
    _cleanup_(closep) int fd = -1;
    int r = 0;
    while (r == 0)
        r = beneath_step(&w, O_PATH, &fd, &name);
    if (r > 0)
        *ret = walking_text(&w, name);
    else if (r == -EXDEV)
        *ret = xstrdup(w.link ? w.link : path);
    walking_end(&w);
    return r < 0 ? r : 0;
}

/* ---- both ---- */

static int open_as_seen(int dir, const char *path, int open_flags, unsigned flags)
{
    bool follow = flags & BENEATH_FOLLOW;
    int all = open_flags | O_CLOEXEC;
    uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (follow ? 0 : RESOLVE_NO_SYMLINKS);
    int fd = flags & BENEATH_NO_OPENAT2 ? -ENOSYS : open_by_kernel(dir, path, all, how);
    return fd == -ENOSYS ? open_by_steps(dir, path, all, follow) : fd;
}

int beneath_open(int dir, const char *path, int open_flags, unsigned flags)
{
    if (open_flags & (O_PATH | O_DIRECTORY)) /* neither opens what is no directory */
        return open_as_seen(dir, path, open_flags, flags);
    _cleanup_(closep) int seen = open_as_seen(dir, path, O_PATH, flags);
    return seen < 0 ? seen : file_reopen(seen, open_flags);
}
