/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - jobs as JSON; see view.h. */
#include "argusd/view.h"

#include "argusd/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api.h"
#include "argusd/checkpoints.h"
#include "argusd/conceal.h"
#include "argusd/launchplan.h"
#include "base/str.h"
#include "core/goodput.h"
#include "core/spec.h"
#include "fsroot/fsroot.h"
#include "fsroot/mask.h"

enum { RESOLVED_MAX = 8 << 20, METRICS_MAX = 256 << 10 };

/* ---- the list item ---- */

static void put_flags(struct jout *j, const char *flags, const struct live *l)
{
    jout_open(j, "flags", '[');
    unsigned bits = record_flags_from_string(flags);
    for (unsigned bit = 1; bit <= JOB_FLAG_HUNG; bit <<= 1)
        if (bits & bit)
            jout_str(j, NULL, record_flags_to_string(bit));
    jout_close(j, ']');
    if (l && l->job->unknown_since)
        jout_time(j, "unknown_since", l->job->unknown_since);
}

static void put_reason(struct jout *j,
                       const struct api_eyes *eyes,
                       const char *job,
                       const char *code,
                       const char *text)
{
    jout_open(j, "reason", '{');
    jout_str(j, "code", str_or(code, ""));
    conceal_put(j, "text", eyes, job, text);
    jout_close(j, '}');
}

void view_eta(struct jout *j, usec_t p50, usec_t p90)
{
    if (!p50) {
        jout_null(j, "eta");
        return;
    }
    jout_open(j, "eta", '{');
    jout_time(j, "p50", p50);
    jout_time(j, "p90", p90);
    jout_close(j, '}');
}

static void put_row(struct jout *j,
                    const struct store_job *row,
                    const struct live *l,
                    const struct api_eyes *eyes)
{
    struct reason reason;
    int position = 0;
    jout_str(j, "id", row->id);
    jout_str(j, "name", row->name && *row->name ? row->name : NULL);
    jout_str(j, "user", row->user);
    jout_str(j, "project", row->project);
    jout_str(j, "workload", row->workload);
    jout_str(j, "cluster", row->cluster);
    jout_str(j, "state", row->state);
    put_flags(j, row->flags, l);
    if (l)
        jobs_reason(l, &reason, &position);
    put_reason(j, eyes, row->id, l ? reason.code : row->reason_code,
               l ? reason.text : row->reason_text);
    if (position)
        jout_int(j, "position", position);
    bool waits = l && l->job->state == JOB_QUEUED;
    view_eta(j, waits ? l->eta_p50 : 0, waits ? l->eta_p90 : 0);
    jout_str(j, "pool", row->pool && *row->pool ? row->pool : NULL);
    jout_int(j, "priority", row->priority);
    jout_int(j, "nnodes", row->nnodes);
    jout_real(j, "n_gpus_per_node", row->n_gpus_per_node);
    jout_real(j, "gpus", (double)row->nnodes * row->n_gpus_per_node);
    jout_time(j, "queued_at", row->queued_at);
    jout_time(j, "started_at", row->started_at);
    jout_time(j, "ended_at", row->ended_at);
    jout_int(j, "attempt", row->attempt);
    jout_int(j, "restarts", row->restarts);
    int64_t step = l ? l->extra.step : row->step;
    if (step > 0)
        jout_int(j, "step", step);
    else
        jout_null(j, "step");
    jout_null(j, "gpu_util");
}

void view_item(struct jout *j,
               const struct store_job *row,
               const struct live *l,
               const struct api_eyes *eyes)
{
    jout_open(j, NULL, '{');
    put_row(j, row, l, eyes);
    jout_close(j, '}');
}

/* ---- the whole job ---- */

