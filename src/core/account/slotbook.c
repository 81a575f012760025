/* SPDX-License-Identifier: Apache-2.0 */
/* slotbook.c - the book: events in, sums out; see slotbook.h.
 *
 * Invariants: the rates of a cell are the sums of what its hosts and parts add; a host adds its
 * capacity, and the five amounts of it that are not leased; a part adds `used` and `held_idle` to
 * the cell of its host's labels and its lease's owner. So the balance holds for every label,
 * whatever the order of events, and time only multiplies it. */
#include "core/account/slotbook.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/account/slotbook_state.h"

/* ---- a life ---- */

struct slotbook *slotbook_new(const unsigned char seed[static 16], int64_t now, int64_t offset)
{
    struct slotbook *b = xcalloc(1, sizeof(*b));
    b->now = now;
    b->offset = offset;
    b->hosts = map_new(seed);
    b->leases = map_new(seed);
    b->cells = map_new(seed);
    deals_init(&b->deals, seed);
    return b;
}

static void cell_free(struct slotbook_cell *c)
{
    free(c->key);
    free(c->labels);
    free(c->project);
    free(c->user);
    free(c->workload);
    free(c);
}

static void slotbook_host_free(struct slotbook_host *h)
{
    free(h->name);
    free(h->labels);
    free(h);
}

static void slotbook_lease_free(struct slotbook_lease *l)
{
    free(l->job);
    free(l->project);
    free(l->user);
    free(l->workload);
    free(l->parts);
    free(l);
}

void slotbook_free(struct slotbook *b)
{
    void *v;
    if (!b)
        return;
    for (size_t pos = 0; (v = map_next(b->hosts, &pos, NULL));)
        slotbook_host_free(v);
    for (size_t pos = 0; (v = map_next(b->leases, &pos, NULL));)
        slotbook_lease_free(v);
    for (size_t pos = 0; (v = map_next(b->cells, &pos, NULL));)
        cell_free(v);
    map_free(b->hosts);
    map_free(b->leases);
    map_free(b->cells);
    free(b->closed);
    deals_release(&b->deals);
    free(b);
}

/* ---- cells ---- */

static struct slotbook_cell *cell_take(struct slotbook *b,
                                       const char *labels,
                                       const char *project,
                                       const char *user,
                                       const char *workload)
{
    _cleanup_(freep) char *key = xasprintf("%s\n%s\n%s\n%s", labels, project, user, workload);
    struct slotbook_cell *c = map_find(b->cells, key);
    if (!c) {
        c = xcalloc(1, sizeof(*c));
        *c = (struct slotbook_cell){.key = xstrdup(key),
                                    .labels = xstrdup(labels),
                                    .project = xstrdup(project),
                                    .user = xstrdup(user),
                                    .workload = xstrdup(workload),
                                    .since = b->now};
        map_set(b->cells, key, c);
    }
    c->refs++;
    return c;
}

static void cell_advance(struct slotbook_cell *c, int64_t now)
{
    for (int i = 0; i < SLOTBOOK_SUMS; i++)
        c->sum[i] += c->rate[i] * (now - c->since);
    c->since = now;
}

static bool cell_is_empty(const struct slotbook_cell *c)
{
    for (int i = 0; i < SLOTBOOK_SUMS; i++)
        if (c->sum[i])
            return false;
    return true;
}

/* ---- time ---- */

int64_t slotbook_interval(int64_t label)
{
    return label - label % SLOTBOOK_EVERY;
}

