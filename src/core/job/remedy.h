/* SPDX-License-Identifier: Apache-2.0 */
/* remedy.h - the table of remedies: what argusd puts right on a machine by itself, and how often it
 * may. argusd/machines/nodes_remedy.c finds the occasions and acts; docs/remedies.md says it to
 * people. Pure: no I/O, no clock.
 *
 * Each remedy has a limit for a node and hour, a time that it rests after each act, and a key of
 * argus.yaml (remedies.NAME) that turns it off. The acts of the last hour are a book that the
 * node's row keeps, so that a restart forgets none. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"

/* X(enumerator, name, acts for a node and hour, rest after each). The name is the key below
 * remedies; it is also in the book, and a name that goes is forgotten there. */
#define REMEDY_TABLE(X)                                                                            \
    X(STRAY, "stray_process", 12, 30 * USEC_SEC)                                                   \
    X(SESSIONS, "dead_sessions", 6, 10 * USEC_MIN)                                                 \
    X(RAYLET, "raylet", 12, 0)
#define X(e, name, limit, rest) REMEDY_##e,
enum remedy { REMEDY_TABLE(X) REMEDY_END };
#undef X

const char *remedy_to_string(enum remedy r);
bool remedy_from_string(const char *word, enum remedy *ret); /* false: no remedy has this name */
int remedy_limit(enum remedy r);                             /* acts for a node and hour */
usec_t remedy_rest(enum remedy r);                           /* after each act; 0: none */

/* Whether one more act may be. */
enum remedy_leave {
    REMEDY_MAY,
    REMEDY_RESTS, /* too soon after the last one */
    REMEDY_SPENT, /* so many as may be in an hour */
};

enum { REMEDY_BOOK_MAX = 1024 }; /* all limits, twice over */

/* The book: "<name>@<seconds>" by blanks, the oldest first. What cannot be read of it is left out,
 * and so is what would be later than now: the clock was set back. Times are wall times. */
enum remedy_leave remedy_ask(const char *book, enum remedy r, usec_t now);
int remedy_times(const char *book, enum remedy r, usec_t now); /* within the last hour */
/* Before the act: one that is cut off counts, too. */
void remedy_note(char book[static REMEDY_BOOK_MAX], enum remedy r, usec_t now);
