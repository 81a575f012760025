/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_pass.c - one turn of a job's checkpoints through the worker pool; see
 * checkpoints_book.h.
 *
 *   look (worker) ─▶ events, plan ─▶ pin (worker) ─▶ still unused? ─▶ remove one (worker) ─┐
 *                                                      ▲───────────────────────────────────┤
 *                                                                    row, answers ◀────────┘
 *
 * A book's pass goes on (`place.goes_on`) from its look to its last removal, and has copies of all
 * that its workers need. Passes wait in lines of users: whoever has directories that take minutes
 * to look at holds his share of the workers, and nobody else waits for all of his. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints_book.h"
#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/ckpt/ckpt.h"

static const usec_t WALK_EVERY = 60 * USEC_SEC; /* what is verified is walked again, too */

struct pass {
    struct book *b;
    char *root, *id, *metric;
    int k;
    unsigned flags;
    bool sweeps; /* what a crash left of removals goes */
    bool pays;   /* it is the look that an end owes */
    struct ckpt_list known, found;
    int64_t *pins; /* steps that verl must not take away, and those that need no pin */
    size_t n_pins, n_spare;
    bool is_back; /* what was pinned has its names again, as far as is known */
    uint64_t values_seen;
    uint64_t free_bytes; /* UINT64_MAX: not known */
    enum ckpt_keep *plan;
    bool dry_run, asked; /* somebody wants to hear of it */
    size_t at;           /* of found: what is removed now */
    size_t removed;
    uint64_t removed_bytes;
    int64_t last;     /* step that was removed */
    struct buf steps; /* that were, as text */
    int result;
    struct err err;
    bool has_trouble; /* that keeps nobody from going on */
    struct err trouble;
};

static void pass_free(struct pass *p)
{
    ckpt_list_release(&p->known);
    ckpt_list_release(&p->found);
    buf_release(&p->steps);
    free(p->plan);
    free(p->pins);
    free(p->root);
    free(p->id);
    free(p->metric);
    free(p);
}

/* ---- its end ---- */

static void checkpoints_pass_answer(struct pass *p)
{
    struct book *b = p->b;
    struct checkpoints_answer a = {.err = &p->err,
                                   .list = &p->found,
                                   .plan = p->plan,
                                   .removed = p->removed,
                                   .removed_bytes = p->removed_bytes};
    for (struct checkpoints_ask **at = &b->asks; *at;) {
        struct checkpoints_ask *k = *at;
        if (!k->began) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        k->done(&a, k->arg);
        free(k->actor);
        free(k);
        at = &b->asks; /* the call may have changed it */
    }
    b->wanted |= b->asks != NULL;
}

static void end_pass(struct pass *p)
{
    struct checkpoints *cs = p->b->cs;
    userlines_leave(&cs->lines, &p->b->place);
    if (!cs->closing) {
        book_keep(p->b);
        checkpoints_pass_answer(p);
        if (p->b->wanted)
            book_want_pass(p->b);
        checkpoints_start_wanted(cs);
    }
    pass_free(p);
}

/* ---- the plan ---- */

static bool any_goes(const struct ckpt_list *l, const enum ckpt_keep *plan)
{
    for (size_t i = 0; i < l->n; i++)
        if (plan[i] == CKPT_GOES)
            return true;
    return false;
}

static uint64_t largest_of(const struct ckpt_list *l)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].state == CKPT_VERIFIED && l->v[i].bytes > largest)
            largest = l->v[i].bytes;
    return largest;
}

/* Before the next save would not fit. */
static struct book_room checkpoints_pass_make_room(const struct book *b, const struct pass *p)
{
    struct book_room r = {.next = b->followed ? largest_of(&b->list) : 0};
    uint64_t wants = r.next + r.next / 20;
    r.lacks = wants > p->free_bytes ? wants - p->free_bytes : 0;
    if (r.lacks)
        r.goes = ckpt_plan_room(&b->list, r.lacks, p->plan);
    return r;
}

static void checkpoints_pass_plan(struct book *b, struct pass *p)
{
    struct ckpt_policy policy = b->policy;
    policy.is_over = p->asked && !jobs_find_id(b->cs->p.jobs, b->id);
    if (book_is_over_quota(b)) /* then a job keeps one */
        policy.keep_last = 1;
    p->plan = xcalloc(b->list.n ? b->list.n : 1, sizeof(*p->plan));
    ckpt_plan(&b->list, &policy, p->plan);
    struct book_room room = checkpoints_pass_make_room(b, p);
    if (any_goes(&b->list, p->plan)) {
        for (size_t i = 0; i < b->list.n; i++) /* all specs are searched: only now */
            b->list.v[i].held = book_is_used(b, b->list.v[i].step);
        ckpt_plan(&b->list, &policy, p->plan);
        room = checkpoints_pass_make_room(b, p);
    }
    book_tell_room(b, &room, p->free_bytes);
}

/* ---- the removals ---- */

static void checkpoints_pass_run_removal(void *arg)
{
    struct pass *p = arg;
    p->result = ckpt_remove(p->root, p->id, p->found.v[p->at].step, &p->err);
}