/* What every cell has since the last close stands under this interval from now on. */
static void close_interval(struct slotbook *b, int64_t now, int64_t interval)
{
    struct slotbook_cell *c;
    for (size_t pos = 0; (c = map_next(b->cells, &pos, NULL));) {
        cell_advance(c, now);
        if (cell_is_empty(c))
            continue;
        if (b->n_closed == b->cap_closed) {
            b->cap_closed = b->cap_closed ? b->cap_closed * 2 : 64;
            b->closed = xrealloc(b->closed, b->cap_closed, sizeof(*b->closed));
        }
        struct slotbook_closed *k = &b->closed[b->n_closed++];
        k->cell = c;
        k->at = interval;
        memcpy(k->sum, c->sum, sizeof(k->sum));
        memset(c->sum, 0, sizeof(c->sum));
        c->refs++;
    }
    deals_close(b, now, interval);
}

static void pass_time(struct slotbook *b, int64_t now)
{
    while (b->now < now && (map_count(b->cells) || !deals_are_empty(b))) {
        int64_t begin = slotbook_interval(b->now + b->offset);
        int64_t end = begin + SLOTBOOK_EVERY - b->offset;
        if (end > now)
            break;
        close_interval(b, end, begin);
        b->now = end;
    }
    b->now = now > b->now ? now : b->now;
}

void slotbook_advance(struct slotbook *b, int64_t now)
{
    if (b->deals.due < now) {
        pass_time(b, b->deals.due);
        deals_settle(b);
    }
    pass_time(b, now);
}

static void set_offset(struct slotbook *b, int64_t offset)
{
    close_interval(b, b->now, slotbook_interval(b->now + b->offset));
    b->offset = offset;
    deals_change(b, b->now); /* a saved book begins with this: its rates are made at once */
}

int64_t slotbook_now(const struct slotbook *b)
{
    return b->now;
}

int64_t slotbook_label(const struct slotbook *b)
{
    return b->now + b->offset;
}

/* ---- hosts ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Each amount of the host in exactly one place. */
static void host_rates(const struct slotbook_host *h, int64_t ret[SLOTBOOK_SUMS])
{
    int64_t told = h->listed ? h->gpus : 0;
    int64_t capacity = told > h->leased ? told : h->leased, rest = capacity - h->leased;
    memset(ret, 0, SLOTBOOK_SUMS * sizeof(*ret));
    ret[SLOTBOOK_CAPACITY] = capacity;
    ret[SLOTBOOK_FOREIGN] = least(h->foreign, rest);
    rest -= ret[SLOTBOOK_FOREIGN];
    ret[SLOTBOOK_DRAINING] = least(h->clearing, rest);
    rest -= ret[SLOTBOOK_DRAINING];
    if (h->state == SLOTBOOK_IN_DRAIN) {
        ret[SLOTBOOK_DRAINING] += rest;
    } else if (h->state == SLOTBOOK_DOWN) {
        ret[SLOTBOOK_BROKEN] = rest;
    } else {
        ret[SLOTBOOK_BLOCKED] = least(h->kept, rest);
        ret[SLOTBOOK_FREE] = rest - ret[SLOTBOOK_BLOCKED];
    }
}

/* Something of the host changed. */
static void host_settle(const struct slotbook *b, struct slotbook_host *h)
{
    int64_t rate[SLOTBOOK_SUMS];
    host_rates(h, rate);
    cell_advance(h->cell, b->now);
    for (int i = 0; i < SLOTBOOK_SUMS; i++)
        h->cell->rate[i] += rate[i] - h->rate[i];
    memcpy(h->rate, rate, sizeof(rate));
}

/* What is idle meanwhile is idle, not run again: no amount is in two parts of the balance. */
static int64_t stay_redone(const struct slotbook_stay *s)
{
    return s->lease->redoes ? s->amount - s->idle : 0;
}

/* What it has held when so much time has passed since its sums were made. */
static struct slotbook_held lease_held(const struct slotbook_lease *l, int64_t span)
{
    return (struct slotbook_held){.held = l->sum.held + l->rate.held * span,
                                  .idle = l->sum.idle + l->rate.idle * span,
                                  .unknown = l->sum.unknown + l->rate.unknown * span,
                                  .busy = l->sum.busy + l->rate.busy * span,
                                  .redone = l->sum.redone + l->rate.redone * span};
}

