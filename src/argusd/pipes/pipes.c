/* SPDX-License-Identifier: Apache-2.0 */
/* pipes.c - see pipes.h: the tables, which run begins and which waits, and the clock. */
#include "argusd/pipes/pipes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/pipes/pipes_state.h"
#include "argusd/trackers/trackers.h"
#include "argusd/web/changes.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { TICK_MS = 1000, NUMBER_TEXT = 32, RUN_NAME_MAX = 40 };

/* ---- who is told ---- */

struct access_thing pipeline_thing(const struct pipeline *p)
{
    return (struct access_thing){
        .kind = ACCESS_KIND_PIPELINE, .name = p->name, .owner = p->owner, .project = p->project};
}

struct access_thing pipe_life_thing(const struct pipe_life *r)
{
    return (struct access_thing){
        .kind = ACCESS_KIND_PIPELINE, .name = r->id, .owner = r->user, .project = r->project};
}

void pipes_note(const struct pipe_life *r, const struct pipes_said *said)
{
    struct access_thing thing = pipe_life_thing(r);
    char object[RUN_NAME_MAX + NUMBER_TEXT + PIPE_NAME_MAX + 24];
    text_printf(object, "pipeline/%s%s%s", r->id, said->item ? "/" : "", str_or(said->item, ""));
    struct events_note note = {.kind = said->kind,
                               .actor = said->actor,
                               .from = said->from,
                               .to = said->to,
                               .code = said->code,
                               .text = said->text,
                               .thing = &thing,
                               .object = object};
    events_add(r->pipes->a->events, &note, clock_wall());
}

/* ---- pipelines ---- */

const struct pipeline *pipes_find(const struct pipes *ps, const char *owner, const char *name)
{
    _cleanup_(freep) char *key = pipes_key(owner, name);
    return map_find(ps->by_key, key);
}

const struct pipeline *pipes_next(const struct pipes *ps, size_t *pos)
{
    return map_next(ps->by_key, pos, NULL);
}

static size_t pipes_count_of(const struct pipes *ps, const char *owner)
{
    const struct pipeline *p;
    size_t n = 0;
    for (size_t pos = 0; (p = pipes_next(ps, &pos));)
        n += str_eq(p->owner, owner);
    return n;
}

int pipes_put(struct pipes *ps,
              const char *owner,
              const char *project,
              const char *text,
              const struct pipeline **ret,
              struct problems *problems,
              struct err *err)
{
    unsigned char hash[HASH_BYTES];
    struct pipe *pipe = pipes_read_text(text, problems);
    if (!pipe)
        return ERR_BAD_SPEC;
    _cleanup_(freep) char *key = pipes_key(owner, pipe->name);
    struct pipeline *old = map_find(ps->by_key, key);
    if (!old && pipes_count_of(ps, owner) >= PIPES_OF_USER_MAX) {
        pipe_free(pipe);
        return message_refuse(err, ERR_REFUSED, "pipelines_full",
                              MESSAGE_ARGS(MESSAGE_NUM("most", PIPES_OF_USER_MAX)));
    }
    struct pipeline *p = old ? old : xcalloc(1, sizeof(*p));
    pipe_free(p->pipe);
    p->pipe = pipe;
    set_str(&p->name, pipe->name);
    set_str(&p->owner, owner);
    set_str(&p->project, project);
    set_str(&p->text, text);
    hash_sha256(text, strlen(text), hash);
    (void)str_hex(hash, sizeof(hash), p->hash);
    p->changed_at = clock_wall();
    p->created_at = old ? p->created_at : p->changed_at;
    if (!old)
        (void)map_set(ps->by_key, key, p); /* there was none */
    pipes_save(ps, p);
    *ret = p;
    return 0;
}

void pipes_remove(struct pipes *ps, const struct pipeline *p)
{
    _cleanup_(freep) char *key = pipes_key(p->owner, p->name);
    struct pipeline *gone = map_remove(ps->by_key, key);
    store_remove_entry(ps->a->store, PIPES_ENTRY_PIPELINE, key);
    changes_tell_pipeline(ps->a->changes, p->name, p->owner, p->project);
    pipeline_free(gone);
}

/* ---- runs ---- */

struct pipes_share {
    const char *user;
    size_t ended;
};

