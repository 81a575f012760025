/* SPDX-License-Identifier: Apache-2.0 */
/* callrules.h - what holds of each request to a service, whichever way it takes: how often one user
 * may ask, what its tokens are, and the line that is kept of it. One book for all of them. */
#pragma once
#include <stdbool.h>

#include "argusd/calls/promptcount.h"
#include "argusd/calls/tokencount.h"
#include "argusd/services/service_target.h"

struct api;
struct http_req;

/* What is counted of a request to a model and of its answer while they pass. */
struct call_tokens {
    struct promptcount asked;
    struct tokencount answered;
};
/* NULL: nobody counts in this service. Released with free(). */
struct call_tokens *call_tokens_new(const struct service_target *t);

/* True if the reply was made: the user has asked for too much in this minute, which is counted. */
bool call_refuse_busy(struct http_req *req, struct api *a, const struct service_target *t);

/* The tokens of k: what the answer says; of a stream that says nothing, the guess of both counts,
 * marked as one. Else, and where seen is NULL, they are not known. */
void call_take_tokens(struct service_counted *k, const struct call_tokens *seen);

/* The request is over: its tokens are taken from its user's minute, and of a share of all requests
 * a line is logged. end: a word for how. */
void call_write_down(struct api *a,
                     const struct service_target *t,
                     const struct service_counted *k,
                     const char *end);
