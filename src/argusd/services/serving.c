/* SPDX-License-Identifier: Apache-2.0 */
/* serving.c - see serving.h: which services there are, which version has the traffic, and how many
 * replicas each version is to have. What a replica does is serving_units.c's. */
#include "argusd/services/serving.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/content/registry.h"
#include "argusd/services/serving_state.h"
#include "argusd/submit/submit.h"
#include "argusd/web/changes.h"
#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { TICK_MS = 1000, NUMBER_MAX = 32 };

/* ---- who is told ---- */

struct access_thing service_thing(const struct served *s)
{
    return (struct access_thing){
        .kind = ACCESS_KIND_SERVICE, .name = s->name, .owner = s->owner, .project = s->project};
}

bool service_is_seen(const struct served *s, const struct access_who *who)
{
    const struct access_thing thing = service_thing(s);
    return access_check(who, ACCESS_SERVICE_SEE, "see", &thing, NULL) == 0;
}

void serving_note(const struct served *s, const struct serving_said *said)
{
    struct access_thing thing = service_thing(s);
    char object[SERVICE_NAME_MAX + 16];
    text_printf(object, "service/%s", s->name);
    struct events_note note = {.kind = said->kind,
                               .actor = said->actor,
                               .from = said->from,
                               .to = said->to,
                               .code = said->code,
                               .text = said->text,
                               .thing = &thing,
                               .object = object};
    events_add(s->serving->a->events, &note, clock_wall());
}

static void serving_note_version(const struct served *s,
                                 const char *kind,
                                 const char *actor,
                                 int64_t from,
                                 int64_t to)
{
    char before[NUMBER_MAX], after[NUMBER_MAX], text[JOB_REASON_TEXT_MAX];
    text_printf(before, "v%" PRId64, from);
    text_printf(after, "v%" PRId64, to);
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_NUM("version", to)));
    serving_note(s, &(struct serving_said){.kind = kind,
                                           .actor = actor,
                                           .from = from ? before : NULL,
                                           .to = to ? after : NULL,
                                           .code = kind,
                                           .text = text});
}

/* ---- finding ---- */

const struct served *serving_find(const struct serving *sv, const char *name)
{
    return map_find(sv->by_name, name);
}

const struct served *serving_next(const struct serving *sv, size_t *pos)
{
    return map_next(sv->by_name, pos, NULL);
}

static struct service_version *service_version_of(const struct served *s, int64_t n)
{
    for (size_t i = 0; i < s->n_versions; i++)
        if (s->versions[i]->n == n)
            return s->versions[i];
    return NULL;
}

const struct service_version *service_find_version(const struct served *s, int64_t n)
{
    return service_version_of(s, n);
}

struct served *serving_own(struct serving *sv, const struct served *s)
{
    return map_find(sv->by_name, s->name);
}

void service_changed(struct served *s)
{
    s->changed_at = clock_wall();
    serving_save(s);
}

/* ---- deploy ---- */

int serving_fill_name(struct serve_ask *ask, struct err *err)
{
    char made[SERVE_NAME_MAX + 1], text[256];
    if (!ask->name) {
        text_copy(text, ask->spec.model ? ask->spec.model : ask->spec.app);
        text[strcspn(text, "@:")] = '\0';
        serve_name_make(text, made);
        set_str(&ask->name, made);
    }
    return serve_name_check(ask->name, err);
}

/* Room for one more: the oldest that nobody needs goes. */
static int service_make_room(struct served *s, struct err *err)
{
    for (size_t i = s->n_versions; s->n_versions == SERVICE_VERSIONS_MAX && i--;) {
        struct service_version *v = s->versions[i];
        if (v->n != s->current && v->n != s->wanted && v->n != s->previous && !v->n_units)
            serving_drop_version(v);
    }
    if (s->n_versions < SERVICE_VERSIONS_MAX)
        return 0;
    return message_refuse(err, ERR_BUSY, "serve_versions_full",
                          MESSAGE_ARGS(MESSAGE_NUM("most", SERVICE_VERSIONS_MAX)));
}