/* The user who has most runs that are over; NULL: none is. */
static const char *pipes_greatest(const struct pipes *ps)
{
    _cleanup_(freep) struct pipes_share *v = xcalloc(ps->n_order + 1, sizeof(*v));
    const struct pipes_share *most = NULL;
    size_t n = 0;
    for (size_t i = 0; i < ps->n_order; i++) {
        const struct pipe_life *r = ps->order[i];
        size_t at = 0;
        if (!r->ended_at)
            continue;
        while (at < n && !str_eq(v[at].user, r->user))
            at++;
        n += at == n;
        v[at].user = r->user;
        v[at].ended++;
        if (!most || v[at].ended > most->ended)
            most = &v[at];
    }
    return most ? most->user : NULL;
}

/* Where there are too many the oldest that is over goes, of who has most of them: nobody's runs
 * take those of others away. */
static void pipes_prune(struct pipes *ps)
{
    const char *user = ps->n_order > PIPES_RUNS_MAX ? pipes_greatest(ps) : NULL;
    for (size_t i = 0; user && i < ps->n_order; i++) {
        struct pipe_life *r = ps->order[i];
        if (!r->ended_at || !str_eq(r->user, user))
            continue;
        memmove(&ps->order[i], &ps->order[i + 1],
                (ps->n_order - i - 1) * sizeof(struct pipe_life *));
        ps->n_order--;
        (void)map_remove(ps->runs, r->id); /* it was there */
        store_remove_entry(ps->a->store, PIPES_ENTRY_RUN, r->id);
        pipe_life_free(r);
        return;
    }
}

const struct pipe_life *pipes_find_run(const struct pipes *ps, const char *id)
{
    return map_find(ps->runs, id);
}

const struct pipe_life *pipes_next_run(const struct pipes *ps, size_t *pos)
{
    return *pos < ps->n_order ? ps->order[ps->n_order - ++*pos] : NULL;
}

static bool pipes_is_live(const struct pipe_life *r)
{
    return !r->ended_at;
}

static bool pipes_is_sibling(const struct pipe_life *r, const char *owner, const char *name)
{
    return pipes_is_live(r) && str_eq(r->owner, owner) && str_eq(r->pipeline, name);
}

/* The oldest live run of this pipeline. */
static const struct pipe_life *pipes_find_sibling(const struct pipes *ps,
                                                  const char *owner,
                                                  const char *name)
{
    for (size_t i = 0; i < ps->n_order; i++)
        if (pipes_is_sibling(ps->order[i], owner, name))
            return ps->order[i];
    return NULL;
}

static size_t pipes_count_live(const struct pipes *ps, const char *user)
{
    size_t n = 0;
    for (size_t i = 0; i < ps->n_order; i++)
        n += pipes_is_live(ps->order[i]) && str_eq(ps->order[i]->user, user);
    return n;
}

/* May one more go on? Beside those of this pipeline, and those of this user. */
static int pipes_check_room(const struct pipes *ps,
                            const struct pipe *pipe,
                            const char *owner,
                            const char *user,
                            struct err *err)
{
    if (pipes_count_live(ps, user) >= PIPES_LIVE_RUNS_MAX)
        return message_refuse(err, ERR_REFUSED, "pipe_runs_full",
                              MESSAGE_ARGS(MESSAGE_NUM("most", PIPES_LIVE_RUNS_MAX)));
    const struct pipe_life *other = pipes_find_sibling(ps, owner, pipe->name);
    if (other && pipe->concurrency == PIPE_SKIP)
        return message_refuse(err, ERR_CONFLICT, "pipe_run_skipped",
                              MESSAGE_ARGS(MESSAGE_STR("run", other->id)));
    return 0;
}

static int pipes_check_run(const struct pipes *ps,
                           const struct pipes_start_ask *ask,
                           struct err *err)
{
    const struct pipeline *p = ask->pipeline;
    if (!p->pipe)
        return message_refuse(err, ERR_REFUSED, "pipe_unreadable",
                              MESSAGE_ARGS(MESSAGE_STR("pipe", p->name)));
    return pipes_check_room(ps, p->pipe, p->owner, ask->user, err);
}

