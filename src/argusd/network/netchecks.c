/* SPDX-License-Identifier: Apache-2.0 */
/* netchecks.c - the table of checks, and how one begins; see netchecks.h. */
#include "argusd/network/netchecks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/imports/ownjob.h"
#include "argusd/network/netchecks_run.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/install.h"

enum { TURN_MS = 1000, SPEC_MAX = 64 << 10 };

const char *const netcheck_state_words[] = {"running", "passed", "failed", NULL};

static const struct field said_rows[] = {
    FIELD_AT(netcheck_said, "code", FIELD_STR, code),
    FIELD_AT(netcheck_said, "text", FIELD_STR, text),
};
static const struct field_table netcheck_said_table = FIELD_TABLE(NULL, said_rows, netcheck_said);

#define ROW(key, ftype, ...)                                                                       \
    FIELD_AT(netcheck, #key, ftype, key, .flags = FIELD_STORED, __VA_ARGS__)
static const struct field netcheck_rows[] = {
    ROW(job, FIELD_STR),
    ROW(user, FIELD_STR),
    ROW(nodes, FIELD_STRV),
    ROW(state, FIELD_ENUM, .names = netcheck_state_words),
    ROW(anew, FIELD_BOOL),
    ROW(join, FIELD_BOOL),
    ROW(asked_at, FIELD_TIME),
    ROW(ended_at, FIELD_TIME),
    ROW(backend, FIELD_STR),
    ROW(sizes, FIELD_LIST, .of = &netcheck_size_table),
    ROW(troubles, FIELD_LIST, .of = &netcheck_said_table),
    ROW(n_troubles, FIELD_INT),
};
#undef ROW
static const struct field_table netcheck_table = FIELD_TABLE(NULL, netcheck_rows, netcheck);

/* ---- life ---- */

struct netchecks *netchecks_new(const struct netchecks_parts *parts)
{
    struct netchecks *nc = xcalloc(1, sizeof(*nc));
    nc->p = *parts;
    nc->pairs = netpairs_new(parts->store);
    return nc;
}

static void netcheck_free(struct netcheck *k)
{
    field_release(&netcheck_table, k);
    free(k);
}

void netchecks_free(struct netchecks *nc)
{
    if (!nc)
        return;
    for (size_t i = 0; i < nc->n; i++)
        netcheck_free(nc->v[i]);
    free(nc->v);
    netpairs_free(nc->pairs);
    free(nc);
}

static int order_checks(const void *a, const void *b)
{
    const struct netcheck *x = *(struct netcheck *const *)a, *y = *(struct netcheck *const *)b;
    if (x->asked_at != y->asked_at)
        return x->asked_at < y->asked_at ? 1 : -1;
    return strcmp(x->job, y->job);
}

static void netchecks_keep(struct netchecks *nc, struct netcheck *k)
{
    nc->v = xrealloc(nc->v, nc->n + 1, sizeof(struct netcheck *));
    nc->v[nc->n++] = k;
    xsort(nc->v, nc->n, sizeof(struct netcheck *), order_checks);
}

void netchecks_restore(struct netchecks *nc, const struct store_entry *row)
{
    if (str_eq(row->kind, NETPAIRS_ENTRY)) {
        netpairs_restore(nc->pairs, row);
        return;
    }
    struct netcheck *k = xcalloc(1, sizeof(*k));
    if (field_from_text(&netcheck_table, row->body, FIELD_STORED, k) && k->job && k->user &&
        k->nodes.n)
        netchecks_keep(nc, k);
    else
        netcheck_free(k);
}

static void netchecks_on_timer(uv_timer_t *t)
{
    netchecks_turn(t->data);
}

void netchecks_start(struct netchecks *nc)
{
    (void)uv_timer_init(nc->p.loop, &nc->timer); /* these cannot fail */
    nc->timer.data = nc;
    nc->has_timer = true;
    (void)uv_timer_start(&nc->timer, netchecks_on_timer, TURN_MS, TURN_MS);
}

void netchecks_close(struct netchecks *nc)
{
    if (!nc)
        return;
    nc->closed = true;
    if (nc->has_timer)
        uv_close((uv_handle_t *)&nc->timer, NULL);
    nc->has_timer = false;
}

/* ---- rows ---- */

void netchecks_save(struct netchecks *nc, const struct netcheck *k)
{
    _cleanup_(freep) char *body = field_to_text(&netcheck_table, k, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = NETCHECKS_ENTRY, .name = k->job, .body = body, .at = clock_wall()};
    store_put_entry(nc->p.store, &row);
}

static void netchecks_drop(struct netchecks *nc, size_t i)
{
    netcheck_free(nc->v[i]);
    memmove(&nc->v[i], &nc->v[i + 1], (nc->n - i - 1) * sizeof(struct netcheck *));
    nc->n--;
}

static size_t count_running(const struct netchecks *nc)
{
    size_t n = 0;
    for (size_t i = 0; i < nc->n; i++)
        n += nc->v[i]->state == NETCHECK_RUNNING;
    return n;
}

void netchecks_over(struct netchecks *nc, struct netcheck *k)
{
    netchecks_save(nc, k);
    for (size_t i = nc->n; i-- > NETCHECKS_KEPT;) {
        if (nc->v[i]->state == NETCHECK_RUNNING || nc->v[i] == k)
            continue;
        store_remove_entry(nc->p.store, NETCHECKS_ENTRY, nc->v[i]->job);
        netchecks_drop(nc, i);
    }
    nodes_take(nc->p.nodes);
}

/* ---- reading ---- */

const struct netcheck *netchecks_next(const struct netchecks *nc, size_t *pos)
{
    return *pos < nc->n ? nc->v[(*pos)++] : NULL;
}

const struct netpairs *netchecks_pairs(const struct netchecks *nc)
{
    return nc->pairs;
}

static char *pool_of_check(const char *job)
{
    return xasprintf("netcheck-%s", job);
}

char *netchecks_pools(const struct netchecks *nc, const char *node)
{
    char *all = NULL;
    for (size_t i = 0; nc && i < nc->n; i++) {
        if (nc->v[i]->state != NETCHECK_RUNNING || !strv_has(&nc->v[i]->nodes, node))
            continue;
        _cleanup_(freep) char *pool = pool_of_check(nc->v[i]->job), *before = all;
        all = before ? xasprintf("%s,%s", before, pool) : xstrdup(pool);
    }
    return all;
}

bool netchecks_has_node(const struct netchecks *nc, const char *node)
{
    for (size_t i = 0; i < nc->n; i++)
        if (nc->v[i]->state == NETCHECK_RUNNING && strv_has(&nc->v[i]->nodes, node))
            return true;
    return false;
}

char *netchecks_result(const char *job)
{
    return xasprintf("jobs/%s/netcheck.json", job);
}

/* ---- which machines ---- */

bool netchecks_takes_jobs(const struct cluster_node *k)
{
    return k->is_alive && !k->is_head && k->takes_drivers;
}

static int check_named(const struct netchecks *nc,
                       const struct strv *names,
                       struct strv *ret,
                       struct err *err)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->v[i];
        const struct cluster_node *k = cluster_find_name(nc->p.cluster, name);
        if (!k && !nodes_is_registered(nc->p.nodes, name))
            return message_refuse(
                err, ERR_NOT_FOUND, "not_found",
                MESSAGE_ARGS(MESSAGE_STR("noun", "node"), MESSAGE_STR("name", name)));
        if (!k || !netchecks_takes_jobs(k))
            return message_refuse(err, ERR_CONFLICT, "node_takes_none",
                                  MESSAGE_ARGS(MESSAGE_STR("name", name)));
        if (!strv_has(ret, name))
            strv_add(ret, name);
    }
    return 0;
}

