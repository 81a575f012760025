/* SPDX-License-Identifier: Apache-2.0 */
/* alert_table.c - see alert_table.h. What users can make many of has a bound for each of them, so
 * that a walk over the incidents is fine once for each event; what is pending and open is found by
 * key, rule\nkind/name, an alert by its id, an incident by its number. */
#include "core/alert/alert_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

static const usec_t MERGES_WITHIN = 5 * USEC_MIN, REOPENS_WITHIN = 10 * USEC_MIN;
enum { ALERT_KEY_MAX = 320, ALERT_NAME_MAX = 250, ALERT_MARKS = 1024 };

struct alert_table {
    struct map *pending; /* key -> usec_t *: since when it holds */
    struct map *open;    /* key -> its struct incident */
    struct map *ids;     /* id of an alert -> its struct incident */
    /* How many keys of both maps are of such a subject: 0 spares most jobs a key per rule. */
    uint32_t marks[ALERT_MARKS];
    struct incident **v;
    size_t n;
    int64_t next_alert, next_incident;
    uint64_t round[ALERT_OF_END];
};

struct alert_table *alert_table_new(const unsigned char seed[static 16])
{
    struct alert_table *t = xcalloc(1, sizeof(*t));
    t->pending = map_new(seed);
    t->open = map_new(seed);
    t->ids = map_new(seed);
    t->next_alert = t->next_incident = 1;
    for (int i = 0; i < ALERT_OF_END; i++)
        t->round[i] = 1;
    return t;
}

void alert_table_free(struct alert_table *t)
{
    usec_t *since;
    if (!t)
        return;
    for (size_t pos = 0; (since = map_next(t->pending, &pos, NULL));)
        free(since);
    map_free(t->pending);
    map_free(t->open);
    map_free(t->ids);
    for (size_t i = 0; i < t->n; i++)
        incident_free(t->v[i]);
    free(t->v);
    free(t);
}

/* ---- finding ---- */

static void alert_key(char key[static ALERT_KEY_MAX], const char *rule, int of, const char *name)
{
    text_printf_to(key, ALERT_KEY_MAX, "%s\n%s/%.*s", rule, alert_of_names[of], ALERT_NAME_MAX,
                   name);
}

/* By what a key has of its subject. */
static size_t alert_mark_at(int of, const char *name)
{
    return (str_mark(name, ALERT_NAME_MAX) ^ (uint32_t)of) % ALERT_MARKS;
}

bool alert_table_minds(const struct alert_table *t, enum alert_of of, const char *name)
{
    return t->marks[alert_mark_at((int)of, name)] > 0;
}

static void alert_keep(struct alert_table *t,
                       struct map *m,
                       const char *key,
                       int of,
                       const char *name,
                       void *value)
{
    if (!map_set(m, key, value))
        t->marks[alert_mark_at(of, name)]++;
}

static void *alert_drop(struct alert_table *t,
                        struct map *m,
                        const char *key,
                        int of,
                        const char *name)
{
    void *old = map_remove(m, key);
    if (old)
        t->marks[alert_mark_at(of, name)]--;
    return old;
}

static struct alert *incident_find_open(const struct incident *i,
                                        const char *rule,
                                        const char *name)
{
    for (size_t k = i->alerts.n; k-- > 0;) {
        struct alert *a = incident_alert(i, k);
        if (a->open && str_eq(a->rule, rule) && str_eq(a->name, name))
            return a;
    }
    return NULL;
}

/* The number in "a17" or "i17"; 0: there is none. */
static int64_t id_number(const char *id)
{
    int64_t n;
    return *id && str_to_int(id + 1, 1, INT64_MAX - 1, &n, NULL) == 0 ? n : 0;
}

size_t alert_table_incidents(const struct alert_table *t)
{
    return t->n;
}

struct incident *incident_at(const struct alert_table *t, size_t i)
{
    return i < t->n ? t->v[i] : NULL;
}

struct incident *incident_find(const struct alert_table *t, const char *id)
{
    size_t from = 0, to = t->n; /* they stand by their number */
    int64_t seq = id_number(id);
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (t->v[mid]->seq < seq)
            from = mid + 1;
        else
            to = mid;
    }
    return from < t->n && !strcmp(t->v[from]->id, id) ? t->v[from] : NULL;
}