/* Another number is meant where the form has another one than before: a scale in between stays. */
void service_take_replicas(struct served *s, const struct service_version *v)
{
    const struct service_version *old = service_find_version(s, s->current);
    bool is_first = !old || old == v || s->stopped;
    if (v->model_job && !is_first)
        return; /* what serves meanwhile is not its business */
    if (is_first || old->spec.replicas != v->spec.replicas ||
        old->spec.max_replicas != v->spec.max_replicas)
        s->replicas = v->spec.replicas;
}

/* What is said of the service holds once the version takes the traffic: one that comes to nothing
 * leaves the service as it was. */
static void service_keep_said(struct service_version *v, const struct serve_ask *ask)
{
    v->sets_keep = ask->says_keep;
    v->keep = ask->keep;
    v->sets_idle = ask->idle != NULL;
    v->idle = ask->idle_for;
}

/* What deploys said before is said anew. */
static void service_take_keep(struct served *s, int keep)
{
    for (size_t i = 0; i < s->n_versions; i++)
        if (s->versions[i]->sets_keep) {
            s->versions[i]->sets_keep = false;
            serving_save_version(s->versions[i]);
        }
    s->keep = keep;
    if (keep == SERVE_KEEP_NONE)
        s->previous = 0;
}

static void service_take_said(const struct service_version *v)
{
    if (v->sets_keep)
        service_take_keep(v->of, v->keep);
    if (v->sets_idle)
        service_take_idle(v->of, v->idle, v->user);
}

static void service_add_version(struct served *s,
                                const struct http_principal *p,
                                struct serve_ask *taken,
                                const struct registry_entry *e)
{
    struct service_version *v = xcalloc(1, sizeof(*v));
    v->n = ++s->last;
    v->user = xstrdup(p->user);
    v->spec = taken->spec;
    taken->spec = (struct serve_spec){0};
    v->created_at = clock_wall();
    v->unlisted = true;
    v->of = s;
    if (v->n > 1) /* a new service has them already */
        service_keep_said(v, taken);
    if (e)
        serving_take_model(v, e);
    for (size_t i = s->n_versions++; i > 0; i--)
        s->versions[i] = s->versions[i - 1];
    s->versions[0] = v;
    s->wanted = v->n;
    service_take_replicas(s, v);
    s->stopped = false;
    serving_save_version(v);
    service_changed(s);
    serving_note_version(s, "service_deployed", p->user, s->current, v->n);
}

static struct served *serving_make(struct serving *sv,
                                   const struct http_principal *p,
                                   struct serve_ask *ask)
{
    struct served *s = xcalloc(1, sizeof(*s));
    s->serving = sv;
    s->name = xstrdup(ask->name);
    s->owner = xstrdup(p->user);
    s->project = xstrdup(ask->project);
    s->keep = ask->keep;
    s->idle = ask->idle_for;
    s->created_at = clock_wall();
    (void)map_set(sv->by_name, s->name, s); /* there was none */
    return s;
}

/* The project whose members may call and change it; e: its model, NULL: an application. */
static const char *serving_project(const struct served *s,
                                   const struct serve_ask *ask,
                                   const struct registry_entry *e)
{
    if (s)
        return s->project;
    if (!ask->project && e && !e->is_common && e->project && *e->project)
        return e->project;
    return str_or(ask->project, ACCESS_DEFAULT_PROJECT);
}

/* Whether there may be one more, of this user. */
static int serving_check_room(const struct serving *sv, const char *user, struct err *err)
{
    const struct served *s;
    size_t his = 0;
    if (map_count(sv->by_name) >= SERVICES_MAX)
        return message_refuse(err, ERR_REFUSED, "services_full",
                              MESSAGE_ARGS(MESSAGE_NUM("most", SERVICES_MAX)));
    for (size_t pos = 0; (s = serving_next(sv, &pos));)
        his += str_eq(s->owner, user);
    return his < SERVICES_OF_USER_MAX
               ? 0
               : message_refuse(err, ERR_REFUSED, "services_of_user_full",
                                MESSAGE_ARGS(MESSAGE_NUM("most", SERVICES_OF_USER_MAX)));
}

