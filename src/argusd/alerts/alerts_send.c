/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_send.c - deliveries on their way: one outlet per receiver, with its own courier, line and
 * pace; see alerts_run.h.
 *
 * deliveries.h says which goes first. One that fails steps aside until its next try, with what
 * follows of its incident, so that it holds nothing else. Where the pace of a receiver leaves fewer
 * messages than wait, people get several in one; programs get each for itself. The last part of the
 * pace is kept for what is critical: what else there is may not use up a minute of which it needs
 * the next second. Each is asked before each try whether it may go still (core/alert/alert_way.h):
 * what a silence covers meanwhile, or quiet hours hold back, is taken back. If such a joined
 * message fails, each of it goes alone. A delivery leaves the store when it was taken, refused for
 * good or given up, and its incident says so in the same batch. Alertmanager forgets what is not
 * repeated: it hears of all that is open each minute. */
#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts_run.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

static const usec_t GIVE_UP_AFTER = 3 * USEC_DAY, REFRESH_EVERY = USEC_MIN;
static const usec_t TRY_FIRST = 2 * USEC_SEC, TRY_MOST = 5 * USEC_MIN;
/* TAKEN_BACK_AT_ONCE: the loop is not kept by a line of which none may go any more. */
enum { REFRESH_SLICE = 5, REFRESH_BYTES = 64 << 10, PACE_KEPT_PART = 6, TAKEN_BACK_AT_ONCE = 500 };

/* ---- lines ---- */

static void line_push(struct delivery_line *l, struct delivery *d)
{
    d->next = NULL;
    if (l->last)
        l->last->next = d;
    else
        l->first = d;
    l->last = d;
}

static struct delivery *line_take(struct delivery_line *l)
{
    struct delivery *d = l->first;
    if (!d)
        return NULL;
    l->first = d->next;
    if (!l->first)
        l->last = NULL;
    d->next = NULL;
    return d;
}

static void line_free(struct delivery_line *l)
{
    struct delivery *d;
    while ((d = line_take(l)))
        delivery_free(d);
}

/* ---- receivers ---- */

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
    for (size_t i = 0; i < as->n_outlets; i++) {
        deliveries_release(&as->outlets[i].waiting);
        line_free(&as->outlets[i].sending);
        strv_release(&as->outlets[i].having);
    }
    free(as->outlets);
    line_free(&as->orphans);
}

/* It leaves the store, and its incident says why. */
static void delivery_end(struct alerts *as,
                         struct delivery *d,
                         enum telling_state state,
                         const char *why)
{
    alerts_settled(as, d, state, why);
    store_remove_entry(as->p.store, ALERTS_ENTRY_DELIVERY, d->id);
    delivery_free(d);
}

void outlets_orphan(struct alerts *as, struct delivery *d)
{
    line_push(&as->orphans, d);
}

void outlets_settle_orphans(struct alerts *as)
{
    struct delivery *d;
    while ((d = line_take(&as->orphans))) {
        log_warn("alerts", "the message '%s' waits for receiver '%s', which argus.yaml has not",
                 d->id, d->receiver);
        if (d->at + GIVE_UP_AFTER < clock_wall()) {
            delivery_end(as, d, TELLING_GIVEN_UP, NULL);
            continue;
        }
        alerts_settled(as, d, TELLING_NOT_THERE, NULL);
        delivery_free(d); /* its row stays: the receiver may come back */
    }
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

/* What of its pace is for critical messages alone. */
static int64_t outlet_kept_room(const struct outlet *o)
{
    return o->receiver->per_minute > 0 ? o->receiver->per_minute / PACE_KEPT_PART : 0;
}

static void outlet_note_sent(struct outlet *o, usec_t now)
{
    o->sent[o->next_sent++ % array_len(o->sent)] = now;
}

/* ---- how it ended ---- */

/* All see the event: what the receiver answered, which may be a server that they could not ask
 * themselves, is in argusd's log and on the incident, for admins. */
static void outlet_tell_refused(struct outlet *o, const char *why)
{
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    char object[80], text[500];
    text_printf(object, "receiver/%s", o->receiver->name);
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("receiver", o->receiver->name)));
    struct events_note note = {.thing = &thing,
                               .kind = "alert_refused",
                               .actor = "argusd",
                               .object = object,
                               .code = "alert_refused",
                               .text = text};
    events_add(o->alerts->p.events, &note, clock_wall());
    log_err("alerts", "%s has refused a message: %s", o->said, why);
}

static void outlet_end_first(struct outlet *o, enum telling_state state, const char *why)
{
    struct delivery *d = line_take(&o->sending);
    deliveries_gone(&o->waiting, d);
    delivery_end(o->alerts, d, state, why);
}

/* but: addresses of a mail that refused it; "" = none. */
static void outlet_took(struct outlet *o, const char *but)
{
    if (o->sending.first && *but)
        outlet_tell_refused(o, but);
    while (o->sending.first) {
        o->taken++;
        outlet_end_first(o, TELLING_TAKEN, but);
    }
}

