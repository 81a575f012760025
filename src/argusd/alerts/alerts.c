/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c - the service of alerts: its life, its rows, what the API changes. See alerts.h.
 *
 * All changes of the table end in alerts_settle(), which stores them within the batch that is open.
 */
#include "argusd/alerts/alerts.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts_run.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/alert/incident_rows.h"

static void alerts_on_event(const struct store_event *row, void *arg)
{
    struct alerts *as = arg;
    if (as->closing || as->seeing || !as->ticked || str_starts(row->kind, "alert_"))
        return; /* what we tell ourselves is no news to us */
    as->seeing = true;
    if (alerts_see_event(as, row))
        alerts_settle(as, clock_wall());
    as->seeing = false;
}

struct alerts *alerts_new(const struct alerts_parts *parts)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct alerts *as = xcalloc(1, sizeof(*as));
    as->p = *parts;
    as->config = &parts->settings->alerts;
    as->table = alert_table_new(seed);
    as->places = map_new(seed);
    as->seen_alive = map_new(seed);
    as->next_silence = 1;
    for (size_t i = 0; i < as->config->rules.n; i++) {
        struct alert_rule r = {0};
        struct problems none = {0};
        alert_rule_copy(&r, &as->config->rules.v[i]);
        if (alert_rule_check(&r, NULL, &none) < 0 || alert_rules_put(&as->rules, &r, NULL) < 0)
            log_err("alerts", "the rule '%s' cannot be taken", as->config->rules.v[i].name);
        problems_release(&none);
        alert_rule_release(&r);
    }
    as->ask_all = true;
    outlets_open(as);
    return as;
}

static void silence_release(struct alert_silence *s)
{
    field_release(&alert_silence_table, s);
}

void alerts_free(struct alerts *as)
{
    if (!as)
        return;
    outlets_free(as);
    for (size_t i = 0; i < as->n_silences; i++)
        silence_release(&as->silences[i]);
    free(as->silences);
    alerts_places_free(as);
    alerts_seen_free(as);
    alert_table_free(as->table);
    alert_rules_release(&as->rules);
    free(as);
}

/* ---- rows ---- */

static bool restore_incident(struct alerts *as, const struct store_entry *row)
{
    struct incident i;
    if (!incident_read(row->body, &i))
        return false;
    alert_table_restore(as->table, &i);
    return true;
}

static bool restore_alert(struct alerts *as, const struct store_entry *row)
{
    struct alert a;
    if (!incident_read_alert(row->body, &a))
        return false;
    bool ok = alert_table_restore_alert(as->table, &a);
    field_release(&alert_table_of_alert, &a);
    return ok;
}

static struct alert_silence *silence_put(struct alerts *as, struct alert_silence *taken)
{
    as->silences = xrealloc(as->silences, as->n_silences + 1, sizeof(*as->silences));
    struct alert_silence *s = &as->silences[as->n_silences++];
    *s = *taken;
    *taken = (struct alert_silence){0};
    return s;
}

/* A row that an older argusd wrote has the id of its alert alone; alerts are read before it. */
static void silence_upgrade(const struct alerts *as, struct alert_silence *s)
{
    struct incident *i;
    const struct alert *a = s->alert && !s->rule ? alert_table_find(as->table, s->alert, &i) : NULL;
    if (a)
        alert_silence_cover(s, a);
}

static bool restore_silence(struct alerts *as, const struct store_entry *row)
{
    struct alert_silence s = {0};
    int64_t n;
    if (!field_from_text(&alert_silence_table, row->body, FIELD_STORED, &s) ||
        str_to_int(*s.id ? s.id + 1 : "", 1, INT64_MAX - 1, &n, NULL) < 0) {
        silence_release(&s);
        return false;
    }
    as->next_silence = n >= as->next_silence ? n + 1 : as->next_silence;
    silence_upgrade(as, &s);
    (void)silence_put(as, &s);
    return true;
}

static bool restore_rule(struct alerts *as, const struct store_entry *row)
{
    struct alert_rule r = {0};
    struct problems ps = {0};
    bool ok = field_from_text(&alert_rule_table, row->body, FIELD_STORED, &r) && r.when && r.text &&
              alert_rule_check(&r, NULL, &ps) == 0 && alert_rules_put(&as->rules, &r, NULL) == 0;
    problems_release(&ps);
    alert_rule_release(&r);
    return ok;
}

