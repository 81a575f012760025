/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_run.h - inside of the alerts service: what its files share. Nobody outside this room
 * includes it. */
#pragma once
#include "argusd/alerts/alerts.h"
#include "argusd/alerts/deliveries.h"
#include "argusd/courier/courier.h"
#include "base/map.h"

enum { OUTLET_MERGES = 20 };

struct delivery_line {
    struct delivery *first, *last;
};

/* Where the next message to a receiver goes on that hears again and again of what is open: behind
 * which alert of which incident (by its seq). */
struct refresh_place {
    int64_t seq;
    size_t alert;
    bool runs; /* it is not at its end */
};

struct outlet {
    struct alerts *alerts;
    const struct alert_receiver *receiver;
    struct courier *courier; /* NULL: of a log */
    char said[80];
    struct deliveries waiting;    /* and what runs now */
    struct delivery_line sending; /* what runs now; empty while it refreshes */
    struct refresh_place refresh; /* how far it has come */
    bool is_refresh;              /* what runs is no delivery */
    struct strv having;           /* of the mail that runs: addresses that have it */
    usec_t sent[60];              /* monotonic, the last ones: its pace */
    size_t next_sent;
    usec_t refreshed; /* monotonic */
    int64_t taken, refused;
};

struct alerts {
    struct alerts_parts p;
    const struct alert_config *config;
    struct alert_rules rules; /* of the config, and own ones */
    struct alert_table *table;
    struct alert_silence *silences;
    size_t n_silences;
    int64_t next_silence;
    struct outlet *outlets; /* one per receiver */
    size_t n_outlets;
    struct delivery_line orphans; /* of receivers that argus.yaml does not have */
    struct map *seen_alive;       /* name of a node of Ray's list alone -> its Ray id, heap */
    struct map *places;           /* job -> struct strv *: what it was leased, "node/w1" */
    usec_t started, ticked, late; /* monotonic; how late the last tick came */
    uv_timer_t timer;
    bool has_timer, closing, seeing;
    bool ask_all;     /* rules changed: each job is asked about at the next look */
    bool asks_queued; /* a rule of jobs compares `queued_for` */
};

/* alerts_facts.c */
void alerts_look(struct alerts *as, usec_t now);
/* False: it is of a kind that nobody asks about. */
bool alerts_see_event(struct alerts *as, const struct store_event *row);
void alerts_places_free(struct alerts *as);
/* alerts_nodes.c */
void alerts_seen_free(struct alerts *as);
/* A row of the store: this node of Ray's list was seen alive. False: it cannot be read. */
bool alerts_restore_node(struct alerts *as, const struct store_entry *row);

/* alerts_tell.c: what changed is stored, told as events, and put to receivers. */
void alerts_settle(struct alerts *as, usec_t now);
/* Time brings something to tell of the others, too. */
void alerts_settle_all(struct alerts *as, usec_t now);
/* Is there a place for such a message? TELLING_ON_THE_WAY, or why not: then it is not written. */
must_check enum telling_state alerts_has_room(const struct alerts *as,
                                              const struct delivery_form *form);
/* Its row, in the batch that is open. */
void delivery_store(struct alerts *as, const struct delivery *d);
void alerts_deliver(struct alerts *as,
                    const struct delivery_form *form,
                    const char *id,
                    const char *payload);
/* May it go now? TELLING_ON_THE_WAY, or why not: then it is taken back. */
must_check enum telling_state alerts_ask_again(const struct alerts *as, const struct delivery *d);
/* It leaves the store, and its incident is as if it had never been put. Taken. */
void alerts_take_back(struct alerts *as, struct delivery *d, enum telling_state why);
/* Some were taken back, or heard of: what there is to tell now, in the batch that is open. */
void alerts_tell_anew(struct alerts *as);
/* All that wait are counted: once, when all rows are read. */
void alerts_count_ways(struct alerts *as);
/* What became of a delivery, on the incident and in the batch that is open. */
void alerts_settled(struct alerts *as,
                    const struct delivery *d,
                    enum telling_state state,
                    const char *why);
/* The rows of an incident leave the store. */
void alerts_forget(struct alerts *as, const struct incident *i);
void alerts_new_id(char id[static DELIVERY_ID_MAX]);

/* alerts_send.c */
void outlets_open(struct alerts *as);
void outlets_close(struct alerts *as);
void outlets_free(struct alerts *as);
struct outlet *outlet_find(const struct alerts *as, const char *name);
/* argus.yaml does not have its receiver: said on its incident once all rows are read. Taken. */
void outlets_orphan(struct alerts *as, struct delivery *d);
void outlets_settle_orphans(struct alerts *as);
/* What is on disk and due is sent. */
void outlets_turn(struct alerts *as);
