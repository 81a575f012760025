/* SPDX-License-Identifier: Apache-2.0 */
/* sched_world.c - see sched_world.h: the books, and the clock of those that run. */
#include "sched_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

uint32_t world_random(struct world *w, uint32_t below)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return (uint32_t)(w->rng >> 32) % below;
}

struct world *world_new(uint64_t seed, const struct sched_limits *limits)
{
    static const unsigned char bytes[16] = {1, 2, 3};
    struct world *w = xcalloc(1, sizeof(*w));
    w->rng = seed * 2654435761u + 88172645463325252u;
    w->now = 1000 * USEC_DAY;
    w->checks = true;
    w->s = sched_new(bytes, limits);
    return w;
}

void world_free(struct world *w)
{
    sched_free(w->s);
    free(w);
}

static void check(const struct world *w)
{
    if (w->checks)
        assert_null(sched_check(w->s));
}

void world_add_nodes(struct world *w, int n, const char *labels, int gpus, int cpus)
{
    for (; n > 0; n--) {
        struct world_node *v = &w->nodes[w->n_nodes++];
        (void)snprintf(v->name, sizeof(v->name), "n%d", w->n_nodes);
        (void)snprintf(v->labels, sizeof(v->labels), "%s", labels);
        v->gpus = gpus;
        v->cpus = cpus;
        v->usable = true;
    }
    world_tell_nodes(w);
}

void world_tell_nodes(struct world *w)
{
    struct sched_node v[WORLD_NODES];
    char versions[WORLD_NODES][16];
    for (int i = 0; i < w->n_nodes; i++) {
        const struct world_node *n = &w->nodes[i];
        versions[i][0] = 0;
        if (n->torch)
            (void)snprintf(versions[i], sizeof(versions[i]), "torch=%d", n->torch);
        v[i] = (struct sched_node){.name = n->name,
                                   .pool = n->labels,
                                   .only = n->only,
                                   .network = n->network,
                                   .versions = versions[i],
                                   .gpus = n->gpus,
                                   .cpus = n->cpus,
                                   .memory = n->memory,
                                   .gpus_held = n->held,
                                   .usable = n->usable,
                                   .why_not = n->usable ? NULL : n->why_not,
                                   .shareable = n->shareable};
    }
    sched_set_nodes(w->s, v, (size_t)w->n_nodes);
    check(w);
}

struct world_job *world_job(struct world *w, int nnodes, double gpus, usec_t limit, usec_t lasts)
{
    assert_true(w->n_jobs < WORLD_JOBS);
    struct world_job *j = &w->jobs[w->n_jobs++];
    (void)snprintf(j->id, sizeof(j->id), "j%d", w->n_jobs);
    j->j = (struct sched_job){.id = j->id,
                              .seq = w->n_jobs,
                              .priority = 50,
                              .pool = j->pool,
                              .user = j->user,
                              .project = j->project,
                              .demand = {.nnodes = nnodes, .gpus_per_node = gpus, .driver_cpus = 1},
                              .queued_at = w->now,
                              .limit = limit,
                              .job = j};
    j->lasts = lasts;
    j->state = WORLD_OVER;
    return j;
}

void world_submit(struct world *w, struct world_job *j)
{
    j->state = WORLD_WAITS;
    if (j->torch)
        (void)snprintf(j->needs, sizeof(j->needs), "torch>=%d", j->torch);
    j->j.needs = j->needs;
    sched_enqueue(w->s, &j->j);
    check(w);
}

struct world_job *world_find(struct world *w, const char *id)
{
    for (int i = 0; i < w->n_jobs; i++)
        if (!strcmp(w->jobs[i].id, id))
            return &w->jobs[i];
    return NULL;
}

/* ---- the books ---- */

static struct world_node *node_of(struct world *w, const char *name, size_t len)
{
    for (int i = 0; i < w->n_nodes; i++)
        if (strlen(w->nodes[i].name) == len && !strncmp(w->nodes[i].name, name, len))
            return &w->nodes[i];
    return NULL;
}

static int units(double x)
{
    return (int)(x * 10000 + 0.5);
}

/* Slots "0+3" of a node, for the share; sign 1 takes, -1 gives back. */
static void book_slots(struct world_node *n, const char *slots, size_t len, double gpus, int sign)
{
    int left = units(gpus);
    for (const char *p = slots; p < slots + len; p++) {
        int slot = (int)strtol(p, NULL, 10), amount = left > 10000 ? 10000 : left;
        assert_in_range(slot, 0, sign > 0 ? n->gpus - 1 : WORLD_SLOTS - 1);
        n->used[slot] += sign * amount;
        assert_in_range(n->used[slot], 0, 10000); /* no slot twice */
        assert_true(amount == 10000 || n->shareable || sign < 0);
        left -= amount;
        while (p < slots + len && *p != '+')
            p++;
    }
    assert_int_equal(left, 0); /* the whole share */
}