static bool restore_delivery(struct alerts *as, const struct store_entry *row)
{
    struct delivery *d = xcalloc(1, sizeof(*d));
    bool ok = field_from_text(&delivery_table, row->body, FIELD_STORED, d) && d->receiver &&
              d->payload && *d->id;
    struct outlet *o = ok ? outlet_find(as, d->receiver) : NULL;
    if (o)
        deliveries_restore(&o->waiting, d);
    else if (ok)
        outlets_orphan(as, d);
    else
        delivery_free(d);
    return ok;
}

void alerts_restore(struct alerts *as, const struct store_entry *row)
{
    bool ok = !strcmp(row->kind, ALERTS_ENTRY_INCIDENT)  ? restore_incident(as, row)
              : !strcmp(row->kind, ALERTS_ENTRY_ALERT)   ? restore_alert(as, row)
              : !strcmp(row->kind, ALERTS_ENTRY_SILENCE) ? restore_silence(as, row)
              : !strcmp(row->kind, ALERTS_ENTRY_RULE)    ? restore_rule(as, row)
              : !strcmp(row->kind, ALERTS_ENTRY_NODE)    ? alerts_restore_node(as, row)
                                                         : restore_delivery(as, row);
    if (!ok)
        log_err("alerts", "the store's row '%s' of kind '%s' cannot be read", row->name, row->kind);
}

/* ---- life ---- */

static void alerts_drop_old(struct alerts *as, usec_t now)
{
    for (size_t i = as->n_silences; i-- > 0;)
        if (as->silences[i].until + USEC_DAY < now)
            alerts_silence_remove(as, &as->silences[i]);
    for (struct incident *x; (x = alert_table_expire(as->table));) {
        alerts_forget(as, x);
        incident_free(x);
    }
}

static void alerts_on_tick(uv_timer_t *timer)
{
    struct alerts *as = timer->data;
    usec_t now = clock_mono(), every = as->config->every;
    as->late = as->ticked && now - as->ticked > every ? now - as->ticked - every : 0;
    as->ticked = now;
    as->seeing = true;
    alerts_look(as, clock_wall());
    alerts_settle_all(as, clock_wall());
    as->seeing = false;
    alerts_drop_old(as, clock_wall());
    outlets_turn(as);
}

void alerts_start(struct alerts *as)
{
    as->started = as->ticked = clock_mono();
    uv_timer_init(as->p.loop, &as->timer);
    as->timer.data = as;
    as->has_timer = true;
    outlets_settle_orphans(as);
    alerts_count_ways(as);
    uint64_t every = as->config->every / USEC_MS;
    uv_timer_start(&as->timer, alerts_on_tick, every, every);
    events_tap(as->p.events, alerts_on_event, as);
}

void alerts_durable(struct alerts *as, uint64_t batch)
{
    (void)batch; /* outlets_turn() asks the store */
    if (as->ticked && !as->closing)
        outlets_turn(as);
}

void alerts_close(struct alerts *as)
{
    if (!as || as->closing)
        return;
    as->closing = true;
    if (as->has_timer)
        uv_close((uv_handle_t *)&as->timer, NULL);
    outlets_close(as);
}

/* ---- what is asked ---- */

struct alert_table *alerts_table(const struct alerts *as)
{
    return as->table;
}

const struct alert_rules *alerts_rules(const struct alerts *as)
{
    return &as->rules;
}

const struct alert_config *alerts_config(const struct alerts *as)
{
    return as->config;
}

struct access_thing alerts_thing(const struct alert *a)
{
    if (a->of == ALERT_OF_JOB)
        return (struct access_thing){
            .kind = ACCESS_KIND_JOB, .name = a->name, .owner = a->owner, .project = a->project};
    if (a->of == ALERT_OF_PIPELINE)
        return (struct access_thing){.kind = ACCESS_KIND_PIPELINE,
                                     .name = a->name,
                                     .owner = a->owner,
                                     .project = a->project};
    if (a->of == ALERT_OF_QUOTA)
        return (struct access_thing){.kind = a->owner ? ACCESS_KIND_USER : ACCESS_KIND_PROJECT,
                                     .name = str_or(a->owner, str_or(a->project, a->name)),
                                     .owner = a->owner,
                                     .project = a->project};
    return (struct access_thing){
        .kind = a->of == ALERT_OF_NODE ? ACCESS_KIND_NODE : ACCESS_KIND_CLUSTER, .name = a->name};
}

void alerts_ack(struct alerts *as,
                struct alert *a,
                struct incident *i,
                const char *by,
                const char *note)
{
    if (!alert_table_ack(a, i, by, note, clock_wall()))
        return;
    alerts_tell_anew(as);
}

