/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - the list of a snapshot's files, as text and as a struct; see manifest.h. A line
 * is cut in place where it is read, so that a path with blanks is what stands between the last
 * field and the end of the line. */
#include "core/check/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/order/place.h"
#include "base/str.h"
#include "core/spec/snapshot.h"

static const char HEAD[] = "argus-snapshot 1\n";
static const char LETTERS[] = "FXL"; /* by enum manifest_kind */

void manifest_release(struct manifest *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->v[i].path);
        free(m->v[i].target);
    }
    free(m->v);
    *m = (struct manifest){0};
}

int manifest_add(struct manifest *m, const struct manifest_entry *e, struct err *err)
{
    if (m->n >= MANIFEST_ENTRIES_MAX)
        return message_refuse(err, ERR_REFUSED, "tree_too_many",
                              MESSAGE_ARGS(MESSAGE_NUM("most", MANIFEST_ENTRIES_MAX)));
    if (m->n == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 64;
        m->v = xrealloc(m->v, m->cap, sizeof(*m->v));
    }
    struct manifest_entry *to = &m->v[m->n++];
    *to = *e;
    to->path = xstrdup(e->path);
    to->target = xstrdup(e->target);
    m->bytes += e->size;
    return 0;
}

static int manifest_by_path(const void *a, const void *b)
{
    const struct manifest_entry *x = a, *y = b;
    return strcmp(x->path, y->path);
}

void manifest_sort(struct manifest *m)
{
    xsort(m->v, m->n, sizeof(*m->v), manifest_by_path);
}

static int to_entry(const void *path, const void *element)
{
    const struct manifest_entry *e = element;
    return strcmp(path, e->path);
}

size_t manifest_place(const struct manifest *m, const char *path)
{
    return place_of(path, m->v, m->n, sizeof(*m->v), to_entry);
}

/* ---- the text ---- */

void manifest_write(const struct manifest *m, struct buf *out)
{
    char hex[HASH_HEX];
    (void)buf_adds(out, HEAD); /* overflow: out->failed */
    for (size_t i = 0; i < m->n; i++) {
        const struct manifest_entry *e = &m->v[i];
        if (e->kind == MANIFEST_LINK)
            (void)buf_addf(out, "L %s\t%s\n", e->path, e->target);
        else
            (void)buf_addf(out, "%c %s %" PRIu64 " %s\n", LETTERS[e->kind],
                           str_hex(e->hash, HASH_BYTES, hex), e->size, e->path);
    }
}

const char *manifest_hash(const struct manifest *m, char ret[static HASH_HEX])
{
    struct buf text = BUF_INIT(MANIFEST_TEXT_MAX);
    manifest_write(m, &text);
    /* 250,000 paths of 1024 bytes would just pass the ceiling: count them as they are. */
    (void)hash_sha256_hex(buf_str(&text), text.len, ret);
    buf_release(&text);
    return ret;
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool manifest_read_hash(const char *s, unsigned char ret[static HASH_BYTES])
{
    for (size_t i = 0; i < HASH_BYTES; i++) {
        int hi = nibble(s[2 * i]), lo = hi < 0 ? -1 : nibble(s[2 * i + 1]);
        if (lo < 0)
            return false;
        ret[i] = (unsigned char)(hi << 4 | lo);
    }
    return true;
}

/* "L path\ttarget": cut in place. */
static bool read_link(char *line, struct manifest_entry *ret)
{
    char *tab = strchr(line, '\t');
    if (!tab)
        return false;
    *tab = 0;
    *ret = (struct manifest_entry){.kind = MANIFEST_LINK, .path = line + 2, .target = tab + 1};
    return snapshot_check_link(ret->path, ret->target, NULL) == 0;
}

static bool manifest_read_file(char *line, struct manifest_entry *ret)
{
    enum { HASH_AT = 2, SIZE_AT = HASH_AT + HASH_HEX };
    int64_t size;
    if (strlen(line) <= SIZE_AT || !manifest_read_hash(line + HASH_AT, ret->hash) ||
        line[SIZE_AT - 1] != ' ')
        return false;
    char *space = strchr(line + SIZE_AT, ' ');
    if (!space)
        return false;
    *space = 0;
    ret->kind = *line == 'X' ? MANIFEST_PROGRAM : MANIFEST_FILE;
    ret->path = space + 1;
    ret->target = NULL;
    if (str_to_int(line + SIZE_AT, 0, INT64_MAX, &size, NULL) < 0)
        return false;
    ret->size = (uint64_t)size;
    return true;
}

static int manifest_read_line(char *line, struct manifest *m, struct err *err)
{
    struct manifest_entry e = {0};
    bool good = strchr(LETTERS, *line) && *line && line[1] == ' ' &&
                (*line == 'L' ? read_link(line, &e) : manifest_read_file(line, &e)) &&
                snapshot_check_path(e.path, NULL) == 0 &&
                (!m->n || strcmp(m->v[m->n - 1].path, e.path) < 0);
    if (!good)
        return message_refuse(err, ERR_REFUSED, "manifest_broken",
                              MESSAGE_ARGS(MESSAGE_NUM("line", m->n + 2)));
    return manifest_add(m, &e, err);
}

int manifest_read(const char *text, size_t n, struct manifest *ret, struct err *err)
{
    size_t head = strlen(HEAD);
    struct manifest m = {0};
    if (n < head || memcmp(text, HEAD, head) != 0)
        return message_refuse(err, ERR_REFUSED, "manifest_broken",
                              MESSAGE_ARGS(MESSAGE_NUM("line", 1)));
    int r = 0;
    for (size_t at = head; at < n && r == 0;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : 0;
        if (!len || memchr(text + at, 0, len) || len > 3 * SNAPSHOT_PATH_MAX) {
            r = message_refuse(err, ERR_REFUSED, "manifest_broken",
                               MESSAGE_ARGS(MESSAGE_NUM("line", m.n + 2)));
            break;
        }
        _cleanup_(freep) char *line = xstrndup(text + at, len);
        r = manifest_read_line(line, &m, err);
        at += len + 1;
    }
    if (r < 0)
        manifest_release(&m);
    else
        *ret = m;
    return r;
}

/* ---- two of them ---- */

static bool manifest_is_same(const struct manifest_entry *a, const struct manifest_entry *b)
{
    return a->kind == b->kind && a->size == b->size && str_eq(a->target, b->target) &&
           !memcmp(a->hash, b->hash, HASH_BYTES);
}

void manifest_diff(const struct manifest *a,
                   const struct manifest *b,
                   manifest_diff_f cb,
                   void *arg)
{
    size_t i = 0, k = 0;
    while (i < a->n || k < b->n) {
        int c = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->v[i].path, b->v[k].path);
        if (c < 0)
            cb(&a->v[i++], NULL, arg);
        else if (c > 0)
            cb(NULL, &b->v[k++], arg);
        else {
            if (!manifest_is_same(&a->v[i], &b->v[k]))
                cb(&a->v[i], &b->v[k], arg);
            i++;
            k++;
        }
    }
}
