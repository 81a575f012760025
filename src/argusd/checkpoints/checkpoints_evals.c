/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_evals.c - which checkpoint is to be judged by a job of its own, and what became of
 * that job; see checkpoints.h. Who submits it is the room evals. */
#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints_book.h"
#include "base/str.h"
#include "base/text.h"

static const struct ckpt *book_find_judged(const struct book *b)
{
    for (size_t i = 0; i < b->list.n; i++)
        if (b->list.v[i].eval == CKPT_EVAL_SUBMITTED)
            return &b->list.v[i];
    return NULL;
}

/* The oldest: it is the next that may go. */
static const struct ckpt *book_find_due(const struct book *b)
{
    if (!b->eval || b->owes_look || archives_is_away(b->cs->p.archives, b->id))
        return NULL;
    for (size_t i = book_first_kept(b); i < b->list.n;
         i++) { /* what became of older ones is lost */
        const struct ckpt *c = &b->list.v[i];
        if (c->state == CKPT_VERIFIED && c->eval == CKPT_EVAL_NONE && c->step != b->going)
            return book_find_judged(b) ? NULL : c;
    }
    return NULL;
}

bool checkpoints_next_due(const struct checkpoints *cs,
                          const struct book **pos,
                          struct checkpoints_due *ret)
{
    for (const struct book *b = *pos ? (*pos)->next : cs->first; b; b = b->next) {
        const struct ckpt *c = book_find_due(b);
        if (!c)
            continue;
        *pos = b;
        *ret = (struct checkpoints_due){
            .job = b->id, .user = b->user, .spec = b->eval, .step = c->step, .attempt = c->attempt};
        return true;
    }
    return false;
}

bool checkpoints_next_judged(const struct checkpoints *cs,
                             const struct book **pos,
                             struct checkpoints_judged *ret)
{
    for (const struct book *b = *pos ? (*pos)->next : cs->first; b; b = b->next) {
        const struct ckpt *c = book_find_judged(b);
        if (!c)
            continue;
        *pos = b;
        *ret = (struct checkpoints_judged){.job = b->id, .eval_job = c->eval_job, .step = c->step};
        return true;
    }
    return false;
}

void checkpoints_set_eval(struct checkpoints *cs,
                          const char *job,
                          int64_t step,
                          const struct checkpoints_eval *e)
{
    struct book *b = map_find(cs->by_id, job);
    struct ckpt *c = b ? ckpt_list_find(&b->list, step) : NULL;
    if (!c || cs->closing)
        return;
    c->eval = e->state;
    if (e->job)
        text_copy(c->eval_job, e->job);
    bool is_full = false;
    if (e->state == CKPT_EVAL_DONE) {
        size_t kept, told = ckpt_take_eval(&b->list, c, e->latest, b->metric, &kept);
        c->eval = told ? CKPT_EVAL_DONE : CKPT_EVAL_SILENT;
        is_full = told > kept;
    }
    book_tell_eval(b, c, is_full, e->why);
    book_keep(b);
}