static void outlet_refused(struct outlet *o, const char *why)
{
    if (o->sending.first)
        outlet_tell_refused(o, why);
    while (o->sending.first) {
        o->refused++;
        outlet_end_first(o, TELLING_REFUSED, why);
    }
}

/* Who has the mail is not asked again, whoever asks: an argusd that starts anew reads it there. */
static void delivery_keep_having(struct alerts *as, struct delivery *d, const struct strv *having)
{
    bool is_news = having->n != d->having.n; /* it only grows */
    strv_copy(&d->having, having);
    if (is_news)
        delivery_store(as, d);
}

/* Each of what was sent waits for its own next try, alone if it was not. */
static void outlet_steps_aside(struct outlet *o, const char *why, bool at_once, usec_t now)
{
    while (o->sending.first) {
        struct delivery *d = o->sending.first;
        if (!at_once && d->at + GIVE_UP_AFTER < clock_wall()) {
            o->refused++;
            outlet_tell_refused(o, why);
            outlet_end_first(o, TELLING_GIVEN_UP, why);
            continue;
        }
        (void)line_take(&o->sending);
        usec_t wait = TRY_FIRST;
        for (int i = 0; i < d->tries && wait < TRY_MOST; i++)
            wait *= 2;
        d->tries += !at_once;
        d->after = at_once ? now : now + (wait < TRY_MOST ? wait : TRY_MOST);
        d->goes_alone = true;
        delivery_keep_having(o->alerts, d, &o->having);
        deliveries_put_back(&o->waiting, d);
    }
}

static void outlet_on_had(void *arg)
{
    struct outlet *o = arg;
    for (struct delivery *d = o->sending.first; d; d = d->next)
        delivery_keep_having(o->alerts, d, &o->having);
}

static void outlet_on_answer(enum alert_verdict v, const char *why, void *arg)
{
    struct outlet *o = arg;
    usec_t now = clock_mono();
    bool was_refresh = o->is_refresh;
    bool joined = o->sending.first && o->sending.first->next;
    if (v == ALERT_TAKEN || v == ALERT_REFUSED)
        courier_settled(o->courier, v == ALERT_TAKEN ? NULL : why);
    else
        courier_failed(o->courier, why, now);
    o->is_refresh = false;
    if (was_refresh)
        o->refreshed = now;
    else if (v == ALERT_TAKEN)
        outlet_took(o, why);
    else if (v == ALERT_REFUSED && !joined)
        outlet_refused(o, why);
    else
        outlet_steps_aside(o, why, v == ALERT_REFUSED, now);
    strv_release(&o->having);
    outlets_turn(o->alerts);
}

/* ---- sending ---- */

static void outlet_send(struct outlet *o, const char *id, const json_t *const *payloads, size_t n)
{
    struct courier_message m = {
        .id = id, .payloads = payloads, .n = n, .having = &o->having, .had = outlet_on_had};
    struct courier_state state;
    usec_t now = clock_mono();
    if (courier_send(o->courier, &m, outlet_on_answer, o, now)) {
        outlet_note_sent(o, now);
        return;
    }
    courier_state(o->courier, &state);
    o->is_refresh = false;
    outlet_steps_aside(o, state.trouble, false, now);
    strv_release(&o->having);
}

static size_t outlet_take_back(struct outlet *o, struct delivery *d, enum telling_state why)
{
    size_t n = 0;
    for (struct delivery *next, *x = deliveries_take_behind(&o->waiting, d); x; x = next, n++) {
        next = x->next;
        deliveries_gone(&o->waiting, x);
        alerts_take_back(o->alerts, x, why);
    }
    return n;
}

/* The next one that may go. What was put before a silence, or before quiet hours, is asked again
 * here; what is told instead waits as all that is put. */
static struct delivery *outlet_pick(struct outlet *o, bool joins, int least, usec_t now)
{
    const struct store *s = o->alerts->p.store;
    struct deliveries_ask ask = {.now = now,
                                 .durable = store_durable(s),
                                 .fails = store_is_failing(s),
                                 .least = least,
                                 .joins = joins};
    struct delivery *d = NULL;
    size_t back = 0;
    while (back < TAKEN_BACK_AT_ONCE && (d = deliveries_take(&o->waiting, &ask))) {
        enum telling_state why = alerts_ask_again(o->alerts, d);
        if (why == TELLING_ON_THE_WAY)
            break;
        back += outlet_take_back(o, d, why);
        d = NULL;
    }
    if (back)
        alerts_tell_anew(o->alerts);
    return d;
}

