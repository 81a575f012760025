/* SPDX-License-Identifier: Apache-2.0 */
/* submit_finish.c - the end of a submit, in one turn of the loop: the checks that need no look at
 * the disk, the id, the job and the answer; or the plan of a dry run. */
#include "argusd/submit/submit_state.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/content/code.h"
#include "argusd/content/registry_inputs.h"
#include "argusd/content/snapshots_view.h"
#include "argusd/ground/foreign.h"
#include "argusd/jobs/jobs_rules.h"
#include "argusd/launch/fitcheck.h"
#include "argusd/launch/launchplan.h"
#include "argusd/launch/needscheck.h"
#include "argusd/launch/secretcheck.h"
#include "argusd/people/people_dirs.h"
#include "argusd/submit/idempotency.h"
#include "argusd/submit/plan.h"
#include "argusd/submit/submit_answer.h"
#include "argusd/submit/submitted.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/respec.h"
#include "core/verl/verl.h"

/* ---- checks ---- */

static int check_id(struct submit *s, struct err *err)
{
    if (!s->spec.id || s->change.id)
        return 0;
    bool used = jobs_find_any(s->a->jobs, s->spec.id) != NULL;
    /* The set may be wrong once in 10^13: what is not in memory is looked up. */
    int r = used || !idset_has(s->a->used, s->spec.id)
                ? 0
                : store_has_id(s->a->store, s->spec.id, &used, err);
    if (r < 0)
        return r;
    if (used || s->has_dir) /* one sentence: whose job it was is not told */
        return message_refuse(err, ERR_CONFLICT, "id_used",
                              MESSAGE_ARGS(MESSAGE_STR("id", s->spec.id)));
    if (foreign_has_id(cluster_foreign(s->a->cluster), s->spec.id))
        return message_refuse(
            err, ERR_CONFLICT, "id_used",
            MESSAGE_ARGS(MESSAGE_STR("id", s->spec.id), MESSAGE_NUM("foreign", 1)));
    return 0;
}

/* What a guessed version would do wrong is told before the job waits for hours. */
static void check_verl(struct submit *s)
{
    bool exact;
    if (!workload_is_verl((enum workload)s->spec.workload))
        return;
    const char *path = launchplan_verl_path(&s->spec);
    const struct verl_version *v = verl_version_find(str_or(s->verl, ""), &exact);
    if (!exact && s->verl)
        problems_add(&s->ps, PROBLEM_WARNING, "code_path", 0, 0, "verl_not_known",
                     MESSAGE_ARGS(MESSAGE_STR("verl", s->verl), MESSAGE_STR("near", v->name)));
    else if (!s->verl)
        problems_add(
            &s->ps, PROBLEM_WARNING, "code_path", 0, 0, "verl_version_unknown",
            MESSAGE_ARGS(MESSAGE_STR("path", str_or(path, "")), MESSAGE_STR("near", v->name)));
}

int submit_check_honoured(const struct submit *s, const char **ret_field, struct err *err)
{
    const struct spec *sp = &s->spec;
    const char *ours = s->a->settings->cluster;
    if (sp->after.n > 0) {
        *ret_field = "after";
        return message_refuse(err, ERR_BAD_SPEC, "no_after", MESSAGE_NO_ARGS);
    }
    if (!sp->cluster || !*sp->cluster || !strcmp(sp->cluster, ours))
        return 0;
    *ret_field = "cluster";
    return message_refuse(
        err, ERR_BAD_SPEC, "spec_other_cluster",
        MESSAGE_ARGS(MESSAGE_STR("cluster", sp->cluster), MESSAGE_STR("ours", ours)));
}

static void compute_demand(const struct submit *s, struct demand *ret)
{
    const struct settings *st = s->a->settings;
    struct demand_defaults dflt = {.entrypoint_cpus = (double)st->entrypoint_num_cpus,
                                   .entrypoint_gpus = (double)st->entrypoint_num_gpus};
    bool verl = workload_is_verl((enum workload)s->spec.workload);
    demand_compute(&s->spec, verl ? verl_version_find(str_or(s->verl, ""), NULL) : NULL, &dflt,
                   ret);
}

/* The job itself waits already, and counts once. */
static int check_quota_of_change(const struct submit *s, const struct demand *d, struct err *err)
{
    struct sched *without = sched_copy(jobs_sched(s->a->jobs));
    sched_dequeue(without, s->change.id);
    int r = sched_refuses(without, s->who.user, str_or(s->spec.project, ""), d, err);
    sched_free(without);
    return r;
}

