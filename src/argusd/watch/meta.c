/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c - meta.json, so that a job's directory explains itself; see meta.h.
 *
 * While a job is live its writes go one after the other by its own flags. What is owed of jobs
 * that are over and gone from memory is made from their rows, a few at a time. A directory that is
 * not there may be a root that is not mounted: it is given up only after many tries. */
#include "argusd/watch/meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/err.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/attempt.h"

enum { META_MAX = 4 << 20, TICK_MS = 2000, AT_ONCE = 4 };
static const usec_t AGAIN_MOST = 10 * USEC_MIN;

struct owed {
    struct owed *next;
    struct metas *ms;
    char *id;
    bool busy;          /* asked for, or being written: it stays */
    bool again;         /* its row changed since it was asked for */
    uint64_t batch;     /* of the store: its row is read once that is on disk */
    usec_t after, wait; /* mono: not tried before; what is waited after the next failure */
};

struct metas {
    struct metas_parts p;
    uv_timer_t timer;
    struct owed *first;
    size_t busy; /* of those owed */
    bool closing;
};

/* What is kept for a job in memory. */
struct meta_writes {
    bool busy, again; /* one is under way; and another one after it */
};

struct writing {
    struct metas *ms;
    struct live *l; /* NULL: owed, of a job that is not in memory */
    char *root, *job, *text, *post;
    int k;
    struct err err;
    int result;
};

static void meta_run(void *arg)
{
    struct writing *w = arg;
    w->result = fsroot_meta_write(w->root, w->job, w->text, &w->err);
    if (w->result == 0 && w->post)
        w->result =
            fsroot_debug_write(w->root, w->job, w->k, "ray_job_list_post.txt", w->post, &w->err);
}

static void writing_free(struct writing *w)
{
    free(w->root);
    free(w->job);
    free(w->text);
    free(w->post);
    free(w);
}

/* What is known of the attempts in Ray at the end, for debug/. */
static char *post_text(const struct job *j)
{
    static const struct message_listener to = {.language = MESSAGE_ENGLISH};
    struct buf out = BUF_INIT(64 << 10);
    char at[CLOCK_TEXT_MAX];
    for (int i = 0; i < j->n_attempts; i++) {
        const struct attempt *a = &j->attempts[i];
        (void)buf_addf(&out, "%s %s", a->ray_id, attempt_phase_to_string(a->phase));
        _cleanup_(freep) char *end = message_kept_say(a->end_text, &to);
        (void)buf_addf(&out, " ended %s: %s\n", clock_to_string(a->ended_at, at),
                       str_or(end, "")); /* overflow: the rest is missing */
    }
    return buf_take(&out);
}

/* Its directory is there from when Ray had it. */
static bool has_place(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    return a && (a->phase != ATTEMPT_PLANNED || a->k > 1);
}

static struct writing *writing_new(struct metas *ms,
                                   const struct job *j,
                                   const struct record_extra *extra,
                                   struct live *l)
{
    struct buf out = BUF_INIT(META_MAX);
    struct jout o = jout_begin(&out);
    ms->p.view(&o, ms->p.settings, j, extra, l);
    (void)buf_addc(&out, '\n');
    struct writing *w = xcalloc(1, sizeof(*w));
    *w = (struct writing){.ms = ms,
                          .l = l,
                          .k = j->n_attempts,
                          .root = xstrdup(ms->p.settings->shared_root),
                          .job = xstrdup(j->id),
                          .text = buf_take(&out)};
    if (job_state_is_terminal(j->state))
        w->post = post_text(j);
    return w;
}

/* ---- what is owed ---- */

void metas_owe(struct store *store, const struct job *job)
{
    struct store_entry row = {
        .kind = METAS_ENTRY, .name = job->id, .body = "{}", .at = job->ended_at};
    if (has_place(job))
        store_put_entry(store, &row);
}

static void owed_add(struct metas *ms, const char *id, usec_t wait)
{
    struct owed *o = xcalloc(1, sizeof(*o));
    *o = (struct owed){.next = ms->first,
                       .ms = ms,
                       .id = xstrdup(id),
                       .batch = store_batch(ms->p.store),
                       .after = clock_mono() + wait,
                       .wait = USEC_SEC};
    ms->first = o;
}

void metas_restore(struct metas *ms, const struct store_entry *row)
{
    owed_add(ms, row->name, 0);
}

static void owed_remove(struct metas *ms, const char *id)
{
    for (struct owed **p = &ms->first, *o; (o = *p); p = &o->next)
        if (!strcmp(o->id, id)) {
            *p = o->next;
            free(o->id);
            free(o);
            return;
        }
}

static void meta_settle(struct metas *ms, const char *id)
{
    store_remove_entry(ms->p.store, METAS_ENTRY, id);
    owed_remove(ms, id);
}

static struct owed *owed_find(const struct metas *ms, const char *id)
{
    struct owed *o = ms->first;
    while (o && strcmp(o->id, id) != 0)
        o = o->next;
    return o;
}

bool metas_is_owed(const struct metas *ms, const char *job)
{
    return owed_find(ms, job) != NULL;
}

static void try_again(struct metas *ms, const char *id)
{
    struct owed *o = owed_find(ms, id);
    if (!o)
        return;
    o->busy = o->again = false;
    o->after = clock_mono() + o->wait;
    o->wait = o->wait < AGAIN_MOST / 2 ? o->wait * 2 : AGAIN_MOST;
}

