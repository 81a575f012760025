/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - the table of live jobs; see jobs.h.
 *
 * Invariant: a job is here exactly while its state is not terminal, or its end is not
 * on disk, or somebody's asynchronous work still points at it (`busy`); the scheduler
 * holds it as waiting or as a lease, never both. Only jobs_durable() and jobs_sweep()
 * take jobs out of the table, and they are called from the loop alone: so every walk is
 * safe. */
#include "argusd/jobs/census.h"
#include "argusd/jobs/due.h"
#include "argusd/jobs/foresight.h"
#include "argusd/jobs/jobs_state.h"
#include "argusd/jobs/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

struct jobs *jobs_new(const struct jobs_parts *parts)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct jobs *js = xcalloc(1, sizeof(*js));
    *js = (struct jobs){.p = *parts,
                        .store = parts->store,
                        .sched = parts->sched,
                        .by_id = map_new(seed),
                        .by_ray = map_new(seed),
                        .next_seq = parts->next_seq};
    js->act_tail = &js->act_first;
    (void)clock_boot_id(js->boot_id);
    const struct moment now = jobs_moment(js);
    js->wall_then = now.wall;
    js->boot_then = now.boot;
    js->foresight = foresight_new(js);
    js->due = due_new();
    js->lanes = lanes_new();
    jobs_metrics_init(js);
    js->census = census_new(seed);
    return js;
}

