/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c - /v1/alerts, /v1/incidents, /v1/silences, /v1/alert_rules, /v1/receivers. Who may see
 * what an alert is about may see the alert; an incident shows its reader the alerts that he may see
 * and counts the others. */
#include "argusd/alerts/alerts.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "base/conf.h"
#include "base/str.h"

enum { ALERT_SHOWN_MAX = 4096, SILENCE_MOST_DAYS = 365 };

/* ---- an alert ---- */

struct alert_page {
    const struct alert *a; /* borrowed, as are the texts */
    char *id, *rule, *kind, *name, *user, *project, *incident, *silenced_by, *facts, *acked_by;
    char *ack_note, *text, *text_zh, *fix, *fix_zh;
    int severity;
    bool open;
    int64_t count;
    usec_t since, ended_at, acked_at;
};
#define ALERT_PAGE(key, ftype, member, ...)                                                        \
    FIELD_AT(alert_page, key, ftype, member, .flags = FIELD_SHOWN | FIELD_LISTED | __VA_ARGS__)
#define PAGE_TEXT(member) ALERT_PAGE(#member, FIELD_STR, member, FIELD_BORROWED)
static const struct field alert_page_rows[] = {
    ALERT_PAGE("id", FIELD_STR, id, FIELD_BORROWED | FIELD_ALWAYS),
    ALERT_PAGE("rule", FIELD_STR, rule, FIELD_BORROWED | FIELD_ALWAYS),
    ALERT_PAGE("severity", FIELD_ENUM, severity, 0u, .names = alert_severity_names),
    ALERT_PAGE("kind",
               FIELD_STR,
               kind,
               FIELD_BORROWED | FIELD_ALWAYS,
               .doc = "of what it is about: job, node, gpu …"),
    ALERT_PAGE("name", FIELD_STR, name, FIELD_BORROWED | FIELD_ALWAYS),
    PAGE_TEXT(user),
    PAGE_TEXT(project),
    ALERT_PAGE("open", FIELD_BOOL, open, 0u),
    ALERT_PAGE("incident", FIELD_STR, incident, FIELD_BORROWED | FIELD_ALWAYS),
    ALERT_PAGE("silenced_by", FIELD_STR, silenced_by, FIELD_BORROWED, .doc = "a silence's id"),
    ALERT_PAGE("text", FIELD_STR, text, FIELD_ALWAYS),
    ALERT_PAGE("text_zh", FIELD_STR, text_zh, FIELD_ALWAYS),
    ALERT_PAGE("fix", FIELD_STR, fix, FIELD_ALWAYS, .doc = "what to do, empty where none is known"),
    ALERT_PAGE("fix_zh", FIELD_STR, fix_zh, FIELD_ALWAYS),
    ALERT_PAGE("facts",
               FIELD_JSON,
               facts,
               FIELD_BORROWED,
               .schema = OBJECT_AS_IT_CAME("the evidence: facts by name")),
    ALERT_PAGE("count", FIELD_INT, count, 0u, .doc = "how often it fired while it was open"),
    ALERT_PAGE("since", FIELD_TIME, since, 0u),
    ALERT_PAGE("ended_at", FIELD_TIME, ended_at, 0u),
    PAGE_TEXT(acked_by),
    ALERT_PAGE("acked_at", FIELD_TIME, acked_at, 0u),
    PAGE_TEXT(ack_note),
};
static const struct field_table alert_page_table =
    FIELD_TABLE("Alert", alert_page_rows, alert_page);

static char *page_borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

static char *page_sentence(const struct alert *a, enum alert_language in, bool is_fix)
{
    struct buf out = BUF_INIT(ALERT_SHOWN_MAX);
    alert_sentence(a, in, is_fix, &out);
    return buf_take(&out);
}

