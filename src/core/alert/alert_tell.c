/* SPDX-License-Identifier: Apache-2.0 */
/* alert_tell.c - see alert_tell.h.
 *
 * Each look works out anew what concerns each receiver (a "want"), from the alerts and what each of
 * them was told; nothing but the tellings and the alerts' `told` is remembered, and both are in the
 * incident's rows. So a restart, a changed route, a silence that ends or a receiver that comes back
 * need no case of their own. */
#include "core/alert/alert_tell.h"

#include <stdlib.h>

#include "base/str.h"

/* An end that joins is told once no other has joined for `settle`, and so is what is critical of
 * the cause itself, or of a GPU of the node that it is: another trouble that was open before hides
 * none. A state that follows from the cause mostly ends with it, and is told by itself when it does
 * not. */
static const usec_t STATES_AFTER = 4 * USEC_MIN, UPDATES_APART = 5 * USEC_MIN;
/* Between messages of one incident; where something critical is told soon. */
static const usec_t URGENT_APART = USEC_MIN;

struct want {
    char *receiver;
    int severity;              /* the worst of what is open, or news to it; TELLING_NOTHING */
    int whole;                 /* the worst of all that it may be told */
    usec_t event_at, state_at; /* of what is news to it: the newest that is told soon, the oldest
                                  other state; 0: none */
    bool is_urgent;            /* something of the first is critical, and no mere end of a job */
    bool is_silenced;          /* something that concerns it is */
};

struct tell {
    const struct tell_parts *p;
    struct incident *i;
    usec_t now;
    struct want *v;
    size_t n;
};

static bool tell_hides(const struct tell *x, const struct alert *a)
{
    return alert_is_silenced(x->p->silences, x->p->n_silences, a, x->now);
}

/* ---- what concerns whom ---- */

static struct want *want_of(struct tell *x, const char *receiver)
{
    for (size_t k = 0; k < x->n; k++)
        if (str_eq(x->v[k].receiver, receiver))
            return &x->v[k];
    x->v = xrealloc(x->v, x->n + 1, sizeof(*x->v));
    x->v[x->n] = (struct want){
        .receiver = xstrdup(receiver), .severity = TELLING_NOTHING, .whole = TELLING_NOTHING};
    return &x->v[x->n++];
}

static bool is_told_soon(const struct incident *i, const struct alert *a)
{
    char subject[ALERT_SUBJECT_MAX];
    if (a->keep || a->severity < ALERT_CRITICAL)
        return a->keep != 0;
    alert_subject_name(subject, a->of, a->name);
    if (a->of == ALERT_OF_GPU)
        return str_starts(i->cause, "node/");
    return str_eq(subject, i->cause);
}

static void want_add(struct want *w,
                     const struct incident *i,
                     const struct alert *a,
                     bool hidden,
                     bool is_news)
{
    if (hidden) {
        w->is_silenced = true;
        return;
    }
    w->whole = a->severity > w->whole ? a->severity : w->whole;
    if ((a->open || is_news) && a->severity > w->severity)
        w->severity = a->severity;
    if (is_news && is_told_soon(i, a)) {
        w->event_at = a->since > w->event_at ? a->since : w->event_at;
        w->is_urgent = w->is_urgent || !a->keep;
    } else if (is_news)
        w->state_at = !w->state_at || a->since < w->state_at ? a->since : w->state_at;
}

/* Those that its routes name, and those that were told of it before. */
static void tell_gather(struct tell *x)
{
    for (size_t k = 0; k < x->i->alerts.n; k++) {
        struct alert *a = incident_alert(x->i, k);
        struct strv to = {0};
        bool hidden = tell_hides(x, a);
        alert_route(x->p->config, a, &to);
        a->is_told = true;
        for (size_t r = 0; r < to.n; r++) {
            bool is_news = !strv_has(&a->told, to.v[r]);
            want_add(want_of(x, to.v[r]), x->i, a, hidden, is_news);
            if (is_news && alert_config_find(x->p->config, to.v[r]))
                a->is_told = false;
        }
        for (size_t r = 0; r < a->told.n; r++)
            if (!strv_has(&to, a->told.v[r]))
                want_add(want_of(x, a->told.v[r]), x->i, a, hidden, false);
        strv_release(&to);
    }
}

static void tell_release(struct tell *x)
{
    for (size_t k = 0; k < x->n; k++)
        free(x->v[k].receiver);
    free(x->v);
}

