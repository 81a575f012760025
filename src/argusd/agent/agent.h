/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - pushes events and figures to the ops agent that argus.yaml names.
 *
 * At least once, in the order of the events, over restarts; what its token may not see is not
 * pushed. Where argus.yaml names none, all of this does nothing. */
#pragma once
#include "argusd/kit/api.h"

struct agent;

/* a is borrowed, and is not looked at before the start. */
struct agent *agent_new(struct api *a);
#define AGENT_ENTRY "agent"
/* A row of the store; one that cannot be read is an error in the log. */
void agent_restore(struct agent *g, const struct store_entry *row);
void agent_start(struct agent *g);
/* Nothing is sent any more; what was not taken is sent after the next start. NULL is fine. */
void agent_close(struct agent *g);
void agent_free(struct agent *g);

/* For pages: the receiver alone of the settings says whether there is an agent. */
struct agent_state {
    bool is_there;
    const char *token;   /* id */
    int64_t taken, last; /* up to which event; the newest there is */
    bool has_gap;
    int64_t gap_since, gap_next; /* the agent has not been told of these events (since, next] */
    int64_t batches;             /* taken in this life */
    usec_t taken_at, failing_for;
    const char *trouble; /* "" = none */
};
void agent_state(const struct agent *g, struct agent_state *ret);

struct opinion;
/* An opinion of this job becomes an event of it; o gets its number and time. */
void opinion_keep(struct api *a, const char *job, int64_t seq, struct opinion *o);
