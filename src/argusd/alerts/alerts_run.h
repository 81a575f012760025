/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_run.h - inside of the alerts service: what its files share. Nobody outside this room
 * includes it. */
#pragma once
#include "argusd/alerts/alerts.h"
#include "argusd/courier/courier.h"
#include "base/map.h"

enum { DELIVERY_ID_MAX = 40, DELIVERIES_MAX = 20000, OUTLET_MERGES = 20 };

/* A message that a receiver has not taken. */
struct delivery {
    struct delivery *next;
    char id[DELIVERY_ID_MAX];
    char *receiver, *payload;
    usec_t at; /* wall: when it was decided */
    uint64_t batch;
};
extern const struct field_table delivery_table;

struct outlet {
    struct alerts *alerts;
    const struct alert_receiver *receiver;
    struct courier *courier; /* NULL: of a log */
    char said[80];
    struct delivery *first, **tail; /* oldest first */
    size_t waiting, sending;        /* of its first ones */
    bool is_refresh;                /* what runs is no delivery */
    usec_t sent[60];                /* monotonic, the last ones: its pace */
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

/* alerts_tell.c: what changed is stored, told as events, and put to receivers. */
void alerts_settle(struct alerts *as, usec_t now);
void alerts_deliver(struct alerts *as, const char *receiver, const char *id, const char *payload);
void alerts_new_id(char id[static DELIVERY_ID_MAX]);

/* alerts_send.c */
void outlets_open(struct alerts *as);
void outlets_close(struct alerts *as);
void outlets_free(struct alerts *as);
struct outlet *outlet_find(const struct alerts *as, const char *name);
void outlet_add(struct outlet *o, struct delivery *d);
/* What is on disk and due is sent. */
void outlets_turn(struct alerts *as);
