/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_send.c - deliveries on their way: one outlet per receiver, with its own courier, line and
 * pace; see alerts_run.h.
 *
 * The oldest goes first. Where the pace of a receiver leaves fewer messages than wait, people get
 * several in one; programs get each for itself. A delivery leaves the store when it was taken or
 * refused for good. Alertmanager forgets what is not repeated: it hears of what is open each
 * minute. */
#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts_run.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

static const usec_t GIVE_UP_AFTER = 3 * USEC_DAY, REFRESH_EVERY = USEC_MIN;

static void delivery_free(struct delivery *d)
{
    field_release(&delivery_table, d);
    free(d);
}

struct outlet *outlet_find(const struct alerts *as, const char *name)
{
    for (size_t i = 0; i < as->n_outlets; i++)
        if (str_eq(as->outlets[i].receiver->name, name))
            return &as->outlets[i];
    return NULL;
}

void outlets_open(struct alerts *as)
{
    as->n_outlets = as->config->n_receivers;
    as->outlets = xcalloc(as->n_outlets ? as->n_outlets : 1, sizeof(*as->outlets));
    for (size_t i = 0; i < as->n_outlets; i++) {
        struct outlet *o = &as->outlets[i];
        struct err err = {0};
        *o = (struct outlet){.alerts = as, .receiver = &as->config->receivers[i]};
        o->tail = &o->first;
        text_printf(o->said, "receiver '%s'", o->receiver->name);
        struct courier_parts parts = {.loop = as->p.loop,
                                      .secrets = as->p.secrets,
                                      .secrets_of = as->config->secrets_of,
                                      .to = o->receiver,
                                      .networks = &as->p.settings->call_networks,
                                      .log = "alerts",
                                      .said = o->said};
        if (o->receiver->kind != ALERT_KIND_LOG && courier_new(&parts, &o->courier, &err) < 0)
            log_err("alerts", "receiver '%s' cannot be used: %s", o->receiver->name, err.text);
    }
}

void outlets_close(struct alerts *as)
{
    for (size_t i = 0; i < as->n_outlets; i++) {
        courier_free(as->outlets[i].courier);
        as->outlets[i].courier = NULL;
    }
}

void outlets_free(struct alerts *as)
{
    for (size_t i = 0; i < as->n_outlets; i++)
        for (struct delivery *d = as->outlets[i].first, *next; d; d = next) {
            next = d->next;
            delivery_free(d);
        }
    free(as->outlets);
}

void outlet_add(struct outlet *o, struct delivery *d)
{
    *o->tail = d;
    o->tail = &d->next;
    o->waiting++;
}

static void outlet_pop(struct outlet *o)
{
    struct delivery *d = o->first;
    o->first = d->next;
    if (!o->first)
        o->tail = &o->first;
    o->waiting--;
    store_remove_entry(o->alerts->p.store, ALERTS_ENTRY_DELIVERY, d->id);
    delivery_free(d);
}

/* ---- pace ---- */

static int64_t outlet_room(const struct outlet *o, usec_t now)
{
    int64_t used = 0, most = o->receiver->per_minute;
    if (most <= 0 || most > (int64_t)array_len(o->sent))
        most = (int64_t)array_len(o->sent);
    for (size_t i = 0; i < array_len(o->sent); i++)
        used += o->sent[i] && now - o->sent[i] < USEC_MIN;
    return o->receiver->per_minute <= 0 || o->receiver->per_minute > most ? INT64_MAX : most - used;
}

static void outlet_note_sent(struct outlet *o, usec_t now)
{
    o->sent[o->next_sent++ % array_len(o->sent)] = now;
}

/* ---- how it ended ---- */

static void outlet_tell_refused(struct outlet *o, const char *why)
{
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    char object[80], text[500];
    text_printf(object, "receiver/%s", o->receiver->name);
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_STR("receiver", o->receiver->name), MESSAGE_STR("answer", why)));
    struct events_note note = {.thing = &thing,
                               .kind = "alert_refused",
                               .actor = "argusd",
                               .object = object,
                               .code = "alert_refused",
                               .text = text};
    events_add(o->alerts->p.events, &note, clock_wall());
    log_err("alerts", "%s", text);
}

static void outlet_took(struct outlet *o, const char *why_not, usec_t now)
{
    if (o->courier)
        courier_settled(o->courier, why_not);
    if (why_not && !o->is_refresh)
        outlet_tell_refused(o, why_not);
    for (; o->sending > 0; o->sending--) {
        if (why_not)
            o->refused++;
        else
            o->taken++;
        outlet_pop(o);
    }
    o->refreshed = now;
}

static void outlet_on_answer(enum alert_verdict v, const char *why, void *arg)
{
    struct outlet *o = arg;
    usec_t now = clock_mono();
    bool old = o->sending && o->first->at + GIVE_UP_AFTER < clock_wall();
    if (v == ALERT_TAKEN)
        outlet_took(o, NULL, now);
    else if (v == ALERT_REFUSED || (v == ALERT_AGAIN && old))
        outlet_took(o, why, now);
    else
        courier_failed(o->courier, why, now);
    o->sending = 0;
    o->is_refresh = false;
    outlets_turn(o->alerts);
}

