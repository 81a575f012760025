/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - a job as rows of the store and back; see record.h. */
#include "argusd/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static const char *const flag_words[] = {"UNKNOWN", "HELD", "RESTARTING", "HOLDING", "HUNG"};

void record_extra_release(struct record_extra *x)
{
    free(x->argv);
    free(x->verl);
    free(x->warnings);
    free(x->inputs);
    free(x->placement);
    free(x->snapshots);
    free(x->sealed_spec);
    free(x->imports);
    free(x->metrics);
    free(x->trial);
    free(x->retry_of);
    free(x->finding);
    *x = (struct record_extra){0};
}

unsigned record_flags_from_string(const char *text)
{
    unsigned flags = 0;
    for (size_t i = 0; text && i < array_len(flag_words); i++)
        if (strstr(text, flag_words[i]))
            flags |= 1u << i;
    return flags;
}

/* ---- to rows ---- */

const char *record_flags_to_string(unsigned flags)
{
    static const char *const all[] = {"",
                                      "UNKNOWN",
                                      "HELD",
                                      "UNKNOWN,HELD",
                                      "RESTARTING",
                                      "UNKNOWN,RESTARTING",
                                      "HELD,RESTARTING",
                                      "UNKNOWN,HELD,RESTARTING",
                                      "HUNG",
                                      "UNKNOWN,HUNG",
                                      "HELD,HUNG",
                                      "UNKNOWN,HELD,HUNG",
                                      "RESTARTING,HUNG",
                                      "UNKNOWN,RESTARTING,HUNG",
                                      "HELD,RESTARTING,HUNG",
                                      "UNKNOWN,HELD,RESTARTING,HUNG"};
    if (flags & JOB_FLAG_HOLDING)
        return "HOLDING"; /* that one stands alone */
    return all[(flags & 7) | (flags & JOB_FLAG_HUNG ? 8 : 0)];
}

void record_job_row(const struct job *j, const char *detail, struct store_job *ret)
{
    *ret = (struct store_job){
        .seq = j->seq,
        .id = j->id,
        .name = j->name,
        .user = j->user,
        .project = j->project,
        .workload = j->workload,
        .cluster = j->cluster,
        .pool = j->pool,
        .queued_at = j->queued_at,
        .spec = j->spec,
        .state = job_state_to_string(j->state),
        .live = !job_state_is_terminal(j->state),
        .flags = record_flags_to_string(j->flags),
        .reason_code = j->reason.code,
        .reason_text = j->reason.text,
        .nnodes = j->demand.nnodes,
        .n_gpus_per_node = j->demand.nnodes ? demand_gpus(&j->demand) / j->demand.nnodes : 0,
        .priority = j->priority,
        .started_at = j->started_at,
        .ended_at = j->ended_at,
        .attempt = j->n_attempts,
        .restarts = j->restart.failures + j->restart.preemptions,
        .has_exit_code = j->has_exit && j->exit_code >= 0,
        .exit_code = j->exit_code,
        .detail = detail,
    };
}

static void put_demand(struct jout *o, const struct demand *d)
{
    jout_open(o, "demand", '{');
    jout_int(o, "nnodes", d->nnodes);
    jout_real(o, "gpus_per_node", d->gpus_per_node);
    jout_real(o, "cpus_per_node", d->cpus_per_node);
    jout_real(o, "extra_cpus", d->extra_cpus);
    jout_real(o, "driver_cpus", d->driver_cpus);
    jout_real(o, "driver_gpus", d->driver_gpus);
    jout_real(o, "memory_per_node", d->memory_per_node);
    jout_close(o, '}');
}

static void put_proof(struct jout *o, const struct proof *p)
{
    jout_open(o, "proof", '{');
    jout_int(o, "on_worker", p->on_worker);
    jout_str(o, "driver_ip", p->driver_ip);
    jout_str(o, "head_ip", p->head_ip);
    jout_str(o, "node", p->node);
    jout_str(o, "node_id", p->node_id);
    jout_int(o, "pid", p->pid);
    jout_int(o, "checked_at", (int64_t)p->checked_at);
    jout_close(o, '}');
}

static void put_raw(struct jout *o, const char *key, const char *json)
{
    if (json)
        jout_raw(o, key, json);
}

static void put_restart(struct jout *o, const struct restart *r)
{
    jout_open(o, "restart", '{');
    jout_int(o, "max", r->max);
    jout_str(o, "on", r->on);
    jout_int(o, "backoff", (int64_t)r->backoff);
    jout_bool(o, "avoid", r->avoid);
    jout_bool(o, "preemptible", r->preemptible);
    jout_int(o, "failures", r->failures);
    jout_int(o, "preemptions", r->preemptions);
    jout_int(o, "given_up", r->given_up);
    jout_int(o, "pause", (int64_t)r->pause);
    jout_str(o, "bad_nodes", r->bad_nodes);
    jout_close(o, '}');
}

