/* SPDX-License-Identifier: Apache-2.0 */
/* retry.c - POST /v1/jobs/{id}:retry: a job that has ended, submitted once more.
 *
 * The retry is a new job of the same user with the same spec: nothing is ever written twice into
 * one job's directory. It may go on from a checkpoint of the old one, and with the fix that the
 * finding proposes, or with a patch that who asks has from elsewhere. The two are linked: retry_of,
 * and an event on each. */
#include "argusd/api/jobs/retry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/jobspec.h"
#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/submit/submit.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/finding/finding.h"
#include "core/job/family.h"
#include "core/spec/respec.h"
#include "core/spec/spec.h"
#include "fsroot/ckpt/checkpoint.h"
#include "fsroot/ckpt/ckpt.h"

/* Between the look at the old job and the submit. */
struct retry {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    struct http_principal who; /* whose job it will be */
    char *root, *id, *spec;    /* of the old job */
    char *note;                /* why; NULL: nobody says */
    char *kept;                /* its checkpoints, none of which goes meanwhile */
    struct checkpoints_use use;
    struct ckpt_list known;
    int64_t seq;
    json_t *patch; /* NULL: none */
    int64_t step;  /* of the checkpoint; 0: the newest or the best, found by the look */
    bool from, from_best;
    bool is_asked; /* values of another metric than the one that is shown by itself */
    struct checkpoints_shown shown; /* from_best: whose best one */
    int result;                     /* of the look */
    struct err err;
};

static void retry_free(struct retry *r)
{
    checkpoints_unuse(&r->use);
    ckpt_list_release(&r->known);
    checkpoints_shown_release(&r->shown);
    free(r->kept);
    free(r->root);
    free(r->id);
    free(r->spec);
    free(r->note);
    json_decref(r->patch);
    free(r);
}

static void retry_freep(struct retry **r)
{
    if (*r)
        retry_free(*r);
}

/* ---- what is asked ---- */

/* "20", "global_step_20", "<the job's id>@20", or "latest"; and "best" */
static int read_from(const char *text, const char *job, int64_t *ret_step, struct err *err)
{
    const char *at = strrchr(text, '@');
    if (!strcmp(text, "latest") || !strcmp(text, "best")) {
        *ret_step = 0;
        return 0;
    }
    if (at && ((size_t)(at - text) != strlen(job) || strncmp(text, job, strlen(job)) != 0))
        return message_refuse(err, ERR_REFUSED, "no_checkpoint_of",
                              MESSAGE_ARGS(MESSAGE_STR("text", text), MESSAGE_STR("job", job)));
    const char *step = at ? at + 1 : text;
    if (str_starts(step, "global_step_"))
        step += strlen("global_step_");
    if (str_to_int(step, 1, INT32_MAX, ret_step, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "no_checkpoint_text",
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    return 0;
}

static const struct field retry_form_rows[] = {
    OPT_BOOLEAN("apply_fix"),
    OPT_AS("from", TEXT_OR_NULL),
    OPT_TEXT("metric"),
    OPT_TEXT("mode"),
    OPT_AS("note", TEXT_OR_NULL),
    OPT_AS("patch", OBJECT_AS_IT_CAME("keys of the JobSpec: maps are merged, null takes away"))};
static const struct field_table retry_form = ACTION_FORM(retry_form_rows);

static int retry_read_patch(json_t *body, struct retry *r, bool fix, struct err *err)
{
    json_t *patch = json_object_get(body, "patch");
    if (!patch || json_is_null(patch))
        return 0;
    if (!json_is_object(patch))
        return message_refuse(err, ERR_BAD_REQUEST, "retry_patch", MESSAGE_NO_ARGS);
    if (fix)
        return message_refuse(err, ERR_BAD_REQUEST, "retry_one_change", MESSAGE_NO_ARGS);
    r->patch = json_incref(patch);
    return 0;
}

/* Which one is the best: by this metric, in this mode; each may be left to the job's spec. */
static int retry_read_best(const json_t *body, struct retry *r, struct err *err)
{
    const char *metric = json_get_str(body, "metric", NULL);
    const char *mode = json_get_str(body, "mode", NULL);
    if (!r->from_best && (metric || mode))
        return message_refuse(err, ERR_BAD_REQUEST, "retry_metric_alone", MESSAGE_NO_ARGS);
    if (mode && strcmp(mode, "max") != 0 && strcmp(mode, "min") != 0)
        return message_refuse(err, ERR_BAD_REQUEST, "bad_mode",
                              MESSAGE_ARGS(MESSAGE_STR("mode", mode)));
    if (!r->from_best)
        return 0;
    checkpoints_show(r->a->checkpoints, r->id, &r->shown);
    if (metric)
        checkpoints_shown_ask(&r->shown, metric);
    if (mode)
        r->shown.is_min = !strcmp(mode, "min");
    r->is_asked = metric != NULL;
    return 0;
}

static int retry_read_note(const json_t *body, struct retry *r, struct err *err)
{
    const char *note = NULL;
    int x = family_read_note(json_object_get(body, "note"), &note, err);
    r->note = note ? xstrdup(note) : NULL;
    return x;
}

static int retry_read_body(struct http_req *req, struct retry *r, bool *ret_fix, struct err *err)
{
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &retry_form);
    if (!body)
        return -ECANCELED;
    const json_t *fix = json_object_get(body, "apply_fix"), *from = json_object_get(body, "from");
    if (fix && !json_is_boolean(fix))
        return message_refuse(err, ERR_BAD_REQUEST, "no_bool",
                              MESSAGE_ARGS(MESSAGE_STR("key", "apply_fix")));
    if (from && !json_is_null(from) && !json_is_string(from))
        return message_refuse(err, ERR_BAD_REQUEST, "retry_from_form", MESSAGE_NO_ARGS);
    *ret_fix = json_is_true(fix);
    if (retry_read_note(body, r, err) < 0 || retry_read_patch(body, r, *ret_fix, err) < 0)
        return ERR_BAD_REQUEST;
    r->from = json_is_string(from);
    r->from_best = r->from && !strcmp(json_string_value(from), "best");
    if (retry_read_best(body, r, err) < 0)
        return ERR_BAD_REQUEST;
    return r->from ? read_from(json_string_value(from), r->id, &r->step, err) : 0;
}

/* ---- may it be ---- */

int api_find_owner(struct api *a,
                   const struct http_principal *p,
                   const struct job *job,
                   const char * not,
                   struct http_principal *ret,
                   struct err *err)
{
    *ret = *p;
    if (str_eq(p->user, job->user))
        return 0;
    text_copy(ret->user, job->user);
    ret->role = HTTP_ROLE_USER;
    if (people_admit(a->people, ret) < 0)
        return message_refuse(
            err, ERR_REFUSED, not,
            MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_STR("why", ret->why_not)));
    return 0;
}

