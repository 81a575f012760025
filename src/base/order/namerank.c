/* SPDX-License-Identifier: Apache-2.0 */
/* namerank.c - see namerank.h. A list is a sorted array of a few dozen at the most: a hit is put in
 * its place, and what falls off the end is freed. */
#include "base/order/namerank.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* Letters of other scripts are bytes above ASCII. */
static bool namerank_is_letter(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte >= 0x80 || isalnum(byte);
}

enum namerank namerank_of(const char *name, const char *text)
{
    size_t n = strlen(text);
    enum namerank best = NAMERANK_NONE;
    if (!name || !n)
        return NAMERANK_NONE;
    if (!strncasecmp(name, text, n))
        return name[n] && name[n] != '@' ? NAMERANK_BEGINS : NAMERANK_WHOLE;
    for (const char *at = name; *at && best < NAMERANK_WORD; at++)
        if (!strncasecmp(at, text, n)) /* not at the beginning: see above */
            best = namerank_is_letter(at[-1]) ? NAMERANK_INSIDE : NAMERANK_WORD;
    return best;
}

/* ---- lists ---- */

/* The texts of what stands in a list are copies. */
static void namerank_forget(struct namerank_hit *hit)
{
    free((char *)(uintptr_t)hit->id);
    free((char *)(uintptr_t)hit->name);
    free((char *)(uintptr_t)hit->about);
}

void namerank_release(struct namerank_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        namerank_forget(&list->v[i]);
    free(list->v);
    *list = (struct namerank_list){0};
}

static bool namerank_goes_first(const struct namerank_hit *x, const struct namerank_hit *y)
{
    if (x->rank != y->rank)
        return x->rank > y->rank;
    if (x->behind != y->behind)
        return x->behind < y->behind;
    int by_name = strcasecmp(x->name, y->name);
    return by_name ? by_name < 0 : strcmp(x->id, y->id) < 0;
}

void namerank_add(struct namerank_list *list, size_t most, const struct namerank_hit *hit)
{
    size_t at = list->n;
    if (hit->rank == NAMERANK_NONE)
        return;
    while (at > 0 && namerank_goes_first(hit, &list->v[at - 1]))
        at--;
    if (at >= most)
        return;
    if (!list->v)
        list->v = xcalloc(most, sizeof(*list->v));
    if (list->n == most)
        namerank_forget(&list->v[--list->n]);
    memmove(list->v + at + 1, list->v + at, (list->n - at) * sizeof(*list->v));
    list->n++;
    list->v[at] = *hit;
    list->v[at].id = xstrdup(hit->id);
    list->v[at].name = xstrdup(hit->name);
    list->v[at].about = hit->about ? xstrdup(hit->about) : NULL;
}

/* ---- several kinds ---- */

static int namerank_compare(const void *a, const void *b)
{
    const struct namerank_hit *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Its place among those of its kind that fit as well. */
static void namerank_number(struct namerank_list *list)
{
    for (size_t i = 1; i < list->n; i++)
        list->v[i].turn = list->v[i].rank == list->v[i - 1].rank ? list->v[i - 1].turn + 1 : 0;
}

void namerank_join(struct namerank_list *lists, size_t n, size_t most, struct namerank_list *ret)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += lists[i].n;
    ret->v = xcalloc(all + 1, sizeof(*ret->v));
    for (size_t i = 0; i < n; i++) {
        namerank_number(&lists[i]);
        if (lists[i].n)
            memcpy(ret->v + ret->n, lists[i].v, lists[i].n * sizeof(*ret->v));
        ret->n += lists[i].n;
        free(lists[i].v);
        lists[i] = (struct namerank_list){0};
    }
    xsort(ret->v, ret->n, sizeof(*ret->v), namerank_compare);
    while (ret->n > most)
        namerank_forget(&ret->v[--ret->n]);
}
