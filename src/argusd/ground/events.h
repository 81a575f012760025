/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the log of what happened: written to the store, then told to listeners.
 *
 * Every transition, request and finding is one event with a number, chained to the one
 * before by its hash (events_chain.h). Listeners hear of an event only once it is on
 * disk, in order; who wants older ones reads the store. */
#pragma once
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "core/job/access.h"
#include "store/store.h"

struct events;

struct events_note {
    const char *kind;      /* "submitted" "admitted" … */
    const char *actor;     /* user name, or "argusd" */
    int64_t job_seq;       /* 0 = about no job */
    const char *job;       /* its id */
    const char *from, *to; /* states, NULL if none */
    /* A sentence, or a message's arguments (base/message.h). Without both the kind is the code. */
    const char *code, *text;
    const char *data; /* JSON, NULL */
    /* What it is about when that is no job: who may see the thing may see the event. The same
     * thing that access_check() is asked about. */
    const struct access_thing *thing;
    const char *object;         /* how the API calls it, "node/n1" "token/alice/7"; NULL */
    const char *before, *after; /* JSON, without secrets; become data. NULL = it was not there */
};

/* last: the newest event that the store has; the chain goes on from there. */
struct events *events_new(struct store *store, const struct store_last *last);
void events_free(struct events *ev);

/* An event is about a job or about a thing, never about neither. */
void events_add(struct events *ev, const struct events_note *note, usec_t now);
/* Tell the listeners of what is on disk now. */
void events_durable(struct events *ev, uint64_t batch);
/* The newest event on disk. */
int64_t events_last(const struct events *ev);
/* The newest one that was added, and its hash. 0: there is none. */
int64_t events_head(const struct events *ev, unsigned char ret_hash[static STORE_HASH_BYTES]);

/* What is added is told at once, in the batch that holds it: what follows from it is stored with it
 * or not at all. row is borrowed for the call. At most one; it may add events itself. */
typedef void (*events_tap_f)(const struct store_event *row, void *arg);
void events_tap(struct events *ev, events_tap_f cb, void *arg);

/* This one is on disk. job: its id, borrowed for the call; NULL: it is of no job, or it was added
 * before the listener came, and is of any. */
typedef void (*events_f)(int64_t seq, const char *job, void *arg);
struct events_listener;
struct events_listener *events_listen(struct events *ev, events_f cb, void *arg);
/* May be called from inside a callback. NULL is fine. */
void events_unlisten(struct events_listener *l);