static const char *who_asked(const struct book *b)
{
    for (const struct checkpoints_ask *a = b->asks; a; a = a->next)
        if (a->began)
            return a->actor;
    return "argusd";
}

static void end_removals(struct pass *p)
{
    struct book *b = p->b;
    b->going = 0;
    if (p->removed && !b->cs->closing)
        book_tell_removed(b, who_asked(b), buf_str(&p->steps), p->last, p->removed_bytes);
    end_pass(p);
}

/* The plan may be old: somebody may have named it since, or found what is newer to be broken. */
static bool may_still_go(const struct pass *p, size_t i)
{
    const struct ckpt *c = &p->found.v[i], *newest = ckpt_list_newest(&p->b->list);
    bool is_spare = newest && (newest->step > c->step || c->state != CKPT_VERIFIED);
    return is_spare && !book_is_used(p->b, c->step);
}

static void checkpoints_pass_done_removal(void *arg);

static void remove_next(struct pass *p)
{
    for (; p->at < p->found.n && !p->b->cs->closing; p->at++) {
        if (p->plan[p->at] != CKPT_GOES)
            continue;
        if (may_still_go(p, p->at)) {
            p->b->going = p->found.v[p->at].step;
            work_start(p->b->cs->p.loop, checkpoints_pass_run_removal,
                       checkpoints_pass_done_removal, p);
            return;
        }
        p->plan[p->at] = CKPT_KEEP_HELD;
    }
    end_removals(p);
}

static void checkpoints_pass_done_removal(void *arg)
{
    struct pass *p = arg;
    const struct ckpt *c = &p->found.v[p->at];
    if (p->result != 0)
        log_warn("checkpoints", "%s job=%s", p->err.text, p->id);
    if (p->result >= 0) {
        p->removed++;
        p->removed_bytes += c->bytes;
        p->last = c->step;
        (void)buf_addf(&p->steps, "%s%" PRId64, p->steps.len ? ", " : "", c->step); /* more: cut */
        ckpt_list_remove(&p->b->list, c->step);
        p->result = 0;
        p->err = (struct err){0};
    }
    if (p->result < 0) {
        end_removals(p);
        return;
    }
    p->at++;
    remove_next(p);
}

/* ---- the pins ---- */

/* verl counts what its attempt has saved, good or bad, and knows neither other jobs nor the best.
 */
static bool needs_pin(const struct pass *p, size_t i)
{
    const struct ckpt *newest = &p->found.v[p->found.n - 1];
    bool has_bad_behind = newest->step != p->found.v[i].step && newest->state == CKPT_BROKEN;
    return p->b->followed && p->found.v[i].attempt == p->k &&
           (p->plan[i] == CKPT_KEEP_HELD || p->plan[i] == CKPT_KEEP_BEST ||
            p->plan[i] == CKPT_KEEP_PINNED || (p->plan[i] == CKPT_KEEP_ONLY && has_bad_behind));
}

/* Its pin may be the last names of it, unless this look saw all of them. */
static bool is_spare(const struct pass *p, size_t i)
{
    const struct ckpt *c = &p->found.v[i];
    bool is_whole = c->state == CKPT_VERIFIED || c->state == CKPT_BROKEN;
    return p->is_back && !(p->flags & CKPT_LOOK_TRUST) && is_whole && !c->by_pin &&
           !needs_pin(p, i);
}

static void run_pins(void *arg)
{
    struct pass *p = arg;
    const struct ckpt_pins pins = {p->pins, p->n_pins, p->pins + p->n_pins, p->n_spare};
    p->result = ckpt_pin(p->root, p->id, p->k, &pins, &p->err);
}

static void done_pins(void *arg)
{
    struct pass *p = arg;
    struct book *b = p->b;
    if (p->result < 0 && !b->pin_told)
        log_warn("checkpoints", "%s job=%s", p->err.text, b->id);
    b->pin_told = p->result < 0;
    b->has_pins = p->n_pins || p->result != 0;
    p->result = 0;
    p->err = (struct err){0};
    remove_next(p);
}

/* What stays by keep_last is not reached by verl's limit, which is larger, but while argusd is
 * away; all specs are searched for it: not at each look. */
static void pin(struct pass *p)
{
    struct book *b = p->b;
    bool asks = b->followed && (b->has_pins || !(p->flags & CKPT_LOOK_TRUST)) && book_is_named(b);
    p->pins = xcalloc(p->found.n + 1, sizeof(*p->pins));
    for (size_t i = 0; asks && i < p->found.n; i++)
        if (p->plan[i] == CKPT_KEEP_LAST && book_is_used(b, p->found.v[i].step))
            p->plan[i] = CKPT_KEEP_HELD;
    for (size_t i = 0; i < p->found.n; i++)
        if (needs_pin(p, i))
            p->pins[p->n_pins++] = p->found.v[i].step;
    for (size_t i = 0; i < p->found.n; i++)
        if (is_spare(p, i))
            p->pins[p->n_pins + p->n_spare++] = p->found.v[i].step;
    if (p->n_pins || b->has_pins)
        work_start(b->cs->p.loop, run_pins, done_pins, p);
    else
        remove_next(p);
}

