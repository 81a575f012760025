/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - a job as rows of the store and back; see record.h. */
#include "argusd/jobs/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/field.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "core/metric/metric_watch.h"
#include "core/training/curve.h"
#include "core/training/metric_alarm.h"

static const char *const flag_words[] = {"UNKNOWN", "HELD", "RESTARTING",
                                         "HOLDING", "HUNG", "IDLE"};

void record_finding_set(struct record_finding *f, const char *json, const char *rule, int attempt)
{
    set_str(&f->json, json);
    set_str(&f->rule, rule);
    f->attempt = attempt;
}

void record_finding_release(struct record_finding *f)
{
    free(f->json);
    free(f->rule);
    *f = (struct record_finding){0};
}

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
    free(x->verdict);
    free(x->verdict_says);
    free(x->verdict_samples);
    free(x->anatomy);
    strv_release(&x->project_alerts);
    free(x->metric_alerts);
    free(x->slow_rank);
    free(x->slow_rank_says);
    free(x->alerts_say);
    free(x->alerts_samples);
    free(x->alerts_curve);
    free(x->gpus);
    free(x->trial);
    free(x->retry_of);
    free(x->idle_why);
    record_finding_release(&x->finding);
    free(x->finding_word);
    *x = (struct record_extra){0};
}

int record_finding_read(const struct record_finding *f, struct finding *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    *ret = (struct finding){0};
    int r = json_parse(f->json, strlen(f->json), RECORD_DETAIL_MAX, &v, err);
    return r < 0 ? r : finding_from_json(v, ret, err);
}

/* How to open the samples of a verdict's item or an alert, with their scores. Their texts stay in
 * the house: this goes into alerts. NULL: it has none. */
static char *record_say_samples(const json_t *of)
{
    enum { SAY_MAX = 600 }; /* that a sentence has of a fact: no command is cut in two */
    struct buf say = BUF_INIT(SAY_MAX);
    size_t i;
    const json_t *one;
    json_array_foreach (json_get_array(of, "samples"), i, one) {
        const char *command = json_get_str(one, "command", "");
        double score = json_get_real(one, "score", (double)NAN);
        (void)buf_addf(&say, "%s%s", say.len ? "; " : "", command);
        if (isfinite(score))
            (void)buf_addf(&say, " (score %.4g)", score);
    }
    char *text = say.len ? buf_take(&say) : NULL;
    buf_release(&say);
    return text;
}

void record_set_verdict(struct record_extra *x, char *json)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    free(x->verdict);
    freep(&x->verdict_says);
    freep(&x->verdict_samples);
    x->verdict = json;
    if (json && json_parse(json, strlen(json), RECORD_DETAIL_MAX, &v, NULL) < 0)
        v = NULL; /* it is shown as it is, and nothing is told by it */
    const char *kind = json_get_str(v, "kind", NULL);
    x->verdict_seen = verdict_seen_from_json(v);
    x->verdict_certainty = json_get_real(v, "certainty", 0);
    x->verdict_kind = kind ? verdict_kind_from_string(kind) : VERDICT_KINDS;
    if (x->verdict_kind == VERDICT_KINDS)
        return;
    x->verdict_says = xstrdup(json_get_str(v, "text", ""));
    x->verdict_samples = record_say_samples(json_array_get(json_get_array(v, "items"), 0));
}

/* Its sentence, and the curve of its metric. */
static void record_say_alert(const json_t *alert, struct buf *say)
{
    const char *curve = json_get_str(alert, "curve", "");
    (void)buf_addf(say, "%s%s%s%s", say->len ? "; " : "", json_get_str(alert, "text", ""),
                   *curve ? " " : "", curve);
}

/* The curve of an alert that holds, as text. NULL: there is none yet, or its metric's name is very
 * long. */
static char *record_say_curve(const json_t *alert)
{
    struct curve c;
    struct buf text = BUF_INIT(CURVE_TEXT_MAX);
    bool has = curve_from_json(alert, &c);
    curve_to_text(&c, &text);
    char *ret = has && !text.failed ? buf_take(&text) : NULL;
    buf_release(&text);
    return ret;
}

