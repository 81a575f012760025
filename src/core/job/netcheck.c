/* SPDX-License-Identifier: Apache-2.0 */
/* netcheck.c - see netcheck.h. A node's figure is that of its best pair: a slow node spoils all of
 * its pairs, and not its neighbours' others. */
#include "core/job/netcheck.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* ---- the text ---- */

static const struct field pair_rows[] = {
    FIELD_AT(netcheck_pair, "a", FIELD_STR, a),
    FIELD_AT(netcheck_pair, "b", FIELD_STR, b),
    FIELD_AT(netcheck_pair, "mbps", FIELD_REAL, mbps),
    FIELD_AT(netcheck_pair, "usec", FIELD_REAL, usec),
};
static const struct field_table pair_table = FIELD_TABLE(NULL, pair_rows, netcheck_pair);

static const struct field size_rows[] = {
    FIELD_AT(netcheck_size, "bytes", FIELD_INT, bytes),
    FIELD_AT(netcheck_size, "algo_mbps", FIELD_REAL, algo_mbps, .doc = "bytes per time"),
    FIELD_AT(netcheck_size, "bus_mbps", FIELD_REAL, bus_mbps, .doc = "what each link carried"),
    FIELD_AT(netcheck_size, "usec", FIELD_REAL, usec, .doc = "one all-reduce"),
};
const struct field_table netcheck_size_table = FIELD_TABLE("NetworkSize", size_rows, netcheck_size);

static const struct field missed_rows[] = {
    FIELD_AT(netcheck_missed, "node", FIELD_STR, node),
    FIELD_AT(netcheck_missed, "by", FIELD_STRV, by),
};
static const struct field_table missed_table = FIELD_TABLE(NULL, missed_rows, netcheck_missed);

static const struct field found_rows[] = {
    FIELD_AT(netcheck_found, "backend", FIELD_STR, backend),
    FIELD_AT(netcheck_found, "pairs", FIELD_LIST, pairs, .of = &pair_table),
    FIELD_AT(netcheck_found, "sizes", FIELD_LIST, sizes, .of = &netcheck_size_table),
    FIELD_AT(netcheck_found, "missed", FIELD_LIST, missed, .of = &missed_table),
};
static const struct field_table found_table = FIELD_TABLE(NULL, found_rows, netcheck_found);

void netcheck_found_release(struct netcheck_found *f)
{
    field_release(&found_table, f);
}

static bool netcheck_is_figure(double v)
{
    return isfinite(v) && v > 0 && v < 1e9;
}

/* Both are of the check, and the pair stands in the order of their names. */
static bool pair_is_whole(struct netcheck_pair *p, const struct strv *nodes)
{
    if (!p->a || !p->b || !strv_has(nodes, p->a) || !strv_has(nodes, p->b) ||
        !netcheck_is_figure(p->mbps) || !netcheck_is_figure(p->usec))
        return false;
    if (strcmp(p->a, p->b) > 0) {
        char *a = p->a;
        p->a = p->b;
        p->b = a;
    }
    return strcmp(p->a, p->b) != 0;
}

static int order_pairs(const void *a, const void *b)
{
    const struct netcheck_pair *x = a, *y = b;
    int c = strcmp(x->a, y->a);
    return c ? c : strcmp(x->b, y->b);
}

static bool pairs_are_whole(struct netcheck_found *f, const struct strv *nodes)
{
    struct netcheck_pair *v = f->pairs.v;
    size_t n = f->pairs.n, want = nodes->n * (nodes->n - 1) / 2;
    if (n != (f->missed.n ? 0 : want))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!pair_is_whole(&v[i], nodes))
            return false;
    xsort(v, n, sizeof(*v), order_pairs);
    for (size_t i = 1; i < n; i++)
        if (order_pairs(&v[i - 1], &v[i]) == 0)
            return false;
    return true;
}

static bool sizes_are_whole(const struct netcheck_found *f)
{
    const struct netcheck_size *v = f->sizes.v;
    for (size_t i = 0; i < f->sizes.n; i++)
        if (v[i].bytes <= 0 || !netcheck_is_figure(v[i].algo_mbps) ||
            !netcheck_is_figure(v[i].bus_mbps) || !netcheck_is_figure(v[i].usec))
            return false;
    return f->sizes.n <= NETCHECK_SIZES_MAX;
}

static bool missed_are_whole(const struct netcheck_found *f, const struct strv *nodes)
{
    const struct netcheck_missed *v = f->missed.v;
    for (size_t i = 0; i < f->missed.n; i++) {
        if (!v[i].node || !strv_has(nodes, v[i].node) || !v[i].by.n)
            return false;
        for (size_t k = 0; k < v[i].by.n; k++)
            if (!strv_has(nodes, v[i].by.v[k]))
                return false;
    }
    return f->missed.n <= nodes->n;
}