static int find_in_pool(const struct netchecks *nc,
                        const char *pool,
                        struct strv *ret,
                        struct err *err)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(nc->p.cluster, &n);
    for (size_t i = 0; i < n; i++) {
        _cleanup_(freep) char *labels = nodes_labels(nc->p.nodes, v[i].name);
        if (netchecks_takes_jobs(&v[i]) && !strv_has(ret, v[i].name) &&
            (!pool || str_list_has_all(labels ? labels : v[i].pool, pool)))
            strv_add(ret, v[i].name);
    }
    if (pool && !ret->n)
        return message_refuse(err, ERR_NOT_FOUND, "netcheck_no_pool",
                              MESSAGE_ARGS(MESSAGE_STR("name", pool)));
    return 0;
}

static int choose_nodes(const struct netchecks *nc,
                        const struct netchecks_order *o,
                        struct strv *ret,
                        struct err *err)
{
    if (o->nodes.n && o->pool)
        return message_refuse(err, ERR_BAD_REQUEST, "netcheck_nodes_or_pool", MESSAGE_NO_ARGS);
    int r = o->nodes.n ? check_named(nc, &o->nodes, ret, err) : find_in_pool(nc, o->pool, ret, err);
    if (r < 0)
        return r;
    if (ret->n < 2 || ret->n > NETCHECK_NODES_MAX)
        return message_refuse(
            err, ERR_BAD_REQUEST, "netcheck_size",
            MESSAGE_ARGS(MESSAGE_NUM("most", NETCHECK_NODES_MAX), MESSAGE_NUM("here", ret->n)));
    return 0;
}