/* Ray Serve has one application of a name, and others' are not touched. */
static int serving_check_stranger(const struct serving *sv,
                                  const struct served *s,
                                  const struct serve_ask *ask,
                                  struct err *err)
{
    const char *app = serving_stranger(sv, s ? s->name : ask->name, s ? s->last + 1 : 1);
    return !app ? 0
                : message_refuse(err, ERR_CONFLICT, "serve_app_taken",
                                 MESSAGE_ARGS(MESSAGE_STR("app", app)));
}

int serving_check_made(struct serving *sv,
                       const struct http_principal *p,
                       const struct served *s,
                       const struct serve_ask *ask,
                       const struct registry_entry *e,
                       struct err *err)
{
    struct access_who who;
    const char *project = serving_project(s, ask, e);
    if (!serving_is_able(sv))
        return message_refuse(err, ERR_UNAVAILABLE, "serve_unable",
                              MESSAGE_ARGS(MESSAGE_OF("why", sv->code, sv->text)));
    int r = serve_idle_check(ask->idle_for, sv->a->settings->serve_idle_least, err);
    if (r < 0)
        return r;
    if (s && ask->project && !str_eq(ask->project, s->project))
        return message_refuse(
            err, ERR_CONFLICT, "serve_other_project",
            MESSAGE_ARGS(MESSAGE_STR("service", s->name), MESSAGE_STR("project", s->project)));
    r = serving_check_stranger(sv, s, ask, err);
    if (r == 0 && e)
        r = serving_check_model(p, project, e, err);
    people_who(sv->a->people, p, &who);
    if (r == 0)
        r = access_check_submit(&who, project, err);
    return r == 0 && !s ? serving_check_room(sv, p->user, err) : r;
}

int serving_deploy(struct serving *sv,
                   const struct http_principal *p,
                   const struct served *old,
                   struct serve_ask *taken,
                   const struct served **ret,
                   struct err *err)
{
    struct served *s = old ? serving_own(sv, old) : NULL;
    struct registry_entry *e = NULL;
    int r = serving_find_model(sv, p, taken, &e, err);
    if (r == 0)
        r = serving_check_made(sv, p, s, taken, e, err);
    if (r == 0 && s)
        r = service_make_room(s, err);
    if (r < 0)
        return r;
    if (!s && !taken->project)
        set_str(&taken->project, serving_project(NULL, taken, e));
    s = s ? s : serving_make(sv, p, taken);
    service_add_version(s, p, taken, e);
    *ret = s;
    return 0;
}

/* ---- what people change ---- */

static void service_set_replicas(struct served *s, int64_t replicas, const char *actor)
{
    char before[NUMBER_MAX], after[NUMBER_MAX];
    text_printf(before, "%" PRId64, s->replicas);
    text_printf(after, "%" PRId64, replicas);
    serving_yield_scaled(s, s->replicas - replicas);
    s->replicas = replicas;
    service_changed(s);
    serving_note(s, &(struct serving_said){
                        .kind = "service_scaled", .actor = actor, .from = before, .to = after});
}

int serving_scale(struct serving *sv,
                  const struct served *service,
                  int64_t replicas,
                  const char *actor,
                  struct err *err)
{
    struct served *s = serving_own(sv, service);
    const struct service_version *v = service_version_of(s, s->wanted ? s->wanted : s->current);
    int64_t most = v && v->spec.max_replicas ? v->spec.max_replicas : SERVE_REPLICAS_MAX;
    int64_t least = v && v->spec.max_replicas ? v->spec.min_replicas : 1;
    if (replicas < least || replicas > most)
        return message_refuse(err, ERR_BAD_SPEC, "serve_scale",
                              MESSAGE_ARGS(MESSAGE_NUM("least", least), MESSAGE_NUM("most", most)));
    service_set_replicas(s, replicas, actor);
    return 0;
}

