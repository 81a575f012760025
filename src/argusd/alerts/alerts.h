/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.h - alerts, incidents, silences and messages: what is wrong, who knows of it.
 *
 * Looks at events as they are stored and at everything else every few seconds. Rows of the store:
 * incidents with their alerts, silences, own rules, deliveries. Pointers are borrowed until the
 * loop goes on. */
#pragma once
#include "argusd/machines/nodes.h"
#include "argusd/people/people.h"
#include "argusd/people/secrets.h"
#include "core/alert/alert_route.h"
#include "core/alert/alert_text.h"

struct alerts;

struct alerts_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    struct cluster *cluster;
    struct jobs *jobs;
    struct nodes *nodes;
    struct people *people;
    struct secrets *secrets;
    struct figures *figures;
    /* How long the ops agent has taken nothing, and why; 0: it does, or there is none. NULL: nobody
     * knows. */
    usec_t (*agent_failing)(const char **ret_trouble, void *arg);
    usec_t (*backup_overdue)(const char **ret_trouble, void *arg);
    /* How many services should answer and have no replica that does, and the first of them since
     * when: *ret_longest, which is 0 at first. */
    size_t (*services_down)(usec_t *ret_longest, void *arg);
    /* The notebook whose lease is this job: its name, borrowed for the turn, and in *ret_left how
     * long it has until it is stopped as idle, once its owner was warned; else 0. NULL: none. */
    const char *(*notebook_of)(const char *job, usec_t *ret_left, void *arg);
    void *arg;
};

struct alerts *alerts_new(const struct alerts_parts *parts);
#define ALERTS_ENTRY_INCIDENT "incident"
#define ALERTS_ENTRY_ALERT "incident_alert" /* behind all incidents, as rows come by their kind */
#define ALERTS_ENTRY_SILENCE "silence"
#define ALERTS_ENTRY_RULE "alert_rule"
#define ALERTS_ENTRY_DELIVERY "delivery"
#define ALERTS_ENTRY_NODE "alert_node" /* of Ray's list alone, once seen alive */
/* A row of the store; one that cannot be read is an error in the log. */
void alerts_restore(struct alerts *as, const struct store_entry *row);
void alerts_start(struct alerts *as);
void alerts_durable(struct alerts *as, uint64_t batch);
/* Nothing is looked at or sent any more; what was not taken is in the store. NULL is fine. */
void alerts_close(struct alerts *as);
void alerts_free(struct alerts *as);

struct alert_table *alerts_table(const struct alerts *as);
const struct alert_rules *alerts_rules(const struct alerts *as);
const struct alert_config *alerts_config(const struct alerts *as);
/* NULL if it matches no silence now. */
const struct alert_silence *alerts_silence_of(const struct alerts *as, const struct alert *a);
/* Who may see the event or the alert. Borrows from a. */
struct access_thing alerts_thing(const struct alert *a);

/* A second one replaces name and note. */
void alerts_ack(struct alerts *as,
                struct alert *a,
                struct incident *i,
                const char *by,
                const char *note);
enum { ALERTS_SILENCES_MAX = 1000 };
const struct alert_silence *alerts_silence_at(const struct alerts *as, size_t i);
/* *taken gets its id. ERR_REFUSED: there are too many. */
must_check int alerts_silence_add(struct alerts *as,
                                  struct alert_silence *taken,
                                  const struct alert_silence **ret,
                                  struct err *err);
void alerts_silence_remove(struct alerts *as, const struct alert_silence *s);
/* A rule of its own, or a change of another; the event is the caller's. */
must_check int alerts_rule_put(struct alerts *as,
                               struct alert_rule *taken,
                               const struct alert_rule **ret,
                               struct err *err);
/* What argus.yaml or the shipped rules say of that name holds again. ERR_CONFLICT: it is theirs. */
must_check int alerts_rule_remove(struct alerts *as, const char *name, struct err *err);
/* A test message, as good as any other. ERR_NOT_FOUND. */
must_check int alerts_test(struct alerts *as,
                           const char *receiver,
                           const char *by,
                           struct err *err);

/* What is known of a receiver: for pages. */
struct alerts_outlet {
    const struct alert_receiver *receiver;
    size_t waiting;         /* deliveries that it has not taken */
    int64_t taken, refused; /* in this life */
    usec_t taken_at, failing_since;
    const char *trouble; /* "" = none */
};
bool alerts_outlet_at(const struct alerts *as, size_t i, struct alerts_outlet *ret);
