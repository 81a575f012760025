/* SPDX-License-Identifier: Apache-2.0 */
/* scribe.c - a thread that writes, beats and looks; see scribe.h.
 *
 * Under the lock are only memory and the spool's local file. Whatever may hang with the root is
 * done by the thread without the lock, and `busy_since` tells the other side how long already. */
#define _GNU_SOURCE
#include "shepherd/attempt/scribe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "fsroot/attempt/proof.h"
#include "shepherd/attempt/beat.h"
#include "shepherd/attempt/flood.h"
#include "shepherd/attempt/spool.h"

#define LOOK_EVERY USEC_SEC
#define RETRY_EVERY USEC_SEC
#define BEAT_LEAST (USEC_SEC / 10)
#define AWAY_AFTER (5 * USEC_SEC)      /* an answer that takes longer is told */
#define FULL_PATIENCE (10 * USEC_SEC)  /* at the end: a full disk seldom becomes empty */
#define FAST_BYTES ((uint64_t)8 << 20) /* a root that takes so much a second is not away */
#define STUCK_AFTER (5 * USEC_SEC)     /* at the very end, for a call that is under way */

/* In the spool there is always room for what flood_end() brings. */
enum { SPARE = FLOOD_KEPT + FLOOD_LINE + 1 };

enum { REASON_MAX = 240, ERROR_MAX = 300 };

/* So many bytes wait before the command has to: see scribe_has_room(). Then the index is dropped.
 */
enum { LATE_BYTES = (SPOOL_MEMORY - 2 * SPARE) / 2 };

struct scribe {
    const char *dir, *spool_dir; /* borrowed */
    const struct launch *launch; /* borrowed */
    struct sink *sink;           /* the thread's */
    char *beat_path, *node, *ip;
    pthread_t thread;
    int wake; /* eventfd, for the loop */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;
    struct spool *spool;
    struct flood *flood;
    bool is_idle;        /* the thread waits for work */
    bool wants_room;     /* the loop waits for room */
    bool is_closed;      /* no more output */
    bool is_told_to_end; /* the thread */
    bool has_looked;     /* for the last time */
    bool is_synced;
    bool is_line_broken; /* the last byte that was taken was no newline */
    usec_t closed_at;
    uint64_t dropped, log_bytes;
    usec_t next_look, next_beat;
    struct beat beat;
    char *stop, *mismatch;

    usec_t busy_since; /* 0: the thread asks the root for nothing now */
    usec_t retry;      /* while writing fails: not before */
    int error;         /* of the last write, 0: none */
    bool is_full;      /* that error means that there is no space */
    char log_error[ERROR_MAX];
    usec_t last_done;    /* when bytes were written */
    usec_t failed_since; /* 0: the last write was fine */
    usec_t away_since;   /* told, and not over; 0: it is there */
    usec_t away_call;    /* busy_since of the call that did not answer; 0: it failed */
    usec_t away;         /* in all, of what is over */
    bool is_beat_failing, is_beat_told;
    char beat_error[ERROR_MAX];
    usec_t window, fast_until; /* see is_fast() */
    uint64_t window_bytes;
};

static void kick(struct scribe *s)
{
    if (s->is_idle)
        (void)pthread_cond_signal(&s->work); /* cannot fail */
}

static void wake_loop(struct scribe *s)
{
    (void)eventfd_write(s->wake, 1); /* cannot fail: the counter never gets near 2^64 */
}

/* ---- the thread: what may hang ---- */

/* Opening the directory makes an NFS client ask its server what is in it now. */
char *scribe_stop_in_file(const char *dir)
{
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_STOP, dir);
    _cleanup_(closep) int fresh = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_there = false;
    if (fresh < 0 || file_look_for(path, &is_there, NULL) < 0 || !is_there)
        return NULL; /* what cannot be looked at now is looked for again at the next tick */
    _cleanup_(buf_release) struct buf text = BUF_INIT(64 << 10);
    int r = file_read(path, &text, NULL);
    if (r == -ENOENT || r == -ESTALE || r == -EIO) /* it was there: look again at the next tick */
        return NULL;
    const char *s = buf_str(&text);
    size_t n = strcspn(s, "\r\n");
    return n ? xstrndup(s, n < REASON_MAX ? n : REASON_MAX) : xstrdup("asked by the file 'stop'");
}