/* ---- one message ---- */

/* Shallow: what is to be freed is the list alone. */
static struct incident tell_view(const struct tell *x)
{
    struct incident view = *x->i;
    struct alert *v = xcalloc(x->i->alerts.n ? x->i->alerts.n : 1, sizeof(*v));
    view.alerts = (struct field_list){.v = v};
    view.severity = ALERT_INFO;
    for (size_t k = 0; k < x->i->alerts.n; k++) {
        const struct alert *a = incident_alert(x->i, k);
        if (tell_hides(x, a))
            continue;
        v[view.alerts.n++] = *a;
        view.severity = a->severity > view.severity ? a->severity : view.severity;
    }
    return view;
}

static void tell_way(const struct tell *x,
                     const char *receiver,
                     int severity,
                     struct alert_way *ret)
{
    const struct telling *t = incident_telling(x->i, receiver);
    *ret = (struct alert_way){.severity = severity, .told = TELLING_NOTHING};
    if (t) {
        ret->begun = t->begun;
        ret->escalated = t->escalated;
        ret->told = t->severity;
        ret->at = t->at;
        ret->messages = t->messages;
    }
    for (size_t k = 0; k < x->i->alerts.n; k++) {
        const struct alert *a = incident_alert(x->i, k);
        if (tell_hides(x, a))
            continue;
        strv_add(&ret->names, a->id);
        if (!strv_has(&a->told, receiver))
            strv_add(&ret->fresh, a->id);
    }
}

static void tell_mark(struct tell *x, const char *receiver)
{
    for (size_t k = 0; k < x->i->alerts.n; k++) {
        struct alert *a = incident_alert(x->i, k);
        if (!tell_hides(x, a) && !strv_has(&a->told, receiver)) {
            strv_add(&a->told, receiver);
            a->waits++;
            incident_touch(x->i, a);
        }
    }
}

static bool tell_is_full(enum telling_state s)
{
    return s == TELLING_FULL || s == TELLING_SHARE;
}

/* Why it is not told; said once. Who was told of the begin and only has to wait for more keeps what
 * became of his last message. */
static void tell_note(struct tell *x, const char *receiver, enum telling_state why_not)
{
    const struct telling *t = incident_telling(x->i, receiver);
    if (t && t->begun && (why_not == TELLING_QUIET || tell_is_full(why_not)))
        return;
    if (!t || t->state != (int)why_not || t->why)
        incident_settle(x->i, receiver, why_not, NULL);
}

/* If the message that is put now is taken back, this is what became of the last one. */
static void telling_keep(struct telling *t)
{
    if (t->state != TELLING_TAKEN && t->state != TELLING_REFUSED && t->state != TELLING_GIVEN_UP)
        return;
    t->became = t->state;
    set_str(&t->became_why, t->why);
}

static enum telling_state tell_put(struct tell *x,
                                   const char *receiver,
                                   enum alert_what what,
                                   int severity)
{
    struct incident view = tell_view(x);
    struct alert_way way;
    tell_way(x, receiver, severity, &way);
    enum telling_state s = x->p->put(&view, what, receiver, &way, x->now, x->p->arg);
    field_release(&alert_way_table, &way);
    free(view.alerts.v);
    if (s != TELLING_ON_THE_WAY) {
        tell_note(x, receiver, s);
        return s;
    }
    struct telling *t = incident_telling_make(x->i, receiver, (int)s);
    telling_keep(t);
    incident_settle(x->i, receiver, s, NULL);
    t->waits++;
    t->begun = true;
    t->severity = severity > t->severity ? severity : t->severity;
    t->at = x->now;
    t->messages++;
    tell_mark(x, receiver);
    if (!x->i->told_at)
        x->i->told_at = x->now;
    return s;
}

/* ---- while it is open ---- */

static bool joined_is_due(const struct tell *x, const struct want *w, const struct telling *t)
{
    bool event = w->event_at && x->now >= w->event_at + x->p->config->settle;
    bool state = w->state_at && x->now >= w->state_at + STATES_AFTER;
    usec_t apart = event && w->is_urgent ? URGENT_APART : UPDATES_APART;
    return (event || state) && (t->messages < 2 || x->now >= t->at + apart);
}