struct alert *alert_table_find(const struct alert_table *t,
                               const char *id,
                               struct incident **ret_incident)
{
    struct incident *i = map_find(t->ids, id);
    for (size_t k = 0; i && k < i->alerts.n; k++)
        if (!strcmp(incident_alert(i, k)->id, id)) {
            *ret_incident = i;
            return incident_alert(i, k);
        }
    return NULL;
}

/* ---- incidents ---- */

static void table_add(struct alert_table *t, struct incident *i)
{
    t->v = xrealloc(t->v, t->n + 1, sizeof(struct incident *));
    t->v[t->n++] = i;
}

static void table_index(struct alert_table *t, struct incident *i, const struct alert *a)
{
    char key[ALERT_KEY_MAX];
    alert_key(key, a->rule, a->of, a->name);
    if (a->open) /* of an incident that was merged: the newer place */
        alert_keep(t, t->open, key, a->of, a->name, i);
    (void)map_set(t->ids, a->id, i); /* the same */
}

static void table_index_restored(struct alert_table *t, struct incident *i, struct alert *a)
{
    int64_t n = id_number(a->id);
    t->next_alert = n >= t->next_alert ? n + 1 : t->next_alert;
    a->round = t->round[a->of];
    table_index(t, i, a);
}

void alert_table_restore(struct alert_table *t, struct incident *taken)
{
    struct incident *i = xcalloc(1, sizeof(*i));
    *i = *taken;
    *taken = (struct incident){0};
    incident_upgrade(i);
    if (i->seq >= t->next_incident)
        t->next_incident = i->seq + 1;
    table_add(t, i);
    for (size_t at = t->n - 1; at > 0 && t->v[at - 1]->seq > i->seq; at--) {
        t->v[at] = t->v[at - 1];
        t->v[at - 1] = i;
    }
    for (size_t k = 0; k < i->alerts.n; k++)
        table_index_restored(t, i, incident_alert(i, k));
}

bool alert_table_restore_alert(struct alert_table *t, struct alert *taken)
{
    struct incident *i = incident_find(t, taken->incident);
    if (!i || map_find(t->ids, taken->id))
        return false;
    struct field_list *l = &i->alerts;
    l->v = xrealloc(l->v, l->n + 1, sizeof(struct alert));
    size_t at = l->n++; /* rows come by their names, "a10" before "a2" */
    for (; at > 0 && id_number(incident_alert(i, at - 1)->id) > id_number(taken->id); at--)
        *incident_alert(i, at) = *incident_alert(i, at - 1);
    *incident_alert(i, at) = *taken;
    *taken = (struct alert){0};
    table_index_restored(t, i, incident_alert(i, at));
    return true;
}

static struct incident *incident_new(struct alert_table *t, const char *cause, usec_t now)
{
    struct incident *i = xcalloc(1, sizeof(*i));
    i->seq = t->next_incident++;
    text_printf(i->id, "i%lld", (long long)i->seq);
    i->cause = xstrdup(cause);
    i->opened_at = now;
    i->open = true;
    incident_upgrade(i);
    table_add(t, i);
    return i;
}

static void incident_make_room(struct alert_table *t, struct incident *i)
{
    size_t k = incident_spare(i);
    if (k == i->alerts.n)
        return;
    (void)map_remove(t->ids, incident_alert(i, k)->id);
    incident_drop_alert(i, k);
}

static struct incident *find_open_cause(const struct alert_table *t, const char *cause)
{
    for (size_t i = t->n; i-- > 0;)
        if (t->v[i]->open && str_eq(t->v[i]->cause, cause) && incident_has_room(t->v[i]))
            return t->v[i];
    return NULL;
}

/* The same trouble a moment ago: it flaps, and goes on. */
static struct incident *find_young_cause(const struct alert_table *t, const char *cause, usec_t now)
{
    for (size_t i = t->n; i-- > 0;) {
        struct incident *x = t->v[i];
        if (!x->open && !x->merged_into && str_eq(x->cause, cause) &&
            x->closed_at + REOPENS_WITHIN > now && incident_has_room(x))
            return x;
    }
    return NULL;
}

