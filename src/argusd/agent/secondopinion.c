/* SPDX-License-Identifier: Apache-2.0 */
/* secondopinion.c - see secondopinion.h. Once a second: is there a finding to ask about? Findings
 * come from the log of events; a row of the store says up to which one they were looked at, and how
 * much was spent, before a question is sent: a restart neither asks twice nor spends anew. */
#include "argusd/agent/secondopinion.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/agent/agent.h"
#include "argusd/agent/secondbook.h"
#include "argusd/jobs/record.h"
#include "argusd/kit/hiding.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "core/finding/opinion/second.h"
#include "ray/wire.h"

enum { SECOND_TICK_MS = 1000, SECOND_EVENTS = 50, SECOND_BODY_MAX = 128 << 10 };
static const usec_t SECOND_CONNECT = 5 * USEC_SEC;
static const usec_t SECOND_PAST = USEC_HOUR; /* older findings nobody waits for */

/* The finding that is asked about. */
struct second_ask {
    int64_t event, job_seq, attempt;
    char *job, *user; /* user: NULL until the job is read */
    struct mask mask;
    size_t sent_bytes;
    bool is_there;
};

struct secondopinion {
    struct api *a;
    struct wire *wire; /* NULL: nobody is asked */
    uv_timer_t timer;
    bool has_timer, closing;
    struct store_read *read;
    struct second_ask now;
    /* Kept in the store. */
    int64_t seen; /* findings up to this event were looked at */
    struct secondbook book;
    bool has_seen;
    int64_t through; /* on disk when the read began */
    struct secondopinion_state told;
    char trouble[200];
};

#define KEPT(key, ftype, member) FIELD_AT(secondopinion, key, ftype, member, .flags = FIELD_STORED)
static const struct field kept_rows[] = {
    KEPT("seen", FIELD_INT, seen),
    KEPT("hour", FIELD_TIME, book.hour),
    KEPT("questions", FIELD_INT, book.questions),
    KEPT("day", FIELD_TIME, book.day),
    KEPT("tokens", FIELD_INT, book.tokens),
    FIELD_AT(secondopinion,
             "users",
             FIELD_LIST,
             book.users,
             .of = &second_spent_table,
             .flags = FIELD_STORED),
};
#undef KEPT
static const struct field_table kept_table = FIELD_TABLE(NULL, kept_rows, secondopinion);

/* ---- what is spent ---- */

static void second_save(const struct secondopinion *s)
{
    _cleanup_(freep) char *body = field_to_text(&kept_table, s, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = SECONDOPINION_ENTRY, .name = "book", .body = body, .at = clock_wall()};
    store_put_entry(s->a->store, &row);
}

/* user NULL: about anybody's job. */
static bool second_may_spend(const struct secondopinion *s, const char *user)
{
    const struct settings *set = s->a->settings;
    const struct secondbook_most most = {.questions = set->second_per_hour,
                                         .tokens = set->second_tokens_per_day};
    return secondbook_may(&s->book, &most, user);
}

/* A token is four bytes or so: who counts none is not believed. */
static void second_spend(struct secondopinion *s, size_t bytes, int64_t counted)
{
    int64_t least = (int64_t)(bytes / 4);
    secondbook_spend(&s->book, s->now.user, counted > least ? counted : least);
    second_save(s);
}

/* ---- one question ---- */

static void second_drop(struct secondopinion *s)
{
    free(s->now.job);
    free(s->now.user);
    mask_release(&s->now.mask);
    s->now = (struct second_ask){0};
}

static void second_fail(struct secondopinion *s, const char *why)
{
    text_copy(s->trouble, why);
    s->told.failed++;
    log_warn("agent", "no second opinion: %s job=%s", why, s->now.job);
    second_drop(s);
}

/* A model may say again what it was not shown: it may know it from another job. */
static void second_mask(const struct mask *m, char **text)
{
    struct buf out = BUF_INIT(SECOND_REPLY_MAX);
    if (!*text)
        return;
    mask_text(m, *text, &out);
    set_str(text, out.failed ? MASK_STARS : buf_str(&out));
    buf_release(&out);
}

static void second_keep(struct secondopinion *s, struct opinion *o)
{
    second_mask(&s->now.mask, &o->cause);
    second_mask(&s->now.mask, &o->advice);
    o->attempt = s->now.attempt;
    set_str(&o->source, OPINION_ASKED);
    set_str(&o->author, "argusd");
    set_str(&o->model, s->a->settings->second_model);
    opinion_keep(s->a, s->now.job, s->now.job_seq, o);
    s->told.answered++;
    *s->trouble = 0;
}

