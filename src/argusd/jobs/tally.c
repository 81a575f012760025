/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - see tally.h.
 *
 * Ray limits its lists to 10,000 rows, so plain searches are quick enough: rows of one
 * job stand together, and a job is on few nodes. */
#include "argusd/jobs/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

static const double TINY = 1e-6;

/* ---- the table ---- */

static struct tally_owner *owner(struct tally *t, const char *job_id)
{
    for (size_t i = t->n; i > 0; i--) /* the last one is the likeliest */
        if (!strcmp(t->v[i - 1].job_id, job_id))
            return &t->v[i - 1];
    t->v = xrealloc(t->v, t->n + 1, sizeof(*t->v));
    t->v[t->n] = (struct tally_owner){.job_id = xstrdup(job_id)};
    return &t->v[t->n++];
}

static struct tally_place *place(struct tally_owner *o, const char *node)
{
    for (size_t i = 0; i < o->n; i++)
        if (!strcmp(o->places[i].node, node))
            return &o->places[i];
    o->places = xrealloc(o->places, o->n + 1, sizeof(*o->places));
    o->places[o->n] = (struct tally_place){.node = xstrdup(node)};
    return &o->places[o->n++];
}

void tally_owner_release(struct tally_owner *o)
{
    for (size_t i = 0; i < o->n; i++)
        free(o->places[i].node);
    free(o->places);
    free(o->job_id);
    *o = (struct tally_owner){0};
}

void tally_release(struct tally *t)
{
    for (size_t i = 0; i < t->n; i++)
        tally_owner_release(&t->v[i]);
    free(t->v);
    *t = (struct tally){0};
}

void tally_merge(struct tally_owner *to, const struct tally_owner *from)
{
    to->waiting_gpus += from->waiting_gpus;
    for (size_t i = 0; i < from->n; i++) {
        const struct tally_place *f = &from->places[i];
        struct tally_place *p = place(to, f->node);
        p->gpus += f->gpus;
        p->actors += f->actors;
        p->bundles += f->bundles;
        if (!*p->what)
            memcpy(p->what, f->what, sizeof(p->what));
        if (!*p->guest)
            memcpy(p->guest, f->guest, sizeof(p->guest));
    }
}

/* ---- the lists ---- */

static const char *tally_name_of(const char *node_id, tally_name_f name, void *arg)
{
    const char *known = node_id ? name(node_id, arg) : NULL;
    return str_or(known, str_or(node_id, ""));
}

static void add_actor(struct tally *t, const struct ray_actor *a, tally_name_f name, void *arg)
{
    struct tally_owner *o = owner(t, str_or(a->job_id, ""));
    bool in_group = *str_or(a->group_id, "");
    double gpus = in_group ? 0 : ray_amounts_find(&a->resources, "GPU");
    if (!*str_or(a->node_id, "")) {
        o->waiting_gpus += gpus;
        return;
    }
    struct tally_place *p = place(o, tally_name_of(a->node_id, name, arg));
    p->actors++;
    p->gpus += gpus;
    if (!*p->guest)
        text_printf(p->guest, "actor %.60s", str_or(a->class_name, "?"));
    if (gpus > TINY && !*p->what)
        text_printf(p->what, "actor %.60s (pid %lld)", str_or(a->class_name, "?"),
                    (long long)a->pid);
}

static void add_bundle(struct tally_owner *o,
                       const struct ray_group *g,
                       const struct ray_bundle *b,
                       tally_name_f name,
                       void *arg)
{
    double gpus = ray_amounts_find(&b->resources, "GPU");
    if (gpus <= TINY)
        return;
    if (!*str_or(b->node_id, "")) {
        o->waiting_gpus += gpus;
        return;
    }
    struct tally_place *p = place(o, tally_name_of(b->node_id, name, arg));
    p->bundles++;
    p->gpus += gpus;
    if (!*p->what)
        text_printf(p->what, "placement group %.40s%s%.40s", g->group_id,
                    g->name && *g->name ? " " : "", str_or(g->name, ""));
}

void tally_add(struct tally *t,
               const struct ray_actors *actors,
               const struct ray_groups *groups,
               tally_name_f name,
               void *arg)
{
    for (size_t i = 0; i < actors->n; i++)
        if (actors->v[i].state != RAY_ACTOR_DEAD)
            add_actor(t, &actors->v[i], name, arg);
    for (size_t i = 0; i < groups->n; i++) {
        const struct ray_group *g = &groups->v[i];
        struct tally_owner *o = owner(t, str_or(g->job_id, ""));
        for (size_t k = 0; k < g->n_bundles; k++)
            add_bundle(o, g, &g->bundles[k], name, arg);
    }
}
