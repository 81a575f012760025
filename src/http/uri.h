/* SPDX-License-Identifier: Apache-2.0 */
/* uri.h - percent-decoding, queries and media types, strictly: what is not exactly in
 * form is refused, never repaired. Pure; nothing here allocates. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct uri_pair {
    const char *name;
    const char *value;
};

/* True if every byte may stand in a request target: visible ASCII, no fragment. */
bool uri_is_clean(const char *s);

/* Decode in place. ERR_BAD_REQUEST: a bad escape, NUL, another control byte, or what is not
 * UTF-8 (overlong forms and surrogates too). is_query: '+' is a space. */
must_check int uri_decode(char *s, bool is_query, struct err *err);

/* Split "a=1&b=2" in place into at most max decoded pairs; the count. Empty parts are
 * skipped. ERR_BAD_REQUEST: as above, or too many. Pairs point into s. */
must_check int uri_split_query(char *s, struct uri_pair *ret, size_t max, struct err *err);

/* Does an Accept header allow the media type (lower case)? A part with q=0 does not. */
bool accept_allows(const char *header, const char *media_type);

/* A Range header over `size` bytes. 1: *ret_n (> 0) bytes from *ret_from; 0: none that is
 * understood, or several: send all; ERR_RANGE: there are no such bytes. */
must_check int range_parse(const char *header, uint64_t size, uint64_t *ret_from, uint64_t *ret_n);

/* Is the quoted etag in an If-None-Match list, compared weakly? "*" matches all. */
bool etag_list_has(const char *header, const char *etag);