void record_set_alerts(struct record_extra *x, char *json)
{
    enum { SAY_MAX = 4096 };
    _cleanup_(json_unrefp) json_t *v = NULL;
    _cleanup_(buf_release) struct buf say = BUF_INIT(SAY_MAX);
    size_t i;
    const json_t *one;
    free(x->metric_alerts);
    freep(&x->alerts_say);
    freep(&x->alerts_samples);
    freep(&x->alerts_curve);
    x->metric_alerts = json;
    if (json && json_parse(json, strlen(json), RECORD_DETAIL_MAX, &v, NULL) < 0)
        v = NULL; /* as above */
    x->alerts_seen = metric_alarms_seen_from_json(v);
    json_array_foreach (v, i, one)
        if (json_is_true(json_object_get(one, "stands"))) {
            record_say_alert(one, &say);
            x->alerts_curve = x->alerts_curve ? x->alerts_curve : record_say_curve(one);
            x->alerts_samples = x->alerts_samples ? x->alerts_samples : record_say_samples(one);
        }
    if (say.len)
        x->alerts_say = xstrdup(buf_str(&say)); /* very many are cut */
}

unsigned record_flags_from_string(const char *text)
{
    unsigned flags = 0;
    for (size_t i = 0; text && i < array_len(flag_words); i++)
        if (str_list_has(text, flag_words[i]))
            flags |= 1u << i;
    return flags;
}

/* ---- what a row keeps ---- */

#define ROW(of, key, ftype, member, ...)                                                           \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct of, member), __VA_ARGS__             \
    }
#define TABLE(name, of)                                                                            \
    static const struct field_table name##_table = {NULL, name##_rows, array_len(name##_rows),     \
                                                    sizeof(struct of), 0};
#define SIZE(of, member) .size = sizeof(((struct of *)NULL)->member)

#define D(member, ftype) ROW(demand, #member, ftype, member)
static const struct field demand_rows[] = {
    D(nnodes, FIELD_INT32),         D(gpus_per_node, FIELD_REAL), D(cpus_per_node, FIELD_REAL),
    D(extra_cpus, FIELD_REAL),      D(driver_cpus, FIELD_REAL),   D(driver_gpus, FIELD_REAL),
    D(memory_per_node, FIELD_REAL),
};
TABLE(demand, demand)

#define P(member, ftype, ...) ROW(proof, #member, ftype, member, __VA_ARGS__)
static const struct field proof_rows[] = {
    P(on_worker, FIELD_INT32),
    P(driver_ip, FIELD_TEXT, SIZE(proof, driver_ip)),
    P(head_ip, FIELD_TEXT, SIZE(proof, head_ip)),
    P(node, FIELD_TEXT, SIZE(proof, node)),
    P(node_id, FIELD_TEXT, SIZE(proof, node_id)),
    P(pid, FIELD_INT),
    P(checked_at, FIELD_TIME),
};
TABLE(proof, proof)

/* Its word "on" has a form of its own, see core/spec/restart.h. */
#define R(member, ftype) ROW(restart, #member, ftype, member)
static const struct field restart_rows[] = {
    R(max, FIELD_INT32),        R(backoff, FIELD_SPAN),   R(avoid, FIELD_BOOL),
    R(preemptible, FIELD_BOOL), R(failures, FIELD_INT32), R(preemptions, FIELD_INT32),
    R(given_up, FIELD_INT32),   R(pause, FIELD_SPAN),     R(bad_nodes, FIELD_STR),
};
TABLE(restart, restart)

static const struct field exit_rows[] = {
    ROW(job, "cause", FIELD_TEXT, exit_cause, SIZE(job, exit_cause)),
    ROW(job, "code", FIELD_INT32, exit_code),
    ROW(job, "signal", FIELD_TEXT, exit_signal, SIZE(job, exit_signal)),
};
TABLE(exit, job)

