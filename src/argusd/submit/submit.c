/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - POST /v1/jobs: read, check, give an id, queue.
 *
 * The body is the JobSpec, YAML or JSON; a retry brings the spec of the job that it follows, and
 * then all is the same (submit.h). Everything wrong with it is told at once, with what
 * the preflight finds on the shared root (preflight.h): only that look may block, and it is
 * done in the worker pool. */
#include "argusd/submit/submit_state.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/content/code.h"
#include "argusd/content/registry_inputs.h"
#include "argusd/content/snapshots_view.h"
#include "argusd/ground/jobspec.h"
#include "argusd/ground/rootnames.h"
#include "argusd/jobs/jobs_rules.h"
#include "argusd/launch/launchplan.h"
#include "argusd/launch/preflight.h"
#include "argusd/people/people_dirs.h"
#include "argusd/submit/idempotency.h"
#include "argusd/submit/jobsight.h"
#include "argusd/submit/submit_answer.h"
#include "argusd/submit/submitted.h"
#include "base/message.h"
#include "base/str.h"
#include "core/check/preflight.h"
#include "core/verl/verl.h"

void submit_state_free(struct submit *s)
{
    checkpoints_unuse(&s->use);
    spec_release(&s->spec);
    spec_jobs_release(&s->named);
    problems_release(&s->ps);
    if (s->held)
        snapshots_let_go(s->a->snapshots, s->held);
    free(s->text);
    free(s->asked);
    free(s->retry.id);
    free(s->retry.changes);
    free(s->origin.job);
    free(s->origin.note);
    free(s->change.id);
    free(s->change.changes);
    free(s->verl);
    free(s->snapshots);
    free(s->user_root);
    free(s->hf_home);
    free(s->inputs);
    free(s->made);
    free(s);
}

/* ---- who submits ---- */

void submit_own_end(struct submit *s, struct live *l, const struct err *err)
{
    *s->own_place = NULL;
    s->own.done(l, err, s->own.arg);
}

void submit_tell(struct submit *s,
                 const struct err *err,
                 const char *field,
                 const struct problems *ps)
{
    if (s->req)
        http_problem(s->req, err->code, err, field, ps, ps ? 0 : api_barrier(s->a));
    else
        submit_own_end(s, NULL, err);
}

void submit_tell_problems(struct submit *s)
{
    struct err err = {0};
    if (s->req) {
        api_answer_problems(s->req, &s->ps);
        return;
    }
    (void)problem_to_err(problems_first(&s->ps), ERR_BAD_SPEC, &err); /* only fills err */
    submit_own_end(s, NULL, &err);
}

static void submit_on_gone(struct http_req *req, void *arg);

/* The client may go while something is looked at. */
static void submit_watch(struct submit *s)
{
    if (s->req)
        http_req_on_close(s->req, submit_on_gone, s);
}

static void submit_unwatch(struct submit *s)
{
    if (s->req)
        http_req_on_close(s->req, NULL, NULL);
}

/* May its user still go on? Asked when a look has taken its time. */
static bool submit_may_go_on(const struct submit *s)
{
    struct http_principal who = s->who;
    if (s->req)
        return people_may_go_on(s->a->people, s->a->tokens, http_req_principal(s->req));
    return people_admit(s->a->people, &who) == 0;
}

/* ---- checks ---- */

int submit_check_room(const struct api *a, struct err *err)
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

const char *submit_spec_text(const struct submit *s)
{
    size_t n;
    return s->made ? s->made : given(s, &n);
}

/* With the shared root as argus.yaml spells it: the job's directories and its other attempts see no
 * other name of it. NULL: it is spelled so. Heap. */
static char *submit_respell(const struct submit *s, const char *text, size_t len)
{
    return strlen(text) == len ? rootnames_respell(text, cluster_root_names(s->a->cluster),
                                                   s->a->settings->shared_root)
                               : NULL;
}

