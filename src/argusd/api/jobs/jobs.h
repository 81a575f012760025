/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h - a job as the whole answer of a request; see jobs.c. */
#pragma once
#include "argusd/kit/api.h"

/* The whole job as the answer, with its ETag. */
void api_answer_job(struct http_req *req,
                    struct api *a,
                    const struct job *job,
                    const struct record_extra *extra,
                    struct live *l);
