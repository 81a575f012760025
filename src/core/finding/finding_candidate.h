/* SPDX-License-Identifier: Apache-2.0 */
/* finding_candidate.h - what may be why it failed, while it is judged; for finding_judge.c, which
 * decides, and finding_second.c; nobody else includes it. */
#pragma once
#include "core/finding/read/finding_finder.h"

enum {
    STEP = 20, /* and what weighs less is vague */
    HINT = 15, /* a weight below it needs another sign of failure */
};

/* What is known outside the log, as a candidate. */
struct fact {
    const char *id;
    enum finding_class class;
    int weight;
    uint64_t beats;
    bool (*holds)(const struct finding_facts *f);
    const char *text; /* its advice is that of the id in the catalogue */
};

struct candidate {
    const struct finding_event *event; /* NULL: a fact */
    const struct fact *fact;
    enum finding_class class;
    int weight;
    uint64_t at;
    uint64_t beats;
    bool out; /* another one outranks it */
};

struct candidates {
    struct candidate *v;
    size_t n, cap;
};

/* The one that comes first, of those that nothing outranks; not_as: of another class than this
 * one's, or NULL. NULL: there is none. */
const struct candidate *candidates_best(const struct candidates *c, const struct candidate *not_as);

/* The second of a finding whose first is best; nothing where it is not close. */
void finding_second_fill(const struct candidates *c,
                         const struct candidate *best,
                         struct finding *ret);
