/* SPDX-License-Identifier: Apache-2.0 */
/* alert_table.h - alerts and incidents: what became of each rule and subject.
 *
 * An alert is one rule about one subject while it holds: at most one of that pair is open. It
 * belongs to one incident, whose cause is a subject ("node/w1"): its own, or one of the subjects
 * that it suspects and that has an open incident. When an incident of a cause opens, young ones
 * whose alerts all suspect that cause merge into it. An incident is open while one of its alerts
 * is; what comes back soon reopens it, so that what flaps is told once. One that is full of alerts
 * of which something may still be told, to anybody, is followed by another of the same cause. What
 * is pending is in memory only.
 *
 * Each change marks its incident (is_dirty): the owner takes marked ones, stores them and tells;
 * their alerts' news are whole until he clears them with incident_took(). Pure. */
#pragma once
#include "core/alert/incident.h"

enum {
    ALERTS_OF_USER_MAX = 200,    /* of ends of one user's jobs (`keep`) that are open, the newest */
    INCIDENTS_CLOSED_MAX = 1000, /* of those that are over, the newest stay */
    INCIDENTS_UNTOLD_MAX = 20000, /* those of which something is still to be told stay longer */
};

/* What is seen now. All borrowed. */
struct alert_subject {
    enum alert_of of;
    const char *name;
    const struct alert_fact *v;
    size_t n;
    struct alert_saying says;    /* the one that is a message */
    const char *owner, *project; /* of a job; who may see it */
    const struct strv *suspects; /* "node/w1" "cluster/default": what may be its cause; NULL */
    const struct strv *notify;   /* receivers that the job names; NULL */
    double gpus;                 /* that it holds */
    double lost;                 /* GPU-seconds of work that this event threw away */
};

struct alert_table;
struct alert_table *alert_table_new(const unsigned char seed[static 16]);
void alert_table_free(struct alert_table *t); /* NULL is fine */
/* A row of the store; *taken is zeroed. */
void alert_table_restore(struct alert_table *t, struct incident *taken);
/* A row of an alert, once all incidents are restored; *taken is zeroed. False: nobody has it, and
 * nothing is taken. */
must_check bool alert_table_restore_alert(struct alert_table *t, struct alert *taken);

/* Ask all rules of this kind about it. */
void alert_table_see(struct alert_table *t,
                     const struct alert_rules *rules,
                     const struct alert_subject *s,
                     usec_t now);
/* An alert of this subject is open or pending. Seldom a mistake: then it only may be. */
bool alert_table_minds(const struct alert_table *t, enum alert_of of, const char *name);
/* All subjects of this kind that it minds were seen since the last such call: what was not is gone,
 * and its alerts end, but those that are kept. */
void alert_table_round(struct alert_table *t, enum alert_of of, usec_t now);
/* What time brings; and alerts of rules that are no more, or off, end. */
void alert_table_tick(struct alert_table *t, const struct alert_rules *rules, usec_t now);

/* A second acknowledgement replaces the first one's name and note. False: it says the same. */
bool alert_table_ack(struct alert *a,
                     struct incident *i,
                     const char *by,
                     const char *note,
                     usec_t now);
struct alert *alert_table_find(const struct alert_table *t,
                               const char *id,
                               struct incident **ret_incident);
struct incident *incident_find(const struct alert_table *t, const char *id);
size_t alert_table_incidents(const struct alert_table *t);
/* The oldest first. NULL behind the last. */
struct incident *incident_at(const struct alert_table *t, size_t i);
/* One that is over, told, and too many: taken out, to be forgotten by the owner and freed. One of
 * which a message is on its way waits for what becomes of that. NULL: none. */
struct incident *alert_table_expire(struct alert_table *t);