static void service_switch(struct service_version *v, const char *kind, const char *actor)
{
    struct served *s = v->of;
    const int64_t to = v->n;
    serving_note_version(s, kind, actor, s->current, to);
    service_take_said(v);
    if (to != s->current) { /* else a deploy is called off, and what was before it stays */
        s->previous = s->keep == SERVE_KEEP_NONE ? 0 : s->current;
        s->asleep_at = s->woken_at = 0;
        s->quiet_since = clock_mono();
    }
    s->current = to;
    s->wanted = 0;
    s->switched_at = clock_wall();
    service_changed(s);
}

void service_version_see(const struct service_version *v, struct serve_version_seen *ret)
{
    *ret = (struct serve_version_seen){.failed = v->failed,
                                       .awaits = v->model_job != NULL,
                                       .sleeps = service_version_sleeps(v),
                                       .was_ready = v->ready_at != 0};
    for (size_t i = 0; i < v->n_units; i++) {
        ret->wanted += !v->units[i]->leaves;
        ret->ready += v->units[i]->state == SERVE_UNIT_READY;
        ret->loading +=
            v->units[i]->state == SERVE_UNIT_LOADING || v->units[i]->state == SERVE_UNIT_CHECKING;
    }
}

int64_t service_version_requests(const struct service_version *v)
{
    int64_t requests = 0;
    for (size_t i = 0; i < v->n_units; i++)
        requests += v->units[i]->requests;
    return requests;
}

static bool service_version_is_ready(const struct served *s, const struct service_version *v)
{
    struct serve_version_seen seen;
    service_version_see(v, &seen);
    return !seen.failed && seen.ready > 0 && seen.ready >= s->replicas;
}

int serving_roll_back(struct serving *sv,
                      const struct served *service,
                      int64_t n,
                      const char *actor,
                      struct err *err)
{
    struct served *s = serving_own(sv, service);
    struct service_version *v = service_version_of(s, n ? n : s->previous);
    char name[NUMBER_MAX];
    text_printf(name, "v%" PRId64, n);
    if (!v)
        return message_refuse(err, ERR_NOT_FOUND, n ? "not_found" : "serve_no_previous",
                              MESSAGE_ARGS(MESSAGE_STR("noun", n ? "version" : ""),
                                           MESSAGE_STR("name", n ? name : s->name)));
    if (v->n == s->current && !s->stopped && !s->wanted)
        return message_refuse(err, ERR_CONFLICT, "serve_has_traffic",
                              MESSAGE_ARGS(MESSAGE_NUM("version", v->n)));
    v->failed = false;
    for (size_t i = 0; i < v->n_units; i++)
        v->units[i]->failures = 0;
    serving_save_version(v);
    s->stopped = false;
    bool goes_on_asleep = s->asleep_at && v->n == s->current;
    if (goes_on_asleep || service_version_is_ready(s, v)) {
        if (v->n != s->current) /* else a deploy is called off, and what was given stays given */
            s->yields_to = 0;   /* there is room for both */
        service_switch(v, "service_rolled_back", actor);
        return 0;
    }
    serving_note_version(s, "service_rolling_back", actor, s->current, v->n);
    serving_yield_begin(s, v);
    s->wanted = v->n == s->current ? 0 : v->n;
    service_changed(s);
    return 0;
}

void serving_stop(struct serving *sv, const struct served *service, const char *actor)
{
    struct served *s = serving_own(sv, service);
    if (s->stopped)
        return;
    s->stopped = true;
    s->wanted = 0;
    s->asleep_at = s->woken_at = 0;
    service_changed(s);
    serving_note(s, &(struct serving_said){.kind = "service_stopped", .actor = actor});
}

