/* SPDX-License-Identifier: Apache-2.0 */
/* incident.c - see incident.h. A row that an older argusd wrote has a list of receivers in place of
 * tellings: it is read as "they took it", and an incident of such a row that is over is not told
 * anew. Rows of a later one had tellings, and the alerts in them. */
#include "core/alert/incident.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

enum { ROWS_WITH_TELLINGS = 1, ROWS_OF_ALERTS = 2, ALERT_FACTS_MAX = 60 };

const char *const telling_state_names[] = {
#define X(e, word) [TELLING_##e] = (word),
    TELLING_TABLE(X)
#undef X
        NULL};

#define ALERT(key, ftype, member, ...) FIELD_AT(alert, key, ftype, member, __VA_ARGS__)
enum { ALERT_KEPT = FIELD_STORED };
static const struct field alert_rows[] = {
    ALERT("id", FIELD_TEXT, id, .size = ALERT_ID_MAX, .flags = ALERT_KEPT),
    ALERT("incident", FIELD_TEXT, incident, .size = ALERT_ID_MAX, .flags = ALERT_KEPT),
    ALERT("rule", FIELD_STR, rule, .flags = ALERT_KEPT),
    ALERT("of", FIELD_ENUM, of, .names = alert_of_names, .flags = ALERT_KEPT),
    ALERT("severity", FIELD_ENUM, severity, .names = alert_severity_names, .flags = ALERT_KEPT),
    ALERT("name", FIELD_STR, name, .flags = ALERT_KEPT),
    ALERT("owner", FIELD_STR, owner, .flags = ALERT_KEPT),
    ALERT("project", FIELD_STR, project, .flags = ALERT_KEPT),
    ALERT("args", FIELD_JSON, args, .flags = ALERT_KEPT),
    ALERT("text", FIELD_STR, text, .flags = ALERT_KEPT),
    ALERT("zh", FIELD_STR, zh, .flags = ALERT_KEPT),
    ALERT("fix", FIELD_STR, fix, .flags = ALERT_KEPT),
    ALERT("fix_zh", FIELD_STR, fix_zh, .flags = ALERT_KEPT),
    ALERT("suspects", FIELD_STRV, suspects, .flags = ALERT_KEPT),
    ALERT("notify", FIELD_STRV, notify, .flags = ALERT_KEPT),
    ALERT("told", FIELD_STRV, told, .flags = ALERT_KEPT),
    ALERT("gpus", FIELD_REAL, gpus, .flags = ALERT_KEPT),
    ALERT("lost", FIELD_REAL, lost, .flags = ALERT_KEPT),
    ALERT("open", FIELD_BOOL, open, .flags = ALERT_KEPT),
    ALERT("count", FIELD_INT, count, .flags = ALERT_KEPT),
    ALERT("since", FIELD_TIME, since, .flags = ALERT_KEPT),
    ALERT("ended_at", FIELD_TIME, ended_at, .flags = ALERT_KEPT),
    ALERT("last_at", FIELD_TIME, last_at, .flags = ALERT_KEPT),
    ALERT("keep", FIELD_SPAN, keep, .flags = ALERT_KEPT),
    ALERT("acked_at", FIELD_TIME, acked_at, .flags = ALERT_KEPT),
    ALERT("acked_by", FIELD_STR, acked_by, .flags = ALERT_KEPT),
    ALERT("ack_note", FIELD_STR, ack_note, .flags = ALERT_KEPT),
};
const struct field_table alert_table_of_alert = FIELD_TABLE(NULL, alert_rows, alert);

#define TELLING(key, ftype, member, ...) FIELD_AT(telling, key, ftype, member, __VA_ARGS__)
enum { TELLING_KEPT = FIELD_STORED | FIELD_SHOWN };
static const struct field telling_rows[] = {
    TELLING("receiver", FIELD_STR, receiver, .flags = TELLING_KEPT | FIELD_ALWAYS),
    TELLING("state",
            FIELD_ENUM,
            state,
            .names = telling_state_names,
            .flags = TELLING_KEPT,
            .doc = "of the last message, or why there was none"),
    TELLING("why",
            FIELD_STR,
            why,
            .flags = TELLING_KEPT,
            .doc = "what the receiver said; told to admins"),
    TELLING("at", FIELD_TIME, at, .flags = TELLING_KEPT, .doc = "of the last message"),
    TELLING("messages", FIELD_INT, messages, .flags = TELLING_KEPT),
    TELLING("severity", FIELD_INT32, severity, .flags = FIELD_STORED),
    TELLING("begun", FIELD_BOOL, begun, .flags = FIELD_STORED),
    TELLING("ended", FIELD_BOOL, ended, .flags = FIELD_STORED),
    TELLING("escalated", FIELD_BOOL, escalated, .flags = FIELD_STORED),
    TELLING("became", FIELD_ENUM, became, .names = telling_state_names, .flags = FIELD_STORED),
    TELLING("became_why", FIELD_STR, became_why, .flags = FIELD_STORED),
};
const struct field_table telling_table = FIELD_TABLE("Telling", telling_rows, telling);

