/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h - whose turn it is where only a few may go on at once: the others wait in a line.
 *
 * First come, first served; but who has a turn already comes after those who have none. Pure. A
 * zeroed struct turns is an empty one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { TURNS_WAITING_MAX = 32, TURNS_WAITING_OF_ONE_MAX = 16 };

/* Part of what waits. */
struct turn {
    const char *user; /* set before it joins; borrowed until it leaves */
    bool goes_on;     /* else it waits */
    struct turn *next;
};
struct turns {
    size_t most_of_one;   /* that go on; 0 = as many as go on at all */
    struct turn *first;   /* those that wait, as they came */
    struct turn *running; /* those that go on, a few */
};

/* At the end of the line. False: it is full, or his share of it is. */
bool turns_join(struct turns *t, struct turn *mine);
/* The same for a line that has its ceiling elsewhere. */
void turns_add(struct turns *t, struct turn *mine);
/* The one that goes on from now; NULL: `most` do, nobody waits, or all who wait have their share.
 */
struct turn *turns_next(struct turns *t, size_t most);
/* It has ended, or waits no more. */
void turns_leave(struct turns *t, struct turn *mine);
