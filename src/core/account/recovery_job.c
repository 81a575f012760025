/* SPDX-License-Identifier: Apache-2.0 */
/* recovery_job.c - see recovery_job.h. An attempt of before its outcome was kept is told by the
 * job: what was followed by another attempt has failed. */
#include "core/account/recovery_job.h"

#include <math.h>

#include "base/mem.h"

static enum recovery_end recovery_end_from(const struct job *j, int i)
{
    static const enum recovery_end ends[ATTEMPT_OUTCOMES] = {
        [ATTEMPT_OPEN] = RECOVERY_DONE,
        [ATTEMPT_DONE] = RECOVERY_DONE,
        [ATTEMPT_PREEMPTED] = RECOVERY_PREEMPTED,
        [ATTEMPT_FAILED] = RECOVERY_FAILED,
    };
    const struct attempt *a = &j->attempts[i];
    bool followed = i + 1 < j->n_attempts || j->state == JOB_QUEUED;
    if (a->phase == ATTEMPT_ABANDONED)
        return RECOVERY_NOT_STARTED;
    if (a->phase != ATTEMPT_ENDED)
        return RECOVERY_RUNS;
    if (a->outcome == ATTEMPT_OPEN && (followed || j->state == JOB_FAILED))
        return RECOVERY_FAILED;
    return ends[a->outcome];
}

static const struct goodput_attempt *recovery_steps_of(const struct goodput_sums *s, int k)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].k == k)
            return &s->v[i];
    return NULL;
}

void recovery_of_job(const struct job *job,
                     const struct goodput_sums *steps,
                     usec_t now,
                     struct recovery_job *ret,
                     struct recovery_attempt **ret_v)
{
    size_t n = (size_t)job->n_attempts;
    struct recovery_attempt *v = xcalloc(n + 1, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        const struct attempt *a = &job->attempts[i];
        const struct goodput_attempt *s = recovery_steps_of(steps, a->k);
        v[i] = (struct recovery_attempt){
            .end = recovery_end_from(job, (int)i),
            .planned = a->planned_at,
            .fault = a->fault_at,
            .noticed = a->noticed_at,
            .ended = a->ended_at,
            .first = s ? s->first_at : 0,
            .kept = s ? s->kept_at : 0,
            .last = s ? s->last_at : 0,
            .fresh = s ? s->fresh_at : 0,
            .good_s = s ? s->good_s : 0,
            .class = a->finding == FINDING_NONE ? NULL : finding_class_to_string(a->finding),
            .node = a->node};
    }
    *ret = (struct recovery_job){.v = v,
                                 .n = n,
                                 .queued = job->queued_at,
                                 .now = now,
                                 .waits = job->state == JOB_QUEUED,
                                 .gpus = demand_gpus(&job->demand),
                                 .user = job->user};
    *ret_v = v;
}

/* ---- as shown ---- */

#define RECOVERY(key, ftype, member, ...) FIELD_AT(recovery_page, key, ftype, member, __VA_ARGS__)
#define RECOVERY_ROW(e, word)                                                                      \
    RECOVERY(#word "_s", FIELD_REAL, part[RECOVERY_##e], .doc = "a part of held_s and waited_s"),
static const struct field recovery_rows[] = {
    RECOVERY("ettr",
             FIELD_REAL,
             ettr,
             .flags = FIELD_MAYBE,
             .doc = "productive_s of held_s and waited_s; null: it has told of no step"),
    RECOVERY("mttr_s",
             FIELD_REAL,
             mttr_s,
             .flags = FIELD_MAYBE,
             .doc = "mean, from a failure to the end of the first new step"),
    RECOVERY("failures", FIELD_INT, failures),
    RECOVERY("interruptions",
             FIELD_INT,
             interruptions,
             .doc = "failures, preemptions, and starts that came to nothing"),
    RECOVERY("repaired", FIELD_INT, repaired, .doc = "failures with a new step behind them"),
    RECOVERY("held_s", FIELD_REAL, held, .doc = "by its attempts"),
    RECOVERY("waited_s", FIELD_REAL, waited, .doc = "in the queue, for attempts after the first"),
    RECOVERY("first_wait_s", FIELD_REAL, first_wait, .doc = "in the queue, for the first attempt"),
    RECOVERY_PART_TABLE(RECOVERY_ROW)};
#undef RECOVERY_ROW
const struct field_table recovery_page_table =
    FIELD_TABLE("Recovery", recovery_rows, recovery_page);

static double recovery_told_s(usec_t t)
{
    return (double)t / (double)USEC_SEC;
}

void recovery_to_page(const struct recovery *r, struct recovery_page *ret)
{
    *ret = (struct recovery_page){.ettr = r->ettr,
                                  .mttr_s = r->mttr_s,
                                  .failures = r->failures,
                                  .interruptions = r->interruptions,
                                  .repaired = r->repaired,
                                  .held = recovery_told_s(r->held),
                                  .waited = recovery_told_s(r->waited),
                                  .first_wait = recovery_told_s(r->first_wait)};
    for (int p = 0; p < RECOVERY_PARTS; p++)
        ret->part[p] = recovery_told_s(r->part[p]);
}