static void alert_page_fill(const struct api *api,
                            const struct incident *i,
                            const struct alert *a,
                            struct alert_page *page)
{
    const struct alert_silence *s = alerts_silence_of(api->alerts, a);
    *page = (struct alert_page){.a = a,
                                .id = page_borrow(a->id),
                                .rule = a->rule,
                                .severity = a->severity,
                                .kind = page_borrow(alert_of_names[a->of]),
                                .name = a->name,
                                .user = a->owner,
                                .project = a->project,
                                .open = a->open,
                                .incident = page_borrow(i->id),
                                .silenced_by = s ? page_borrow(s->id) : NULL,
                                .text = page_sentence(a, ALERT_ENGLISH, false),
                                .text_zh = page_sentence(a, ALERT_CHINESE, false),
                                .fix = page_sentence(a, ALERT_ENGLISH, true),
                                .fix_zh = page_sentence(a, ALERT_CHINESE, true),
                                .facts = a->args,
                                .count = a->count,
                                .since = a->since,
                                .ended_at = a->ended_at,
                                .acked_by = a->acked_by,
                                .acked_at = a->acked_at,
                                .ack_note = a->ack_note};
}

static void alert_fill_page(struct resource_ask *q, const void *x, void *out)
{
    const struct alert *a = x;
    struct incident *i = NULL;
    if (alert_table_find(alerts_table(q->a->alerts), a->id, &i))
        alert_page_fill(q->a, i, a, out);
}

/* The newest incident first, in each its alerts. *pos counts all. */
static const void *alert_next(struct resource_ask *q, size_t *pos)
{
    const struct alert_table *t = alerts_table(q->a->alerts);
    size_t n = 0, left = *pos;
    while (incident_at(t, n))
        n++;
    while (n-- > 0) {
        const struct incident *i = incident_at(t, n);
        if (left < i->alerts.n) {
            (*pos)++;
            return incident_alert(i, left);
        }
        left -= i->alerts.n;
    }
    return NULL;
}

static bool alert_wants(struct resource_ask *q, const void *x)
{
    const struct alert *a = x;
    const char *state = str_or(http_req_query(q->req, "state"), "open");
    const char *severity = http_req_query(q->req, "severity");
    bool is_silent = alerts_silence_of(q->a->alerts, a) != NULL;
    bool in = str_eq(state, "all") || (str_eq(state, "past") && !a->open) ||
              (str_eq(state, "open") && a->open && !is_silent) ||
              (str_eq(state, "silenced") && a->open && is_silent);
    return in && (!severity || str_eq(severity, alert_severity_names[a->severity]));
}

static int alert_check_list(struct resource_ask *q)
{
    const char *state = http_req_query(q->req, "state");
    if (!state || str_list_has("open,silenced,past,all", state))
        return 0;
    q->field = "state";
    return err_set(&q->err, ERR_BAD_REQUEST, "'%.40s' is not one of open, silenced, past, all",
                   state);
}

static const void *alert_look_up(struct resource_ask *q, const void *asked)
{
    struct incident *i;
    (void)asked;
    return alert_table_find(alerts_table(q->a->alerts), q->name, &i);
}

/* Of each kind what seeing or changing the thing itself is. */
static int alert_access(const struct access_who *who,
                        enum access_action action,
                        const char *verb,
                        const struct alert *a,
                        struct err *err)
{
    struct access_thing thing = alerts_thing(a);
    bool changes = action == ACCESS_MACHINE_CHANGE;
    enum access_action see = access_kind_see(thing.kind);
    enum access_action act = thing.kind == ACCESS_KIND_JOB       ? ACCESS_JOB_CHANGE
                             : thing.kind == ACCESS_KIND_USER    ? ACCESS_USER_CHANGE
                             : thing.kind == ACCESS_KIND_PROJECT ? ACCESS_PROJECT_CHANGE
                                                                 : ACCESS_MACHINE_CHANGE;
    return access_check(who, changes ? act : see, verb, &thing, err);
}

static int alert_may(struct resource_ask *q,
                     enum access_action action,
                     const char *verb,
                     const void *x)
{
    return alert_access(&q->who, action, verb, x, &q->err);
}

static const struct field alert_ack_form_rows[] = {OPT_TEXT("note")};
static const struct field_table alert_ack_form = ACTION_FORM(alert_ack_form_rows);

static const struct resource alert_noun = {.noun = "alert",
                                           .kind = ACCESS_KIND_CLUSTER,
                                           .collection = "alerts",
                                           .param = "alert",
                                           .page = &alert_page_table,
                                           .item = FIELD_LISTED,
                                           .may_see = ACCESS_MACHINE_SEE,
                                           .may_change = ACCESS_MACHINE_CHANGE,
                                           .check_list = alert_check_list,
                                           .next = alert_next,
                                           .wants = alert_wants,
                                           .find = alert_look_up,
                                           .may = alert_may,
                                           .fill = alert_fill_page};