static void live_free(struct live *l)
{
    for (struct jobs_waiter *w = l->waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    record_extra_release(&l->extra);
    free(l->needs);
    job_free(l->job);
    for (size_t i = 0; l->kept && i < LIVE_SLOTS; i++)
        free(l->kept[i]);
    free(l->kept);
    free(l);
}

void *live_keep(struct live *l, enum live_slot slot, size_t size)
{
    if (!l->kept)
        l->kept = xcalloc(LIVE_SLOTS, sizeof(*l->kept));
    if (!l->kept[slot])
        l->kept[slot] = xcalloc(1, size);
    return l->kept[slot];
}

const void *live_kept(const struct live *l, enum live_slot slot)
{
    return l->kept ? l->kept[slot] : NULL;
}

void jobs_free(struct jobs *js)
{
    if (!js)
        return;
    struct live *l;
    for (size_t pos = 0; (l = map_next(js->by_id, &pos, NULL));)
        live_free(l);
    map_free(js->by_id);
    map_free(js->by_ray);
    foresight_free(js->foresight);
    due_free(js->due);
    lanes_free(js->lanes);
    census_free(js->census);
    free(js);
}

int64_t jobs_next_seq(struct jobs *js)
{
    return js->next_seq++;
}

/* ---- looking up ---- */

struct live *jobs_find_id(const struct jobs *js, const char *id)
{
    struct live *l = map_find(js->by_id, id);
    return l && !l->over ? l : NULL;
}

struct live *jobs_find_any(const struct jobs *js, const char *id)
{
    return map_find(js->by_id, id);
}

/* The newest trial of a job that still waits for it. */
static bool needs_trial(const struct jobs *js, const char *ray_id)
{
    struct live *l;
    for (size_t pos = 0; (l = jobs_next_untried(js, &pos));) {
        if (!str_starts(ray_id, l->job->id))
            continue;
        _cleanup_(freep) char *id = job_trial_id(l->job);
        if (!strcmp(id, ray_id))
            return true;
    }
    return false;
}

bool jobs_needs_ray(const struct jobs *js, const char *ray_id)
{
    if (str_ends(ray_id, "-trial"))
        return needs_trial(js, ray_id);
    const struct live *l = map_find(js->by_ray, ray_id);
    const struct attempt *a = l ? job_attempt(l->job) : NULL;
    return a && (l->act_queued || (a->phase != ATTEMPT_ABANDONED && str_eq(a->ray_id, ray_id)));
}

struct live *jobs_next(const struct jobs *js, size_t *pos)
{
    struct live *l;
    while ((l = map_next(js->by_id, pos, NULL)) && l->over)
        ;
    return l;
}

struct live *jobs_next_placed(const struct jobs *js, size_t *pos)
{
    return due_next(js->due, LIVE_PLACED, pos);
}

struct live *jobs_next_untried(const struct jobs *js, size_t *pos)
{
    return due_next(js->due, LIVE_UNTRIED, pos);
}

struct live *jobs_next_changed(const struct jobs *js, size_t *pos)
{
    return due_next(js->due, LIVE_CHANGED, pos);
}

void jobs_look(struct jobs *js, usec_t now)
{
    due_look(js->due, now);
}

void jobs_seen(struct live *l)
{
    due_seen(l->jobs->due, l);
}

void jobs_look_later(struct live *l, usec_t at)
{
    due_look_later(l->jobs->due, l, at);
}

usec_t jobs_oldest_wait(const struct jobs *js)
{
    return due_oldest(js->due);
}

void jobs_each_due(struct jobs *js, void (*tick)(struct live *l, void *arg), void *arg)
{
    struct live *l;
    const struct moment now = jobs_moment(js);
    for (size_t pos = 0; (l = due_next(js->due, LIVE_PLACED, &pos));)
        tick(l, arg);
    for (size_t pos = 0; (l = due_next_awaited(js->due, &pos));)
        tick(l, arg);
    while ((l = due_take(js->due, &now)))
        tick(l, arg);
}

void jobs_follow_due(struct live *l)
{
    const struct moment now = jobs_moment(l->jobs);
    due_follow(l->jobs->due, l, &now);
}

size_t jobs_count(const struct jobs *js, enum job_state state)
{
    return js->counts[state];
}

bool jobs_may_have(const struct jobs *js,
                   const char *cluster,
                   const char *pool,
                   const char *workload)
{
    return census_has(js->census, cluster, pool, workload);
}

const struct sched *jobs_sched(const struct jobs *js)
{
    return js->sched;
}

/* ---- time ---- */

struct moment jobs_moment(const struct jobs *js)
{
    return clock_moment(js->boot_id);
}

usec_t jobs_now(const struct jobs *js)
{
    return js->wall_then + (jobs_moment(js).boot - js->boot_then);
}

usec_t jobs_to_wall(const struct jobs *js, usec_t at)
{
    return at ? at + (clock_wall() - jobs_now(js)) : 0;
}

/* Now, or a moment ago: what is heard of late happened then. */
static struct moment moment_at(const struct jobs *js, usec_t wall)
{
    struct moment m = jobs_moment(js);
    usec_t ago = m.wall > wall ? m.wall - wall : 0;
    m.boot -= ago < m.boot ? ago : m.boot;
    m.wall = wall;
    return m;
}

usec_t jobs_in_state(const struct live *l)
{
    struct moment now = jobs_moment(l->jobs);
    return stopwatch_read(&l->job->watch, &now);
}

/* ---- storing ---- */

static void jobs_put(struct live *l, bool is_new)
{
    struct jobs *js = l->jobs;
    struct buf detail = BUF_INIT(RECORD_DETAIL_MAX);
    struct store_job row;
    record_detail(l->job, &l->extra, &detail);
    record_job_row(l->job, &l->extra, detail.failed ? NULL : buf_str(&detail), &row);
    if (is_new) {
        row.spec = str_or(l->extra.sealed_spec, row.spec);
        store_put_job(js->store, &row);
        freep(&l->extra.sealed_spec);
    } else {
        store_update_job(js->store, &row);
    }
    buf_release(&detail);
}

static void put_attempt(struct live *l)
{
    const struct attempt *a = job_attempt(l->job);
    if (!a)
        return;
    struct buf detail = BUF_INIT(RECORD_ATTEMPT_MAX);
    struct store_attempt row;
    record_attempt_row(l->job, a, &detail, &row);
    store_put_attempt(l->jobs->store, &row);
    buf_release(&detail);
}

/* What is said of the job itself is filled in. */
static void jobs_add_event(struct live *l, struct events_note note, const char *samples, usec_t now)
{
    _cleanup_(freep) char *data = xasprintf("{\"attempt\":%d%s%s}", l->job->n_attempts,
                                            samples ? ",\"samples\":" : "", str_or(samples, ""));
    note.job_seq = l->job->seq;
    note.job = l->job->id;
    note.data = l->job->n_attempts ? data : NULL;
    note.to = note.from ? job_state_to_string(l->job->state) : NULL;
    events_add(l->jobs->p.events, &note, now);
}

static void jobs_tell(struct live *l, struct events_note note, const char *samples, usec_t now)
{
    char said[JOB_REASON_TEXT_MAX];
    message_to_string(note.code, note.text, true, said, sizeof(said));
    log_info("job", "%s: %s job=%s", note.kind, said, l->job->id);
    jobs_add_event(l, note, samples, now);
}

void jobs_note_by(struct live *l,
                  const char *kind,
                  const char *actor,
                  const char *code,
                  const char *text,
                  usec_t now)
{
    struct events_note note = {.kind = kind, .actor = actor, .code = code, .text = text};
    jobs_tell(l, note, NULL, now);
}

void jobs_note_samples(struct live *l,
                       const char *kind,
                       const char *code,
                       const char *text,
                       const char *samples,
                       usec_t now)
{
    struct events_note note = {.kind = kind, .actor = "argusd", .code = code, .text = text};
    jobs_tell(l, note, samples, now);
}

void jobs_note(struct live *l, const char *kind, const char *code, const char *text, usec_t now)
{
    jobs_note_by(l, kind, "argusd", code, text, now);
}

static void follow_state(struct live *l, enum job_state before)
{
    const struct job *j = l->job;
    struct jobs *js = l->jobs;
    if (before != j->state) {
        js->counts[before]--;
        if (!job_state_is_terminal(j->state))
            js->counts[j->state]++;
    }
    queue_follow(l, before);
}

/* ---- waiters ---- */

void jobs_wake(struct live *l)
{
    struct jobs_waiter *w;
    while ((w = l->waiters)) { /* one at a time: a call may take others back */
        jobs_wait_f cb = w->cb;
        void *arg = w->arg;
        l->waiters = w->next;
        free(w);
        cb(arg);
    }
}

struct jobs_waiter *jobs_wait(struct live *l, jobs_wait_f cb, void *arg)
{
    struct jobs_waiter *w = xcalloc(1, sizeof(*w));
    struct reason told;
    *w = (struct jobs_waiter){.next = l->waiters, .live = l, .cb = cb, .arg = arg};
    jobs_reason(l, &told, &w->told_position);
    memcpy(w->told_code, told.code, sizeof(w->told_code));
    l->waiters = w;
    jobs_follow_due(l);
    return w;
}

void jobs_unwait(struct jobs_waiter *w)
{
    if (!w)
        return;
    for (struct jobs_waiter **p = &w->live->waiters; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            free(w);
            return;
        }
}

/* ---- acting after the commit ---- */

static void append_act(struct live *l)
{
    struct jobs *js = l->jobs;
    l->act_queued = true;
    l->act_next = NULL;
    *js->act_tail = l;
    js->act_tail = &l->act_next;
    jobs_busy(l);
}

static void queue_act(struct live *l)
{
    l->act_batch = store_batch(l->jobs->store);
    if (!l->act_queued)
        append_act(l);
}

static void unlink_ray(struct live *l)
{
    for (int i = 0; i < l->job->n_attempts; i++)
        if (map_find(l->jobs->by_ray, l->job->attempts[i].ray_id) == l)
            map_remove(l->jobs->by_ray, l->job->attempts[i].ray_id);
}

void jobs_sweep(struct jobs *js)
{
    uint64_t batch = store_durable(js->store);
    if (foresight_is_looking(js->foresight))
        return;
    for (struct live **p = &js->ended; *p;) {
        struct live *l = *p;
        if (l->busy || l->end_batch > batch) {
            p = &l->ended_next;
            continue;
        }
        *p = l->ended_next;
        unlink_ray(l);
        due_forget(js->due, l);
        census_remove(js->census, l->job);
        map_remove(js->by_id, l->job->id);
        live_free(l);
    }
    due_tidy(js->due);
}

void jobs_durable(struct jobs *js, uint64_t batch)
{
    struct live *l = js->act_first;
    /* Only what is queued now: acting may queue the same job again. */
    js->act_first = NULL;
    js->act_tail = &js->act_first;
    while (l) {
        struct live *next = l->act_next;
        l->act_queued = false;
        if (l->act_batch > batch)
            append_act(l);
        else
            js->p.ops.act(l, js->p.ops.arg);
        jobs_idle(l);
        l = next;
    }
    jobs_sweep(js);
    if (js->admit_soon) {
        js->admit_soon = false;
        jobs_admit(js, clock_wall());
    }
}

void jobs_busy(struct live *l)
{
    l->busy++;
}

void jobs_idle(struct live *l)
{
    l->busy--;
}

void jobs_keep(struct live *l)
{
    jobs_put(l, false);
}

void jobs_save(struct live *l)
{
    jobs_put(l, false);
    jobs_wake(l);
    queue_act(l);
}

void jobs_amend(struct live *l)
{
    jobs_put(l, false);
    if (l->over)
        l->end_batch = store_batch(l->jobs->store);
    jobs_wake(l);
}

/* ---- changes ---- */

static void link_ray(struct live *l)
{
    const struct attempt *a = job_attempt(l->job);
    if (a)
        map_set(l->jobs->by_ray, a->ray_id, l);
}

struct live *jobs_add(struct jobs *js,
                      struct job *taken,
                      struct record_extra *taken_extra,
                      usec_t now)
{
    struct live *l = xcalloc(1, sizeof(*l));
    l->job = taken;
    l->extra = *taken_extra;
    *taken_extra = (struct record_extra){0};
    l->jobs = js;
    map_set(js->by_id, taken->id, l);
    census_add(js->census, taken);
    js->counts[JOB_QUEUED]++;
    struct moment m = moment_at(js, now);
    stopwatch_start(&taken->watch, &m);
    jobs_put(l, true);
    struct events_note note = {.kind = "submitted",
                               .actor = taken->user,
                               .job_seq = taken->seq,
                               .job = taken->id,
                               .to = job_state_to_string(JOB_QUEUED)};
    events_add(js->p.events, &note, now);
    queue_enter(l);
    jobs_follow_due(l);
    return l;
}

void jobs_respec(struct live *l,
                 const struct job_respec *to,
                 const char *sealed,
                 const char *warnings)
{
    struct jobs *js = l->jobs;
    struct job *j = l->job;
    census_remove(js->census, j);
    set_str(&j->pool, str_or(to->pool, ""));
    census_add(js->census, j);
    job_set_spec(j, to->text);
    j->demand = *to->demand;
    j->limits = to->limits;
    j->priority = to->priority;
    set_str(&l->extra.warnings, warnings);
    jobs_put(l, false);
    store_respec_job(js->store, j->seq, j->pool, str_or(sealed, j->spec));
    queue_enter(l);
    js->admit_soon = true;
    foresight_touch(js->foresight);
    jobs_wake(l);
    jobs_follow_due(l);
}

static void log_change(const struct live *l, const char *kind, const char *from)
{
    const struct job *j = l->job;
    char text[JOB_REASON_TEXT_MAX];
    const struct reason *why = job_state_reason(j);
    message_to_string(why->code, why->text, true, text, sizeof(text));
    log_info("job", "%s: %s -> %s%s%s job=%s node=%s", kind, from, job_state_to_string(j->state),
             *text ? ": " : "", text, j->id, str_or(gang_driver(&j->gang), "-"));
}

static void end_live(struct live *l)
{
    struct jobs *js = l->jobs;
    l->over = true;
    if (js->p.ops.ended)
        js->p.ops.ended(l, js->p.ops.arg);
    l->end_batch = store_batch(js->store);
    l->ended_next = js->ended;
    js->ended = l;
}

bool jobs_apply(struct live *l, const struct job_event *e, const char *actor, usec_t now)
{
    struct job *j = l->job;
    enum job_state before = j->state;
    struct moment m = moment_at(l->jobs, now);
    if (l->over || !job_apply(j, e, &m))
        return false;
    const char *from = job_state_to_string(before), *kind = job_event_to_string(e->kind);
    if (e->kind == JOB_EV_ADMITTED)
        link_ray(l);
    queue_settle(l);
    jobs_put(l, false);
    put_attempt(l);
    struct reason why;
    job_event_cause(j, e, &why);
    struct events_note note = {
        .kind = kind, .actor = actor, .from = from, .code = why.code, .text = why.text};
    jobs_add_event(l, note, NULL, now);
    log_change(l, kind, from);
    follow_state(l, before);
    if (e->kind == JOB_EV_ACCEPTED)
        l->accepted_at = clock_mono();
    jobs_metrics_count(l, e->kind, now);
    jobs_wake(l);
    queue_act(l);
    if (job_state_is_terminal(j->state))
        end_live(l);
    jobs_follow_due(l);
    return true;
}

/* ---- at start ---- */

void jobs_restore(struct jobs *js, struct job *taken, const struct record_extra *taken_extra)
{
    struct live *l = xcalloc(1, sizeof(*l));
    l->job = taken;
    l->extra = *taken_extra;
    l->jobs = js;
    l->has_dir = taken->n_attempts > 0;
    map_set(js->by_id, taken->id, l);
    census_add(js->census, taken);
    js->counts[taken->state]++;
    const char *broken = job_check(taken);
    if (broken)
        log_err("job", "the store holds a job that cannot be: %s job=%s", broken, taken->id);
    queue_restore(l);
    if (taken->state != JOB_QUEUED)
        l->restored_attempts = taken->n_attempts;
    link_ray(l);
    jobs_follow_due(l);
    if (taken->n_attempts)
        queue_act(l);
}

void jobs_restored(struct jobs *js)
{
    foresight_learn(js->foresight);
}
