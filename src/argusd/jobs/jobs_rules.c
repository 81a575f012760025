/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_rules.c - see jobs_rules.h. Pure questions: nothing is changed and nobody is answered. */
#include "argusd/jobs/jobs_rules.h"

#include "base/message.h"

bool jobs_may_be_seen(const struct jobs *js,
                      const struct people *people,
                      const struct http_principal *p,
                      const char *id)
{
    const struct live *l = jobs_find_any(js, id);
    struct access_thing thing = {.kind = ACCESS_KIND_JOB, .name = id};
    struct access_who who;
    if (l)
        return people_check_job(people, p, ACCESS_JOB_SEE, "see", l->job, NULL) == 0;
    people_who(people, p, &who);
    return access_check(&who, ACCESS_JOB_SEE, "see", &thing, NULL) == 0;
}

int jobs_check_user_room(const struct jobs *js,
                         const struct people *people,
                         const struct settings *s,
                         const char *user,
                         struct err *err)
{
    const struct person *p = people_find(people, user);
    struct sched_usage used;
    if (!s->user_queued_jobs || (p && p->quota.queued >= 0)) /* of a quota the scheduler tells */
        return 0;
    sched_usage(jobs_sched(js), SCHED_USER, user, jobs_now(js), &used);
    if (used.queued < s->user_queued_jobs)
        return 0;
    return message_refuse(err, ERR_REFUSED, "quota_queued",
                          MESSAGE_ARGS(MESSAGE_STR("user", user),
                                       MESSAGE_NUM("queued", used.queued),
                                       MESSAGE_NUM("limit", s->user_queued_jobs)));
}

int jobs_check_room(const struct jobs *js,
                    const struct store *store,
                    const struct cluster *cluster,
                    const struct settings *s,
                    struct err *err)
{
    int r = store_check(store, err);
    if (r < 0)
        return r;
    if (cluster_root_is_bad(cluster))
        return cluster_check_root(cluster, err);
    if (jobs_count(js, JOB_QUEUED) >= (size_t)s->queued_jobs)
        return message_refuse(err, ERR_BUSY, "too_many_requests",
                              MESSAGE_ARGS(MESSAGE_NUM("waiting", jobs_count(js, JOB_QUEUED))));
    return 0;
}