void serving_undo_deploy(struct serving *sv,
                         const struct service_version *v,
                         const struct service_before *before,
                         const char *actor)
{
    struct served *s = serving_own(sv, v->of);
    if (before->replicas && s->replicas != before->replicas && s->replicas == v->spec.replicas)
        service_set_replicas(s, before->replicas, actor);
    bool stops = before->stopped;
    if (!stops && s->wanted == v->n)
        stops = !s->current || serving_roll_back(sv, s, s->current, actor, NULL) < 0;
    if (stops)
        serving_stop(sv, s, actor);
}

void serving_remove(struct serving *sv, const struct served *service, const char *actor)
{
    struct served *s = serving_own(sv, service);
    serving_stop(sv, s, actor);
    service_keys_remove_all(sv->a->service_keys, s->name);
    s->removed = true;
    service_changed(s);
}

void serving_set_keep(struct serving *sv, const struct served *service, int keep)
{
    struct served *s = serving_own(sv, service);
    service_take_keep(s, keep);
    service_changed(s);
}

/* ---- what is due ---- */

/* A rollback has the leases first where there is no room for both. */
static int64_t service_has_left(const struct served *s, const struct service_version *v)
{
    int64_t given = serving_yielded(v);
    return given < s->replicas ? s->replicas - given : 0;
}

static int64_t service_wants(const struct served *s, const struct service_version *v)
{
    /* What is warm comes after what has the traffic, where both are to be loaded again. */
    bool warm = serving_is_warm(v) && !s->woken_at;
    if (s->stopped || v->failed || v->model_job)
        return 0;
    if (s->asleep_at)
        return v->n == s->wanted ? s->replicas : 0;
    return v->n == s->current || v->n == s->wanted || warm ? service_has_left(s, v) : 0;
}

static int64_t service_free_number(const struct service_version *v)
{
    for (int64_t k = 1;; k++) {
        size_t i = 0;
        while (i < v->n_units && v->units[i]->k != k)
            i++;
        if (i == v->n_units)
            return k;
    }
}

bool service_unit_goes_first(const struct service_unit *a, const struct service_unit *b)
{
    bool ready_a = a->state == SERVE_UNIT_READY, ready_b = b->state == SERVE_UNIT_READY;
    return ready_a != ready_b ? ready_b : a->k > b->k;
}

static struct service_unit *service_last_unit(const struct service_version *v)
{
    struct service_unit *last = NULL;
    for (size_t i = 0; i < v->n_units; i++) {
        struct service_unit *u = v->units[i];
        if (!u->leaves && (!last || service_unit_goes_first(u, last)))
            last = u;
    }
    return last;
}

static void service_fit_units(struct service_version *v, int64_t wanted)
{
    int64_t there = 0;
    for (size_t i = 0; i < v->n_units; i++)
        there += !v->units[i]->leaves;
    for (; there < wanted && serving_add_unit(v, service_free_number(v)); there++)
        ;
    for (; there > wanted; there--)
        serving_release(service_last_unit(v));
}

void serving_give_up(struct service_version *v, const char *code, const char *text)
{
    v->failed = true;
    set_str(&v->code, code);
    set_str(&v->text, text);
    serving_save_version(v);
    serving_note(
        v->of, &(struct serving_said){
                   .kind = "service_failed", .actor = "argusd", .code = v->code, .text = v->text});
}

/* Somebody else's application has its name, which had not been seen when it was deployed. */
static void service_look_for_stranger(struct service_version *v)
{
    char text[JOB_REASON_TEXT_MAX];
    const char *app =
        v->unlisted && !v->failed ? serving_stranger(v->of->serving, v->of->name, v->n) : NULL;
    if (!app)
        return;
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("app", app)));
    serving_give_up(v, "serve_app_taken", text);
}

bool service_may_give_up(const struct service_version *v)
{
    return !v->ready_at || serving_yield_is_at_stake(v);
}