static void put_watch(struct jout *o, const struct stopwatch *w)
{
    jout_open(o, "watch", '{');
    jout_int(o, "spent", (int64_t)w->spent);
    jout_bool(o, "running", w->running);
    jout_int(o, "wall", (int64_t)w->wall);
    jout_int(o, "boot", (int64_t)w->boot);
    jout_str(o, "boot_id", w->boot_id);
    jout_close(o, '}');
}

static void put_spans(struct jout *o, const struct job *j)
{
    jout_int(o, "timeout", (int64_t)j->timeout);
    jout_int(o, "queue_timeout", (int64_t)j->queue_timeout);
    jout_int(o, "stop_grace", (int64_t)j->stop_grace);
    if (j->hold_on_failure)
        jout_int(o, "hold_on_failure", (int64_t)j->hold_on_failure);
}

/* A job with nothing but its queue behind it is not made larger by what it does not have. */
static bool has_restart(const struct restart *r)
{
    return r->max || r->on || r->preemptible || r->preemptions || r->given_up;
}

static void put_hang(struct jout *o, const struct job *j, const struct record_extra *x)
{
    if (!(j->flags & JOB_FLAG_HUNG))
        return;
    jout_int(o, "hung_step", x->hung_step);
    jout_int(o, "hung_bytes", (int64_t)x->hung_bytes);
}

void record_detail(const struct job *j, const struct record_extra *x, struct buf *out)
{
    struct jout o = jout_begin(out);
    jout_open(&o, NULL, '{');
    put_demand(&o, &j->demand);
    put_spans(&o, j);
    if (has_restart(&j->restart))
        put_restart(&o, &j->restart);
    if (!job_state_is_terminal(j->state))
        put_watch(&o, &j->watch);
    if (j->ran)
        jout_int(&o, "ran", (int64_t)j->ran);
    if (j->held_by)
        jout_str(&o, "held_by", j->held_by);
    if (j->trial != JOB_TRIAL_NONE) {
        jout_int(&o, "trial_phase", j->trial);
        jout_int(&o, "trial_tries", j->trial_tries);
    }
    if (j->nodes) {
        jout_str(&o, "nodes", j->nodes);
        jout_str(&o, "driver_node", j->driver_node);
        jout_str(&o, "slots", j->slots);
        jout_int(&o, "share", j->share);
    }
    if (j->unknown_since)
        jout_int(&o, "unknown_since", (int64_t)j->unknown_since);
    if (j->stop_cause != STOP_NONE) {
        jout_str(&o, "stop_cause", stop_cause_to_string(j->stop_cause));
        jout_int(&o, "stop_asked_at", (int64_t)j->stop_asked_at);
    }
    if (j->has_exit) {
        jout_open(&o, "exit", '{');
        jout_str(&o, "cause", j->exit_cause);
        jout_int(&o, "code", j->exit_code);
        jout_str(&o, "signal", j->exit_signal);
        jout_close(&o, '}');
    }
    if (j->finding)
        jout_str(&o, "finding", j->finding);
    if (j->proof.checked_at)
        put_proof(&o, &j->proof);
    if (x->expected_p50) {
        jout_int(&o, "expected_p50", (int64_t)x->expected_p50);
        jout_int(&o, "expected_p90", (int64_t)x->expected_p90);
    }
    put_raw(&o, "argv", x->argv);
    put_raw(&o, "warnings", x->warnings);
    put_raw(&o, "inputs", x->inputs);
    put_raw(&o, "placement", x->placement);
    put_raw(&o, "snapshots", x->snapshots);
    put_raw(&o, "imports", x->imports);
    put_raw(&o, "metrics", x->metrics);
    put_raw(&o, "trial", x->trial);
    put_raw(&o, "verdict", x->finding);
    if (x->verl)
        jout_str(&o, "verl", x->verl);
    put_hang(&o, j, x);
    if (x->retry_of)
        jout_str(&o, "retry_of", x->retry_of);
    jout_close(&o, '}');
}

void record_attempt_row(const struct job *j,
                        const struct attempt *a,
                        struct buf *detail,
                        struct store_attempt *ret)
{
    struct jout o = jout_begin(detail);
    jout_open(&o, NULL, '{');
    jout_int(&o, "planned_at", (int64_t)a->planned_at);
    jout_int(&o, "accepted_at", (int64_t)a->accepted_at);
    if (a->end_text)
        jout_str(&o, "end_text", a->end_text);
    if (a->session)
        jout_str(&o, "session", a->session);
    jout_close(&o, '}');
    *ret = (struct store_attempt){.job_seq = j->seq,
                                  .k = a->k,
                                  .ray_id = a->ray_id,
                                  .state = attempt_phase_to_string(a->phase),
                                  .started_at = a->started_at,
                                  .ended_at = a->ended_at,
                                  .detail = buf_str(detail)};
}

