/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_rules.h - rules about jobs that need more than one of the tables: may this job be seen, and
 * may a new one be taken. */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/people/people_rules.h"

/* May this user see the job with this id? The owner of a job that is not in memory any more is not
 * known here: then only somebody who sees everything sees it. */
bool jobs_may_be_seen(const struct jobs *js,
                      const struct people *people,
                      const struct http_principal *p,
                      const char *id);

/* May this user have one more job waiting? Who has no quota of queued jobs has a default bound.
 * ERR_REFUSED. */
must_check int jobs_check_user_room(const struct jobs *js,
                                    const struct people *people,
                                    const struct settings *s,
                                    const char *user,
                                    struct err *err);

/* Can jobs be taken at all now? ERR_STORE, ERR_UNAVAILABLE, ERR_BUSY. */
must_check int jobs_check_room(const struct jobs *js,
                               const struct store *store,
                               const struct cluster *cluster,
                               const struct settings *s,
                               struct err *err);