static void outlet_log(struct outlet *o)
{
    struct delivery *d;
    while ((d = outlet_pick(o, false, ALERT_INFO, 0))) {
        _cleanup_(json_unrefp) json_t *p = NULL;
        if (json_parse(d->payload, strlen(d->payload), ALERT_PAYLOAD_MAX, &p, NULL) == 0)
            log_warn("alert", "%s message=%s",
                     json_get_str(
                         p, o->receiver->language == MESSAGE_CHINESE ? "title_zh" : "title", ""),
                     d->id);
        line_push(&o->sending, d);
        outlet_took(o, "");
    }
}

/* What goes in the next message: one, or for people as many as the pace asks for. */
static size_t outlet_gather(struct outlet *o, int64_t room, usec_t now)
{
    bool joins = o->receiver->kind != ALERT_KIND_WEBHOOK && (int64_t)o->waiting.n > room / 2;
    int least = room <= outlet_kept_room(o) ? ALERT_CRITICAL : ALERT_INFO;
    struct delivery *d = outlet_pick(o, false, least, now);
    size_t n = 0;
    while (d) {
        n++;
        joins = joins && !d->goes_alone;
        if (n == 1)
            strv_copy(&o->having, &d->having);
        line_push(&o->sending, d);
        d = joins && n < OUTLET_MERGES ? outlet_pick(o, true, ALERT_INFO, now) : NULL;
    }
    return n;
}

/* All addresses have it: argusd ended before it could say so. */
static bool mail_is_had(const struct outlet *o)
{
    const struct strv *to = &o->receiver->to;
    size_t n = 0;
    while (n < to->n && strv_has(&o->having, to->v[n]))
        n++;
    return to->n && n == to->n;
}

static void outlet_send_gathered(struct outlet *o, size_t n)
{
    json_t *payloads[OUTLET_MERGES] = {0};
    char id[DELIVERY_ID_MAX];
    const struct delivery *d = o->sending.first;
    text_copy(id, d->id);
    for (size_t i = 0; i < n; i++, d = d->next)
        if (json_parse(d->payload, strlen(d->payload), ALERT_PAYLOAD_MAX, &payloads[i], NULL) < 0)
            payloads[i] = json_object(); /* our own row: never */
    outlet_send(o, id, (const json_t *const *)payloads, n);
    for (size_t i = 0; i < n; i++)
        json_decref(payloads[i]);
}

/* ---- once more what is open ---- */

/* The next few alerts of the incident that the receiver knows of and that are open. */
static size_t refresh_slice(const struct outlet *o,
                            const struct incident *x,
                            size_t *at,
                            struct alert v[static REFRESH_SLICE])
{
    size_t n = 0;
    for (; *at < x->alerts.n && n < REFRESH_SLICE; ++*at) {
        const struct alert *a = incident_alert(x, *at);
        if (a->open && strv_has(&a->told, o->receiver->name) && !alerts_silence_of(o->alerts, a))
            v[n++] = *a;
    }
    return n;
}

/* Up to OUTLET_MERGES payloads from where the last message ended. */
static size_t refresh_gather(struct outlet *o, json_t *payloads[static OUTLET_MERGES])
{
    struct alert v[REFRESH_SLICE];
    struct incident *x;
    size_t n = 0, bytes = 0;
    for (size_t i = 0; (x = incident_at(o->alerts->table, i));) {
        size_t at = x->seq == o->refresh.seq ? o->refresh.alert : 0;
        size_t k = x->seq < o->refresh.seq || !x->open ? 0 : refresh_slice(o, x, &at, v);
        if (!k) {
            i++;
            continue;
        }
        if (n == OUTLET_MERGES || bytes > REFRESH_BYTES)
            return n;
        o->refresh = (struct refresh_place){.seq = x->seq, .alert = at, .runs = true};
        struct incident slice = *x;
        slice.alerts = (struct field_list){.v = v, .n = k};
        struct buf text = BUF_INIT(ALERT_PAYLOAD_MAX);
        incident_payload(&slice, ALERT_GREW, "", clock_wall(), &text);
        n += json_parse(buf_str(&text), text.len, ALERT_PAYLOAD_MAX, &payloads[n], NULL) == 0;
        bytes += text.len;
        buf_release(&text);
    }
    o->refresh = (struct refresh_place){0};
    return n;
}

static void outlet_refresh(struct outlet *o)
{
    json_t *payloads[OUTLET_MERGES] = {0};
    size_t n = refresh_gather(o, payloads);
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
    size_t n = outlet_gather(o, room, now);
    if (n && mail_is_had(o))
        outlet_took(o, "");
    else if (n)
        outlet_send_gathered(o, n);
    else if (o->receiver->kind == ALERT_KIND_ALERTMANAGER && room > outlet_kept_room(o) &&
             (o->refresh.runs || now - o->refreshed >= REFRESH_EVERY))
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
                                  .waiting = o->waiting.n,
                                  .taken = o->taken,
                                  .refused = o->refused,
                                  .taken_at = state.taken_at,
                                  .failing_since =
                                      state.failing_for ? clock_wall() - state.failing_for : 0,
                                  .trouble = state.trouble};
    return true;
}
