/* SPDX-License-Identifier: Apache-2.0 */
/* alert_route.h - who is told of what, and when: receivers, routes, quiet hours, escalation (the
 * `alerts` of argus.yaml), and silences. Pure. */
#pragma once
#include "base/doc/problem.h"
#include "core/alert/alert_table.h"

/* X(enumerator, word, messages a minute that its maker takes; 0 = as many as come) */
#define ALERT_KIND_TABLE(X)                                                                        \
    X(WEBHOOK, "webhook", 0)                                                                       \
    X(FEISHU, "feishu", 60)                                                                        \
    X(DINGTALK, "dingtalk", 18)                                                                    \
    X(WECOM, "wecom", 18)                                                                          \
    X(SLACK, "slack", 50)                                                                          \
    X(ALERTMANAGER, "alertmanager", 0)                                                             \
    X(MAIL, "mail", 30)                                                                            \
    X(LOG, "log", 0)
#define X(e, word, most) ALERT_KIND_##e,
enum alert_kind { ALERT_KIND_TABLE(X) ALERT_KIND_END };
#undef X
extern const char *const alert_kind_names[];

struct alert_receiver {
    char *name;
    int kind;
    char *url;             /* http(s), or smtp(s)://host:port */
    char *url_secret;      /* the name of a secret that is the URL */
    char *secret;          /* the name of the secret that signs */
    char *user, *password; /* of SMTP; password: the name of a secret */
    char *from;
    struct strv to;
    char *ca_file;
    int language;
    int64_t per_minute;
    bool resolved; /* it is told of the end, too */
};

struct alert_match {                                  /* what is not given matches all */
    int least;                                        /* severity */
    struct strv rules, kinds, projects, users, names; /* patterns */
};

struct alert_routing {
    struct alert_match match;
    struct strv to;
};

struct alert_config {
    struct alert_rules rules; /* shipped ones, changed by argus.yaml */
    struct alert_receiver *receivers;
    size_t n_receivers;
    struct alert_routing *routes;
    size_t n_routes;
    char *secrets_of; /* "user/NAME" or "project/NAME" */
    usec_t wait;      /* from the first alert to the message */
    usec_t settle;    /* from the last alert's end to the message of the end */
    usec_t every;     /* between two looks at the facts */
    char *quiet_from, *quiet_to, *zone;
    int quiet_below;                         /* what is less severe than this waits */
    int64_t quiet_first, quiet_last, offset; /* minutes; first < 0: there are none */
    usec_t escalate_after;                   /* 0 = never */
    int escalate_least;
    struct strv escalate_to;
};

/* map: the value of `alerts`, NULL for none. All problems go to ps; *ret is whole in any case. */
void alert_config_read(const struct node *map, struct alert_config *ret, struct problems *ps);
void alert_config_release(struct alert_config *c);
const struct alert_receiver *alert_config_find(const struct alert_config *c, const char *name);

/* Checks an item of a JobSpec's notify: "NAME", or "NAME:failed,timeout", which says on which ends.
 * Words: succeeded failed stopped timeout interrupted unknown hung verdict metric; without them all
 * but succeeded and stopped. ERR_BAD_SPEC: no such receiver or word; the sentence says which there
 * are. */
must_check int alert_notify_check(const struct alert_config *c, const char *item, struct err *err);
/* Does it want this? Then the name goes to ret. */
bool alert_notify_wants(const char *item, const char *word, struct strv *ret);

/* ---- silences ---- */

struct alert_silence {
    char id[ALERT_ID_MAX];
    struct alert_match match;
    usec_t from, until;
    char *by, *note;
    char *alert; /* only what this one is about, by its id; NULL */
    /* Which is this rule about this subject, under whichever id it comes back. NULL in a row that
     * an older argusd wrote: then the id alone. */
    char *rule, *kind, *name;
};
extern const struct field_table alert_silence_table;
/* Fields of match that say nothing: a silence of everything. */
bool alert_match_is_open(const struct alert_match *m);
bool alert_matches(const struct alert_match *m, const struct alert *a);
/* It silences what this alert is about. */
void alert_silence_cover(struct alert_silence *s, const struct alert *a);
/* Both silence what one alert is about, the same. */
bool alert_silence_is_again(const struct alert_silence *s, const struct alert_silence *other);
bool alert_silence_holds(const struct alert_silence *s, const struct alert *a, usec_t now);

bool alert_is_silenced(const struct alert_silence *silences,
                       size_t n,
                       const struct alert *a,
                       usec_t now);

/* Who is to be told of the alert: names are added to ret. */
void alert_route(const struct alert_config *c, const struct alert *a, struct strv *ret);
bool alert_is_quiet(const struct alert_config *c, int severity, usec_t now);
