/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h - whose turn it is where only a few may go on at once: the others wait in a short line.
 *
 * First come, first served; but who has a turn already comes after those who have none, and nobody
 * has more than his share of the line. Pure. A zeroed struct turns is an empty one. */
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
    struct turn *first; /* as they came, those that go on as well */
};

/* At the end of the line. False: it is full, or his share of it is. */
bool turns_join(struct turns *t, struct turn *mine);
/* The one that goes on from now; NULL: `most` do, or nobody waits. */
struct turn *turns_next(struct turns *t, size_t most);
/* It has ended, or waits no more. */
void turns_leave(struct turns *t, struct turn *mine);
