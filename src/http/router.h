/* SPDX-License-Identifier: Apache-2.0 */
/* router.h - finds the row of the route table for a method and a path.
 *
 * Patterns are segments: a literal, "{name}", or "{name}:verb". A path matches exactly or
 * not at all: literals byte by byte as sent, no empty segments, no trailing slash. A ':'
 * as sent belongs to a verb, so "{name}" takes only segments without it ("%3A" is fine).
 * Literals win over names. A pattern whose last segment is "*" takes every path that goes on with a
 * '/' there, whatever follows it, if no other pattern matches. */
#pragma once
#include "http/http.h"

enum {
    ROUTER_PARAMS_MAX = 4,
    ROUTER_SEGMENTS_MAX = 8,
    ROUTER_ALLOW_MAX = 64,
    ROUTER_NAME_MAX = 32
};

struct router;

struct router_param {
    const char *name;  /* of the pattern, not terminated */
    const char *start; /* in the path */
    size_t name_len, len;
};

struct router_match {
    const struct http_route *route;
    size_t n_params;
    const char *tail; /* what a star stands for, with its '/'; NULL: the pattern has none */
    struct router_param params[ROUTER_PARAMS_MAX];
};

/* ERR_USAGE: a bad or double row. Routes are borrowed. */
must_check int router_open(const struct http_route *routes,
                           size_t n,
                           struct router **ret,
                           struct err *err);
void router_free(struct router *r); /* NULL is fine */

/* 0; ERR_NOT_FOUND: no such path; ERR_METHOD: not with this method. HEAD finds GET.
 * ret->route and params are set only on 0. */
must_check int router_find(const struct router *r,
                           const char *method,
                           const char *path,
                           struct router_match *ret);

/* "GET, HEAD, POST, OPTIONS" of a path; "" if there is no such path. Returns text. */
const char *router_allow(const struct router *r,
                         const char *path,
                         char text[static ROUTER_ALLOW_MAX]);