/* What a part adds to its cell and its lease; sign -1: no more. */
static void stay_add(const struct slotbook *b, const struct slotbook_stay *s, int sign)
{
    struct slotbook_cell *c = s->cell;
    struct slotbook_lease *l = s->lease;
    cell_advance(c, b->now);
    c->rate[SLOTBOOK_USED] += sign * (s->amount - s->idle);
    c->rate[SLOTBOOK_HELD_IDLE] += sign * s->idle;
    c->rate[SLOTBOOK_UNKNOWN] += sign * s->unknown;
    c->rate[SLOTBOOK_BUSY] += sign * s->busy;
    c->rate[SLOTBOOK_REDONE] += sign * stay_redone(s);
    l->sum = lease_held(l, b->now - l->since);
    l->since = b->now;
    l->rate.held += sign * s->amount;
    l->rate.idle += sign * s->idle;
    l->rate.unknown += sign * s->unknown;
    l->rate.busy += sign * s->busy;
    l->rate.redone += sign * stay_redone(s);
}

static void host_set_labels(struct slotbook *b, struct slotbook_host *h, const char *labels)
{
    if (h->cell && str_eq(h->labels, labels))
        return;
    if (h->cell) {
        cell_advance(h->cell, b->now);
        for (int i = 0; i < SLOTBOOK_SUMS; i++)
            h->cell->rate[i] -= h->rate[i];
        memset(h->rate, 0, sizeof(h->rate));
        h->cell->refs--;
    }
    set_str(&h->labels, labels);
    h->cell = cell_take(b, labels, "", "", "");
    for (struct slotbook_stay *s = h->first; s; s = s->next) {
        const struct slotbook_lease *l = s->lease;
        stay_add(b, s, -1);
        s->cell->refs--;
        s->cell = cell_take(b, labels, l->project, l->user, l->workload);
        stay_add(b, s, 1);
    }
}

static struct slotbook_host *slotbook_host_take(struct slotbook *b, const char *name)
{
    struct slotbook_host *h = map_find(b->hosts, name);
    if (h)
        return h;
    h = xcalloc(1, sizeof(*h));
    h->name = xstrdup(name);
    map_set(b->hosts, name, h);
    host_set_labels(b, h, "");
    return h;
}

/* In no table, and nothing is leased there. */
static void host_drop(struct slotbook *b, struct slotbook_host *h)
{
    if (h->listed || h->first)
        return;
    h->gpus = h->foreign = h->clearing = h->kept = 0;
    host_settle(b, h);
    h->cell->refs--;
    map_remove(b->hosts, h->name);
    slotbook_host_free(h);
}

static int64_t not_negative(int64_t v)
{
    return v > 0 ? v : 0;
}

static bool apply_node(struct slotbook *b, const struct slotbook_event *e)
{
    struct slotbook_host *h = slotbook_host_take(b, e->name);
    const struct slotbook_host was = *h;
    bool same_labels = str_eq(h->labels, str_or(e->labels, ""));
    h->listed = true;
    h->gpus = not_negative(e->gpus);
    h->foreign = not_negative(e->foreign);
    h->clearing = not_negative(e->clearing);
    h->state = e->state;
    if (was.listed && same_labels && h->gpus == was.gpus && h->foreign == was.foreign &&
        h->clearing == was.clearing && h->state == was.state)
        return false;
    host_set_labels(b, h, str_or(e->labels, ""));
    host_settle(b, h);
    return true;
}

static bool apply_gone(struct slotbook *b, const struct slotbook_event *e)
{
    struct slotbook_host *h = map_find(b->hosts, e->name);
    if (!h || !h->listed)
        return false;
    h->listed = false;
    h->foreign = h->clearing = h->kept = 0;
    host_settle(b, h);
    host_drop(b, h);
    return true;
}

