/* SPDX-License-Identifier: Apache-2.0 */
/* deliveries.h - the messages that wait for one receiver, and which of them goes next.
 *
 * Messages of one incident go in their order, and all of them are as urgent as the most urgent one
 * that waits. Among incidents the severest goes first; of equal ones what is nobody's (a machine's,
 * the cluster's), then the user who has waited longest since his last message, then the oldest. So
 * no number of messages of users holds up what is worse than they are, and none of one user those
 * of another. What failed goes between those that were not tried yet, not before all of them.
 * Pure. A zeroed struct deliveries is an empty one. */
#pragma once
#include "base/clock.h"
#include "base/field.h"
#include "base/strv.h"
#include "core/alert/alert_way.h"

enum {
    DELIVERY_ID_MAX = 40,
    DELIVERIES_MAX = 20000,
    DELIVERIES_OF_USERS = 15000, /* the rest is for what is nobody's */
    DELIVERIES_OF_USER_MAX = 1000,
};

/* A message that a receiver has not taken. */
struct delivery {
    struct delivery *next;
    char id[DELIVERY_ID_MAX];
    char *receiver, *incident, *payload; /* incident NULL: a test */
    char *user;                          /* whose jobs alone it is about; NULL: nobody's */
    int severity;                        /* enum alert_severity */
    usec_t at;                           /* wall: when it was decided */
    uint64_t batch;                      /* of the store: it may go once that is on disk */
    uint64_t seq;                        /* of its queue */
    int tries;                           /* that failed, in this life */
    usec_t after;                        /* monotonic: not before */
    bool goes_alone;                     /* it has failed, alone or with others */
    bool at_once;                        /* of argusd's own trouble: its store may be what fails */
    struct strv having;                  /* of a mail: addresses that have it; in its row, too */
    struct alert_way way;                /* what it tells of */
};
/* What a message is about. Borrowed. */
struct delivery_form {
    const char *receiver, *incident, *user;
    const struct alert_way *way; /* NULL: a test */
    int severity;
    bool at_once;
};
extern const struct field_table delivery_table;
void delivery_free(struct delivery *d); /* NULL is fine */

struct deliveries {
    struct delivery_thread *threads; /* one per incident of which a message waits */
    size_t n_threads;
    struct delivery_share *shares; /* one per user of whom a message waits or is on its way */
    size_t n_shares;
    size_t n; /* that wait or are on their way */
    uint64_t next_seq, turn;
    bool retried; /* the last one that was taken out had failed before */
};
void deliveries_release(struct deliveries *q);

/* Is there a place for one more of this user (NULL: nobody's)? TELLING_ON_THE_WAY; TELLING_FULL;
 * TELLING_SHARE: he, or all users together, have theirs. */
enum telling_state deliveries_room(const struct deliveries *q, const char *user);
void deliveries_add(struct deliveries *q, struct delivery *taken);
/* A row of the store, which come in no order: before all that are added, by the time of each. */
void deliveries_restore(struct deliveries *q, struct delivery *taken);

struct deliveries_ask {
    usec_t now;       /* monotonic */
    uint64_t durable; /* newest batch that is on disk */
    bool fails;       /* nothing comes on disk: what goes at once does not wait for that */
    int least;        /* severity */
    bool joins;       /* others go with it: not one that goes alone */
};
/* Taken out to be sent; NULL: none may go now. It still counts until deliveries_gone(). */
struct delivery *deliveries_take(struct deliveries *q, const struct deliveries_ask *ask);
/* It was not taken: back to its place. */
void deliveries_put_back(struct deliveries *q, struct delivery *taken);
/* One that was taken out is not to go: with it all of its incident that wait behind it are taken
 * out, too. The newest first, the one itself last. */
struct delivery *deliveries_take_behind(struct deliveries *q, struct delivery *taken);
typedef void (*delivery_each_f)(const struct delivery *d, void *arg);
/* Those that wait. */
void deliveries_each(const struct deliveries *q, delivery_each_f each, void *arg);
/* It is settled. The caller frees it. */
void deliveries_gone(struct deliveries *q, const struct delivery *d);
