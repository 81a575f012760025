/* SPDX-License-Identifier: Apache-2.0 */
/* submit_answer.h - answers of a submit (submit/submit.c), shared by its ways. */
#pragma once
#include "argusd/kit/api.h"

/* What is known while a spec is taken; both NULL when it was taken before. */
struct submit_news {
    const struct problems *warnings; /* NULL: those that the job keeps */
    const char *changes;             /* JSON array, of a retry or change; NULL: none */
};

/* The job that a submit made, or made earlier. */
void submit_answer(struct http_req *req,
                   struct api *a,
                   struct live *l,
                   const struct submit_news *news,
                   int status);
/* True if the request was answered: it repeats an earlier one, or contradicts it. asked: see
 * idempotency.h. */
bool submit_was_here(struct http_req *req, struct api *a, const char *asked);

/* The answer of a submit, for openapi.json. */
extern const struct field_table submit_answer_table;
