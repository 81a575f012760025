/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_tell.c - what changed is stored, told as events, and put to receivers; see alerts_run.h.
 *
 * What is told, and when, is decided by core/alert/alert_tell.c. Here a message becomes a delivery
 * of the same batch as the incident's row, so that no crash parts the two. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts_run.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "core/alert/alert_tell.h"
#include "core/alert/incident_rows.h"

enum { ALERT_SAID_MAX = 4096 };

void alerts_new_id(char id[static DELIVERY_ID_MAX])
{
    char hex[2 * 12 + 1];
    text_printf_to(id, DELIVERY_ID_MAX, "msg_%s", random_hex(hex));
}

enum telling_state alerts_has_room(const struct alerts *as, const struct delivery_form *form)
{
    const struct outlet *o = outlet_find(as, form->receiver);
    return o ? deliveries_room(&o->waiting, form->user) : TELLING_NOT_THERE;
}

void delivery_store(struct alerts *as, const struct delivery *d)
{
    _cleanup_(freep) char *body = field_to_text(&delivery_table, d, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = ALERTS_ENTRY_DELIVERY, .name = d->id, .body = body, .at = d->at};
    store_put_entry(as->p.store, &row);
}

void alerts_deliver(struct alerts *as,
                    const struct delivery_form *form,
                    const char *id,
                    const char *payload)
{
    struct outlet *o = outlet_find(as, form->receiver);
    struct delivery *d = xcalloc(1, sizeof(*d));
    assert(o); /* alerts_has_room() */
    text_copy(d->id, id);
    d->receiver = xstrdup(form->receiver);
    d->incident = xstrdup(form->incident);
    d->user = xstrdup(form->user);
    d->severity = form->severity;
    d->at_once = form->at_once;
    d->payload = xstrdup(payload);
    if (form->way)
        field_assign(&alert_way_table, &d->way, form->way, FIELD_STORED);
    d->at = clock_wall();
    delivery_store(as, d);
    d->batch = store_batch(as->p.store);
    deliveries_add(&o->waiting, d);
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

static void incident_put_row(enum incident_row of,
                             const char *id,
                             const char *body,
                             usec_t at,
                             void *arg)
{
    struct alerts *as = arg;
    const char *kind = of == INCIDENT_ROW ? ALERTS_ENTRY_INCIDENT : ALERTS_ENTRY_ALERT;
    struct store_entry row = {.kind = kind, .name = id, .body = body, .at = at};
    if (body)
        store_put_entry(as->p.store, &row);
    else
        store_remove_entry(as->p.store, kind, id);
}

void alerts_forget(struct alerts *as, const struct incident *i)
{
    incident_erase(i, incident_put_row, as);
}

/* ---- messages ---- */

static enum telling_state incident_put(const struct incident *view,
                                       enum alert_what what,
                                       const char *receiver,
                                       const struct alert_way *way,
                                       usec_t now,
                                       void *arg)
{
    struct alerts *as = arg;
    char id[DELIVERY_ID_MAX];
    struct delivery_form form = {.receiver = receiver,
                                 .incident = view->id,
                                 .user = incident_user(view),
                                 .way = way,
                                 .severity = view->severity,
                                 .at_once = str_starts(view->cause, "argusd/")};
    enum telling_state s = alerts_has_room(as, &form);
    if (s != TELLING_ON_THE_WAY)
        return s;
    struct buf payload = BUF_INIT(ALERT_PAYLOAD_MAX);
    alerts_new_id(id);
    incident_payload(view, what, id, now, &payload);
    alerts_deliver(as, &form, id, buf_str(&payload));
    buf_release(&payload);
    return s;
}

/* all: also those of which nothing changed. An event concerns few incidents, of many. */
static void settle_some(struct alerts *as, bool all, usec_t now)
{
    struct incident *i;
    struct tell_parts parts = {.config = as->config,
                               .silences = as->silences,
                               .n_silences = as->n_silences,
                               .put = incident_put,
                               .arg = as};
    for (size_t k = 0; (i = incident_at(as->table, k)); k++) {
        if (all || i->is_dirty)
            incident_tell(i, &parts, now);
        if (!i->is_dirty)
            continue;
        tell_news(as, i);
        incident_took(i);
        incident_write(i, incident_put_row, as);
    }
}

void alerts_settle(struct alerts *as, usec_t now)
{
    settle_some(as, false, now);
}

void alerts_settle_all(struct alerts *as, usec_t now)
{
    settle_some(as, true, now);
}

static struct alert_way_of delivery_way(const struct delivery *d)
{
    return (struct alert_way_of){.incident = d->incident, .receiver = d->receiver, .way = &d->way};
}

void alerts_settled(struct alerts *as,
                    const struct delivery *d,
                    enum telling_state state,
                    const char *why)
{
    struct alert_way_of m = delivery_way(d);
    struct incident *i = d->incident ? incident_find(as->table, d->incident) : NULL;
    bool was_dirty = i && i->is_dirty;
    i = alert_way_end(as->table, &m, state, why);
    if (!i)
        return; /* a test message, or one of an incident that is forgotten */
    i->is_dirty = was_dirty;
    incident_write(i, incident_put_row, as);
}

enum telling_state alerts_ask_again(const struct alerts *as, const struct delivery *d)
{
    struct alert_way_of m = delivery_way(d);
    struct alert_silences silences = {as->silences, as->n_silences};
    return alert_way_ask(as->table, &m, as->config, silences, clock_wall());
}

void alerts_take_back(struct alerts *as, struct delivery *d, enum telling_state why)
{
    struct alert_way_of m = delivery_way(d);
    log_info("alerts", "the message '%s' to receiver '%s' is taken back: %s", d->id, d->receiver,
             telling_state_names[why]);
    alert_way_take_back(as->table, &m, why);
    store_remove_entry(as->p.store, ALERTS_ENTRY_DELIVERY, d->id);
    delivery_free(d);
}

void alerts_tell_anew(struct alerts *as)
{
    bool was_seeing = as->seeing;
    as->seeing = true;
    alerts_settle(as, clock_wall());
    as->seeing = was_seeing;
}

static void count_way(const struct delivery *d, void *arg)
{
    const struct alerts *as = arg;
    struct alert_way_of m = delivery_way(d);
    alert_way_restore(as->table, &m);
}

void alerts_count_ways(struct alerts *as)
{
    for (size_t i = 0; i < as->n_outlets; i++)
        deliveries_each(&as->outlets[i].waiting, count_way, as);
}
