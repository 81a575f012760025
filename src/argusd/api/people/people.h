/* SPDX-License-Identifier: Apache-2.0 */
/* people.h - what the nouns of people share: the account that a user or project has, and counts. */
#pragma once
#include "argusd/kit/resource.h"
#include "argusd/people/people_form.h"

/* What an account holds now. */
struct api_usage {
    double gpus, gpus_borrowed, cpus, memory; /* GiB */
    int64_t running, queued;
    double storage; /* GiB */
    double gpu_hours_this_month;
};
/* "quota":{…},"usage":{…} of a page. */
struct api_account {
    struct people_quota quota;
    struct api_usage usage;
};
extern const struct field_table api_usage_table, api_account_table;
void api_fill_account(const struct api *a,
                      enum sched_account kind,
                      const char *name,
                      const struct people_quota *quota,
                      struct api_account *ret);

/* What access is asked about. */
void api_thing_of_person(struct resource_ask *q, const struct person *p, struct access_thing *ret);
/* "default" is everybody's to see: all may submit there. */
must_check int api_may_project(struct resource_ask *q,
                               enum access_action action,
                               const char *verb,
                               const struct project *p);

/* Working tokens that may do everything, leaving out what is about to go (NULL = nothing). */
size_t api_count_admins(const struct api *a, const char *without_user, const char *without_token);
/* Jobs that are not over, of this user or project (NULL = any). */
size_t api_count_jobs(const struct api *a, const char *user, const char *project);
