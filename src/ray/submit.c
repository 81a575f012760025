/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - the queue of POSTs and what their answers mean.
 *
 * One POST at a time, in the order of ray_submit(), a gap between two, none before
 * the version is known: an unknown key is a 400. A POST that was started is never
 * cut by ray_call_free() (that could leave an orphan in Ray); it only loses its
 * callback. A POST never goes over a kept connection: the peer may just be closing
 * that one, which would turn an ordinary submit into a doubt. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "ray/body.h"
#include "ray/call.h"
#include "ray/parse.h"

struct submit {
    json_t *body;
};

#define X(word) [RAY_SUBMIT_##word] = #word,
static const char *const outcomes[] = {RAY_SUBMIT_TABLE(X)};
#undef X
static_assert(array_len(outcomes) == RAY_SUBMIT_END, "a word per outcome");

static void ray_submit_pump(struct ray_client *rc);

const char *ray_submit_outcome_to_string(enum ray_submit_outcome outcome)
{
    return outcome < RAY_SUBMIT_END ? outcomes[outcome] : "DOUBT";
}

void submit_free(struct submit *s)
{
    if (!s)
        return;
    json_decref(s->body);
    free(s);
}

/* -- what an answer means -------------------------------------------------------------- */

/* What Ray writes into its bodies counts more than its codes: a duplicate is a 500,
 * and so is the head agent's 400 once the dashboard has passed it on. In order. */
static const struct {
    const char *text;
    enum ray_submit_outcome outcome;
} sentences[] = {
    {"already exists", RAY_SUBMIT_DUPLICATE},
    {"No available agent to submit job", RAY_SUBMIT_NO_AGENT},
    {"Failed to get head node agent within", RAY_SUBMIT_NO_AGENT},
    {"Request failed with status code 400", RAY_SUBMIT_REFUSED},
};

static enum ray_submit_outcome judge_status(int status)
{
    switch (status) {
    case 401: /* not let in */
    case 403:
    case 404: /* a dashboard whose jobs module is not up (yet) */
    case 429:
        return RAY_SUBMIT_UNREACHABLE;
    case 408: /* it may have read the request */
        return RAY_SUBMIT_DOUBT;
    default:
        break;
    }
    if (status >= 300 && status < 400)
        return RAY_SUBMIT_UNREACHABLE; /* sent elsewhere: not Ray's answer */
    return status >= 400 && status < 500 ? RAY_SUBMIT_REFUSED : RAY_SUBMIT_DOUBT;
}

static enum ray_submit_outcome judge_failure(const struct wire_reply *reply)
{
    if (!reply->status)
        return reply->was_sent ? RAY_SUBMIT_DOUBT : RAY_SUBMIT_UNREACHABLE;
    for (size_t i = 0; reply->status >= 400 && i < array_len(sentences); i++)
        if (reply_has(reply, sentences[i].text))
            return sentences[i].outcome;
    return judge_status(reply->status);
}

static enum ray_submit_outcome ray_submit_judge(const struct ray_call *call,
                                                const struct wire_reply *reply,
                                                struct err *err)
{
    if (reply->status == 200) {
        _cleanup_(freep) char *id = NULL;
        int r = ray_parse_submitted(reply->body, reply->len, &id, err);
        if (r == 0 && str_eq(id, call->id))
            return RAY_SUBMIT_ACCEPTED;
        if (r == 0)
            (void)message_refuse(
                err, ERR_BAD_REQUEST, "ray_other_id",
                MESSAGE_ARGS(MESSAGE_STR("job", call->id), MESSAGE_STR("answered", id)));
        return RAY_SUBMIT_DOUBT;
    }
    enum ray_submit_outcome outcome = judge_failure(reply);
    (void)reply_error(reply, "submitting the job", err); /* the outcome is the code that counts */
    if (outcome == RAY_SUBMIT_REFUSED)
        err->code = ERR_REFUSED;
    if (outcome == RAY_SUBMIT_DUPLICATE)
        err->code = ERR_CONFLICT;
    return outcome;
}

/* -- the queue -------------------------------------------------------------------------- */