int netcheck_found_read(const char *text,
                        size_t n,
                        const struct strv *nodes,
                        struct netcheck_found *ret,
                        struct err *err)
{
    struct netcheck_found f = {0};
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (json_parse(text, n, NETCHECK_BYTES_MAX, &o, err) < 0)
        return ERR_BAD_REQUEST;
    if (json_is_object(o))
        field_from_json(&found_table, o, FIELD_ALL, &f);
    if (!pairs_are_whole(&f, nodes) || !sizes_are_whole(&f) || !missed_are_whole(&f, nodes) ||
        (!str_eq(f.backend, "gloo") && !str_eq(f.backend, "nccl") && !f.missed.n)) {
        netcheck_found_release(&f);
        return message_refuse(err, ERR_BAD_REQUEST, "netcheck_no_result", MESSAGE_NO_ARGS);
    }
    *ret = f;
    return 0;
}

/* ---- the judgement ---- */

struct judging {
    struct netcheck_trouble *v;
    size_t n, max;
};

static void judging_add(struct judging *j, const char *code, const struct message_arg *args)
{
    if (j->n < j->max) {
        text_copy(j->v[j->n].code, code);
        message_write(j->v[j->n].text, sizeof(j->v[j->n].text), args);
    }
    j->n++;
}

static void judge_missed(const struct netcheck_found *f, struct judging *j)
{
    const struct netcheck_missed *v = f->missed.v;
    for (size_t i = 0; i < f->missed.n; i++) {
        _cleanup_(buf_release) struct buf by = BUF_INIT(200);
        for (size_t k = 0; k < v[i].by.n; k++)
            (void)buf_addf(&by, "%s%s", k ? ", " : "", v[i].by.v[k]); /* cut: fine */
        judging_add(j, "net_unreached",
                    MESSAGE_ARGS(MESSAGE_STR("node", v[i].node), MESSAGE_STR("by", buf_str(&by))));
    }
}

/* True: each pair has a baseline. */
static bool judge_pairs(const struct netcheck_found *f,
                        netcheck_baseline_f *baseline,
                        void *arg,
                        struct judging *j)
{
    const struct netcheck_pair *v = f->pairs.v;
    bool all = true;
    for (size_t i = 0; i < f->pairs.n; i++) {
        double was = baseline(&v[i], arg), percent = was > 0 ? 100 * v[i].mbps / was : 100;
        all = all && was > 0;
        if (percent < NETCHECK_LEAST)
            judging_add(j, "net_slow",
                        MESSAGE_ARGS(MESSAGE_STR("a", v[i].a), MESSAGE_STR("b", v[i].b),
                                     MESSAGE_NUM("mbps", round(v[i].mbps)),
                                     MESSAGE_NUM("percent", floor(percent)),
                                     MESSAGE_NUM("baseline", round(was))));
    }
    return all;
}

struct node_figure {
    const char *node;
    double mbps;
};

static void figure_take(struct node_figure *v, size_t *n, const char *node, double mbps)
{
    size_t i = 0;
    while (i < *n && strcmp(v[i].node, node) != 0)
        i++;
    if (i == *n)
        v[(*n)++] = (struct node_figure){.node = node};
    v[i].mbps = fmax(v[i].mbps, mbps);
}

static int order_figures(const void *a, const void *b)
{
    const struct node_figure *x = a, *y = b;
    return (x->mbps > y->mbps) - (x->mbps < y->mbps);
}

/* Judges which nodes are slow; with two nodes nobody knows which of them is. */
static void judge_nodes(const struct netcheck_found *f, struct judging *j)
{
    struct node_figure v[NETCHECK_NODES_MAX];
    const struct netcheck_pair *pairs = f->pairs.v;
    size_t n = 0;
    for (size_t i = 0; i < f->pairs.n; i++) {
        figure_take(v, &n, pairs[i].a, pairs[i].mbps);
        figure_take(v, &n, pairs[i].b, pairs[i].mbps);
    }
    if (n < 3)
        return;
    xsort(v, n, sizeof(*v), order_figures);
    double median = (v[(n - 1) / 2].mbps + v[n / 2].mbps) / 2;
    for (size_t i = 0; i < n && v[i].mbps < median * NETCHECK_LEAST / 100; i++)
        judging_add(j, "net_uneven",
                    MESSAGE_ARGS(MESSAGE_STR("node", v[i].node),
                                 MESSAGE_NUM("mbps", round(v[i].mbps)),
                                 MESSAGE_NUM("percent", floor(100 * v[i].mbps / median)),
                                 MESSAGE_NUM("median", round(median))));
}

size_t netcheck_judge(const struct netcheck_found *f,
                      netcheck_baseline_f *baseline,
                      void *arg,
                      struct netcheck_trouble *ret,
                      size_t max)
{
    struct judging j = {.v = ret, .max = max};
    judge_missed(f, &j);
    if (baseline && !judge_pairs(f, baseline, arg, &j))
        judge_nodes(f, &j);
    return j.n;
}
