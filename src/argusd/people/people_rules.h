/* SPDX-License-Identifier: Apache-2.0 */
/* people_rules.h - core/job/access.h asked about jobs: what of them one sees, may change, may
 * submit.
 *
 * Every handler asks here (or access_check() itself, of what is no job), and nowhere else are
 * roles and owners compared. */
#pragma once
#include "argusd/people/people.h"
#include "argusd/people/tokens.h"
#include "core/job/job.h"
#include "core/spec/spec.h"

/* A job for access_check(). Texts are borrowed. */
struct access_thing people_job_thing(const struct job *job);
/* 0, ERR_FORBIDDEN or ERR_NOT_FOUND. verb: "stop". */
must_check int people_check_job(const struct people *pp,
                                const struct http_principal *p,
                                enum access_action action,
                                const char *verb,
                                const struct job *job,
                                struct err *err);

/* May he submit this? Fills what the project gives: its own name, its pool. ERR_BAD_SPEC or
 * ERR_FORBIDDEN, *ret_field says of which key. */
must_check int people_check_submit(const struct people *pp,
                                   const struct http_principal *p,
                                   struct spec *spec,
                                   const char **ret_field,
                                   struct err *err);

/* Is it within the project's ceiling? ERR_REFUSED. */
must_check int people_check_priority(const struct people *pp,
                                     const char *project,
                                     int64_t priority,
                                     struct err *err);

/* What a list may show him. release it after the query was given to the store. */
struct people_view {
    const char *user;                /* only this one's; NULL = as the scope says */
    const struct store_scope *scope; /* NULL = everything */
    struct store_scope own;
    struct strv projects;
};
enum people_wish {
    PEOPLE_WISH_USUAL, /* his own; of one who sees everything, everything */
    PEOPLE_WISH_OWN,   /* ?all=0 */
    PEOPLE_WISH_ALL,   /* ?all=1, or a filter by user or project */
};
void people_view(const struct people *pp,
                 const struct http_principal *p,
                 enum people_wish wish,
                 struct people_view *ret);
void people_view_release(struct people_view *v);

/* For a reply that lasts: may it go on? False once the token that it began with no longer works,
 * or its user or role has changed. */
bool people_may_go_on(const struct people *pp,
                      const struct tokens *tokens,
                      const struct http_principal *p);

/* Which events he may see; release as above. */
struct people_sight {
    const struct store_event_scope *scope; /* NULL = all */
    struct store_event_scope own;
    struct people_view view;
    char kinds[3][ACCESS_KINDS_TEXT]; /* his, of his projects, of others */
};
void people_sight(const struct people *pp,
                  const struct http_principal *p,
                  struct people_sight *ret);
void people_sight_release(struct people_sight *s);