/* The others: left out where they say nothing. */
#define J(member, ftype, ...) ROW(job, #member, ftype, member, __VA_ARGS__)
static const struct field job_rows[] = {
    ROW(job, "", FIELD_INLINE, limits, .of = &job_limits_table),
    J(ran, FIELD_SPAN, .flags = FIELD_OMIT),
    J(held_by, FIELD_STR, .flags = FIELD_OMIT),
    J(trial_tries, FIELD_INT32, .flags = FIELD_OMIT),
    J(unknown_since, FIELD_TIME, .flags = FIELD_OMIT),
};
TABLE(job, job)

#define X(key, ftype, member) ROW(record_extra, key, ftype, member, .flags = FIELD_OMIT)
static const struct field extra_rows[] = {
    X("expected_p50", FIELD_SPAN, expected_p50),
    X("expected_p90", FIELD_SPAN, expected_p90),
    X("gpu_held", FIELD_INT, held.held),
    X("gpu_idle", FIELD_INT, held.idle),
    X("gpu_unknown", FIELD_INT, held.unknown),
    X("gpu_busy", FIELD_INT, held.busy),
    X("gpu_redone", FIELD_INT, held.redone),
    X("argv", FIELD_JSON, argv),
    X("warnings", FIELD_JSON, warnings),
    X("inputs", FIELD_JSON, inputs),
    X("placement", FIELD_JSON, placement),
    X("snapshots", FIELD_JSON, snapshots),
    X("imports", FIELD_JSON, imports),
    X("metrics", FIELD_JSON, metrics),
    X("training_verdict", FIELD_JSON, verdict),
    X("anatomy", FIELD_JSON, anatomy),
    X("project_alerts", FIELD_STRV, project_alerts),
    X("metric_alerts", FIELD_JSON, metric_alerts),
    X("gpus", FIELD_JSON, gpus),
    X("gpu_joules", FIELD_REAL, gpu_joules),
    X("trial", FIELD_JSON, trial),
    X("verdict", FIELD_JSON, finding.json),
    X("verl", FIELD_STR, verl),
    X("retry_of", FIELD_STR, retry_of),
    X("idle_until", FIELD_TIME, idle_until),
    X("idle_why", FIELD_STR, idle_why),
    X("idle_learnt", FIELD_SPAN, idle_learnt),
};
TABLE(extra, record_extra)

/* While it is called hung. */
static const struct field hang_rows[] = {
    X("hung_step", FIELD_INT, hung_step),
    X("hung_bytes", FIELD_COUNT, hung_bytes),
};
TABLE(hang, record_extra)

#define A(member, ftype, ...) ROW(attempt, #member, ftype, member, __VA_ARGS__)
static const struct field attempt_rows[] = {
    A(planned_at, FIELD_TIME),
    A(accepted_at, FIELD_TIME),
    A(end_text, FIELD_STR, .flags = FIELD_OMIT),
    A(session, FIELD_STR, .flags = FIELD_OMIT),
    A(outcome, FIELD_ENUM, .names = attempt_outcome_words),
    A(fault_at, FIELD_TIME, .flags = FIELD_OMIT),
    A(noticed_at, FIELD_TIME, .flags = FIELD_OMIT),
    A(node, FIELD_STR, .flags = FIELD_OMIT),
    A(slots, FIELD_STR, .flags = FIELD_OMIT),
    A(gpu_s, FIELD_REAL, .flags = FIELD_OMIT),
    A(gpu_idle_s, FIELD_REAL, .flags = FIELD_OMIT),
    A(gpu_unknown_s, FIELD_REAL, .flags = FIELD_OMIT),
    A(gpu_redone_s, FIELD_REAL, .flags = FIELD_OMIT),
};
TABLE(attempt, attempt)

/* ---- to rows ---- */

const char *record_flags_to_string(unsigned flags)
{
#define WITH(tail)                                                                                 \
    tail, "UNKNOWN," tail, "HELD," tail, "UNKNOWN,HELD," tail, "RESTARTING," tail,                 \
        "UNKNOWN,RESTARTING," tail, "HELD,RESTARTING," tail, "UNKNOWN,HELD,RESTARTING," tail
    static const char *const all[] = {"",
                                      "UNKNOWN",
                                      "HELD",
                                      "UNKNOWN,HELD",
                                      "RESTARTING",
                                      "UNKNOWN,RESTARTING",
                                      "HELD,RESTARTING",
                                      "UNKNOWN,HELD,RESTARTING",
                                      WITH("HUNG"),
                                      WITH("IDLE"),
                                      WITH("HUNG,IDLE")};
#undef WITH
    if (flags & JOB_FLAG_HOLDING)
        return "HOLDING"; /* that one stands alone */
    return all[(flags & 7) | (flags & JOB_FLAG_HUNG ? 8 : 0) | (flags & JOB_FLAG_IDLE ? 16 : 0)];
}