static void alert_ack(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct incident *i;
    resource_begin(&q, req, app);
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &alert_ack_form);
    const struct alert *seen = body ? resource_find(&q, RESOURCE_TO_CHANGE, "acknowledge") : NULL;
    struct alert *a = seen ? alert_table_find(alerts_table(q.a->alerts), seen->id, &i) : NULL;
    if (a) {
        (void)alerts_ack(q.a->alerts, a, i, q.who.user, json_get_str(body, "note", NULL));
        resource_reply(&q, a, 200, api_barrier(q.a));
    } else if (body) {
        resource_refuse(&q);
    }
    resource_end(&q);
}

/* ---- silences ---- */

static const void *silence_next(struct resource_ask *q, size_t *pos)
{
    return alerts_silence_at(q->a->alerts, (*pos)++);
}

static const void *silence_find(struct resource_ask *q, const void *asked)
{
    const struct alert_silence *s;
    (void)asked;
    for (size_t i = 0; q->name && (s = alerts_silence_at(q->a->alerts, i)); i++)
        if (!strcmp(s->id, q->name))
            return s;
    return NULL;
}

static void silence_thing(struct resource_ask *q,
                          const void *x,
                          const void *asked,
                          struct access_thing *ret)
{
    (void)asked;
    const struct alert_silence *s = x;
    ret->name = s ? s->id : str_or(q->name, "new");
}

static char *silence_object(const void *x)
{
    return xasprintf("silence/%s", ((const struct alert_silence *)x)->id);
}

struct silence_form {
    struct alert_silence silence;
    usec_t lasts;
};
#define SILENCE_FORM FIELD_ASKED
static const struct field silence_form_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct silence_form, silence),
     .of = &alert_silence_table,
     .flags = SILENCE_FORM},
    FIELD_AT(silence_form,
             "for",
             FIELD_SPAN,
             lasts,
             .flags = FIELD_ASKED | FIELD_REQUIRED,
             .min = 1,
             .max = 86400.0 * SILENCE_MOST_DAYS,
             .doc = "how long"),
};
static const struct field_table silence_form_table =
    FIELD_TABLE("SilenceForm", silence_form_rows, silence_form);

static int silence_check(struct resource_ask *q, const void *old, void *asked)
{
    const struct silence_form *f = asked;
    (void)old;
    if (!alert_match_is_open(&f->silence.match))
        return 0;
    return err_set(&q->err, ERR_BAD_SPEC,
                   "this would silence everything: give rules, kinds, projects, users or names");
}

static const void *silence_put_form(struct resource_ask *q,
                                    struct alert_silence *taken,
                                    usec_t lasts)
{
    const struct alert_silence *s = NULL;
    taken->from = clock_wall();
    taken->until = taken->from + lasts;
    set_str(&taken->by, q->who.user);
    return alerts_silence_add(q->a->alerts, taken, &s, &q->err) < 0 ? NULL : s;
}

static const void *silence_write(struct resource_ask *q, const void *old, void *asked)
{
    struct silence_form *f = asked;
    (void)old;
    return silence_put_form(q, &f->silence, f->lasts);
}

static bool silence_take_away(struct resource_ask *q, const void *x)
{
    alerts_silence_remove(q->a->alerts, x);
    return true;
}

static const struct field alert_silence_form_rows[] = {MUST_TEXT("for"), OPT_TEXT("note")};
static const struct field_table alert_silence_form = ACTION_FORM(alert_silence_form_rows);

static const struct resource silence_noun = {
    .noun = "silence",
    .kind = ACCESS_KIND_CLUSTER,
    .collection = "silences",
    .param = "silence",
    .page = &alert_silence_table,
    .form = &silence_form_table,
    .may_see = ACCESS_MACHINE_SEE,
    .may_change = ACCESS_MACHINE_CHANGE,
    .add = {"silence_added", "alerts silenced", "make"},
    .remove = {"silence_removed", "alerts are heard again", "remove"},
    .next = silence_next,
    .find = silence_find,
    .thing = silence_thing,
    .object = silence_object,
    .check = silence_check,
    .write = silence_write,
    .take_away = silence_take_away};

