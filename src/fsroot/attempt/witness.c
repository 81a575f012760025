/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - reads what the shepherd left: beat, exit.json, logs; see witness.h.
 *
 * These files decide whether a job is called dead, so the three answers are kept
 * apart with care: a file that is missing in a directory that is there is ABSENT;
 * a directory that is missing, a stale handle, a torn or wrong text is UNREADABLE. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/witness.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { WITNESS_MAX_BYTES = 64 << 10, ENTRIES_MAX = 100000 };

/* Cut where it is too long, and made harmless for a terminal: it is for people. */
static void witness_copy_text(char *dst, size_t size, const char *src)
{
    size_t n = strnlen(src, size - 1);
    for (size_t i = 0; i < n; i++)
        dst[i] = iscntrl((unsigned char)src[i]) ? ' ' : src[i];
    dst[n] = 0;
}

/* An NFS client remembers for up to a minute that a name was not in a directory. That it looks up
 * again once somebody opens the directory itself: then it asks the server whether that has changed.
 * Without this, a job on another machine that lived some seconds has left no file at all. */
static int witness_read_anew(const char *root,
                             const char *dir,
                             const char *name,
                             struct buf *out,
                             struct err *err)
{
    struct err why = {0};
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    int r = rootdir_open(root, dir, 0, &d, &why);
    if (r < 0)
        return message_refuse(err, r, "attempt_dir_gone",
                              MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_ERR("why", &why)));
    return rootdir_read(&d, name, out, err);
}

/* Reads one of the files as an object. ABSENT and UNREADABLE are final. */
static enum fsroot_seen witness_read_object(const char *root,
                                            const char *job,
                                            int attempt,
                                            const char *name,
                                            json_t **ret,
                                            char why[static 256])
{
    struct err err = {0};
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, name);
    _cleanup_(freep) char *dir = fsroot_attempt_dir(root, job, attempt, NULL);
    _cleanup_(buf_release) struct buf text = BUF_INIT(WITNESS_MAX_BYTES);
    int r = fsroot_is_name(job) ? rootfile_read(root, path, &text, &err)
                                : message_refuse(&err, -EINVAL, "no_job_dir",
                                                 MESSAGE_ARGS(MESSAGE_STR("name", job)));
    if (r == -ENOENT)
        r = witness_read_anew(root, dir, name, &text, &err);
    struct stat st;
    if (r == -ENOENT && rootfile_look(root, dir, &st) == 0)
        return FSROOT_ABSENT;
    if (r == 0) {
        r = json_parse(buf_str(&text), text.len, WITNESS_MAX_BYTES, ret, &err);
        if (r == 0 && !json_is_object(*ret))
            r = message_refuse(&err, -EINVAL, "json_text_no_object", MESSAGE_NO_ARGS);
        if (r < 0)
            (void)message_refuse(&err, r, "ckpt_of_file",
                                 MESSAGE_ARGS(MESSAGE_STR("path", path),
                                              MESSAGE_ERR("why", &err))); /* only fills it */
    }
    witness_copy_text(why, 256, err.text);
    return r < 0 ? FSROOT_UNREADABLE : FSROOT_PRESENT;
}

/* ---- members: the first of a wrong type ends the reading ---- */

struct members {
    const json_t *o;
    const char *wrong; /* its key; NULL: all good */
};

static const json_t *witness_member(struct members *m, const char *key, bool may_be_null)
{
    const json_t *v = json_object_get(m->o, key);
    if (v && !json_is_null(v))
        return v;
    if (!may_be_null && !m->wrong)
        m->wrong = key;
    return NULL;
}

static int64_t get_int(struct members *m, const char *key, int64_t dflt)
{
    const json_t *v = witness_member(m, key, dflt < 0);
    if (!v)
        return dflt;
    if (!json_is_integer(v) || json_integer_value(v) < 0) {
        m->wrong = m->wrong ? m->wrong : key;
        return dflt;
    }
    return json_integer_value(v);
}

static bool get_bool(struct members *m, const char *key)
{
    const json_t *v = witness_member(m, key, true);
    if (v && !json_is_boolean(v))
        m->wrong = m->wrong ? m->wrong : key;
    return json_is_true(v);
}

static double get_real(struct members *m, const char *key)
{
    const json_t *v = witness_member(m, key, false);
    double d = json_number_value(v);
    if (v && (!json_is_number(v) || !isfinite(d) || d < 0))
        m->wrong = m->wrong ? m->wrong : key;
    return m->wrong ? 0 : d;
}

