/* SPDX-License-Identifier: Apache-2.0 */
/* witness.h - what the shepherd says of an attempt: its beat, its exit file, and the logs that are
 * there.
 *
 * What was written by a job or its shepherd is outside bytes and is read with a ceiling. Blocking.
 */
#pragma once
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"
#include "fsroot/attempt/seen.h"

struct fsroot_beat {
    enum fsroot_seen seen;
    char why[256]; /* UNREADABLE: the sentence */
    int64_t pid;   /* of the command; 0: not started yet */
    int64_t shepherd_pid;
    uint64_t start_ticks; /* of the command's process, from /proc/<pid>/stat */
    char node[256];
    char ip[64]; /* "" if not known */
    uint64_t log_bytes, dropped_bytes;
    uint64_t seq;
    usec_t at;      /* the worker's clock */
    char state[16]; /* starting running stopping */
};

struct fsroot_exit {
    enum fsroot_seen seen;
    char why[256];
    char cause[24];        /* exit signal stopped mismatch start_failed stopped_before_start */
    char class[24];        /* of the failure, where the shepherd knows it: "import_error" or "" */
    bool has_code;         /* code is set */
    int code;              /* exit code of the command */
    char signal[24];       /* "SIGKILL", "" if none */
    usec_t started, ended; /* 0: not known */
    uint64_t max_rss_bytes;
    double user_s, sys_s;
    uint64_t log_bytes, dropped_bytes;
    int64_t oom_kills;  /* of its processes, by cgroup and kernel's log; -1: not readable there */
    bool oom_unsure;    /* they may have been another job's, which shares the cgroup */
    char oom_line[320]; /* of the kernel's log; "" */
    char node[256];
    int64_t pid;
    int64_t strays;        /* processes that it left behind, which were ended */
    char stop_reason[256]; /* "" if no stop was requested */
    char last_error[256];  /* of exit code 0: the error that its output ends with; "" */
    /* Why it could not start, or what was imported in another's place: a message that was kept. ""
     * of a shepherd of before, whose sentence says it in English. */
    char says[600];
    char sentence[512];
};

void fsroot_beat_read(const char *root, const char *job, int attempt, struct fsroot_beat *ret);
void fsroot_exit_read(const char *root, const char *job, int attempt, struct fsroot_exit *ret);

/* A directory of the attempt (sub; NULL: its own), by no link below the job's: closedir() it. 0 or
 * a negative errno: -ENOENT it is not there, -ELOOP there is a link or a file in its place. */
must_check int fsroot_attempt_opendir(const char *root,
                                      const char *job,
                                      int attempt,
                                      const char *sub,
                                      DIR **ret);
/* The nodes that have a directory in this place of the attempt (ATTEMPT_SCENE, ATTEMPT_WORKERS),
 * sorted, FSROOT_NODES_MAX at most. ret is empty. -ENOENT: there is no such place. */
enum { FSROOT_NODES_MAX = 4096 };
must_check int fsroot_nodes_of(const char *root,
                               const char *job,
                               int attempt,
                               const char *place,
                               struct strv *ret,
                               struct err *err);
/* Up to max names "logs/workers/<node>/<file>" of what its workers printed, by node and name, each
 * for logread_at(). -ENOENT: there is none. */
must_check int fsroot_worker_logs(const char *root,
                                  const char *job,
                                  int attempt,
                                  size_t max,
                                  struct strv *ret,
                                  struct err *err);