static bool apply_keep(struct slotbook *b, const struct slotbook_event *e)
{
    struct slotbook_host *h = map_find(b->hosts, e->name);
    if (!h || !h->listed || h->kept == not_negative(e->amount))
        return false;
    h->kept = not_negative(e->amount);
    host_settle(b, h);
    return true;
}

/* ---- leases ---- */

/* Whole and within its amount, whoever told it. */
static void stay_measure(struct slotbook_stay *s, const struct slotbook_part *p)
{
    s->idle = least(not_negative(p->idle), s->amount);
    s->unknown = least(not_negative(p->unknown), s->amount - s->idle);
    s->busy = least(not_negative(p->busy), s->amount);
}

static void stay_begin(struct slotbook *b,
                       struct slotbook_lease *l,
                       struct slotbook_stay *s,
                       const struct slotbook_part *p)
{
    struct slotbook_host *h = slotbook_host_take(b, p->node);
    *s = (struct slotbook_stay){
        .lease = l, .host = h, .next = h->first, .amount = not_negative(p->amount)};
    stay_measure(s, p);
    h->first = s;
    h->leased += s->amount;
    s->cell = cell_take(b, h->labels, l->project, l->user, l->workload);
    stay_add(b, s, 1);
    host_settle(b, h);
}

static void stay_end(struct slotbook *b, struct slotbook_stay *s)
{
    struct slotbook_host *h = s->host;
    struct slotbook_stay **at = &h->first;
    stay_add(b, s, -1);
    s->cell->refs--;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    h->leased -= s->amount;
    host_settle(b, h);
    host_drop(b, h);
}

static bool apply_end(struct slotbook *b, const char *job)
{
    struct slotbook_lease *l = map_remove(b->leases, job);
    if (!l)
        return false;
    for (size_t i = 0; i < l->n_parts; i++)
        stay_end(b, &l->parts[i]);
    slotbook_lease_free(l);
    return true;
}

static bool apply_begin(struct slotbook *b, const struct slotbook_event *e)
{
    (void)apply_end(b, e->name); /* there is mostly none */
    struct slotbook_lease *l = xcalloc(1, sizeof(*l));
    *l = (struct slotbook_lease){.job = xstrdup(e->name),
                                 .project = xstrdup(str_or(e->project, "")),
                                 .user = xstrdup(str_or(e->user, "")),
                                 .workload = xstrdup(str_or(e->workload, "")),
                                 .parts = xcalloc(e->n_parts + 1, sizeof(*l->parts)),
                                 .n_parts = e->n_parts,
                                 .sum = e->so_far,
                                 .since = b->now};
    map_set(b->leases, e->name, l);
    for (size_t i = 0; i < e->n_parts; i++)
        stay_begin(b, l, &l->parts[i], &e->parts[i]);
    return true;
}

static bool apply_use(struct slotbook *b, const struct slotbook_event *e)
{
    struct slotbook_lease *l = map_find(b->leases, e->name);
    for (size_t i = 0; l && e->n_parts && i < l->n_parts; i++) {
        struct slotbook_stay *s = &l->parts[i], told = *s;
        if (strcmp(s->host->name, e->parts->node) != 0)
            continue;
        stay_measure(&told, e->parts);
        if (told.idle == s->idle && told.unknown == s->unknown && told.busy == s->busy)
            return false;
        stay_add(b, s, -1);
        stay_measure(s, e->parts);
        stay_add(b, s, 1);
        return true;
    }
    return false;
}

static bool apply_redo(struct slotbook *b, const struct slotbook_event *e)
{
    struct slotbook_lease *l = map_find(b->leases, e->name);
    bool redoes = e->amount != 0;
    if (!l || l->redoes == redoes)
        return false;
    for (size_t i = 0; i < l->n_parts; i++)
        stay_add(b, &l->parts[i], -1);
    l->redoes = redoes;
    for (size_t i = 0; i < l->n_parts; i++)
        stay_add(b, &l->parts[i], 1);
    return true;
}

