/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_stops.c - which steps of runs end with a job that somebody thinks of stopping.
 *
 * The step that is the job would be cancelled (pipes_settle.c). What comes of the others is asked
 * of core/pipe on a copy of the items, where that step is over: one that wants to start all the
 * same, by its `if`, is not named. */
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/stopplan.h"
#include "argusd/pipes/pipes_state.h"
#include "base/str.h"

/* The items of one step that would not start any more. What the step needs was asked before. */
static void stops_skip_step(struct pipe_run *copy,
                            int step,
                            const char *run,
                            struct stopplan *p,
                            bool sees)
{
    for (size_t i = 0; i < copy->n; i++) {
        struct pipe_item *item = &copy->v[i];
        if (item->step != step || item->state != PIPE_WAITING || item->tries ||
            pipe_run_wants(copy, i))
            continue;
        item->state = PIPE_SKIPPED;
        const struct stopplan_step skipped = {
            .run = run, .step = item->name, .fate = STOPPLAN_SKIPPED};
        stopplan_add_step(p, &skipped, sees);
    }
}

static void stops_add_run(const struct pipe_life *r, size_t item, struct stopplan *p, bool sees)
{
    struct pipe_run copy = r->run;
    const struct stopplan_step its = {
        .run = r->id, .step = copy.v[item].name, .fate = STOPPLAN_CANCELLED};
    copy.v = xcalloc(copy.n, sizeof(*copy.v));
    memcpy(copy.v, r->run.v, copy.n * sizeof(*copy.v)); /* texts are borrowed */
    copy.v[item].state = PIPE_CANCELLED;
    stopplan_add_step(p, &its, sees);
    for (size_t i = 0; i < copy.pipe->n_steps; i++)
        stops_skip_step(&copy, copy.pipe->order[i], r->id, p, sees);
    free(copy.v);
}

void pipes_add_stop_steps(const struct pipes *ps, const struct access_who *who, struct stopplan *p)
{
    const struct pipe_life *r;
    for (size_t pos = 0; (r = pipes_next_run(ps, &pos));) {
        if (!r->pipe || r->state != PIPE_RUNNING)
            continue;
        for (size_t i = 0; i < r->run.n; i++) {
            const struct pipe_item *item = &r->run.v[i];
            if (item->state != PIPE_RUNNING || !str_eq(item->job, p->job))
                continue;
            const struct access_thing thing = pipe_life_thing(r);
            stops_add_run(r, i, p,
                          access_check(who, ACCESS_PIPELINE_SEE, "see", &thing, NULL) == 0);
        }
    }
}