static void begin_call(struct scribe *s)
{
    s->busy_since = clock_mono();
    pthread_mutex_unlock(&s->lock);
}

static void end_call(struct scribe *s)
{
    pthread_mutex_lock(&s->lock);
    s->busy_since = 0;
}

static bool is_full_error(int r)
{
    return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

static void note_write(struct scribe *s, int r, usec_t began)
{
    s->error = r;
    s->is_full = is_full_error(r);
    if (r < 0) {
        s->retry = clock_mono() + RETRY_EVERY;
        s->failed_since = s->failed_since ? s->failed_since : began;
    } else {
        s->retry = s->failed_since = 0;
    }
}

/* The root takes much: the loop may wait for it. */
static void note_speed(struct scribe *s, size_t n)
{
    usec_t now = clock_mono();
    if (now - s->window > USEC_SEC) {
        s->window = now;
        s->window_bytes = 0;
    }
    s->window_bytes += n;
    if (s->window_bytes >= FAST_BYTES) {
        s->fast_until = now + USEC_SEC;
        s->window = now;
        s->window_bytes = 0;
    }
}

static void scribe_write_piece(struct scribe *s)
{
    const char *p = NULL;
    size_t done = 0;
    usec_t began = clock_mono();
    int64_t n = spool_peek(s->spool, &p);
    if (n < 0) { /* our own disk is broken: what it held is gone */
        char why[200];
        text_printf(why, "the spool cannot be read: %s", strerror((int)-n));
        uint64_t lost = spool_discard(s->spool);
        s->dropped += lost;
        text_printf(s->log_error, "%" PRIu64 " bytes: %s", lost, why);
        return;
    }
    sink_hurry(s->sink, spool_bytes(s->spool) > LATE_BYTES);
    begin_call(s);
    int r = sink_write(s->sink, p, (size_t)n, &done);
    end_call(s);
    spool_remove(s->spool, done);
    s->log_bytes = sink_bytes(s->sink);
    note_write(s, r, began);
    note_speed(s, done);
    if (done)
        s->last_done = clock_mono();
    if (s->wants_room) {
        s->wants_room = false;
        wake_loop(s);
    }
}

static void keep_text(char kept[static ERROR_MAX], const char *text)
{
    text_printf_to(kept, ERROR_MAX, "%.*s", ERROR_MAX - 1, text);
}

static void write_beat(struct scribe *s)
{
    struct err err;
    struct beat b = s->beat;
    s->beat.seq++;
    b.at = clock_wall();
    b.log_bytes = s->log_bytes;
    b.dropped_bytes = s->dropped + sink_removed(s->sink);
    b.waiting_bytes = spool_bytes(s->spool);
    usec_t every = s->launch->beat > BEAT_LEAST ? s->launch->beat : BEAT_LEAST;
    begin_call(s);
    int r = beat_write(s->beat_path, &b, &err);
    end_call(s);
    s->next_beat = clock_mono() + every;
    if (r < 0 && !s->is_beat_failing)
        keep_text(s->beat_error, err.text);
    s->is_beat_failing = r < 0;
    s->is_beat_told &= r < 0;
}

static void scribe_look(struct scribe *s)
{
    bool want_stop = !s->is_closed && !s->stop, want_mismatch = !s->mismatch;
    bool is_last = s->is_closed;
    begin_call(s);
    char *stop = want_stop ? scribe_stop_in_file(s->dir) : NULL;
    char *mismatch = want_mismatch ? proof_mismatch(s->dir) : NULL;
    sink_flush(s->sink);
    end_call(s);
    s->next_look = clock_mono() + LOOK_EVERY;
    s->has_looked = is_last;
    s->stop = stop ? stop : s->stop;
    s->mismatch = mismatch ? mismatch : s->mismatch;
    if (stop || mismatch)
        wake_loop(s);
}

static void sync_log(struct scribe *s)
{
    struct err err;
    usec_t began = clock_mono();
    begin_call(s);
    int r = sink_finish(s->sink, &err);
    end_call(s);
    s->is_synced = true;
    note_write(s, 0, began);
    if (r < 0)
        keep_text(s->log_error, err.text);
    wake_loop(s);
}

/* ---- what waits ---- */

static bool spool_takes(struct scribe *s, const char *p, size_t n)
{
    if (!n)
        return true;
    bool was_empty = !spool_bytes(s->spool);
    if (!spool_add(s->spool, p, n))
        return false;
    s->is_line_broken = p[n - 1] != '\n';
    if (was_empty) /* it has a second to show what it can */
        s->fast_until = s->fast_until > clock_mono() ? s->fast_until : clock_mono() + USEC_SEC;
    return true;
}

/* The line for what is missing, and what was kept of the newest: together or, false, not yet. */
static bool end_dropping(struct scribe *s)
{
    struct flood_end e;
    _cleanup_(buf_release) struct buf out = BUF_INIT(SPARE + 1);
    flood_end(s->flood, &e);
    if (e.dropped && s->is_line_broken)
        (void)buf_addc(&out, '\n'); /* SPARE is enough, also below */
    (void)buf_adds(&out, e.line);
    for (size_t i = 0; i < array_len(e.kept); i++)
        (void)buf_add(&out, e.kept[i], e.kept_n[i]);
    if (!spool_takes(s, buf_str(&out), out.len))
        return false; /* our own disk is full as well */
    s->dropped += e.dropped;
    flood_reset(s->flood);
    return true;
}

/* ---- the thread: what is due ---- */

static bool scribe_can_write(const struct scribe *s, usec_t now)
{
    return spool_bytes(s->spool) && now >= s->retry;
}

static struct timespec timespec_of(usec_t mono)
{
    return (struct timespec){.tv_sec = (time_t)(mono / USEC_SEC),
                             .tv_nsec = (long)(mono % USEC_SEC * 1000)};
}

static void wait_for_work(struct scribe *s, usec_t now)
{
    usec_t next = s->next_look < s->next_beat ? s->next_look : s->next_beat;
    if (spool_bytes(s->spool) && s->retry < next)
        next = s->retry;
    if (next <= now)
        return;
    struct timespec ts = timespec_of(next);
    s->is_idle = true;
    (void)pthread_cond_timedwait(&s->work, &s->lock, &ts); /* either way: look what is due */
    s->is_idle = false;
}

/* The spool is empty: now there is room for what was kept, whatever our own disk is. */
static void end_log(struct scribe *s)
{
    if (!flood_is_dropping(s->flood) || !end_dropping(s))
        sync_log(s);
}

static void *scribe_work(void *arg)
{
    struct scribe *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->is_told_to_end) {
        usec_t now = clock_mono();
        if (now >= s->next_beat)
            write_beat(s);
        else if (now >= s->next_look || (s->is_closed && !s->has_looked))
            scribe_look(s);
        else if (scribe_can_write(s, now))
            scribe_write_piece(s);
        else if (s->is_closed && !s->is_synced && !spool_bytes(s->spool))
            end_log(s);
        else
            wait_for_work(s, now);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- start ---- */

static void scribe_release(struct scribe *s)
{
    closep(&s->wake);
    spool_free(s->spool);
    flood_free(s->flood);
    free(s->beat_path);
    free(s->node);
    free(s->ip);
    free(s->stop);
    free(s->mismatch);
    free(s);
}

static void scribe_init_lock(struct scribe *s)
{
    pthread_condattr_t attr; /* these cannot fail on Linux */
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->work, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&s->lock, NULL);
}

/* A place that hangs together with the root would be of no use. */
static const char *spool_place(void)
{
    const char *tmp = getenv("TMPDIR");
    _cleanup_(closep) int fd = tmp && *tmp ? open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return fd >= 0 && sink_is_local(fd) ? tmp : "/tmp";
}

int scribe_start(const struct scribe_spec *spec, struct scribe **ret, struct err *err)
{
    const struct launch *l = spec->launch;
    struct scribe *s = xcalloc(1, sizeof(*s));
    s->dir = spec->dir;
    s->launch = l;
    s->sink = spec->sink;
    s->beat_path = xasprintf("%s/" ATTEMPT_BEAT, spec->dir);
    s->node = xstrdup(spec->node);
    s->ip = xstrdup(spec->ip);
    s->spool_dir = spool_place();
    s->spool = spool_new(SPOOL_MEMORY, l->logs.spool, s->spool_dir);
    s->flood = flood_new(l->logs.rate);
    s->beat = (struct beat){
        .job = l->job, .attempt = l->attempt, .state = "starting", .node = s->node, .ip = s->ip};
    sink_limit(s->sink, l->logs.segment, l->logs.total);
    scribe_init_lock(s);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = s->wake < 0 ? -errno : -pthread_create(&s->thread, NULL, scribe_work, s);
    if (r < 0) {
        scribe_release(s);
        return message_refuse(err, r, "shepherd_no_thread",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))));
    }
    *ret = s;
    return 0;
}

