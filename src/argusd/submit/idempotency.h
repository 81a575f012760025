/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.h - the Idempotency-Keys of submits, kept for a day: a request that comes again is
 * the same job, another body under the same key is refused. In memory, behind it rows of the
 * store. A request without a key is always new. Whose go where there are too many says keybook.h.
 */
#pragma once
#include "argusd/kit/api.h"

/* ERR_BAD_REQUEST or ERR_BUSY if this request's key cannot be remembered: taken without, a retry
 * would make a second job. */
must_check int idempotency_make_room(struct api *a,
                                     const struct http_req *req,
                                     usec_t now,
                                     struct err *err);
/* The id of the job that this request made before; NULL: it is new. asked: what else it asks for
 * than its body says, such as the job that it submits again; NULL = nothing. ERR_CONFLICT: its key
 * made another one. Borrowed. */
must_check int idempotency_find(const struct api *a,
                                const struct http_req *req,
                                const char *asked,
                                const char **ret_job,
                                struct err *err);
/* A row of the store at start. */
void api_restore_idempotency(struct api *a, const struct store_idempotency *row);
void api_forget(struct api *a); /* frees the keys */

/* Remember: this request made that job. */
void idempotency_note(struct api *a,
                      const struct http_req *req,
                      const char *asked,
                      const char *job_id,
                      usec_t now);
