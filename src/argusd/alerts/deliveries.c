/* SPDX-License-Identifier: Apache-2.0 */
/* deliveries.c - see deliveries.h. Threads lie in one array of small rows: to choose among 20,000
 * of them is one walk over half a megabyte, which is less than what sending the message costs. */
#include "argusd/alerts/deliveries.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct delivery_thread {
    struct delivery *first; /* the oldest: the one that may go */
    uint32_t mark;          /* of the incident's name, so that few names are compared */
    int severity;           /* the worst of those that wait */
};
struct delivery_share {
    char *user; /* NULL: nobody's */
    size_t n;
    uint64_t turn; /* of the queue, when one of his was taken out last */
};

#define DELIVERY(key, ftype, member, ...)                                                          \
    FIELD_AT(delivery, key, ftype, member, .flags = FIELD_STORED, __VA_ARGS__)
static const struct field delivery_rows[] = {
    DELIVERY("id", FIELD_TEXT, id, .size = DELIVERY_ID_MAX),
    DELIVERY("receiver", FIELD_STR, receiver),
    DELIVERY("incident", FIELD_STR, incident),
    DELIVERY("payload", FIELD_JSON, payload),
    DELIVERY("user", FIELD_STR, user),
    DELIVERY("severity", FIELD_ENUM, severity, .names = alert_severity_names),
    DELIVERY("at", FIELD_TIME, at),
    DELIVERY("having", FIELD_STRV, having),
    DELIVERY("way", FIELD_OBJECT, way, .of = &alert_way_table),
};
const struct field_table delivery_table = FIELD_TABLE(NULL, delivery_rows, delivery);

void delivery_free(struct delivery *d)
{
    if (!d)
        return;
    field_release(&delivery_table, d);
    free(d);
}

void deliveries_release(struct deliveries *q)
{
    for (size_t i = 0; i < q->n_threads; i++)
        for (struct delivery *d = q->threads[i].first, *next; d; d = next) {
            next = d->next;
            delivery_free(d);
        }
    for (size_t i = 0; i < q->n_shares; i++)
        free(q->shares[i].user);
    free(q->threads);
    free(q->shares);
    *q = (struct deliveries){0};
}

/* ---- shares ---- */

static struct delivery_share *share_find(const struct deliveries *q, const char *user)
{
    for (size_t i = 0; i < q->n_shares; i++)
        if (str_eq(q->shares[i].user, user))
            return &q->shares[i];
    return NULL;
}

static struct delivery_share *share_make(struct deliveries *q, const char *user)
{
    struct delivery_share *s = share_find(q, user);
    if (s)
        return s;
    q->shares = xrealloc(q->shares, q->n_shares + 1, sizeof(*q->shares));
    s = &q->shares[q->n_shares++];
    *s = (struct delivery_share){.user = xstrdup(user)};
    return s;
}

enum telling_state deliveries_room(const struct deliveries *q, const char *user)
{
    const struct delivery_share *his = share_find(q, user), *nobodys = share_find(q, NULL);
    if (q->n >= DELIVERIES_MAX)
        return TELLING_FULL;
    if (!user)
        return TELLING_ON_THE_WAY;
    size_t of_users = q->n - (nobodys ? nobodys->n : 0);
    return of_users >= DELIVERIES_OF_USERS || (his && his->n >= DELIVERIES_OF_USER_MAX)
               ? TELLING_SHARE
               : TELLING_ON_THE_WAY;
}

/* ---- threads ---- */

static uint32_t thread_mark(const char *incident)
{
    return str_mark(str_or(incident, ""), SIZE_MAX);
}

/* A test is a thread of its own. */
static struct delivery_thread *thread_find(const struct deliveries *q, const char *incident)
{
    uint32_t mark = thread_mark(incident);
    for (size_t i = 0; incident && i < q->n_threads; i++)
        if (q->threads[i].mark == mark && str_eq(q->threads[i].first->incident, incident))
            return &q->threads[i];
    return NULL;
}

static void thread_insert(struct delivery_thread *t, struct delivery *d)
{
    struct delivery **at = &t->first;
    while (*at && (*at)->seq < d->seq)
        at = &(*at)->next;
    d->next = *at;
    *at = d;
    t->severity = d->severity > t->severity ? d->severity : t->severity;
}