/* What could never start, or would wait beside too many. */
static int submit_check_quota(const struct submit *s, const struct demand *d, struct err *err)
{
    const struct api *a = s->a;
    if (s->change.id)
        return check_quota_of_change(s, d, err);
    int r = sched_refuses(jobs_sched(a->jobs), s->who.user, str_or(s->spec.project, ""), d, err);
    if (r < 0)
        return r;
    if (jobs_check_user_room(a->jobs, a->people, a->settings, s->who.user, err) < 0)
        return ERR_REFUSED;
    bool saves = workload_trains((enum workload)s->spec.workload) && !s->spec.checkpoint_none;
    return saves ? checkpoints_check_quota(a->checkpoints, s->spec.project, s->who.user, err) : 0;
}

/* ---- the job ---- */

static void choose_id(struct submit *s, usec_t now, char ret[static SPEC_ID_BUF])
{
    unsigned char bytes[6];
    if (s->spec.id) {
        text_copy_to(ret, SPEC_ID_BUF, s->spec.id);
        return;
    }
    do {
        random_bytes(bytes, sizeof(bytes));
        (void)spec_generate_id((enum workload)s->spec.workload, now, bytes, ret);
    } while (idset_has(s->a->used, ret));
}

static struct job *submit_make_job(struct submit *s,
                                   const struct demand *d,
                                   char *taken_pool,
                                   usec_t now)
{
    const struct spec *spec = &s->spec;
    char id[SPEC_ID_BUF];
    choose_id(s, now, id);
    const char *known = s->change.id ? s->change.id : s->dry_run && !spec->id ? "dry-run" : id;
    const struct job_given given = {.id = known,
                                    .user = s->who.user,
                                    .cluster = s->a->settings->cluster,
                                    .text = submit_spec_text(s),
                                    .demand = d,
                                    .now = now,
                                    .taken_pool = taken_pool};
    struct job *j = job_of_spec(spec, &given);
    if (workload_is_verl((enum workload)spec->workload) && spec->workload != WORKLOAD_MERGE &&
        s->a->settings->trial && !s->no_trial)
        j->trial = JOB_TRIAL_DUE;
    return j;
}

void submit_answer_refusal(struct submit *s, const struct err *err, const char *field)
{
    if (!s->ps.errors) {
        submit_tell(s, err, field, NULL);
        return;
    }
    problems_add_err(&s->ps, PROBLEM_ERROR, str_or(field, ""), 0, 0, err);
    submit_tell_problems(s);
}

static struct needscheck_ask needs_asked(const struct submit *s)
{
    return (struct needscheck_ask){.snapshots = s->a->snapshots,
                                   .user = s->who.user,
                                   .code = s->snapshots,
                                   .own_python = s->spec.py_executable && *s->spec.py_executable};
}

/* True if it was refused and answered. */
static bool submit_refuse(struct submit *s, const struct demand *d, const char *pool)
{
    struct err err = {0};
    if (check_id(s, &err) < 0) {
        submit_tell(s, &err, "submission_id", NULL);
        return true;
    }
    const struct needscheck_ask asked = needs_asked(s);
    _cleanup_(freep) char *needs = needscheck_of(&asked);
    const struct fitcheck_ask fit = {
        .demand = d, .pool = pool, .needs = needs, .required = s->require_fit};
    needscheck(jobs_sched(s->a->jobs), &asked, pool, &s->ps);
    if (!code_is_there(s->a->snapshots, s->snapshots, &err))
        submit_answer_refusal(s, &err, "code");
    else if (secretcheck(s->a->secrets, s->who.user, &s->spec, submit_spec_text(s), &err) < 0)
        submit_answer_refusal(s, &err, "secrets");
    else if (fitcheck(s->a->jobs, s->a->cluster, &fit, &s->ps, &err) < 0)
        submit_answer_refusal(s, &err, "nnodes");
    else if (submit_check_quota(s, d, &err) < 0)
        submit_answer_refusal(s, &err, "project");
    else if (s->ps.errors)
        submit_tell_problems(s);
    else
        return false;
    return true;
}

