/* SPDX-License-Identifier: Apache-2.0 */
/* census.c - see census.h. One map for each kind of word; a word that no job has is in none. */
#include "argusd/jobs/census.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

enum census_kind { CENSUS_CLUSTER, CENSUS_POOL, CENSUS_WORKLOAD, CENSUS_KINDS };

struct census {
    struct map *counts[CENSUS_KINDS]; /* word -> size_t * */
};

struct census *census_new(const unsigned char seed[static 16])
{
    struct census *c = xcalloc(1, sizeof(*c));
    for (int i = 0; i < CENSUS_KINDS; i++)
        c->counts[i] = map_new(seed);
    return c;
}

void census_free(struct census *c)
{
    size_t *count;
    if (!c)
        return;
    for (int i = 0; i < CENSUS_KINDS; i++) {
        for (size_t pos = 0; (count = map_next(c->counts[i], &pos, NULL));)
            free(count);
        map_free(c->counts[i]);
    }
    free(c);
}

static void census_count(struct map *counts, const char *word)
{
    size_t *count = map_find(counts, word);
    if (!count) {
        count = xcalloc(1, sizeof(*count));
        (void)map_set(counts, word, count); /* there was none */
    }
    ++*count;
}

static void census_uncount(struct map *counts, const char *word)
{
    size_t *count = map_find(counts, word);
    if (count && --*count == 0)
        free(map_remove(counts, word));
}

void census_add(struct census *c, const struct job *j)
{
    census_count(c->counts[CENSUS_CLUSTER], j->cluster);
    census_count(c->counts[CENSUS_POOL], j->pool);
    census_count(c->counts[CENSUS_WORKLOAD], j->workload);
}

void census_remove(struct census *c, const struct job *j)
{
    census_uncount(c->counts[CENSUS_CLUSTER], j->cluster);
    census_uncount(c->counts[CENSUS_POOL], j->pool);
    census_uncount(c->counts[CENSUS_WORKLOAD], j->workload);
}

bool census_has(const struct census *c, const char *cluster, const char *pool, const char *workload)
{
    const char *words[] = {
        [CENSUS_CLUSTER] = cluster, [CENSUS_POOL] = pool, [CENSUS_WORKLOAD] = workload};
    for (int i = 0; i < CENSUS_KINDS; i++)
        if (words[i] && !map_find(c->counts[i], words[i]))
            return false;
    return true;
}
