/* SPDX-License-Identifier: Apache-2.0 */
/* watcher.c - the eyes on running jobs; see watcher.h.
 *
 * Two independent rounds (Ray's list, the files) update each job's `sight`; then
 * core/job/witness.c judges it. A silence is measured by our monotonic clock from when
 * we began to listen, so a restart of argusd or a jump of the wall clock can never
 * make a job look dead. */
#include "argusd/watch/watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/evidence/files.h"
#include "argusd/ground/foreign.h"
#include "argusd/launch/mark.h"
#include "argusd/launch/trials.h"
#include "argusd/watch/deadlines.h"
#include "argusd/watch/driverplace.h"
#include "argusd/watch/ending.h"
#include "argusd/watch/imports.h"
#include "argusd/watch/metrics.h"
#include "argusd/watch/sight.h"
#include "argusd/watch/silence.h"
#include "argusd/watch/stopper.h"
#include "base/log.h"
#include "base/str.h"
#include "core/job/witness.h"
#include "fsroot/attempt/witness.h"

enum { TICK_MS = 1000 };
static const usec_t LIST_EVERY_IDLE = 5 * USEC_SEC; /* nothing of ours runs */
static const usec_t FILES_HANG = 10 * USEC_SEC;     /* a round longer than this: blind */
static const usec_t PROOF_PATIENCE = 3 * USEC_SEC;  /* after the exit file was seen */
static const usec_t RAY_SILENT = 10 * USEC_SEC;     /* no list for so long: blind */
static const usec_t LIST_LAG =
    2 * USEC_SEC; /* a list may lack what was accepted so little before */
static const usec_t STOOD_STILL = 5 * USEC_SEC; /* no tick for so long: we were not listening */

struct watcher {
    struct watcher_parts p;
    struct stopper *stopper;
    struct deadlines deadlines;
    uv_timer_t timer;
    struct ray_call *list_call;
    usec_t list_at, list_started, heard_at; /* monotonic; heard_at: of the last good list */
    usec_t forgot_at;                       /* when Ray had last lost its head; 0: never seen */
    usec_t files_started;
    usec_t awake_at; /* monotonic: when this process last ran for certain */
    bool files_busy, look_again, closing;
    int handles;
};

/* ---- what was seen ---- */

static void see_ray(struct live *l, enum witness_ray ray, usec_t since)
{
    if (sight_of(l)->ray == ray && sight_of(l)->ray_since)
        return;
    sight_change(l)->ray = ray;
    sight_change(l)->ray_since = since;
}

static void see_files(struct live *l, enum witness_files files, usec_t now)
{
    if (sight_of(l)->files == files && sight_of(l)->files_since)
        return;
    sight_change(l)->files = files;
    sight_change(l)->files_since = now;
}

static void shift(usec_t *at, usec_t by)
{
    *at += *at ? by : 0;
}

/* This process stood still for a while (stopped, or its machine was): what it did not hear in that
 * time is nobody's silence. So every callback asks this before it judges. */
static void watcher_wake(struct watcher *w, usec_t now)
{
    struct live *l;
    usec_t still = now - w->awake_at;
    w->awake_at = now;
    if (still < STOOD_STILL)
        return;
    log_warn("watch", "argusd stood still for %d s: it looks again before it judges",
             (int)(still / USEC_SEC));
    if (w->p.head_gone(w->p.arg) <= w->heard_at)
        w->heard_at += still;
    shift(&w->files_started, still);
    for (size_t pos = 0; (l = jobs_next_placed(w->p.jobs, &pos));) {
        struct sight *s = sight_change(l);
        shift(&s->ray_since, still);
        shift(&s->files_since, still);
        shift(&s->beat_at, still);
    }
}

static void watcher_apply(struct live *l,
                          enum job_event_kind kind,
                          const char *code,
                          const char *text)
{
    struct job_event e = {.kind = kind, .code = code, .text = text};
    (void)jobs_apply(l, &e, "argusd", clock_wall()); /* too late is harmless */
}