static void finish_submit(struct ray_call *call, const struct wire_reply *reply)
{
    struct ray_client *rc = call->rc;
    if (rc->posting == call)
        rc->posting = NULL;
    struct err err = {0};
    enum ray_submit_outcome outcome = ray_submit_judge(call, reply, &err);
    if (call->cb.submit)
        call->cb.submit(outcome, outcome == RAY_SUBMIT_ACCEPTED ? NULL : &err, call->arg);
    if (!rc->is_dead)
        ray_submit_pump(rc);
}

static struct ray_call *ray_submit_take_first(struct ray_client *rc)
{
    struct ray_call *call = rc->first_submit;
    rc->first_submit = call->next_submit;
    if (!rc->first_submit)
        rc->last_submit = NULL;
    call->next_submit = NULL;
    return call;
}

/* Nothing was sent of any: as many as wait now end; what callbacks add asks anew. */
static void end_waiting(struct ray_client *rc, const struct err *err)
{
    const struct wire_reply reply = {.was_sent = false, .body = "", .err = *err};
    size_t n = 0;
    for (struct ray_call *call = rc->first_submit; call; call = call->next_submit)
        n++;
    for (; n > 0 && !rc->is_dead && rc->first_submit; n--)
        call_finish(ray_submit_take_first(rc), &reply);
}

static void ray_submit_on_version(const struct ray_version *version,
                                  const struct err *err,
                                  void *arg)
{
    struct ray_client *rc = arg;
    rc->version_call = NULL;
    if (!version)
        end_waiting(rc, err);
    if (!rc->is_dead)
        ray_submit_pump(rc);
}

static void ray_submit_post(struct ray_client *rc)
{
    struct ray_call *call = ray_submit_take_first(rc);
    json_t *body = call->submit->body;
    if (!(rc->version.supports & RAY_SUPPORTS_ENTRYPOINT_LABELS))
        (void)json_object_del(body, "entrypoint_label_selector"); /* -1: was not given */
    char *text = json_dumps(body, JSON_COMPACT | JSON_ENSURE_ASCII);
    assert(text);
    struct wire_order order = {
        .method = "POST",
        .body = text,
        .timeout = rc->submit_timeout,
        .max_bytes = rc->reply_max_bytes,
        .is_fresh = true,
    };
    rc->posting = call;
    rc->next_post = uv_now(rc->loop) + rc->gap_ms;
    call_send(call, "/api/jobs/", &order);
    free(text);
}

static void on_gap(uv_timer_t *timer)
{
    ray_submit_pump(timer->data);
}

/* Start what may be started now. */
static void ray_submit_pump(struct ray_client *rc)
{
    if (!rc->first_submit || rc->posting || rc->version_call)
        return;
    uint64_t now = uv_now(rc->loop);
    if (!rc->has_version)
        rc->version_call = ray_get_version(rc, ray_submit_on_version, rc);
    else if (now < rc->next_post)
        uv_timer_start(&rc->gap, on_gap, rc->next_post - now, 0);
    else
        ray_submit_post(rc);
}

void submit_init(struct ray_client *rc)
{
    (void)uv_timer_init(rc->loop, &rc->gap); /* never fails */
    rc->gap.data = rc;
}

/* Take a waiting call out of the queue; false if it does not wait. */
static bool leave_queue(struct ray_client *rc, struct ray_call *call)
{
    struct ray_call *before = NULL;
    for (struct ray_call *c = rc->first_submit; c; before = c, c = c->next_submit) {
        if (c != call)
            continue;
        if (before)
            before->next_submit = c->next_submit;
        else
            rc->first_submit = c->next_submit;
        if (rc->last_submit == c)
            rc->last_submit = before;
        return true;
    }
    return false;
}

void submit_drop(struct ray_call *call)
{
    if (leave_queue(call->rc, call))
        call_drop(call);
    else
        call->cb.submit = NULL;
}

struct ray_call *ray_submit(struct ray_client *rc,
                            const struct ray_submit *what,
                            ray_submit_f cb,
                            void *arg,
                            struct err *err)
{
    json_t *body;
    if (body_new(what, &body, err) < 0)
        return NULL;
    struct ray_call *call = call_new(rc, finish_submit, arg);
    call->cb.submit = cb;
    call->id = xstrdup(what->submission_id);
    call->submit = xcalloc(1, sizeof(*call->submit));
    call->submit->body = body;
    if (rc->last_submit)
        rc->last_submit->next_submit = call;
    else
        rc->first_submit = call;
    rc->last_submit = call;
    ray_submit_pump(rc);
    return call;
}
