/* SPDX-License-Identifier: Apache-2.0 */
/* serve_step.c - see serve_step.h. No state is kept here but since when the load is above or below
 * what the replicas are for. */
#include "core/serve/serve_step.h"

#include <math.h>

#define X(word) [SERVE_UNIT_##word] = #word,
const char *const serve_unit_words[] = {SERVE_UNIT_TABLE(X)[SERVE_UNIT_STATES] = NULL};
#undef X
#define X(word) [SERVE_VERSION_##word] = #word,
const char *const serve_version_words[] = {SERVE_VERSION_TABLE(X)[SERVE_VERSION_STATES] = NULL};
#undef X

enum serve_unit_state serve_unit_state(const struct serve_unit_seen *u)
{
    if (u->leaves && u->lease == SERVE_LEASE_NONE)
        return SERVE_UNIT_GONE;
    if (u->leaves || u->lease == SERVE_LEASE_ENDS)
        return SERVE_UNIT_LEAVING;
    if (u->lease == SERVE_LEASE_NONE)
        return SERVE_UNIT_NEW;
    if (u->lease == SERVE_LEASE_WAITS)
        return SERVE_UNIT_WAITING;
    if (!u->is_running)
        return SERVE_UNIT_LOADING;
    return u->has_door && u->passed ? SERVE_UNIT_READY : SERVE_UNIT_CHECKING;
}

enum serve_version_state serve_version_state(const struct serve_version_seen *v)
{
    if (v->failed)
        return SERVE_VERSION_FAILED;
    if (v->awaits)
        return SERVE_VERSION_WAITING;
    if (v->sleeps)
        return SERVE_VERSION_SLEEPING;
    if (!v->wanted)
        return SERVE_VERSION_COLD;
    if (v->ready >= v->wanted)
        return SERVE_VERSION_READY;
    if (v->was_ready && v->ready)
        return SERVE_VERSION_DEGRADED;
    return v->loading || v->ready ? SERVE_VERSION_LOADING : SERVE_VERSION_WAITING;
}

usec_t serve_unit_pause(int failures)
{
    int doubled = failures < 1 ? 0 : failures > 7 ? 6 : failures - 1;
    usec_t span = (5 * USEC_SEC) << doubled;
    return failures < 1 ? 0 : span > 300 * USEC_SEC ? 300 * USEC_SEC : span;
}

static bool scale_lasts(usec_t *since, bool is_so, usec_t now, int64_t seconds)
{
    if (!is_so)
        *since = 0;
    else if (!*since)
        *since = now;
    return is_so && now - *since >= (usec_t)seconds * USEC_SEC;
}

int64_t serve_scale_next(struct serve_scale *s,
                         const struct serve_spec *spec,
                         int64_t replicas,
                         double requests,
                         usec_t now)
{
    if (!spec->max_replicas)
        return replicas;
    int64_t want = (int64_t)ceil(requests / spec->target_requests);
    want = want < spec->min_replicas ? spec->min_replicas : want;
    want = want > spec->max_replicas ? spec->max_replicas : want;
    bool up = scale_lasts(&s->above_since, want > replicas, now, SERVE_UP_AFTER_S);
    bool down = scale_lasts(&s->below_since, want < replicas, now, SERVE_DOWN_AFTER_S);
    if (!up && !down)
        return replicas;
    *s = (struct serve_scale){0};
    return up ? want : replicas - 1; /* one at a time: the load comes back quicker than a model */
}

bool serve_yield_is_due(const struct serve_yield_seen *y)
{
    bool is_last = y->from_ready == 1 && y->to_failed && !y->to_ready;
    return y->to_waiting && !y->to_loading && y->from_held && !y->from_leaving && !is_last;
}

bool serve_yield_is_over(const struct serve_yield_seen *y, int64_t given)
{
    return given && y->to_ready && y->to_ready >= y->from_ready;
}
