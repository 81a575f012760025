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
#include "argusd/people/people_rules.h"
#include "base/message.h"
#include "base/text.h"

static bool means(const char *text, const char *job, int64_t step)
{
    return text && ckpt_is_meant(text, job, step);
}

const struct registry_entry *checkpoints_next_in_place(const struct checkpoints *cs,
                                                       int *kind,
                                                       size_t *pos)
{
    const struct registry *rg = cs->p.storage->registry;
    for (; rg && *kind < REGISTRY_KINDS; (*kind)++, *pos = 0)
        for (const struct registry_entry *e;
             (e = registry_next(rg, (enum registry_kind) * kind, pos));)
            if (e->in_place && e->state != REGISTRY_removing)
                return e;
    return NULL;
}

bool book_is_seen_by(const struct book *b, const char *user)
{
    struct http_principal p = {.role = HTTP_ROLE_VIEWER};
    struct job job = {.id = b->id, .user = b->user, .project = b->project};
    text_copy(p.user, user);
    return people_check_job(b->cs->p.people, &p, ACCESS_JOB_SEE, "see", &job, NULL) == 0;
}

bool book_is_pinned(const struct book *b, int64_t step)
{
    for (size_t i = 0; i < b->n_pinned; i++)
        if (b->pinned[i] == step)
            return true;
    return false;
}

void book_mark_pinned(struct book *b, bool is_seen)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->n_pinned; i++)
        if (!is_seen || b->list.cut || ckpt_list_find(&b->list, b->pinned[i]))
            b->pinned[kept++] = b->pinned[i];
    b->n_pinned = kept;
    for (size_t i = 0; i < b->list.n; i++)
        b->list.v[i].pinned = book_is_pinned(b, b->list.v[i].step);
}

bool book_is_used(const struct book *b, int64_t step)
{
    const struct live *l;
    const struct registry_entry *e;
    int kind = 0;
    if (book_is_pinned(b, step))
        return true;
    for (size_t pos = 0; (e = checkpoints_next_in_place(b->cs, &kind, &pos));)
        if (means(e->path, b->id, step))
            return true;
    for (const struct checkpoints_use *u = b->cs->uses; u; u = u->next)
        if ((means(u->text, b->id, step) || means(u->inputs, b->id, step)) &&
            book_is_seen_by(b, u->user))
            return true;
    for (size_t pos = 0; (l = jobs_next(b->cs->p.jobs, &pos));)
        if (strcmp(l->job->id, b->id) != 0 &&
            (means(l->job->spec, b->id, step) || means(l->extra.inputs, b->id, step) ||
             means(l->extra.argv, b->id, step)) &&
            book_is_seen_by(b, l->job->user))
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
    for (size_t pos = 0; (e = checkpoints_next_in_place(b->cs, &kind, &pos));)
        if (names(e->path, b->id))
            return true;
    for (const struct checkpoints_use *u = b->cs->uses; u; u = u->next)
        if ((names(u->text, b->id) || names(u->inputs, b->id)) && book_is_seen_by(b, u->user))
            return true;
    for (size_t pos = 0; (l = jobs_next(b->cs->p.jobs, &pos));)
        if (strcmp(l->job->id, b->id) != 0 &&
            (names(l->job->spec, b->id) || names(l->extra.inputs, b->id)) &&
            book_is_seen_by(b, l->job->user))
            return true;
    return false;
}

/* The whole id and not a part of a longer one. */
static bool is_named_in(const char *text, const char *job)
{
    static const char id_bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t n = strlen(job);
    for (const char *p = text; p && (p = strstr(p, job)); p++) {
        bool begins = p == text || !strchr(id_bytes, p[-1]);
        bool ends = !p[n] || !strchr(id_bytes, p[n]);
        if (begins && ends)
            return true;
    }
    return false;
}

static bool book_is_unsettled(const struct book *b)
{
    return b->place.goes_on || b->asks || b->followed || b->owes_end;
}

const struct live *checkpoints_next_namer(const struct checkpoints *cs,
                                          const char *job,
                                          size_t *pos)
{
    const struct live *l;
    while ((l = jobs_next(cs->p.jobs, pos)))
        if (strcmp(l->job->id, job) != 0 &&
            (is_named_in(l->job->spec, job) || is_named_in(l->extra.inputs, job) ||
             is_named_in(l->extra.argv, job)))
            return l;
    return NULL;
}