int scribe_fd(const struct scribe *s)
{
    return s->wake;
}

/* ---- output ---- */

static void drop_for_spool(struct scribe *s, const char *p, size_t n)
{
    char why[200];
    const char *trouble = spool_trouble(s->spool);
    text_printf(why, "the shared root is away and the spool in '%.60s' is full%s%.60s",
                s->spool_dir, *trouble ? ": " : "", trouble);
    flood_drop(s->flood, p, n, why);
}

static void drop_for_rate(struct scribe *s, const char *p, size_t n)
{
    char why[160];
    text_printf(why, "more than %" PRIu64 " a second came", s->launch->logs.rate);
    flood_drop(s->flood, p, n, why);
}

void scribe_add(struct scribe *s, const char *p, size_t n, usec_t mono)
{
    if (!n)
        return;
    pthread_mutex_lock(&s->lock);
    bool is_dropping = flood_is_dropping(s->flood);
    /* Once it is full, it goes on only when there is room for more than the next piece. */
    bool fits = spool_fits(s->spool, n + SPARE + (is_dropping ? SPARE : 0));
    bool passes = flood_pass(s->flood, n, mono);
    if (fits && passes && is_dropping)
        fits = end_dropping(s);
    if (!passes)
        drop_for_rate(s, p, n);
    else if (!fits || !spool_takes(s, p, n))
        drop_for_spool(s, p, n);
    kick(s);
    pthread_mutex_unlock(&s->lock);
}

