/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_sight.c - see pipes_sight.h. While the worker looks, the list is the worker's: the loop
 * adds nothing, and who drops the sight leaves it to the end of the look. */
#include "argusd/pipes/pipes_sight.h"

#include <stdlib.h>

#include "argusd/ground/work.h"
#include "base/mem.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootdir.h"

/* What one question may cost. A run has 256 items, each with a few paths; where an earlier run's
 * output is gone the one before it is looked at, hence the rounds. NAMES: files of all its plain
 * paths; what comes behind them is not known. */
enum { SIGHT_PATHS_MAX = 2048, SIGHT_ROUNDS_MAX = 24, SIGHT_NAMES_MAX = 200000 };

struct pipes_seen {
    char *path;
    struct walk_place place; /* zone_path NULL: is something there, and no more */
    bool is_known, is_gone;  /* is_gone: the look has worked, and nothing has the name */
    bool is_summed;
    struct pathsum sum;
};

struct pipes_sight {
    const struct api *a;
    char *root; /* a copy: for the worker */
    struct pipes_seen **v;
    size_t n, cap;
    struct map *by_path; /* the same: a plan asks each of them again in each round */
    int rounds;
    uint64_t names; /* the worker's: looked at so far */
    bool is_open, looks, is_dropped;
    void (*done)(void *arg);
    void *arg;
};

struct pipes_sight *pipes_sight_new(const struct api *a)
{
    unsigned char seed[16];
    struct pipes_sight *s = xcalloc(1, sizeof(*s));
    random_bytes(seed, sizeof(seed));
    s->by_path = map_new(seed);
    s->a = a;
    s->root = xstrdup(a->settings->shared_root);
    return s;
}

void pipes_sight_free(struct pipes_sight *s)
{
    if (!s)
        return;
    s->is_dropped = true;
    if (s->looks)
        return;
    for (size_t i = 0; i < s->n; i++) {
        walk_place_release(&s->v[i]->place);
        free(s->v[i]->path);
        free(s->v[i]);
    }
    free(s->v);
    map_free(s->by_path);
    free(s->root);
    free(s);
}

/* NULL: it is not known, now or for good. */
static const struct pipes_seen *sight_find(struct pipes_sight *s,
                                           const char *path,
                                           const struct walk_place *place)
{
    _cleanup_(freep) char *key = xasprintf("%s %s", place ? "sum" : "gone", path);
    struct pipes_seen *seen = map_find(s->by_path, key);
    if (seen)
        return seen->is_known ? seen : NULL;
    if (s->n == SIGHT_PATHS_MAX || s->rounds == SIGHT_ROUNDS_MAX ||
        cluster_root_hangs(s->a->cluster))
        return NULL;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 16;
        s->v = xrealloc(s->v, s->cap, sizeof(struct pipes_seen *));
    }
    seen = xcalloc(1, sizeof(*seen));
    seen->path = xstrdup(path);
    if (place)
        seen->place = (struct walk_place){.zone = place->zone,
                                          .name = xstrdup(place->name),
                                          .zone_path = xstrdup(place->zone_path),
                                          .rest = xstrdup(place->rest),
                                          .path = xstrdup(place->path)};
    s->v[s->n++] = seen;
    (void)map_set(s->by_path, key, seen); /* there was none */
    s->is_open = true;
    return NULL;
}

bool pipes_sight_misses(struct pipes_sight *s, const char *path)
{
    const struct pipes_seen *seen = sight_find(s, path, NULL);
    return seen && seen->is_gone;
}

const struct pathsum *pipes_sight_sum(struct pipes_sight *s, const struct walk_place *place)
{
    const struct pipes_seen *seen = sight_find(s, place->path, place);
    return seen && seen->is_summed ? &seen->sum : NULL;
}

bool pipes_sight_is_open(const struct pipes_sight *s)
{
    return s->is_open;
}

/* ---- the look ---- */

/* Where the root is not mounted everything seems gone, and nothing is. */
static bool sight_is_gone(const char *root, const char *path)
{
    _cleanup_(rootdir_release) struct rootdir above = ROOTDIR_NONE;
    const char *name = NULL;
    bool is_there = true;
    int r = rootdir_open_above(root, path, 0, &above, &name, NULL);
    if (r == 0)
        r = rootdir_look_for(&above, name, &is_there, NULL);
    bool seems_gone = r < 0 ? file_is_absence(r) : !is_there;
    return seems_gone && fsroot_check_mounted(root, NULL) == 0;
}

static void sight_run(void *arg)
{
    struct pipes_sight *s = arg;
    for (size_t i = 0; i < s->n; i++) {
        struct pipes_seen *seen = s->v[i];
        if (seen->is_known)
            continue;
        seen->is_known = true;
        if (seen->place.zone_path)
            seen->is_summed =
                s->names < SIGHT_NAMES_MAX && pathsum_take(s->root, &seen->place, &seen->sum) == 0;
        else
            seen->is_gone = sight_is_gone(s->root, seen->path);
        s->names += 1 + seen->sum.files;
    }
}

static void sight_done(void *arg)
{
    struct pipes_sight *s = arg;
    s->looks = false;
    s->is_open = false;
    s->rounds++;
    if (s->is_dropped)
        pipes_sight_free(s);
    else
        s->done(s->arg);
}

void pipes_sight_look(struct pipes_sight *s, const char *user, void (*done)(void *arg), void *arg)
{
    s->looks = true;
    s->done = done;
    s->arg = arg;
    work_start_for(s->a->loop, user, sight_run, sight_done, s);
}
