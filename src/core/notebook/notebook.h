/* SPDX-License-Identifier: Apache-2.0 */
/* notebook.h - a notebook as a value: what was asked for, the JobSpec of its lease, and what its
 * program (lib/argus_notebook.py) says of itself. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/field.h"
#include "core/job/ports.h"

enum { NOTEBOOK_NAME_MAX = 40 };

/* Rows FIELD_ASKED are what people say, FIELD_STORED the row of the store. */
struct notebook {
    char *name, *owner, *project;
    char *snapshot;        /* importable in its kernels; NULL: none */
    char *python;          /* an interpreter that has JupyterLab; NULL: the machine's own */
    double gpus, cpus;     /* gpus: a part of one, or whole ones, or 0 */
    uint64_t memory_bytes; /* 0: not said */
    struct strv pool, secrets;
    int64_t priority;
    usec_t idle;       /* it is stopped after so long without use; 0: never */
    bool wanted;       /* it is to run */
    bool failed;       /* it ended by itself, and not well */
    char *job;         /* its lease; NULL: none */
    usec_t keep_until; /* wall time: not stopped as idle before */
    usec_t created_at, changed_at;
    char *code, *text; /* why it ended last: a message; NULL: it was asked to */
    /* What interrupted its job last, since people started it: a message; NULL: nothing did. */
    char *interrupted_code, *interrupted_text;
    usec_t interrupted_at;
    int64_t told_attempt; /* of its job: interruptions up to this one were told */
};
extern const struct field_table notebook_table;

/* The name, and what of the rest a JobSpec would not refuse. ERR_BAD_SPEC. */
must_check int notebook_check(const struct notebook *n, struct err *err);

struct notebook_place {
    const char *tool; /* argus_notebook.py on the shared root */
    const char *home; /* the user's directory there */
    const struct ports_range *ports;
    const char *pip_index_url, *pip_trusted_host; /* NULL: as the machine has it */
};
/* The path under which it is seen from outside, and which Jupyter is told: "/n/alice/main". */
char *notebook_base(const struct notebook *n);
/* Appended. It is submitted as its owner. */
void notebook_write_job(const struct notebook *n, const struct notebook_place *at, struct buf *out);

/* How far a start has come. X(enumerator suffix, word) */
#define NOTEBOOK_PHASE_TABLE(X)                                                                    \
    X(NONE, "")                   /* it is not to run */                                           \
    X(QUEUED, "queued")           /* its job waits for a lease */                                  \
    X(PLACED, "placed")           /* it has a machine; its program has said nothing yet */         \
    X(ENVIRONMENT, "environment") /* directories and packages are prepared there */                \
    X(SERVER, "server")           /* JupyterLab starts */                                          \
    X(READY, "ready")
enum notebook_phase {
#define X(e, word) NOTEBOOK_PHASE_##e,
    NOTEBOOK_PHASE_TABLE(X) NOTEBOOK_PHASES
#undef X
};
extern const char *const notebook_phase_words[NOTEBOOK_PHASES + 1]; /* then NULL */

/* What its program wrote down: jobs/<id>/notebook.json. */
struct notebook_report {
    int64_t attempt;           /* of the job that it is about */
    enum notebook_phase phase; /* ENVIRONMENT, SERVER or READY */
    int64_t port;              /* 0 until it is READY */
    int64_t seq;               /* another one: it was written anew */
    usec_t quiet; /* since something happened in kernels, terminals or their processes */
    int64_t kernels, terminals;
    bool is_busy; /* a kernel works */
};
enum { NOTEBOOK_REPORT_MAX = 16 << 10 };
/* -EBADMSG: it is none, names a phase that its program cannot know of, or says that it is ready
 * without a port out of `ports`. */
must_check int notebook_read_report(const char *text,
                                    size_t len,
                                    const struct ports_range *ports,
                                    struct notebook_report *ret,
                                    struct err *err);
