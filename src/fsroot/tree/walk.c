/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - whose path it is, and opening it below that user's root; see walk.h. beneath.c does
 * the opening. */
#define _GNU_SOURCE
#include "fsroot/tree/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/str.h"
#include "fsroot/tree/beneath.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootdir.h"

void walk_place_release(struct walk_place *p)
{
    free(p->name);
    free(p->zone_path);
    free(p->rest);
    free(p->path);
    *p = (struct walk_place){0};
}

/* ---- what is written ---- */

/* A control character, C1 ("\xc2\x9b") included, or a slash. */
static bool walk_is_barred(const char *p)
{
    unsigned char c = (unsigned char)p[0];
    return c < 0x20 || c == 0x7f || c == '/' || (c == 0xc2 && (unsigned char)p[1] < 0xa0);
}

int walk_check_name(const char *name, size_t n, struct err *err)
{
    if (n > WALK_NAME_MAX)
        return message_refuse(
            err, ERR_BAD_REQUEST, "name_too_long",
            MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_NUM("most", WALK_NAME_MAX)));
    if (!n || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
        return message_refuse(err, ERR_BAD_REQUEST, "no_file_name",
                              MESSAGE_ARGS(MESSAGE_STR("name", n > 1 ? ".."
                                                               : n   ? "."
                                                                     : "")));
    for (size_t i = 0; i < n;) {
        size_t k = str_utf8_length(name + i, n - i);
        if (!k)
            return message_refuse(err, ERR_BAD_REQUEST, "name_utf8", MESSAGE_NO_ARGS);
        if (walk_is_barred(name + i))
            return message_refuse(err, ERR_BAD_REQUEST, "file_name_control", MESSAGE_NO_ARGS);
        i += k;
    }
    return 0;
}

/* Only names with one slash between. */
static int walk_clean(const char *path, char **ret, struct err *err)
{
    _cleanup_(freep) char *out = xmalloc(strlen(path) + 1);
    size_t len = 0, depth = 0;
    if (strlen(path) > WALK_PATH_MAX)
        return message_refuse(err, ERR_BAD_REQUEST, "path_long",
                              MESSAGE_ARGS(MESSAGE_NUM("most", WALK_PATH_MAX)));
    for (const char *s = path + strspn(path, "/"); *s; s += strspn(s, "/")) {
        size_t n = strcspn(s, "/");
        int r = walk_check_name(s, n, err);
        if (r < 0)
            return r;
        if (++depth > WALK_DEPTH_MAX)
            return message_refuse(err, ERR_BAD_REQUEST, "path_deep",
                                  MESSAGE_ARGS(MESSAGE_NUM("most", WALK_DEPTH_MAX)));
        if (len)
            out[len++] = '/';
        memcpy(out + len, s, n);
        len += n;
        s += n;
    }
    out[len] = 0;
    *ret = out;
    out = NULL;
    return 0;
}

/* "users/alice/x" with "users/" in front: *ret_rest is "x". */
static bool take_zone(struct walk_place *p, const char *in, enum walk_zone zone)
{
    size_t n = strlen(in);
    if (!str_starts(p->path, in))
        return false;
    const char *name = p->path + n;
    size_t len = strcspn(name, "/");
    if (!len)
        return false;
    p->zone = zone;
    p->name = xstrndup(name, len);
    p->zone_path = xstrndup(p->path, n + len);
    p->rest = xstrdup(name + len + (name[len] == '/'));
    return true;
}

static bool take_common(struct walk_place *p)
{
    if (!str_eq(p->path, "common") && !str_starts(p->path, "common/"))
        return false;
    p->zone = WALK_COMMON;
    p->zone_path = xstrdup("common");
    p->rest = xstrdup(p->path + (p->path[6] ? 7 : 6));
    return true;
}

/* What is left of path without the shared root in front; NULL: it is elsewhere. */
static const char *walk_below(const char *root, const char *path)
{
    static const char variable[] = "${SHARED_ROOT}";
    size_t n = strlen(root);
    if (str_starts(path, variable))
        return path + sizeof(variable) - 1;
    if (*path != '/')
        return path;
    while (n > 1 && root[n - 1] == '/')
        n--;
    return !strncmp(path, root, n) && (path[n] == '/' || !path[n]) ? path + n : NULL;
}