static void done_owed(void *arg)
{
    struct writing *w = arg;
    struct metas *ms = w->ms;
    ms->busy--;
    if (w->result < 0)
        log_debug("meta", "%s job=%s", w->err.text, w->job);
    const struct owed *o = owed_find(ms, w->job);
    bool is_gone = w->result == -ENOENT && o && o->wait >= AGAIN_MOST; /* its directory, for long */
    bool is_settled = (w->result == 0 || is_gone) && !(o && o->again);
    if (is_settled && !ms->closing)
        meta_settle(ms, w->job);
    else if (!ms->closing)
        try_again(ms, w->job);
    writing_free(w);
}

static void take_row(struct owed *o, const struct store_result *r)
{
    struct metas *ms = o->ms;
    struct record_extra extra = {0};
    struct job *job = NULL;
    bool is_ours = record_to_job(&r->jobs[0], &job, &extra, NULL) == 0;
    for (size_t i = 0; is_ours && i < r->nattempts; i++)
        record_add_attempt(job, &r->attempts[i]);
    if (is_ours && has_place(job)) {
        secrets_open_spec(ms->p.secrets, job->id, &job->spec);
        ms->busy++;
        work_start(ms->p.loop, meta_run, done_owed, writing_new(ms, job, &extra, NULL));
    } else {
        meta_settle(ms, o->id);
    }
    record_extra_release(&extra);
    job_free(job);
}

static void meta_on_row(const struct store_result *r, void *arg)
{
    struct owed *o = arg;
    struct metas *ms = o->ms;
    ms->busy--;
    if (ms->closing)
        return;
    if (r->err.code == ERR_NOT_FOUND)
        meta_settle(ms, o->id);
    else if (r->err.code)
        try_again(ms, o->id);
    else
        take_row(o, r);
}

static void meta_on_tick(uv_timer_t *t)
{
    struct metas *ms = container_of(t, struct metas, timer);
    usec_t now = clock_mono();
    if (!cluster_root_is_ok(ms->p.cluster) || store_is_failing(ms->p.store))
        return;
    for (struct owed *o = ms->first; o && ms->busy < AT_ONCE; o = o->next) {
        if (o->busy || now < o->after || store_durable(ms->p.store) < o->batch ||
            jobs_find_any(ms->p.jobs, o->id))
            continue;
        struct store_job_ref ref = {.ref = o->id, .is_id = true};
        struct store_then then = {.done = meta_on_row, .arg = o};
        o->busy = true;
        ms->busy++;
        (void)store_find_job(ms->p.store, &ref, &then); /* dropped with the store */
    }
}

void metas_amend(struct metas *ms, const struct job *job)
{
    metas_owe(ms->p.store, job);
    if (!has_place(job))
        return;
    if (!owed_find(ms, job->id))
        owed_add(ms, job->id, 0);
    struct owed *o = owed_find(ms, job->id);
    if (!o)
        return;
    o->batch = store_batch(ms->p.store);
    o->again = o->busy;
}

/* ---- of a job in memory ---- */

static void meta_done(void *arg)
{
    struct writing *w = arg;
    struct metas *ms = w->ms;
    struct live *l = w->l;
    bool is_last = w->post; /* of the end */
    if (w->result < 0)
        log_debug("meta", "%s job=%s", w->err.text, w->job);
    struct meta_writes *writes = live_keep(l, LIVE_META, sizeof(*writes));
    writes->busy = false;
    if (writes->again && !ms->closing) {
        writes->again = false;
        metas_write(ms, l);
    } else if (is_last && !ms->closing && w->result == 0) {
        meta_settle(ms, w->job);
    } else if (is_last && !ms->closing && !owed_find(ms, w->job)) {
        owed_add(ms, w->job, USEC_SEC);
    }
    writing_free(w);
    jobs_idle(l);
}

void metas_write(struct metas *ms, struct live *l)
{
    if (!has_place(l->job))
        return;                              /* it is written once Ray has it */
    if (cluster_root_hangs(ms->p.cluster)) { /* else each would take a worker for itself */
        if (l->over && !owed_find(ms, l->job->id))
            owed_add(ms, l->job->id, USEC_SEC);
        return;
    }
    struct meta_writes *writes = live_keep(l, LIVE_META, sizeof(*writes));
    if (writes->busy) {
        writes->again = true;
        return;
    }
    writes->busy = true;
    jobs_busy(l);
    work_start(ms->p.loop, meta_run, meta_done, writing_new(ms, l->job, &l->extra, l));
}

/* ---- life ---- */

struct metas *metas_new(const struct metas_parts *parts)
{
    struct metas *ms = xcalloc(1, sizeof(*ms));
    ms->p = *parts;
    (void)uv_timer_init(parts->loop, &ms->timer); /* never fails */
    return ms;
}

void metas_start(struct metas *ms)
{
    (void)uv_timer_start(&ms->timer, meta_on_tick, 0, TICK_MS); /* cannot fail */
}

void metas_close(struct metas *ms)
{
    if (!ms || ms->closing)
        return;
    ms->closing = true;
    uv_close((uv_handle_t *)&ms->timer, NULL);
}

void metas_free(struct metas *ms)
{
    if (!ms)
        return;
    for (struct owed *o = ms->first, *next; o; o = next) {
        next = o->next;
        free(o->id);
        free(o);
    }
    free(ms);
}
