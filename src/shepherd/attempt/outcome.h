/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.h - how the attempt ended, and exit.json, which tells it once and for all.
 *
 * fsroot_exit_read() is its reader. The file's blocks are reserved at the start, so
 * that a disk which the training has filled cannot swallow the end. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"

/* X(enumerator, word in exit.json) */
#define CAUSE_TABLE(X)                                                                             \
    X(CAUSE_EXIT, "exit")                                                                          \
    X(CAUSE_SIGNAL, "signal")                                                                      \
    X(CAUSE_STOPPED, "stopped")                                                                    \
    X(CAUSE_MISMATCH, "mismatch")                                                                  \
    X(CAUSE_START_FAILED, "start_failed")                                                          \
    X(CAUSE_STOPPED_BEFORE_START, "stopped_before_start")

enum cause {
#define X(e, w) e,
    CAUSE_TABLE(X)
#undef X
};

const char *cause_to_string(enum cause c);

/* Exit statuses of argus-shepherd itself; else it is the command's, 128 + n for signal n. */
enum { SHEPHERD_START_FAILED = 90, SHEPHERD_STARTED_TWICE = 91, SHEPHERD_MISMATCH = 92 };

struct outcome {
    char *job;
    int attempt;
    enum cause cause;
    int code;   /* -1: none */
    int signal; /* 0: none */
    usec_t started, ended;
    uint64_t max_rss_bytes;
    double user_s, sys_s;
    uint64_t log_bytes, dropped_bytes;
    char *log_error;    /* NULL: none */
    usec_t root_away;   /* how long the shared root did not answer, while we asked */
    bool is_root_stuck; /* and it still does not */
    int64_t oom_kills;  /* in its cgroup; -1: not known */
    int own_kills;      /* for memory, of its processes, by all that is known; -1: nothing is */
    bool is_unsure;     /* they may have been another job's, which shares the cgroup */
    char *oom_line;     /* the kernel's line about the first of these kills; NULL */
    int64_t memory_max, memory_peak; /* of the cgroup; -1: no limit, not known */
    char *node;
    pid_t pid;         /* 0: nothing was started */
    size_t strays;     /* processes left behind by the command, ended by us */
    char *stop_reason; /* NULL: no stop was requested */
    char *mismatch;    /* CAUSE_MISMATCH: what was not imported as it was to be, proof_says() */
    char *last_error; /* exit code 0, but its output ends with this (finale.h); NULL: it does not */
    char *why;        /* CAUSE_START_FAILED: message_keep() of the error */
    char *sentence;   /* all of it in English, for whoever reads the file */
};

void outcome_release(struct outcome *o);

/* Set code or signal from a wait status. */
void outcome_set_status(struct outcome *o, int wait_status);
/* "SIGKILL", into text. */
const char *signal_to_string(int sig, char text[static 24]);
/* Composes the sentence from the other members; an existing sentence stays. */
void outcome_tell(struct outcome *o);
/* The exit status of argus-shepherd. */
int outcome_exit_status(const struct outcome *o);

/* Takes space for exit.json in dir. A failure costs only the reserve: returns a
 * descriptor for outcome_write(), or -1. */
int outcome_reserve(const char *dir);
/* Write, sync, rename, sync. `reserve` is that of outcome_reserve() and stays the caller's. */
must_check int outcome_write(const char *dir,
                             int reserve,
                             const struct outcome *o,
                             struct err *err);
