/* SPDX-License-Identifier: Apache-2.0 */
/* netchecks_settle.c - what becomes of a check once its job is over; see netchecks.h.
 *
 * All of it can be done twice: a kill before the row is on disk leaves the check as it was, and its
 * file is read again. */
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/network/netchecks_run.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/rootfile.h"

/* One call in the worker pool. */
struct reading {
    struct netchecks *nc;
    struct netcheck *k; /* busy: it stays */
    char *path, *root;
    struct strv nodes; /* copies, for the thread */
    char state[24];    /* of the job */
    struct netcheck_found found;
    struct err err;
    int r;
};

static void netchecks_run_read(void *arg)
{
    struct reading *x = arg;
    _cleanup_(buf_release) struct buf text = BUF_INIT(NETCHECK_BYTES_MAX);
    x->r = rootfile_read(x->root, x->path, &text, &x->err);
    if (x->r == 0)
        x->r = netcheck_found_read(buf_str(&text), text.len, &x->nodes, &x->found, &x->err);
}

/* ---- the judgement ---- */

static void netcheck_name(struct netcheck *k, const struct netcheck_trouble *v, size_t n)
{
    struct netcheck_said *said = xcalloc(n + 1, sizeof(*said));
    for (size_t i = 0; i < n; i++)
        said[i] = (struct netcheck_said){.code = xstrdup(v[i].code), .text = xstrdup(v[i].text)};
    k->troubles = (struct field_list){.v = said, .n = n};
}

static void netchecks_tell(struct netchecks *nc, const struct netcheck *k)
{
    const struct netcheck_said *first = k->troubles.v;
    const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER,
                                       .name = nc->p.settings->cluster};
    _cleanup_(freep) char *object = xasprintf("cluster/%s", nc->p.settings->cluster);
    char text[JOB_REASON_TEXT_MAX];
    if (k->troubles.n)
        text_copy(text, first->text);
    else
        message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_NUM("machines", k->nodes.n)));
    struct events_note note = {.kind = "network_checked",
                               .actor = k->user,
                               .thing = &thing,
                               .object = object,
                               .code = k->troubles.n ? first->code : "network_fine",
                               .text = text};
    events_add(nc->p.events, &note, clock_wall());
}

static void netcheck_judge_found(struct netchecks *nc, struct reading *x)
{
    struct netcheck *k = x->k;
    struct netcheck_trouble v[NETCHECKS_TROUBLES_MAX];
    netcheck_baseline_f *baseline = k->anew   ? NULL
                                    : k->join ? netpairs_join_baseline
                                              : netpairs_baseline;
    size_t n = netcheck_judge(&x->found, baseline, nc->pairs, v, array_len(v));
    unsigned flags = n ? 0 : k->anew ? NETPAIRS_ANEW | NETPAIRS_FIRST : NETPAIRS_FIRST;
    const struct netcheck_pair *pairs = x->found.pairs.v;
    for (size_t i = 0; i < x->found.pairs.n; i++)
        if (!netpairs_take(nc->pairs, &pairs[i], k->job, flags, clock_wall()))
            log_warn("network", "there are %d pairs: '%s' and '%s' are left out", NETPAIRS_MAX,
                     pairs[i].a, pairs[i].b);
    netcheck_name(k, v, n < array_len(v) ? n : array_len(v));
    k->n_troubles = (int64_t)n;
    k->state = n ? NETCHECK_FAILED : NETCHECK_PASSED;
    set_str(&k->backend, x->found.backend);
    k->sizes = x->found.sizes; /* taken */
    x->found.sizes = (struct field_list){0};
}

static void netcheck_judge_nothing(const struct reading *x)
{
    struct netcheck_trouble t;
    text_copy(t.code, "net_no_result");
    message_write(t.text, sizeof(t.text),
                  MESSAGE_ARGS(MESSAGE_STR("job", x->k->job), MESSAGE_STR("state", x->state),
                               MESSAGE_STR("says", x->err.text)));
    netcheck_name(x->k, &t, 1);
    x->k->n_troubles = 1;
    x->k->state = NETCHECK_FAILED;
}

static void reading_free(struct reading *x)
{
    netcheck_found_release(&x->found);
    strv_release(&x->nodes);
    free(x->path);
    free(x->root);
    free(x);
}

static void netchecks_on_read(void *arg)
{
    struct reading *x = arg;
    struct netchecks *nc = x->nc;
    x->k->busy = false;
    if (!nc->closed) {
        if (x->r == 0)
            netcheck_judge_found(nc, x);
        else
            netcheck_judge_nothing(x);
        x->k->ended_at = clock_wall();
        netchecks_tell(nc, x->k);
        netjoins_tell(nc, x->k);
        netchecks_over(nc, x->k);
    }
    reading_free(x);
}

static void netchecks_begin_read(struct netchecks *nc, struct netcheck *k, const char *state)
{
    struct reading *x = xcalloc(1, sizeof(*x));
    *x = (struct reading){.nc = nc,
                          .k = k,
                          .path = netchecks_result(k->job),
                          .root = xstrdup(nc->p.settings->shared_root)};
    text_copy(x->state, state);
    strv_copy(&x->nodes, &k->nodes);
    k->busy = true;
    work_start(nc->p.loop, netchecks_run_read, netchecks_on_read, x);
}

/* ---- is its job over? ---- */

struct job_lookup {
    struct netchecks *nc;
    struct netcheck *k;
};

/* It is not in memory any more. */
static void netchecks_on_found(const struct store_result *r, void *arg)
{
    struct job_lookup *x = arg;
    struct netchecks *nc = x->nc;
    struct netcheck *k = x->k;
    const struct store_job *j = r->err.code == 0 && r->njobs == 1 ? &r->jobs[0] : NULL;
    free(x);
    k->busy = false;
    if (nc->closed)
        return;
    if (r->err.code == ERR_NOT_FOUND)
        netchecks_begin_read(nc, k, "nothing that is known");
    else if (j && str_eq(j->id, k->job) && job_state_is_terminal(job_state_from_string(j->state)))
        netchecks_begin_read(nc, k, j->state);
}

static void netchecks_look_up(struct netchecks *nc, struct netcheck *k)
{
    struct job_lookup *x = xcalloc(1, sizeof(*x));
    struct store_job_ref ref = {.ref = k->job, .is_id = true};
    struct store_then then = {.done = netchecks_on_found, .arg = x};
    *x = (struct job_lookup){nc, k};
    k->busy = true;
    if (!store_find_job(nc->p.store, &ref, &then))
        log_debug("network", "the store is closing job=%s", k->job);
}

static void netchecks_turn_one(struct netchecks *nc, struct netcheck *k)
{
    const struct live *l = jobs_find_any(nc->p.jobs, k->job);
    if (!l)
        netchecks_look_up(nc, k);
    else if (l->over && store_durable(nc->p.store) >= l->end_batch)
        netchecks_begin_read(nc, k, job_state_to_string(l->job->state));
}

/* Nothing is done while the root is away: what cannot be read then is not lost. */
void netchecks_turn(struct netchecks *nc)
{
    if (nc->closed || !cluster_root_is_ok(nc->p.cluster) || cluster_root_hangs(nc->p.cluster) ||
        store_is_failing(nc->p.store))
        return;
    for (size_t i = 0; i < nc->n; i++)
        if (nc->v[i]->state == NETCHECK_RUNNING && !nc->v[i]->busy)
            netchecks_turn_one(nc, nc->v[i]);
    netjoins_turn(nc);
}