const struct alert_silence *alerts_silence_of(const struct alerts *as, const struct alert *a)
{
    usec_t now = clock_wall();
    for (size_t i = 0; i < as->n_silences; i++)
        if (alert_silence_holds(&as->silences[i], a, now))
            return &as->silences[i];
    return NULL;
}

const struct alert_silence *alerts_silence_at(const struct alerts *as, size_t i)
{
    return i < as->n_silences ? &as->silences[i] : NULL;
}

int alerts_silence_add(struct alerts *as,
                       struct alert_silence *taken,
                       const struct alert_silence **ret,
                       struct err *err)
{
    if (as->n_silences >= ALERTS_SILENCES_MAX)
        return message_refuse(err, ERR_REFUSED, "too_many_silences",
                              MESSAGE_ARGS(MESSAGE_NUM("most", ALERTS_SILENCES_MAX)));
    text_printf(taken->id, "s%lld", (long long)as->next_silence++);
    struct alert_silence *s = silence_put(as, taken);
    _cleanup_(freep) char *body = field_to_text(&alert_silence_table, s, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = ALERTS_ENTRY_SILENCE, .name = s->id, .body = body, .at = s->from};
    store_put_entry(as->p.store, &row);
    *ret = s;
    return 0;
}

void alerts_silence_remove(struct alerts *as, const struct alert_silence *s)
{
    size_t at = (size_t)(s - as->silences);
    store_remove_entry(as->p.store, ALERTS_ENTRY_SILENCE, s->id);
    silence_release(&as->silences[at]);
    memmove(&as->silences[at], &as->silences[at + 1], (--as->n_silences - at) * sizeof(*s));
}

int alerts_rule_put(struct alerts *as,
                    struct alert_rule *taken,
                    const struct alert_rule **ret,
                    struct err *err)
{
    _cleanup_(freep) char *body = field_to_text(&alert_rule_table, taken, FIELD_STORED, FIELD_ROW);
    _cleanup_(freep) char *name = xstrdup(taken->name);
    struct store_entry row = {
        .kind = ALERTS_ENTRY_RULE, .name = name, .body = body, .at = taken->changed_at};
    int r = alert_rules_put(&as->rules, taken, err);
    if (r < 0)
        return r;
    store_put_entry(as->p.store, &row);
    as->ask_all = true;
    *ret = alert_rules_find(&as->rules, name);
    return 0;
}

int alerts_rule_remove(struct alerts *as, const char *name, struct err *err)
{
    const struct alert_rule *r = alert_rules_find(&as->rules, name);
    const struct alert_rule *old = alert_rules_find(&as->config->rules, name);
    _cleanup_(freep) char *kept = xstrdup(name); /* it may be the rule's own */
    struct alert_rule back = {0};
    struct problems none = {0};
    if (r && (str_eq(r->from, "shipped") || str_eq(r->from, "argus.yaml")))
        return message_refuse(
            err, ERR_CONFLICT, "rule_switched_there",
            MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("from", r->from)));
    store_remove_entry(as->p.store, ALERTS_ENTRY_RULE, kept);
    alert_rules_remove(&as->rules, kept);
    as->ask_all = true;
    int x = 0;
    if (old) {
        alert_rule_copy(&back, old);
        x = alert_rule_check(&back, NULL, &none);
        if (x == 0)
            x = alert_rules_put(&as->rules, &back, err);
    }
    problems_release(&none);
    alert_rule_release(&back);
    return x;
}

int alerts_test(struct alerts *as, const char *receiver, const char *by, struct err *err)
{
    char id[DELIVERY_ID_MAX];
    /* Critical: somebody waits for it. */
    struct delivery_form form = {.receiver = receiver, .user = by, .severity = ALERT_CRITICAL};
    if (!alert_config_find(as->config, receiver))
        return message_refuse(err, ERR_NOT_FOUND, "no_receiver",
                              MESSAGE_ARGS(MESSAGE_STR("name", receiver)));
    if (alerts_has_room(as, &form) != TELLING_ON_THE_WAY)
        return message_refuse(err, ERR_BUSY, "receiver_full",
                              MESSAGE_ARGS(MESSAGE_STR("name", receiver)));
    struct buf payload = BUF_INIT(ALERT_PAYLOAD_MAX);
    alerts_new_id(id);
    alert_test_payload(id, by, clock_wall(), &payload);
    alerts_deliver(as, &form, id, buf_str(&payload));
    buf_release(&payload);
    return 0;
}
