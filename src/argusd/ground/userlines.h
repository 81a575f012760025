/* SPDX-License-Identifier: Apache-2.0 */
/* userlines.h - a line for each user where work that nobody asked for waits, and whose is next.
 *
 * In a user's line first come, first served. Of the users goes next who has the fewest that go on,
 * and of these who was served longest ago: however many wait for one user, another one waits for a
 * turn of each user and no more. A step costs as many compares as users wait. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct userline;

/* Part of what waits; a zeroed one is in no line. */
struct userlines_place {
    struct userlines_place *next;
    struct userline *line; /* NULL: it is in none */
    bool goes_on;          /* else it waits */
};

struct userlines {
    size_t most_of_one; /* that go on; 0 = as many as go on at all */
    struct userline *first;
    size_t going_on;
    uint64_t count; /* of turns, by which their order is known */
};

void userlines_release(struct userlines *ls); /* places are in none any more */
/* At the end of this user's line, which it is not in; NULL: of nobody's. user: copied. */
void userlines_join(struct userlines *ls, struct userlines_place *mine, const char *user);
/* The one that goes on from now; NULL: `most` do, nobody waits, or all who wait have their share.
 */
struct userlines_place *userlines_next(struct userlines *ls, size_t most);
/* It has ended, or waits no more. One that is in no line is fine. */
void userlines_leave(struct userlines *ls, struct userlines_place *mine);
/* How many of this place's user wait. */
size_t userlines_waiting(const struct userlines_place *mine);