/* ---- events ---- */

static bool slotbook_apply_one(struct slotbook *b, const struct slotbook_event *e)
{
    switch (e->kind) {
    case SLOTBOOK_EV_NODE:
        return apply_node(b, e);
    case SLOTBOOK_EV_GONE:
        return apply_gone(b, e);
    case SLOTBOOK_EV_BEGIN:
        return apply_begin(b, e);
    case SLOTBOOK_EV_END:
        return apply_end(b, e->name);
    case SLOTBOOK_EV_KEEP:
        return apply_keep(b, e);
    case SLOTBOOK_EV_USE:
        return apply_use(b, e);
    case SLOTBOOK_EV_REDO:
        return apply_redo(b, e);
    case SLOTBOOK_EV_CLOCK:
        set_offset(b, e->offset);
        return true;
    case SLOTBOOK_EV_TAKE:
        slotbook_take(b, e->at, NULL, NULL);
        slotbook_take_dealings(b, e->at, NULL, NULL);
        return true;
    case SLOTBOOK_EV_GUARANTEE:
    case SLOTBOOK_EV_WAIT:
        return deals_apply(b, e);
    case SLOTBOOK_EV_END_OF_TABLE:
        break;
    }
    return false;
}

/* What is kept is as free as what is not, and use changes no holding, nor do steps run again. */
static bool slotbook_kind_deals(enum slotbook_kind kind)
{
    return kind != SLOTBOOK_EV_KEEP && kind != SLOTBOOK_EV_USE && kind != SLOTBOOK_EV_REDO &&
           kind != SLOTBOOK_EV_CLOCK && kind != SLOTBOOK_EV_TAKE;
}

bool slotbook_apply(struct slotbook *b, const struct slotbook_event *e)
{
    slotbook_advance(b, e->at);
    if (!slotbook_apply_one(b, e))
        return false;
    if (slotbook_kind_deals(e->kind))
        deals_change(b, deals_next_second(b));
    return true;
}

/* ---- what it tells ---- */

static void give_row(const struct slotbook_cell *c,
                     int64_t at,
                     const int64_t *sums,
                     slotbook_row_f f,
                     void *arg)
{
    const struct slotbook_row row = {.at = at,
                                     .labels = c->labels,
                                     .project = c->project,
                                     .user = c->user,
                                     .workload = c->workload,
                                     .sums = sums};
    if (f)
        f(&row, arg);
}

static void drop_unused_cells(struct slotbook *b)
{
    struct slotbook_cell *c;
    struct slotbook_cell **unused =
        xcalloc(map_count(b->cells) + 1, sizeof(struct slotbook_cell *));
    size_t n = 0;
    for (size_t pos = 0; (c = map_next(b->cells, &pos, NULL));)
        if (!c->refs)
            unused[n++] = c;
    for (size_t i = 0; i < n; i++) {
        map_remove(b->cells, unused[i]->key);
        cell_free(unused[i]);
    }
    free(unused);
}

void slotbook_take(struct slotbook *b, int64_t now, slotbook_row_f f, void *arg)
{
    struct slotbook_cell *c;
    slotbook_advance(b, now);
    for (size_t i = 0; i < b->n_closed; i++) {
        give_row(b->closed[i].cell, b->closed[i].at, b->closed[i].sum, f, arg);
        b->closed[i].cell->refs--;
    }
    b->n_closed = 0;
    for (size_t pos = 0; (c = map_next(b->cells, &pos, NULL));) {
        cell_advance(c, b->now);
        if (!cell_is_empty(c))
            give_row(c, slotbook_interval(slotbook_label(b)), c->sum, f, arg);
        memset(c->sum, 0, sizeof(c->sum));
    }
    drop_unused_cells(b);
}

