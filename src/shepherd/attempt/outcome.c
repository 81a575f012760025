/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c - the end of an attempt in words and as exit.json; see outcome.h. */
#define _GNU_SOURCE
#include "shepherd/attempt/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/proof.h"

#define RESERVE_NAME ".exit.json.new"

enum { EXIT_MAX = 8192, REASON_SHOWN = 160 };

const char *cause_to_string(enum cause c)
{
    static const char *const words[] = {
#define X(e, w) [e] = (w),
        CAUSE_TABLE(X)
#undef X
    };
    return words[c];
}

void outcome_release(struct outcome *o)
{
    free(o->job);
    free(o->log_error);
    free(o->node);
    free(o->oom_line);
    free(o->stop_reason);
    free(o->mismatch);
    free(o->last_error);
    free(o->why);
    free(o->sentence);
    *o = (struct outcome){0};
}

void outcome_set_status(struct outcome *o, int wait_status)
{
    o->code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    o->signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
}

const char *signal_to_string(int sig, char text[static 24])
{
    const char *name = sigabbrev_np(sig);
    if (name)
        text_printf_to(text, 24, "SIG%s", name);
    else
        text_printf_to(text, 24, "SIGRTMIN+%d", sig - SIGRTMIN);
    return text;
}

static void outcome_add_end(const struct outcome *o, struct buf *out)
{
    char sig[24];
    if (o->signal)
        (void)buf_addf(out, "the command was killed by %s", signal_to_string(o->signal, sig));
    else
        (void)buf_addf(out, "the command ended with exit code %d", o->code);
}

void outcome_tell(struct outcome *o)
{
    static const struct message_listener english = {.language = MESSAGE_ENGLISH};
    _cleanup_(freep) char *says =
        message_kept_say(o->cause == CAUSE_START_FAILED ? o->why : o->mismatch, &english);
    if (o->sentence)
        return;
    /* overflow cuts nothing that matters: the ceiling is far above these texts */
    _cleanup_(buf_release) struct buf s = BUF_INIT(EXIT_MAX);
    if (o->cause == CAUSE_STOPPED_BEFORE_START)
        (void)buf_addf(&s, "stopped before the command was started: %.*s", REASON_SHOWN,
                       str_or(o->stop_reason, "no reason was given"));
    else if (o->cause == CAUSE_STOPPED)
        (void)buf_addf(&s, "stopped (%.*s): ", REASON_SHOWN,
                       str_or(o->stop_reason, "no reason was given"));
    else if (o->cause == CAUSE_MISMATCH)
        (void)buf_addf(&s, "%s; ", str_or(says, ""));
    else if (o->cause == CAUSE_START_FAILED)
        (void)buf_adds(&s, str_or(says, ""));
    if (o->cause != CAUSE_STOPPED_BEFORE_START && o->cause != CAUSE_START_FAILED)
        outcome_add_end(o, &s);
    if (o->own_kills > 0 && o->is_unsure)
        (void)buf_addf(&s,
                       "; meanwhile the kernel killed %d times for memory in its cgroup, which "
                       "other jobs share: it is not certain whose processes they were",
                       o->own_kills);
    else if (o->own_kills > 0)
        (void)buf_addf(&s, "; the kernel killed %d of its processes for memory", o->own_kills);
    if (o->last_error)
        (void)buf_addf(&s,
                       "; but its output ends with '%s': of a pipe only the exit code of the last "
                       "part counts, unless the shell has pipefail set",
                       o->last_error);
    if (o->strays)
        (void)buf_addf(&s, "; %zu processes it left behind were ended", o->strays);
    if (o->dropped_bytes)
        (void)buf_addf(&s, "; %" PRIu64 " bytes of its output are missing in the log",
                       o->dropped_bytes);
    o->sentence = buf_take(&s);
}

int outcome_exit_status(const struct outcome *o)
{
    switch (o->cause) {
    case CAUSE_START_FAILED:
        return SHEPHERD_START_FAILED;
    case CAUSE_STOPPED_BEFORE_START:
        return 0;
    case CAUSE_MISMATCH: /* whatever came of it, it was not this job's work */
        return SHEPHERD_MISMATCH;
    case CAUSE_EXIT:
    case CAUSE_SIGNAL:
    case CAUSE_STOPPED:
        break;
    }
    return o->signal ? 128 + o->signal : o->code;
}

