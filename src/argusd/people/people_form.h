/* SPDX-License-Identifier: Apache-2.0 */
/* people_form.h - the members of users, projects, quotas and requests for tokens, each in one
 * table: what is stored (FIELD_STORED), shown (FIELD_SHOWN) and may be asked for (FIELD_ASKED).
 * Beside them, what is wrong with a body that asks for one. */
#pragma once
#include "argusd/people/people.h"
#include "base/doc/problem.h"
#include "base/field.h"

extern const struct field_table person_table, project_table, people_quota_table;

/* The body of a project: further members and members that go, too. */
struct project_form {
    struct project p;
    struct strv add, remove;
};
extern const struct field_table project_form_table;

struct people_token_form {
    char *name, *user; /* NULL = not given */
    int role;          /* enum http_role; HTTP_ROLE_NONE = not given */
    usec_t expires;    /* a span; 0 = never */
};
extern const struct field_table people_token_form_table;

/* enum http_role as words. */
extern const char *const people_role_names[];

/* What is wrong is added to ps, and then it is ERR_BAD_SPEC. old: the name that there is, NULL for
 * a new one. */
must_check int people_check_person(const struct person *p, const char *old, struct problems *ps);
/* Puts the lists together first: f->p.members are those that are meant. */
must_check int people_check_project(struct project_form *f, const char *old, struct problems *ps);
must_check int people_check_quota(const struct people_quota *q, struct problems *ps);
must_check int people_check_token(const struct people_token_form *f, struct problems *ps);

/* Without this one. */
void people_form_drop(struct strv *members, const char *name);
