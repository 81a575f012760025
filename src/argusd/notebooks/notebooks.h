/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks.h - the notebooks that there are, and the jobs that are their leases.
 *
 * They live in memory, behind them rows of the store. Pointers are borrowed until the loop goes
 * on. */
#pragma once
#include "argusd/kit/api.h"
#include "argusd/launch/notebooktoken.h"
#include "core/notebook/notebook.h"

enum { NOTEBOOKS_OF_USER_MAX = 50, NOTEBOOK_ADDRESS_MAX = 64 };
#define NOTEBOOKS_ENTRY "notebook"

struct notebooks;
struct store_read;
struct submit;

/* X(enumerator suffix = word) */
#define NOTEBOOK_STATE_TABLE(X)                                                                    \
    X(STOPPED)                                                                                     \
    X(WAITING)                                                                                     \
    X(STARTING)                                                                                    \
    X(READY)                                                                                       \
    X(STOPPING)                                                                                    \
    X(FAILED)
enum notebook_state {
#define X(e) NOTEBOOK_##e,
    NOTEBOOK_STATE_TABLE(X)
#undef X
};
extern const char *const notebook_state_words[];

/* Read-only to everybody but this room. */
struct noted {
    struct notebook n;

    /* Nothing of this is stored. */
    struct notebooks *of;
    struct submit *submit;
    struct store_read *read;       /* of its job that is over */
    usec_t again_at;               /* monotonic: not submitted before */
    bool reading;                  /* its record */
    usec_t looked_at;              /* monotonic */
    struct notebook_report report; /* of the attempt that runs; port 0: none */
    usec_t active_at;              /* monotonic: when something happened last */
    usec_t heard_at;               /* monotonic: when its record was another one last */
    usec_t warned_at;              /* monotonic; 0: its owner was not */
    usec_t left;                   /* until it is stopped as idle; 0: it is not */
    char node[NOTEBOOK_ADDRESS_MAX];
    struct reason reason; /* why it does not run yet */
};

struct notebooks *notebooks_new(struct api *a); /* borrowed */
void notebooks_restore(struct notebooks *ns, const struct store_entry *row);
void notebooks_start(struct notebooks *ns);
void notebooks_close(struct notebooks *ns); /* NULL is fine */
void notebooks_free(struct notebooks *ns);  /* the loop has run dry */

/* The notebook of this owner; NULL: there is none. */
const struct noted *notebooks_find(const struct notebooks *ns, const char *owner, const char *name);
const struct noted *notebooks_next(const struct notebooks *ns, size_t *pos);
/* The name of the one whose lease is this job, borrowed; NULL: none. *ret_left: until it is stopped
 * as idle, where its owner was warned of that; else as it was. */
const char *notebooks_of_job(const struct notebooks *ns, const char *job, usec_t *ret_left);
struct access_thing notebook_thing(const struct notebook *n);
enum notebook_state notebook_state_of(const struct noted *x);
/* NOTEBOOK_PHASE_NONE: it is not to run, or is being stopped. */
enum notebook_phase notebook_phase_of(const struct noted *x);

/* A new one, or one that is there (x) with other settings: it is to run from now on. taken: its
 * members are taken where 0 is returned. ERR_CONFLICT: it runs. ERR_REFUSED: its owner or its
 * project has as many as argus.yaml allows. */
must_check int notebooks_run(struct notebooks *ns,
                             const struct noted *x,
                             struct notebook *taken,
                             const struct noted **ret,
                             struct err *err);
/* The job is stopped; the row stays. code: why, a message; NULL: it was asked for. */
void notebooks_stop(struct notebooks *ns,
                    const struct noted *notebook,
                    const char *actor,
                    const char *code,
                    const char *text);
/* It is not stopped as idle for so long. */
void notebooks_extend(struct notebooks *ns,
                      const struct noted *notebook,
                      usec_t span,
                      const char *actor);
/* ERR_CONFLICT: its job has not ended. x is gone where 0 is returned. */
must_check int notebooks_remove(struct notebooks *ns, const struct noted *x, struct err *err);

struct notebook_door {
    char host[NOTEBOOK_ADDRESS_MAX]; /* an IP address of the machine that its running job leases */
    unsigned port;
    char token[NOTEBOOKTOKEN_MAX];
};
/* ERR_UNAVAILABLE: it is not ready, with why. */
must_check int notebooks_find_door(const struct noted *x,
                                   struct notebook_door *ret,
                                   struct err *err);
