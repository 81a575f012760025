/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - jobs as JSON; see view.h. */
#include "argusd/kit/view.h"

#include "argusd/content/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/jobspec.h"
#include "argusd/kit/api.h"
#include "argusd/kit/saying.h"
#include "base/field.h"
#include "base/str.h"
#include "core/metric/goodput.h"
#include "core/spec/spec.h"
#include "fsroot/fsroot.h"
#include "fsroot/mask.h"

enum { RESOLVED_MAX = 8 << 20, METRICS_MAX = 256 << 10 };

/* ---- the list item ---- */

static void view_put_flags(struct jout *j, const char *flags, const struct live *l)
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

static void view_put_reason(struct jout *j,
                            const struct api_eyes *eyes,
                            const char *job,
                            const char *code,
                            const char *text)
{
    jout_open(j, "reason", '{');
    jout_str(j, "code", str_or(code, ""));
    saying_put(j, eyes, job, code, text);
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

static void view_put_row(struct jout *j,
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
    view_put_flags(j, row->flags, l);
    if (l)
        jobs_reason(l, &reason, &position);
    view_put_reason(j, eyes, row->id, l ? reason.code : row->reason_code,
                    l ? reason.text : row->reason_text);
    if (position)
        jout_int(j, "position", position);
    bool waits = l && l->job->state == JOB_QUEUED;
    usec_t p50 = 0, p90 = 0;
    if (waits)
        jobs_eta(l, &p50, &p90);
    view_eta(j, p50, p90);
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
    view_put_row(j, row, l, eyes);
    jout_close(j, '}');
}

/* ---- the whole job ---- */

#define X(word) [ATTEMPT_##word] = #word,
static const char *const phase_words[] = {ATTEMPT_PHASE_TABLE(X) NULL};
#undef X
#define ROW(of, key, ftype, member, ...)                                                           \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct of, member), __VA_ARGS__             \
    }
static const struct field attempt_rows[] = {
    ROW(attempt, "k", FIELD_INT32, k),
    ROW(attempt, "ray_id", FIELD_STR, ray_id, .flags = FIELD_ALWAYS),
    ROW(attempt, "state", FIELD_ENUM, phase, .names = phase_words),
    ROW(attempt, "accepted_at", FIELD_TIME, accepted_at),
    ROW(attempt, "started_at", FIELD_TIME, started_at),
    ROW(attempt, "ended_at", FIELD_TIME, ended_at),
    ROW(attempt, "end", FIELD_STR, end_text),
};
const struct field_table view_attempt_table = {"Attempt", attempt_rows, array_len(attempt_rows),
                                               sizeof(struct attempt), 0};

/* What a page says of one attempt's steps: more is in its metrics. */
static const struct field goodput_attempt_rows[] = {
    ROW(goodput_attempt, "k", FIELD_INT32, k),
    ROW(goodput_attempt, "steps", FIELD_COUNT, steps),
    ROW(goodput_attempt, "steps_lost", FIELD_COUNT, lost),
};
static const struct field_table goodput_attempt_table = {
    NULL, goodput_attempt_rows, array_len(goodput_attempt_rows), sizeof(struct goodput_attempt), 0};

struct goodput_page {
    struct goodput g;
    int failures;
    struct field_list attempts; /* borrowed */
};
static const struct field goodput_rows[] = {
    ROW(goodput_page, "ratio", FIELD_REAL, g.ratio, .flags = FIELD_NO_LIMIT),
    ROW(goodput_page, "productive_s", FIELD_REAL, g.good_s, .flags = FIELD_NO_LIMIT),
    ROW(goodput_page, "held_s", FIELD_REAL, g.held_s, .flags = FIELD_NO_LIMIT),
    ROW(goodput_page, "steps", FIELD_COUNT, g.steps),
    ROW(goodput_page, "steps_lost", FIELD_COUNT, g.lost),
    ROW(goodput_page, "lost_s", FIELD_REAL, g.lost_s, .flags = FIELD_NO_LIMIT),
    ROW(goodput_page, "save_s", FIELD_REAL, g.save_s, .flags = FIELD_NO_LIMIT),
    ROW(goodput_page, "mtbf_s", FIELD_REAL, g.mtbf_s, .flags = FIELD_NO_LIMIT),
    ROW(goodput_page, "failures", FIELD_INT32, failures),
    ROW(goodput_page, "save_freq", FIELD_INT, g.save_freq, .flags = FIELD_NO_LIMIT),
    ROW(goodput_page, "attempts", FIELD_LIST, attempts, .of = &goodput_attempt_table),
};
const struct field_table view_goodput_table = {"Goodput", goodput_rows, array_len(goodput_rows),
                                               sizeof(struct goodput_page), 0};

