/* SPDX-License-Identifier: Apache-2.0 */
/* router.c - matches paths segment by segment; see router.h.
 *
 * The table has a few dozen rows and most differ in their first bytes, so a walk
 * over it costs less than a hash of the path would. */
#include "http/router.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int router_decode(const char *text, size_t len, bool plus, struct buf *out)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int hi = len - i > 2 ? hex_value(text[i + 1]) : -1;
            int lo = len - i > 2 ? hex_value(text[i + 2]) : -1;
            if (hi < 0 || lo < 0)
                return -EINVAL;
            c = (char)(hi << 4 | lo);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (!c || buf_addc(out, c) < 0)
            return -EINVAL;
    }
    return 0;
}

/* ---- matching ---- */

/* One pattern segment against one path segment. "{id}:stop" wants the verb at the end. */
static bool match_segment(const char *pat, size_t pat_len, const char *seg, size_t seg_len,
                          struct router_match *m)
{
    if (pat[0] != '{')
        return pat_len == seg_len && !memcmp(pat, seg, seg_len);
    const char *brace = memchr(pat, '}', pat_len);
    size_t verb_len = pat_len - (size_t)(brace + 1 - pat);
    if (seg_len <= verb_len || memcmp(seg + seg_len - verb_len, brace + 1, verb_len) != 0)
        return false;
    size_t value_len = seg_len - verb_len;
    if (!verb_len && memchr(seg, ':', seg_len))
        return false; /* an unknown verb, not a name */
    struct buf value = BUF_INIT(1024);
    if (m->n == ROUTER_PARAMS_MAX || router_decode(seg, value_len, false, &value) < 0) {
        buf_release(&value);
        return false;
    }
    m->names[m->n] = pat + 1;
    m->name_lens[m->n] = (size_t)(brace - pat - 1);
    m->values[m->n++] = buf_take(&value);
    return true;
}

static void drop_values(struct router_match *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->values[i]);
    m->n = 0;
}

static bool match_pattern(const char *pat, const char *path, struct router_match *m)
{
    while (*pat == '/' && *path == '/') {
        size_t pn = strcspn(++pat, "/"), sn = strcspn(++path, "/");
        if (!match_segment(pat, pn, path, sn, m))
            break;
        pat += pn;
        path += sn;
        if (!*pat && !*path)
            return true;
    }
    drop_values(m);
    return false;
}

static void note_method(struct router_match *m, const char *method)
{
    size_t n = strlen(m->allow);
    m->other_method = true;
    (void)snprintf(m->allow + n, sizeof(m->allow) - n, "%s%s%s", n ? ", " : "", method,
                   !strcmp(method, "GET") ? ", HEAD" : ""); /* cut: still a list of methods */
}

int router_find(const struct http_route *routes, size_t n, const char *method, const char *path,
                struct router_match *ret, struct err *err)
{
    *ret = (struct router_match){0};
    struct buf whole = BUF_INIT(8192);
    int r = router_decode(path, strlen(path), false, &whole);
    buf_release(&whole);
    if (r < 0)
        return err_set(err, ERR_BAD_REQUEST, "the path has a broken percent escape or is too long");
    const char *want = !strcmp(method, "HEAD") ? "GET" : method;
    for (size_t i = 0; i < n; i++) {
        if (!match_pattern(routes[i].pattern, path, ret))
            continue;
        if (!strcmp(routes[i].method, want)) {
            ret->route = &routes[i];
            return 0;
        }
        note_method(ret, routes[i].method);
        drop_values(ret);
    }
    return 0;
}

void router_match_release(struct router_match *m)
{
    drop_values(m);
}
