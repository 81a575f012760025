/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - see turns.h. Who waits is compared with those that go on alone, which are few: however
 * long the line is, it is walked once. */
#include "argusd/ground/turns.h"

#include <string.h>

/* user NULL: of all. */
static size_t count(const struct turn *list, const char *user)
{
    size_t n = 0;
    for (const struct turn *i = list; i; i = i->next)
        n += !user || !strcmp(i->user, user);
    return n;
}

bool turns_join(struct turns *t, struct turn *mine)
{
    if (count(t->first, NULL) >= TURNS_WAITING_MAX ||
        count(t->first, mine->user) >= TURNS_WAITING_OF_ONE_MAX)
        return false;
    turns_add(t, mine);
    return true;
}

void turns_add(struct turns *t, struct turn *mine)
{
    struct turn **end = &t->first;
    while (*end)
        end = &(*end)->next;
    mine->goes_on = false;
    mine->next = NULL;
    *end = mine;
}

struct turn *turns_next(struct turns *t, size_t most)
{
    struct turn **best = NULL;
    size_t least = t->most_of_one ? t->most_of_one : most;
    if (count(t->running, NULL) >= most)
        return NULL;
    for (struct turn **at = &t->first; *at && least; at = &(*at)->next) {
        size_t his = count(t->running, (*at)->user);
        if (his < least) {
            best = at;
            least = his;
        }
    }
    if (!best)
        return NULL;
    struct turn *next = *best;
    *best = next->next;
    next->goes_on = true;
    next->next = t->running;
    t->running = next;
    return next;
}

void turns_leave(struct turns *t, struct turn *mine)
{
    struct turn **at = mine->goes_on ? &t->running : &t->first;
    while (*at && *at != mine)
        at = &(*at)->next;
    if (*at)
        *at = mine->next;
}
