/* SPDX-License-Identifier: Apache-2.0 */
/* namerank.h - how well a name fits what somebody typed, and the best of what was found of several
 * kinds. Pure.
 *
 * Case of ASCII is ignored. What stands behind '@' is a version and no part of a name: "gsm8k" is
 * the whole of "gsm8k@2". */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Each fits better than those before it. */
enum namerank {
    NAMERANK_NONE,   /* it does not fit */
    NAMERANK_BESIDE, /* said by who asks here, of a thing whose owner or project was typed */
    NAMERANK_INSIDE, /* somewhere within a word */
    NAMERANK_WORD,   /* a word of the name begins with it: "math" in "gsm8k-math" */
    NAMERANK_BEGINS, /* the name begins with it */
    NAMERANK_WHOLE,  /* it is the name */
};

/* NONE also where name is NULL, or text is "". */
enum namerank namerank_of(const char *name, const char *text);

struct namerank_hit {
    enum namerank rank;
    unsigned kind;   /* of two kinds that fit alike the smaller goes first */
    uint64_t behind; /* of two of a kind that fit alike the smaller goes first, then by name */
    const char *id, *name;
    const char *about; /* NULL = nothing is said */
    size_t turn;       /* set by namerank_join() */
};

/* Hits of one kind, the best first; their texts are its own. Begin with zeroed memory. */
struct namerank_list {
    struct namerank_hit *v;
    size_t n;
};
void namerank_release(struct namerank_list *list);

/* Keeps it if it is one of the `most` best; its texts are copied then. NONE is never kept. */
void namerank_add(struct namerank_list *list, size_t most, const struct namerank_hit *hit);

/* The `most` best of all lists, in *ret (zeroed): what fits better first, and among what fits alike
 * the kinds take turns, so that many of one kind do not hide the others. The lists are empty
 * after. */
void namerank_join(struct namerank_list *lists, size_t n, size_t most, struct namerank_list *ret);