/* It was never ready, or another version has made way for it, and its replicas fail again and
 * again; or its model came to nothing. */
static void service_look_for_failure(struct service_version *v)
{
    service_look_for_stranger(v);
    for (size_t i = 0; service_may_give_up(v) && !v->failed && i < v->n_units; i++) {
        const struct service_unit *u = v->units[i];
        if (u->leaves || u->failures < SERVE_FAILURES_MAX)
            continue;
        serving_give_up(v, u->reason.code, u->reason.text);
    }
    if (v->failed && v->of->wanted == v->n) {
        v->of->wanted = 0;
        service_changed(v->of);
    }
}

static void service_turn_version(struct service_version *v, usec_t now)
{
    serving_turn_model(v);
    service_fit_units(v, service_wants(v->of, v));
    for (size_t i = v->n_units; i--;)
        serving_turn_unit(v->units[i], now);
    service_look_for_failure(v);
    if (!v->ready_at && service_version_is_ready(v->of, v)) {
        v->ready_at = clock_wall();
        serving_save_version(v);
    }
}

bool service_is_changing(const struct served *s)
{
    const struct service_version *next = service_find_version(s, s->wanted);
    return next && !next->model_job;
}

static void service_turn_scale(struct served *s, usec_t now)
{
    const struct service_version *v = service_version_of(s, s->current);
    if (!v || service_is_changing(s) || s->stopped || s->asleep_at || s->woken_at)
        return;
    s->load += ((double)service_version_requests(v) - s->load) / 3;
    int64_t wanted = serve_scale_next(&s->scale, &v->spec, s->replicas, s->load, now);
    if (wanted != s->replicas)
        service_set_replicas(s, wanted, "argusd");
}

static void service_turn_down(struct served *s, usec_t now)
{
    const struct service_version *v = service_version_of(s, s->current);
    bool is_down = v && !s->stopped && !s->removed && !s->asleep_at && !service_version_answers(v);
    if (!is_down)
        s->down_since = 0;
    else if (!s->down_since)
        s->down_since = now;
}

size_t serving_down(const struct serving *sv, usec_t *ret_longest)
{
    const struct served *s;
    const usec_t now = clock_mono();
    size_t n = 0;
    *ret_longest = 0;
    for (size_t pos = 0; (s = serving_next(sv, &pos));) {
        usec_t span = s->down_since && now > s->down_since ? now - s->down_since : 0;
        n += s->down_since != 0;
        *ret_longest = span > *ret_longest ? span : *ret_longest;
    }
    return n;
}

/* Followers of changes hear of it, where it is not as it was at the last turn. */
static void service_tell(struct served *s)
{
    static const unsigned char seed[16];
    uint64_t mark = hash_keyed(seed, &s->changed_at, sizeof(s->changed_at));
    for (size_t i = 0; i < s->n_versions; i++) {
        const struct service_version *v = s->versions[i];
        for (size_t k = 0; k < v->n_units; k++) {
            const struct service_unit *u = v->units[k];
            const struct {
                int64_t n, k, state;
            } shown = {v->n, u->k, (int64_t)u->state};
            mark = 31 * mark + hash_keyed(seed, &shown, sizeof(shown)) +
                   hash_keyed(seed, u->reason.text, strlen(u->reason.text)) +
                   (u->job ? hash_keyed(seed, u->job, strlen(u->job)) : 0);
        }
        mark = 31 * mark + (uint64_t)v->failed +
               (v->model_job ? hash_keyed(seed, v->model_job, strlen(v->model_job)) : 0);
    }
    if (mark != s->mark)
        changes_tell_service(s->serving->a->changes, s->name, s->owner, s->project);
    s->mark = mark;
}

static bool service_has_units(const struct served *s)
{
    for (size_t i = 0; i < s->n_versions; i++)
        if (s->versions[i]->n_units)
            return true;
    return false;
}