static void pipes_number(struct pipes *ps, struct pipe_life *r)
{
    char text[NUMBER_TEXT];
    r->number = ++ps->last_number;
    r->id = xasprintf("%.*s-%" PRId64, RUN_NAME_MAX, r->pipeline, r->number);
    text_printf(text, "%" PRId64, ps->last_number);
    struct store_entry row = {
        .kind = PIPES_ENTRY_LAST, .name = "run", .body = text, .at = clock_wall()};
    store_put_entry(ps->a->store, &row);
}

static void pipes_start_run(struct pipe_life *r)
{
    r->started_at = clock_wall();
    r->state = PIPE_RUNNING;
    pipes_note(r,
               &(struct pipes_said){.kind = "pipeline_started", .actor = r->user, .to = "RUNNING"});
    pipes_save_run(r);
    pipes_drive(r);
}

/* Is another run of its pipeline older, or under way? A retry has its old number and may wait for a
 * newer run. */
static bool pipes_has_to_wait(const struct pipe_life *r)
{
    const struct pipes *ps = r->pipes;
    for (size_t i = 0; i < ps->n_order; i++) {
        const struct pipe_life *other = ps->order[i];
        if (other != r && (other->number < r->number || other->started_at) &&
            pipes_is_sibling(other, r->owner, r->pipeline))
            return true;
    }
    return false;
}

static void pipes_start_if_free(struct pipe_life *r)
{
    if (!r->started_at && (r->pipe->concurrency == PIPE_ALLOW || !pipes_has_to_wait(r)))
        pipes_start_run(r);
}

static void pipes_cancel_others(const struct pipe_life *r)
{
    struct pipes *ps = r->pipes;
    for (size_t i = 0; i < ps->n_order; i++)
        if (ps->order[i] != r && pipes_is_sibling(ps->order[i], r->owner, r->pipeline))
            (void)pipes_cancel(ps, ps->order[i], r->user); /* it may be cancelled already */
}

int pipes_make_run(struct pipes *ps,
                   const struct pipes_start_ask *ask,
                   struct pipe_life **ret,
                   struct problems *problems,
                   struct err *err)
{
    const struct pipeline *p = ask->pipeline;
    json_t *params = NULL;
    int x = pipes_check_run(ps, ask, err);
    if (x == 0)
        x = pipe_fill_params(p->pipe, ask->params, &params, problems);
    if (x < 0)
        return x;
    struct pipe_life *r = xcalloc(1, sizeof(*r));
    r->pipes = ps;
    r->pipeline = xstrdup(p->name);
    r->owner = xstrdup(p->owner);
    r->user = xstrdup(ask->user);
    r->project = xstrdup(p->project);
    r->text = xstrdup(p->text);
    r->params = json_dumps(params, JSON_COMPACT);
    json_decref(params);
    r->force = ask->force;
    r->by_schedule = ask->by_schedule;
    r->created_at = clock_wall();
    r->pipe = pipes_read_text(r->text, problems);
    assert(r->pipe); /* the pipeline was read from it */
    pipes_check_jobs(r, problems);
    if (problems->errors) {
        pipe_life_free(r);
        return ERR_BAD_SPEC;
    }
    *ret = r;
    return 0;
}

int pipes_run(struct pipes *ps,
              const struct pipes_start_ask *ask,
              const struct pipe_life **ret,
              struct problems *problems,
              struct err *err)
{
    struct pipe_life *r = NULL;
    int x = pipes_make_run(ps, ask, &r, problems, err);
    if (x < 0)
        return x;
    pipes_number(ps, r);
    pipes_add_run(ps, r);
    pipes_open_run(r);
    pipes_save_run(r);
    if (r->pipe->concurrency == PIPE_REPLACE)
        pipes_cancel_others(r);
    pipes_start_if_free(r);
    pipes_prune(ps);
    *ret = r;
    return 0;
}

/* The first step that failed, and its job; NULL: none did. Writes its arguments. */
static const char *pipes_say_failed(const struct pipe_life *r,
                                    char text[static JOB_REASON_TEXT_MAX])
{
    size_t i = 0;
    while (i < r->run.n && r->run.v[i].state != PIPE_FAILED)
        i++;
    if (i == r->run.n)
        return NULL;
    const struct pipe_item *failed = &r->run.v[i];
    if (failed->job)
        message_write(
            text, JOB_REASON_TEXT_MAX,
            MESSAGE_ARGS(MESSAGE_STR("step", failed->name), MESSAGE_STR("job", failed->job)));
    else
        message_write(text, JOB_REASON_TEXT_MAX, MESSAGE_ARGS(MESSAGE_STR("step", failed->name)));
    return failed->job ? "pipe_failed_job" : "pipe_failed_step";
}