static void put_attempts(struct jout *j, const struct job *job)
{
    jout_open(j, "attempts", '[');
    for (int i = 0; i < job->n_attempts; i++)
        field_to_json(&view_attempt_table, &job->attempts[i], FIELD_ALL, FIELD_PAGE, j, NULL);
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

static void view_put_restart(struct jout *j, const struct restart *r)
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
    if (!metrics || json_parse(metrics, strlen(metrics), METRICS_MAX, &page, NULL) < 0)
        page = NULL;
    goodput_from_json(json_get_array(page, "attempts"), &sums);
    if (!sums.n) {
        jout_null(j, "goodput");
        return;
    }
    struct goodput_page shown = {.failures = job->restart.failures + (job->state == JOB_FAILED),
                                 .attempts = {.v = sums.v, .n = sums.n}};
    if (clock_from_string(json_get_str(page, "updated_at", ""), &at, NULL) < 0)
        at = 0;
    goodput_judge(&sums, held_seconds(job, at), shown.failures, &shown.g);
    if (!shown.g.save_freq)
        shown.g.save_freq = -1; /* null */
    field_to_json(&view_goodput_table, &shown, FIELD_ALL, FIELD_PAGE, j, "goodput");
}

void view_nodes(struct jout *j, const struct gang *gang)
{
    jout_open(j, "nodes", '[');
    for (size_t i = 0; i < gang->n; i++) {
        jout_open(j, NULL, '{');
        jout_str(j, "name", gang->v[i].name);
        jout_open(j, "gpu_ids", '[');
        for (uint64_t left = gang->v[i].gpus; left; left &= left - 1)
            jout_int(j, NULL, __builtin_ctzll(left));
        jout_close(j, ']');
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void view_put_path(struct jout *j, const char *key, const char *dir, const char *sub)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, sub);
    jout_str(j, key, path);
}

static void view_put_paths(struct jout *j, const struct settings *settings, const struct job *job)
{
    _cleanup_(freep) char *dir = fsroot_job_dir(settings->shared_root, job->id);
    jout_str(j, "output_dir", dir);
    if (!job->n_attempts) {
        jout_null(j, "paths"); /* nothing is written before it first leaves the queue */
        return;
    }
    jout_open(j, "paths", '{');
    jout_str(j, "dir", dir);
    view_put_path(j, "driver_log", dir, "logs/driver.log");
    view_put_path(j, "config", dir, "config");
    view_put_path(j, "checkpoints", dir, "checkpoints");
    view_put_path(j, "metrics", dir, "metrics/metrics.jsonl");
    jout_close(j, '}');
}

/* Why its newest attempt ended badly; of what was found before an attempt, the class alone. */
static void put_finding(struct jout *j,
                        const struct job *job,
                        const struct record_extra *extra,
                        const struct api_eyes *eyes)
{
    bool is_its = extra->finding.json && extra->finding.attempt == job->n_attempts;
    if (job->state == JOB_SUCCEEDED || (!is_its && job->finding == FINDING_NONE)) {
        jout_null(j, "finding");
    } else if (is_its) {
        jout_raw(j, "finding", extra->finding.json);
    } else {
        jout_open(j, "finding", '{');
        jout_str(j, "class", record_finding_word(job, extra));
        saying_put_text(j, "sentence", eyes, job->id, job->reason.code, job->reason.text);
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
    const struct spec *given = jobspec_of(settings, job);
    if (given)
        spec_copy(&spec, given);
    if (given && spec_put_inputs(&spec, inputs, NULL) == 0) {
        code_apply(snapshots, &spec);
        view_put_spec(j, "resolved_spec", &spec);
    } else {
        jout_null(j, "resolved_spec"); /* taken by an older version that read it otherwise */
    }
    spec_release(&spec);
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
    view_put_row(j, &row, l, eyes);
    jout_str(j, "submission_id", job->id);
    view_put_paths(j, settings, job);
    put_proof(j, &job->proof, extra->imports);
    jout_raw(j, "trial", str_or(extra->trial, "null"));
    view_nodes(j, &job->gang);
    view_put_restart(j, &job->restart);
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
    put_finding(j, job, extra, eyes);
    struct moment now = l ? jobs_moment(l->jobs) : (struct moment){0};
    jout_time(j, "deadline", l ? job_deadline(job, settings->start_deadline, &now) : 0);
    jout_close(j, '}');
}

/* ---- masking ---- */

static void view_collect(const struct node *map, struct strv *values)
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
        view_collect(node_find(doc_root(d), "env"), &values);
        view_collect(node_find(node_find(doc_root(d), "runtime_env"), "env_vars"), &values);
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
