/* SPDX-License-Identifier: Apache-2.0 */
/* promptcount.h - how many tokens a request to a model has, about, found while it passes.
 *
 * For streams whose engine was not asked for its own count. Four bytes of a request make a token: a
 * text in English has about as many, one in Chinese too, also where JSON has it escaped. A picture
 * or a sound stands in a request as a long run of base64, and of such a run no more than
 * PROMPTCOUNT_RUN bytes count. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROMPTCOUNT_RUN = 4096, PROMPTCOUNT_BYTES_OF_TOKEN = 4 };

struct promptcount { /* all 0 at first */
    uint64_t bytes;  /* that count */
    uint64_t run;    /* bytes since the last one that base64 does not have */
    unsigned skip;   /* digits of an escaped letter that are not to count */
    bool is_escaped; /* the last byte was a backslash */
};

void promptcount_add(struct promptcount *c, const char *p, size_t n);
int64_t promptcount_tokens(const struct promptcount *c);
