/* SPDX-License-Identifier: Apache-2.0 */
/* api_people.h - what the handlers of users, projects, quotas and tokens share. */
#pragma once
#include "argusd/api.h"
#include "argusd/people_form.h"

enum { API_PEOPLE_LIST_MAX = 16 << 20 };

/* 0, or it was answered: he may not, or the store cannot write now (when `changes`). */
must_check int api_people_may(struct http_req *req,
                              struct api *a,
                              enum access_action action,
                              const char *verb,
                              const struct access_thing *thing,
                              bool changes);
/* The user or project that the path names; NULL: it was answered. */
struct person *api_people_find(struct http_req *req,
                               struct api *a,
                               enum access_action action,
                               const char *verb);
struct project *api_people_find_project(struct http_req *req,
                                        struct api *a,
                                        enum access_action action,
                                        const char *verb);

/* The audit event. before and after are JSON or NULL. */
struct api_change {
    const char *kind;     /* "user_changed" */
    const char *object;   /* "user/alice" */
    const char *text;     /* one sentence */
    char *before, *after; /* taken: freed by api_people_note() */
};
void api_people_note(struct http_req *req, struct api *a, struct api_change *taken);
char *api_person_text(const struct person *p);
char *api_project_text(const struct project *p);
char *api_quota_text(const struct people_quota *q);

/* "quota":{…},"usage":{…} of an account. */
void api_put_account(struct jout *j,
                     const struct api *a,
                     enum sched_account kind,
                     const char *name,
                     const struct people_quota *q);

/* Working tokens that may do everything, leaving out what is about to go (NULL = nothing). */
size_t api_count_admins(const struct api *a, const char *without_user, const char *without_token);
/* Jobs that are not over, of this user or project (NULL = any). */
size_t api_count_jobs(const struct api *a, const char *user, const char *project);