static void witness_get_text(struct members *m,
                             const char *key,
                             bool may_be_null,
                             char *dst,
                             size_t size)
{
    const json_t *v = witness_member(m, key, may_be_null);
    if (v && !json_is_string(v))
        m->wrong = m->wrong ? m->wrong : key;
    witness_copy_text(dst, size, str_or(json_string_value(v), ""));
}

/* Only a message of the catalogue with arguments that read, since a job may write there too. */
static void witness_get_says(struct members *m, char *dst, size_t size)
{
    _cleanup_(json_unrefp) json_t *args = NULL;
    witness_get_text(m, "says", true, dst, size);
    const char *text = message_kept_text(dst);
    if (!message_kept_code(dst) || json_parse(text, strlen(text), size, &args, NULL) < 0 ||
        !json_is_object(args))
        *dst = 0;
}

static usec_t get_time(struct members *m, const char *key, bool may_be_null)
{
    char text[64];
    usec_t t = 0;
    witness_get_text(m, key, may_be_null, text, sizeof(text));
    if (text[0] && clock_from_string(text, &t, NULL) < 0)
        m->wrong = m->wrong ? m->wrong : key;
    return t;
}

static bool is_good(const struct members *m, const char *name, char why[static 256])
{
    if (m->wrong)
        text_printf_to(why, 256, "'%s' of the shepherd: '%s' is missing or of a wrong type", name,
                       m->wrong);
    return !m->wrong;
}

void fsroot_beat_read(const char *root, const char *job, int attempt, struct fsroot_beat *ret)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    struct fsroot_beat b = {0};
    b.seen = witness_read_object(root, job, attempt, ATTEMPT_BEAT, &o, b.why);
    struct members m = {.o = o};
    if (b.seen == FSROOT_PRESENT) {
        b.seq = (uint64_t)get_int(&m, "seq", 0);
        b.at = get_time(&m, "at", false);
        b.pid = get_int(&m, "pid", 0);
        b.start_ticks = (uint64_t)get_int(&m, "start_ticks", 0);
        b.shepherd_pid = get_int(&m, "shepherd_pid", 0);
        b.log_bytes = (uint64_t)get_int(&m, "log_bytes", 0);
        b.dropped_bytes = (uint64_t)get_int(&m, "dropped_bytes", 0);
        witness_get_text(&m, "node", false, b.node, sizeof(b.node));
        witness_get_text(&m, "ip", true, b.ip, sizeof(b.ip));
        witness_get_text(&m, "state", false, b.state, sizeof(b.state));
        if (!is_good(&m, "beat", b.why)) {
            struct fsroot_beat bad = {.seen = FSROOT_UNREADABLE};
            witness_copy_text(bad.why, sizeof(bad.why), b.why);
            b = bad;
        }
    }
    *ret = b;
}

static bool is_cause(const char *text)
{
    static const char *const causes[] = {"exit",     "signal",       "stopped",
                                         "mismatch", "start_failed", "stopped_before_start"};
    for (size_t i = 0; i < array_len(causes); i++)
        if (!strcmp(causes[i], text))
            return true;
    return false;
}

/* The OOM kills of the attempt's processes. Shepherds of older versions do not tell their own
 * count: then the larger of the group's and the kernel's counts. */
static int64_t get_kills(struct members *m)
{
    int64_t group = get_int(m, "oom_kill", -1), log = get_int(m, "kernel_oom_kill", -1);
    return json_object_get(m->o, "own_oom_kill") ? get_int(m, "own_oom_kill", -1)
           : group > log                         ? group
                                                 : log;
}

static void read_exit(struct members *m, struct fsroot_exit *e)
{
    witness_get_text(m, "cause", false, e->cause, sizeof(e->cause));
    if (!is_cause(e->cause) && !m->wrong)
        m->wrong = "cause";
    witness_get_text(m, "class", true, e->class, sizeof(e->class));
    int64_t code = get_int(m, "code", -1);
    if (code > 255 && !m->wrong)
        m->wrong = "code";
    e->has_code = code >= 0;
    e->code = code >= 0 && !m->wrong ? (int)code : 0;
    witness_get_text(m, "signal", true, e->signal, sizeof(e->signal));
    e->started = get_time(m, "started_at", true);
    e->ended = get_time(m, "ended_at", false);
    e->max_rss_bytes = (uint64_t)get_int(m, "max_rss_bytes", 0);
    e->user_s = get_real(m, "user_s");
    e->sys_s = get_real(m, "sys_s");
    e->log_bytes = (uint64_t)get_int(m, "log_bytes", 0);
    e->dropped_bytes = (uint64_t)get_int(m, "dropped_bytes", 0);
    e->oom_kills = get_kills(m);
    e->oom_unsure = get_bool(m, "oom_unsure");
    witness_get_text(m, "oom_line", true, e->oom_line, sizeof(e->oom_line));
    witness_get_text(m, "node", false, e->node, sizeof(e->node));
    e->pid = get_int(m, "pid", -1);
    e->pid = e->pid < 0 ? 0 : e->pid;
    e->strays = get_int(m, "strays", -1); /* older ones lack it */
    witness_get_text(m, "stop_reason", true, e->stop_reason, sizeof(e->stop_reason));
    witness_get_text(m, "last_error", true, e->last_error, sizeof(e->last_error));
    witness_get_says(m, e->says, sizeof(e->says));
    witness_get_text(m, "sentence", false, e->sentence, sizeof(e->sentence));
}

