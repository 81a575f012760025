/* SPDX-License-Identifier: Apache-2.0 */
/* agent_run.h - inside of the agent's service: what its files share. Nobody outside this room
 * includes it. */
#pragma once
#include "argusd/agent/agent.h"
#include "argusd/courier/courier.h"

#define AGENT_SCHEMA "argus-agent/1"

enum {
    AGENT_EVENTS_MAX = 200, /* of one batch */
    AGENT_ID_MAX = 40,
    AGENT_EVENT_BYTES = 1 << 20,    /* a batch has no further event beyond */
    AGENT_FIGURE_BYTES = 512 << 10, /* nor a further job */
    AGENT_BATCH_BYTES = 4 << 20,
};

/* Events (since, next] that are not pushed. */
struct agent_gap {
    int64_t since, next;
};

struct agent_batch {
    char id[AGENT_ID_MAX];
    int64_t since, next;
    bool has_gap; /* it tells of it */
    bool more;    /* there are events after it */
};

struct agent {
    struct api *a;
    struct courier *courier; /* NULL: there is no agent */
    uv_timer_t timer;
    bool has_timer, closing;
    struct http_principal who; /* the agent, as its token is now */
    int64_t taken;             /* up to this event */
    bool has_taken;            /* a row of the store said so */
    struct agent_gap gap;      /* next 0: none */
    struct store_read *read;
    int64_t through;          /* on disk when the read began */
    struct agent_batch batch; /* the newest one */
    bool sending;             /* it is on its way */
    bool more;                /* the next batch is due at once */
    usec_t due;               /* monotonic */
    int64_t first_left;       /* job that the next figures begin with; 0: the first */
    int64_t batches;
};

/* agent_batch.c: the message goes to out. False: there is nothing to tell, and only ret->next and
 * ret->more say anything. */
bool agent_batch_make(struct agent *g,
                      const struct store_result *r,
                      struct agent_batch *ret,
                      struct buf *out);
extern const struct field_table agent_batch_table, agent_figures_table, agent_gap_table;
