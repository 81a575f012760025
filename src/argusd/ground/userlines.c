/* SPDX-License-Identifier: Apache-2.0 */
/* userlines.c - see userlines.h. A line is there as long as somebody is in it. Who joins anew comes
 * after all who wait already, so nobody gains by going and coming back. */
#include "argusd/ground/userlines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct userline {
    struct userline *next;
    char *user;
    struct userlines_place *first, *last; /* those that wait */
    size_t waiting, going_on;
    uint64_t served; /* the turn that was his last, or the one at which he came */
};

static void userline_free(struct userline *l)
{
    free(l->user);
    free(l);
}

void userlines_release(struct userlines *ls)
{
    for (struct userline *l = ls->first, *next; l; l = next) {
        next = l->next;
        userline_free(l);
    }
    *ls = (struct userlines){.most_of_one = ls->most_of_one};
}

static struct userline *userlines_line(struct userlines *ls, const char *user)
{
    for (struct userline *l = ls->first; l; l = l->next)
        if (!strcmp(l->user, user))
            return l;
    struct userline *l = xcalloc(1, sizeof(*l));
    *l = (struct userline){.next = ls->first, .user = xstrdup(user), .served = ++ls->count};
    ls->first = l;
    return l;
}

void userlines_join(struct userlines *ls, struct userlines_place *mine, const char *user)
{
    assert(!mine->line);
    struct userline *l = userlines_line(ls, user ? user : "");
    *mine = (struct userlines_place){.line = l};
    if (l->last)
        l->last->next = mine;
    else
        l->first = mine;
    l->last = mine;
    l->waiting++;
}

struct userlines_place *userlines_next(struct userlines *ls, size_t most)
{
    size_t share = ls->most_of_one ? ls->most_of_one : most;
    struct userline *best = NULL;
    if (ls->going_on >= most)
        return NULL;
    for (struct userline *l = ls->first; l; l = l->next)
        if (l->first && l->going_on < share &&
            (!best || l->going_on < best->going_on ||
             (l->going_on == best->going_on && l->served < best->served)))
            best = l;
    if (!best)
        return NULL;
    struct userlines_place *next = best->first;
    best->first = next->next;
    best->last = best->first ? best->last : NULL;
    best->waiting--;
    best->going_on++;
    best->served = ++ls->count;
    ls->going_on++;
    next->next = NULL;
    next->goes_on = true;
    return next;
}

static void userlines_unlink(struct userline *l, struct userlines_place *mine)
{
    struct userlines_place *before = NULL, *at = l->first;
    while (at != mine) { /* it is in this line */
        before = at;
        at = at->next;
    }
    if (before)
        before->next = mine->next;
    else
        l->first = mine->next;
    if (l->last == mine)
        l->last = before;
    l->waiting--;
}

void userlines_leave(struct userlines *ls, struct userlines_place *mine)
{
    struct userline *l = mine->line;
    if (!l)
        return;
    if (mine->goes_on) {
        l->going_on--;
        ls->going_on--;
    } else {
        userlines_unlink(l, mine);
    }
    *mine = (struct userlines_place){0};
    if (l->waiting || l->going_on)
        return;
    struct userline **at = &ls->first;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    userline_free(l);
}

size_t userlines_waiting(const struct userlines_place *mine)
{
    return mine->line ? mine->line->waiting : 0;
}