/* The jobs' runs in trackers: how it ended, and with which step. What an earlier run made is that
 * one's. */
static void pipes_tell_trackers(const struct pipe_life *r)
{
    size_t at = 0;
    while (at < r->run.n && (r->state == PIPE_SUCCEEDED || r->run.v[at].state != r->state))
        at++;
    const char *word = pipe_state_names[r->state];
    _cleanup_(freep) char *end =
        at < r->run.n ? xasprintf("%s: %s", word, r->run.v[at].name) : xstrdup(word);
    for (size_t i = 0; i < r->run.n; i++) {
        const struct pipe_item *item = &r->run.v[i];
        if (item->job && !item->cached)
            trackers_tell_pipeline(r->pipes->a->trackers, item->job, r->id, item->name, end);
    }
}

void pipes_run_over(struct pipe_life *r)
{
    char text[JOB_REASON_TEXT_MAX] = "";
    struct pipes *ps = r->pipes;
    r->state = (int)pipe_run_state(&r->run);
    r->ended_at = clock_wall();
    ps->n_live--;
    const char *code = r->state == PIPE_FAILED ? pipes_say_failed(r, text) : NULL;
    pipes_note(r, &(struct pipes_said){.kind = "pipeline_ended",
                                       .actor = "argusd",
                                       .from = "RUNNING",
                                       .to = pipe_state_names[r->state],
                                       .code = code,
                                       .text = code ? text : NULL});
    pipes_save_run(r);
    pipes_tell_trackers(r);
}

/* The ones whose turn it may be now. */
static void pipes_start_waiting(struct pipes *ps)
{
    for (size_t i = 0; i < ps->n_order; i++)
        if (pipes_is_live(ps->order[i]) && !ps->order[i]->started_at)
            pipes_start_if_free(ps->order[i]);
}

bool pipes_cancel(struct pipes *ps, const struct pipe_life *run, const char *actor)
{
    struct pipe_life *r = map_find(ps->runs, run->id);
    if (!pipes_is_live(r) || r->cancelled)
        return false;
    r->cancelled = true;
    r->started_at = r->started_at ? r->started_at : clock_wall();
    pipes_note(r, &(struct pipes_said){.kind = "pipeline_cancelled", .actor = actor});
    pipe_run_cancel(&r->run, clock_wall());
    pipes_stop_jobs(r, actor);
    pipes_save_run(r);
    pipes_drive(r);
    return true;
}

static int pipes_check_step(const struct pipe_life *r,
                            const char *step,
                            const struct pipe_step **ret_step,
                            struct err *err)
{
    const char *names[PIPE_STEPS_MAX];
    *ret_step = step ? pipe_find_step(r->pipe, step) : NULL;
    if (!step || *ret_step)
        return 0;
    for (size_t i = 0; i < r->pipe->n_steps; i++)
        names[i] = r->pipe->steps[i].name;
    const char *near = str_nearest(step, names, r->pipe->n_steps);
    return message_refuse(
        err, ERR_NOT_FOUND, "pipe_step_unknown",
        MESSAGE_ARGS(MESSAGE_STR("step", step), MESSAGE_STR("near", str_or(near, ""))));
}

/* The parameters of the run with the given ones in their place. */
static int pipes_edit_params(const struct pipe_life *r,
                             json_t *given,
                             json_t **ret,
                             struct problems *problems)
{
    if (!json_is_object(given) || !json_object_size(given)) {
        *ret = NULL;
        return 0;
    }
    _cleanup_(json_unrefp) json_t *all = json_copy(r->run.params);
    (void)json_object_update(all, given); /* both are objects */
    return pipe_fill_params(r->pipe, all, ret, problems);
}

