/* SPDX-License-Identifier: Apache-2.0 */
/* tokencount.h - the tokens of an answer of an OpenAI-compatible engine, found while it passes.
 *
 * Keeps the last bytes only: `usage` stands at the end of an answer, and in the last event of a
 * stream. A stream without it is estimated by its events, each of which is a token or a few. Pure.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKENCOUNT_KEPT = 4096 };

struct tokencount {
    char kept[2 * TOKENCOUNT_KEPT]; /* its last bytes */
    size_t n;
    int64_t events; /* lines that begin with "data:" */
    unsigned at;    /* bytes of "\ndata:" that were seen */
};

void tokencount_init(struct tokencount *t);
void tokencount_add(struct tokencount *t, const char *p, size_t n);
/* What the answer says of itself; false: it says nothing, then *ret_in is -1 and *ret_out the
 * number of events but the last, -1 if there were none. */
bool tokencount_read(const struct tokencount *t, int64_t *ret_in, int64_t *ret_out);