static void outcome_to_json(const struct outcome *o, struct buf *out)
{
    char sig[24];
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "job", o->job);
    jout_int(&j, "attempt", o->attempt);
    jout_str(&j, "cause", cause_to_string(o->cause));
    jout_str(&j, "class", o->cause == CAUSE_MISMATCH ? PROOF_CLASS : NULL);
    jout_count(&j, "code", o->code);
    jout_str(&j, "signal", o->signal ? signal_to_string(o->signal, sig) : NULL);
    jout_time(&j, "started_at", o->started);
    jout_time(&j, "ended_at", o->ended);
    jout_int(&j, "max_rss_bytes", (int64_t)o->max_rss_bytes);
    jout_real(&j, "user_s", o->user_s);
    jout_real(&j, "sys_s", o->sys_s);
    jout_int(&j, "log_bytes", (int64_t)o->log_bytes);
    jout_int(&j, "dropped_bytes", (int64_t)o->dropped_bytes);
    jout_str(&j, "log_error", o->log_error);
    jout_real(&j, "root_away_s", (double)o->root_away / (double)USEC_SEC);
    jout_count(&j, "oom_kill", o->oom_kills);
    jout_count(&j, "own_oom_kill", o->own_kills);
    jout_bool(&j, "oom_unsure", o->is_unsure);
    jout_str(&j, "oom_line", o->oom_line);
    jout_count(&j, "memory_max_bytes", o->memory_max);
    jout_count(&j, "memory_peak_bytes", o->memory_peak);
    jout_str(&j, "node", o->node);
    jout_count(&j, "pid", o->pid ? o->pid : -1);
    jout_int(&j, "strays", (int64_t)o->strays);
    jout_str(&j, "last_error", o->last_error);
    jout_str(&j, "stop_reason", o->stop_reason);
    jout_str(&j, "says",
             o->cause == CAUSE_MISMATCH       ? o->mismatch
             : o->cause == CAUSE_START_FAILED ? o->why
                                              : NULL);
    jout_str(&j, "sentence", o->sentence);
    jout_close(&j, '}');
    (void)buf_addc(out, '\n'); /* overflow: out->failed */
}

int outcome_reserve(const char *dir)
{
    char blank[EXIT_MAX];
    memset(blank, ' ', sizeof(blank));
    _cleanup_(freep) char *path = xasprintf("%s/" RESERVE_NAME, dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 && file_write_all(fd, blank, sizeof(blank)) < 0)
        closep(&fd); /* and sets -1 */
    return fd;
}

/* Into the reserved blocks. */
static int write_reserved(const char *dir, int reserve, const struct buf *text)
{
    _cleanup_(freep) char *from = xasprintf("%s/" RESERVE_NAME, dir);
    _cleanup_(freep) char *to = xasprintf("%s/" ATTEMPT_EXIT, dir);
    ssize_t n = pwrite(reserve, buf_str(text), text->len, 0);
    if (n != (ssize_t)text->len)
        return n < 0 ? -errno : -ENOSPC;
    if (ftruncate(reserve, n) < 0 || fsync(reserve) < 0 || rename(from, to) < 0)
        return -errno;
    return file_sync_directory(dir);
}

int outcome_write(const char *dir, int reserve, const struct outcome *o, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(EXIT_MAX);
    outcome_to_json(o, &text);
    if (text.failed)
        return err_set(err, -EMSGSIZE, "'exit.json' would be larger than %d bytes", EXIT_MAX);
    if (reserve >= 0 && write_reserved(dir, reserve, &text) == 0)
        return 0;
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_EXIT, dir);
    _cleanup_(freep) char *left = xasprintf("%s/" RESERVE_NAME, dir);
    (void)unlink(left); /* gives its blocks back; may not exist */
    return file_write(path, buf_str(&text), text.len, 0644, FILE_SYNC, err);
}
