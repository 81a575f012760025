/* SPDX-License-Identifier: Apache-2.0 */
/* opsfacts.c - see opsfacts.h.
 *
 * Facts are sorted by their names before anything is made of them, so no order is part of a plan.
 */
#include "argusd/ops/opsfacts.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { SAID_MOST = 5, SAID_MAX = 1200 };

#define CHANGE(key, ...) FIELD_AT(opsfacts_change, #key, FIELD_STR, key, __VA_ARGS__)
static const struct field change_rows[] = {
    CHANGE(fact, .flags = FIELD_ALWAYS, .doc = "node/w1, job/sft-1, checkpoint/20"),
    CHANGE(planned, .doc = "as it was when the plan was made; null: it was not there"),
    CHANGE(now, .doc = "null: it is not there any more"),
};
const struct field_table opsfacts_change_table =
    FIELD_TABLE("OpsDifference", change_rows, opsfacts_change);

static int opsfacts_by_name(const void *a, const void *b)
{
    return strcmp((*(const struct pair *const *)a)->key, (*(const struct pair *const *)b)->key);
}

/* free() it. */
static const struct pair **opsfacts_sort(const struct pairs *facts)
{
    const struct pair **v = xcalloc(facts->n + 1, sizeof(struct pair *));
    for (size_t i = 0; i < facts->n; i++)
        v[i] = &facts->v[i];
    xsort(v, facts->n, sizeof(struct pair *), opsfacts_by_name);
    return v;
}

void opsfacts_hash(const struct pairs *facts, char ret[static HASH_HEX])
{
    struct hash_running h;
    const struct pair **v = opsfacts_sort(facts);
    hash_begin(&h);
    for (size_t i = 0; i < facts->n; i++) { /* with the NUL behind each: no two lists read alike */
        hash_add(&h, v[i]->key, strlen(v[i]->key) + 1);
        hash_add(&h, v[i]->value, strlen(v[i]->value) + 1);
    }
    free(v);
    (void)hash_so_far_hex(&h, ret);
}

static void opsfacts_add(struct field_list *l,
                         const char *fact,
                         const char *planned,
                         const char *now)
{
    const struct opsfacts_change change = {.fact = xstrdup(fact),
                                           .planned = planned ? xstrdup(planned) : NULL,
                                           .now = now ? xstrdup(now) : NULL};
    field_list_add(l, &change, sizeof(change));
}

void opsfacts_compare(const struct pairs *planned, const struct pairs *now, struct field_list *ret)
{
    const struct pair **a = opsfacts_sort(planned), **b = opsfacts_sort(now);
    *ret = (struct field_list){0};
    for (size_t i = 0, k = 0; i < planned->n || k < now->n;) {
        int order = i == planned->n ? 1 : k == now->n ? -1 : strcmp(a[i]->key, b[k]->key);
        if (order < 0)
            opsfacts_add(ret, a[i]->key, a[i]->value, NULL);
        else if (order > 0)
            opsfacts_add(ret, b[k]->key, NULL, b[k]->value);
        else if (strcmp(a[i]->value, b[k]->value) != 0)
            opsfacts_add(ret, a[i]->key, a[i]->value, b[k]->value);
        i += order <= 0;
        k += order >= 0;
    }
    free(a);
    free(b);
}

void opsfacts_release(struct field_list *changes)
{
    struct opsfacts_change *v = changes->v;
    for (size_t i = 0; i < changes->n; i++)
        field_release(&opsfacts_change_table, &v[i]);
    free(v);
    *changes = (struct field_list){0};
}

char *opsfacts_say(const struct field_list *changes)
{
    const struct opsfacts_change *v = changes->v;
    struct buf b = BUF_INIT(SAID_MAX);
    for (size_t i = 0; i < changes->n && i < SAID_MOST; i++)
        (void)buf_addf(&b, "%s%s: %s -> %s", i ? "; " : "", v[i].fact, str_or(v[i].planned, "none"),
                       str_or(v[i].now, "none")); /* more is cut: the page has all */
    if (changes->n > SAID_MOST)
        (void)buf_adds(&b, "; …");
    return buf_take(&b);
}
