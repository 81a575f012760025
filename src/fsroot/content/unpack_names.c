/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_names.c - the names of an archive, and which of them clash: one table from a path's
 * comparison form to its kind; see unpack_names.h. */
#define _GNU_SOURCE
#include "fsroot/content/unpack_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/snapshot.h"
#include "fsroot/tree/beneath.h"

struct name {
    char *path;
    enum unpack_kind kind;
    bool is_written;
};

struct unpack_names {
    struct map *map; /* folded path -> struct name */
    struct buf key;
    size_t files;
};

struct unpack_names *unpack_names_new(void)
{
    unsigned char seed[16];
    struct unpack_names *un = xcalloc(1, sizeof(*un));
    random_bytes(seed, sizeof(seed));
    un->map = map_new(seed);
    buf_init(&un->key, (size_t)4 * SNAPSHOT_PATH_MAX);
    return un;
}

void unpack_names_free(struct unpack_names *un)
{
    struct name *n;
    for (size_t pos = 0; (n = map_next(un->map, &pos, NULL));) {
        free(n->path);
        free(n);
    }
    map_free(un->map);
    buf_release(&un->key);
    free(un);
}

static struct name *unpack_names_find(struct unpack_names *un, const char *path)
{
    buf_reset(&un->key);
    snapshot_fold(&un->key, path);
    return map_find(un->map, buf_str(&un->key));
}

/* Behind unpack_names_find() of the same path. */
static void unpack_names_put(struct unpack_names *un, const char *path, enum unpack_kind kind)
{
    struct name *n = xcalloc(1, sizeof(*n));
    *n = (struct name){.path = xstrdup(path), .kind = kind};
    (void)map_set(un->map, buf_str(&un->key), n); /* there was none */
    un->files += kind != UNPACK_DIRECTORY;
}

static int refuse_twins(const struct name *n, const char *path, struct err *err)
{
    char a[SNAPSHOT_SHOWN], b[SNAPSHOT_SHOWN];
    if (!strcmp(n->path, path))
        return message_refuse(err, ERR_REFUSED, "archive_name_twice",
                              MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(path, a))));
    return message_refuse(err, ERR_REFUSED, "archive_case",
                          MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(n->path, a)),
                                       MESSAGE_STR("other", snapshot_show(path, b))));
}

static int add_parents(struct unpack_names *un, const char *path, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    _cleanup_(freep) char *part = xstrdup(path);
    for (char *s = strchr(part, '/'); s; s = strchr(s + 1, '/')) {
        *s = 0;
        const struct name *n = unpack_names_find(un, part);
        if (n && strcmp(n->path, part) != 0)
            return refuse_twins(n, part, err);
        if (n && n->kind != UNPACK_DIRECTORY)
            return message_refuse(
                err, ERR_REFUSED, "archive_both_kinds",
                MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(part, shown)),
                             MESSAGE_STR("file", n->kind == UNPACK_LINK ? "link" : "file")));
        if (!n)
            unpack_names_put(un, part, UNPACK_DIRECTORY);
        *s = '/';
    }
    return 0;
}

int unpack_names_add(struct unpack_names *un,
                     const char *path,
                     enum unpack_kind kind,
                     struct err *err)
{
    int r = add_parents(un, path, err);
    if (r < 0)
        return r;
    const struct name *n = unpack_names_find(un, path);
    if (n && !(kind == UNPACK_DIRECTORY && n->kind == kind && !strcmp(n->path, path)))
        return refuse_twins(n, path, err);
    if (!n)
        unpack_names_put(un, path, kind);
    return 0;
}

int unpack_names_check(struct unpack_names *un,
                       const char *path,
                       enum unpack_kind kind,
                       struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    struct name *n = unpack_names_find(un, path);
    if (!n || strcmp(n->path, path) != 0 || n->kind != kind || n->is_written)
        return message_refuse(err, ERR_REFUSED, "archive_changed",
                              MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(path, shown))));
    n->is_written = true;
    return 0;
}

size_t unpack_names_files(const struct unpack_names *un)
{
    return un->files;
}

size_t unpack_names_common(const struct unpack_names *un)
{
    const struct name *n;
    const char *top = NULL;
    for (size_t pos = 0; (n = map_next(un->map, &pos, NULL));) {
        if (strchr(n->path, '/'))
            continue;
        if (top || n->kind != UNPACK_DIRECTORY)
            return 0;
        top = n->path;
    }
    if (!top)
        return 0;
    struct buf key = BUF_INIT((size_t)4 * SNAPSHOT_PATH_MAX);
    _cleanup_(freep) char *package = xasprintf("%s/__init__.py", top);
    snapshot_fold(&key, package);
    bool is_package = map_find(un->map, buf_str(&key)) != NULL;
    buf_release(&key);
    return is_package ? 0 : strlen(top) + 1;
}

int unpack_check_link(int tree, const char *path, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    int fd = beneath_open(tree, path, O_PATH, BENEATH_FOLLOW);
    if (fd >= 0)
        (void)close(fd); /* O_PATH: nothing can be lost */
    if (fd >= 0 || fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES)
        return 0; /* it leads nowhere, within the tree */
    if (fd == -EXDEV || fd == -ELOOP)
        return message_refuse(
            err, ERR_REFUSED, "archive_bad_link",
            MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(path, shown)),
                         MESSAGE_STR("leads", fd == -EXDEV ? "out of the tree" : "to itself")));
    return message_refuse(err, fd, "disk_no_check_link",
                          MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(path, shown)),
                                       MESSAGE_STR("why", strerror(-fd))));
}