/* Rows of versions that nobody can go back to. */
static void service_forget_old(struct served *s)
{
    for (size_t i = s->n_versions; s->keep == SERVE_KEEP_NONE && i--;) {
        struct service_version *v = s->versions[i];
        if (v->n != s->current && v->n != s->wanted && !v->n_units && !v->failed)
            serving_drop_version(v);
    }
}

static void service_turn(struct served *s, usec_t now)
{
    for (size_t i = 0; i < s->n_versions; i++)
        service_turn_version(s->versions[i], now);
    struct service_version *v = service_version_of(s, s->wanted);
    if (v && (service_version_is_ready(s, v) || serving_yield_suffices(v)))
        service_switch(v, "service_switched", "argusd");
    serving_turn_yield(s);
    service_turn_scale(s, now);
    serving_turn_sleep(s, now);
    service_turn_down(s, now);
    service_forget_old(s);
    service_tell(s);
}

static void serving_drop(struct serving *sv, struct served *s)
{
    while (s->n_versions)
        serving_drop_version(s->versions[0]);
    store_remove_entry(sv->a->store, SERVING_ENTRY_SERVICE, s->name);
    changes_tell_service(sv->a->changes, s->name, s->owner, s->project);
    (void)map_remove(sv->by_name, s->name); /* it is s */
    service_free(s);
}

static void serving_on_tick(uv_timer_t *timer)
{
    struct serving *sv = timer->data;
    struct served *s;
    usec_t now = clock_mono();
    if (sv->closing || store_check(sv->a->store, NULL) < 0)
        return; /* nothing that is begun could be written down */
    for (size_t pos = 0; (s = map_next(sv->by_name, &pos, NULL));)
        service_turn(s, now);
    for (size_t pos = 0; (s = map_next(sv->by_name, &pos, NULL));)
        if (s->removed && !service_has_units(s) && !serving_list_has(sv, s)) {
            serving_drop(sv, s);
            break; /* the walk is over: one at a time */
        }
    serving_turn_list(sv, now);
}

/* ---- life ---- */

struct serving *serving_new(struct api *a)
{
    unsigned char seed[16];
    struct serving *sv = xcalloc(1, sizeof(*sv));
    random_bytes(seed, sizeof(seed));
    sv->a = a;
    sv->by_name = map_new(seed);
    sv->gates = map_new(seed);
    return sv;
}

int serving_open(struct serving *sv, struct err *err)
{
    return serving_open_doors(sv, err);
}

void serving_start(struct serving *sv)
{
    (void)uv_timer_init(sv->a->loop, &sv->timer); /* never fails */
    sv->timer.data = sv;
    sv->started = true;
    (void)uv_timer_start(&sv->timer, serving_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void serving_close(struct serving *sv)
{
    struct served *s;
    if (!sv || sv->closing)
        return;
    sv->closing = true;
    for (size_t pos = 0; (s = map_next(sv->by_name, &pos, NULL));)
        for (size_t i = 0; i < s->n_versions; i++)
            for (size_t k = 0; k < s->versions[i]->n_units; k++) {
                submit_own_forget(s->versions[i]->units[k]->submit);
                s->versions[i]->units[k]->submit = NULL;
            }
    serving_list_cancel(sv);
    if (sv->started)
        uv_close((uv_handle_t *)&sv->timer, NULL);
}

void serving_unplug(struct serving *sv)
{
    if (sv)
        serving_close_doors(sv);
}

void serving_free(struct serving *sv)
{
    struct served *s;
    void *gate;
    if (!sv)
        return;
    for (size_t pos = 0; (s = map_next(sv->by_name, &pos, NULL));)
        service_free(s);
    for (size_t pos = 0; (gate = map_next(sv->gates, &pos, NULL));)
        free(gate);
    map_free(sv->by_name);
    map_free(sv->gates);
    serve_look_release(&sv->look);
    strv_release(&sv->strangers);
    free(sv->list);
    free(sv->key_line);
    free(sv);
}
