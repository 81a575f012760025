/* SPDX-License-Identifier: Apache-2.0 */
/* placement_page.c - the members of a placement and of each of its nodes, as they are shown and
 * stored; see placement_page.h. */
#include "argusd/evidence/placement_page.h"

#include <stdlib.h>

enum { PLACES_MAX = 64 << 10 };

double placement_leased(const struct job *j, const char *node)
{
    return gang_has(&j->gang, node) ? j->demand.gpus_per_node : 0;
}

/* Actors of any kind on nodes that are not leased. */
static int actors_outside(const struct job *j, const struct tally_owner *held)
{
    int n = 0;
    for (size_t i = 0; i < held->n; i++)
        n += gang_has(&j->gang, held->places[i].node) ? 0 : held->places[i].actors;
    return n;
}

struct place_page {
    const char *name;
    bool is_leased;
    double leased_gpus, gpus;
    int actors, bundles;
};
/* Rows that older versions stored have none of these. */
enum { SINCE_LATER = FIELD_OWN(0) };
#define PLACE(member, ftype, ...) FIELD_AT(place_page, #member, ftype, member, __VA_ARGS__)
static const struct field place_rows[] = {
    PLACE(name, FIELD_STR, .flags = FIELD_ALWAYS),
    PLACE(is_leased, FIELD_BOOL, .flags = SINCE_LATER),
    PLACE(leased_gpus, FIELD_REAL, .flags = 0),
    PLACE(gpus, FIELD_REAL, .flags = 0),
    PLACE(actors, FIELD_INT32, .flags = 0),
    PLACE(bundles, FIELD_INT32, .flags = 0),
};
static const struct field_table place_table = FIELD_TABLE(NULL, place_rows, place_page);

struct placement_page {
    bool ok, is_partial;
    double beyond_gpus, waiting_gpus;
    int actors_outside;
    struct field_list nodes; /* owned */
    usec_t checked_at;
};
#define PAGE(member, ftype, ...) FIELD_AT(placement_page, #member, ftype, member, __VA_ARGS__)
static const struct field placement_rows[] = {
    PAGE(ok, FIELD_BOOL, .flags = 0),
    PAGE(beyond_gpus, FIELD_REAL, .flags = 0),
    PAGE(waiting_gpus, FIELD_REAL, .flags = 0),
    PAGE(actors_outside, FIELD_INT32, .flags = SINCE_LATER),
    PAGE(is_partial, FIELD_BOOL, .flags = 0),
    PAGE(nodes, FIELD_LIST, .of = &place_table),
    PAGE(checked_at, FIELD_TIME, .flags = 0),
};
const struct field_table placement_table = FIELD_TABLE("Placement", placement_rows, placement_page);

static struct field_list places_of(const struct job *j, const struct tally_owner *held)
{
    struct place_page *v = xcalloc(held->n + 1, sizeof(*v));
    for (size_t i = 0; i < held->n; i++) {
        const struct tally_place *q = &held->places[i];
        v[i] = (struct place_page){.name = q->node,
                                   .is_leased = gang_has(&j->gang, q->node),
                                   .leased_gpus = placement_leased(j, q->node),
                                   .gpus = q->gpus,
                                   .actors = q->actors,
                                   .bundles = q->bundles};
    }
    return (struct field_list){.v = v, .n = held->n};
}

char *placement_text(const struct placement_seen *seen)
{
    const struct placement_page page = {.ok = seen->beyond_gpus <= PLACEMENT_TINY,
                                        .is_partial = seen->is_partial,
                                        .beyond_gpus = seen->beyond_gpus,
                                        .waiting_gpus = seen->held->waiting_gpus,
                                        .actors_outside = actors_outside(seen->job, seen->held),
                                        .nodes = places_of(seen->job, seen->held),
                                        .checked_at = seen->checked_at};
    struct buf out = BUF_INIT(PLACES_MAX);
    struct jout o = jout_begin(&out);
    field_to_json(&placement_table, &page, FIELD_ALL, FIELD_PAGE, &o, NULL);
    free(page.nodes.v);
    return buf_take_whole(&out);
}