int pipes_check_retry(const struct pipe_life *r,
                      const struct pipes_retry_ask *ask,
                      const struct pipe_step **ret_step,
                      json_t **ret_params,
                      struct problems *problems,
                      struct err *err)
{
    if (pipes_is_live(r))
        return message_refuse(err, ERR_CONFLICT, "pipe_run_not_over",
                              MESSAGE_ARGS(MESSAGE_STR("run", r->id)));
    if (!r->pipe)
        return message_refuse(err, ERR_REFUSED, "pipe_unreadable",
                              MESSAGE_ARGS(MESSAGE_STR("pipe", r->pipeline)));
    int x = pipes_check_step(r, ask->step, ret_step, err);
    if (x == 0)
        x = pipes_check_room(r->pipes, r->pipe, r->owner, r->user, err);
    return x < 0 ? x : pipes_edit_params(r, ask->params, ret_params, problems);
}

void pipes_wait_again(struct pipe_life *r, int step, json_t *taken_params)
{
    char *text = taken_params ? json_dumps(taken_params, JSON_COMPACT) : NULL;
    if (text)
        set_str(&r->params, text);
    free(text);
    pipe_run_again(&r->run, step, taken_params);
}

int pipes_retry(struct pipes *ps,
                const struct pipe_life *run,
                const struct pipes_retry_ask *ask,
                const char *actor,
                struct problems *problems,
                struct err *err)
{
    struct pipe_life *r = map_find(ps->runs, run->id);
    const struct pipe_step *s = NULL;
    json_t *params = NULL;
    int x = pipes_check_retry(r, ask, &s, &params, problems, err);
    if (x < 0)
        return x;
    pipes_wait_again(r, s ? (int)(s - r->pipe->steps) : -1, params);
    r->force = ask->force;
    r->cancelled = false;
    r->ended_at = r->started_at = 0;
    r->state = PIPE_WAITING;
    ps->n_live++;
    pipes_note(r,
               &(struct pipes_said){.kind = "pipeline_retried", .actor = actor, .item = ask->step});
    pipes_save_run(r);
    if (r->pipe->concurrency == PIPE_REPLACE)
        pipes_cancel_others(r);
    pipes_start_if_free(r);
    return 0;
}

/* ---- life ---- */

static void pipes_on_tick(uv_timer_t *timer)
{
    struct pipes *ps = timer->data;
    usec_t now = clock_wall();
    if (store_check(ps->a->store, NULL) < 0)
        return; /* nothing that is begun could be written down */
    pipes_look_at_schedules(ps, now);
    for (size_t i = 0; ps->n_live && i < ps->n_order; i++)
        if (pipes_is_live(ps->order[i]) && ps->order[i]->started_at)
            pipes_look(ps->order[i]);
    if (ps->n_live)
        pipes_start_waiting(ps);
}

struct pipes *pipes_new(struct api *a)
{
    unsigned char seed[16];
    struct pipes *ps = xcalloc(1, sizeof(*ps));
    random_bytes(seed, sizeof(seed));
    ps->a = a;
    ps->by_key = map_new(seed);
    ps->runs = map_new(seed);
    ps->index = map_new(seed);
    return ps;
}

void pipes_start(struct pipes *ps)
{
    (void)uv_timer_init(ps->a->loop, &ps->timer); /* never fails */
    ps->timer.data = ps;
    ps->started = true;
    for (size_t i = 0; i < ps->n_order; i++) {
        pipes_index_run(ps->order[i]); /* the oldest first: each goes before all others */
        if (ps->order[i]->number > ps->last_number)
            ps->last_number = ps->order[i]->number;
    }
    (void)uv_timer_start(&ps->timer, pipes_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void pipes_close(struct pipes *ps)
{
    if (!ps || ps->closing)
        return;
    ps->closing = true;
    for (size_t i = 0; i < ps->n_order; i++)
        for (size_t k = 0; k < ps->order[i]->run.n; k++)
            pipes_drop_work(ps->order[i], k);
    if (ps->started)
        uv_close((uv_handle_t *)&ps->timer, NULL);
}

void pipes_free(struct pipes *ps)
{
    struct pipeline *p;
    if (!ps)
        return;
    for (size_t pos = 0; (p = map_next(ps->by_key, &pos, NULL));)
        pipeline_free(p);
    for (size_t i = 0; i < ps->n_order; i++)
        pipe_life_free(ps->order[i]);
    map_free(ps->by_key);
    map_free(ps->runs);
    map_free(ps->index); /* each run has left it */
    free(ps->order);
    free(ps);
}
