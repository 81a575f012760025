/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_state.h - what the files of this room share. Nobody outside it includes this. */
#pragma once
#include "argusd/notebooks/notebooks.h"
#include "argusd/notebooks/notebooks_pass.h"
#include "base/map.h"

struct notebooks {
    struct api *a;
    uv_timer_t timer;
    bool started, closing;
    struct map *by_key; /* "owner/name" -> struct noted */
    struct passes passes;
};

/* ---- notebooks.c ---- */

/* An event about it. code NULL: the kind says it all. */
void notebook_note(const struct noted *x,
                   const char *kind,
                   const char *actor,
                   const char *code,
                   const char *text);

/* Nobody waits any more for what the store says of a job that is over. */
void notebook_forget_past_job(struct noted *x);

/* ---- notebooks_limits.c ---- */

/* May its owner start it? ERR_REFUSED. is_new: it is not in the table yet. */
must_check int notebooks_check_limits(const struct notebooks *ns,
                                      const struct notebook *asked,
                                      bool is_new,
                                      struct err *err);

/* ---- notebooks_interrupted.c ---- */

/* Its job went back to the queue, or has another attempt since: the owner is told, once for each
 * time, also after a restart of argusd. */
void notebook_tell_interruption(struct noted *x, const struct job *j);
/* People start it anew: nothing interrupted its next job yet. */
void notebook_forget_interruption(struct noted *x);

/* ---- notebooks_rows.c ---- */

void notebook_save(const struct noted *x);
/* A new one in the table; the members of taken are taken. */
struct noted *notebook_keep(struct notebooks *ns, struct notebook *taken);
void notebook_drop(struct noted *x); /* off the table and out of the store; x is gone */
struct noted *notebook_own(struct notebooks *ns, const struct noted *x);

/* ---- notebooks_watch.c ---- */

/* Its job runs: its record is read now and then. */
void notebook_look(struct noted *x, const struct live *l, usec_t now);
void notebook_forget(struct noted *x); /* what was known of a run that is over */