static void incident_take_alert(struct alert_table *t, struct incident *i, struct alert *taken)
{
    struct field_list *l = &i->alerts;
    incident_make_room(t, i);
    (void)map_set(t->ids, taken->id, i);
    l->v = xrealloc(l->v, l->n + 1, sizeof(struct alert));
    *incident_alert(i, l->n++) = *taken;
    *taken = (struct alert){0};
    struct alert *a = incident_alert(i, l->n - 1);
    text_copy(a->incident, i->id);
    if (a->severity > i->severity)
        i->severity = a->severity;
    incident_touch(i, a);
}

static bool suspects_all(const struct incident *i, const char *cause)
{
    bool all = i->alerts.n > 0;
    for (size_t k = 0; k < i->alerts.n; k++)
        all = all && strv_has(&incident_alert(i, k)->suspects, cause);
    return all;
}

static void incident_merge(struct alert_table *t,
                           struct incident *into,
                           struct incident *from,
                           usec_t now)
{
    for (size_t k = 0; k < from->alerts.n; k++)
        incident_take_alert(t, into, incident_alert(from, k));
    free(from->alerts.v);
    from->alerts = (struct field_list){0};
    from->open = false;
    from->closed_at = now;
    set_str(&from->merged_into, into->id);
    from->is_dirty = true;
    for (size_t k = 0; k < into->alerts.n; k++)
        table_index(t, into, incident_alert(into, k));
}

/* A cause has shown itself: what began lately and suspects it is part of it. */
static void gather_young(struct alert_table *t, struct incident *into, usec_t now)
{
    for (size_t i = 0; i < t->n; i++) {
        struct incident *x = t->v[i];
        if (x != into && x->open && x->opened_at + MERGES_WITHIN > now &&
            x->alerts.n + into->alerts.n <= INCIDENT_ALERTS_MAX && suspects_all(x, into->cause))
            incident_merge(t, into, x, now);
    }
}

static struct incident *incident_for(struct alert_table *t,
                                     const char *cause,
                                     const struct strv *suspects,
                                     usec_t now,
                                     bool *ret_new)
{
    struct incident *found = NULL;
    for (size_t i = 0; suspects && i < suspects->n && !found; i++)
        found = find_open_cause(t, suspects->v[i]);
    *ret_new = false;
    if (!found)
        found = find_open_cause(t, cause);
    if (found)
        return found;
    *ret_new = true;
    found = find_young_cause(t, cause, now);
    if (!found)
        return incident_new(t, cause, now);
    incident_reopen(found);
    return found;
}

/* ---- alerts ---- */

/* A state that comes back so soon while its incident is open flaps: who was told of it knows it. */
static const usec_t FLAPS_WITHIN = 5 * USEC_MIN;

static void alert_inherit(const struct incident *i, struct alert *a)
{
    for (size_t k = i->alerts.n; k-- > 0;) {
        const struct alert *old = incident_alert(i, k);
        if (old->of == a->of && str_eq(old->rule, a->rule) && str_eq(old->name, a->name)) {
            if (old->open || a->since < old->ended_at + FLAPS_WITHIN)
                strv_copy(&a->told, &old->told);
            return;
        }
    }
}

static void alert_end(struct alert_table *t, struct incident *i, struct alert *a, usec_t now)
{
    char key[ALERT_KEY_MAX];
    alert_key(key, a->rule, a->of, a->name);
    (void)alert_drop(t, t->open, key, a->of, a->name);
    a->open = false;
    a->ended_at = now;
    a->news |= ALERT_ENDED;
    incident_touch(i, a);
    if (incident_open_alerts(i) || !i->open)
        return;
    i->open = false;
    i->closed_at = now;
}