static struct delivery *thread_take_first(struct deliveries *q, struct delivery_thread *t)
{
    struct delivery *d = t->first;
    t->first = d->next;
    d->next = NULL;
    t->severity = ALERT_INFO;
    for (const struct delivery *o = t->first; o; o = o->next)
        t->severity = o->severity > t->severity ? o->severity : t->severity;
    if (!t->first)
        *t = q->threads[--q->n_threads];
    return d;
}

static void deliveries_insert(struct deliveries *q, struct delivery *d)
{
    struct delivery_thread *t = thread_find(q, d->incident);
    if (!t) {
        q->threads = xrealloc(q->threads, q->n_threads + 1, sizeof(*q->threads));
        t = &q->threads[q->n_threads++];
        *t = (struct delivery_thread){.mark = thread_mark(d->incident)};
    }
    thread_insert(t, d);
}

static void deliveries_take_in(struct deliveries *q, struct delivery *taken, uint64_t seq)
{
    taken->seq = seq;
    q->next_seq = seq > q->next_seq ? seq : q->next_seq;
    share_make(q, taken->user)->n++;
    q->n++;
    deliveries_insert(q, taken);
}

void deliveries_add(struct deliveries *q, struct delivery *taken)
{
    deliveries_take_in(q, taken, q->next_seq + 1);
}

void deliveries_restore(struct deliveries *q, struct delivery *taken)
{
    deliveries_take_in(q, taken, taken->at);
}

void deliveries_put_back(struct deliveries *q, struct delivery *taken)
{
    deliveries_insert(q, taken);
}

struct delivery *deliveries_take_behind(struct deliveries *q, struct delivery *taken)
{
    struct delivery *all = taken;
    for (struct delivery_thread *t; (t = thread_find(q, taken->incident));) {
        struct delivery *d = thread_take_first(q, t);
        d->next = all;
        all = d;
    }
    return all;
}

void deliveries_each(const struct deliveries *q, delivery_each_f each, void *arg)
{
    for (size_t i = 0; i < q->n_threads; i++)
        for (const struct delivery *d = q->threads[i].first; d; d = d->next)
            each(d, arg);
}

void deliveries_gone(struct deliveries *q, const struct delivery *d)
{
    struct delivery_share *s = share_find(q, d->user);
    assert(s && s->n && q->n);
    q->n--;
    if (--s->n)
        return;
    free(s->user);
    *s = q->shares[--q->n_shares];
}

/* ---- the next one ---- */

static bool thread_may_go(const struct delivery_thread *t, const struct deliveries_ask *ask)
{
    const struct delivery *d = t->first;
    bool is_stored = d->batch <= ask->durable || (d->at_once && ask->fails);
    return is_stored && t->severity >= ask->least && d->after <= ask->now &&
           !(ask->joins && d->goes_alone);
}

/* a goes before b. */
static bool thread_is_before(const struct deliveries *q,
                             const struct delivery_thread *a,
                             const struct delivery_thread *b)
{
    const struct delivery *d = a->first, *e = b->first;
    if (q->retried && d->goes_alone != e->goes_alone)
        return !d->goes_alone;
    if (a->severity != b->severity)
        return a->severity > b->severity;
    if (d->goes_alone != e->goes_alone)
        return !d->goes_alone;
    if (!d->user != !e->user)
        return !d->user;
    if (d->user && !str_eq(d->user, e->user)) {
        uint64_t his = share_find(q, d->user)->turn, other = share_find(q, e->user)->turn;
        if (his != other)
            return his < other;
    }
    return d->seq < e->seq;
}

struct delivery *deliveries_take(struct deliveries *q, const struct deliveries_ask *ask)
{
    struct delivery_thread *best = NULL;
    for (size_t i = 0; i < q->n_threads; i++)
        if (thread_may_go(&q->threads[i], ask) &&
            (!best || thread_is_before(q, &q->threads[i], best)))
            best = &q->threads[i];
    if (!best)
        return NULL;
    struct delivery *d = thread_take_first(q, best);
    share_find(q, d->user)->turn = ++q->turn;
    q->retried = d->goes_alone;
    return d;
}
