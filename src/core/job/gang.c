/* SPDX-License-Identifier: Apache-2.0 */
/* gang.c - the one place that writes and reads the text of a lease. */
#include "core/job/gang.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { NAMES_MAX = 64 << 20 }; /* names and GPUs of one gang */

void gang_add(struct gang *g, const char *name, size_t len, uint64_t gpus)
{
    g->v = xrealloc(g->v, g->n + 1, sizeof(*g->v));
    g->v[g->n++] = (struct gang_node){.name = xstrndup(name, len), .gpus = gpus};
}

void gang_release(struct gang *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->v[i].name);
    free(g->v);
    *g = (struct gang){0};
}

void gang_copy(struct gang *dst, const struct gang *src)
{
    *dst = (struct gang){0};
    for (size_t i = 0; src && i < src->n; i++)
        gang_add(dst, src->v[i].name, strlen(src->v[i].name), src->v[i].gpus);
}

/* Reads the GPUs of "0+1", which ends at end, as bits. */
static uint64_t gpus_from_text(const char *p, const char *end)
{
    uint64_t gpus = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        char *next;
        unsigned long gpu = strtoul(p, &next, 10);
        if (gpu < GANG_GPUS_MAX)
            gpus |= (uint64_t)1 << gpu;
        p = *next == '+' ? next + 1 : end;
    }
    return gpus;
}

void gang_from_text(const char *text, struct gang *ret)
{
    size_t len;
    *ret = (struct gang){0};
    for (const char *it; (it = str_item(&text, &len));) {
        const char *colon = memchr(it, ':', len);
        gang_add(ret, it, colon ? (size_t)(colon - it) : len,
                 colon ? gpus_from_text(colon + 1, it + len) : 0);
    }
}

void gang_to_text(const struct gang *g, struct buf *out)
{
    for (size_t i = 0; i < g->n; i++) {
        const char *sep = ":";
        (void)buf_addf(out, "%s%s", i ? "," : "", g->v[i].name); /* the caller looks at failed */
        for (uint64_t left = g->v[i].gpus; left; left &= left - 1, sep = "+")
            (void)buf_addf(out, "%s%d", sep, __builtin_ctzll(left));
    }
}

char *gang_names(const struct gang *g)
{
    struct buf out = BUF_INIT(NAMES_MAX);
    for (size_t i = 0; i < g->n; i++)
        (void)buf_addf(&out, "%s%s", i ? "," : "", g->v[i].name); /* it fits */
    return g->n ? buf_take(&out) : NULL;
}

const char *gang_driver(const struct gang *g)
{
    return g->n ? g->v[0].name : NULL;
}

void gang_set_driver(struct gang *g, const char *name)
{
    for (size_t i = 1; i < g->n; i++)
        if (str_eq(g->v[i].name, name)) {
            struct gang_node driver = g->v[i];
            memmove(g->v + 1, g->v, i * sizeof(*g->v));
            g->v[0] = driver;
            return;
        }
}

bool gang_has(const struct gang *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (str_eq(g->v[i].name, name))
            return true;
    return false;
}

bool gang_meets(const struct gang *a, const struct gang *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (gang_has(b, a->v[i].name))
            return true;
    return false;
}

int gang_node_gpus(const struct gang_node *n)
{
    return __builtin_popcountll(n->gpus);
}