static void see_again(const struct watcher *w, struct live *l)
{
    if (l->job->flags & JOB_FLAG_UNKNOWN)
        silence_end(w->p.findings, l);
}

/* ---- judging ---- */

static struct witness testimony(const struct live *l, usec_t now)
{
    const struct sight *s = sight_of(l);
    const struct attempt *a = job_attempt(l->job);
    return (struct witness){.ray = s->ray,
                            .ray_for = s->ray_since ? now - s->ray_since : 0,
                            .files = s->files,
                            .files_for = s->files_since ? now - s->files_since : 0,
                            .beat_age = s->beat_at ? now - s->beat_at : 0,
                            .was_blind = s->was_blind,
                            .is_unwatched = s->is_unwatched,
                            .was_running = a->phase == ATTEMPT_RUNNING,
                            .was_accepted = a->accepted_at != 0,
                            .is_stopping = l->job->state == JOB_STOPPING && stopper_has_written(l)};
}

/* Ray's record of a short run still has to tell where the driver was: v1's proof. It is
 * waited for a moment, and only while Ray answers. */
static bool awaits_proof(const struct live *l, usec_t now)
{
    const struct sight *s = sight_of(l);
    bool answers = !s->ray_since || s->ray == WITNESS_RAY_PENDING ||
                   s->ray == WITNESS_RAY_RUNNING || s->ray == WITNESS_RAY_OVER;
    return !job_proof(l->job)->checked_at && answers && now - s->files_since < PROOF_PATIENCE;
}

/* Its head was lost while it was there, under our eyes or before. */
static bool lost_its_head(const struct watcher *w, const struct live *l)
{
    const char *then = job_attempt(l->job)->session, *now = cluster_session(w->p.cluster);
    bool is_other = then && *now && strcmp(then, now) != 0;
    return is_other || sight_of(l)->ray == WITNESS_RAY_GONE ||
           (w->forgot_at && l->accepted_at < w->forgot_at);
}

static void watcher_judge(struct watcher *w, struct live *l, const struct fsroot_exit *x)
{
    usec_t now = clock_mono();
    struct witness heard = testimony(l, now);
    if (ending_is_awaited(l))
        return;
    switch (witness_judge(&heard)) {
    case WITNESS_EXITED:
        if (x && metrics_settle(w->p.metrics, l) && !awaits_proof(l, now))
            ending_by_exit(w->p.findings, w->p.metrics, l, x, lost_its_head(w, l));
        break;
    case WITNESS_STARTED:
        see_again(w, l);
        watcher_apply(l, JOB_EV_STARTED, NULL, NULL);
        break;
    case WITNESS_LOST:
        if (metrics_settle(w->p.metrics, l))
            ending_lost(w->p.findings, w->p.metrics, l, lost_its_head(w, l));
        break;
    case WITNESS_NEVER:
        watcher_apply(l, JOB_EV_REQUEUED, "ray_forgot_it",
                      "Ray has forgotten it before it ran; it goes back to its place in the queue");
        break;
    case WITNESS_UNKNOWN:
        silence_begin(w->p.findings, l);
        break;
    case WITNESS_WAIT:
        if (heard.ray == WITNESS_RAY_PENDING && heard.files != WITNESS_FILES_BLIND)
            see_again(w, l);
        break;
    }
}

/* ---- the round over Ray's list ---- */

static const struct ray_job *find_record(const struct ray_jobs *jobs, const char *ray_id)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (str_eq(jobs->v[i].submission_id, ray_id))
            return &jobs->v[i];
    return NULL;
}

static enum witness_ray ray_word(const struct ray_job *rj)
{
    if (!rj || ray_job_is_ghost(rj))
        return WITNESS_RAY_ABSENT;
    if (ray_job_status_is_terminal(rj->status))
        return WITNESS_RAY_OVER;
    return rj->status == RAY_JOB_RUNNING   ? WITNESS_RAY_RUNNING
           : rj->status == RAY_JOB_PENDING ? WITNESS_RAY_PENDING
                                           : WITNESS_RAY_BLIND;
}

