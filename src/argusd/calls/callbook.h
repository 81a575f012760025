/* SPDX-License-Identifier: Apache-2.0 */
/* callbook.h - how much each user may still ask of each service in this minute.
 *
 * Two buckets each, requests and tokens, that fill evenly: a minute's worth at most. Tokens are
 * known only afterwards, so a bucket may fall below zero, and nothing more goes until it is above
 * again. Who asked nothing for a while is forgotten. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct callbook;

struct callbook_limits {
    int64_t requests, tokens; /* in a minute; 0: no limit */
};

enum callbook_answer { CALLBOOK_GOES, CALLBOOK_REQUESTS, CALLBOOK_TOKENS };

struct callbook *callbook_new(void);
void callbook_free(struct callbook *b); /* NULL is fine */
/* One more request; of what there are too many. *ret_wait: until one may go again. */
enum callbook_answer callbook_take(struct callbook *b,
                                   const char *service,
                                   const char *user,
                                   const struct callbook_limits *l,
                                   usec_t now,
                                   usec_t *ret_wait);
/* The tokens of a request that was taken. */
void callbook_add_tokens(struct callbook *b, const char *service, const char *user, int64_t tokens);