/* Of one alert: its owner may. */
static void alert_silence(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct alert_silence s = {0};
    usec_t lasts = 0;
    resource_begin(&q, req, app);
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &alert_silence_form);
    const struct alert *a = body ? resource_find(&q, RESOURCE_TO_CHANGE, "silence") : NULL;
    q.field = a ? "for" : NULL;
    int r = a ? span_from_string(json_get_str(body, "for", ""), &lasts, &q.err) : -1;
    if (r < 0)
        q.err.code = a ? ERR_BAD_REQUEST : q.err.code;
    else if (lasts < USEC_SEC || lasts > SILENCE_MOST_DAYS * USEC_DAY)
        r = err_set(&q.err, ERR_BAD_REQUEST, "a silence lasts from 1s to %dd", SILENCE_MOST_DAYS);
    s.alert = r < 0 ? NULL : xstrdup(a->id);
    set_str(&s.note, body ? json_get_str(body, "note", NULL) : NULL);
    const struct alert_silence *made = r < 0 ? NULL : silence_put_form(&q, &s, lasts);
    if (made)
        resource_reply(&q, a, 200, api_barrier(q.a));
    else if (body)
        resource_refuse(&q);
    field_release(&alert_silence_table, &s);
    resource_end(&q);
}

/* ---- incidents ---- */

struct incident_page {
    char *id, *cause, *merged_into; /* borrowed */
    char *title, *title_zh;
    int severity;
    bool open;
    usec_t opened_at, closed_at;
    int64_t jobs, hidden;
    double gpu_hours;
    struct strv told;
    struct field_list alerts; /* of struct alert_page */
};
#define INCIDENT_PAGE(key, ftype, member, extra, ...)                                              \
    FIELD_AT(incident_page, key, ftype, member, .flags = FIELD_SHOWN | (extra), __VA_ARGS__)
static const struct field incident_page_rows[] = {
    INCIDENT_PAGE("id", FIELD_STR, id, FIELD_LISTED | FIELD_BORROWED | FIELD_ALWAYS),
    INCIDENT_PAGE("cause",
                  FIELD_STR,
                  cause,
                  FIELD_LISTED | FIELD_BORROWED | FIELD_ALWAYS,
                  .doc = "kind and name of what it began with: node/w1"),
    INCIDENT_PAGE("severity", FIELD_ENUM, severity, FIELD_LISTED, .names = alert_severity_names),
    INCIDENT_PAGE("open", FIELD_BOOL, open, FIELD_LISTED),
    INCIDENT_PAGE("title", FIELD_STR, title, FIELD_LISTED | FIELD_ALWAYS),
    INCIDENT_PAGE("title_zh", FIELD_STR, title_zh, FIELD_LISTED | FIELD_ALWAYS),
    INCIDENT_PAGE("opened_at", FIELD_TIME, opened_at, FIELD_LISTED),
    INCIDENT_PAGE("closed_at", FIELD_TIME, closed_at, FIELD_LISTED),
    INCIDENT_PAGE("jobs", FIELD_INT, jobs, FIELD_LISTED, .doc = "that it hit"),
    INCIDENT_PAGE("gpu_hours", FIELD_REAL, gpu_hours, FIELD_LISTED, .doc = "what it cost"),
    INCIDENT_PAGE("merged_into",
                  FIELD_STR,
                  merged_into,
                  FIELD_LISTED | FIELD_BORROWED,
                  .doc = "the incident whose part it turned out to be"),
    INCIDENT_PAGE("hidden", FIELD_INT, hidden, FIELD_LISTED, .doc = "alerts that you may not see"),
    INCIDENT_PAGE("told", FIELD_STRV, told, 0u, .doc = "receivers"),
    INCIDENT_PAGE("alerts", FIELD_LIST, alerts, 0u, .of = &alert_page_table),
};
static const struct field_table incident_page_table =
    FIELD_TABLE("Incident", incident_page_rows, incident_page);

static bool incident_sees(const struct alert *a, void *arg)
{
    const struct resource_ask *q = arg;
    return alert_access(&q->who, ACCESS_MACHINE_SEE, "see", a, NULL) == 0;
}

