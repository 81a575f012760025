/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - argus-shepherd runs one attempt of a job on its worker.
 *
 *   argus-shepherd <attempt directory>
 *   argus-shepherd --scout …             the same attempt on another node: see scout.h
 *
 * Ray starts it as the job's entrypoint. It needs no argusd: all it knows is in
 * the directory, and all it says is left there. Creating logs/driver.log is the
 * start; a second shepherd of the same attempt finds it, touches nothing and ends
 * with 91. Exit status: that of the command, 128 + n for signal n, 90 when the
 * command could not be started, 92 when it imported what is not the job's. See run.h for what
 * happens in between. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "shepherd/attempt/run.h"
#include "shepherd/host/host.h"
#include "shepherd/scout/scout.h"

#define STUCK_PATIENCE USEC_MIN /* for exit.json, when the log was waited for in vain */

/* The attempt's directory and its log, once this shepherd owns the attempt. */
struct attempt {
    char *dir;
    struct sink *sink;
    struct order order;
    struct tail tail;
    int reserve;          /* of exit.json */
    char *worker_secrets; /* the file to remove at the end; NULL: none */
};

static void attempt_release(struct attempt *a)
{
    free(a->dir);
    free(a->worker_secrets);
    order_release(&a->order);
    sink_free(a->sink);
    closep(&a->reserve);
}

/* Prints one line into Ray's log, where people look when nothing else was written. */
static int shepherd_refuse(int status, const char *sentence)
{
    (void)dprintf(STDOUT_FILENO, "argus-shepherd: %s\n", sentence); /* nowhere else to say it */
    return status;
}

/* The log is made in a directory that argusd made; on NFS it may not be seen yet. */
static int shepherd_open_log(const char *dir, struct sink **ret, struct err *err)
{
    _cleanup_(freep) char *log = xasprintf("%s/" ATTEMPT_LOG, dir);
    int r = sink_open(log, ret, err);
    if (r != -ENOENT)
        return r;
    _cleanup_(freep) char *parent = xstrndup(log, (size_t)(strrchr(log, '/') - log));
    r = file_mkdirs(parent, 0755, err);
    return r < 0 ? r : sink_open(log, ret, err);
}

/* 0, or the status to exit with when there is nowhere or no right to write. Without a
 * log (a->sink is NULL) err says why. */
static int attempt_begin(struct attempt *a, const char *dir, struct err *err)
{
    struct stat st;
    a->dir = xstrdup(dir);
    for (size_t n = strlen(a->dir); n > 1 && a->dir[n - 1] == '/'; n--)
        a->dir[n - 1] = 0;
    if (stat(a->dir, &st) < 0) {
        (void)err_set(err, -errno,
                      "cannot start: '%s': %s: is the shared root mounted on this worker at the "
                      "same path as on the head?",
                      a->dir, strerror(errno));
        return shepherd_refuse(SHEPHERD_START_FAILED, err->text);
    }
    _cleanup_(freep) char *exit_file = xasprintf("%s/" ATTEMPT_EXIT, a->dir);
    bool is_over = false;
    int r = file_look_for(exit_file, &is_over, err);
    if (r < 0) { /* it may be over: a second run would write into what the first has left */
        (void)err_prefix(err, "cannot start");
        return shepherd_refuse(SHEPHERD_START_FAILED, err->text);
    }
    r = is_over ? -EEXIST : shepherd_open_log(a->dir, &a->sink, err);
    if (r == -EEXIST) {
        (void)err_set(err, r, "the attempt in '%s' was started before: doing nothing", a->dir);
        return shepherd_refuse(SHEPHERD_STARTED_TWICE, err->text);
    }
    a->reserve = outcome_reserve(a->dir);
    tail_init(&a->tail, STDOUT_FILENO, a->sink ? sink_path(a->sink) : "");
    return 0;
}

/* "…/jobs/<job>/attempts/<k>", when launch.json cannot tell. */
static void names_from_path(const char *dir, struct outcome *o)
{
    int64_t attempt;
    const char *k = strrchr(dir, '/');
    const char *mid = k ? memrchr(dir, '/', (size_t)(k - dir)) : NULL;
    const char *job = mid ? memrchr(dir, '/', (size_t)(mid - dir)) : NULL;
    if (job && str_to_int(k + 1, 1, 1000000, &attempt, NULL) == 0) {
        o->attempt = (int)attempt;
        o->job = xstrndup(job + 1, (size_t)(mid - job) - 1);
    }
}

static int run_attempt(struct attempt *a, struct outcome *o, struct err *err)
{
    if (!a->sink)
        return message_wrap(err, "attempt_cannot_start");
    o->stop_reason = run_take_stop(a->dir);
    if (o->stop_reason) {
        o->cause = CAUSE_STOPPED_BEFORE_START;
        return 0;
    }
    int r = order_read(a->dir, &a->order, err);
    if (r < 0)
        return r;
    set_str(&a->worker_secrets, a->order.launch.worker_secrets);
    bool has_scout = scout_begin(a->dir, a->order.launch.job, a->order.launch.attempt,
                                 pairs_find(&a->order.env, "ARGUS_DRIVER_NODE"));
    struct veil *veil = veil_new(&a->order.launch.secret_values);
    struct run_spec spec = {.dir = a->dir,
                            .order = &a->order,
                            .sink = a->sink,
                            .tail = &a->tail,
                            .veil = veil,
                            .has_scout = has_scout};
    r = run_command(&spec, o, err);
    veil_free(veil);
    return r;
}

/* Removes the file of secrets in case it was never read, or argusd wrote it again while we
 * started; and the secrets of Ray's workers. argusd removes what we cannot. */
