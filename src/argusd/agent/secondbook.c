/* SPDX-License-Identifier: Apache-2.0 */
/* secondbook.c - see secondbook.h. Users are as many as questions of a day at most: the list is
 * walked. */
#include "argusd/agent/secondbook.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define SPENT(key, ftype) FIELD_AT(second_spent, #key, ftype, key, .flags = FIELD_STORED)
static const struct field spent_rows[] = {
    SPENT(user, FIELD_STR),
    SPENT(questions, FIELD_INT),
    SPENT(tokens, FIELD_INT),
};
#undef SPENT
const struct field_table second_spent_table = FIELD_TABLE(NULL, spent_rows, second_spent);

static struct second_spent *secondbook_find(const struct secondbook *b, const char *user)
{
    struct second_spent *v = b->users.v;
    for (size_t i = 0; i < b->users.n; i++)
        if (str_eq(v[i].user, user))
            return &v[i];
    return NULL;
}

static struct second_spent *secondbook_of(struct secondbook *b, const char *user)
{
    struct second_spent *found = secondbook_find(b, user);
    if (found)
        return found;
    struct second_spent *v = xrealloc(b->users.v, b->users.n + 1, sizeof(*v));
    b->users.v = v;
    v[b->users.n] = (struct second_spent){.user = xstrdup(user)};
    return &v[b->users.n++];
}

void secondbook_release(struct secondbook *b)
{
    struct second_spent *v = b->users.v;
    for (size_t i = 0; i < b->users.n; i++)
        field_release(&second_spent_table, &v[i]);
    free(v);
    b->users = (struct field_list){0};
}

/* An hour goes on beyond the end of the day in which it began, and its questions count. */
static void secondbook_begin_day(struct secondbook *b)
{
    struct second_spent *v = b->users.v;
    size_t n = 0;
    for (size_t i = 0; i < b->users.n; i++) {
        v[i].tokens = 0;
        if (v[i].questions)
            v[n++] = v[i];
        else
            field_release(&second_spent_table, &v[i]);
    }
    b->users.n = n;
}

void secondbook_turn(struct secondbook *b, usec_t now)
{
    struct second_spent *v = b->users.v;
    if (now >= b->hour + USEC_HOUR) {
        b->hour = now;
        b->questions = 0;
        for (size_t i = 0; i < b->users.n; i++)
            v[i].questions = 0;
    }
    if (now >= b->day + USEC_DAY) {
        b->day = now;
        b->tokens = 0;
        secondbook_begin_day(b);
    }
}

/* What of a bound one user's jobs may have. */
static int64_t secondbook_share(int64_t most)
{
    int64_t kept = (most + 3) / 4;
    return most > kept ? most - kept : most;
}

bool secondbook_may(const struct secondbook *b,
                    const struct secondbook_most *most,
                    const char *user)
{
    const struct second_spent *his = user ? secondbook_find(b, user) : NULL;
    if (b->questions >= most->questions || b->tokens >= most->tokens)
        return false;
    return !his || (his->questions < secondbook_share(most->questions) &&
                    his->tokens < secondbook_share(most->tokens));
}

void secondbook_ask(struct secondbook *b, const char *user)
{
    secondbook_of(b, user)->questions++;
    b->questions++;
}

void secondbook_spend(struct secondbook *b, const char *user, int64_t tokens)
{
    secondbook_of(b, user)->tokens += tokens;
    b->tokens += tokens;
}