/* Whoever lets jobs fail in a loop has the newest of their alerts open. */
static void user_make_room(struct alert_table *t, const char *user, usec_t now)
{
    struct incident *of = NULL;
    size_t n = 0, oldest = 0;
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; t->v[i]->open && k < t->v[i]->alerts.n; k++) {
            const struct alert *a = incident_alert(t->v[i], k);
            if (!a->open || !a->keep || !str_eq(a->owner, user))
                continue;
            if (!n++) {
                of = t->v[i];
                oldest = k;
            }
        }
    if (n > ALERTS_OF_USER_MAX)
        alert_end(t, of, incident_alert(of, oldest), now);
}

static void alert_fire(struct alert_table *t,
                       const struct alert_rule *r,
                       const struct alert_subject *s,
                       const char *key,
                       usec_t now)
{
    char cause[ALERT_SUBJECT_MAX];
    bool is_new;
    alert_subject_name(cause, (int)s->of, s->name);
    struct incident *i = incident_for(t, cause, s->suspects, now, &is_new);
    struct alert a = {.of = (int)s->of,
                      .severity = r->severity,
                      .open = true,
                      .count = 1,
                      .since = now,
                      .last_at = now,
                      .keep = r->keep,
                      .gpus = s->gpus,
                      .lost = s->lost,
                      .round = t->round[s->of],
                      .news = ALERT_FIRED};
    text_printf(a.id, "a%lld", (long long)t->next_alert++);
    a.rule = xstrdup(r->name);
    a.name = xstrdup(s->name);
    a.owner = xstrdup(s->owner);
    a.project = xstrdup(s->project);
    a.text = xstrdup(r->text);
    a.zh = xstrdup(r->zh);
    a.fix = xstrdup(r->fix);
    a.fix_zh = xstrdup(r->fix_zh);
    if (s->suspects)
        strv_copy(&a.suspects, s->suspects);
    if (s->notify)
        strv_copy(&a.notify, s->notify);
    (void)alert_take_facts(&a, s->v, s->n, &s->says); /* it is new in any case */
    if (!r->keep)
        alert_inherit(i, &a);
    incident_take_alert(t, i, &a);
    alert_keep(t, t->open, key, (int)s->of, s->name, i);
    if (is_new)
        gather_young(t, i, now);
    if (r->keep && s->owner)
        user_make_room(t, s->owner, now);
}

/* It holds: for long enough? */
static void rule_holds(struct alert_table *t,
                       const struct alert_rule *r,
                       const struct alert_subject *s,
                       const char *key,
                       usec_t now)
{
    usec_t *since = map_find(t->pending, key);
    if (!since && r->hold) {
        since = xmalloc(sizeof(*since));
        *since = now;
        alert_keep(t, t->pending, key, (int)s->of, s->name, since);
    }
    if (since && *since > now)
        *since = now; /* the clock went back */
    if (since && now - *since < r->hold)
        return;
    free(alert_drop(t, t->pending, key, (int)s->of, s->name));
    alert_fire(t, r, s, key, now);
}

static void alert_goes_on(struct alert_table *t,
                          const struct alert_rule *r,
                          const struct alert_subject *s,
                          struct incident *i,
                          struct alert *a,
                          enum alert_truth holds,
                          usec_t now)
{
    enum alert_truth clears = r->clear_expr              ? alert_expr_ask(r->clear_expr, s->v, s->n)
                              : r->keep                  ? ALERT_FALSE
                              : holds == ALERT_NOT_KNOWN ? ALERT_NOT_KNOWN
                              : holds == ALERT_TRUE      ? ALERT_FALSE
                                                         : ALERT_TRUE;
    a->round = t->round[s->of];
    if (holds == ALERT_TRUE && r->keep) { /* the event came again */
        a->count++;
        a->lost += s->lost;
        a->last_at = now;
        incident_touch(i, a);
    }
    if (r->keep && alert_take_facts(a, s->v, s->n, &s->says))
        incident_touch(i, a);
    if (clears != ALERT_TRUE) {
        a->clear_since = 0;
        return;
    }
    if (!a->clear_since || a->clear_since > now)
        a->clear_since = now;
    if (now - a->clear_since >= r->clear_hold)
        alert_end(t, i, a, now);
}