static int retry_check(struct http_req *req, struct api *a, const struct job *job, struct err *err)
{
    int r = api_may_change(a, http_req_principal(req), "retry", job, err);
    if (r == 0 && !job_state_is_terminal(job->state))
        r = message_refuse(err, ERR_CONFLICT, "job_not_over",
                           MESSAGE_ARGS(MESSAGE_STR("job", job->id),
                                        MESSAGE_STR("state", job_state_to_string(job->state)),
                                        MESSAGE_NUM("retry", 1)));
    return r;
}

static int check_trains(const struct job *job, struct err *err)
{
    if (workload_word_trains(job->workload))
        return 0;
    return message_refuse(
        err, ERR_REFUSED, "nothing_to_resume",
        MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_STR("workload", job->workload)));
}

/* ---- the fix ---- */

static int refuse_fix(const struct job *job, const char *why, struct err *err)
{
    return message_refuse(
        err, ERR_REFUSED, "no_fix",
        MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_STR("why", str_or(why, ""))));
}

/* The patch of the finding, with values for this spec. */
static int make_patch(const struct api *a,
                      const struct job *job,
                      const struct finding *found,
                      json_t **ret,
                      struct err *err)
{
    const struct spec *spec = jobspec_of(a->settings, job);
    struct buf text = BUF_INIT(DOC_MAX_BYTES);
    struct jout j = jout_begin(&text);
    int n = spec ? finding_patch_to_json(found, spec, &j, NULL) : 0;
    int r = n > 0 && !text.failed ? json_parse(buf_str(&text), text.len, DOC_MAX_BYTES, ret, NULL)
                                  : -ENOENT;
    buf_release(&text);
    return r < 0 ? refuse_fix(job, "proposes none that fits its spec", err) : 0;
}

static int find_fix(const struct api *a,
                    const struct job *job,
                    const struct record_extra *extra,
                    json_t **ret,
                    struct err *err)
{
    struct finding found;
    if (job->state == JOB_SUCCEEDED || !extra->finding.json)
        return refuse_fix(job, NULL, err);
    int r = record_finding_read(&extra->finding, &found, NULL);
    if (r == 0 && found.n_patch)
        r = make_patch(a, job, &found, ret, err);
    else
        r = refuse_fix(job, "proposes none", err);
    finding_release(&found);
    return r;
}

/* ---- the submit ---- */