/* Told on both: each names the other, and says what was changed. */
static void note_retry(const struct submit *s, struct live *l, usec_t now)
{
    const char *actor = http_req_principal(s->req)->user;
    char text[2 * SPEC_ID_BUF + 64];
    struct message m;
    struct events_note old = {.kind = "retried",
                              .actor = actor,
                              .job_seq = s->retry.seq,
                              .job = s->retry.id,
                              .code = "submitted_again",
                              .text = text,
                              .data = s->retry.changes};
    message_begin(&m);
    jout_str(&m.j, "job", l->job->id);
    message_end(&m, text, sizeof(text));
    events_add(s->a->events, &old, now);
    message_begin(&m);
    jout_str(&m.j, "job", s->retry.id);
    message_end(&m, text, sizeof(text));
    jobs_note_by(l, "retry", actor, "retry", text, now);
}

/* What goes on from a job's checkpoint is that job's child, unless somebody said another one's. */
static void submit_keep_origin(const struct submit *s, const struct job *job)
{
    const struct spec *spec = &s->spec;
    const char *resumed = spec->resume_mode == SPEC_RESUME_JOB ? spec->resume_job : NULL;
    struct store_origin o = {.parent = s->retry.id ? s->retry.id : s->origin.job,
                             .step = s->origin.step,
                             .note = s->origin.note};
    enum family_how how = s->retry.id ? FAMILY_RETRY : s->origin.how;
    bool is_ours = how == FAMILY_EVAL || how == FAMILY_EXPORT;
    if (resumed && !is_ours && !str_eq(resumed, job->id) &&
        (!o.parent || str_eq(o.parent, resumed))) {
        o.parent = resumed;
        o.step = spec->resume_step;
        how = FAMILY_RESUME;
    }
    o.how = o.parent ? family_how_words[how] : NULL;
    if (o.parent || o.note)
        store_put_origin(s->a->store, job->seq, &o);
}

static void on_kept(struct snapshot *snapshot, void *arg)
{
    const struct submit *s = arg;
    snapshots_note(s->a->events, snapshot, s->who.user, false);
}

/* What its project wants to be told of its jobs now; a later change is of later jobs. */
static void submit_take_alerts(const struct submit *s, struct strv *ret)
{
    const struct project *p = people_find_project(s->a->people, str_or(s->spec.project, ""));
    if (p)
        strv_copy(ret, &p->alerts);
}

static void submit_take(struct submit *s, const struct demand *d, char *taken_pool, usec_t now)
{
    struct api *a = s->a;
    struct record_extra extra = {.warnings = s->ps.n ? problems_to_stored(&s->ps) : NULL,
                                 .verl = xstrdup(s->verl),
                                 .snapshots = xstrdup(s->snapshots),
                                 .inputs = xstrdup(s->inputs),
                                 .retry_of = xstrdup(s->retry.id)};
    struct job *job = submit_make_job(s, d, taken_pool, now);
    struct err err = {0};
    submit_take_alerts(s, &extra.project_alerts);
    if (secretcheck_holds(&s->spec) &&
        secrets_seal_spec(a->secrets, job->id, job->spec, &extra.sealed_spec, &err) < 0) {
        submit_tell(s, &err, NULL, NULL);
        record_extra_release(&extra);
        job_free(job);
        return;
    }
    job->seq = jobs_next_seq(a->jobs);
    idset_add(a->used, job->id);
    if (s->req)
        idempotency_note(a, s->req, s->asked, job->id, now);
    registry_note_inputs(a->registry, s->inputs, job->id);
    code_keep(a->snapshots, s->snapshots, on_kept, s);
    struct live *l = jobs_add(a->jobs, job, &extra, now);
    submit_keep_origin(s, l->job);
    if (s->retry.id)
        note_retry(s, l, now);
    struct person *p = people_find(a->people, l->job->user);
    if (p)
        people_dirs_make(a->loop, a->cluster, a->settings->shared_root, a->people, p);
    jobs_busy(l);
    jobs_admit(a->jobs, now);
    if (s->req)
        submit_answer(s->req, a, l, &(struct submit_news){&s->ps, s->retry.changes}, 201);
    else
        submit_own_end(s, l, NULL);
    jobs_idle(l);
    store_flush_if_idle(a->store);
}

