/* SPDX-License-Identifier: Apache-2.0 */
/* people.h - users and projects: who there is, who is in what, and what they may hold.
 *
 * In memory, behind it rows of the store. Every change is stored by people_save_…() and told
 * to the scheduler; the event of it is the caller's. Project "default" is always there, has no
 * members and takes everybody's jobs. While it is the only one, a job may name any project: a
 * name is then just a label. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"
#include "base/strv.h"
#include "core/job/access.h"
#include "core/sched/sched.h"
#include "http/http.h"
#include "store/store.h"

enum {
    PEOPLE_USERS_MAX = 10000,
    PEOPLE_PROJECTS_MAX = 1000,
    PEOPLE_MEMBERS_MAX = 1000,
    PEOPLE_PRIORITY_MAX = 100,
    PEOPLE_PROJECTS_OF_USER_MAX = STORE_SCOPE_MAX,
};

/* Absent limits are negative. What there is to limit: people_quota_table (people_form.h). */
struct people_quota {
    double gpus_guaranteed, gpus_ceiling, cpus, gpu_hours_per_month;
    double memory;      /* GiB, of what jobs state */
    double checkpoints; /* GiB that they take on the shared root */
    double storage;     /* GiB of what is charged to it, see storage.h */
    int64_t running, queued;
};

struct person {
    char *name;
    char *note; /* "" = none */
    int role;   /* enum http_role: the most that a token of his may have */
    bool disabled;
    usec_t created_at;
    struct people_quota quota;
    char *projects;            /* "llm,rl": follows from the projects' members */
    bool implied;              /* at start: by a token alone */
    bool wants_dirs, has_dirs; /* of people_dirs.c: made in this life */
};

struct project {
    char *name;
    char *note, *pool; /* "" = none; the pool of jobs that name none */
    struct strv members;
    struct strv alerts; /* of its jobs' metrics (core/spec/metric_alert.h), beside their own */
    double share;       /* weight in fair share; 1 = normal */
    int64_t priority_ceiling; /* of its jobs */
    usec_t created_at;
    usec_t retention;           /* its jobs that ended longer ago are archived; 0 = never */
    bool retention_checkpoints; /* those that have checkpoints too */
    struct people_quota quota;
};

struct people;

struct people *people_new(struct store *store);
void people_free(struct people *pp); /* NULL is fine */

/* Rows of the store at start, in the order of a load; then people_restored(), once. */
void people_restore_user(struct people *pp, const struct store_user *row);
/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define PEOPLE_ENTRY_PROJECT "project"
#define PEOPLE_ENTRY_QUOTA "quota"
void people_restore_entry(struct people *pp, const struct store_entry *entry);
/* A token that is not revoked, of a user who has no row (older stores have none), makes him one
 * that may do as much. */
void people_imply_user(struct people *pp, const struct store_token *row);
void people_restored(struct people *pp);
/* From now on quotas are told to it, beginning with those there are. */
void people_set_sched(struct people *pp, struct sched *sched);

/* ---- users ---- */

struct person *people_find(const struct people *pp, const char *name); /* NULL if there is none */
/* By name; NULL at the end. *pos begins at 0; a walk sees no changes. */
struct person *people_next(const struct people *pp, size_t *pos);
size_t people_count(const struct people *pp);
/* His name is not taken. Saved with people_save(). */
struct person *people_add(struct people *pp, const char *name, enum http_role role, usec_t now);
void people_save(struct people *pp, const struct person *p);
/* He leaves all projects too, which are saved. p is gone. */
void people_remove(struct people *pp, struct person *p);

/* ---- projects ---- */

struct project *people_find_project(const struct people *pp, const char *name);
struct project *people_next_project(const struct people *pp, size_t *pos);
size_t people_count_projects(const struct people *pp); /* with "default" */
struct project *people_add_project(struct people *pp, const char *name, usec_t now);
/* Its members are those of now. */
void people_save_project(struct people *pp, const struct project *p);
void people_remove_project(struct people *pp, struct project *p);

/* ---- who asks ---- */

/* The token's role, cut to the user's. ERR_UNAUTHORISED with a sentence in why_not: he is
 * unknown or disabled. */
must_check int people_admit(const struct people *pp, struct http_principal *p);
/* As this user would act himself, with no more than he may now: what argusd does for him while he
 * is not there. ERR_REFUSED with the sentence: he is unknown or disabled. */
must_check int people_admit_absent(const struct people *pp,
                                   const char *user,
                                   struct http_principal *ret,
                                   struct err *err);
/* Borrowed until people change. */
void people_who(const struct people *pp, const struct http_principal *p, struct access_who *ret);