static void retry_submit(struct retry *r)
{
    char resume[SPEC_ID_BUF + 32];
    struct buf text = BUF_INIT(DOC_MAX_BYTES), changes = BUF_INIT(RESPEC_CHANGES_MAX);
    struct err err = {0};
    text_printf(resume, "%s@%" PRId64, r->id, r->step);
    struct respec how = {.resume = r->from ? resume : NULL, .patch = r->patch};
    int n = respec_text(r->spec, &how, &text, &changes, &err);
    if (n >= 0 && (text.failed || changes.failed))
        n = message_refuse(&err, ERR_REFUSED, "retry_spec_large",
                           MESSAGE_ARGS(MESSAGE_STR("job", r->id)));
    else if (n < 0)
        err.code = ERR_REFUSED;
    if (n < 0) {
        api_fail(r->req, &err, 0);
    } else {
        struct submit_retry of = {
            .id = xstrdup(r->id), .seq = r->seq, .changes = buf_take(&changes), .note = r->note};
        r->note = NULL;
        submit_retry(r->req, r->a, &r->who, buf_take(&text), &of);
    }
    buf_release(&text);
    buf_release(&changes);
}

static void keep_checkpoints(struct retry *r)
{
    const struct ckpt_list *known = checkpoints_of(r->a->checkpoints, r->id);
    r->kept = xasprintf("%s/checkpoints", r->id);
    r->use.user = r->who.user;
    r->use.text = r->kept;
    checkpoints_use(r->a->checkpoints, &r->use); /* the submit asks for the one that it is */
    if (known)
        ckpt_list_copy(&r->known, known);
}

static int retry_find_best(struct retry *r)
{
    int x = r->is_asked ? ckpt_find_metric(r->root, r->id, r->shown.metric, &r->shown.list, &r->err)
                        : 0;
    const struct ckpt *best = x < 0 ? NULL : ckpt_list_best(&r->shown.list, r->shown.is_min);
    if (x == 0 && !best)
        return ckpt_refuse_best(r->id, r->shown.metric, &r->err);
    r->step = best ? best->step : 0;
    return x;
}

static void retry_run_look(void *arg)
{
    struct retry *r = arg;
    r->result = r->from_best ? retry_find_best(r) : 0;
    if (r->result < 0)
        return;
    r->result = fsroot_checkpoint_find(r->root, r->id, &r->known, r->step, &r->step, &r->err);
}

static void retry_on_gone(struct http_req *req, void *arg)
{
    struct retry *r = arg;
    (void)req;
    r->req = NULL; /* freed when the worker is done */
}

static void retry_done_look(void *arg)
{
    struct retry *r = arg;
    if (r->req) {
        http_req_on_close(r->req, NULL, NULL);
        if (r->result < 0) {
            r->err.code = r->result == ERR_NOT_FOUND ? ERR_REFUSED : ERR_UNAVAILABLE;
            api_fail(r->req, &r->err, 0);
        } else {
            retry_submit(r);
        }
    }
    retry_free(r);
}

static void retry_job(struct http_req *req,
                      struct api *a,
                      const struct job *job,
                      const struct record_extra *extra,
                      struct live *l)
{
    _cleanup_(retry_freep) struct retry *r = xcalloc(1, sizeof(*r));
    struct err err = {0};
    bool fix = false;
    (void)l;
    *r = (struct retry){.req = req,
                        .a = a,
                        .root = xstrdup(a->settings->shared_root),
                        .id = xstrdup(job->id),
                        .spec = xstrdup(job->spec),
                        .seq = job->seq};
    int x = retry_check(req, a, job, &err);
    if (x == 0)
        x = api_find_owner(a, http_req_principal(req), job, "not_retried", &r->who, &err);
    if (x == 0)
        x = retry_read_body(req, r, &fix, &err);
    if (x == 0 && r->from)
        x = check_trains(job, &err);
    if (x == 0 && r->from)
        x = archives_check_files(a->archives, job->id, &err);
    if (x == 0 && fix)
        x = find_fix(a, job, extra, &r->patch, &err);
    if (x == 0 && r->from)
        x = cluster_check_root_answers(a->cluster, &err);
    if (x < 0) {
        if (x != -ECANCELED) /* that was answered */
            api_fail(req, &err, 0);
        return;
    }
    if (!r->from) {
        retry_submit(r);
        return;
    }
    keep_checkpoints(r);
    http_req_on_close(req, retry_on_gone, r);
    work_start_for(a->loop, http_req_principal(req)->user, retry_run_look, retry_done_look, r);
    r = NULL;
}

static void api_jobs_retry(struct http_req *req, void *app)
{
    api_find_job(req, app, retry_job);
}

static const struct http_param retry_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "check only, as for a submit"},
    {"require_fit", HTTP_PARAM_BOOLEAN, "as for a submit"},
    {"no_trial", HTTP_PARAM_BOOLEAN, "as for a submit"},
    {0}};

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:retry",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_retry,
     .summary = "submit a job that has ended once more, as a new job of the same user",
     .params = retry_params,
     .request_schema = "Retry",
     .reply_schema = "Submitted",
     .reply_status = 201,
     .other_schema = "PlanOrSubmitted"},
};
static const struct http_schema schemas[] = {
    {.name = "Retry", .table = &retry_form, .is_form = true},
};
const struct api_part part_retry = {rows, array_len(rows), schemas, array_len(schemas)};