const char *record_finding_word(const struct job *j, const struct record_extra *x)
{
    if (j->finding == FINDING_NONE)
        return NULL;
    return j->finding == FINDING_UNKNOWN && x->finding_word ? x->finding_word
                                                            : finding_class_to_string(j->finding);
}

void record_job_row(const struct job *j,
                    const struct record_extra *x,
                    const char *detail,
                    struct store_job *ret)
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
        .reason_code = job_state_reason(j)->code,
        .reason_text = job_state_reason(j)->text,
        .nnodes = j->demand.nnodes,
        .n_gpus_per_node = j->demand.nnodes ? demand_gpus(&j->demand) / j->demand.nnodes : 0,
        .priority = j->priority,
        .started_at = j->started_at,
        .ended_at = j->ended_at,
        .attempt = j->n_attempts,
        .restarts = j->restart.failures + j->restart.preemptions,
        .step = x ? x->step : 0,
        .gpu_held = x ? x->held.held : 0,
        .has_exit_code = j->has_exit && j->exit_code >= 0,
        .exit_code = j->exit_code,
        .detail = detail,
    };
}

static void put_restart_on(struct jout *o, const struct restart_on *on)
{
    struct buf text = BUF_INIT(64 << 10);
    restart_on_to_text(on, &text);
    jout_str(o, "on", text.len && !text.failed ? buf_str(&text) : NULL); /* a short table's words */
    buf_release(&text);
}

static void record_put_restart(struct jout *o, const struct restart *r)
{
    jout_open(o, "restart", '{');
    put_restart_on(o, &r->on);
    field_put_members(&restart_table, r, FIELD_ALL, FIELD_ROW, o);
    jout_close(o, '}');
}

/* A job with nothing but its queue behind it is not made larger by what it does not have. */
static bool has_restart(const struct restart *r)
{
    return r->max || r->preemptible || r->preemptions || r->given_up;
}

static void put_gang(struct jout *o, const struct job *j)
{
    struct buf slots = BUF_INIT(RECORD_DETAIL_MAX);
    _cleanup_(freep) char *names = gang_names(&j->gang);
    gang_to_text(&j->gang, &slots);
    jout_str(o, "nodes", names);
    jout_str(o, "driver_node", gang_driver(&j->gang));
    jout_str(o, "slots", slots.failed ? NULL : buf_str(&slots));
    jout_int(o, "share", j->share);
    buf_release(&slots);
}

void record_detail(const struct job *j, const struct record_extra *x, struct buf *out)
{
    struct jout o = jout_begin(out);
    jout_open(&o, NULL, '{');
    field_to_json(&demand_table, &j->demand, FIELD_ALL, FIELD_ROW, &o, "demand");
    field_put_members(&job_table, j, FIELD_ALL, FIELD_ROW, &o);
    if (has_restart(&j->restart))
        record_put_restart(&o, &j->restart);
    if (!job_state_is_terminal(j->state))
        field_to_json(&stopwatch_table, &j->watch, FIELD_ALL, FIELD_ROW, &o, "watch");
    if (j->trial != JOB_TRIAL_NONE)
        jout_int(&o, "trial_phase", j->trial);
    if (j->gang.n)
        put_gang(&o, j);
    if (j->stop_cause != STOP_NONE) {
        jout_str(&o, "stop_cause", stop_cause_to_string(j->stop_cause));
        jout_int(&o, "stop_asked_at", (int64_t)j->stop_asked_at);
    }
    if (j->has_exit)
        field_to_json(&exit_table, j, FIELD_ALL, FIELD_ROW, &o, "exit");
    if (j->finding != FINDING_NONE)
        jout_str(&o, "finding", record_finding_word(j, x));
    if (job_proof(j)->checked_at)
        field_to_json(&proof_table, job_proof(j), FIELD_ALL, FIELD_ROW, &o, "proof");
    field_put_members(&extra_table, x, FIELD_ALL, FIELD_ROW, &o);
    if (j->flags & JOB_FLAG_HUNG)
        field_put_members(&hang_table, x, FIELD_ALL, FIELD_ROW, &o);
    jout_close(&o, '}');
}

