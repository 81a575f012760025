/* SPDX-License-Identifier: Apache-2.0 */
/* hydra_read.h - what Hydra 1.3 reads in an override that somebody wrote: "a.b=[1,2]".
 *
 * Its grammar is told by its own files (hydra/grammar/Override*.g4); a test holds both readers
 * against each other. Values are read as far as their shape and texts go, functions are not
 * evaluated. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"

enum hydra_fault {
    HYDRA_FINE,
    HYDRA_BAD_KEY,   /* what stands before '=' is no key */
    HYDRA_BAD_VALUE, /* Hydra cannot parse the value */
    HYDRA_SWEEP,     /* several runs are asked for: "a,b", choice(…), range(…) */
    HYDRA_NO_CALL,   /* a function that Hydra has not */
    HYDRA_OPEN_NAME, /* "${" that OmegaConf cannot read */
};

struct hydra_value {
    enum hydra_fault fault;
    size_t at;         /* of a fault: where in the override, in bytes */
    size_t value;      /* where the value begins */
    bool is_quoted;    /* the whole value is one text in quotes */
    bool is_known;     /* it is one text, or a list of texts, without names that are read later */
    struct strv texts; /* is_known: those, as verl gets them. Owned */
};

/* *ret is whole in any case, and released by hydra_value_release(). */
enum hydra_fault hydra_read(const char *override, struct hydra_value *ret);
void hydra_value_release(struct hydra_value *v);

/* The length of the text in quotes that begins at s; 0: none does, or it has no end. It goes up to
 * the first such quote with an even number of backslashes before it. */
size_t hydra_quoted(const char *s);

/* An override that says what this one means as far as that can be guessed: a text in quotes, a list
 * that is closed, a sweep as a list. NULL: nothing near is right. Heap. */
char *hydra_nearest(const char *override);