/* Anything of it; of one that was merged there is nothing left to hide. */
static int incident_may(struct resource_ask *q,
                        enum access_action action,
                        const char *verb,
                        const void *x)
{
    const struct incident *i = x;
    (void)action;
    (void)verb;
    if (q->who.sees_all || (i->merged_into && !str_starts(i->cause, "job/")))
        return 0;
    for (size_t k = 0; k < i->alerts.n; k++)
        if (incident_sees(incident_alert(i, k), q))
            return 0;
    return err_set(&q->err, ERR_NOT_FOUND, "no incident '%.40s'", i->id);
}

static char *page_title(struct resource_ask *q, const struct incident *i, enum alert_language in)
{
    const struct alert *first = incident_first(i);
    struct buf out = BUF_INIT(ALERT_SHOWN_MAX);
    if (first && incident_sees(first, q))
        incident_title(i, ALERT_OPENED, in, &out);
    else
        (void)buf_addf(&out, "[%s] %s", alert_severity_names[i->severity], i->cause); /* fits */
    return buf_take(&out);
}

static void incident_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct incident *i = x;
    struct incident_page *page = out;
    *page = (struct incident_page){.id = page_borrow(i->id),
                                   .cause = i->cause,
                                   .merged_into = i->merged_into,
                                   .title = page_title(q, i, ALERT_ENGLISH),
                                   .title_zh = page_title(q, i, ALERT_CHINESE),
                                   .severity = i->severity,
                                   .open = i->open,
                                   .opened_at = i->opened_at,
                                   .closed_at = i->closed_at,
                                   .jobs = (int64_t)incident_jobs(i),
                                   .gpu_hours = incident_gpu_hours(i, clock_wall())};
    struct alert_page *v = xcalloc(i->alerts.n ? i->alerts.n : 1, sizeof(*v));
    strv_copy(&page->told, &i->told);
    page->alerts.v = v;
    for (size_t k = 0; k < i->alerts.n; k++)
        if (incident_sees(incident_alert(i, k), q))
            alert_page_fill(q->a, i, incident_alert(i, k), &v[page->alerts.n++]);
    page->hidden = (int64_t)(i->alerts.n - page->alerts.n) + i->left_out;
}

static const void *incident_next(struct resource_ask *q, size_t *pos)
{
    const struct alert_table *t = alerts_table(q->a->alerts);
    size_t n = 0;
    while (incident_at(t, n))
        n++;
    return *pos < n ? incident_at(t, n - ++*pos) : NULL;
}

static bool incident_wants(struct resource_ask *q, const void *x)
{
    const struct incident *i = x;
    return i->open || http_req_query_bool(q->req, "all", false);
}

static const void *incident_look_up(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return incident_find(alerts_table(q->a->alerts), q->name);
}

static const struct resource incident_noun = {.noun = "incident",
                                              .kind = ACCESS_KIND_CLUSTER,
                                              .collection = "incidents",
                                              .param = "incident",
                                              .page = &incident_page_table,
                                              .item = FIELD_LISTED,
                                              .may_see = ACCESS_MACHINE_SEE,
                                              .may_change = ACCESS_MACHINE_CHANGE,
                                              .next = incident_next,
                                              .wants = incident_wants,
                                              .find = incident_look_up,
                                              .may = incident_may,
                                              .fill = incident_fill};

static void incident_report_reply(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct buf out = BUF_INIT(INCIDENT_REPORT_MAX);
    resource_begin(&q, req, app);
    const struct incident *i = resource_find(&q, RESOURCE_TO_SEE, "see");
    const char *form = str_or(http_req_query(req, "format"), "md");
    bool zh = str_eq(http_req_query(req, "language"), "zh"), html = str_eq(form, "html");
    if (i && !html && !str_eq(form, "md")) {
        q.field = "format";
        (void)err_set(&q.err, ERR_BAD_REQUEST, "'%.20s' is neither md nor html", form);
        i = NULL;
    }
    if (i) {
        incident_report(i, html, zh ? ALERT_CHINESE : ALERT_ENGLISH, clock_wall(), incident_sees,
                        &q, &out);
        http_reply(req, 200, html ? "text/html; charset=utf-8" : "text/markdown; charset=utf-8",
                   &out, api_reader_barrier(q.a));
    } else {
        resource_refuse(&q);
    }
    buf_release(&out);
    resource_end(&q);
}

