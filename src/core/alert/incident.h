/* SPDX-License-Identifier: Apache-2.0 */
/* incident.h - an alert, the incident that it is part of, and what became of the incident's
 * messages: one *telling* for each receiver that the incident concerns. Plain values with the rows
 * that the store keeps of them. Pure. */
#pragma once
#include "base/map.h"
#include "base/strv.h"
#include "core/alert/alert_rule.h"

enum {
    ALERT_ID_MAX = 24,
    ALERT_ARGS_MAX = 8 << 10,
    ALERT_SUBJECT_MAX = 280,
    INCIDENT_ALERTS_MAX = 300, /* with more, the next incident of the same cause begins */
};

/* A fact that is a message is kept as one, {"code","args"}, to be said in its reader's language. */
#define ALERT_SAID_CODE "code"
#define ALERT_SAID_ARGS "args"
struct alert_saying {
    const char *name, *code, *args; /* the fact of this name says it in English; NULL: none does */
};

enum alert_news { ALERT_FIRED = 1 << 0, ALERT_ENDED = 1 << 1, ALERT_ACKED = 1 << 2 };

struct alert {
    char id[ALERT_ID_MAX];
    char incident[ALERT_ID_MAX]; /* the one that has it */
    char *rule;
    int of, severity;
    char *name, *owner, *project;   /* of its subject */
    char *args;                     /* JSON object: the facts, as of now */
    char *text, *zh, *fix, *fix_zh; /* of the rule, as it was then */
    struct strv suspects, notify;
    struct strv told; /* receivers of which a message has named it */
    double gpus;
    double lost; /* GPU-seconds of work that its events threw away */
    bool open;
    int64_t count; /* how often it fired again while it was open */
    usec_t since, ended_at, last_at, keep;
    usec_t acked_at;
    char *acked_by, *ack_note;
    /* not stored */
    usec_t clear_since;
    uint64_t round;
    unsigned waits; /* messages on their way that are the first to tell their receivers of it */
    bool is_told;   /* each receiver that its routes name, when it was looked at last */
    unsigned news;  /* enum alert_news, since the incident was taken */
    bool is_dirty;  /* its row is older than it */
};

/* What became of the last message to a receiver, or why there was none. X(enumerator, word) */
#define TELLING_TABLE(X)                                                                           \
    X(ON_THE_WAY, "on_the_way")                                                                    \
    X(TAKEN, "taken")                                                                              \
    X(REFUSED, "refused")                                                                          \
    X(GIVEN_UP, "given_up")                                                                        \
    X(QUIET, "quiet_hours")                                                                        \
    X(SILENCED, "silenced")                                                                        \
    X(NOT_THERE, "no_receiver")                                                                    \
    X(FULL, "line_full")                                                                           \
    X(SHARE, "share_used")
#define X(e, word) TELLING_##e,
enum telling_state { TELLING_TABLE(X) TELLING_END };
#undef X
extern const char *const telling_state_names[];

enum { TELLING_NOTHING = -1 }; /* as a severity */

struct telling {
    char *receiver;
    int state;    /* enum telling_state */
    char *why;    /* what the receiver said, NULL: nothing */
    int severity; /* the worst that it was told, TELLING_NOTHING */
    bool begun;   /* it was told of the incident, or the message is on its way */
    bool ended;   /* nothing is left to tell it */
    bool escalated;
    usec_t at;        /* of the last message */
    int64_t messages; /* that were put on their way */
    /* What became of the message before, where one is on the way; TELLING_ON_THE_WAY: of none. */
    int became;
    char *became_why;
    /* not stored */
    unsigned waits; /* messages that are on their way */
};

struct incident {
    char id[ALERT_ID_MAX];
    int64_t seq;
    char *cause;
    int severity; /* the worst that it had */
    bool open;
    usec_t opened_at, closed_at;
    struct field_list alerts; /* of struct alert, the oldest first */
    int64_t left_out;         /* alerts that were over, and made room for others */
    char *merged_into;        /* an id */
    /* for whoever tells */
    struct field_list tellings; /* of struct telling */
    usec_t told_at;             /* the first message; 0: none */
    bool told_end;              /* it is over and nothing is left to tell anybody */
    int64_t escalations;
    /* of rows that were written before there were tellings; empty after incident_upgrade() */
    int rows;
    int told_severity;
    struct strv told;
    /* not stored */
    bool is_dirty;
    struct strv gone; /* alerts that were dropped, whose rows are still in the store */
};
extern const struct field_table alert_table_of_alert, incident_table, telling_table;

static inline struct alert *incident_alert(const struct incident *i, size_t k)
{
    return &((struct alert *)i->alerts.v)[k];
}

static inline struct telling *incident_telling_at(const struct incident *i, size_t k)
{
    return &((struct telling *)i->tellings.v)[k];
}

/* How a cause names a subject: "node/w1". */
void alert_subject_name(char ret[static ALERT_SUBJECT_MAX], int of, const char *name);
void incident_free(struct incident *i);
/* A row of the store, whichever version wrote it, becomes as this one writes it. */
void incident_upgrade(struct incident *i);
/* Its news were told: the caller is done with it. */
void incident_took(struct incident *i);
size_t incident_open_alerts(const struct incident *i);
/* The user whose things all of it is about; NULL: nobody's, or of several. Borrowed. */
const char *incident_user(const struct incident *i);
/* A message of it, or that was the first to tell of one of its alerts, is on its way. */
bool incident_waits(const struct incident *i);
/* Is there a place for one more alert? One that is over makes one, once each receiver that its
 * routes name was told of it and no message that named it first is on its way any more. */
bool incident_has_room(const struct incident *i);
/* Which alert goes before one more comes; alerts.n: none has to, or none may. */
size_t incident_spare(const struct incident *i);
void incident_drop_alert(struct incident *i, size_t k);
/* This alert of it has changed. */
void incident_touch(struct incident *i, struct alert *a);
/* What is said of it, as of now; what is no fact any more stays. True if that changed a text. */
bool alert_take_facts(struct alert *a,
                      const struct alert_fact *v,
                      size_t n,
                      const struct alert_saying *says);
/* NULL: it does not concern that receiver, as far as anybody has asked. */
struct telling *incident_telling(const struct incident *i, const char *receiver);
/* The one of this receiver; made where there is none, with the state `state`. */
struct telling *incident_telling_make(struct incident *i, const char *receiver, int state);
/* What became of a message: state and, from the receiver, why. */
void incident_settle(struct incident *i,
                     const char *receiver,
                     enum telling_state state,
                     const char *why);
/* It was over and goes on. Whoever was told of its end is told of its begin again. */
void incident_reopen(struct incident *i);