static void table_see_rule(struct alert_table *t,
                           const struct alert_rule *r,
                           const struct alert_subject *s,
                           bool is_marked,
                           usec_t now)
{
    char key[ALERT_KEY_MAX];
    enum alert_truth holds = alert_expr_ask(r->when_expr, s->v, s->n);
    if (holds != ALERT_TRUE && !is_marked)
        return; /* the usual case, for each job and rule at each look */
    alert_key(key, r->name, (int)s->of, s->name);
    struct incident *i = map_find(t->open, key);
    struct alert *a = i ? incident_find_open(i, r->name, s->name) : NULL;
    if (a)
        alert_goes_on(t, r, s, i, a, holds, now);
    else if (holds == ALERT_TRUE)
        rule_holds(t, r, s, key, now);
    else
        free(alert_drop(t, t->pending, key, (int)s->of, s->name));
}

void alert_table_see(struct alert_table *t,
                     const struct alert_rules *rules,
                     const struct alert_subject *s,
                     usec_t now)
{
    bool is_marked = alert_table_minds(t, s->of, s->name);
    for (size_t i = 0; i < rules->n; i++)
        if (rules->v[i].of == (int)s->of && !rules->v[i].off && rules->v[i].when_expr)
            table_see_rule(t, &rules->v[i], s, is_marked, now);
}

/* Ends the open alerts for which `ends` says so. */
typedef bool (*alert_ends_f)(const struct alert *a, const void *arg, usec_t now);
static void table_end_some(struct alert_table *t, alert_ends_f ends, const void *arg, usec_t now)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; t->v[i]->open && k < t->v[i]->alerts.n; k++) {
            struct alert *a = incident_alert(t->v[i], k);
            if (a->open && ends(a, arg, now))
                alert_end(t, t->v[i], a, now);
        }
}

struct round_of {
    int of;
    uint64_t round;
};

static bool was_not_seen(const struct alert *a, const void *arg, usec_t now)
{
    const struct round_of *r = arg;
    (void)now;
    return a->of == r->of && !a->keep && a->round < r->round;
}

void alert_table_round(struct alert_table *t, enum alert_of of, usec_t now)
{
    struct round_of r = {.of = (int)of, .round = t->round[of]};
    table_end_some(t, was_not_seen, &r, now);
    t->round[of]++;
}

static bool is_due_or_ruleless(const struct alert *a, const void *arg, usec_t now)
{
    const struct alert_rule *r = alert_rules_find(arg, a->rule);
    return !r || r->off || (a->keep && now > a->last_at && now - a->last_at >= a->keep);
}

void alert_table_tick(struct alert_table *t, const struct alert_rules *rules, usec_t now)
{
    table_end_some(t, is_due_or_ruleless, rules, now);
}

bool alert_table_ack(struct alert *a,
                     struct incident *i,
                     const char *by,
                     const char *note,
                     usec_t now)
{
    if (a->acked_at && str_eq(a->acked_by, by) && (!note || str_eq(a->ack_note, note)))
        return false;
    a->acked_at = a->acked_at ? a->acked_at : now;
    set_str(&a->acked_by, by);
    if (note)
        set_str(&a->ack_note, note);
    a->news |= ALERT_ACKED;
    incident_touch(i, a);
    return true;
}

struct incident *alert_table_expire(struct alert_table *t)
{
    size_t closed = 0, oldest = t->n, oldest_told = t->n;
    for (size_t i = t->n; i-- > 0;)
        if (!t->v[i]->open) {
            closed++;
            oldest = i;
            oldest_told = t->v[i]->told_end && !incident_waits(t->v[i]) ? i : oldest_told;
        }
    if (closed > INCIDENTS_CLOSED_MAX && closed <= INCIDENTS_UNTOLD_MAX)
        oldest = oldest_told;
    if (closed <= INCIDENTS_CLOSED_MAX || oldest == t->n)
        return NULL;
    struct incident *x = t->v[oldest];
    for (size_t k = 0; k < x->alerts.n; k++)
        (void)map_remove(t->ids, incident_alert(x, k)->id);
    memmove(&t->v[oldest], &t->v[oldest + 1], (--t->n - oldest) * sizeof(struct incident *));
    return x;
}
