/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h - submitting a spec that is not the body of its request: a retry.
 *
 * All the checks and the answer are those of POST /v1/jobs (api_submit.c). */
#pragma once
#include "argusd/api.h"

/* The job that is submitted again. */
struct submit_retry {
    char *id;
    int64_t seq;
    char *changes; /* JSON array, see core/respec.h: how its spec differs from that job's */
};

/* Answers the request, at once or later. who: whose job it will be; copied. taken_spec and the
 * texts of taken are taken. */
void submit_retry(struct http_req *req,
                  struct api *a,
                  const struct http_principal *who,
                  char *taken_spec,
                  const struct submit_retry *taken);