static int submit_read_body(struct submit *s)
{
    struct access_who who;
    people_who(s->a->people, &s->who, &who);
    struct submitted in = {
        .settings = s->a->settings, .presets = s->a->presets, .who = &who, .smoke = s->smoke};
    in.text = given(s, &in.len);
    char *respelled = submit_respell(s, in.text, in.len);
    if (respelled) {
        in.text = respelled;
        in.len = strlen(respelled);
    }
    int r = submitted_read(&in, &s->spec, &s->made, &s->ps);
    if (s->made)
        free(respelled);
    else
        s->made = respelled;
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

/* ---- the preflight ---- */

/* The look at the shared root may have taken its time. */
static int check_again(struct submit *s, const char **ret_field, struct err *err)
{
    *ret_field = NULL;
    if (!submit_may_go_on(s))
        return message_refuse(err, ERR_UNAUTHORISED, "token_ended", MESSAGE_NO_ARGS);
    int r = s->change.id ? 0 : submit_check_room(s->a, err);
    return r < 0 ? r : people_check_submit(s->a->people, &s->who, &s->spec, ret_field, err);
}

static void answer_late(struct submit *s, const struct preflight_seen *seen)
{
    struct err err = {0};
    (void)message_refuse(
        &err, ERR_UNAVAILABLE, "root_hangs_here",
        MESSAGE_ARGS(MESSAGE_STR("path", seen->where), MESSAGE_NUM("limit", 5))); /* fills err */
    submit_tell(s, &err, NULL, &s->ps);
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
    submit_unwatch(s);
    if (seen->late) {
        answer_late(s, seen);
        submit_state_free(s);
    } else if (check_again(s, &field, &err) < 0) {
        submit_tell(s, &err, field, NULL);
        submit_state_free(s);
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
    submit_state_free(s);
}

static void say_where(struct submit *s)
{
    const struct settings *st = s->a->settings;
    const char *user = s->who.user;
    s->user_root = jobspec_user_root(st, user);
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
    if (s->spec.id)
        return true;
    preflight_plan(&s->spec, &s->where, &f);
    bool needs = preflight_has_work(&f);
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
    submit_watch(s);
    s->look = preflight_look(s->a->preflights, &s->spec, &s->where, tree, on_seen, s);
}

/* Resolves the names of data sets and models. */
static int resolve_names(struct submit *s)
{
    struct access_who who;
    people_who(s->a->people, &s->who, &who);
    return registry_resolve(s->a->registry, &who, &s->spec, &s->inputs, &s->ps);
}

static int use_checkpoints(struct submit *s, struct err *err)
{
    s->use.user = s->who.user;
    s->use.text = submit_spec_text(s);
    s->use.inputs = s->inputs;
    checkpoints_use(s->a->checkpoints, &s->use);
    int r = checkpoints_check_use(&s->use, err);
    if (r == 0 && s->spec.resume_mode == SPEC_RESUME_JOB)
        r = archives_check_files(s->a->archives, s->spec.resume_job, err);
    if (r == 0)
        r = archives_check_text(s->a->archives, s->use.text, err);
    return r == 0 ? archives_check_text(s->a->archives, s->inputs, err) : r;
}

/* Takes the checkpoints that the spec names; it may name jobs that its user may see. */
static void submit_check_names(struct submit *s)
{
    struct err err = {0};
    if (use_checkpoints(s, &err) < 0) {
        submit_tell(s, &err, "resume", NULL);
        submit_state_free(s);
    } else {
        begin_preflight(s);
    }
}

static void submit_on_sight(const char *field, const struct err *err, void *arg)
{
    struct submit *s = arg;
    submit_unwatch(s);
    if (!field) {
        submit_check_names(s);
        return;
    }
    struct err refusal = *err;
    if (refusal.code == ERR_NOT_FOUND)
        (void)message_refuse(&refusal, ERR_BAD_SPEC, "spec_job_unseen",
                             MESSAGE_ARGS(MESSAGE_ERR("why", err))); /* only fills it */
    submit_answer_refusal(s, &refusal, field);
    submit_state_free(s);
}

/* The jobs that the spec names, before names of data and models become paths: whoever may use a
 * model may read it in the directory of a job that he does not see. The job's own directory is its
 * user's, and who sees everything is not asked: what is not there he learns from the look at the
 * shared root. */
static void submit_list_jobs(struct submit *s)
{
    struct access_who who;
    people_who(s->a->people, &s->who, &who);
    if (!who.sees_all)
        spec_list_jobs(&s->spec, s->a->settings->shared_root, &s->named);
    if (s->req && s->origin.job) /* who sees everything may be mistaken, too */
        spec_jobs_add(&s->named, "from", s->origin.job);
}

static void submit_ask_sight(struct submit *s)
{
    if (s->named.n > SPEC_JOBS_MAX) {
        struct err err = {0};
        (void)message_refuse(&err, ERR_BAD_SPEC, "too_many_jobs_named",
                             MESSAGE_ARGS(MESSAGE_NUM("most", SPEC_JOBS_MAX))); /* fills err */
        submit_answer_refusal(s, &err, s->named.v[SPEC_JOBS_MAX].field);
        submit_state_free(s);
        return;
    }
    submit_watch(s);
    jobsight_ask(s->a, &s->who, &s->named, submit_on_sight, s, &s->sight);
}

/* ---- names ---- */

static void submit_add_problem(struct submit *s, const char *field, const struct err *err)
{
    problems_add_err(&s->ps, PROBLEM_ERROR, str_or(field, ""), 0, 0, err);
}

/* At the places of their keys, where somebody wrote the text. */
static void submit_place_problems(struct submit *s)
{
    size_t len = 0;
    struct problems none = {0};
    struct doc *d = NULL;
    const char *text = s->held || s->made ? NULL : given(s, &len);
    if (text && doc_parse(text, len, true, &d, &none) == 0)
        for (size_t i = 0; i < s->ps.n; i++) {
            struct problem *p = &s->ps.v[i];
            const struct node *n = p->line ? NULL : node_find_path(doc_root(d), p->field);
            p->line = n ? n->line : p->line;
            p->column = n ? n->column : p->column;
        }
    doc_free(d);
    problems_release(&none);
}

static void submit_check_secret_names(struct submit *s)
{
    const struct strv *names = &s->spec.secrets;
    for (size_t i = 0; i < names->n; i++) {
        const struct strv one = {.v = &names->v[i], .n = 1};
        struct err err = {0};
        if (secrets_check(s->a->secrets, s->who.user, s->spec.project, &one, &err) < 0)
            submit_add_problem(s, "secrets", &err);
    }
}

/* Every name that is wrong is told, and not only the first: project, code, secrets, data, model,
 * and what is not honoured here. Where only secrets are wrong, the checks that follow tell them
 * beside all that they find. True: it was refused and answered. */
static bool submit_refuse_names(struct submit *s)
{
    struct err err = {0}, other = {0};
    const char *field = NULL, *other_field = NULL;
    int r = people_check_submit(s->a->people, &s->who, &s->spec, &field, &err);
    (void)name_code(s); /* told in ps, as all below */
    if (submit_check_honoured(s, &other_field, &other) < 0)
        submit_add_problem(s, other_field, &other);
    submit_list_jobs(s);
    (void)resolve_names(s);
    if (r < 0 && !s->ps.errors && err.code != ERR_BAD_SPEC) {
        submit_tell(s, &err, field, NULL);
        return true;
    }
    if (r < 0)
        submit_add_problem(s, field, &err);
    if (s->ps.errors) {
        submit_check_secret_names(s);
        submit_place_problems(s);
        submit_tell_problems(s);
    }
    return s->ps.errors > 0;
}

/* A text that could not be taken apart has problems without a key, and is told so at once. */
static bool submit_is_keyless(struct submit *s)
{
    for (size_t i = 0; i < s->ps.n; i++)
        if (s->ps.v[i].level == PROBLEM_ERROR && !*s->ps.v[i].field) {
            submit_tell_problems(s);
            return true;
        }
    return false;
}

/* What is wrong with it may be the root by its other path, which the first look at it finds out. */
static bool submit_is_too_early(struct submit *s)
{
    struct err err = {0};
    if (!s->ps.errors || cluster_root_is_known(s->a->cluster) ||
        cluster_check_root(s->a->cluster, &err) == 0)
        return false;
    submit_tell(s, &err, NULL, NULL);
    return true;
}

/* What the body says, who may ask for it, and what it names; a refusal is answered here. */
static void submit_check_spec(struct submit *s)
{
    (void)submit_read_body(s); /* told in ps */
    if (submit_is_too_early(s) || submit_is_keyless(s) || submit_refuse_names(s))
        submit_state_free(s);
    else
        submit_ask_sight(s);
}

/* ?from= and ?note= of a submit; a retry has brought its own. The key of a request that says so is
 * for that, too. */
static int submit_read_origin(struct submit *s, struct err *err)
{
    const char *from = http_req_query(s->req, "from"), *note = NULL;
    if (s->retry.id)
        return 0;
    int r = family_check_note(http_req_query(s->req, "note"), &note, err);
    if (r < 0)
        return r;
    if (from && *from)
        s->origin = (struct submit_origin){.job = xstrdup(from), .how = FAMILY_FORK};
    if (note)
        s->origin.note = xstrdup(note);
    if (!s->asked && (s->origin.job || s->origin.note))
        s->asked =
            xasprintf("from %s\nnote %s\n", str_or(s->origin.job, ""), str_or(s->origin.note, ""));
    return 0;
}

static void submit_begin(struct submit *s)
{
    struct err err = {0};
    s->dry_run = http_req_query_bool(s->req, "dry_run", false);
    s->require_fit = http_req_query_bool(s->req, "require_fit", false);
    s->no_trial = http_req_query_bool(s->req, "no_trial", false);
    if (s->suggest && !s->dry_run) /* advice comes before anything is done */
        s->dry_run = s->no_trial = true;
    if (submit_read_origin(s, &err) < 0 || submit_check_room(s->a, &err) < 0 ||
        idempotency_make_room(s->a, s->req, clock_wall(), &err) < 0) {
        api_fail(s->req, &err, 0);
        submit_state_free(s);
    } else if (submit_was_here(s->req, s->a, s->asked)) {
        submit_state_free(s);
    } else {
        submit_check_spec(s);
    }
}

void submit_own(struct api *a, const struct submit_own *taken, struct submit **ret)
{
    struct err err = {0};
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){
        .a = a, .who = taken->who, .text = taken->spec, .no_trial = taken->no_trial, .own = *taken};
    s->origin = taken->origin;
    s->own.spec = NULL;
    s->own.origin = (struct submit_origin){0};
    s->own_place = ret;
    *ret = s;
    if (submit_check_room(a, &err) < 0) {
        submit_tell(s, &err, NULL, NULL);
        submit_state_free(s);
    } else {
        submit_check_spec(s);
    }
}

void submit_own_forget(struct submit *s)
{
    if (s)
        submit_on_gone(NULL, s);
}

bool submit_may_pass(const struct err *err)
{
    return err->code == ERR_BUSY || err->code == ERR_UNAVAILABLE || err->code == ERR_NOT_YET ||
           err->code == ERR_UNREACHABLE || err->code == ERR_STORE || err->code == ERR_NO_SPACE ||
           str_eq(err->message, "quota_queued");
}

void submit_request(struct http_req *req, struct api *a)
{
    if (!strcmp(http_req_content_type(req), "multipart/form-data")) {
        submit_form(req, a);
        return;
    }
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){.req = req,
                         .a = a,
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
    s->origin.note = s->retry.note;
    s->retry.note = NULL;
    s->asked = xasprintf("retry of %s\n", taken->id);
    submit_begin(s);
}

void submit_change(struct http_req *req,
                   struct api *a,
                   const struct http_principal *who,
                   char *taken_spec,
                   const struct submit_change *taken)
{
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){.req = req,
                         .a = a,
                         .who = *who,
                         .text = taken_spec,
                         .change = *taken,
                         .dry_run = http_req_query_bool(req, "dry_run", false),
                         .require_fit = http_req_query_bool(req, "require_fit", false),
                         .no_trial = http_req_query_bool(req, "no_trial", false)};
    submit_check_spec(s);
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