static void second_on_reply(const struct wire_reply *reply, void *arg)
{
    struct secondopinion *s = arg;
    struct second_answer answer = {0};
    struct err err = reply->err;
    if (s->closing)
        return;
    int r = reply->status ? 0 : err.code;
    if (reply->status && reply->status != 200)
        r = message_refuse(&err, ERR_UNAVAILABLE, "second_http",
                           MESSAGE_ARGS(MESSAGE_NUM("status", reply->status)));
    if (r == 0)
        r = second_answer_read(reply->body, reply->len, &answer, &err);
    second_spend(s, s->now.sent_bytes + reply->len, answer.tokens);
    if (r < 0) {
        second_fail(s, err.text);
        return;
    }
    second_keep(s, &answer.said);
    field_release(&opinion_table, &answer.said);
    second_drop(s);
}

static void second_send(struct secondopinion *s, const char *evidence)
{
    const struct settings *set = s->a->settings;
    struct strv headers = {0};
    struct buf body = BUF_INIT(SECOND_BODY_MAX);
    _cleanup_(freep) char *url = xasprintf("%s/chat/completions", set->second_url);
    second_question(set->second_model, evidence, set->second_answer_tokens, &body);
    if (!secrets_add_bearer(s->a->secrets, set->second_secrets_of, set->second_key, &headers)) {
        second_fail(s, "the secret second_opinion.key is not there: argus secret set");
    } else {
        struct wire_order order = {.method = "POST",
                                   .url = url,
                                   .body = buf_str(&body),
                                   .timeout = set->second_timeout,
                                   .max_bytes = SECOND_REPLY_MAX,
                                   .is_fresh = true,
                                   .headers = &headers,
                                   .said = "the model"};
        s->now.sent_bytes = body.len;
        (void)wire_send(s->wire, &order, second_on_reply, s); /* wire_free() ends it */
    }
    for (size_t i = 0; i < headers.n; i++)
        explicit_bzero(headers.v[i], strlen(headers.v[i]));
    strv_release(&headers);
    buf_release(&body);
}

static void second_on_findings(const struct store_result *r, void *arg)
{
    struct secondopinion *s = arg;
    struct buf shown = BUF_INIT(SECOND_EVIDENCE_MAX), masked = BUF_INIT(2 * SECOND_EVIDENCE_MAX);
    bool is_there = false;
    s->read = NULL;
    if (s->closing)
        return;
    for (size_t i = 0; i < r->nfindings && !r->err.code; i++)
        if (r->findings[i].k == s->now.attempt)
            is_there = second_evidence(r->findings[i].body, &shown);
    if (is_there)
        mask_text(&s->now.mask, buf_str(&shown), &masked);
    if (!is_there || masked.failed)
        second_fail(s, "its finding cannot be read");
    else
        second_send(s, buf_str(&masked));
    buf_release(&shown);
    buf_release(&masked);
}

/* ---- its job ---- */

static void second_look(struct secondopinion *s);

/* It counts from now on, whether the model answers or not. */
static void second_ask_about(struct secondopinion *s, const struct job *job)
{
    struct store_then then = {.done = second_on_findings, .arg = s};
    s->now.user = xstrdup(job->user);
    secondbook_ask(&s->book, job->user);
    s->told.asked++;
    s->told.asked_at = clock_wall();
    second_save(s);
    hiding_add(s->a, job, &s->now.mask);
    s->read = store_list_findings(s->a->store, s->now.job_seq, &then);
}

/* Its user has had his share: the next finding is looked at at once, so that those of others do not
 * wait for all of his. */
static void second_pass_over(struct secondopinion *s)
{
    s->told.passed_over++;
    second_drop(s);
    second_look(s);
}

static void second_on_job(const struct store_result *r, void *arg)
{
    struct secondopinion *s = arg;
    struct record_extra extra = {0};
    struct job *job = NULL;
    s->read = NULL;
    if (s->closing)
        return;
    if (r->err.code || r->njobs != 1 || record_to_job(&r->jobs[0], &job, &extra, NULL) < 0) {
        second_fail(s, "its job cannot be read");
        return;
    }
    if (second_may_spend(s, job->user))
        second_ask_about(s, job);
    else
        second_pass_over(s);
    job_free(job);
    record_extra_release(&extra);
}

/* ---- which findings ---- */

static bool second_wants(const struct secondopinion *s,
                         const struct store_event *e,
                         int64_t *ret_attempt)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (!e->data || !e->job || e->at + SECOND_PAST < clock_wall() ||
        json_parse(e->data, strlen(e->data), SECOND_BODY_MAX, &o, NULL) < 0)
        return false;
    *ret_attempt = json_get_int(o, "attempt", 0);
    return second_is_unsure(json_get_str(o, "class", NULL), json_get_real(o, "confidence", 0),
                            s->a->settings->second_below);
}