static void book(struct world *w, const struct world_job *j, int sign)
{
    const struct demand *d = &j->j.demand;
    const char *list = j->slots;
    size_t len;
    int n = 0;
    for (const char *it; (it = str_item(&list, &len)); n++) {
        const char *colon = memchr(it, ':', len);
        size_t name_len = colon ? (size_t)(colon - it) : len;
        struct world_node *node = node_of(w, it, name_len);
        assert_non_null(node);
        double gpus = d->gpus_per_node + (n ? 0 : d->driver_gpus);
        book_slots(node, colon ? colon + 1 : it + len, colon ? len - name_len - 1 : 0, gpus, sign);
        node->cpus_used +=
            sign * (d->cpus_per_node + ceil(d->extra_cpus / d->nnodes) + (n ? 0 : d->driver_cpus));
        node->memory_used += sign * (int)d->memory_per_node;
        if (sign < 0)
            continue;
        assert_true(!(d->memory_per_node > 0) || !node->memory ||
                    node->memory_used <= node->memory);
        assert_true(node->usable);
        if (*node->only)
            assert_string_equal(node->only, j->pool);
        else
            assert_true(str_list_has_all(node->labels, j->pool));
        assert_true(!node->torch || node->torch >= j->torch); /* known not to fit: never */
        assert_true(node->cpus_used <= node->cpus + 0.001);
        int used = 0;
        for (int i = 0; i < WORLD_SLOTS; i++)
            used += node->used[i] > 0;
        assert_true(gpus < 1 ||
                    used + node->held <= node->gpus); /* what others hold is not given */
    }
    assert_int_equal(n, d->nnodes); /* gangs whole */
}

static void mix(struct world *w, const char *text)
{
    for (; *text; text++)
        w->hash = (w->hash ^ (unsigned char)*text) * 1099511628211u;
}

static void on_start(struct world *w, const struct sched_decision *d)
{
    struct world_job *j = d->job;
    assert_int_equal(j->state, WORLD_WAITS);
    j->state = WORLD_RUNS;
    j->started_at = w->now;
    j->told = 0;
    struct gang gang;
    struct buf slots = BUF_INIT(sizeof(j->slots));
    assert_true(sched_lease_gang(w->s, j->id, &gang));
    assert_string_equal(gang_driver(&gang), d->driver_node);
    gang_to_text(&gang, &slots);
    assert_false(slots.failed);
    (void)snprintf(j->slots, sizeof(j->slots), "%s", buf_str(&slots));
    assert_int_equal(strncmp(d->nodes, d->driver_node, strlen(d->driver_node)), 0);
    book(w, j, 1);
    w->starts++;
    mix(w, j->id);
    mix(w, j->slots);
    buf_release(&slots);
    gang_release(&gang);
}

void world_pass(struct world *w)
{
    struct sched_decision d;
    while (sched_next(w->s, w->now, &d)) {
        check(w);
        if (d.verb == SCHED_START) {
            on_start(w, &d);
            continue;
        }
        struct world_job *j = d.job;
        assert_int_equal(j->state, WORLD_RUNS);
        assert_int_equal(j->told++, 0); /* told once */
        assert_true(j->j.restartable);
        j->told_at = w->now;
        j->at_save = d.at_save;
        w->preempts++;
        mix(w, j->id);
    }
    check(w);
}

void world_end(struct world *w, struct world_job *j, bool back_to_queue)
{
    assert_int_equal(j->state, WORLD_RUNS);
    sched_lease_end(w->s, j->id, w->now);
    book(w, j, -1);
    j->state = WORLD_OVER;
    check(w);
    if (!back_to_queue)
        return;
    j->j.queued_at = w->now;
    world_submit(w, j);
}

bool world_step(struct world *w)
{
    struct world_job *next = NULL;
    for (int i = 0; i < w->n_jobs; i++) {
        struct world_job *j = &w->jobs[i];
        if (j->state == WORLD_RUNS &&
            (!next || j->started_at + j->lasts < next->started_at + next->lasts))
            next = j;
    }
    if (!next)
        return false;
    usec_t at = next->started_at + next->lasts;
    w->now = at > w->now ? at : w->now;
    world_end(w, next, false);
    world_pass(w);
    return true;
}