static void remove_secrets(const struct attempt *a)
{
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_SECRETS, a->dir);
    (void)unlink(path); /* mostly gone already */
    if (a->worker_secrets)
        (void)unlink(a->worker_secrets);
}

static void fill_outcome(struct attempt *a, struct outcome *o, int result, const struct err *err)
{
    struct err sync;
    char node[HOST_NAME_MAX_BYTES];
    host_name(node);
    o->node = xstrdup(node);
    o->ended = o->ended ? o->ended : clock_wall();
    if (result < 0) {
        o->cause = CAUSE_START_FAILED;
        o->why = message_keep(err);
    }
    if (a->sink && !o->pid && !o->is_root_stuck && !o->log_error && sink_finish(a->sink, &sync) < 0)
        o->log_error = xstrdup(sync.text);
    outcome_tell(o);
}

/* ---- the last words ----
 *
 * In a thread of their own, since the root may hang: what must not be lost is tried as long as
 * patience lasts, and the loop of main() tells how it goes. */

struct last_words {
    const struct attempt *a;
    const struct outcome *o;
    pthread_mutex_t lock; /* of what follows */
    char trouble[300];    /* of the newest try, "" before there is any */
    bool is_given_up, is_written;
};

/* True when no further try is needed: the last words are written, or no caller waits any longer. */
static bool try_to_write(struct last_words *w)
{
    struct err err;
    int r = outcome_write(w->a->dir, w->a->reserve, w->o, &err);
    pthread_mutex_lock(&w->lock);
    w->is_written = r == 0;
    if (r < 0)
        text_printf(w->trouble, "%.299s", err.text);
    bool is_enough = w->is_written || w->is_given_up;
    pthread_mutex_unlock(&w->lock);
    return is_enough;
}

static void *write_last_words(void *arg)
{
    struct last_words *w = arg;
    remove_secrets(w->a);
    while (!try_to_write(w))
        (void)poll(NULL, 0, 1000); /* a second */
    return NULL;
}

static bool shepherd_wait_for(pthread_t thread, usec_t span)
{
    usec_t until = clock_mono() + span;
    struct timespec ts = {.tv_sec = (time_t)(until / USEC_SEC),
                          .tv_nsec = (long)(until % USEC_SEC * 1000)};
    return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &ts) == 0;
}

static void shepherd_give_up(struct attempt *a, struct last_words *w, pthread_t thread)
{
    pthread_mutex_lock(&w->lock);
    w->is_given_up = true;
    pthread_mutex_unlock(&w->lock);
    if (!shepherd_wait_for(thread, 3 * USEC_SEC) || !w->is_written)
        tail_say(&a->tail, "gave up: how it ended is not in '%s/" ATTEMPT_EXIT "'", a->dir);
}

/* False when a thread is left behind, in the middle of a call. */
static bool leave_last_words(struct attempt *a, const struct outcome *o)
{
    char span[CLOCK_TEXT_MAX];
    usec_t patience = a->order.launch.job ? a->order.launch.logs.patience : STUCK_PATIENCE;
    patience = o->is_root_stuck && patience > STUCK_PATIENCE ? STUCK_PATIENCE : patience;
    struct last_words *w = xcalloc(1, sizeof(*w));
    *w = (struct last_words){.a = a, .o = o};
    (void)pthread_mutex_init(&w->lock, NULL); /* cannot fail on Linux */
    pthread_t thread;
    if (pthread_create(&thread, NULL, write_last_words, w) != 0) {
        remove_secrets(a); /* no memory for a thread: then without */
        for (int left = 3; !try_to_write(w) && --left;)
            (void)poll(NULL, 0, 1000); /* a second */
        free(w);
        return true;
    }
    if (shepherd_wait_for(thread, 5 * USEC_SEC)) {
        free(w);
        return true;
    }
    pthread_mutex_lock(&w->lock);
    tail_say(&a->tail, "%s; trying for another %s",
             *w->trouble ? w->trouble : "the shared root does not answer",
             span_to_string(patience, span));
    pthread_mutex_unlock(&w->lock);
    bool is_over = shepherd_wait_for(thread, patience);
    if (!is_over)
        shepherd_give_up(a, w, thread);
    else
        free(w);
    return is_over;
}

int main(int argc, char **argv)
{
    if (argc == 2 && str_eq(argv[1], "--version")) {
        (void)puts("argus-shepherd " ARGUS_VERSION); /* a closed output hears nothing */
        return 0;
    }
    if (argc >= 2 && str_eq(argv[1], SCOUT_WORD))
        return scout_main(argc - 2, argv + 2);
    if (argc != 2 || argv[1][0] == '-') {
        (void)fputs("usage: argus-shepherd <attempt directory>\n", stderr); /* the same */
        return 2;
    }
    run_block_signals();
    _cleanup_(attempt_release) struct attempt a = {.reserve = -1};
    _cleanup_(outcome_release) struct outcome o = {
        .code = -1, .oom_kills = -1, .own_kills = -1, .memory_max = -1, .memory_peak = -1};
    struct err err = {0};
    int status = attempt_begin(&a, argv[1], &err);
    if (status)
        return status;
    names_from_path(a.dir, &o);
    int r = run_attempt(&a, &o, &err);
    fill_outcome(&a, &o, r, &err);
    tail_finish(&a.tail);
    tail_say(&a.tail, "%s", o.sentence);
    bool is_over = leave_last_words(&a, &o);
    if (!is_over || o.is_root_stuck)
        _exit(outcome_exit_status(&o)); /* their threads still use what would be freed */
    return outcome_exit_status(&o);
}