/* ---- the look ---- */

static void checkpoints_pass_run_look(void *arg)
{
    struct pass *p = arg;
    p->free_bytes = UINT64_MAX;
    int r = ckpt_put_back(p->root, p->id, p->k, &p->trouble); /* a full disk: room is made */
    p->result = ckpt_look(p->root, p->id, &p->known, p->k, p->flags, &p->found, &p->err);
    if (p->result >= 0)
        p->result = ckpt_add_pinned(p->root, p->id, p->k, &p->known, &p->found, &p->err);
    if (p->result < 0)
        return;
    p->is_back = r == 0;
    ckpt_find_values(p->root, p->id, p->metric, &p->found, &p->values_seen);
    /* What was put aside as torn may be all there is. */
    bool with_torn = p->asked && ckpt_list_newest(&p->found);
    if (p->sweeps && r == 0)
        r = ckpt_sweep(p->root, p->id, with_torn, &p->trouble);
    p->has_trouble = r < 0;
    if (p->found.n && ckpt_free_bytes(p->root, p->id, &p->free_bytes, NULL) < 0)
        p->free_bytes = UINT64_MAX;
}

/* What was found broken since this look began stays so while its files are the same. */
static void keep_verdicts(struct ckpt_list *found, const struct ckpt_list *known)
{
    for (size_t i = 0; i < found->n; i++) {
        struct ckpt *c = &found->v[i];
        const struct ckpt *old = ckpt_list_find(known, c->step);
        if (old && old->state == CKPT_BROKEN && old->mark && old->mark == c->mark &&
            c->state == CKPT_VERIFIED) {
            c->state = CKPT_BROKEN;
            memcpy(c->why, old->why, sizeof(c->why));
        }
    }
}

static void checkpoints_pass_done_look(void *arg)
{
    struct pass *p = arg;
    struct book *b = p->b;
    if (p->result < 0 && !b->failing)
        log_warn("checkpoints", "%s job=%s", p->err.text, b->id);
    b->failing = p->result < 0;
    if (p->has_trouble && !b->trouble_told)
        log_warn("checkpoints", "%s job=%s", p->trouble.text, b->id);
    b->trouble_told = p->has_trouble;
    b->owes_look = p->result < 0 || !p->is_back;
    bool is_paid = !b->owes_look || p->result == -ELOOP || p->result == -ENOTDIR; /* no directory */
    if (p->pays && is_paid && !b->wanted) /* wanted: another may have ended, and follows */
        b->owes_end = false;
    if (b->cs->closing || p->result < 0) {
        end_pass(p);
        return;
    }
    b->values_seen = p->values_seen;
    keep_verdicts(&p->found, &b->list);
    ckpt_list_carry_evals(&p->found, &b->list);
    book_tell_found(b, &p->found);
    ckpt_list_release(&b->list);
    ckpt_list_copy(&b->list, &p->found);
    book_mark_pinned(b, true);
    checkpoints_pass_plan(b, p);
    if (p->dry_run)
        end_pass(p);
    else
        pin(p);
}

/* Takes those asks that want the same as the first; the others are for the next pass. */
static void take_asks(struct pass *p)
{
    struct checkpoints_ask *first = p->b->asks;
    p->asked = first != NULL;
    p->dry_run = first && first->dry_run;
    for (struct checkpoints_ask *a = first; a; a = a->next)
        a->began = a->dry_run == p->dry_run;
}

static void book_start_pass(struct book *b)
{
    struct checkpoints *cs = b->cs;
    struct pass *p = xcalloc(1, sizeof(*p));
    usec_t now = clock_mono();
    bool walks = !b->walked_at || now - b->walked_at > WALK_EVERY || !b->followed || b->asks;
    *p = (struct pass){.b = b,
                       .root = xstrdup(cs->p.settings->shared_root),
                       .id = xstrdup(b->id),
                       .metric = xstrdup(b->metric),
                       .k = b->k,
                       .flags = walks ? 0 : CKPT_LOOK_TRUST,
                       .values_seen = b->values_seen,
                       .steps = BUF_INIT(160)};
    ckpt_list_copy(&p->known, &b->list);
    take_asks(p);
    p->pays = b->owes_end;
    p->sweeps = !p->dry_run && (p->asked || !b->looked_at);
    b->looked_at = now;
    if (walks)
        b->walked_at = now;
    b->wanted = false;
    work_start(cs->p.loop, checkpoints_pass_run_look, checkpoints_pass_done_look, p);
}

void book_want_pass(struct book *b)
{
    b->wanted = true;
    if (!b->place.line && !archives_is_away(b->cs->p.archives, b->id))
        userlines_join(&b->cs->lines, &b->place, b->user);
}

void checkpoints_start_wanted(struct checkpoints *cs)
{
    struct userlines_place *next;
    while (!cluster_root_hangs(cs->p.cluster) && (next = userlines_next(&cs->lines, PASSES_MAX))) {
        struct book *b = container_of(next, struct book, place);
        if (archives_is_away(cs->p.archives, b->id))
            userlines_leave(&cs->lines, next); /* still wanted: it joins again when it is back */
        else
            book_start_pass(b);
    }
}