/* ---- back ---- */

static void get_demand(const json_t *v, struct demand *d)
{
    d->nnodes = (int)json_get_int(v, "nnodes", 1);
    d->gpus_per_node = json_get_real(v, "gpus_per_node", 0);
    d->cpus_per_node = json_get_real(v, "cpus_per_node", 0);
    d->extra_cpus = json_get_real(v, "extra_cpus", 0);
    d->driver_cpus = json_get_real(v, "driver_cpus", 1);
    d->driver_gpus = json_get_real(v, "driver_gpus", 0);
    d->memory_per_node = json_get_real(v, "memory_per_node", 0);
}

static void get_text(const json_t *v, const char *key, char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "%s", json_get_str(v, key, "")); /* cut: as it was stored */
}

static void get_proof(const json_t *v, struct proof *p)
{
    if (!v)
        return;
    p->on_worker = (int)json_get_int(v, "on_worker", -1);
    get_text(v, "driver_ip", p->driver_ip, sizeof(p->driver_ip));
    get_text(v, "head_ip", p->head_ip, sizeof(p->head_ip));
    get_text(v, "node", p->node, sizeof(p->node));
    get_text(v, "node_id", p->node_id, sizeof(p->node_id));
    p->pid = json_get_int(v, "pid", 0);
    p->checked_at = (usec_t)json_get_int(v, "checked_at", 0);
}

static void get_exit(const json_t *v, struct job *j)
{
    if (!v)
        return;
    j->has_exit = true;
    get_text(v, "cause", j->exit_cause, sizeof(j->exit_cause));
    get_text(v, "signal", j->exit_signal, sizeof(j->exit_signal));
    j->exit_code = (int)json_get_int(v, "code", -1);
}

static void get_restart(const json_t *v, struct restart *r)
{
    if (!v)
        return;
    r->max = (int)json_get_int(v, "max", 0);
    set_str(&r->on, json_get_str(v, "on", NULL));
    r->backoff = (usec_t)json_get_int(v, "backoff", 0);
    r->avoid = json_get_bool(v, "avoid", false);
    r->preemptible = json_get_bool(v, "preemptible", false);
    r->failures = (int)json_get_int(v, "failures", 0);
    r->preemptions = (int)json_get_int(v, "preemptions", 0);
    r->given_up = (int)json_get_int(v, "given_up", 0);
    r->pause = (usec_t)json_get_int(v, "pause", 0);
    set_str(&r->bad_nodes, json_get_str(v, "bad_nodes", NULL));
}

/* Of a row without one: the wall clock of when the state began is all there is. */
static void get_watch(const json_t *v, struct job *j)
{
    usec_t since = j->state == JOB_RUNNING    ? j->started_at
                   : j->state == JOB_STOPPING ? j->stop_asked_at
                                              : j->queued_at;
    struct stopwatch *w = &j->watch;
    w->spent = (usec_t)json_get_int(v, "spent", 0);
    w->running = json_get_bool(v, "running", true);
    w->wall = (usec_t)json_get_int(v, "wall", (int64_t)since);
    w->boot = (usec_t)json_get_int(v, "boot", 0);
    get_text(v, "boot_id", w->boot_id, sizeof(w->boot_id));
}

static char *dump(const json_t *v)
{
    return v ? json_dumps(v, JSON_COMPACT) : NULL;
}