/* ---- sending ---- */

static void outlet_send(struct outlet *o, const char *id, const json_t *const *payloads, size_t n)
{
    struct courier_message m = {.id = id, .payloads = payloads, .n = n};
    usec_t now = clock_mono();
    bool began = courier_send(o->courier, &m, outlet_on_answer, o, now);
    if (began)
        outlet_note_sent(o, now);
    else
        o->sending = 0;
}

static void outlet_log(struct outlet *o)
{
    while (o->first && o->first->batch <= store_durable(o->alerts->p.store)) {
        _cleanup_(json_unrefp) json_t *p = NULL;
        const char *text = o->first->payload;
        if (json_parse(text, strlen(text), ALERT_PAYLOAD_MAX, &p, NULL) == 0)
            log_warn("alert", "%s message=%s",
                     json_get_str(
                         p, o->receiver->language == MESSAGE_CHINESE ? "title_zh" : "title", ""),
                     o->first->id);
        o->sending = 1;
        outlet_took(o, NULL, clock_mono());
    }
}

/* How many of its first ones go in one message: those that are on disk. */
static size_t outlet_batch(const struct outlet *o, int64_t room)
{
    bool for_people = o->receiver->kind != ALERT_KIND_WEBHOOK;
    size_t n = 0;
    uint64_t durable = store_durable(o->alerts->p.store);
    for (const struct delivery *d = o->first; d && d->batch <= durable && n < OUTLET_MERGES;
         d = d->next)
        n++;
    return n && (!for_people || (int64_t)o->waiting <= room / 2) ? 1 : n;
}

static void outlet_send_first(struct outlet *o, size_t n)
{
    json_t *payloads[OUTLET_MERGES] = {0};
    const struct delivery *d = o->first;
    for (size_t i = 0; i < n; i++, d = d->next)
        if (json_parse(d->payload, strlen(d->payload), ALERT_PAYLOAD_MAX, &payloads[i], NULL) < 0)
            payloads[i] = json_object(); /* our own row: never */
    o->sending = n;
    outlet_send(o, o->first->id, (const json_t *const *)payloads, n);
    for (size_t i = 0; i < n; i++)
        json_decref(payloads[i]);
}

/* All that is open and that it was told of, once more. */
static void outlet_refresh(struct outlet *o)
{
    json_t *payloads[OUTLET_MERGES] = {0};
    struct incident *x;
    size_t n = 0;
    for (size_t i = 0; (x = incident_at(o->alerts->table, i)) && n < OUTLET_MERGES; i++) {
        struct buf text = BUF_INIT(ALERT_PAYLOAD_MAX);
        if (x->open && strv_has(&x->told, o->receiver->name)) {
            incident_payload(x, ALERT_GREW, "", clock_wall(), &text);
            n += json_parse(buf_str(&text), text.len, ALERT_PAYLOAD_MAX, &payloads[n], NULL) == 0;
        }
        buf_release(&text);
    }
    o->is_refresh = n > 0;
    o->refreshed = clock_mono();
    if (n)
        outlet_send(o, "", (const json_t *const *)payloads, n);
    for (size_t i = 0; i < n; i++)
        json_decref(payloads[i]);
}

static void outlet_turn(struct outlet *o, usec_t now)
{
    int64_t room = outlet_room(o, now);
    if (o->receiver->kind == ALERT_KIND_LOG) {
        outlet_log(o);
        return;
    }
    if (!o->courier || !courier_is_ready(o->courier, now) || room <= 0)
        return;
    size_t n = o->first ? outlet_batch(o, room) : 0;
    if (n)
        outlet_send_first(o, n);
    else if (o->receiver->kind == ALERT_KIND_ALERTMANAGER && now - o->refreshed >= REFRESH_EVERY)
        outlet_refresh(o);
}

void outlets_turn(struct alerts *as)
{
    usec_t now = clock_mono();
    for (size_t i = 0; !as->closing && i < as->n_outlets; i++)
        outlet_turn(&as->outlets[i], now);
}

bool alerts_outlet_at(const struct alerts *as, size_t i, struct alerts_outlet *ret)
{
    if (i >= as->n_outlets)
        return false;
    const struct outlet *o = &as->outlets[i];
    struct courier_state state = {.trouble = ""};
    if (o->courier)
        courier_state(o->courier, &state);
    *ret = (struct alerts_outlet){.receiver = o->receiver,
                                  .waiting = o->waiting,
                                  .taken = o->taken,
                                  .refused = o->refused,
                                  .taken_at = state.taken_at,
                                  .failing_since =
                                      state.failing_for ? clock_wall() - state.failing_for : 0,
                                  .trouble = state.trouble};
    return true;
}