/* The root has taken much within the last second, or was not asked for long. */
static bool is_fast(const struct scribe *s, usec_t now)
{
    return now < s->fast_until && !s->error;
}

bool scribe_has_room(struct scribe *s, usec_t mono, usec_t *ret_again)
{
    pthread_mutex_lock(&s->lock);
    uint64_t filed = spool_filed(s->spool), most = s->launch->logs.spool;
    bool fits =
        filed ? filed < most / 2 : SPOOL_MEMORY - spool_bytes(s->spool) >= SPARE + (uint64_t)SPARE;
    bool has = fits || !is_fast(s, mono);
    *ret_again = s->fast_until;
    s->wants_room = !has;
    pthread_mutex_unlock(&s->lock);
    return has;
}

/* ---- the rest of what the loop asks ---- */

void scribe_beat(struct scribe *s, const char *state, pid_t pid, uint64_t start_ticks)
{
    pthread_mutex_lock(&s->lock);
    s->beat.state = state;
    s->beat.pid = pid;
    s->beat.start_ticks = start_ticks;
    s->next_beat = 0;
    kick(s);
    pthread_mutex_unlock(&s->lock);
}

static char *scribe_take(struct scribe *s, char **what)
{
    pthread_mutex_lock(&s->lock);
    char *ret = *what;
    *what = NULL;
    pthread_mutex_unlock(&s->lock);
    return ret;
}

char *scribe_take_stop(struct scribe *s)
{
    eventfd_t n;
    (void)eventfd_read(s->wake, &n); /* before it is looked: nothing is missed */
    return scribe_take(s, &s->stop);
}

char *scribe_take_mismatch(struct scribe *s)
{
    return scribe_take(s, &s->mismatch);
}

/* Since when the root does not do what it is asked for; 0: it does. */
static usec_t trouble_since(const struct scribe *s, usec_t now)
{
    if (s->failed_since)
        return s->failed_since;
    return s->busy_since && now > s->busy_since + AWAY_AFTER ? s->busy_since : 0;
}