#define INCIDENT(key, ftype, member, ...) FIELD_AT(incident, key, ftype, member, __VA_ARGS__)
static const struct field incident_rows[] = {
    INCIDENT("id", FIELD_TEXT, id, .size = ALERT_ID_MAX, .flags = FIELD_STORED),
    INCIDENT("seq", FIELD_INT, seq, .flags = FIELD_STORED),
    INCIDENT("cause", FIELD_STR, cause, .flags = FIELD_STORED),
    INCIDENT("severity",
             FIELD_ENUM,
             severity,
             .names = alert_severity_names,
             .flags = FIELD_STORED),
    INCIDENT("open", FIELD_BOOL, open, .flags = FIELD_STORED),
    INCIDENT("opened_at", FIELD_TIME, opened_at, .flags = FIELD_STORED),
    INCIDENT("closed_at", FIELD_TIME, closed_at, .flags = FIELD_STORED),
    INCIDENT("alerts", FIELD_LIST, alerts, .of = &alert_table_of_alert, .flags = FIELD_STORED),
    INCIDENT("left_out", FIELD_INT, left_out, .flags = FIELD_STORED),
    INCIDENT("merged_into", FIELD_STR, merged_into, .flags = FIELD_STORED),
    INCIDENT("tellings", FIELD_LIST, tellings, .of = &telling_table, .flags = FIELD_STORED),
    INCIDENT("told_at", FIELD_TIME, told_at, .flags = FIELD_STORED),
    INCIDENT("told_end", FIELD_BOOL, told_end, .flags = FIELD_STORED),
    INCIDENT("escalations", FIELD_INT, escalations, .flags = FIELD_STORED),
    INCIDENT("rows", FIELD_INT32, rows, .flags = FIELD_STORED),
    INCIDENT("told_severity", FIELD_INT32, told_severity, .flags = FIELD_STORED),
    INCIDENT("told", FIELD_STRV, told, .flags = FIELD_STORED),
};
const struct field_table incident_table = FIELD_TABLE(NULL, incident_rows, incident);

void alert_subject_name(char ret[static ALERT_SUBJECT_MAX], int of, const char *name)
{
    text_printf_to(ret, ALERT_SUBJECT_MAX, "%s/%.250s", alert_of_names[of], name);
}

void incident_free(struct incident *i)
{
    if (!i)
        return;
    field_release(&incident_table, i);
    strv_release(&i->gone);
    free(i);
}

void incident_took(struct incident *i)
{
    i->is_dirty = false;
    for (size_t k = 0; k < i->alerts.n; k++)
        incident_alert(i, k)->news = 0;
}

size_t incident_open_alerts(const struct incident *i)
{
    size_t n = 0;
    for (size_t k = 0; k < i->alerts.n; k++)
        n += incident_alert(i, k)->open;
    return n;
}

const char *incident_user(const struct incident *i)
{
    const char *user = i->alerts.n ? incident_alert(i, 0)->owner : NULL;
    for (size_t k = 1; k < i->alerts.n && user; k++)
        if (!str_eq(incident_alert(i, k)->owner, user))
            user = NULL;
    return user;
}

/* ---- room ---- */

bool incident_waits(const struct incident *i)
{
    bool any = false;
    for (size_t k = 0; k < i->tellings.n; k++)
        any = any || incident_telling_at(i, k)->waits;
    for (size_t k = 0; k < i->alerts.n; k++)
        any = any || incident_alert(i, k)->waits;
    return any;
}

static bool alert_is_spare(const struct incident *i, const struct alert *a)
{
    return !a->open && !a->waits && (a->is_told || i->told_end);
}

static size_t incident_first_spare(const struct incident *i)
{
    size_t k = 0;
    while (k < i->alerts.n && !alert_is_spare(i, incident_alert(i, k)))
        k++;
    return k;
}

bool incident_has_room(const struct incident *i)
{
    return i->alerts.n < INCIDENT_ALERTS_MAX || incident_first_spare(i) < i->alerts.n;
}

size_t incident_spare(const struct incident *i)
{
    return i->alerts.n < INCIDENT_ALERTS_MAX ? i->alerts.n : incident_first_spare(i);
}

