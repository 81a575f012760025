/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_tell.c - what changed is stored, told as events, and put to receivers; see alerts_run.h.
 *
 * An incident is told once when it begins (a few seconds later, so that what belongs together is
 * one message), when it grows worse, when nobody acknowledges it, and when it is over. Who finds
 * out later that he is concerned is told then. */
#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts_run.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

enum { INCIDENT_ROW_MAX = 4 << 20, ALERT_SAID_MAX = 4096 };

#define DELIVERY(key, ftype, member, ...)                                                          \
    FIELD_AT(delivery, key, ftype, member, .flags = FIELD_STORED, __VA_ARGS__)
static const struct field delivery_rows[] = {
    DELIVERY("id", FIELD_TEXT, id, .size = DELIVERY_ID_MAX),
    DELIVERY("receiver", FIELD_STR, receiver),
    DELIVERY("payload", FIELD_JSON, payload),
    DELIVERY("at", FIELD_TIME, at),
};
const struct field_table delivery_table = FIELD_TABLE(NULL, delivery_rows, delivery);

void alerts_new_id(char id[static DELIVERY_ID_MAX])
{
    unsigned char bytes[12];
    char hex[2 * sizeof(bytes) + 1];
    random_bytes(bytes, sizeof(bytes));
    text_printf_to(id, DELIVERY_ID_MAX, "msg_%s", str_hex(bytes, sizeof(bytes), hex));
}

void alerts_deliver(struct alerts *as, const char *receiver, const char *id, const char *payload)
{
    struct outlet *o = outlet_find(as, receiver);
    if (!o || o->waiting >= DELIVERIES_MAX) {
        log_err("alerts", "the message '%s' finds no room at receiver '%s'", id, receiver);
        return;
    }
    struct delivery *d = xcalloc(1, sizeof(*d));
    text_copy(d->id, id);
    d->receiver = xstrdup(receiver);
    d->payload = xstrdup(payload);
    d->at = clock_wall();
    _cleanup_(freep) char *body = field_to_text(&delivery_table, d, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = ALERTS_ENTRY_DELIVERY, .name = d->id, .body = body, .at = d->at};
    store_put_entry(as->p.store, &row);
    d->batch = store_batch(as->p.store);
    outlet_add(o, d);
}

/* ---- events ---- */

static void alerts_note(struct alerts *as, const struct alert *a, const char *kind, const char *by)
{
    struct buf text = BUF_INIT(ALERT_SAID_MAX);
    struct access_thing thing = alerts_thing(a);
    char object[ALERT_ID_MAX + 8], shown[600];
    text_printf(object, "alert/%s", a->id);
    alert_sentence(a, MESSAGE_ENGLISH, false, &text);
    text_copy(shown, buf_str(&text));
    struct events_note note = {.thing = &thing,
                               .kind = kind,
                               .actor = by,
                               .object = object,
                               .code = a->rule,
                               .text = shown};
    events_add(as->p.events, &note, clock_wall());
    log_info("alerts", "%s: [%s] %s alert=%s", kind, alert_severity_names[a->severity], shown,
             a->id);
    buf_release(&text);
}

static void tell_news(struct alerts *as, struct incident *i)
{
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        if (a->news & ALERT_FIRED)
            alerts_note(as, a, "alert_fired", "argusd");
        if (a->news & ALERT_ACKED)
            alerts_note(as, a, "alert_acknowledged", str_or(a->acked_by, "argusd"));
        if (a->news & ALERT_ENDED)
            alerts_note(as, a, "alert_ended", "argusd");
    }
}

static void incident_save(struct alerts *as, const struct incident *i)
{
    _cleanup_(freep) char *body = field_to_text(&incident_table, i, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = ALERTS_ENTRY_INCIDENT, .name = i->id, .body = body, .at = i->opened_at};
    store_put_entry(as->p.store, &row);
}

/* ---- messages ---- */

static void incident_put(struct alerts *as,
                         const struct incident *i,
                         enum alert_what what,
                         const char *receiver,
                         usec_t now)
{
    char id[DELIVERY_ID_MAX];
    struct buf payload = BUF_INIT(ALERT_PAYLOAD_MAX);
    alerts_new_id(id);
    incident_payload(i, what, id, now, &payload);
    if (payload.failed)
        log_err("alerts", "the message of incident '%s' is too large", i->id);
    else
        alerts_deliver(as, receiver, id, buf_str(&payload));
    buf_release(&payload);
}

/* Its begin, to whom it is new; that it is worse, to all. True if anything changed. */
static bool tell_open(struct alerts *as, struct incident *i, usec_t now)
{
    struct strv to = {0};
    bool grew = i->told_severity >= 0 && i->severity > i->told_severity, changed = false;
    if (now < i->opened_at + as->config->wait || alert_is_quiet(as->config, i->severity, now))
        return false;
    alert_route(as->config, i, as->silences, as->n_silences, now, &to);
    for (size_t k = 0; k < to.n; k++) {
        bool knows = strv_has(&i->told, to.v[k]);
        if (knows && !grew)
            continue;
        incident_put(as, i, knows ? ALERT_GREW : ALERT_OPENED, to.v[k], now);
        if (!knows)
            strv_add(&i->told, to.v[k]);
        changed = true;
    }
    strv_release(&to);
    if (!changed)
        return false;
    i->told_at = i->told_at ? i->told_at : now;
    i->told_severity = i->severity;
    return true;
}

static bool tell_escalation(struct alerts *as, struct incident *i, usec_t now)
{
    const struct alert_config *c = as->config;
    if (!c->escalate_after || i->escalations || !i->told_at || i->severity < c->escalate_least ||
        now < i->told_at + c->escalate_after || incident_is_acked(i))
        return false;
    for (size_t k = 0; k < c->escalate_to.n; k++) {
        incident_put(as, i, ALERT_ESCALATED, c->escalate_to.v[k], now);
        if (!strv_has(&i->told, c->escalate_to.v[k]))
            strv_add(&i->told, c->escalate_to.v[k]);
    }
    i->escalations++;
    return true;
}

/* What an event alone fired has no end to tell of. */
static bool has_an_end(const struct incident *i)
{
    bool any = false;
    for (size_t k = 0; k < i->alerts.n; k++)
        any = any || !incident_alert(i, k)->keep;
    return any;
}

static bool tell_end(struct alerts *as, struct incident *i, usec_t now)
{
    if (i->told_end || i->merged_into || !i->told.n || !has_an_end(i) ||
        now < i->closed_at + as->config->settle)
        return false;
    for (size_t k = 0; k < i->told.n; k++) {
        const struct alert_receiver *r = alert_config_find(as->config, i->told.v[k]);
        if (r && r->resolved)
            incident_put(as, i, ALERT_RESOLVED, i->told.v[k], now);
    }
    i->told_end = true;
    return true;
}

/* Both are told, also when the first one is news. */
static bool tell_open_and_higher(struct alerts *as, struct incident *i, usec_t now)
{
    bool open = tell_open(as, i, now), higher = tell_escalation(as, i, now);
    return open || higher;
}

void alerts_settle(struct alerts *as, usec_t now)
{
    struct incident *i;
    for (size_t k = 0; (i = incident_at(as->table, k)); k++)
        i->is_dirty |= i->open ? tell_open_and_higher(as, i, now) : tell_end(as, i, now);
    while ((i = alert_table_dirty(as->table))) {
        tell_news(as, i);
        incident_took(i);
        incident_save(as, i);
    }
}