static void look_at(struct watcher *w, struct live *l, const struct ray_jobs *jobs, usec_t now)
{
    const struct attempt *a = job_attempt(l->job);
    const struct ray_job *rj = find_record(jobs, a->ray_id);
    if (!rj && l->accepted_at && w->list_started < l->accepted_at + LIST_LAG)
        return; /* accepted while the list was on its way */
    see_ray(l, ray_word(rj), now);
    sight_change(l)->saw_exit = rj && rj->has_exit_code;
    bool has_place = rj && !ray_job_is_ghost(rj) && rj->driver_node_id;
    if (has_place && rj->status != RAY_JOB_PENDING)
        driverplace_check(w->p.cluster, l, rj);
}

/* Records that bear our mark and belong to no live attempt. */
static void clear_strays(struct watcher *w, const struct ray_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct ray_job *rj = &jobs->v[i];
        const char *job = mark_job(rj);
        if (!rj->is_submission || !job || !mark_is_ours(w->p.instance, rj) ||
            jobs_needs_ray(w->p.jobs, rj->submission_id) || !w->p.knows_id(job, w->p.arg))
            continue;
        if (pairs_find(&rj->metadata, "argus_trial")) {
            stopper_clear_trial(w->stopper, rj);
            continue;
        }
        int64_t k;
        if (str_to_int(str_or(pairs_find(&rj->metadata, "argus_attempt"), ""), 1, 1 << 20, &k,
                       NULL) < 0)
            k = 1; /* ours always has one */
        stopper_clear(w->stopper, job, (int)k, rj);
    }
}

/* Submissions of others, whose ids no job of ours can have, and drivers that nobody submitted: ours
 * are all submitted. */
static void note_foreign(const struct watcher *w, const struct ray_jobs *jobs)
{
    struct foreign_job *v = xcalloc(jobs->n + 1, sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        const struct ray_job *rj = &jobs->v[i];
        const char *ray_id = rj->is_submission ? rj->submission_id : rj->job_id;
        bool is_foreign = rj->is_submission
                              ? mark_is_foreign(w->p.instance, rj, w->p.knows_id, w->p.arg)
                              : ray_id != NULL;
        if (is_foreign)
            v[n++] = (struct foreign_job){.ray_id = xstrdup(ray_id),
                                          .job_id = xstrdup(rj->job_id),
                                          .node_id = xstrdup(rj->driver_node_id),
                                          .ip = xstrdup(rj->driver_ip),
                                          .is_submission = rj->is_submission,
                                          .is_live = !ray_job_status_is_terminal(rj->status)};
    }
    foreign_take_jobs(cluster_foreign(w->p.cluster), v, n, w->list_started);
}

static void on_list(const struct ray_jobs *jobs, const struct err *err, void *arg)
{
    struct watcher *w = arg;
    struct live *l;
    usec_t now = clock_mono();
    watcher_wake(w, now);
    w->list_call = NULL;
    w->list_at = now;
    if (!jobs) {
        log_debug("watch", "cannot read Ray's job list: %s", err->text);
        return;
    }
    w->heard_at = now;
    for (size_t pos = 0; (l = jobs_next_placed(w->p.jobs, &pos));)
        if (job_is_in_ray(l->job)) {
            jobs_busy(l);
            look_at(w, l, jobs, now);
            jobs_idle(l);
        }
    note_foreign(w, jobs);
    w->p.saw_jobs(jobs, w->p.arg);
    clear_strays(w, jobs);
}

/* A missed list or two is no silence: what Ray said last holds until it lasts, or until its head
 * is known to be gone. */
static void hear_silence(struct watcher *w, usec_t now)
{
    struct live *l;
    usec_t gone = w->p.head_gone(w->p.arg);
    bool is_gone = gone > w->heard_at;
    if (!is_gone && now - w->heard_at <= RAY_SILENT)
        return;
    for (size_t pos = 0; (l = jobs_next_placed(w->p.jobs, &pos));)
        if (job_is_in_ray(l->job) && is_gone && l->accepted_at < gone)
            see_ray(l, WITNESS_RAY_GONE, gone);
        else if (job_is_in_ray(l->job))
            see_ray(l, WITNESS_RAY_BLIND,
                    w->heard_at > l->accepted_at ? w->heard_at : l->accepted_at);
}