static void put_attempts(struct jout *j, const struct job *job)
{
    jout_open(j, "attempts", '[');
    for (int i = 0; i < job->n_attempts; i++) {
        const struct attempt *a = &job->attempts[i];
        jout_open(j, NULL, '{');
        jout_int(j, "k", a->k);
        jout_str(j, "ray_id", a->ray_id);
        jout_str(j, "state", attempt_phase_to_string(a->phase));
        jout_time(j, "accepted_at", a->accepted_at);
        jout_time(j, "started_at", a->started_at);
        jout_time(j, "ended_at", a->ended_at);
        jout_str(j, "end", a->end_text);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void put_driver(struct jout *j, const struct proof *p)
{
    if (!p->checked_at) {
        jout_null(j, "driver");
        return;
    }
    jout_open(j, "driver", '{');
    jout_str(j, "node", p->node);
    jout_str(j, "ip", p->driver_ip);
    if (p->pid)
        jout_int(j, "pid", p->pid);
    else
        jout_null(j, "pid");
    jout_close(j, '}');
}

/* Where its driver runs, and what its processes imported. */
static void put_proof(struct jout *j, const struct proof *p, const char *imports)
{
    put_driver(j, p);
    if (!p->checked_at && !imports) {
        jout_null(j, "proof");
        return;
    }
    jout_open(j, "proof", '{');
    jout_raw(j, "driver_on_worker", p->on_worker < 0 ? "null" : p->on_worker ? "true" : "false");
    jout_str(j, "driver_node", p->checked_at ? p->node : NULL);
    jout_str(j, "driver_node_ip", p->checked_at ? p->driver_ip : NULL);
    jout_str(j, "head_ip", p->checked_at ? p->head_ip : NULL);
    jout_time(j, "checked_at", p->checked_at);
    jout_raw(j, "imports", str_or(imports, "null"));
    jout_close(j, '}');
}

static void put_restart(struct jout *j, const struct restart *r)
{
    const char *it, *list = r->bad_nodes;
    size_t n;
    jout_open(j, "restart", '{');
    jout_int(j, "max", r->max);
    jout_int(j, "failures", r->failures);
    jout_int(j, "preemptions", r->preemptions);
    jout_bool(j, "preemptible", r->preemptible);
    jout_open(j, "avoid", '[');
    while ((it = str_item(&list, &n)))
        jout_strn(j, NULL, it, n);
    jout_close(j, ']');
    jout_close(j, '}');
}

/* Time that its attempts held their slots, of one that runs until then (wall). */
static double held_seconds(const struct job *job, usec_t then)
{
    double s = 0;
    for (int i = 0; i < job->n_attempts; i++) {
        const struct attempt *a = &job->attempts[i];
        usec_t end = a->ended_at ? a->ended_at : then;
        s += end > a->planned_at ? (double)(end - a->planned_at) / (double)USEC_SEC : 0;
    }
    return s;
}

/* How much of that went into steps that counted, as of the newest record: between two it does not
 * change. null for who told of none. */
static void put_goodput(struct jout *j, const struct job *job, const char *metrics)
{
    usec_t at = 0;
    _cleanup_(json_unrefp) json_t *page = NULL;
    struct goodput_sums sums;
    struct goodput g;
    if (!metrics || json_parse(metrics, strlen(metrics), METRICS_MAX, &page, NULL) < 0)
        page = NULL;
    goodput_from_json(json_get_array(page, "attempts"), &sums);
    if (!sums.n) {
        jout_null(j, "goodput");
        return;
    }
    int failures = job->restart.failures + (job->state == JOB_FAILED);
    if (clock_from_string(json_get_str(page, "updated_at", ""), &at, NULL) < 0)
        at = 0;
    goodput_judge(&sums, held_seconds(job, at), failures, &g);
    jout_open(j, "goodput", '{');
    jout_real(j, "ratio", g.ratio);
    jout_real(j, "productive_s", g.good_s);
    jout_real(j, "held_s", g.held_s);
    jout_int(j, "steps", (int64_t)g.steps);
    jout_int(j, "steps_lost", (int64_t)g.lost);
    jout_real(j, "lost_s", g.lost_s);
    jout_real(j, "save_s", g.save_s);
    jout_real(j, "mtbf_s", g.mtbf_s);
    jout_int(j, "failures", failures);
    if (g.save_freq)
        jout_int(j, "save_freq", g.save_freq);
    else
        jout_null(j, "save_freq");
    jout_open(j, "attempts", '[');
    for (size_t i = 0; i < sums.n; i++) {
        jout_open(j, NULL, '{');
        jout_int(j, "k", sums.v[i].k);
        jout_int(j, "steps", (int64_t)sums.v[i].steps);
        jout_int(j, "steps_lost", (int64_t)sums.v[i].lost);
        jout_close(j, '}');
    }
    jout_close(j, ']');
    jout_close(j, '}');
}

/* "w1:0+1,w2:2" */
void view_nodes(struct jout *j, const char *slots)
{
    const char *it;
    size_t n;
    jout_open(j, "nodes", '[');
    while ((it = str_item(&slots, &n))) {
        const char *end = it + n, *colon = memchr(it, ':', n);
        jout_open(j, NULL, '{');
        jout_strn(j, "name", it, colon ? (size_t)(colon - it) : n);
        jout_open(j, "gpu_ids", '[');
        for (const char *p = colon; p && p + 1 < end; p += strcspn(p, "+,"))
            jout_int(j, NULL, strtol(++p, NULL, 10)); /* ours: a number */
        jout_close(j, ']');
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void put_path(struct jout *j, const char *key, const char *dir, const char *sub)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, sub);
    jout_str(j, key, path);
}

static void put_paths(struct jout *j, const struct settings *settings, const struct job *job)
{
    _cleanup_(freep) char *dir = fsroot_job_dir(settings->shared_root, job->id);
    jout_str(j, "output_dir", dir);
    if (!job->n_attempts) {
        jout_null(j, "paths"); /* nothing is written before it first leaves the queue */
        return;
    }
    jout_open(j, "paths", '{');
    jout_str(j, "dir", dir);
    put_path(j, "driver_log", dir, "logs/driver.log");
    put_path(j, "config", dir, "config");
    put_path(j, "checkpoints", dir, "checkpoints");
    put_path(j, "metrics", dir, "metrics/metrics.jsonl");
    jout_close(j, '}');
}

/* Why its newest attempt ended badly; of what was found before an attempt, the class alone. */
static void put_finding(struct jout *j, const struct job *job, const struct record_extra *extra)
{
    bool is_its = extra->finding && extra->finding_attempt == job->n_attempts;
    if (job->state == JOB_SUCCEEDED || (!is_its && !job->finding)) {
        jout_null(j, "finding");
    } else if (is_its) {
        jout_raw(j, "finding", extra->finding);
    } else {
        jout_open(j, "finding", '{');
        jout_str(j, "class", job->finding);
        jout_str(j, "sentence", job->reason.text);
        jout_str(j, "node", *job->proof.node ? job->proof.node : NULL);
        jout_null(j, "advice");
        jout_close(j, '}');
    }
}

static void put_end(struct jout *j, const struct job *job)
{
    if (job->has_exit) {
        jout_open(j, "exit", '{');
        jout_str(j, "cause", job->exit_cause);
        if (job->exit_code >= 0)
            jout_int(j, "code", job->exit_code);
        else
            jout_null(j, "code");
        jout_str(j, "signal", *job->exit_signal ? job->exit_signal : NULL);
        jout_close(j, '}');
    } else {
        jout_null(j, "exit");
    }
}

void view_put_spec(struct jout *j, const char *key, const struct spec *spec)
{
    struct mask mask = {0};
    struct buf open = BUF_INIT(RESOLVED_MAX), shown = BUF_INIT(RESOLVED_MAX);
    struct jout o = jout_begin(&open);
    for (size_t i = 0; i < spec->env.n; i++)
        if (str_is_secret_name(spec->env.v[i].key))
            mask_add(&mask, spec->env.v[i].value);
    spec_to_json(spec, &o, NULL);
    mask_json(&mask, buf_str(&open), &shown);
    jout_raw(j, key, open.failed || shown.failed ? "null" : buf_str(&shown));
    mask_release(&mask);
    buf_release(&open);
    buf_release(&shown);
}

static void put_resolved(struct jout *j,
                         const struct settings *settings,
                         const struct job *job,
                         const char *inputs,
                         const char *snapshots)
{
    struct spec spec = {0};
    struct problems ps = {0};
    if (launchplan_read_spec(settings, job->spec, strlen(job->spec), job->user, false, &spec,
                             &ps) == 0 &&
        spec_put_inputs(&spec, inputs, NULL) == 0) {
        code_apply(snapshots, &spec);
        view_put_spec(j, "resolved_spec", &spec);
    } else {
        jout_null(j, "resolved_spec"); /* taken by an older version that read it otherwise */
    }
    spec_release(&spec);
    problems_release(&ps);
}

void view_job(struct jout *j,
              const struct settings *settings,
              const struct job *job,
              const struct record_extra *extra,
              const struct live *l,
              const struct api_eyes *eyes)
{
    struct store_job row;
    record_job_row(job, NULL, &row);
    row.step = extra->step;
    _cleanup_(freep) char *spec = view_mask_spec(job->spec);
    jout_open(j, NULL, '{');
    put_row(j, &row, l, eyes);
    jout_str(j, "submission_id", job->id);
    put_paths(j, settings, job);
    put_proof(j, &job->proof, extra->imports);
    jout_raw(j, "trial", str_or(extra->trial, "null"));
    view_nodes(j, str_or(job->slots, job->nodes));
    put_restart(j, &job->restart);
    jout_str(j, "held_by", job->held_by);
    jout_str(j, "retry_of", extra->retry_of);
    put_attempts(j, job);
    jout_raw(j, "placement", str_or(extra->placement, "null"));
    jout_raw(j, "argv", str_or(extra->argv, "null"));
    jout_str(j, "verl", extra->verl);
    code_put(extra->snapshots, j, "snapshot");
    jout_raw(j, "snapshots", str_or(extra->snapshots, "[]"));
    jout_str(j, "spec", spec);
    jout_raw(j, "inputs", str_or(extra->inputs, "[]"));
    put_resolved(j, settings, job, extra->inputs, extra->snapshots);
    jout_raw(j, "warnings", str_or(extra->warnings, "[]"));
    jout_raw(j, "metrics", str_or(extra->metrics, "null"));
    put_goodput(j, job, extra->metrics);
    if (eyes)
        checkpoints_put(eyes->a->checkpoints, job->id, j, "checkpoints");
    else
        jout_null(j, "checkpoints"); /* written down: the files themselves are there */
    put_end(j, job);
    put_finding(j, job, extra);
    struct moment now = l ? jobs_moment(l->jobs) : (struct moment){0};
    jout_time(j, "deadline", l ? job_deadline(job, settings->start_deadline, &now) : 0);
    jout_close(j, '}');
}

/* ---- masking ---- */

static void collect(const struct node *map, struct strv *values)
{
    for (const struct node *c = map && map->kind == NODE_MAP ? map->first : NULL; c; c = c->next)
        if (c->kind == NODE_SCALAR && str_is_secret_name(c->key) && *c->text)
            strv_add(values, c->text);
}

/* False when one of them is written otherwise than it reads: in quotes with escapes, folded. */
static bool stand_as_they_are(const struct strv *values, const char *text)
{
    for (size_t i = 0; i < values->n; i++)
        if (!strstr(text, values->v[i]))
            return false;
    return true;
}

static void replace(struct buf *out, const char *text, const struct strv *values)
{
    while (*text) {
        const char *hit = NULL; /* the longest: one secret may begin like another */
        for (size_t i = 0; i < values->n; i++)
            if (str_starts(text, values->v[i]) && (!hit || strlen(values->v[i]) > strlen(hit)))
                hit = values->v[i];
        (void)buf_add(out, hit ? "***" : text, hit ? 3 : 1); /* at most as long as a spec */
        text += hit ? strlen(hit) : 1;
    }
}

char *view_mask_spec(const char *text)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    struct strv values = {0};
    struct buf out = BUF_INIT(4 * (size_t)DOC_MAX_BYTES);
    bool shown = doc_parse(text, strlen(text), false, &d, &ps) == 0;
    if (shown) {
        collect(node_find(doc_root(d), "env"), &values);
        collect(node_find(node_find(doc_root(d), "runtime_env"), "env_vars"), &values);
        doc_free(d);
        shown = stand_as_they_are(&values, text);
    }
    if (shown)
        replace(&out, text, &values);
    else
        (void)buf_adds(&out, "# *** a secret in this spec cannot be cut out of its text\n");
    problems_release(&ps);
    strv_release(&values);
    return buf_take(&out);
}