int checkpoints_check_unnamed(const struct checkpoints *cs, const char *job, struct err *err)
{
    const struct registry_entry *e;
    const struct book *b = map_find(cs->by_id, job);
    int kind = 0;
    if (b && book_is_unsettled(b))
        return message_refuse(err, ERR_CONFLICT, "checkpoints_busy",
                              MESSAGE_ARGS(MESSAGE_STR("job", job)));
    for (size_t pos = 0; (e = checkpoints_next_in_place(cs, &kind, &pos));)
        if (is_named_in(e->path, job))
            return message_refuse(
                err, ERR_CONFLICT, "job_in_use",
                MESSAGE_ARGS(MESSAGE_STR("entry", e->name), MESSAGE_STR("job", job)));
    for (const struct checkpoints_use *u = cs->uses; u; u = u->next)
        if (is_named_in(u->text, job) || is_named_in(u->inputs, job))
            return message_refuse(err, ERR_CONFLICT, "job_in_use",
                                  MESSAGE_ARGS(MESSAGE_STR("job", job)));
    size_t pos = 0;
    const struct live *l = checkpoints_next_namer(cs, job, &pos);
    return !l ? 0
              : message_refuse(
                    err, ERR_CONFLICT, "job_in_use",
                    MESSAGE_ARGS(MESSAGE_STR("namer", l->job->id), MESSAGE_STR("job", job)));
}

void checkpoints_use(struct checkpoints *cs, struct checkpoints_use *u)
{
    u->cs = cs;
    u->next = cs->uses;
    u->at = &cs->uses;
    if (u->next)
        u->next->at = &u->next;
    cs->uses = u;
}

int checkpoints_check_use(const struct checkpoints_use *u, struct err *err)
{
    for (const struct book *b = u->cs->lines.going_on ? u->cs->first : NULL; b; b = b->next)
        if (b->going && (means(u->text, b->id, b->going) || means(u->inputs, b->id, b->going)) &&
            book_is_seen_by(b, u->user))
            return message_refuse(
                err, ERR_CONFLICT, "checkpoint_going",
                MESSAGE_ARGS(MESSAGE_NUM("step", b->going), MESSAGE_STR("job", b->id)));
    return 0;
}

void checkpoints_unuse(struct checkpoints_use *u)
{
    if (!u->cs)
        return;
    *u->at = u->next;
    if (u->next)
        u->next->at = u->at;
    u->cs = NULL;
}

/* ---- pinned by people ---- */

static void pinned_take_out(struct book *b, int64_t step)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->n_pinned; i++)
        if (b->pinned[i] != step)
            b->pinned[kept++] = b->pinned[i];
    b->n_pinned = kept;
}

/* Only what can be read is worth its bytes for ever. */
static int pinned_check(const struct book *b, const struct ckpt *c, struct err *err)
{
    if (b->going == c->step)
        return message_refuse(
            err, ERR_CONFLICT, "checkpoint_going",
            MESSAGE_ARGS(MESSAGE_NUM("step", c->step), MESSAGE_STR("job", b->id)));
    if (c->state != CKPT_VERIFIED)
        return message_refuse(err, ERR_CONFLICT, "pin_not_verified",
                              MESSAGE_ARGS(MESSAGE_NUM("step", c->step),
                                           MESSAGE_STR("state", ckpt_state_to_string(c->state)),
                                           MESSAGE_STR("job", b->id)));
    if (b->n_pinned >= PINNED_MAX)
        return message_refuse(
            err, ERR_CONFLICT, "pins_many",
            MESSAGE_ARGS(MESSAGE_STR("job", b->id), MESSAGE_NUM("most", PINNED_MAX)));
    return 0;
}

int checkpoints_pin(struct checkpoints *cs,
                    const struct checkpoints_pin *pin,
                    const struct ckpt **ret,
                    struct err *err)
{
    struct book *b = map_find(cs->by_id, pin->job);
    struct ckpt *c = b ? ckpt_list_find(&b->list, pin->step) : NULL;
    if (!c)
        return message_refuse(
            err, ERR_CONFLICT, "pin_no_checkpoint",
            MESSAGE_ARGS(MESSAGE_STR("job", pin->job), MESSAGE_NUM("step", pin->step)));
    *ret = c;
    if (book_is_pinned(b, c->step) == pin->is_on)
        return 0;
    int r = pin->is_on ? pinned_check(b, c, err) : 0;
    if (r < 0)
        return r;
    if (pin->is_on)
        b->pinned[b->n_pinned++] = c->step;
    else
        pinned_take_out(b, c->step);
    c->pinned = pin->is_on;
    book_tell_pinned(b, c, pin->actor);
    book_keep(b);
    if (b->followed) { /* verl removes by its own limit: this look gives it a second name */
        book_want_pass(b);
        checkpoints_start_wanted(cs);
    }
    return 0;
}

int checkpoints_check_unpinned(const struct checkpoints *cs, const char *job, struct err *err)
{
    const struct book *b = map_find(cs->by_id, job);
    if (!b || !b->n_pinned)
        return 0;
    return message_refuse(err, ERR_CONFLICT, "job_has_pinned",
                          MESSAGE_ARGS(MESSAGE_STR("job", job), MESSAGE_NUM("step", b->pinned[0])));
}
