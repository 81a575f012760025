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
