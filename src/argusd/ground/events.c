/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - the event log; see events.h.
 *
 * What is added is remembered until it is on disk only while somebody listens: a submit that
 * nobody follows costs a row in the store and nothing more. Who begins to listen in between is
 * owed one call. */
#include "argusd/ground/events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/events_chain.h"
#include "base/str.h"

/* Before and after of a project with all the members that it can have. */
enum { DATA_MAX = 128 << 10 };

struct pending {
    struct pending *next;
    int64_t seq;
    uint64_t batch;
    char *job;
};

struct events_listener {
    struct events_listener *next;
    struct events *ev;
    events_f cb; /* NULL: gone, removed after the walk */
    void *arg;
    int64_t owed; /* added before it listened and not on disk then; 0 = nothing */
};

struct events {
    struct store *store;
    int64_t next_seq, last_seq;
    uint64_t last_batch;
    int64_t handed_seq;
    unsigned char hash[STORE_HASH_BYTES]; /* of the newest one; zeros before the first */
    struct pending *first, **tail;
    struct events_listener *listeners;
    bool walking;
    events_tap_f tap;
    void *tap_arg;
};

struct events *events_new(struct store *store, const struct store_last *last)
{
    struct events *ev = xcalloc(1, sizeof(*ev));
    ev->store = store;
    ev->next_seq = last->event_seq + 1;
    ev->last_seq = ev->handed_seq = last->event_seq;
    if (last->has_event_hash)
        memcpy(ev->hash, last->event_hash, sizeof(ev->hash));
    ev->tail = &ev->first;
    return ev;
}

static void pending_free(struct pending *p)
{
    free(p->job);
    free(p);
}

void events_free(struct events *ev)
{
    if (!ev)
        return;
    for (struct pending *p = ev->first, *next; p; p = next) {
        next = p->next;
        pending_free(p);
    }
    for (struct events_listener *l = ev->listeners, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    free(ev);
}

static void events_keep(struct events *ev, const struct store_event *row)
{
    struct pending *p = xcalloc(1, sizeof(*p));
    *p = (struct pending){
        .seq = row->seq, .batch = store_batch(ev->store), .job = xstrdup(row->job)};
    *ev->tail = p;
    ev->tail = &p->next;
}

/* {"before":…,"after":…}, NULL when the note has neither. */
static char *changed_data(const struct events_note *note)
{
    struct buf out = BUF_INIT(DATA_MAX);
    struct jout j = jout_begin(&out);
    if (!note->before && !note->after)
        return NULL;
    jout_open(&j, NULL, '{');
    jout_raw(&j, "before", str_or(note->before, "null"));
    jout_raw(&j, "after", str_or(note->after, "null"));
    jout_close(&j, '}');
    char *whole = buf_take_whole(&out);
    return whole ? whole : xstrdup("{\"before\":null,\"after\":null,\"cut\":true}");
}

static void put_thing(struct store_event *row, const struct access_thing *thing)
{
    row->thing = access_kind_to_string(thing->kind);
    row->owner = thing->owner;
    row->project = thing->is_common ? STORE_EVERYBODY : thing->project;
}

void events_add(struct events *ev, const struct events_note *note, usec_t now)
{
    assert(note->job_seq || note->thing);
    _cleanup_(freep) char *data = note->data ? NULL : changed_data(note);
    bool is_told = *str_or(note->code, "") || *str_or(note->text, "");
    struct store_event row = {.seq = ev->next_seq++,
                              .at = now,
                              .job_seq = note->job_seq,
                              .job = note->job,
                              .kind = note->kind,
                              .actor = note->actor,
                              .from_state = note->from,
                              .to_state = note->to,
                              .reason_code = is_told ? note->code : note->kind,
                              .text = is_told ? note->text : "{}",
                              .data = note->data ? note->data : data,
                              .object = note->object,
                              .hash = ev->hash};
    if (note->thing)
        put_thing(&row, note->thing);
    events_chain(ev->hash, &row, ev->hash);
    store_put_event(ev->store, &row);
    ev->last_seq = row.seq;
    ev->last_batch = store_batch(ev->store);
    if (ev->listeners)
        events_keep(ev, &row);
    row.hash = NULL; /* of a later one, once the tap adds some */
    if (ev->tap)
        ev->tap(&row, ev->tap_arg);
}

void events_tap(struct events *ev, events_tap_f cb, void *arg)
{
    ev->tap = cb;
    ev->tap_arg = arg;
}

int64_t events_last(const struct events *ev)
{
    return ev->handed_seq;
}

int64_t events_head(const struct events *ev, unsigned char ret_hash[static STORE_HASH_BYTES])
{
    memcpy(ret_hash, ev->hash, STORE_HASH_BYTES);
    return ev->last_seq;
}

static void events_sweep(struct events *ev)
{
    for (struct events_listener **p = &ev->listeners; *p;) {
        struct events_listener *l = *p;
        if (l->cb) {
            p = &l->next;
            continue;
        }
        *p = l->next;
        free(l);
    }
}

static void pay_owed(struct events *ev)
{
    for (struct events_listener *l = ev->listeners; l; l = l->next) {
        if (!l->owed || l->owed > ev->handed_seq)
            continue;
        int64_t seq = l->owed;
        l->owed = 0;
        if (l->cb)
            l->cb(seq, NULL, l->arg);
    }
}

void events_durable(struct events *ev, uint64_t batch)
{
    if (ev->last_batch <= batch)
        ev->handed_seq = ev->last_seq;
    ev->walking = true;
    while (ev->first && ev->first->batch <= batch) {
        struct pending *p = ev->first;
        ev->first = p->next;
        if (!ev->first)
            ev->tail = &ev->first;
        if (p->seq > ev->handed_seq)
            ev->handed_seq = p->seq;
        for (struct events_listener *l = ev->listeners; l; l = l->next)
            if (l->cb)
                l->cb(p->seq, p->job, l->arg);
        pending_free(p);
    }
    pay_owed(ev);
    ev->walking = false;
    events_sweep(ev);
}

struct events_listener *events_listen(struct events *ev, events_f cb, void *arg)
{
    struct events_listener *l = xcalloc(1, sizeof(*l));
    *l = (struct events_listener){.next = ev->listeners, .ev = ev, .cb = cb, .arg = arg};
    l->owed = ev->last_seq > ev->handed_seq ? ev->last_seq : 0;
    ev->listeners = l;
    return l;
}

void events_unlisten(struct events_listener *l)
{
    if (!l)
        return;
    l->cb = NULL;
    if (!l->ev->walking)
        events_sweep(l->ev);
}
