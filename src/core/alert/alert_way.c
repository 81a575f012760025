/* SPDX-License-Identifier: Apache-2.0 */
/* alert_way.c - see alert_way.h. Alerts are looked up by their ids, as their incident may have been
 * merged into another one since; tellings by the incident that the message is of. */
#include "core/alert/alert_way.h"

#include <stdlib.h>

#include "base/str.h"

#define WAY(key, ftype, member, ...)                                                               \
    FIELD_AT(alert_way, key, ftype, member, .flags = FIELD_STORED, __VA_ARGS__)
static const struct field way_rows[] = {
    WAY("names", FIELD_STRV, names),
    WAY("fresh", FIELD_STRV, fresh),
    WAY("severity", FIELD_INT32, severity),
    WAY("begun", FIELD_BOOL, begun),
    WAY("escalated", FIELD_BOOL, escalated),
    WAY("told", FIELD_INT32, told),
    WAY("at", FIELD_TIME, at),
    WAY("messages", FIELD_INT, messages),
};
const struct field_table alert_way_table = FIELD_TABLE(NULL, way_rows, alert_way);

static struct incident *way_incident(const struct alert_table *t, const struct alert_way_of *m)
{
    return m->incident ? incident_find(t, m->incident) : NULL;
}

enum telling_state alert_way_ask(const struct alert_table *t,
                                 const struct alert_way_of *m,
                                 const struct alert_config *c,
                                 struct alert_silences silences,
                                 usec_t now)
{
    struct incident *i;
    if (!m->way->names.n || !way_incident(t, m))
        return TELLING_ON_THE_WAY; /* nobody is there who could decide anew */
    for (size_t k = 0; silences.n && k < m->way->names.n; k++) {
        const struct alert *a = alert_table_find(t, m->way->names.v[k], &i);
        if (a && alert_is_silenced(silences.v, silences.n, a, now))
            return TELLING_SILENCED;
    }
    return alert_is_quiet(c, m->way->severity, now) ? TELLING_QUIET : TELLING_ON_THE_WAY;
}

void alert_way_restore(struct alert_table *t, const struct alert_way_of *m)
{
    struct incident *i = way_incident(t, m);
    struct telling *told = i ? incident_telling(i, m->receiver) : NULL;
    if (told)
        told->waits++;
    for (size_t k = 0; told && k < m->way->fresh.n; k++) {
        struct alert *a = alert_table_find(t, m->way->fresh.v[k], &i);
        if (a)
            a->waits++;
    }
}

/* It counts no more. The telling of its incident; NULL: nobody has it. */
static struct telling *way_leave(struct alert_table *t,
                                 const struct alert_way_of *m,
                                 struct incident **ret_of)
{
    struct incident *at;
    *ret_of = way_incident(t, m);
    struct telling *told = *ret_of ? incident_telling(*ret_of, m->receiver) : NULL;
    if (!told || !told->waits)
        return told; /* of a receiver that argus.yaml has no more: nobody counted it */
    told->waits--;
    for (size_t k = 0; k < m->way->fresh.n; k++) {
        struct alert *a = alert_table_find(t, m->way->fresh.v[k], &at);
        if (a && a->waits)
            a->waits--;
    }
    return told;
}

struct incident *alert_way_end(struct alert_table *t,
                               const struct alert_way_of *m,
                               enum telling_state state,
                               const char *why)
{
    struct incident *i;
    (void)way_leave(t, m, &i); /* one that is not there is made */
    if (i)
        incident_settle(i, m->receiver, state, why);
    return i;
}

/* ---- taken back ---- */

static void told_forget(struct incident *i, struct alert *a, const char *receiver)
{
    struct strv kept = {0};
    if (!strv_has(&a->told, receiver))
        return;
    for (size_t k = 0; k < a->told.n; k++)
        if (!str_eq(a->told.v[k], receiver))
            strv_add(&kept, a->told.v[k]);
    strv_release(&a->told);
    a->told = kept;
    a->is_told = false;
    incident_touch(i, a);
}

/* The receiver was not told of this alert: nor of the same state that came back since then and was
 * held to be known to him. */
static void way_forget_alert(struct incident *i, const struct alert *a, const char *receiver)
{
    struct telling *told = incident_telling(i, receiver);
    for (size_t k = 0; k < i->alerts.n; k++) {
        struct alert *b = incident_alert(i, k);
        if (b->of == a->of && b->since >= a->since && str_eq(b->rule, a->rule) &&
            str_eq(b->name, a->name))
            told_forget(i, b, receiver);
    }
    if (told)
        told->ended = false;
    i->told_end = false;
    i->is_dirty = true;
}

static void way_restore_telling(struct incident *i,
                                struct telling *told,
                                const struct alert_way *w,
                                enum telling_state why)
{
    bool any = false;
    if (told->escalated && !w->escalated)
        i->escalations = 0;
    told->begun = w->begun;
    told->escalated = w->escalated;
    told->severity = w->told;
    told->at = w->at;
    told->messages = w->messages;
    told->ended = false;
    if (!w->begun) {
        incident_settle(i, told->receiver, why, NULL);
    } else if (told->state == TELLING_ON_THE_WAY && !told->waits) {
        told->state = told->became == TELLING_ON_THE_WAY ? (int)why : told->became;
        set_str(&told->why, told->became_why);
    }
    for (size_t k = 0; k < i->tellings.n; k++)
        any = any || incident_telling_at(i, k)->begun;
    if (!any)
        i->told_at = 0;
    else if (!i->told_at) /* it was reopened since then */
        i->told_at = told->at;
    i->told_end = false;
    i->is_dirty = true;
}

void alert_way_take_back(struct alert_table *t,
                         const struct alert_way_of *m,
                         enum telling_state why)
{
    struct incident *i, *at;
    struct telling *told = way_leave(t, m, &i);
    if (told)
        way_restore_telling(i, told, m->way, why);
    for (size_t k = 0; k < m->way->fresh.n; k++) {
        const struct alert *a = alert_table_find(t, m->way->fresh.v[k], &at);
        if (a)
            way_forget_alert(at, a, m->receiver);
    }
}
