/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - POST /v1/jobs: read, check, give an id, queue.
 *
 * The body is the JobSpec, YAML or JSON; a retry brings the spec of the job that it follows, and
 * then all is the same (submit.h). Everything wrong with it is told at once, with what
 * the preflight finds on the shared root (preflight.h): only that look may block, and it is
 * done in the worker pool. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/content/code.h"
#include "argusd/content/registry_inputs.h"
#include "argusd/content/snapshots_view.h"
#include "argusd/jobs/jobs_rules.h"
#include "argusd/kit/api.h"
#include "argusd/kit/view.h"
#include "argusd/launch/fitcheck.h"
#include "argusd/launch/launchplan.h"
#include "argusd/launch/needscheck.h"
#include "argusd/launch/preflight.h"
#include "argusd/launch/secretcheck.h"
#include "argusd/people/people_dirs.h"
#include "argusd/submit/idempotency.h"
#include "argusd/submit/jobsight.h"
#include "argusd/submit/plan.h"
#include "argusd/submit/submit.h"
#include "argusd/submit/submit_answer.h"
#include "argusd/submit/submitted.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/check/preflight.h"
#include "core/spec/verl.h"

/* One submit between its checks. Owned by the request until it is answered. */
struct submit {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    struct http_principal who;  /* whose job it will be: he who asks, but for a retry */
    char *text;                 /* the spec, in place of the body; NULL = the body */
    char *asked;                /* see idempotency.h */
    struct submit_retry retry;  /* owned texts */
    struct snapshot *held;      /* came with it; NULL = none */
    struct checkpoints_use use; /* what it names stays until it is a job */
    struct spec spec;
    struct problems ps;
    char *verl;      /* version text found in its tree, NULL = none */
    char *snapshots; /* that it names, see code.h */
    char *user_root, *hf_home;
    struct preflight_where where; /* of these */
    struct preflight_asker *look; /* under way */
    struct jobsight *sight;       /* under way */
    char *inputs;                 /* what registered names became; NULL: there are none */
    char *made;                   /* the spec in place of that text, see submitted.h */
    uint64_t checkpoint_bytes;    /* of one; 0 = not known */
    uint64_t free_bytes;          /* where they go; 0 = not known */
    bool dry_run, require_fit, no_trial, smoke, suggest;
    bool has_dir; /* something has the name of the directory of the chosen id */
};

static void submit_free(struct submit *s)
{
    checkpoints_unuse(&s->use);
    spec_release(&s->spec);
    problems_release(&s->ps);
    if (s->held)
        snapshots_let_go(s->a->snapshots, s->held);
    free(s->text);
    free(s->asked);
    free(s->retry.id);
    free(s->retry.changes);
    free(s->verl);
    free(s->snapshots);
    free(s->user_root);
    free(s->hf_home);
    free(s->inputs);
    free(s->made);
    free(s);
}

/* ---- checks ---- */

static int submit_check_room(const struct api *a, struct err *err)
{
    return jobs_check_room(a->jobs, a->store, a->cluster, a->settings, err);
}

static const char *given(const struct submit *s, size_t *ret_len)
{
    if (!s->text)
        return http_req_body(s->req, ret_len);
    *ret_len = strlen(s->text);
    return s->text;
}

static const char *spec_text(const struct submit *s)
{
    size_t n;
    return s->made ? s->made : given(s, &n);
}

static int submit_read_body(struct submit *s)
{
    struct access_who who;
    people_who(s->a->people, &s->who, &who);
    struct submitted in = {
        .settings = s->a->settings, .presets = s->a->presets, .who = &who, .smoke = s->smoke};
    in.text = given(s, &in.len);
    int r = submitted_read(&in, &s->spec, &s->made, &s->ps);
    for (size_t i = 0; s->held && i < s->ps.n; i++) /* of a text that nobody wrote */
        s->ps.v[i].line = s->ps.v[i].column = 0;
    return r;
}

/* Snapshots are fixed here: their paths are what all that follows looks at. */
static int name_code(struct submit *s)
{
    s->snapshots = code_resolve(s->a->snapshots, s->who.user, &s->spec, &s->ps);
    return s->ps.errors ? ERR_BAD_SPEC : 0;
}

