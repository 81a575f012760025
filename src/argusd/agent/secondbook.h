/* SPDX-License-Identifier: Apache-2.0 */
/* secondbook.h - what was asked of a model in this hour and spent in this day, by all and by whose
 * jobs. Of each bound the last quarter, of questions one at least, is not one user's alone: whose
 * jobs fail in a loop leaves so much to the others. Of one question an hour nothing is kept. Pure.
 */
#pragma once
#include "base/clock.h"
#include "base/field.h"

struct secondbook {
    usec_t hour, day;        /* when these began; wall */
    int64_t questions;       /* in this hour */
    int64_t tokens;          /* in this day */
    struct field_list users; /* struct second_spent: who was asked about in this hour or day */
};

struct second_spent {
    char *user;
    int64_t questions, tokens; /* as above */
};
extern const struct field_table second_spent_table;

struct secondbook_most {
    int64_t questions, tokens; /* in an hour, in a day */
};

void secondbook_release(struct secondbook *b);
/* Begins a new hour or day once the old one is over. A clock that was set back begins them no
 * sooner than it went on. */
void secondbook_turn(struct secondbook *b, usec_t now);
/* May one more question be asked, about a job of this user? NULL: of anybody. */
bool secondbook_may(const struct secondbook *b,
                    const struct secondbook_most *most,
                    const char *user);
void secondbook_ask(struct secondbook *b, const char *user); /* one is asked about his job */
void secondbook_spend(struct secondbook *b, const char *user, int64_t tokens);