static bool scribe_make_news(struct scribe *s, usec_t now, char ret[static SCRIBE_NEWS])
{
    char span[CLOCK_TEXT_MAX];
    usec_t since = trouble_since(s, now);
    if (since && !s->away_since) {
        s->away_since = since;
        s->away_call = s->failed_since ? 0 : s->busy_since;
        if (s->error)
            text_printf_to(ret, SCRIBE_NEWS,
                           "cannot write '%s': %s; the command goes on, its output waits in "
                           "memory and in '%s'",
                           sink_path(s->sink), strerror(-s->error), s->spool_dir);
        else
            text_printf_to(ret, SCRIBE_NEWS,
                           "the shared root does not answer; the command goes on, its output waits "
                           "in memory and in '%s'",
                           s->spool_dir);
        return true;
    }
    if (!since && s->away_since && (!s->away_call || s->busy_since != s->away_call)) {
        s->away += now - s->away_since;
        text_printf_to(ret, SCRIBE_NEWS,
                       "the shared root is there again after %s; %" PRIu64 " bytes of output wait",
                       span_to_string(now - s->away_since, span), spool_bytes(s->spool));
        s->away_since = 0;
        return true;
    }
    if (s->is_beat_failing && !s->is_beat_told && !since) {
        s->is_beat_told = true;
        text_printf_to(ret, SCRIBE_NEWS, "%s; trying again at each beat", s->beat_error);
        return true;
    }
    return false;
}

bool scribe_take_news(struct scribe *s, usec_t mono, char ret[static SCRIBE_NEWS])
{
    pthread_mutex_lock(&s->lock);
    bool has = scribe_make_news(s, mono, ret);
    pthread_mutex_unlock(&s->lock);
    return has;
}

/* ---- the end ---- */

void scribe_close(struct scribe *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_closed = true;
    s->closed_at = clock_mono();
    kick(s);
    pthread_mutex_unlock(&s->lock);
}

bool scribe_is_done(struct scribe *s, usec_t mono)
{
    pthread_mutex_lock(&s->lock);
    usec_t most = s->launch->logs.patience;
    usec_t since = s->last_done > s->closed_at ? s->last_done : s->closed_at;
    usec_t patience = s->is_full && most > FULL_PATIENCE ? FULL_PATIENCE : most;
    bool is_away = s->failed_since || s->busy_since; /* one that takes bytes is waited for, */
    bool is_late = is_away && mono > since && mono - since > patience;
    bool is_endless = mono > s->closed_at && mono - s->closed_at > 4 * most; /* but not for ever */
    bool done = s->is_synced || is_late || is_endless;
    pthread_mutex_unlock(&s->lock);
    return done;
}

/* True when the thread is over. */
static bool end_thread(struct scribe *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_told_to_end = true;
    kick(s);
    bool is_busy = s->busy_since != 0;
    pthread_mutex_unlock(&s->lock);
    struct timespec ts = timespec_of(clock_mono() + (is_busy ? STUCK_AFTER : USEC_MIN));
    return pthread_clockjoin_np(s->thread, NULL, CLOCK_MONOTONIC, &ts) == 0;
}

void scribe_finish(struct scribe *s, struct scribe_end *ret)
{
    struct scribe_end e = {.is_stuck = !end_thread(s)};
    pthread_mutex_lock(&s->lock);
    if (!s->is_synced) {
        uint64_t waited = spool_bytes(s->spool) + flood_dropped(s->flood);
        s->dropped += waited;
        text_printf(s->log_error, "the last %" PRIu64 " bytes of output could not be written: %s",
                    waited, s->error ? strerror(-s->error) : "the shared root does not answer");
    }
    e.log_bytes = s->log_bytes;
    e.dropped = s->dropped + (e.is_stuck ? 0 : sink_removed(s->sink));
    e.log_error = *s->log_error ? xstrdup(s->log_error) : NULL;
    e.away = s->away + (s->away_since ? clock_mono() - s->away_since : 0);
    pthread_mutex_unlock(&s->lock);
    if (!e.is_stuck)
        scribe_release(s);
    *ret = e;
}
