/* SPDX-License-Identifier: Apache-2.0 */
/* mark.c - the keys of our mark in Ray; see mark.h.
 *
 * argus, argus_job, argus_attempt or argus_trial, argus_user: Ray keeps them with the record, and
 * an argusd that starts anew knows its own jobs by them. */
#include "argusd/launch/mark.h"

#include "base/str.h"
#include "base/text.h"

void mark_put(struct pairs *metadata,
              const char *instance,
              const char *job,
              int attempt,
              const char *user)
{
    char k[16];
    text_printf(k, "%d", attempt ? attempt : 1);
    pairs_set(metadata, "argus", instance);
    pairs_set(metadata, "argus_job", job);
    pairs_set(metadata, attempt ? "argus_attempt" : "argus_trial", k);
    pairs_set(metadata, "argus_user", user);
}

bool mark_is_ours(const char *instance, const struct ray_job *rj)
{
    return str_eq(pairs_find(&rj->metadata, "argus"), instance);
}

bool mark_is_foreign(const char *instance,
                     const struct ray_job *rj,
                     bool (*knows_id)(const char *id, void *arg),
                     void *arg)
{
    const char *job = mark_job(rj);
    if (!rj->is_submission || ray_job_is_ghost(rj))
        return false;
    if (!mark_is_ours(instance, rj) || !job)
        return true;
    return !pairs_find(&rj->metadata, "argus_trial") && !knows_id(job, arg);
}

const char *mark_job(const struct ray_job *rj)
{
    return pairs_find(&rj->metadata, "argus_job");
}