int walk_parse(const char *root, const char *path, struct walk_place *ret, struct err *err)
{
    struct walk_place p = {0};
    const char *rest = walk_below(root, path);
    int r = walk_clean(rest ? rest : str_or(path, ""), &p.path, err);
    if (r < 0 || !p.path)
        return r;
    if (!rest || !(take_common(&p) || take_zone(&p, "users/", WALK_USER) ||
                   take_zone(&p, "jobs/", WALK_JOB)))
        r = message_refuse(err, ERR_FORBIDDEN, "path_unreachable",
                           MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if (r < 0) {
        walk_place_release(&p);
        return r;
    }
    *ret = p;
    return 0;
}

/* ---- what it means when it fails ---- */

int walk_trouble(const struct walk_place *p, int error, struct err *err)
{
    switch (error < 0 ? -error : error) {
    case ENOENT:
        return message_refuse(err, ERR_NOT_FOUND, "no_path",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    case ENOTDIR:
        return message_refuse(err, ERR_BAD_REQUEST, "path_no_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    case EXDEV:
    case ELOOP:
        return message_refuse(
            err, ERR_FORBIDDEN, "path_leads_out",
            MESSAGE_ARGS(MESSAGE_STR("path", p->path), MESSAGE_STR("zone", p->zone_path)));
    case EACCES:
    case EPERM:
        return message_refuse(err, ERR_FORBIDDEN, "path_closed",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    case ENAMETOOLONG:
        return message_refuse(err, ERR_BAD_REQUEST, "path_name_long",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    case ENXIO:
    case EISDIR:
        return message_refuse(err, ERR_BAD_REQUEST, "path_no_file",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    case EEXIST:
        return message_refuse(err, ERR_CONFLICT, "path_is_there",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    case ENOSPC:
    case EDQUOT:
        return message_refuse(
            err, ERR_NO_SPACE, "root_is_full",
            MESSAGE_ARGS(MESSAGE_STR("why", strerror(error < 0 ? -error : error))));
    }
    return message_refuse(err, ERR_UNAVAILABLE, "root_no_use",
                          MESSAGE_ARGS(MESSAGE_STR("path", p->path),
                                       MESSAGE_STR("why", strerror(error < 0 ? -error : error))));
}

/* ---- opening ---- */

static int open_beneath(int dir, const char *path, int open_flags, bool follow, unsigned flags)
{
    unsigned how = (follow ? BENEATH_FOLLOW : 0U) |
                   (flags & WALK_NO_OPENAT2 ? (unsigned)BENEATH_NO_OPENAT2 : 0U);
    return beneath_open(dir, path, open_flags, how);
}

/* The zone's root: jobs can write beside it, so not one part of it may be a link. */
static int open_zone(const char *root,
                     const struct walk_place *p,
                     unsigned flags,
                     int *ret_fd,
                     struct err *err)
{
    struct err why;
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    if (rootdir_open(root, "", 0, &top, &why) < 0)
        return message_refuse(err, ERR_UNAVAILABLE, "shared_root_unavailable",
                              MESSAGE_ARGS(MESSAGE_ERR("why", &why)));
    int fd = open_beneath(top.fd, p->zone_path, O_PATH | O_DIRECTORY, false, flags);
    if (fd < 0) {
        if (fd == -ENOENT && fsroot_check_mounted(root, &why) < 0)
            return message_refuse(err, ERR_UNAVAILABLE, "shared_root_unavailable",
                                  MESSAGE_ARGS(MESSAGE_ERR("why", &why)));
        return walk_trouble(p, fd, err);
    }
    *ret_fd = fd;
    return 0;
}

int walk_open(const char *root,
              const struct walk_place *p,
              int open_flags,
              unsigned flags,
              int *ret_fd,
              struct err *err)
{
    _cleanup_(closep) int zone = -1;
    int r = open_zone(root, p, flags, &zone, err);
    if (r < 0)
        return r;
    int fd = open_beneath(zone, *p->rest ? p->rest : ".", open_flags, true, flags);
    if (fd < 0) /* EINVAL: a FIFO, a device or a socket */
        return walk_trouble(p, fd == -EINVAL ? -EISDIR : fd, err);
    *ret_fd = fd;
    return 0;
}

/* The directory beneath dir; the one above is opened as any other: what is made is made where it
 * really is. */
static int walk_make_one(int dir, const char *path, unsigned flags)
{
    const char *slash = strrchr(path, '/');
    _cleanup_(freep) char *above = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
    _cleanup_(closep) int in = open_beneath(dir, above, O_PATH | O_DIRECTORY, true, flags);
    if (in < 0)
        return in;
    return mkdirat(in, slash ? slash + 1 : path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_dirs(int dir, const char *path, unsigned flags)
{
    for (size_t n = 0; path[n]; n += path[n] == '/') {
        n += strcspn(path + n, "/");
        _cleanup_(freep) char *part = xstrndup(path, n);
        int r = walk_make_one(dir, part, flags);
        if (r < 0)
            return r;
    }
    return 0;
}

int walk_open_parent(const char *root,
                     const struct walk_place *p,
                     bool make,
                     unsigned flags,
                     int *ret_fd,
                     const char **ret_name,
                     struct err *err)
{
    _cleanup_(closep) int zone = -1;
    if (!*p->rest)
        return message_refuse(err, ERR_BAD_REQUEST, "path_itself",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    int r = open_zone(root, p, flags, &zone, err);
    if (r < 0)
        return r;
    const char *slash = strrchr(p->rest, '/');
    _cleanup_(freep) char *above =
        slash ? xstrndup(p->rest, (size_t)(slash - p->rest)) : xstrdup(".");
    int fd = open_beneath(zone, above, O_RDONLY | O_DIRECTORY, true, flags);
    if (fd == -ENOENT && make && slash) {
        r = make_dirs(zone, above, flags);
        fd = r < 0 ? r : open_beneath(zone, above, O_RDONLY | O_DIRECTORY, true, flags);
    }
    if (fd < 0)
        return walk_trouble(p, fd, err);
    *ret_fd = fd;
    *ret_name = slash ? slash + 1 : p->rest;
    return 0;
}
