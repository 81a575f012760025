/* SPDX-License-Identifier: Apache-2.0 */
/* pack_cache.c - see pack_cache.h. One file per directory, named by the hash of its real path:
 *
 *   argus-cache 1
 *   <size> <mtime ns> <ctime ns> <inode> <sha256> <path>
 */
#include "argus/transfer/pack_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"

static const char HEAD[] = "argus-cache 1\n";
static const usec_t SETTLED = USEC_SEC / 10; /* clocks of file systems tick in milliseconds */

enum { CACHE_BYTES = 256 << 20, KEY_BYTES = 160 };

struct pack_cache {
    char *file;      /* NULL: there is no place for it */
    struct buf text; /* as it was read: the map points into it */
    struct map *map; /* path -> "<size> <mtime> <ctime> <inode> <sha256>" */
    struct buf out;
    usec_t began;
};

static char *pack_cache_place_of(const char *dir)
{
    char hex[HASH_HEX];
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    _cleanup_(freep) char *real = realpath(dir, NULL);
    if (!real || !((xdg && *xdg) || (home && *home)))
        return NULL;
    (void)hash_sha256_hex(real, strlen(real), hex);
    return xdg && *xdg ? xasprintf("%s/argus/%s.snapshot", xdg, hex)
                       : xasprintf("%s/.cache/argus/%s.snapshot", home, hex);
}

/* "…key… hash path" ends the key before the path: five blanks. */
static void pack_cache_read_lines(struct pack_cache *c)
{
    char *s = c->text.data, *end = s ? s + c->text.len : s;
    if (!s || !str_starts(s, HEAD))
        return;
    for (s += strlen(HEAD); s < end;) {
        char *line_end = memchr(s, '\n', (size_t)(end - s)), *path = s;
        if (!line_end)
            return;
        *line_end = 0;
        for (int i = 0; i < 5 && path; i++) {
            path = strchr(path, ' ');
            path = path ? path + 1 : NULL;
        }
        if (path && (size_t)(path - s) < KEY_BYTES) {
            path[-1] = 0;
            (void)map_set(c->map, path, s);
        }
        s = line_end + 1;
    }
}

struct pack_cache *pack_cache_open(const char *dir)
{
    unsigned char seed[16];
    struct pack_cache *c = xcalloc(1, sizeof(*c));
    random_bytes(seed, sizeof(seed));
    buf_init(&c->text, CACHE_BYTES);
    buf_init(&c->out, CACHE_BYTES);
    c->map = map_new(seed);
    c->file = pack_cache_place_of(dir);
    c->began = clock_wall();
    (void)buf_adds(&c->out, HEAD); /* it fits */
    if (c->file && file_read(c->file, &c->text, NULL) == 0)
        pack_cache_read_lines(c);
    return c;
}

void pack_cache_free(struct pack_cache *c)
{
    if (!c)
        return;
    map_free(c->map);
    buf_release(&c->text);
    buf_release(&c->out);
    free(c->file);
    free(c);
}

static int64_t pack_cache_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* How the file looks, up to its hash. */
static size_t pack_cache_look(const struct stat *st, char ret[static KEY_BYTES])
{
    int n = snprintf(ret, KEY_BYTES, "%" PRIdMAX " %" PRId64 " %" PRId64 " %" PRIuMAX " ",
                     (intmax_t)st->st_size, pack_cache_ns(&st->st_mtim),
                     pack_cache_ns(&st->st_ctim), (uintmax_t)st->st_ino);
    return (size_t)n; /* four numbers: it fits */
}

static bool pack_cache_read_hex(const char *s, unsigned char ret[static HASH_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    if (!hash_is_hex(s))
        return false;
    for (size_t i = 0; i < HASH_BYTES; i++)
        ret[i] = (unsigned char)((strchr(digits, s[2 * i]) - digits) << 4 |
                                 (strchr(digits, s[2 * i + 1]) - digits));
    return true;
}

bool pack_cache_find(const struct pack_cache *c,
                     const char *path,
                     const struct stat *st,
                     unsigned char ret[static HASH_BYTES])
{
    char now[KEY_BYTES];
    size_t n = pack_cache_look(st, now);
    const char *then = map_find(c->map, path);
    return then && !strncmp(then, now, n) && pack_cache_read_hex(then + n, ret);
}

void pack_cache_put(struct pack_cache *c,
                    const char *path,
                    const struct stat *st,
                    const unsigned char hash[static HASH_BYTES])
{
    char now[KEY_BYTES], hex[HASH_HEX];
    if (pack_cache_ns(&st->st_ctim) / 1000 + (int64_t)SETTLED > (int64_t)c->began)
        return;
    (void)pack_cache_look(st, now);
    (void)buf_addf(&c->out, "%s%s %s\n", now, str_hex(hash, HASH_BYTES, hex),
                   path); /* failed is looked at below */
}

void pack_cache_save(struct pack_cache *c)
{
    if (!c->file || c->out.failed)
        return;
    _cleanup_(freep) char *dir = xstrndup(c->file, (size_t)(strrchr(c->file, '/') - c->file));
    int r = file_mkdirs(dir, 0700, NULL);
    if (r == 0)
        r = file_write(c->file, buf_str(&c->out), c->out.len, 0600, 0, NULL);
    (void)r; /* then the next look reads all files again */
}
