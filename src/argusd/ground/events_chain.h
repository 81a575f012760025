/* SPDX-License-Identifier: Apache-2.0 */
/* events_chain.h - the hash that ties an event to all before it, and the walk that checks it.
 *
 *   hash(n) = SHA-256(hash(n-1) ‖ seq ‖ at ‖ job_seq ‖ each text of the row)
 *
 * Numbers are 8 bytes, little-endian; a text is its length in 8 bytes and its bytes, a NULL
 * text the length 2^64-1. The first event hangs on 32 zeros. So whoever changes, removes,
 * adds or moves a row must make all hashes after it anew, and who noted one of those earlier
 * sees it. What was cut off at the end shows only against a hash noted elsewhere, and against
 * the argusd that runs. Events of before there was a chain have no hash and come first. */
#pragma once
#include "store/store.h"

/* prev and ret may be the same. */
void events_chain(const unsigned char prev[static STORE_HASH_BYTES],
                  const struct store_event *row,
                  unsigned char ret[static STORE_HASH_BYTES]);

struct events_check {
    unsigned char hash[STORE_HASH_BYTES]; /* of the last one that was right */
    int64_t count, chained;               /* rows seen, those with a hash */
    int64_t last_seq;
    int64_t broken_seq; /* the first that is wrong, 0 = none; after it nothing is looked at */
    const char *why;    /* of that one; static */
    /* A hash that must occur, and where it was found; 0 = not (yet). */
    bool has_expected;
    unsigned char expected[STORE_HASH_BYTES];
    int64_t expected_seq;
};

/* The next row, in the order of seq. Zeroed memory is the beginning. */
void events_check_add(struct events_check *c, const struct store_event *row);
