/* SPDX-License-Identifier: Apache-2.0 */
/* finding_rule.h - a rule as it is held, and the table of them; shared by finding*.c only. */
#pragma once
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/doc/doc.h"
#include "base/strv.h"
#include "core/finding/finding.h"
#include "core/finding/rules/finding_index.h"
#include "core/finding/rules/finding_needles.h"
#include "core/finding/rules/finding_pattern.h"
#include "core/finding/rules/finding_rules.h"

/* X(enumerator, word): what a line that matches is. */
#define ROLE_TABLE(X)                                                                              \
    X(ROLE_CAUSE, "cause")         /* may be why it failed */                                      \
    X(ROLE_WRAPPER, "wrapper")     /* it failed, but this only passes that on */                   \
    X(ROLE_CLEANUP, "cleanup")     /* what ends because something else did */                      \
    X(ROLE_BENIGN, "benign")       /* means nothing, whatever its words */                         \
    X(ROLE_IGNORED, "ignored")     /* the traceback behind it means nothing */                     \
    X(ROLE_FRAME, "frame")         /* of a traceback: says what was being done */                  \
    X(ROLE_TRACEBACK, "traceback") /* the head of one */                                           \
    X(ROLE_PROGRESS, "progress")   /* the training went on */                                      \
    X(ROLE_SUCCESS, "success")     /* it ended well */

enum finding_role {
#define X(e, word) e,
    ROLE_TABLE(X)
#undef X
        ROLE_COUNT
};

struct finding_rule {
    char *id, *family;
    enum finding_class class;
    enum finding_role role;
    int weight;
    int goes_on; /* so many lines of the same process belong to the message */
    bool lasting, quiet, heals, head, stalls, severe, last;
    enum finding_class or ; /* what it is else, where it is not that; FINDING_NONE: not said */
    uint64_t context;       /* a bit per class that frames may make of it */
    uint64_t named;         /* those of them that the rule names: of a last place, too */
    char *pattern, *advice;
    pcre2_code *code;
    struct strv outranks, needles, match, miss;
    struct pattern_branch *branches;
    size_t n_branches;
    unsigned first_branch; /* its number among those of all rules */
    struct finding_change patch[FINDING_CHANGES_MAX];
    size_t n_patch;
    uint64_t beats_classes; /* a bit per class */
    uint64_t *beats_rules;  /* a bit per rule */
};

/* What a rule is asked about: any line, a line of code in a traceback, a line that would be a
 * cause or a wrapper. */
enum finding_asked { ASKED_ANY, ASKED_CODE, ASKED_EXCUSE, ASKED_COUNT };

struct finding_rules {
    struct finding_rule *v;
    size_t n, cap;
    struct finding_index *index[ASKED_COUNT]; /* a line that ASKED_ANY does not know is not read */
    unsigned *rule_of;                        /* by branch */
    unsigned n_branches;
    bool compiled;
};

/* Bits of needles that a line has. */
static inline bool finding_has_bit(const uint64_t *found, unsigned number)
{
    return found[number / 64] >> (number % 64) & 1;
}

/* Read a rule's list of changes (a sequence, or NULL). */
void finding_patch_read(const struct node *list, struct finding_rule *r, struct problems *ps);
void finding_change_release(struct finding_change *c);
void finding_change_copy(struct finding_change *dst, const struct finding_change *src);
