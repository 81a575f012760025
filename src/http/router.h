/* SPDX-License-Identifier: Apache-2.0 */
/* router.h - which route a path means, and strict percent-decoding. Pure. */
#pragma once
#include "http/http.h"

enum { ROUTER_PARAMS_MAX = 4 };

struct router_match {
    const struct http_route *route; /* NULL: none */
    bool other_method;              /* the path exists, with other methods: see allow */
    char allow[64];
    const char *names[ROUTER_PARAMS_MAX]; /* into the pattern */
    size_t name_lens[ROUTER_PARAMS_MAX];
    char *values[ROUTER_PARAMS_MAX]; /* decoded, owned */
    size_t n;
};

/* path: as sent, without query. ERR_BAD_REQUEST: broken escapes. */
must_check int router_find(const struct http_route *routes, size_t n, const char *method,
                           const char *path, struct router_match *ret, struct err *err);
void router_match_release(struct router_match *m);

/* Append the decoded text; '+' is a blank when plus is set. -EINVAL: broken escape or NUL. */
must_check int router_decode(const char *text, size_t len, bool plus, struct buf *out);
