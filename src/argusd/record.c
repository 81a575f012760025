/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - a job as rows of the store and back; see record.h. */
#include "argusd/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static const char *const flag_words[] = {"UNKNOWN", "HELD", "RESTARTING"};

void record_extra_release(struct record_extra *x)
{
    free(x->argv);
    free(x->verl);
    free(x->warnings);
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
                                      "UNKNOWN,HELD,RESTARTING"};
    return all[flags & 7];
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
        .restarts = j->n_attempts > 1 ? j->n_attempts - 1 : 0,
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

void record_detail(const struct job *j, const struct record_extra *x, struct buf *out)
{
    struct jout o = jout_begin(out);
    jout_open(&o, NULL, '{');
    put_demand(&o, &j->demand);
    jout_int(&o, "timeout", (int64_t)j->timeout);
    jout_int(&o, "queue_timeout", (int64_t)j->queue_timeout);
    jout_int(&o, "stop_grace", (int64_t)j->stop_grace);
    if (j->nodes) {
        jout_str(&o, "nodes", j->nodes);
        jout_str(&o, "driver_node", j->driver_node);
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
    put_raw(&o, "argv", x->argv);
    put_raw(&o, "warnings", x->warnings);
    if (x->verl)
        jout_str(&o, "verl", x->verl);
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
    set_str(&j->nodes, json_get_str(v, "nodes", NULL));
    set_str(&j->driver_node, json_get_str(v, "driver_node", NULL));
    j->unknown_since = (usec_t)json_get_int(v, "unknown_since", 0);
    j->stop_cause = stop_cause_from_string(json_get_str(v, "stop_cause", ""));
    j->stop_asked_at = (usec_t)json_get_int(v, "stop_asked_at", 0);
    get_exit(json_get_object(v, "exit"), j);
    set_str(&j->finding, json_get_str(v, "finding", NULL));
    get_proof(json_get_object(v, "proof"), &j->proof);
    x->argv = dump(json_get_array(v, "argv"));
    x->warnings = dump(json_get_array(v, "warnings"));
    set_str(&x->verl, json_get_str(v, "verl", NULL));
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
    };
}
