/* SPDX-License-Identifier: Apache-2.0 */
/* headers.h - which lines of a head a proxy hands on, and how addresses in them are rewritten.
 *
 * Rules only: pure, no memory of its own but what it appends to a buffer. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

/* May this line of a request reach the server behind? Not those that end at each connection, that
 * say who asks, or that a proxy says itself. Names are compared without case, '_' as '-': some
 * servers take the one for the other. `connection` is the request's Connection field, whose words
 * name lines that end here ("" if it has none). */
bool header_goes_up(const char *name, const char *connection);
/* May this line of an answer reach the client? Not those that would act on our origin as a whole:
 * cookies, CORS, HSTS, Clear-Site-Data and the like. */
bool header_goes_down(const char *name, const char *connection);

/* No segment of the path is "." or "..", encoded ones too: an address below a prefix stays below.
 */
bool header_is_below(const char *path);

/* Where a server behind is seen from outside. */
struct header_place {
    const char *host;   /* of the server behind, with its port: "10.0.0.1:8000" */
    const char *base;   /* path there: "/s/chat-v2", "" for its root */
    const char *prefix; /* the same place outside: "/v1/services/chat" */
};
/* A Location as the client must see it, appended to `out`. False: it is none that may be followed.
 * An address elsewhere stays as it is. */
bool header_location(const struct header_place *at, const char *location, struct buf *out);