static void get_detail(const json_t *v, struct job *j, struct record_extra *x)
{
    get_demand(json_get_object(v, "demand"), &j->demand);
    j->timeout = (usec_t)json_get_int(v, "timeout", 0);
    j->queue_timeout = (usec_t)json_get_int(v, "queue_timeout", 0);
    j->stop_grace = (usec_t)json_get_int(v, "stop_grace", 0);
    j->hold_on_failure = (usec_t)json_get_int(v, "hold_on_failure", 0);
    set_str(&j->nodes, json_get_str(v, "nodes", NULL));
    set_str(&j->driver_node, json_get_str(v, "driver_node", NULL));
    set_str(&j->slots, json_get_str(v, "slots", NULL));
    set_str(&j->held_by, json_get_str(v, "held_by", NULL));
    int64_t trial = json_get_int(v, "trial_phase", JOB_TRIAL_NONE);
    j->trial = trial >= 0 && trial <= JOB_TRIAL_PASSED ? (enum job_trial)trial : JOB_TRIAL_NONE;
    j->trial_tries = (int)json_get_int(v, "trial_tries", 0);
    get_restart(json_get_object(v, "restart"), &j->restart);
    j->ran = (usec_t)json_get_int(v, "ran", 0);
    j->share = (int)json_get_int(v, "share", -1);
    j->unknown_since = (usec_t)json_get_int(v, "unknown_since", 0);
    j->stop_cause = stop_cause_from_string(json_get_str(v, "stop_cause", ""));
    j->stop_asked_at = (usec_t)json_get_int(v, "stop_asked_at", 0);
    get_watch(json_get_object(v, "watch"), j);
    get_exit(json_get_object(v, "exit"), j);
    set_str(&j->finding, json_get_str(v, "finding", NULL));
    get_proof(json_get_object(v, "proof"), &j->proof);
    x->expected_p50 = (usec_t)json_get_int(v, "expected_p50", 0);
    x->expected_p90 = (usec_t)json_get_int(v, "expected_p90", 0);
    x->argv = dump(json_get_array(v, "argv"));
    x->warnings = dump(json_get_array(v, "warnings"));
    x->inputs = dump(json_get_array(v, "inputs"));
    x->placement = dump(json_get_object(v, "placement"));
    x->snapshots = dump(json_get_array(v, "snapshots"));
    x->imports = dump(json_get_object(v, "imports"));
    x->metrics = dump(json_get_object(v, "metrics"));
    x->trial = dump(json_get_object(v, "trial"));
    set_str(&x->verl, json_get_str(v, "verl", NULL));
    x->hung_step = json_get_int(v, "hung_step", 0);
    x->hung_bytes = (uint64_t)json_get_int(v, "hung_bytes", 0);
    set_str(&x->retry_of, json_get_str(v, "retry_of", NULL));
    x->finding = dump(json_get_object(v, "verdict"));
    x->finding_attempt = (int)json_get_int(json_get_object(v, "verdict"), "attempt", 0);
}

static void copy_texts(const struct store_job *row, struct job *j)
{
    j->id = xstrdup(row->id);
    j->name = xstrdup(str_or(row->name, ""));
    j->user = xstrdup(str_or(row->user, ""));
    j->project = xstrdup(str_or(row->project, ""));
    j->workload = xstrdup(str_or(row->workload, ""));
    j->cluster = xstrdup(str_or(row->cluster, ""));
    j->pool = xstrdup(str_or(row->pool, ""));
    j->spec = xstrdup(str_or(row->spec, ""));
    (void)snprintf(j->reason.code, sizeof(j->reason.code), "%s", str_or(row->reason_code, ""));
    (void)snprintf(j->reason.text, sizeof(j->reason.text), "%s", str_or(row->reason_text, ""));
}

int record_to_job(const struct store_job *row,
                  struct job **ret,
                  struct record_extra *x,
                  struct err *err)
{
    const char *detail = str_or(row->detail, "{}");
    _cleanup_(json_unrefp) json_t *v = NULL;
    enum job_state state = job_state_from_string(str_or(row->state, ""));
    if (state == JOB_STATE_END ||
        json_parse(detail, strlen(detail), RECORD_DETAIL_MAX, &v, NULL) < 0)
        return err_set(err, -EINVAL, "the store's row of job '%s' cannot be read", row->id);
    struct job *j = job_new();
    copy_texts(row, j);
    j->seq = row->seq;
    j->priority = (int)row->priority;
    j->state = state;
    j->flags = record_flags_from_string(row->flags);
    j->queued_at = row->queued_at;
    j->started_at = row->started_at;
    j->ended_at = row->ended_at;
    get_detail(v, j, x);
    x->step = row->step;
    *ret = j;
    return 0;
}

void record_add_attempt(struct job *j, const struct store_attempt *row)
{
    const char *detail = str_or(row->detail, "{}");
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (json_parse(detail, strlen(detail), RECORD_DETAIL_MAX, &v, NULL) < 0)
        v = NULL; /* its times are lost, the attempt is not */
    enum attempt_phase phase = attempt_phase_from_string(str_or(row->state, ""));
    j->attempts = xrealloc(j->attempts, (size_t)j->n_attempts + 1, sizeof(*j->attempts));
    j->attempts[j->n_attempts++] = (struct attempt){
        .k = (int)row->k,
        .ray_id = xstrdup(str_or(row->ray_id, "")),
        .phase = phase == ATTEMPT_PHASE_END ? ATTEMPT_PLANNED : phase,
        .planned_at = (usec_t)json_get_int(v, "planned_at", 0),
        .accepted_at = (usec_t)json_get_int(v, "accepted_at", 0),
        .started_at = row->started_at,
        .ended_at = row->ended_at,
        .end_text = xstrdup(json_get_str(v, "end_text", NULL)),
        .session = xstrdup(json_get_str(v, "session", NULL)),
    };
}
