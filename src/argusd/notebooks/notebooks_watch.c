/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_watch.c - the records of notebooks that run, read in the worker pool; and from them and
 * the lease, where a notebook is. A record is the job's own text: only a port of the range and
 * counts are believed. */
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/notebooks/notebooks_state.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/rootfile.h"

static const usec_t LOOK_SOON = USEC_SEC, LOOK_LATER = 10 * USEC_SEC;

struct notebook_reading {
    struct notebooks *ns;
    char *owner, *name, *job, *root, *path;
    int attempt;
    struct buf text;
    int r;
};

void notebook_forget(struct noted *x)
{
    x->report = (struct notebook_report){0};
    x->looked_at = x->active_at = x->heard_at = x->warned_at = x->left = 0;
    x->node[0] = '\0';
}

static void notebook_run_read(void *arg)
{
    struct notebook_reading *g = arg;
    g->r = rootfile_read(g->root, g->path, &g->text, NULL);
}

static void notebook_take_report(struct noted *x, struct notebook_reading *g, usec_t now)
{
    struct err err = {0};
    struct notebook_report r;
    const struct ports_range *ports = &g->ns->a->settings->ports.v[PORTS_NOTEBOOK];
    if (notebook_read_report(buf_str(&g->text), g->text.len, ports, &r, &err) < 0) {
        log_debug("notebook", "the record of job '%s' says nothing: %s", g->job, err.text);
        return;
    }
    if (r.attempt != g->attempt)
        return; /* of a run before */
    if (r.seq != x->report.seq || !x->report.port) {
        x->heard_at = now;
        usec_t active = r.quiet < now ? now - r.quiet : 1;
        if (active > x->active_at)
            x->active_at = active;
    }
    x->report = r;
}

static void notebook_on_read(void *arg)
{
    struct notebook_reading *g = arg;
    const struct noted *found = g->ns->closing ? NULL : notebooks_find(g->ns, g->owner, g->name);
    struct noted *x = found ? notebook_own(g->ns, found) : NULL;
    if (x) {
        x->reading = false;
        if (g->r == 0 && str_eq(x->n.job, g->job) && x->n.wanted)
            notebook_take_report(x, g, clock_mono());
    }
    buf_release(&g->text);
    free(g->owner);
    free(g->name);
    free(g->job);
    free(g->root);
    free(g->path);
    free(g);
}

void notebook_look(struct noted *x, const struct live *l, usec_t now)
{
    const struct cluster *cluster = x->of->a->cluster;
    if (x->report.attempt && x->report.attempt != l->job->n_attempts)
        notebook_forget(x); /* it was started anew, perhaps elsewhere */
    text_copy(x->node, gang_driver(&l->job->gang));
    usec_t pause = x->report.port ? LOOK_LATER : LOOK_SOON;
    if (x->reading || (x->looked_at && now - x->looked_at < pause) ||
        !cluster_root_is_ok(cluster) || cluster_root_hangs(cluster))
        return;
    struct notebook_reading *g = xcalloc(1, sizeof(*g));
    *g = (struct notebook_reading){.ns = x->of,
                                   .owner = xstrdup(x->n.owner),
                                   .name = xstrdup(x->n.name),
                                   .job = xstrdup(x->n.job),
                                   .root = xstrdup(x->of->a->settings->shared_root),
                                   .path = xasprintf("jobs/%s/notebook.json", x->n.job),
                                   .attempt = l->job->n_attempts,
                                   .text = BUF_INIT(NOTEBOOK_REPORT_MAX)};
    x->reading = true;
    x->looked_at = now;
    work_start(x->of->a->loop, notebook_run_read, notebook_on_read, g);
}

/* ---- where it is ---- */

static int notebook_refuse_door(const struct noted *x, struct err *err)
{
    enum notebook_state state = notebook_state_of(x);
    bool ends = state == NOTEBOOK_STOPPED || state == NOTEBOOK_STOPPING;
    const char *code = state == NOTEBOOK_FAILED ? x->n.code
                       : ends                   ? "notebook_is_stopped"
                                                : x->reason.code;
    const char *text = state == NOTEBOOK_FAILED ? x->n.text : ends ? "{}" : x->reason.text;
    if (!code || !*code)
        return message_refuse(err, ERR_UNAVAILABLE, "notebook_not_ready",
                              MESSAGE_ARGS(MESSAGE_STR("name", x->n.name)));
    return message_refuse(
        err, ERR_UNAVAILABLE, "notebook_not_ready",
        MESSAGE_ARGS(MESSAGE_STR("name", x->n.name), MESSAGE_OF("why", code, str_or(text, "{}"))));
}

int notebooks_find_door(const struct noted *x, struct notebook_door *ret, struct err *err)
{
    const struct live *l = x->n.job ? jobs_find_id(x->of->a->jobs, x->n.job) : NULL;
    bool is_there = l && notebook_state_of(x) == NOTEBOOK_READY && l->job->gang.n &&
                    x->report.attempt == l->job->n_attempts;
    if (!is_there)
        return notebook_refuse_door(x, err);
    const struct cluster_node *n =
        cluster_find_callable(x->of->a->cluster, gang_driver(&l->job->gang), err);
    if (!n)
        return ERR_UNAVAILABLE;
    text_copy(ret->host, n->ip);
    ret->port = (unsigned)x->report.port;
    notebooktoken_of(x->of->a->secrets, x->n.job, ret->token);
    return 0;
}