static void second_begin(struct secondopinion *s, const struct store_event *e, int64_t attempt)
{
    struct store_then then = {.done = second_on_job, .arg = s};
    s->now = (struct second_ask){.event = e->seq,
                                 .job_seq = e->job_seq,
                                 .attempt = attempt,
                                 .job = xstrdup(e->job),
                                 .is_there = true};
    second_save(s); /* it was looked at, whatever comes of it */
    struct store_job_ref ref = {.ref = s->now.job, .is_id = true};
    s->read = store_find_job(s->a->store, &ref, &then);
}

static void second_on_events(const struct store_result *r, void *arg)
{
    struct secondopinion *s = arg;
    int64_t attempt = 0;
    s->read = NULL;
    if (s->closing || r->err.code)
        return;
    secondbook_turn(&s->book, clock_wall());
    for (size_t i = 0; i < r->nevents && !s->now.is_there; i++) {
        s->seen = r->events[i].seq;
        if (!second_wants(s, &r->events[i], &attempt))
            continue;
        if (second_may_spend(s, NULL))
            second_begin(s, &r->events[i], attempt);
        else
            s->told.passed_over++;
    }
    if (r->nevents < SECOND_EVENTS && !s->now.is_there && s->through > s->seen)
        s->seen = s->through;
    if (r->nevents && !s->now.is_there)
        second_save(s);
}

static void second_look(struct secondopinion *s)
{
    if (s->closing || s->read || s->now.is_there || s->seen >= events_last(s->a->events))
        return;
    struct store_then then = {.done = second_on_events, .arg = s};
    s->through = events_last(s->a->events);
    struct store_event_query q = {.since = s->seen, .kinds = "finding", .limit = SECOND_EVENTS};
    s->read = store_list_events(s->a->store, &q, &then);
}

static void second_on_tick(uv_timer_t *timer)
{
    second_look(timer->data);
}

/* ---- life ---- */

struct secondopinion *secondopinion_new(struct api *a)
{
    struct secondopinion *s = xcalloc(1, sizeof(*s));
    const struct settings *set = a->settings;
    struct wire_options opt = {.loop = a->loop,
                               .user_agent = "argus/" ARGUS_VERSION,
                               .ca_file = set->second_ca_file,
                               .connect_timeout = SECOND_CONNECT,
                               .parallel_max = 1,
                               .reach = REACH_NAMED,
                               .networks = &set->call_networks};
    struct err err = {0};
    s->a = a;
    if (set->second_url && wire_new(&opt, &s->wire, &err) < 0)
        log_err("agent", "no model can be asked: %s", err.text);
    return s;
}

void secondopinion_restore(struct secondopinion *s, const struct store_entry *row)
{
    s->has_seen = field_from_text(&kept_table, row->body, FIELD_STORED, s);
    if (!s->has_seen)
        log_err("agent", "the store's row of second opinions cannot be read");
}

/* What was found while nobody was to be asked is past. */
void secondopinion_start(struct secondopinion *s)
{
    if (!s->wire)
        return;
    if (!s->has_seen)
        s->seen = events_last(s->a->events);
    uv_timer_init(s->a->loop, &s->timer);
    s->timer.data = s;
    s->has_timer = true;
    uv_timer_start(&s->timer, second_on_tick, SECOND_TICK_MS, SECOND_TICK_MS);
}

void secondopinion_close(struct secondopinion *s)
{
    if (!s || s->closing)
        return;
    s->closing = true;
    if (s->has_timer)
        uv_close((uv_handle_t *)&s->timer, NULL);
    if (s->read)
        store_read_cancel(s->read);
    s->read = NULL;
    wire_free(s->wire);
    s->wire = NULL;
    second_drop(s);
}

void secondopinion_free(struct secondopinion *s)
{
    if (s)
        secondbook_release(&s->book);
    free(s);
}

void secondopinion_state(const struct secondopinion *s, struct secondopinion_state *ret)
{
    const struct settings *set = s->a->settings;
    int64_t left = set->second_per_hour - s->book.questions,
            tokens = set->second_tokens_per_day - s->book.tokens;
    usec_t now = clock_wall();
    *ret = s->told;
    ret->model = s->wire ? set->second_model : NULL;
    ret->left_in_hour = now >= s->book.hour + USEC_HOUR ? set->second_per_hour
                        : left > 0                      ? left
                                                        : 0;
    ret->tokens_left = now >= s->book.day + USEC_DAY ? set->second_tokens_per_day
                       : tokens > 0                  ? tokens
                                                     : 0;
    ret->trouble = s->trouble;
}
