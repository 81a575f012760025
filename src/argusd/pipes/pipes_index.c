/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_index.c - the items of all runs that have succeeded, by the hash of their inputs, so that
 * who looks for an earlier one does not walk through every run.
 *
 * A run is filed when its row is written. Between a change of an item and that row the index may
 * still have the item as it was: who reads it looks at the item itself. */
#include <stdlib.h>

#include "argusd/pipes/pipes_state.h"
#include "base/str.h"
#include "base/text.h"

/* The items of one user and project whose inputs have one hash. */
struct pipes_shelf {
    char *key;
    char hash[HASH_HEX];
    struct pipes_filed *newest;
};

static char *pipes_shelf_key(const struct pipe_life *r, const char *hash)
{
    return xasprintf("%s\n%s\n%s", r->user, r->project, hash);
}

/* Newer runs come first, and within a run the first item: the order of a walk through all runs. */
static bool pipes_filed_before(const struct pipes_filed *a, const struct pipes_filed *b)
{
    return a->run != b->run ? a->run->number > b->run->number : a->item < b->item;
}

static void pipes_file(struct pipes_filed *f, const char *hash)
{
    struct map *index = f->run->pipes->index;
    char *key = pipes_shelf_key(f->run, hash);
    struct pipes_shelf *shelf = map_find(index, key);
    if (shelf) {
        free(key);
    } else {
        shelf = xcalloc(1, sizeof(*shelf));
        shelf->key = key;
        text_copy(shelf->hash, hash);
        (void)map_set(index, key, shelf); /* there was none */
    }
    struct pipes_filed *newer = NULL, *older = shelf->newest;
    for (; older && pipes_filed_before(older, f); older = older->older)
        newer = older;
    f->shelf = shelf;
    f->newer = newer;
    f->older = older;
    *(newer ? &newer->older : &shelf->newest) = f;
    if (older)
        older->newer = f;
}

static void pipes_unfile(struct pipes_filed *f)
{
    struct pipes_shelf *shelf = f->shelf;
    if (!shelf)
        return;
    *(f->newer ? &f->newer->older : &shelf->newest) = f->older;
    if (f->older)
        f->older->newer = f->newer;
    f->shelf = NULL;
    f->newer = f->older = NULL;
    if (shelf->newest)
        return;
    (void)map_remove(f->run->pipes->index, shelf->key); /* it was there */
    free(shelf->key);
    free(shelf);
}

void pipes_index_run(struct pipe_life *r)
{
    if (!r->filed)
        r->filed = xcalloc(r->run.n + 1, sizeof(*r->filed));
    for (size_t i = 0; i < r->run.n; i++) {
        const struct pipe_item *item = &r->run.v[i];
        struct pipes_filed *f = &r->filed[i];
        const char *hash = item->state == PIPE_SUCCEEDED ? item->hash : "";
        if (str_eq(f->shelf ? f->shelf->hash : "", hash))
            continue;
        pipes_unfile(f);
        f->run = r;
        f->item = i;
        if (*hash)
            pipes_file(f, hash);
    }
}

void pipes_unindex_run(struct pipe_life *r)
{
    for (size_t i = 0; r->filed && i < r->run.n; i++)
        pipes_unfile(&r->filed[i]);
    freep(&r->filed);
}

const struct pipes_filed *pipes_index_find(const struct pipe_life *r, const char *hash)
{
    _cleanup_(freep) char *key = pipes_shelf_key(r, hash);
    const struct pipes_shelf *shelf = map_find(r->pipes->index, key);
    return shelf ? shelf->newest : NULL;
}
