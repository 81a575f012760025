/* SPDX-License-Identifier: Apache-2.0 */
/* people_form.h - users, projects and quotas as JSON: in the store, in bodies of requests, in
 * answers and in events. The same few tables for all. */
#pragma once
#include "argusd/people.h"
#include "base/json.h"
#include "base/problem.h"

/* Of one object as JSON: a project of a thousand members, with room. */
enum { PEOPLE_TEXT_MAX = 128 << 10 };

/* From our own store: what cannot be read stays as it is. */
void people_form_read_person(const char *json, struct person *p);
void people_form_read_project(const char *json, struct project *p);
void people_form_read_quota(const char *json, struct people_quota *q);

/* The members of an object under key: what is stored and what events show. */
void people_form_put_person(struct jout *j, const char *key, const struct person *p);
void people_form_put_project(struct jout *j, const char *key, const struct project *p);
/* The same without the object around them: into one that is open. */
void people_form_put_project_fields(struct jout *j, const struct project *p);
void people_form_put_quota(struct jout *j, const char *key, const struct people_quota *q);

/* What somebody asks for. Keys that are not given stay as they are in *p; with want_name the
 * key `name` must be there and is checked. ERR_BAD_SPEC: the problems say what is wrong, *p may
 * be half changed (work on a copy). */
must_check int people_form_person(const char *body,
                                  size_t n,
                                  bool want_name,
                                  struct person *p,
                                  struct problems *ps);
/* Here members may also be changed by the lists `add` and `remove`. */
must_check int people_form_project(const char *body,
                                   size_t n,
                                   bool want_name,
                                   struct project *p,
                                   struct problems *ps);
/* The whole quota: what is not given is no limit. */
must_check int people_form_quota(const char *body,
                                 size_t n,
                                 struct people_quota *q,
                                 struct problems *ps);

struct people_token_form {
    char *name, *user; /* NULL = not given */
    int role;          /* enum http_role; HTTP_ROLE_NONE = not given */
    usec_t expires;    /* a span; 0 = never */
};
must_check int people_form_token(const char *body,
                                 size_t n,
                                 struct people_token_form *ret,
                                 struct problems *ps);
void people_token_form_release(struct people_token_form *f);

/* Without this one. */
void people_form_drop(struct strv *members, const char *name);