void slotbook_held_add(struct slotbook_held *to, const struct slotbook_held *more)
{
    to->held += more->held;
    to->idle += more->idle;
    to->unknown += more->unknown;
    to->busy += more->busy;
    to->redone += more->redone;
}

bool slotbook_job(const struct slotbook *b, const char *job, int64_t now, struct slotbook_held *ret)
{
    const struct slotbook_lease *l = map_find(b->leases, job);
    if (!l)
        return false;
    *ret = lease_held(l, not_negative(now - l->since));
    return true;
}

void slotbook_pool(const struct slotbook *b, const char *label, int64_t ret[SLOTBOOK_SUMS])
{
    const struct slotbook_cell *c;
    memset(ret, 0, SLOTBOOK_SUMS * sizeof(*ret));
    for (size_t pos = 0; (c = map_next(b->cells, &pos, NULL));)
        if (!*label || str_list_has(c->labels, label))
            for (int i = 0; i < SLOTBOOK_SUMS; i++)
                ret[i] += c->rate[i];
}

const char *slotbook_job_next(const struct slotbook *b, size_t *pos)
{
    const struct slotbook_lease *l = map_next(b->leases, pos, NULL);
    return l ? l->job : NULL;
}

const char *slotbook_node_next(const struct slotbook *b, size_t *pos)
{
    const struct slotbook_host *h = map_next(b->hosts, pos, NULL);
    return h ? h->name : NULL;
}

int64_t slotbook_kept(const struct slotbook *b, const char *node)
{
    const struct slotbook_host *h = map_find(b->hosts, node);
    return h ? h->kept : 0;
}

/* ---- invariants ---- */

static const char *check_stays(const struct slotbook_host *h)
{
    int64_t leased = 0;
    for (const struct slotbook_stay *s = h->first; s; s = s->next) {
        leased += s->amount;
        if (s->idle < 0 || s->unknown < 0 || s->idle + s->unknown > s->amount ||
            s->busy > s->amount)
            return "what is idle or unknown of a part lies within it";
        if (!str_eq(s->cell->labels, h->labels))
            return "a part is counted under its host's labels";
    }
    return leased == h->leased ? NULL : "what is leased of a host is what its parts hold";
}

static const char *check_host_rates(const struct slotbook_host *h)
{
    int64_t rate[SLOTBOOK_SUMS], all = h->leased;
    host_rates(h, rate);
    for (int i = SLOTBOOK_BLOCKED; i <= SLOTBOOK_FOREIGN; i++) {
        all += rate[i];
        if (rate[i] < 0)
            return "no amount is negative";
    }
    return memcmp(rate, h->rate, sizeof(rate)) != 0 ? "a host is settled"
           : all != rate[SLOTBOOK_CAPACITY]         ? "a host's amounts are its capacity"
                                                    : NULL;
}

const char *slotbook_check(const struct slotbook *b)
{
    const struct slotbook_host *h;
    const struct slotbook_cell *c;
    int64_t all = 0, parts = 0;
    for (size_t pos = 0; (h = map_next(b->hosts, &pos, NULL));) {
        const char *broken = check_stays(h);
        broken = broken ? broken : check_host_rates(h);
        if (broken)
            return broken;
        all += h->rate[SLOTBOOK_CAPACITY];
    }
    for (size_t pos = 0; (c = map_next(b->cells, &pos, NULL));) {
        for (int i = SLOTBOOK_USED; i <= SLOTBOOK_FOREIGN; i++)
            parts += c->rate[i];
        all -= c->rate[SLOTBOOK_CAPACITY];
        parts -= c->rate[SLOTBOOK_CAPACITY];
        if (c->rate[SLOTBOOK_REDONE] < 0 || c->rate[SLOTBOOK_REDONE] > c->rate[SLOTBOOK_USED])
            return "what is run again is used";
    }
    return all ? "cells count each host once" : parts ? "the book balances" : deals_check(b);
}