void record_attempt_row(const struct job *j,
                        const struct attempt *a,
                        struct buf *detail,
                        struct store_attempt *ret)
{
    struct jout o = jout_begin(detail);
    jout_open(&o, NULL, '{');
    field_put_members(&attempt_table, a, FIELD_ALL, FIELD_ROW, &o);
    if (a->finding != FINDING_NONE)
        jout_str(&o, "class", finding_class_to_string(a->finding));
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

static void get_exit(const json_t *v, struct job *j)
{
    if (!v)
        return;
    j->has_exit = true;
    j->exit_code = -1;
    field_from_json(&exit_table, v, FIELD_ALL, j);
}

static void get_proof(const json_t *v, struct job *j)
{
    struct proof proof = *job_proof(j);
    if (!v)
        return;
    field_from_json(&proof_table, v, FIELD_ALL, &proof);
    job_set_proof(j, &proof);
}

static void get_restart(const json_t *v, struct restart *r)
{
    if (!v)
        return;
    restart_on_from_text(json_get_str(v, "on", NULL), &r->on);
    field_from_json(&restart_table, v, FIELD_ALL, r);
}

/* A row without a stopwatch begins with the wall clock of when its state began: that is all there
 * is. */
static void get_watch(const json_t *v, struct job *j)
{
    usec_t since = j->state == JOB_RUNNING    ? j->started_at
                   : j->state == JOB_STOPPING ? j->stop_asked_at
                                              : j->queued_at;
    j->watch = (struct stopwatch){.running = true, .wall = since};
    field_from_json(&stopwatch_table, v, FIELD_ALL, &j->watch);
}

/* A word of a newer Argus is a failure all the same. */
static enum finding_class class_of_word(const char *word)
{
    int class = finding_class_from_string(word);
    return !word ? FINDING_NONE : class < 0 ? FINDING_UNKNOWN : (enum finding_class) class;
}

static void get_finding(const char *word, struct job *j, struct record_extra *x)
{
    j->finding = class_of_word(word);
    if (word && finding_class_from_string(word) < 0)
        set_str(&x->finding_word, word);
}

/* Its text is there already; what is asked of it is not. */
static void get_verdict(const json_t *v, struct record_finding *ret)
{
    if (!v)
        return;
    set_str(&ret->rule, json_get_str(v, "rule", NULL));
    ret->attempt = (int)json_get_int(v, "attempt", 0);
}

static void get_gang(const json_t *v, struct gang *ret)
{
    gang_release(ret);
    gang_from_text(json_get_str(v, "slots", json_get_str(v, "nodes", NULL)), ret);
    gang_set_driver(ret, json_get_str(v, "driver_node", NULL));
}

static void get_pace(const json_t *metrics, struct record_extra *x)
{
    const json_t *reward = json_object_get(json_get_object(metrics, "reward"), "value");
    x->has_reward = json_is_number(reward);
    x->reward = x->has_reward ? json_number_value(reward) : 0;
    if (clock_from_string(json_get_str(metrics, "eta", ""), &x->paced_end, NULL) < 0)
        x->paced_end = 0;
}

static void get_detail(const json_t *v, struct job *j, struct record_extra *x)
{
    j->demand.nnodes = 1;
    j->demand.driver_cpus = 1;
    field_from_json(&demand_table, json_get_object(v, "demand"), FIELD_ALL, &j->demand);
    field_from_json(&job_table, v, FIELD_ALL, j);
    get_gang(v, &j->gang);
    int64_t trial = json_get_int(v, "trial_phase", JOB_TRIAL_NONE);
    j->trial = trial >= 0 && trial <= JOB_TRIAL_PASSED ? (enum job_trial)trial : JOB_TRIAL_NONE;
    get_restart(json_get_object(v, "restart"), &j->restart);
    j->share = (int)json_get_int(v, "share", -1);
    j->stop_cause = stop_cause_from_string(json_get_str(v, "stop_cause", ""));
    j->stop_asked_at = (usec_t)json_get_int(v, "stop_asked_at", 0);
    get_watch(json_get_object(v, "watch"), j);
    get_exit(json_get_object(v, "exit"), j);
    get_finding(json_get_str(v, "finding", NULL), j, x);
    get_proof(json_get_object(v, "proof"), j);
    field_from_json(&extra_table, v, FIELD_ALL, x);
    field_from_json(&hang_table, v, FIELD_ALL, x);
    x->metrics_trouble = metric_trouble_from_json(json_get_object(v, "metrics"));
    char *verdict = x->verdict, *alerts = x->metric_alerts;
    x->verdict = x->metric_alerts = NULL; /* they are read anew */
    record_set_verdict(x, verdict);
    record_set_alerts(x, alerts);
    x->total_steps = json_get_int(json_get_object(v, "metrics"), "total_steps", 0);
    get_pace(json_get_object(v, "metrics"), x);
    get_verdict(json_get_object(v, "verdict"), &x->finding);
}

static void copy_texts(const struct store_job *row, struct job *j)
{
    const struct job_texts texts = {.id = row->id,
                                    .name = row->name,
                                    .user = row->user,
                                    .project = row->project,
                                    .workload = row->workload,
                                    .cluster = row->cluster};
    job_set_texts(j, &texts);
    j->pool = xstrdup(str_or(row->pool, ""));
    j->spec = xstrdup(str_or(row->spec, ""));
    job_set_reason(j, row->reason_code, NULL, row->reason_text);
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

usec_t record_steps(const char *metrics, struct goodput_sums *ret)
{
    usec_t at = 0;
    _cleanup_(json_unrefp) json_t *page = NULL;
    if (!metrics || json_parse(metrics, strlen(metrics), RECORD_DETAIL_MAX, &page, NULL) < 0)
        page = NULL;
    goodput_from_json(json_get_array(page, "attempts"), ret);
    return clock_from_string(json_get_str(page, "updated_at", ""), &at, NULL) < 0 ? 0 : at;
}

void record_past_row(const struct store_job *row, const json_t *detail, struct past_row *ret)
{
    *ret = (struct past_row){
        .id = row->id,
        .project = row->project,
        .verl = json_get_str(detail, "verl", NULL),
        .state = job_state_from_string(str_or(row->state, "")),
        .nnodes = row->nnodes,
        .gpus_per_node = row->n_gpus_per_node,
        .argv = json_get_array(detail, "argv"),
        .metrics = json_get_object(detail, "metrics"),
        .ran = (usec_t)json_get_int(detail, "ran", 0),
        .finding = class_of_word(json_get_str(detail, "finding", NULL)),
        .newest = class_of_word(json_get_str(json_get_object(detail, "verdict"), "class", NULL)),
        .failures = (int)json_get_int(json_get_object(detail, "restart"), "failures", 0),
    };
}

void record_add_attempt(struct job *j, const struct store_attempt *row)
{
    const char *detail = str_or(row->detail, "{}");
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (json_parse(detail, strlen(detail), RECORD_DETAIL_MAX, &v, NULL) < 0)
        v = NULL; /* its times are lost, the attempt is not */
    enum attempt_phase phase = attempt_phase_from_string(str_or(row->state, ""));
    j->attempts = xrealloc(j->attempts, (size_t)j->n_attempts + 1, sizeof(*j->attempts));
    struct attempt *a = &j->attempts[j->n_attempts++];
    *a = (struct attempt){
        .k = (int)row->k,
        .ray_id = xstrdup(str_or(row->ray_id, "")),
        .phase = phase == ATTEMPT_PHASE_END ? ATTEMPT_PLANNED : phase,
        .started_at = row->started_at,
        .ended_at = row->ended_at,
    };
    field_from_json(&attempt_table, v, FIELD_ALL, a);
    a->finding = class_of_word(json_get_str(v, "class", NULL));
}
