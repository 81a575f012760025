/* SPDX-License-Identifier: Apache-2.0 */
/* jobrisk.c - see jobrisk.h.
 *
 * Ends are those that the scheduler expects of each job (learnt runs, and its timeout at the
 * latest), so that a plan and expected starts say the same. At risk is what a stop or a restart
 * throws away: the steps since the newest checkpoint, as they stand now, and all of the attempt
 * where nothing was saved or nothing is told of steps. */
#include "argusd/kit/jobrisk.h"

#include <assert.h>

#include "argusd/jobs/unsaved.h"
#include "base/str.h"

const char *const jobrisk_fate_words[] = {"ends_before", "stopped", "restarted", "waited_for",
                                          NULL};
static_assert(array_len(jobrisk_fate_words) == FATE_WAITED_FOR + 2,
              "jobrisk_fate_words has a word for each fate");

#define OF_JOB(key, ftype, member, ...) FIELD_AT(jobrisk, key, ftype, member, __VA_ARGS__)
static const struct field job_rows[] = {
    OF_JOB("job", FIELD_STR, job, .flags = FIELD_ALWAYS),
    OF_JOB("name", FIELD_STR, name),
    OF_JOB("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    OF_JOB("project", FIELD_STR, project),
    OF_JOB("state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    OF_JOB("gpus", FIELD_REAL, gpus, .doc = "GPUs of the whole job, on all its machines"),
    OF_JOB("gpus_here", FIELD_REAL, gpus_here),
    OF_JOB("step", FIELD_INT, step, .doc = "0: it has told of none"),
    OF_JOB("ends_at", FIELD_TIME, ends_at, .doc = "expected, at 50 %; null: nobody can tell"),
    OF_JOB("ends_late_at",
           FIELD_TIME,
           ends_late_at,
           .doc = "expected end at 90 %, or the job's timeout"),
    OF_JOB("fate",
           FIELD_ENUM,
           fate,
           .names = jobrisk_fate_words,
           .doc = "what becomes of it, if it ends as expected"),
    OF_JOB("at_risk_gpu_hours",
           FIELD_REAL,
           at_risk_gpu_hours,
           .doc = "work since its newest checkpoint, gone if it were stopped now"),
};
const struct field_table jobrisk_table = FIELD_TABLE("DrainPlanJob", job_rows, jobrisk);

/* A moment of the scheduler's clock by the wall, never before now. 0 stays. */
static usec_t jobrisk_wall(const struct api *a, usec_t at)
{
    usec_t now = jobs_now(a->jobs);
    return at ? clock_wall() + (at > now ? at - now : 0) : 0;
}

static double jobrisk_gpu_hours(const struct live *l, double gpus)
{
    if (l->job->state == JOB_QUEUED)
        return 0; /* what its last attempt lost is lost already */
    return live_unsaved(l, clock_wall()) * gpus / 3600;
}

static double jobrisk_gpus_here(const struct api *a, const char *job, const char *node)
{
    struct sched_part part;
    double sum = 0;
    for (size_t i = 0; sched_lease_part(jobs_sched(a->jobs), job, i, &part); i++)
        if (!node || str_eq(part.node, node))
            sum += (double)part.amount / SLOTBOOK_GPU;
    return sum;
}

static void jobrisk_ends(const struct api *a, const char *job, struct jobrisk *ret)
{
    struct sched_lease_view v;
    if (!sched_lease_find(jobs_sched(a->jobs), job, &v))
        return;
    usec_t limit = v.limit ? v.started_at + v.limit : 0;
    usec_t p50 = v.expected_p50 ? v.started_at + v.expected_p50 : 0;
    usec_t p90 = v.expected_p90 ? v.started_at + v.expected_p90 : limit;
    p50 = p50 && limit && limit < p50 ? limit : p50;
    p90 = p90 && limit && limit < p90 ? limit : p90;
    ret->ends_at = jobrisk_wall(a, p50);
    ret->ends_late_at = jobrisk_wall(a, p90);
}

enum jobrisk_fate jobrisk_fate_of_others(bool stops)
{
    return stops ? FATE_STOPPED : FATE_WAITED_FOR;
}

static int jobrisk_fate(const struct jobrisk_ask *ask, usec_t ends_at)
{
    if (ask->then == NODE_THEN_WAIT || !ask->deadline)
        return FATE_WAITED_FOR;
    if (ends_at && ends_at < ask->deadline)
        return FATE_ENDS;
    return ask->then == NODE_THEN_RESTART ? FATE_RESTARTED : FATE_STOPPED;
}

void jobrisk_fill(const struct api *a,
                  const struct jobrisk_ask *ask,
                  const struct live *l,
                  struct jobrisk *ret)
{
    const struct job *job = l->job;
    double gpus = (double)job->demand.nnodes * job->demand.gpus_per_node;
    *ret = (struct jobrisk){.job = job->id,
                            .name = job->name,
                            .user = job->user,
                            .project = job->project,
                            .state = job_state_to_string(job->state),
                            .gpus = gpus,
                            .gpus_here = jobrisk_gpus_here(a, job->id, ask->node),
                            .step = l->extra.step,
                            .at_risk_gpu_hours = jobrisk_gpu_hours(l, gpus)};
    jobrisk_ends(a, job->id, ret);
    ret->fate = jobrisk_fate(ask, ret->ends_at);
}

bool jobrisk_is_lost(const struct jobrisk *job)
{
    return job->fate == FATE_STOPPED || job->fate == FATE_RESTARTED;
}
