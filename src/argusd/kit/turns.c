/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - see turns.h. The line is short: it is walked. */
#include "argusd/kit/turns.h"

#include <string.h>

/* user NULL: of all. */
static size_t count(const struct turns *t, const char *user, bool goes_on)
{
    size_t n = 0;
    for (const struct turn *i = t->first; i; i = i->next)
        n += i->goes_on == goes_on && (!user || !strcmp(i->user, user));
    return n;
}

bool turns_join(struct turns *t, struct turn *mine)
{
    if (count(t, NULL, false) >= TURNS_WAITING_MAX ||
        count(t, mine->user, false) >= TURNS_WAITING_OF_ONE_MAX)
        return false;
    struct turn **end = &t->first;
    while (*end)
        end = &(*end)->next;
    mine->goes_on = false;
    mine->next = NULL;
    *end = mine;
    return true;
}

struct turn *turns_next(struct turns *t, size_t most)
{
    struct turn *next = NULL;
    size_t least = count(t, NULL, true);
    if (least >= most)
        return NULL;
    for (struct turn *i = t->first; i; i = i->next) {
        size_t his = i->goes_on ? 0 : count(t, i->user, true);
        if (i->goes_on || (next && his >= least))
            continue;
        next = i;
        least = his;
    }
    if (next)
        next->goes_on = true;
    return next;
}

void turns_leave(struct turns *t, struct turn *mine)
{
    struct turn **at = &t->first;
    while (*at && *at != mine)
        at = &(*at)->next;
    if (*at)
        *at = mine->next;
}
