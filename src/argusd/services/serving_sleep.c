/* SPDX-License-Identifier: Apache-2.0 */
/* serving_sleep.c - a service that nobody asks gives its machines back, and the next request wakes
 * it. A sleeping service has its version, its traffic and no replica; that it sleeps, and that it
 * is being woken, stands in its row. Since when nobody asks is in memory alone: a restart begins it
 * anew. What wakes goes the way of every replica: a lease first, in the queue. */
#include "argusd/services/serving_state.h"
#include "base/message.h"
#include "base/text.h"

bool service_version_sleeps(const struct service_version *v)
{
    return v->of->asleep_at && v->n == v->of->current;
}

/* ---- to sleep ---- */

static void sleep_begin(struct served *s, const struct service_version *v)
{
    char span[CLOCK_TEXT_MAX], text[JOB_REASON_TEXT_MAX];
    s->asleep_at = clock_wall();
    s->woken_at = 0;
    if (v->spec.max_replicas) /* it wakes as it was deployed, and scales from there */
        s->replicas = v->spec.replicas;
    s->scale = (struct serve_scale){0};
    s->load = 0;
    service_changed(s);
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("idle", span_to_string(s->idle, span))));
    serving_note(
        s, &(struct serving_said){
               .kind = "service_slept", .actor = "argusd", .code = "service_slept", .text = text});
}

static struct serve_idle_seen sleep_see(const struct served *s, const struct service_version *v)
{
    struct serve_idle_seen seen = {.idle = s->idle,
                                   .answers = service_version_answers(v),
                                   .is_changing = service_is_changing(s)};
    for (size_t i = 0; i < s->n_versions; i++)
        seen.requests += service_version_requests(s->versions[i]);
    return seen;
}

void serving_turn_sleep(struct served *s, usec_t now)
{
    const struct service_version *v = service_find_version(s, s->current);
    if (!v || s->stopped || s->asleep_at)
        return;
    const struct serve_idle_seen seen = sleep_see(s, v);
    if (s->woken_at && seen.answers) {
        s->woken_at = 0;
        service_changed(s);
    }
    if (serve_idle_is_over(&s->quiet_since, &seen, now))
        sleep_begin(s, v);
}

/* ---- to wake ---- */

static void sleep_end(struct served *s, const char *actor)
{
    const struct service_version *v = service_find_version(s, s->current);
    s->asleep_at = 0;
    s->woken_at = v && service_version_answers(v) ? 0 : clock_wall(); /* it has not let go yet */
    s->quiet_since = clock_mono();
    service_changed(s);
    serving_note(s, &(struct serving_said){.kind = "service_woken", .actor = actor});
}

int serving_wake(struct serving *sv,
                 const struct served *service,
                 const char *actor,
                 struct err *err)
{
    struct served *s = serving_own(sv, service);
    if (s->stopped)
        return message_refuse(err, ERR_CONFLICT, "serve_is_stopped",
                              MESSAGE_ARGS(MESSAGE_STR("service", s->name)));
    if (s->asleep_at)
        sleep_end(s, actor);
    return 0;
}

static const char *sleep_span(usec_t idle, char text[static CLOCK_TEXT_MAX])
{
    return idle ? span_to_string(idle, text) : "off";
}

void service_take_idle(struct served *s, usec_t idle, const char *actor)
{
    char before[CLOCK_TEXT_MAX], after[CLOCK_TEXT_MAX];
    for (size_t i = 0; i < s->n_versions; i++)
        if (s->versions[i]->sets_idle) {
            s->versions[i]->sets_idle = false;
            serving_save_version(s->versions[i]);
        }
    if (s->idle == idle)
        return;
    serving_note(s, &(struct serving_said){.kind = "service_idle",
                                           .actor = actor,
                                           .from = sleep_span(s->idle, before),
                                           .to = sleep_span(idle, after)});
    s->idle = idle;
    service_changed(s);
}

void serving_set_idle(struct serving *sv,
                      const struct served *service,
                      usec_t idle,
                      const char *actor)
{
    struct served *s = serving_own(sv, service);
    service_take_idle(s, idle, actor);
    if (!idle && s->asleep_at)
        sleep_end(s, actor);
}

