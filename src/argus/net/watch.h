/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - one job, seen again each time that it changes: a long-poll that
 * outlives lost connections. Runs beside other transfers in client_turn(). */
#pragma once
#include "argus/net/client.h"

struct watch;

/* path: "/v1/jobs/<id>", copied. */
struct watch *watch_new(struct client *c, const char *path);
void watch_free(struct watch *w); /* NULL is fine */

/* Go on. 1: *ret_job is the job as it is now (a new reference); 0: nothing new, call again after
 * client_turn(). Negative: the server refuses (401, 404 …); an unreachable server is no
 * error, it is asked again. */
must_check int watch_step(struct watch *w, json_t **ret_job, struct err *err);
/* Why the server cannot be reached at the moment; NULL when it can. Borrowed. */
const char *watch_trouble(const struct watch *w);
