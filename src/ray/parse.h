/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - reading Ray's replies, which are outside bytes.
 *
 * Pure. Never trusts a type, takes numbers as numbers and as strings, replaces
 * what is not UTF-8, sorts each list. What decides (an id, the list itself) must be
 * there, or the whole reply is refused: an entry left out would read as "gone".
 * Each function fills *ret (whatever was there is not looked at) or leaves it alone
 * and says why: ERR_BAD_REQUEST. text needs no NUL at its end. */
#pragma once
#include "ray/reply.h"

enum {
    RAY_LIST_MAX = 100000,    /* entries of a list; more are refused */
    RAY_VALUES_MAX = 1000000, /* JSON values of a reply; more are refused */
    RAY_NAMES_MAX = 1024,     /* labels, resources or metadata of one thing; the rest is ignored */
};

must_check int ray_parse_version(const char *text,
                                 size_t len,
                                 struct ray_version *ret,
                                 struct err *err);
must_check int ray_parse_job(const char *text, size_t len, struct ray_job *ret, struct err *err);
must_check int ray_parse_jobs(const char *text, size_t len, struct ray_jobs *ret, struct err *err);
must_check int ray_parse_nodes(const char *text,
                               size_t len,
                               struct ray_nodes *ret,
                               struct err *err);
/* /nodes/<id>: the port of its metrics page. ERR_NOT_FOUND: it has none, or is of another node. */
must_check int ray_parse_metrics_port(const char *text,
                                      size_t len,
                                      const char *node_id,
                                      int *ret,
                                      struct err *err);
/* /api/cluster_status; an error too while Ray has no report yet. */
must_check int ray_parse_usages(const char *text,
                                size_t len,
                                struct ray_usages *ret,
                                struct err *err);
must_check int ray_parse_actors(const char *text,
                                size_t len,
                                struct ray_actors *ret,
                                struct err *err);
must_check int ray_parse_groups(const char *text,
                                size_t len,
                                struct ray_groups *ret,
                                struct err *err);
/* {"stopped": true} and the like: the boolean of that name. */
must_check int ray_parse_flag(const char *text,
                              size_t len,
                              const char *name,
                              bool *ret,
                              struct err *err);
/* {"submission_id": X}: the id, to be freed. */
must_check int ray_parse_submitted(const char *text, size_t len, char **ret, struct err *err);
