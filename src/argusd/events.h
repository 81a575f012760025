/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the log of what happened: written to the store, then told to listeners.
 *
 * Every transition, request and finding is one event with a number. Listeners hear
 * of an event only once it is on disk, in order; who wants older ones reads the store. */
#pragma once
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/store.h"

struct events;

struct events_note {
    const char *kind;      /* "submitted" "admitted" … */
    const char *actor;     /* user name, or "argusd" */
    int64_t job_seq;       /* 0 = about no job */
    const char *job;       /* its id */
    const char *from, *to; /* states, NULL if none */
    const char *code, *text;
    const char *data; /* JSON, NULL */
};

/* next_seq: the number of the first event to come. */
struct events *events_new(struct store *store, int64_t next_seq);
void events_free(struct events *ev);

void events_add(struct events *ev, const struct events_note *note, usec_t now);
/* Tell the listeners of what is on disk now. */
void events_durable(struct events *ev, uint64_t batch);
/* The newest event on disk. */
int64_t events_last(const struct events *ev);

/* json: the event as an object, borrowed for the call; job: its id or NULL. */
typedef void (*events_f)(int64_t seq, const char *job, const char *json, void *arg);
struct events_listener;
struct events_listener *events_listen(struct events *ev, events_f cb, void *arg);
/* May be called from inside a callback. NULL is fine. */
void events_unlisten(struct events_listener *l);

/* A row as the API's object, under key or NULL. */
void events_row_to_json(const struct store_event *row, struct jout *j);