/* ---- rules ---- */

static const void *rule_next(struct resource_ask *q, size_t *pos)
{
    const struct alert_rules *r = alerts_rules(q->a->alerts);
    return *pos < r->n ? &r->v[(*pos)++] : NULL;
}

static const void *rule_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return alert_rules_find(alerts_rules(q->a->alerts), q->name);
}

static void rule_thing(struct resource_ask *q,
                       const void *x,
                       const void *asked,
                       struct access_thing *ret)
{
    (void)x;
    (void)asked;
    ret->name = q->name;
}

static char *rule_object(const void *x)
{
    return xasprintf("alert_rule/%s", ((const struct alert_rule *)x)->name);
}

static int rule_check(struct resource_ask *q, const void *old, void *asked)
{
    struct alert_rule *r = asked;
    (void)old;
    set_str(&r->name, q->name);
    int x = alert_rule_check(r, NULL, &q->problems);
    alert_expr_free(r->when_expr); /* the form has none */
    alert_expr_free(r->clear_expr);
    r->when_expr = r->clear_expr = NULL;
    return x < 0 ? ERR_BAD_SPEC : 0;
}

static const void *rule_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct alert_rule *r = NULL;
    struct alert_rule taken = {0};
    (void)old;
    alert_rule_copy(&taken, asked);
    set_str(&taken.from, q->who.user);
    taken.changed_at = clock_wall();
    bool ok = alert_rule_check(&taken, NULL, &q->problems) == 0 &&
              alerts_rule_put(q->a->alerts, &taken, &r, &q->err) == 0;
    alert_rule_release(&taken);
    return ok ? r : NULL;
}

static int rule_check_remove(struct resource_ask *q, const void *x)
{
    const struct alert_rule *r = x;
    if (!str_eq(r->from, "shipped") && !str_eq(r->from, "argus.yaml"))
        return 0;
    return err_set(&q->err, ERR_CONFLICT, "the rule '%s' is of %s: change it with off: true",
                   r->name, r->from);
}

static bool rule_take_away(struct resource_ask *q, const void *x)
{
    (void)x;
    return alerts_rule_remove(q->a->alerts, q->name, &q->err) == 0;
}

static const struct resource rule_noun = {
    .noun = "rule",
    .kind = ACCESS_KIND_CLUSTER,
    .collection = "rules",
    .param = "rule",
    .page = &alert_rule_table,
    .form = &alert_rule_table,
    .may_see = ACCESS_MACHINE_SEE,
    .may_change = ACCESS_MACHINE_CHANGE,
    .add = {"rule_added", "rule of alerts added", "make"},
    .change = {"rule_changed", "rule of alerts changed", "change"},
    .remove = {"rule_removed", "rule of alerts removed", "remove"},
    .next = rule_next,
    .find = rule_find,
    .thing = rule_thing,
    .object = rule_object,
    .check = rule_check,
    .write = rule_write,
    .check_remove = rule_check_remove,
    .take_away = rule_take_away};

/* ---- receivers ---- */