void fsroot_exit_read(const char *root, const char *job, int attempt, struct fsroot_exit *ret)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    struct fsroot_exit e = {0};
    e.seen = witness_read_object(root, job, attempt, ATTEMPT_EXIT, &o, e.why);
    struct members m = {.o = o};
    if (e.seen == FSROOT_PRESENT) {
        read_exit(&m, &e);
        if (!is_good(&m, "exit.json", e.why)) {
            struct fsroot_exit bad = {.seen = FSROOT_UNREADABLE};
            witness_copy_text(bad.why, sizeof(bad.why), e.why);
            e = bad;
        }
    }
    *ret = e;
}

int fsroot_attempt_opendir(const char *root,
                           const char *job,
                           int attempt,
                           const char *sub,
                           DIR **ret)
{
    if (!fsroot_is_name(job))
        return -EINVAL;
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, sub);
    int r = rootfile_list(root, path, ret, NULL);
    return r == -ENOTDIR || r == -EXDEV ? -ELOOP : r;
}

/* Not its later segments: they are read with it (logread.h). */
static bool is_log(const struct dirent *e)
{
    const char *end = strrchr(e->d_name, '.');
    return (e->d_type == DT_REG || e->d_type == DT_UNKNOWN) && end &&
           str_starts(e->d_name, "worker-") && (str_eq(end, ".out") || str_eq(end, ".err"));
}

static bool is_directory(const struct dirent *e)
{
    return (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && e->d_name[0] != '.';
}

static int witness_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a directory that a job can fill: so many are looked at, so many kept. */
static int list_sorted(const char *root,
                       const char *path,
                       bool (*is_one)(const struct dirent *e),
                       size_t max,
                       struct strv *ret)
{
    DIR *d = NULL;
    const struct dirent *e;
    int r = rootfile_list(root, path, &d, NULL);
    if (r < 0)
        return r;
    for (int seen = 0; seen < ENTRIES_MAX && ret->n < max && (e = readdir(d)); seen++)
        if (is_one(e))
            strv_add(ret, e->d_name);
    (void)closedir(d); /* it was only read */
    if (ret->n)
        xsort(ret->v, ret->n, sizeof(*ret->v), witness_by_name);
    return 0;
}

static void list_logs_of(const char *root,
                         const char *dir,
                         const char *node,
                         size_t max,
                         struct strv *ret)
{
    _cleanup_(strv_release) struct strv names = {0};
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, node);
    (void)list_sorted(root, path, is_log, max - ret->n, &names); /* no directory: no logs */
    for (size_t i = 0; i < names.n; i++)
        strv_addf(ret, ATTEMPT_WORKERS "/%s/%s", node, names.v[i]);
}

int fsroot_nodes_of(const char *root,
                    const char *job,
                    int attempt,
                    const char *place,
                    struct strv *ret,
                    struct err *err)
{
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, place);
    int r = list_sorted(root, path, is_directory, FSROOT_NODES_MAX, ret);
    return r < 0 ? message_refuse(
                       err, r, "disk_no_read_it",
                       MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-r))))
                 : 0;
}

int fsroot_worker_logs(const char *root,
                       const char *job,
                       int attempt,
                       size_t max,
                       struct strv *ret,
                       struct err *err)
{
    _cleanup_(strv_release) struct strv nodes = {0};
    int r = fsroot_nodes_of(root, job, attempt, ATTEMPT_WORKERS, &nodes, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, ATTEMPT_WORKERS);
    for (size_t i = 0; i < nodes.n && ret->n < max; i++)
        list_logs_of(root, path, nodes.v[i], max, ret);
    return 0;
}