void incident_drop_alert(struct incident *i, size_t k)
{
    strv_add(&i->gone, incident_alert(i, k)->id);
    field_release(&alert_table_of_alert, incident_alert(i, k));
    memmove(incident_alert(i, k), incident_alert(i, k + 1),
            (--i->alerts.n - k) * sizeof(struct alert));
    i->left_out++;
    i->is_dirty = true;
}

/* ---- alerts ---- */

void incident_touch(struct incident *i, struct alert *a)
{
    a->is_dirty = true;
    i->is_dirty = true;
}

static void put_fact(json_t *args, const struct alert_fact *f)
{
    if (f->text)
        (void)json_object_set_new(args, f->name, json_string(f->text)); /* no text: left out */
    else if (isfinite(f->number))
        (void)json_object_set_new(args, f->name, json_real(f->number));
}

static void put_saying(json_t *args, const struct alert_saying *m)
{
    (void)json_object_set_new(
        args, m->name, json_pack("{ss,ss}", ALERT_SAID_CODE, m->code, ALERT_SAID_ARGS, m->args));
}

bool alert_take_facts(struct alert *a,
                      const struct alert_fact *v,
                      size_t n,
                      const struct alert_saying *says)
{
    _cleanup_(json_unrefp) json_t *args = NULL;
    if (!a->args || json_parse(a->args, strlen(a->args), ALERT_ARGS_MAX, &args, NULL) < 0)
        args = json_object();
    for (size_t i = 0; i < n && json_object_size(args) < ALERT_FACTS_MAX; i++)
        if (says->name && str_eq(says->name, v[i].name))
            put_saying(args, says);
        else
            put_fact(args, &v[i]);
    char *text = json_dumps(args, JSON_COMPACT);
    bool differs = text && strlen(text) <= ALERT_ARGS_MAX && !str_eq(text, a->args);
    if (differs)
        set_str(&a->args, text);
    free(text);
    return differs;
}

/* ---- tellings ---- */

struct telling *incident_telling(const struct incident *i, const char *receiver)
{
    for (size_t k = 0; k < i->tellings.n; k++)
        if (str_eq(incident_telling_at(i, k)->receiver, receiver))
            return incident_telling_at(i, k);
    return NULL;
}

struct telling *incident_telling_make(struct incident *i, const char *receiver, int state)
{
    struct telling *t = incident_telling(i, receiver);
    if (t)
        return t;
    struct field_list *l = &i->tellings;
    l->v = xrealloc(l->v, l->n + 1, sizeof(*t));
    t = incident_telling_at(i, l->n++);
    *t = (struct telling){
        .receiver = xstrdup(receiver), .state = state, .severity = TELLING_NOTHING};
    i->is_dirty = true;
    return t;
}

void incident_settle(struct incident *i,
                     const char *receiver,
                     enum telling_state state,
                     const char *why)
{
    struct telling *t = incident_telling_make(i, receiver, (int)state);
    t->state = (int)state;
    set_str(&t->why, why && *why ? why : NULL);
    i->is_dirty = true;
}

void incident_reopen(struct incident *i)
{
    bool anew = false;
    i->open = true;
    i->closed_at = 0;
    i->told_end = false;
    for (size_t k = 0; k < i->tellings.n; k++) {
        struct telling *t = incident_telling_at(i, k);
        if (!t->ended)
            continue;
        t->begun = t->ended = t->escalated = false;
        t->severity = TELLING_NOTHING;
        anew = true;
    }
    if (anew) {
        i->told_at = 0;
        i->escalations = 0;
    }
}

static void upgrade_tellings(struct incident *i)
{
    for (size_t r = 0; r < i->told.n; r++) {
        struct telling *t = incident_telling_make(i, i->told.v[r], TELLING_TAKEN);
        t->begun = true;
        t->ended = i->told_end;
        t->escalated = i->escalations > 0;
        t->severity = i->told_severity;
        t->at = i->told_at;
        for (size_t k = 0; k < i->alerts.n; k++)
            strv_add(&incident_alert(i, k)->told, i->told.v[r]);
    }
    i->told_end |= !i->open && !i->told.n;
    strv_release(&i->told);
}

void incident_upgrade(struct incident *i)
{
    if (i->rows < ROWS_WITH_TELLINGS)
        upgrade_tellings(i);
    for (size_t k = 0; i->rows < ROWS_OF_ALERTS && k < i->alerts.n; k++) {
        text_copy(incident_alert(i, k)->incident, i->id);
        incident_touch(i, incident_alert(i, k));
    }
    i->rows = ROWS_OF_ALERTS;
}