struct receiver_page {
    struct alerts_outlet outlet;
    char *name, *kind, *trouble; /* borrowed */
    int64_t waiting, taken, refused, per_minute;
    usec_t taken_at, failing_since;
};
#define RECEIVER_PAGE(key, ftype, ...)                                                             \
    FIELD_AT(receiver_page, #key, ftype, key, .flags = FIELD_SHOWN | __VA_ARGS__)
static const struct field receiver_page_rows[] = {
    RECEIVER_PAGE(name, FIELD_STR, FIELD_BORROWED | FIELD_ALWAYS),
    RECEIVER_PAGE(kind, FIELD_STR, FIELD_BORROWED | FIELD_ALWAYS),
    RECEIVER_PAGE(per_minute, FIELD_INT, 0u, .doc = "messages that it is sent; 0 = no limit"),
    RECEIVER_PAGE(waiting, FIELD_INT, 0u, .doc = "messages that it has not taken"),
    RECEIVER_PAGE(taken, FIELD_INT, 0u, .doc = "since argusd started"),
    RECEIVER_PAGE(refused, FIELD_INT, 0u),
    RECEIVER_PAGE(taken_at, FIELD_TIME, 0u),
    RECEIVER_PAGE(failing_since, FIELD_TIME, 0u),
    RECEIVER_PAGE(trouble, FIELD_STR, FIELD_BORROWED, .doc = "why the last message was not taken"),
};
static const struct field_table receiver_page_table =
    FIELD_TABLE("Receiver", receiver_page_rows, receiver_page);

static void receiver_page_of(const struct api *a, size_t i, struct receiver_page *page)
{
    struct alerts_outlet o;
    if (!alerts_outlet_at(a->alerts, i, &o))
        return;
    *page = (struct receiver_page){.outlet = o,
                                   .name = o.receiver->name,
                                   .kind = page_borrow(alert_kind_names[o.receiver->kind]),
                                   .trouble = *o.trouble ? page_borrow(o.trouble) : NULL,
                                   .waiting = (int64_t)o.waiting,
                                   .taken = o.taken,
                                   .refused = o.refused,
                                   .per_minute = o.receiver->per_minute,
                                   .taken_at = o.taken_at,
                                   .failing_since = o.failing_since};
}

static const void *receiver_next(struct resource_ask *q, size_t *pos)
{
    const struct alert_config *c = alerts_config(q->a->alerts);
    return *pos < c->n_receivers ? &c->receivers[(*pos)++] : NULL;
}

static const void *receiver_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return alert_config_find(alerts_config(q->a->alerts), q->name);
}

static void receiver_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct alert_config *c = alerts_config(q->a->alerts);
    receiver_page_of(q->a, (size_t)((const struct alert_receiver *)x - c->receivers), out);
}

static const struct resource receiver_noun = {.noun = "receiver",
                                              .kind = ACCESS_KIND_CLUSTER,
                                              .collection = "receivers",
                                              .param = "receiver",
                                              .page = &receiver_page_table,
                                              .may_see = ACCESS_MACHINE_SEE,
                                              .may_change = ACCESS_MACHINE_CHANGE,
                                              .next = receiver_next,
                                              .find = receiver_find,
                                              .fill = receiver_fill};

static void receiver_test(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct alert_receiver *r = resource_find(&q, RESOURCE_TO_CHANGE, "test");
    if (r && alerts_test(q.a->alerts, r->name, q.who.user, &q.err) == 0)
        resource_reply(&q, r, 202, api_barrier(q.a));
    else
        resource_refuse(&q);
    resource_end(&q);
}

/* ---- routes ---- */

static const struct http_param alert_params[] = {
    {"state", HTTP_PARAM_STRING, "open (if not given), silenced, past or all"},
    {"severity", HTTP_PARAM_STRING, "info, warning or critical"},
    {0}};
static const struct http_param incident_params[] = {
    {"all", HTTP_PARAM_BOOLEAN, "those that are over, too"},
    {0}};
static const struct http_param report_params[] = {
    {"format", HTTP_PARAM_STRING, "md (if not given) or html"},
    {"language", HTTP_PARAM_STRING, "en (if not given) or zh"},
    {0}};
#define ACTION(noun, does, path, role, words, ...)                                                 \
    RESOURCE_ROUTE("POST", does, noun, path, role, words, .max_body = RESOURCE_BODY_MAX,           \
                   __VA_ARGS__)