static int check_id(struct submit *s, struct err *err)
{
    if (!s->spec.id)
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
    if (cluster_has_foreign(s->a->cluster, s->spec.id))
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
        problems_add(&s->ps, PROBLEM_WARNING, "code_path", 0, 0, "try it with few steps first",
                     "verl %s is not known: the command line is that of verl %s", s->verl, v->name);
    else if (!s->verl)
        problems_add(&s->ps, PROBLEM_WARNING, "code_path", 0, 0,
                     "name the tree of verl with code_path, or its venv with py_executable",
                     "the version of verl is not known%s%s: the command line is that of verl %s",
                     path ? ", there is none at " : "", str_or(path, ""), v->name);
}

/* Keys of a JobSpec that this version cannot honour and that do harm when they are ignored:
 * the job would run too early, or other code, or without what it needs. */
static int check_honoured(const struct submit *s, const char **ret_field, struct err *err)
{
    const struct spec *sp = &s->spec;
    const char *ours = s->a->settings->cluster;
    const struct {
        const char *field;
        bool given;
        const char *sentence;
    } keys[] = {
        {"after", sp->after.n > 0, "this version cannot wait for other jobs"},
    };
    for (size_t i = 0; i < array_len(keys); i++)
        if (keys[i].given) {
            *ret_field = keys[i].field;
            return err_set(err, ERR_BAD_SPEC, "%s", keys[i].sentence);
        }
    if (!sp->cluster || !*sp->cluster || !strcmp(sp->cluster, ours))
        return 0;
    *ret_field = "cluster";
    return message_refuse(
        err, ERR_BAD_SPEC, "no_such_cluster",
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

/* What could never start, or would wait beside too many. */
static int submit_check_quota(const struct submit *s, const struct demand *d, struct err *err)
{
    const struct api *a = s->a;
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
    const struct job_given given = {.id = s->dry_run && !spec->id ? "dry-run" : id,
                                    .user = s->who.user,
                                    .cluster = s->a->settings->cluster,
                                    .text = spec_text(s),
                                    .demand = d,
                                    .now = now,
                                    .taken_pool = taken_pool};
    struct job *j = job_of_spec(spec, &given);
    if (workload_is_verl((enum workload)spec->workload) && spec->workload != WORKLOAD_MERGE &&
        s->a->settings->trial && !s->no_trial)
        j->trial = JOB_TRIAL_DUE;
    return j;
}

static void answer_refusal(struct submit *s,
                           const struct err *err,
                           const char *field,
                           const char *hint)
{
    if (!s->ps.errors) {
        http_problem(s->req, err->code, err, field, hint, NULL, api_barrier(s->a));
        return;
    }
    problems_add(&s->ps, PROBLEM_ERROR, str_or(field, ""), 0, 0, hint, "%s", err->text);
    api_answer_problems(s->req, &s->ps);
}

/* True if it was refused and answered. */
static bool submit_refuse(struct submit *s, const struct demand *d, const char *pool)
{
    struct err err = {0};
    const char *field = NULL;
    if (check_id(s, &err) < 0) {
        http_problem(s->req, err.code, &err, "submission_id", "leave it out, or choose another",
                     NULL, api_barrier(s->a));
        return true;
    }
    needscheck(s->a->nodes, s->a->snapshots, s->snapshots, pool, &s->ps);
    if (!code_is_there(s->a->snapshots, s->snapshots, &err))
        answer_refusal(s, &err, "code", NULL);
    else if (check_honoured(s, &field, &err) < 0)
        answer_refusal(s, &err, field, "leave it out");
    else if (secretcheck(s->a->secrets, s->who.user, &s->spec, spec_text(s), &err) < 0)
        answer_refusal(s, &err, "secrets", NULL);
    else if (fitcheck(s->a->jobs, s->a->cluster, d, pool, s->require_fit, &s->ps, &err) < 0)
        answer_refusal(s, &err, "nnodes", NULL);
    else if (submit_check_quota(s, d, &err) < 0)
        answer_refusal(s, &err, "project", NULL);
    else if (s->ps.errors)
        api_answer_problems(s->req, &s->ps);
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

static void on_kept(struct snapshot *snapshot, void *arg)
{
    const struct submit *s = arg;
    snapshots_note(s->a->events, snapshot, s->who.user, false);
}

static void submit_take(struct submit *s, const struct demand *d, char *taken_pool, usec_t now)
{
    struct api *a = s->a;
    struct record_extra extra = {.warnings = submit_warnings(&s->ps),
                                 .verl = xstrdup(s->verl),
                                 .snapshots = xstrdup(s->snapshots),
                                 .inputs = xstrdup(s->inputs),
                                 .retry_of = xstrdup(s->retry.id)};
    struct job *job = submit_make_job(s, d, taken_pool, now);
    struct err err = {0};
    if (secretcheck_holds(&s->spec) &&
        secrets_seal_spec(a->secrets, job->id, job->spec, &extra.sealed_spec, &err) < 0) {
        api_fail(s->req, &err, 0);
        record_extra_release(&extra);
        job_free(job);
        return;
    }
    job->seq = jobs_next_seq(a->jobs);
    idset_add(a->used, job->id);
    idempotency_note(a, s->req, s->asked, job->id, now);
    registry_note_inputs(a->registry, s->inputs, job->id);
    code_keep(a->snapshots, s->snapshots, on_kept, s);
    struct live *l = jobs_add(a->jobs, job, &extra, now);
    if (s->retry.id)
        note_retry(s, l, now);
    struct person *p = people_find(a->people, l->job->user);
    if (p)
        people_dirs_make(a->loop, a->cluster, a->settings->shared_root, a->people, p);
    jobs_busy(l);
    jobs_admit(a->jobs, now);
    submit_answer(s->req, a, l, s->retry.changes, 201);
    jobs_idle(l);
    store_flush_if_idle(a->store);
}

static void submit_plan(struct submit *s, const struct demand *d, char *taken_pool, usec_t now)
{
    struct api_plan_in in = {.taken = submit_make_job(s, d, taken_pool, now),
                             .spec = s->spec,
                             .verl = s->verl,
                             .inputs = s->inputs,
                             .snapshots = s->snapshots,
                             .changes = s->retry.changes,
                             .ps = &s->ps,
                             .held = s->held,
                             .suggest = s->suggest,
                             .checkpoint_bytes = s->checkpoint_bytes,
                             .free_bytes = s->free_bytes};
    s->spec = (struct spec){0};
    s->held = NULL;
    api_plan(s->req, s->a, &in);
}

static void submit_finish(struct submit *s)
{
    struct demand d;
    usec_t now = clock_wall();
    if (submit_was_here(s->req, s->a,
                        s->asked)) { /* its twin came in while the shared root was looked at */
        submit_free(s);
        return;
    }
    compute_demand(s, &d);
    check_verl(s);
    char *pool = job_pools(&s->spec);
    if (submit_refuse(s, &d, pool))
        free(pool);
    else if (s->dry_run)
        submit_plan(s, &d, pool, now);
    else
        submit_take(s, &d, pool, now);
    submit_free(s);
}

/* ---- the preflight ---- */

/* The look at the shared root may have taken its time. */
static int check_again(struct submit *s, const char **ret_field, struct err *err)
{
    const struct http_principal *p = http_req_principal(s->req);
    *ret_field = NULL;
    if (!people_may_go_on(s->a->people, s->a->tokens, p))
        return message_refuse(err, ERR_UNAUTHORISED, "token_ended", MESSAGE_NO_ARGS);
    int r = submit_check_room(s->a, err);
    return r < 0 ? r : people_check_submit(s->a->people, &s->who, &s->spec, ret_field, err);
}

static void answer_late(struct submit *s, const struct preflight_seen *seen)
{
    struct err err = {0};
    (void)message_refuse(
        &err, ERR_UNAVAILABLE, "root_hangs_here",
        MESSAGE_ARGS(MESSAGE_STR("path", seen->where), MESSAGE_NUM("limit", 5))); /* fills err */
    http_problem(s->req, err.code, &err, NULL, NULL, &s->ps, 0);
}

static void submit_judge(struct submit *s, const struct preflight_seen *seen)
{
    bool verl = workload_is_verl((enum workload)s->spec.workload);
    s->verl = xstrdup(seen->verl);
    s->has_dir = seen->job_is_there;
    s->checkpoint_bytes = preflight_checkpoint_bytes(&s->spec, seen->facts->model);
    s->free_bytes = seen->facts->has_free ? seen->facts->free_bytes : 0;
    preflight_judge(&s->spec, verl ? verl_version_find(str_or(s->verl, ""), NULL) : NULL, &s->where,
                    seen->facts, &s->ps);
}

static void on_seen(const struct preflight_seen *seen, void *arg)
{
    struct submit *s = arg;
    const char *field;
    struct err err = {0};
    s->look = NULL;
    http_req_on_close(s->req, NULL, NULL);
    if (seen->late) {
        answer_late(s, seen);
        submit_free(s);
    } else if (check_again(s, &field, &err) < 0) {
        http_problem(s->req, err.code, &err, field, NULL, NULL, api_barrier(s->a));
        submit_free(s);
    } else {
        submit_judge(s, seen);
        submit_finish(s);
    }
}

static void submit_on_gone(struct http_req *req, void *arg)
{
    struct submit *s = arg;
    (void)req;
    preflight_forget(s->look);
    jobsight_forget(s->sight);
    submit_free(s);
}

static void say_where(struct submit *s)
{
    const struct settings *st = s->a->settings;
    const char *user = s->who.user;
    s->user_root = xasprintf("%s/users/%s", st->shared_root, user);
    s->hf_home = launchplan_env(st, &s->spec, user, "HF_HOME");
    _cleanup_(freep) char *offline = launchplan_env(st, &s->spec, user, "HF_HUB_OFFLINE");
    s->where = (struct preflight_where){.shared_root = st->shared_root,
                                        .user_root = s->user_root,
                                        .hf_home = s->hf_home,
                                        .hf_is_ours = !pairs_find(&s->spec.env, "HF_HOME"),
                                        .hf_offline = offline && !strcmp(offline, "1")};
}

static bool needs_a_look(const struct submit *s)
{
    struct preflight_facts f;
    preflight_plan(&s->spec, &s->where, &f);
    bool needs = s->spec.id || preflight_has_work(&f);
    preflight_release(&f);
    return needs;
}

static void begin_preflight(struct submit *s)
{
    bool verl = workload_is_verl((enum workload)s->spec.workload);
    const char *tree = verl ? launchplan_verl_path(&s->spec) : NULL;
    say_where(s);
    if (!tree && !needs_a_look(s)) {
        struct preflight_facts none = {0};
        struct preflight_seen seen = {.facts = &none};
        submit_judge(s, &seen);
        submit_finish(s);
        return;
    }
    http_req_on_close(s->req, submit_on_gone, s);
    s->look = preflight_look(s->a->preflights, &s->spec, &s->where, tree, on_seen, s);
}

/* Of data sets and models. */
static int resolve_names(struct submit *s)
{
    struct access_who who;
    people_who(s->a->people, &s->who, &who);
    return registry_resolve(s->a->registry, &who, &s->spec, &s->inputs, &s->ps);
}

static int use_checkpoints(struct submit *s, struct err *err)
{
    s->use.user = s->who.user;
    s->use.text = spec_text(s);
    s->use.inputs = s->inputs;
    checkpoints_use(s->a->checkpoints, &s->use);
    int r = checkpoints_check_use(&s->use, err);
    if (r == 0 && s->spec.resume_mode == SPEC_RESUME_JOB)
        r = archives_check_files(s->a->archives, s->spec.resume_job, err);
    if (r == 0)
        r = archives_check_text(s->a->archives, s->use.text, err);
    return r == 0 ? archives_check_text(s->a->archives, s->inputs, err) : r;
}

/* Of data sets, models and checkpoints; what the spec says of jobs its user may say. */
static void submit_check_names(struct submit *s)
{
    struct err err = {0};
    if (resolve_names(s) < 0) {
        api_answer_problems(s->req, &s->ps);
        submit_free(s);
    } else if (use_checkpoints(s, &err) < 0) {
        http_problem(s->req, err.code, &err, "resume", "name another one, or resume from none",
                     NULL, api_barrier(s->a));
        submit_free(s);
    } else {
        begin_preflight(s);
    }
}

static void submit_on_sight(const char *field, const struct err *err, void *arg)
{
    struct submit *s = arg;
    http_req_on_close(s->req, NULL, NULL);
    if (!field) {
        submit_check_names(s);
        return;
    }
    struct err refusal = *err;
    if (refusal.code == ERR_NOT_FOUND)
        refusal.code = ERR_BAD_SPEC;
    answer_refusal(s, &refusal, field, "name a job that you may see");
    submit_free(s);
}

/* The jobs that the spec names. Its own directory is its user's, and who sees everything is not
 * asked: what is not there he learns from the look at the shared root. */
static void submit_ask_sight(struct submit *s)
{
    struct access_who who;
    struct spec_jobs named = {0};
    people_who(s->a->people, &s->who, &who);
    if (!who.sees_all)
        spec_list_jobs(&s->spec, s->a->settings->shared_root, &named);
    if (named.n > SPEC_JOBS_MAX) {
        struct err err = {0};
        (void)message_refuse(&err, ERR_BAD_SPEC, "too_many_jobs_named",
                             MESSAGE_ARGS(MESSAGE_NUM("most", SPEC_JOBS_MAX))); /* fills err */
        answer_refusal(s, &err, named.v[SPEC_JOBS_MAX].field, NULL);
        spec_jobs_release(&named);
        submit_free(s);
        return;
    }
    http_req_on_close(s->req, submit_on_gone, s);
    jobsight_ask(s->a, &s->who, &named, submit_on_sight, s, &s->sight);
}

/* What the body says, who may ask for it, and what it names; a refusal is answered here. */
static void submit_check_spec(struct submit *s)
{
    struct err err = {0};
    const char *field = NULL;
    bool is_read = submit_read_body(s) == 0 && name_code(s) == 0;
    if (is_read && people_check_submit(s->a->people, &s->who, &s->spec, &field, &err) < 0) {
        http_problem(s->req, err.code, &err, field, NULL, NULL, api_barrier(s->a));
        submit_free(s);
    } else if (!is_read) {
        api_answer_problems(s->req, &s->ps);
        submit_free(s);
    } else {
        submit_ask_sight(s);
    }
}

static void submit_begin(struct submit *s)
{
    struct err err = {0};
    s->dry_run = http_req_query_bool(s->req, "dry_run", false);
    s->require_fit = http_req_query_bool(s->req, "require_fit", false);
    s->no_trial = http_req_query_bool(s->req, "no_trial", false);
    if (s->suggest && !s->dry_run) /* advice comes before anything is done */
        s->dry_run = s->no_trial = true;
    if (submit_check_room(s->a, &err) < 0 ||
        idempotency_make_room(s->a, s->req, clock_wall(), &err) < 0) {
        api_fail(s->req, &err, 0);
        submit_free(s);
    } else if (submit_was_here(s->req, s->a, s->asked)) {
        submit_free(s);
    } else {
        submit_check_spec(s);
    }
}

void api_jobs_create(struct http_req *req, void *app)
{
    if (!strcmp(http_req_content_type(req), "multipart/form-data")) {
        submit_form(req, app);
        return;
    }
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){.req = req,
                         .a = app,
                         .who = *http_req_principal(req),
                         .smoke = http_req_query_bool(req, "smoke", false),
                         .suggest = http_req_query_bool(req, "suggest", false)};
    submit_begin(s);
}

void submit_retry(struct http_req *req,
                  struct api *a,
                  const struct http_principal *who,
                  char *taken_spec,
                  const struct submit_retry *taken)
{
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){.req = req, .a = a, .who = *who, .text = taken_spec, .retry = *taken};
    s->asked = xasprintf("retry of %s\n", taken->id);
    submit_begin(s);
}

void submit_named(struct http_req *req, struct api *a, const struct submit_named *taken)
{
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){.req = req,
                         .a = a,
                         .who = *http_req_principal(req),
                         .text = taken->text,
                         .asked = taken->asked,
                         .held = taken->held,
                         .smoke = http_req_query_bool(req, "smoke", false),
                         .suggest = http_req_query_bool(req, "suggest", false)};
    submit_begin(s);
}
