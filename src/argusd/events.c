/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - the event log; see events.h.
 *
 * An event is rendered when it is added, and only while somebody listens: a
 * submit that nobody follows costs a row in the store and nothing more. */
#include "argusd/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct pending {
    struct pending *next;
    int64_t seq;
    uint64_t batch;
    char *job, *json;
};

struct events_listener {
    struct events_listener *next;
    struct events *ev;
    events_f cb; /* NULL: gone, removed after the walk */
    void *arg;
};

struct events {
    struct store *store;
    int64_t next_seq, last_seq;
    uint64_t last_batch;
    int64_t handed_seq;
    struct pending *first, **tail;
    struct events_listener *listeners;
    bool walking;
};

struct events *events_new(struct store *store, int64_t next_seq)
{
    struct events *ev = xcalloc(1, sizeof(*ev));
    ev->store = store;
    ev->next_seq = next_seq;
    ev->last_seq = ev->handed_seq = next_seq - 1;
    ev->tail = &ev->first;
    return ev;
}

static void pending_free(struct pending *p)
{
    free(p->job);
    free(p->json);
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

void events_row_to_json(const struct store_event *row, struct jout *j)
{
    jout_open(j, NULL, '{');
    jout_int(j, "seq", row->seq);
    jout_time(j, "at", row->at);
    jout_str(j, "job", row->job);
    jout_str(j, "kind", row->kind);
    jout_str(j, "actor", row->actor);
    jout_str(j, "from", row->from_state);
    jout_str(j, "to", row->to_state);
    jout_open(j, "reason", '{');
    jout_str(j, "code", str_or(row->reason_code, ""));
    jout_str(j, "text", str_or(row->text, ""));
    jout_close(j, '}');
    jout_str(j, "text", str_or(row->text, ""));
    jout_raw(j, "data", row->data && *row->data ? row->data : "null");
    jout_close(j, '}');
}

static void keep(struct events *ev, const struct store_event *row)
{
    struct buf out = BUF_INIT(256 << 10);
    struct jout j = jout_begin(&out);
    events_row_to_json(row, &j);
    struct pending *p = xcalloc(1, sizeof(*p));
    *p = (struct pending){.seq = row->seq,
                          .batch = store_batch(ev->store),
                          .job = xstrdup(row->job),
                          .json = buf_take(&out)};
    *ev->tail = p;
    ev->tail = &p->next;
}

void events_add(struct events *ev, const struct events_note *note, usec_t now)
{
    struct store_event row = {.seq = ev->next_seq++,
                              .at = now,
                              .job_seq = note->job_seq,
                              .job = note->job,
                              .kind = note->kind,
                              .actor = note->actor,
                              .from_state = note->from,
                              .to_state = note->to,
                              .reason_code = note->code,
                              .text = note->text,
                              .data = note->data};
    store_put_event(ev->store, &row);
    ev->last_seq = row.seq;
    ev->last_batch = store_batch(ev->store);
    if (ev->listeners)
        keep(ev, &row);
}

int64_t events_last(const struct events *ev)
{
    return ev->handed_seq;
}

static void sweep(struct events *ev)
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
                l->cb(p->seq, p->job, p->json, l->arg);
        pending_free(p);
    }
    ev->walking = false;
    sweep(ev);
}

struct events_listener *events_listen(struct events *ev, events_f cb, void *arg)
{
    struct events_listener *l = xcalloc(1, sizeof(*l));
    *l = (struct events_listener){.next = ev->listeners, .ev = ev, .cb = cb, .arg = arg};
    ev->listeners = l;
    return l;
}

void events_unlisten(struct events_listener *l)
{
    if (!l)
        return;
    l->cb = NULL;
    if (!l->ev->walking)
        sweep(l->ev);
}