/* ---- the round over the files ---- */

/* What it was before the root was away says nothing of now: its silence begins anew. */
static void see_beat(struct live *l, const struct fsroot_beat *beat, usec_t now)
{
    struct sight *s = sight_change(l);
    bool was_blind = s->files == WITNESS_FILES_BLIND && s->files_since;
    bool is_new = !s->beat_at || s->beat_seq != beat->seq;
    if (was_blind)
        s->was_blind += now - s->files_since;
    else if (is_new)
        s->was_blind = 0;
    if (was_blind || is_new) {
        s->beat_at = now;
        s->is_unwatched = false;
    }
    s->beat_seq = beat->seq;
    s->log_bytes = is_new ? beat->log_bytes : s->log_bytes;
    see_files(l, WITNESS_FILES_BEAT, now);
}

static void look_at_files(struct watcher *w, struct live *l, struct files_look *k, usec_t now)
{
    imports_take(l, k);
    if (k->exit.seen == FSROOT_PRESENT) {
        see_files(l, WITNESS_FILES_EXIT, now);
    } else if (k->exit.seen == FSROOT_UNREADABLE || k->beat.seen == FSROOT_UNREADABLE) {
        see_files(l, WITNESS_FILES_BLIND, now);
    } else if (k->beat.seen == FSROOT_PRESENT) {
        see_beat(l, &k->beat, now);
    } else {
        see_files(l, WITNESS_FILES_NONE, now);
    }
    watcher_judge(w, l, &k->exit);
}

static void watcher_let_go(struct watcher *w)
{
    if (--w->handles > 0 || !w->closing)
        return;
    stopper_free(w->stopper);
    free(w);
}

static void start_files(struct watcher *w, usec_t now);

static void on_files(struct files_look *looks, size_t n, void *arg)
{
    struct watcher *w = arg;
    usec_t now = clock_mono();
    watcher_wake(w, now);
    w->files_busy = false;
    for (size_t i = 0; i < n && !w->closing; i++) {
        struct live *l = jobs_find_id(w->p.jobs, looks[i].id);
        if (l && job_is_in_ray(l->job) && job_attempt(l->job)->k == looks[i].k)
            look_at_files(w, l, &looks[i], now);
    }
    if (w->look_again && !w->closing)
        start_files(w, now);
    watcher_let_go(w);
}

static void start_files(struct watcher *w, usec_t now)
{
    size_t n = 0, cap = 0;
    struct files_look *v = NULL;
    struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(w->p.jobs, &pos));) {
        if (!job_is_in_ray(l->job))
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 16;
            v = xrealloc(v, cap, sizeof(*v));
        }
        v[n++] = (struct files_look){.id = xstrdup(l->job->id),
                                     .k = job_attempt(l->job)->k,
                                     .proof_mtime = sight_of(l)->proof_mtime,
                                     .proof_is_settled = sight_of(l)->proof_is_settled,
                                     .want_step = imports_are_missing(l)};
    }
    if (!n)
        return;
    w->files_busy = true;
    w->look_again = false;
    w->files_started = now;
    w->handles++;
    files_start(w->p.loop, w->p.settings->shared_root, v, n, on_files, w);
}

/* The round hangs: nobody can read the root, and no file speaks for any job. */
static void files_hang(struct watcher *w, usec_t now)
{
    struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(w->p.jobs, &pos));)
        if (job_is_in_ray(l->job)) {
            jobs_busy(l);
            see_files(l, WITNESS_FILES_BLIND, now);
            watcher_judge(w, l, NULL);
            jobs_idle(l);
        }
}

/* ---- the tick ---- */

static bool any_in_ray(const struct watcher *w)
{
    return jobs_count(w->p.jobs, JOB_STARTING) + jobs_count(w->p.jobs, JOB_RUNNING) +
               jobs_count(w->p.jobs, JOB_STOPPING) >
           0;
}