/* ---- what is said ---- */

/* The replica of it that will answer first; NULL: there is none yet. */
static const struct service_unit *sleep_first_unit(const struct service_version *v)
{
    const struct service_unit *first = NULL;
    for (size_t i = 0; i < v->n_units; i++) {
        const struct service_unit *u = v->units[i];
        if (!u->leaves && u->state < SERVE_UNIT_READY && (!first || u->state > first->state))
            first = u;
    }
    return first;
}

/* How long it has held its lease; 0: it does not yet. */
static usec_t sleep_held_for(const struct service_unit *u, usec_t now)
{
    bool holds = u && u->state >= SERVE_UNIT_LOADING && u->held_at && now > u->held_at;
    return holds ? now - u->held_at : 0;
}

int64_t serving_load_left_s(const struct service_version *v, usec_t now)
{
    return serve_wake_left_s(v->load_took, sleep_held_for(sleep_first_unit(v), now));
}

static int sleep_refuse_queued(const struct service_version *v, const char *job, struct err *err)
{
    if (!v->load_took)
        return message_refuse(
            err, ERR_UNAVAILABLE, "serve_wakes_queued",
            MESSAGE_ARGS(MESSAGE_STR("service", v->of->name), MESSAGE_STR("lease", job)));
    return message_refuse(err, ERR_UNAVAILABLE, "serve_wakes_queued",
                          MESSAGE_ARGS(MESSAGE_STR("service", v->of->name),
                                       MESSAGE_STR("lease", job),
                                       MESSAGE_NUM("took", serve_wake_seconds(v->load_took))));
}

/* Without a lease, how long it is loaded then is all that can be said. */
static int sleep_refuse_loading(const struct service_version *v,
                                bool has_lease,
                                usec_t gone,
                                int64_t left,
                                struct err *err)
{
    const char *service = v->of->name;
    int64_t took = serve_wake_seconds(v->load_took);
    if (!v->load_took)
        return message_refuse(err, ERR_UNAVAILABLE, "serve_wakes",
                              MESSAGE_ARGS(MESSAGE_STR("service", service)));
    if (!has_lease)
        return message_refuse(
            err, ERR_UNAVAILABLE, "serve_wakes",
            MESSAGE_ARGS(MESSAGE_STR("service", service), MESSAGE_NUM("load", took)));
    if (gone >= v->load_took)
        return message_refuse(
            err, ERR_UNAVAILABLE, "serve_wakes",
            MESSAGE_ARGS(MESSAGE_STR("service", service), MESSAGE_NUM("took", took)));
    return message_refuse(err, ERR_UNAVAILABLE, "serve_wakes",
                          MESSAGE_ARGS(MESSAGE_STR("service", service), MESSAGE_NUM("took", took),
                                       MESSAGE_NUM("left", left)));
}

int serving_refuse_waking(const struct served *s, usec_t now, int64_t *ret_left, struct err *err)
{
    const struct service_version *v = service_find_version(s, s->current);
    if (!v || !s->woken_at || s->serving->code[0])
        return 0; /* Ray's trouble is said as it is */
    const struct service_unit *u = sleep_first_unit(v);
    bool is_queued = u && u->state == SERVE_UNIT_WAITING && u->job;
    bool has_lease = u && u->state >= SERVE_UNIT_LOADING;
    if (u && !is_queued && !has_lease && u->reason.code[0])
        return 0; /* it is not submitted, or its job ended: why is said as it is */
    usec_t gone = sleep_held_for(u, now);
    *ret_left = serve_wake_left_s(v->load_took, gone);
    return is_queued ? sleep_refuse_queued(v, u->job, err)
                     : sleep_refuse_loading(v, has_lease, gone, *ret_left, err);
}

void serving_say_asleep(const struct served *s, struct reason *ret)
{
    char since[CLOCK_TEXT_MAX];
    text_copy(ret->code, "serve_asleep");
    message_write(ret->text, sizeof(ret->text),
                  MESSAGE_ARGS(MESSAGE_STR("service", s->name),
                               MESSAGE_STR("since", clock_to_string(s->asleep_at, since))));
}