static void tell_open(struct tell *x, const struct want *w)
{
    const struct telling *t = incident_telling(x->i, w->receiver);
    bool begun = t && t->begun;
    if (w->severity == TELLING_NOTHING) {
        if (!begun && w->is_silenced)
            tell_note(x, w->receiver, TELLING_SILENCED);
        return;
    }
    if (begun && w->severity <= t->severity && !joined_is_due(x, w, t))
        return;
    if (alert_is_quiet(x->p->config, w->severity, x->now))
        tell_note(x, w->receiver, TELLING_QUIET);
    else
        (void)tell_put(x, w->receiver, begun ? ALERT_GREW : ALERT_OPENED, w->severity);
}

/* What nobody has acknowledged and no silence covers. */
static int unheard_severity(const struct tell *x)
{
    int worst = TELLING_NOTHING;
    for (size_t k = 0; k < x->i->alerts.n; k++) {
        const struct alert *a = incident_alert(x->i, k);
        if (a->open && !a->acked_at && a->severity > worst && !tell_hides(x, a))
            worst = a->severity;
    }
    return worst;
}

static void tell_higher(struct tell *x)
{
    const struct alert_config *c = x->p->config;
    struct incident *i = x->i;
    usec_t from = i->told_at ? i->told_at : i->opened_at + c->wait;
    if (!c->escalate_after || i->escalations || x->now < from + c->escalate_after)
        return;
    int worst = unheard_severity(x);
    if (worst == TELLING_NOTHING || worst < c->escalate_least || alert_is_quiet(c, worst, x->now))
        return;
    bool all = true;
    for (size_t k = 0; k < c->escalate_to.n; k++) {
        const struct telling *t = incident_telling(i, c->escalate_to.v[k]);
        if (t && t->escalated)
            continue;
        bool full = tell_is_full(tell_put(x, c->escalate_to.v[k], ALERT_ESCALATED, worst));
        incident_telling_make(i, c->escalate_to.v[k], TELLING_FULL)->escalated = !full;
        all = all && !full;
    }
    if (all) {
        i->escalations++;
        i->is_dirty = true;
    }
}

/* ---- when it is over ---- */

/* What an event alone fired has no end to tell of. */
static bool has_an_end(const struct incident *i)
{
    bool any = false;
    for (size_t k = 0; k < i->alerts.n; k++)
        any = any || !incident_alert(i, k)->keep;
    return any;
}

/* True: nothing is left to tell this receiver. */
static bool tell_closed(struct tell *x, const struct want *w)
{
    const struct alert_receiver *r = alert_config_find(x->p->config, w->receiver);
    const struct telling *t = incident_telling(x->i, w->receiver);
    bool begun = t && t->begun, resolves = has_an_end(x->i) && (!r || r->resolved);
    if (t && t->ended)
        return true;
    if (begun && !resolves && !w->event_at && !w->state_at)
        return true;
    if (w->whole == TELLING_NOTHING) {
        tell_note(x, w->receiver, TELLING_SILENCED);
        return true;
    }
    if (alert_is_quiet(x->p->config, w->whole, x->now)) {
        tell_note(x, w->receiver, TELLING_QUIET);
        return false;
    }
    enum alert_what what = resolves ? ALERT_RESOLVED : begun ? ALERT_GREW : ALERT_OPENED;
    return tell_put(x, w->receiver, what, w->whole) != TELLING_FULL;
}

static void tell_end(struct tell *x)
{
    bool all = true;
    for (size_t k = 0; k < x->n; k++) {
        bool done = tell_closed(x, &x->v[k]);
        struct telling *t = incident_telling(x->i, x->v[k].receiver);
        if (t && done && !t->ended) {
            t->ended = true;
            x->i->is_dirty = true;
        }
        all = all && done;
    }
    if (all) {
        x->i->told_end = true;
        x->i->is_dirty = true;
    }
}

void incident_tell(struct incident *i, const struct tell_parts *p, usec_t now)
{
    const struct alert_config *c = p->config;
    struct tell x = {.p = p, .i = i, .now = now};
    usec_t from = i->opened_at + c->wait;
    if (!i->open && i->closed_at + c->settle > from)
        from = i->closed_at + c->settle;
    if (i->told_end)
        return;
    if (i->merged_into) { /* the other one is told */
        i->told_end = i->is_dirty = true;
        return;
    }
    if (now < from)
        return;
    tell_gather(&x);
    for (size_t k = 0; i->open && k < x.n; k++)
        tell_open(&x, &x.v[k]);
    if (i->open)
        tell_higher(&x);
    else
        tell_end(&x);
    tell_release(&x);
}