static void tick_job(struct live *l, void *arg)
{
    struct watcher *w = arg;
    jobs_busy(l);
    jobs_tick(l);
    deadlines_check(&w->deadlines, l, clock_mono(), clock_wall());
    if (!l->over && job_act(l->job) == JOB_ACT_SEND && !l->act_queued)
        sender_act(w->p.sender, l);
    if (!l->over && job_act(l->job) == JOB_ACT_STOP && !l->act_queued)
        stopper_act(w->stopper, l);
    jobs_idle(l);
}

static void watcher_on_tick(uv_timer_t *t)
{
    struct watcher *w = container_of(t, struct watcher, timer);
    usec_t now = clock_mono();
    bool any = any_in_ray(w);
    bool is_waited_for = foreign_is_wanted(cluster_foreign(w->p.cluster));
    watcher_wake(w, now);
    jobs_sweep(w->p.jobs);
    if (!w->list_call && (any || is_waited_for || now - w->list_at >= LIST_EVERY_IDLE)) {
        w->list_started = now;
        w->list_call = ray_list_jobs(w->p.ray, on_list, w);
    }
    hear_silence(w, now);
    if (!w->files_busy && any)
        start_files(w, now);
    else if (w->files_busy && now - w->files_started > FILES_HANG)
        files_hang(w, now);
    jobs_each_due(w->p.jobs, tick_job, w);
    trials_tick(w->p.trials, w->p.jobs);
    findings_tick(w->p.findings, now);
    jobs_tick_all(w->p.jobs, clock_wall());
}

/* ---- life ---- */

struct watcher *watcher_new(const struct watcher_parts *parts)
{
    struct watcher *w = xcalloc(1, sizeof(*w));
    w->p = *parts;
    w->handles = 1;
    struct stopper_parts sp = {.loop = parts->loop, .settings = parts->settings, .ray = parts->ray};
    w->stopper = stopper_new(&sp);
    w->deadlines = (struct deadlines){parts->settings, parts->cluster, parts->ray};
    (void)uv_timer_init(parts->loop, &w->timer); /* never fails */
    return w;
}

void watcher_start(struct watcher *w)
{
    w->heard_at = w->awake_at = clock_mono();
    (void)uv_timer_start(&w->timer, watcher_on_tick, 0, TICK_MS); /* cannot fail */
}

static void watcher_on_closed(uv_handle_t *h)
{
    watcher_let_go(container_of(h, struct watcher, timer));
}

void watcher_free(struct watcher *w)
{
    if (!w)
        return;
    w->closing = true;
    ray_call_free(w->list_call);
    uv_close((uv_handle_t *)&w->timer, watcher_on_closed);
}

void watcher_stop(struct watcher *w, struct live *l)
{
    stopper_act(w->stopper, l);
}

void watcher_strays(struct watcher *w, struct live *l)
{
    const struct job *j = l->job;
    if (!j->n_attempts)
        return;
    int *told = live_keep(l, LIVE_STRAYS, sizeof(*told)); /* attempts before this one were told */
    for (; *told < j->n_attempts; (*told)++) {
        const struct attempt *a = &j->attempts[*told];
        if (a->phase != ATTEMPT_ABANDONED)
            return;
        if (a->accepted_at) /* else Ray never had it: the record of this id is somebody else's */
            stopper_stray(w->stopper, j->id, a->k, a->ray_id);
    }
}

void watcher_look(struct watcher *w)
{
    if (w->files_busy)
        w->look_again = true;
    else if (!w->closing)
        start_files(w, clock_mono());
}

void watcher_forget(struct watcher *w)
{
    struct live *l;
    w->forgot_at = clock_mono();
    for (size_t pos = 0; (l = jobs_next_placed(w->p.jobs, &pos));) {
        if (sight_of(l)->ray == WITNESS_RAY_GONE)
            continue; /* the new head does not make it undone */
        sight_change(l)->ray = WITNESS_RAY_BLIND;
        sight_change(l)->ray_since = 0;
    }
}
