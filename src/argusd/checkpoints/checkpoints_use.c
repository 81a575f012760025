/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_use.c - who needs a checkpoint, and the order between that and its removal; see
 * checkpoints.h.
 *
 * All of it is on the loop. A removal asks here right before it begins (book->going), one
 * checkpoint at a time; whoever will need one says so before he looks at it. So either the removal
 * sees him, or he sees the removal. */
#include <inttypes.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints_book.h"
#include "argusd/content/registry.h"
#include "argusd/content/storage.h"

static bool means(const char *text, const char *job, int64_t step)
{
    return text && ckpt_is_meant(text, job, step);
}

/* The next data set or model of the registry that stays where it was; NULL: no more. */
static const struct registry_entry *next_in_place(const struct book *b, int *kind, size_t *pos)
{
    const struct registry *rg = b->cs->p.storage->registry;
    for (; rg && *kind < REGISTRY_KINDS; (*kind)++, *pos = 0)
        for (const struct registry_entry *e;
             (e = registry_next(rg, (enum registry_kind) * kind, pos));)
            if (e->in_place && e->state != REGISTRY_removing)
                return e;
    return NULL;
}

bool book_is_used(const struct book *b, int64_t step)
{
    const struct live *l;
    const struct registry_entry *e;
    int kind = 0;
    for (size_t pos = 0; (e = next_in_place(b, &kind, &pos));)
        if (means(e->path, b->id, step))
            return true;
    for (const struct checkpoints_use *u = b->cs->uses; u; u = u->next)
        if (means(u->text, b->id, step) || means(u->inputs, b->id, step))
            return true;
    for (size_t pos = 0; (l = jobs_next(b->cs->p.jobs, &pos));)
        if (strcmp(l->job->id, b->id) != 0 &&
            (means(l->job->spec, b->id, step) || means(l->extra.inputs, b->id, step) ||
             means(l->extra.argv, b->id, step)))
            return true;
    return false;
}

static bool names(const char *text, const char *job)
{
    return text && strstr(text, job);
}

bool book_is_named(const struct book *b)
{
    const struct live *l;
    const struct registry_entry *e;
    int kind = 0;
    for (size_t pos = 0; (e = next_in_place(b, &kind, &pos));)
        if (names(e->path, b->id))
            return true;
    for (const struct checkpoints_use *u = b->cs->uses; u; u = u->next)
        if (names(u->text, b->id) || names(u->inputs, b->id))
            return true;
    for (size_t pos = 0; (l = jobs_next(b->cs->p.jobs, &pos));)
        if (strcmp(l->job->id, b->id) != 0 &&
            (names(l->job->spec, b->id) || names(l->extra.inputs, b->id)))
            return true;
    return false;
}

void checkpoints_use(struct checkpoints *cs, struct checkpoints_use *u)
{
    u->cs = cs;
    u->next = cs->uses;
    cs->uses = u;
}

int checkpoints_check_use(const struct checkpoints_use *u, struct err *err)
{
    for (const struct book *b = u->cs->busy ? u->cs->first : NULL; b; b = b->next)
        if (b->going && (means(u->text, b->id, b->going) || means(u->inputs, b->id, b->going)))
            return err_set(err, ERR_CONFLICT,
                           "the checkpoint of step %" PRId64 " of job '%s' is being removed",
                           b->going, b->id);
    return 0;
}

void checkpoints_unuse(struct checkpoints_use *u)
{
    if (!u->cs)
        return;
    struct checkpoints_use **at = &u->cs->uses;
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    u->cs = NULL;
}