/* It may have started while the shared root was looked at. */
static struct live *find_waiting(const struct submit *s, struct err *err)
{
    struct live *l = jobs_find_id(s->a->jobs, s->change.id);
    if (l && l->job->state == JOB_QUEUED)
        return l;
    const char *state = l ? job_state_to_string(l->job->state) : "over";
    (void)message_refuse(err, ERR_CONFLICT, "change_not_waiting",
                         MESSAGE_ARGS(MESSAGE_STR("job", s->change.id),
                                      MESSAGE_STR("state", state))); /* only fills err */
    return NULL;
}

/* "nnodes, pool": keys alone, values stand in the event's data. */
static void change_keys(const char *changes, struct buf *out)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    size_t i;
    json_t *v;
    if (json_parse(changes, strlen(changes), RESPEC_CHANGES_MAX, &all, NULL) < 0)
        return;
    json_array_foreach (all, i, v)
        (void)buf_addf(out, "%s%s", i ? ", " : "", json_get_str(v, "key", "")); /* cut is fine */
}

static void note_change(const struct submit *s, const struct live *l, usec_t now)
{
    struct buf keys = BUF_INIT(512);
    char text[640];
    change_keys(s->change.changes, &keys);
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("keys", buf_str(&keys))));
    struct events_note note = {.kind = "change",
                               .actor = http_req_principal(s->req)->user,
                               .job_seq = l->job->seq,
                               .job = l->job->id,
                               .code = "job_changed",
                               .text = text,
                               .data = s->change.changes};
    events_add(s->a->events, &note, now);
    buf_release(&keys);
}

/* The job goes on waiting, with this spec. */
static void submit_swap(struct submit *s, const struct demand *d, char *taken_pool, usec_t now)
{
    struct api *a = s->a;
    struct err err = {0};
    _cleanup_(freep) char *pool = taken_pool, *sealed = NULL, *warnings = NULL;
    const char *text = submit_spec_text(s);
    struct live *l = find_waiting(s, &err);
    int r = 0;
    if (l && secretcheck_holds(&s->spec))
        r = secrets_seal_spec(a->secrets, l->job->id, text, &sealed, &err);
    if (!l || r < 0) {
        submit_tell(s, &err, NULL, NULL);
        return;
    }
    warnings = s->ps.n ? problems_to_stored(&s->ps) : NULL;
    const struct job_respec to = {.text = text,
                                  .pool = pool,
                                  .demand = d,
                                  .limits = job_limits_of(&s->spec),
                                  .priority = s->change.sets_priority ? (int)s->spec.priority
                                                                      : l->job->priority};
    jobs_busy(l);
    jobs_respec(l, &to, sealed, warnings);
    note_change(s, l, now);
    jobs_admit(a->jobs, now);
    submit_answer(s->req, a, l, &(struct submit_news){&s->ps, s->change.changes}, 200);
    jobs_idle(l);
    store_flush_if_idle(a->store);
}

static void submit_plan(struct submit *s, const struct demand *d, char *taken_pool, usec_t now)
{
    const struct needscheck_ask asked = needs_asked(s);
    _cleanup_(freep) char *needs = needscheck_of(&asked);
    struct api_plan_in in = {.taken = submit_make_job(s, d, taken_pool, now),
                             .spec = s->spec,
                             .verl = s->verl,
                             .inputs = s->inputs,
                             .snapshots = s->snapshots,
                             .needs = needs,
                             .changes = s->change.id ? s->change.changes : s->retry.changes,
                             .changed =
                                 s->change.id ? jobs_find_id(s->a->jobs, s->change.id) : NULL,
                             .ps = &s->ps,
                             .held = s->held,
                             .suggest = s->suggest,
                             .checkpoint_bytes = s->checkpoint_bytes,
                             .free_bytes = s->free_bytes};
    s->spec = (struct spec){0};
    s->held = NULL;
    api_plan(s->req, s->a, &in);
}

void submit_finish(struct submit *s)
{
    struct demand d;
    usec_t now = clock_wall();
    if (s->req && !s->change.id &&
        submit_was_here(s->req, s->a,
                        s->asked)) { /* its twin came in while the shared root was looked at */
        submit_state_free(s);
        return;
    }
    compute_demand(s, &d);
    check_verl(s);
    char *pool = job_pools(&s->spec);
    if (submit_refuse(s, &d, pool))
        free(pool);
    else if (s->dry_run)
        submit_plan(s, &d, pool, now);
    else if (s->change.id)
        submit_swap(s, &d, pool, now);
    else
        submit_take(s, &d, pool, now);
    submit_state_free(s);
}
