/* SPDX-License-Identifier: Apache-2.0 */
/* saying.h - messages (base/message.h) at the edge: said to the person who asks, who hears of jobs,
 * projects and users only the names that he may see. What is stored keeps every name. */
#pragma once
#include "argusd/kit/api.h"
#include "base/message.h"

/* Who is told, and of which job it is said; a job's own name may always be heard. */
struct saying_to {
    const struct api_eyes *eyes; /* NULL: a file that others read; no name but the job's own */
    const char *about;           /* a job's id, NULL = none */
    bool sees_all;
};

/* listener borrows *to. */
struct message_listener saying_listener(struct saying_to *to);

/* "text" and "args" as members of an object. */
void saying_put(struct jout *j,
                const struct api_eyes *eyes,
                const char *about,
                const char *code,
                const char *text);
/* The sentence alone, as the member `key`. */
void saying_put_text(struct jout *j,
                     const char *key,
                     const struct api_eyes *eyes,
                     const char *about,
                     const char *code,
                     const char *text);
