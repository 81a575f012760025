/* SPDX-License-Identifier: Apache-2.0 */
/* service_calls.h - the last requests to a service: who asked for which path, and what became of
 * it. Never a body, a query or a header. In memory alone: the log of argusd has the share that the
 * service's log_share says. */
#pragma once
#include "argusd/services/service_target.h"
#include "http/http.h"

enum {
    SERVICE_CALLS_KEPT = 100,
    SERVICE_CALL_METHOD = 8,
    SERVICE_CALL_PATH = 120,
    SERVICE_CALL_KEY = 16
};

struct service_call_row {
    usec_t at; /* when it ended, wall time */
    int64_t version, status, took_ms, first_ms, bytes_in, bytes_out, tokens_in, tokens_out;
    bool tokens_estimated;
    char user[HTTP_USER_MAX], method[SERVICE_CALL_METHOD], path[SERVICE_CALL_PATH];
    char key[SERVICE_CALL_KEY]; /* id of the key that it came with; "": none */
};

/* Two rings, so that many requests do not wash away the few that failed. */
struct service_calls {
    struct service_call_row all[SERVICE_CALLS_KEPT], failed[SERVICE_CALLS_KEPT];
    uint64_t n_all, n_failed; /* were ever added */
};

bool service_call_failed(int status);
void service_calls_add(struct service_calls *k,
                       const struct service_target *t,
                       const struct service_counted *c,
                       usec_t now);
/* The newest first: rows of ret, which has room for SERVICE_CALLS_KEPT. Returns how many. */
size_t service_calls_list(const struct service_calls *k,
                          bool failed,
                          const struct service_call_row *ret[static SERVICE_CALLS_KEPT]);