static const struct http_route rows[] = {
    RESOURCE_LIST(&alert_noun,
                  "/v1/alerts",
                  VIEWER,
                  "alerts, the newest incident first",
                  .params = alert_params,
                  .reply_schema = "AlertList"),
    RESOURCE_GET(&alert_noun,
                 "/v1/alerts/{alert}",
                 VIEWER,
                 "one alert, with its facts",
                 .reply_schema = "Alert"),
    ACTION(&alert_noun,
           alert_ack,
           "/v1/alerts/{alert}:ack",
           USER,
           "say that somebody cares: nothing is escalated then",
           .request_schema = "AlertAck",
           .reply_schema = "Alert"),
    ACTION(&alert_noun,
           alert_silence,
           "/v1/alerts/{alert}:silence",
           USER,
           "tell nobody of this alert for a while",
           .request_schema = "AlertSilence",
           .reply_schema = "Alert"),
    RESOURCE_LIST(&incident_noun,
                  "/v1/incidents",
                  VIEWER,
                  "incidents, the newest first",
                  .params = incident_params,
                  .reply_schema = "IncidentList"),
    RESOURCE_GET(&incident_noun,
                 "/v1/incidents/{incident}",
                 VIEWER,
                 "one incident, with the alerts that you may see",
                 .reply_schema = "Incident"),
    RESOURCE_ROUTE("GET",
                   incident_report_reply,
                   &incident_noun,
                   "/v1/incidents/{incident}/report",
                   VIEWER,
                   "what, when, who, evidence, what was done, what it cost",
                   .params = report_params,
                   .reply_type = "text/markdown"),
    RESOURCE_LIST(&silence_noun,
                  "/v1/silences",
                  VIEWER,
                  "silences, also those that are over",
                  .reply_schema = "SilenceList"),
    RESOURCE_ADD(&silence_noun,
                 "/v1/silences",
                 ADMIN,
                 "tell nobody of what matches, for a while",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "SilenceForm",
                 .reply_schema = "Silence"),
    RESOURCE_REMOVE(&silence_noun,
                    "/v1/silences/{silence}",
                    ADMIN,
                    "end a silence",
                    .reply_schema = "Silence"),
    RESOURCE_LIST(&rule_noun,
                  "/v1/alert_rules",
                  VIEWER,
                  "the rules that are in force",
                  .reply_schema = "AlertRuleList"),
    RESOURCE_GET(&rule_noun,
                 "/v1/alert_rules/{rule}",
                 VIEWER,
                 "one rule",
                 .reply_schema = "AlertRule"),
    RESOURCE_PUT(&rule_noun,
                 "/v1/alert_rules/{rule}",
                 ADMIN,
                 "a rule as a whole: a new one, or in place of the one of that name",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "AlertRuleForm",
                 .reply_schema = "AlertRule",
                 .reply_status = 201,
                 .other_schema = "AlertRule"),
    RESOURCE_REMOVE(&rule_noun,
                    "/v1/alert_rules/{rule}",
                    ADMIN,
                    "remove a rule that was added here: what it stood for holds again",
                    .reply_schema = "AlertRule"),
    RESOURCE_LIST(&receiver_noun,
                  "/v1/receivers",
                  VIEWER,
                  "who is told of alerts, and how that goes; neither addresses nor keys",
                  .reply_schema = "ReceiverList"),
    ACTION(&receiver_noun,
           receiver_test,
           "/v1/receivers/{receiver}:test",
           ADMIN,
           "send it a test message",
           .reply_schema = "Receiver",
           .reply_status = 202),
};
static const struct http_schema schemas[] = {
    {.name = "Alert", .table = &alert_page_table, .which = FIELD_SHOWN},
    LIST_OF("AlertList", "alerts", "Alert"),
    {.name = "AlertAck", .table = &alert_ack_form, .is_form = true},
    {.name = "AlertSilence", .table = &alert_silence_form, .is_form = true},
    {.name = "Incident", .table = &incident_page_table, .which = FIELD_SHOWN},
    {.name = "IncidentItem", .table = &incident_page_table, .which = FIELD_LISTED},
    LIST_OF("IncidentList", "incidents", "IncidentItem"),
    {.name = "Silence", .table = &alert_silence_table, .which = FIELD_SHOWN},
    {.name = "SilenceForm", .table = &silence_form_table, .which = FIELD_ASKED, .is_form = true},
    LIST_OF("SilenceList", "silences", "Silence"),
    {.name = "AlertRule", .table = &alert_rule_table, .which = FIELD_SHOWN},
    {.name = "AlertRuleForm", .table = &alert_rule_table, .which = FIELD_ASKED, .is_form = true},
    LIST_OF("AlertRuleList", "rules", "AlertRule"),
    {.name = "Receiver", .table = &receiver_page_table, .which = FIELD_SHOWN},
    LIST_OF("ReceiverList", "receivers", "Receiver"),
};
const struct api_part part_alerts = {rows, array_len(rows), schemas, array_len(schemas)};
