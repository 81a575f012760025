/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - argus-shepherd runs one attempt of a job on its worker.
 *
 *   argus-shepherd <attempt directory>
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/version.h"
#include "shepherd/host.h"
#include "shepherd/run.h"

enum { WRITE_TRIES = 60 }; /* of exit.json, one a second */

/* Its directory and the log, once this shepherd is the one. */
struct attempt {
    char *dir;
    struct sink *sink;
    struct tail tail;
    int reserve;          /* of exit.json */
    char *worker_secrets; /* the file to remove at the end; NULL: none */
};

static void attempt_release(struct attempt *a)
{
    free(a->dir);
    free(a->worker_secrets);
    sink_free(a->sink);
    closep(&a->reserve);
}

/* One line for Ray's log, where a person looks when nothing else was written. */
static int refuse(int status, const char *sentence)
{
    (void)dprintf(STDOUT_FILENO, "argus-shepherd: %s\n", sentence); /* nowhere else to say it */
    return status;
}

/* The log is made in a directory that argusd made; on NFS it may not be seen yet. */
static int open_log(const char *dir, struct sink **ret, struct err *err)
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
        return refuse(SHEPHERD_START_FAILED, err->text);
    }
    _cleanup_(freep) char *exit_file = xasprintf("%s/" ATTEMPT_EXIT, a->dir);
    int r = file_is_there(exit_file) ? -EEXIST : open_log(a->dir, &a->sink, err);
    if (r == -EEXIST) {
        (void)err_set(err, r, "the attempt in '%s' was started before: doing nothing", a->dir);
        return refuse(SHEPHERD_STARTED_TWICE, err->text);
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
    _cleanup_(order_release) struct order order = {0};
    if (!a->sink)
        return err_prefix(err, "cannot start");
    o->stop_reason = run_take_stop(a->dir);
    if (o->stop_reason) {
        o->cause = CAUSE_STOPPED_BEFORE_START;
        return 0;
    }
    int r = order_read(a->dir, &order, err);
    if (r < 0)
        return r;
    set_str(&a->worker_secrets, order.launch.worker_secrets);
    struct veil *veil = veil_new(&order.launch.secret_values);
    struct run_spec spec = {
        .dir = a->dir, .order = &order, .sink = a->sink, .tail = &a->tail, .veil = veil};
    r = run_command(&spec, o, err);
    veil_free(veil);
    return r;
}

/* In case that nobody read it, or that argusd wrote it again while we started; and those of
 * Ray's workers. argusd removes what is left when we cannot. */
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
        o->sentence = xstrdup(err->text);
    }
    if (a->sink && sink_finish(a->sink, &sync) < 0)
        o->log_error = xstrdup(sync.text);
    o->log_bytes = a->sink ? sink_bytes(a->sink) : 0;
    o->dropped_bytes = a->sink ? sink_dropped(a->sink) : 0;
    outcome_tell(o);
}

/* The one file that must not be lost: a shared root that is away may come back. */
static void write_outcome(struct attempt *a, const struct outcome *o)
{
    struct err err;
    for (int i = 0; i < WRITE_TRIES; i++) {
        if (outcome_write(a->dir, a->reserve, o, &err) == 0)
            return;
        if (i == 0)
            tail_say(&a->tail, "%s; trying again for a minute", err.text);
        (void)poll(NULL, 0, 1000); /* a second, or less when a signal comes */
    }
    tail_say(&a->tail, "gave up: %s", err.text);
}

int main(int argc, char **argv)
{
    if (argc == 2 && str_eq(argv[1], "--version")) {
        (void)puts("argus-shepherd " ARGUS_VERSION); /* a closed output hears nothing */
        return 0;
    }
    if (argc != 2 || argv[1][0] == '-') {
        (void)fputs("usage: argus-shepherd <attempt directory>\n", stderr); /* the same */
        return 2;
    }
    run_block_signals();
    _cleanup_(attempt_release) struct attempt a = {.reserve = -1};
    _cleanup_(outcome_release) struct outcome o = {.code = -1, .oom_kills = -1};
    struct err err = {0};
    int status = attempt_begin(&a, argv[1], &err);
    if (status)
        return status;
    names_from_path(a.dir, &o);
    int r = run_attempt(&a, &o, &err);
    remove_secrets(&a);
    fill_outcome(&a, &o, r, &err);
    tail_finish(&a.tail);
    tail_say(&a.tail, "%s", o.sentence);
    write_outcome(&a, &o);
    return outcome_exit_status(&o);
}