/* ---- the job ---- */

static bool all_have_gpus(const struct netchecks *nc, const struct strv *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        const struct cluster_node *k = cluster_find_name(nc->p.cluster, nodes->v[i]);
        if (!k || k->gpus < 1)
            return false;
    }
    return true;
}

static void netchecks_write_spec(const struct netchecks *nc,
                                 const struct netcheck *k,
                                 const struct netchecks_order *o,
                                 struct buf *out)
{
    struct jout j = jout_begin(out);
    const char *root = nc->p.settings->shared_root;
    _cleanup_(freep) char *lib = fsroot_lib_dir(root), *pool = pool_of_check(k->job);
    _cleanup_(freep) char *tool = xasprintf("%s/argus_netcheck.py", lib);
    _cleanup_(freep) char *below = netchecks_result(k->job), *at = xasprintf("%s/%s", root, below);
    jout_open(&j, NULL, '{');
    jout_str(&j, "workload", "ray");
    jout_str(&j, "submission_id", k->job);
    jout_str(&j, "name", "network check");
    jout_str(&j, "pool", pool);
    jout_int(&j, "nnodes", (int64_t)k->nodes.n);
    jout_int(&j, "n_gpus_per_node", !k->join && all_have_gpus(nc, &k->nodes) ? 1 : 0);
    jout_open(&j, "entrypoint", '[');
    const char *const words[] = {"python3", tool, "--result", at};
    for (size_t i = 0; i < array_len(words); i++)
        jout_str(&j, NULL, words[i]);
    jout_close(&j, ']');
    if (o->python) {
        jout_open(&j, "runtime_env", '{');
        jout_str(&j, "py_executable", o->python);
        jout_close(&j, '}');
    }
    jout_str(&j, "timeout", k->join ? "10m" : "30m");
    jout_str(&j, "queue_timeout", k->join ? "10m" : "12h");
    jout_str(&j, "stop_grace", "10s");
    jout_close(&j, '}');
}

static int netchecks_submit(struct netchecks *nc,
                            const struct http_principal *p,
                            const struct netcheck *k,
                            const struct netchecks_order *o,
                            const char **ret_field,
                            struct err *err)
{
    struct live *l;
    _cleanup_(buf_release) struct buf spec = BUF_INIT(SPEC_MAX);
    netchecks_write_spec(nc, k, o, &spec);
    return ownjob_submit(nc->p.importer, p, k->job, buf_str(&spec), &l, ret_field, err);
}

int netchecks_begin(struct netchecks *nc,
                    const struct http_principal *p,
                    const struct netchecks_order *o,
                    const struct netcheck **ret,
                    const char **ret_field,
                    struct err *err)
{
    char id[SPEC_ID_BUF];
    struct strv nodes = {0};
    *ret_field = "nodes";
    int r = choose_nodes(nc, o, &nodes, err);
    if (r == 0 && count_running(nc) >= NETCHECKS_RUNNING_MAX)
        r = message_refuse(err, ERR_BUSY, "netchecks_busy",
                           MESSAGE_ARGS(MESSAGE_NUM("most", NETCHECKS_RUNNING_MAX)));
    if (r < 0) {
        strv_release(&nodes);
        return r;
    }
    ownjob_choose_id(nc->p.importer, WORKLOAD_RAY, id);
    struct netcheck *k = xcalloc(1, sizeof(*k));
    *k = (struct netcheck){.job = xstrdup(id),
                           .user = xstrdup(p->user),
                           .nodes = nodes,
                           .anew = o->anew,
                           .join = o->join,
                           .asked_at = clock_wall()};
    netchecks_keep(nc, k);
    nodes_take(nc->p.nodes); /* they are in its pool from now on */
    r = netchecks_submit(nc, p, k, o, ret_field, err);
    if (r < 0) {
        for (size_t i = 0; i < nc->n; i++)
            if (nc->v[i] == k)
                netchecks_drop(nc, i);
        nodes_take(nc->p.nodes);
        return r;
    }
    netchecks_save(nc, k);
    log_info("network", "a check of %zu machines was asked for job=%s", k->nodes.n, k->job);
    *ret = k;
    return 0;
}
