/* SPDX-License-Identifier: Apache-2.0 */
/* filetree_log.c - see filetree_log.h. One line for each file, added when the server has it:
 *
 *   <size> <mtime ns> <ctime ns> <path>
 */
#include "argus/transfer/filetree_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "base/text.h"

enum { LOG_BYTES = 256 << 20, KEY_BYTES = 96 };

struct filetree_log {
    char *file;
    int fd;          /* negative: nothing is remembered */
    struct buf text; /* as it was read: the map points into it */
    struct map *map; /* path -> its line up to the path */
};

static char *filetree_log_place_of(const char *server, const char *from, const char *to)
{
    char hex[HASH_HEX];
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    _cleanup_(freep) char *real = realpath(from, NULL);
    if (!real || !((xdg && *xdg) || (home && *home)))
        return NULL;
    _cleanup_(freep) char *all = xasprintf("%s\n%s\n%s", server, real, to);
    (void)hash_sha256_hex(all, strlen(all), hex);
    return xdg && *xdg ? xasprintf("%s/argus/%s.put", xdg, hex)
                       : xasprintf("%s/.cache/argus/%s.put", home, hex);
}

static void filetree_log_read_lines(struct filetree_log *l)
{
    char *s = l->text.data, *end = s ? s + l->text.len : s;
    while (s < end) {
        char *line_end = memchr(s, '\n', (size_t)(end - s)), *path = s;
        if (!line_end)
            return; /* an end came in the middle of it */
        *line_end = 0;
        for (int i = 0; i < 3 && path; i++) {
            path = strchr(path, ' ');
            path = path ? path + 1 : NULL;
        }
        if (path) {
            path[-1] = 0;
            (void)map_set(l->map, path, s); /* the last one counts */
        }
        s = line_end + 1;
    }
}

struct filetree_log *filetree_log_open(const char *server, const char *from, const char *to)
{
    unsigned char seed[16];
    struct filetree_log *l = xcalloc(1, sizeof(*l));
    hash_init();
    random_bytes(seed, sizeof(seed));
    l->map = map_new(seed);
    buf_init(&l->text, LOG_BYTES);
    l->fd = -1;
    l->file = filetree_log_place_of(server, from, to);
    if (!l->file)
        return l;
    if (file_read(l->file, &l->text, NULL) == 0)
        filetree_log_read_lines(l);
    _cleanup_(freep) char *dir = xstrndup(l->file, (size_t)(strrchr(l->file, '/') - l->file));
    if (file_mkdirs(dir, 0700, NULL) == 0)
        l->fd = open(l->file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return l;
}

static int64_t filetree_log_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static void filetree_log_look(const struct stat *st, char ret[static KEY_BYTES])
{
    text_printf_to(ret, KEY_BYTES, "%" PRIdMAX " %" PRId64 " %" PRId64, (intmax_t)st->st_size,
                   filetree_log_ns(&st->st_mtim), filetree_log_ns(&st->st_ctim));
}

bool filetree_log_has(const struct filetree_log *l, const char *path, const struct stat *st)
{
    char now[KEY_BYTES];
    const char *then = map_find(l->map, path);
    filetree_log_look(st, now);
    return then && !strcmp(then, now);
}

void filetree_log_add(struct filetree_log *l, const char *path, const struct stat *st)
{
    char now[KEY_BYTES];
    if (l->fd < 0 || strchr(path, '\n'))
        return;
    filetree_log_look(st, now);
    _cleanup_(freep) char *line = xasprintf("%s %s\n", now, path);
    if (file_write_all(l->fd, line, strlen(line)) < 0)
        closep(&l->fd), l->fd = -1; /* it is sent again then */
}

void filetree_log_close(struct filetree_log *l, bool all)
{
    if (l->fd >= 0 && all)
        (void)unlink(l->file); /* else the next call finds all there, and says so */
    closep(&l->fd);
    map_free(l->map);
    buf_release(&l->text);
    free(l->file);
    free(l);
}
