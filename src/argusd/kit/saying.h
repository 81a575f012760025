/* SPDX-License-Identifier: Apache-2.0 */
/* saying.h - messages (base/message.h) at the edge: said to the person who asks, who hears of jobs,
 * projects and users only the names that he may see. What is stored keeps every name. */
#pragma once
#include "argusd/kit/api.h"
#include "base/field.h"
#include "base/message.h"

/* Who is told, and of which job it is said; a job's own name may always be heard. */
struct saying_to {
    const struct api_eyes *eyes; /* NULL: a file that others read; no name but the job's own */
    const char *about;           /* a job's id, NULL = none */
    bool sees_all;
};

/* listener borrows *to. */
struct message_listener saying_listener(struct saying_to *to);

/* A message as its reader gets it: `Reason` of openapi.json. code and what text is made of are
 * borrowed; said_release() frees the rest. */
struct said {
    const char *code, *text, *args; /* args: "null" where there are none */
    const char *fix;                /* what to do about it; NULL: nothing is said */
    struct message_page page;
};
extern const struct field_table said_table;

void saying_say(const struct api_eyes *eyes,
                const char *about,
                const char *code,
                const char *text,
                struct said *ret);
void said_release(struct said *s);
