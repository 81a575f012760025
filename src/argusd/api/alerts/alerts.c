/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c - /v1/alerts and /v1/silences. Who may see what an alert is about may see the alert. */
#include "argusd/api/alerts/notices.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/resource.h"
#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"

enum { SILENCE_MOST_DAYS = 365, SILENCES_OF_USER_MAX = 50, SILENCES_OF_ADMINS = 200 };

/* ---- an alert ---- */

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
               .doc = "kind of thing that the alert is about: job, node, gpu …"),
    ALERT_PAGE("name", FIELD_STR, name, FIELD_BORROWED | FIELD_ALWAYS),
    PAGE_TEXT(user),
    PAGE_TEXT(project),
    ALERT_PAGE("open", FIELD_BOOL, open, 0u),
    ALERT_PAGE("incident", FIELD_STR, incident, FIELD_BORROWED | FIELD_ALWAYS),
    ALERT_PAGE("silenced_by", FIELD_STR, silenced_by, FIELD_BORROWED, .doc = "a silence's id"),
    ALERT_PAGE("text",
               FIELD_STR,
               text,
               FIELD_ALWAYS,
               .doc = "the sentence of the rule with its facts, in the reader's language"),
    ALERT_PAGE("fix", FIELD_STR, fix, FIELD_ALWAYS, .doc = "what to do, empty where none is known"),
    ALERT_PAGE("facts",
               FIELD_JSON,
               facts,
               0u,
               .schema = OBJECT_AS_IT_CAME("the evidence: facts by name")),
    ALERT_PAGE("count", FIELD_INT, count, 0u, .doc = "how often it fired while it was open"),
    ALERT_PAGE("since", FIELD_TIME, since, 0u),
    ALERT_PAGE("ended_at", FIELD_TIME, ended_at, 0u),
    PAGE_TEXT(acked_by),
    ALERT_PAGE("acked_at", FIELD_TIME, acked_at, 0u),
    PAGE_TEXT(ack_note),
};
const struct field_table alert_page_table = FIELD_TABLE("Alert", alert_page_rows, alert_page);

char *alert_borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

static char *alert_said(const struct alert *a, enum message_language in, bool is_fix)
{
    struct buf out = BUF_INIT(ALERT_SHOWN_MAX);
    alert_sentence(a, in, is_fix, &out);
    return buf_take(&out);
}

void alert_page_fill(const struct api *api,
                     enum message_language reader,
                     const struct incident *i,
                     const struct alert *a,
                     struct alert_page *page)
{
    const struct alert_silence *s = alerts_silence_of(api->alerts, a);
    *page = (struct alert_page){.a = a,
                                .id = alert_borrow(a->id),
                                .rule = a->rule,
                                .severity = a->severity,
                                .kind = alert_borrow(alert_of_names[a->of]),
                                .name = a->name,
                                .user = a->owner,
                                .project = a->project,
                                .open = a->open,
                                .incident = alert_borrow(i->id),
                                .silenced_by = s ? alert_borrow(s->id) : NULL,
                                .text = alert_said(a, reader, false),
                                .fix = alert_said(a, reader, true),
                                .facts = alert_facts_said(a->args, reader),
                                .count = a->count,
                                .since = a->since,
                                .ended_at = a->ended_at,
                                .acked_by = a->acked_by,
                                .acked_at = a->acked_at,
                                .ack_note = a->ack_note};
}

/* An alert in its place. */
struct alert_place {
    struct incident *i;
    struct alert *a;
};
/* All that a request may see, in one block: q->own. */
struct alert_places_of {
    size_t n;
    struct alert_place v[];
};

static void alert_fill_page(struct resource_ask *q, const void *x, void *out)
{
    const struct alert_place *at = x;
    alert_page_fill(q->a, http_req_principal(q->req)->language, at->i, at->a, out);
}

/* The newest incident first, in each its alerts. */
static struct alert_places_of *alert_places(const struct alert_table *t)
{
    struct incident *i;
    size_t n = 0, incidents = 0;
    for (; (i = incident_at(t, incidents)); incidents++)
        n += i->alerts.n;
    struct alert_places_of *all = xcalloc(1, sizeof(*all) + n * sizeof(all->v[0]));
    while (incidents-- > 0) {
        i = incident_at(t, incidents);
        for (size_t k = 0; k < i->alerts.n; k++)
            all->v[all->n++] = (struct alert_place){i, incident_alert(i, k)};
    }
    return all;
}

static const void *alert_next(struct resource_ask *q, size_t *pos)
{
    if (!q->own)
        q->own = alert_places(alerts_table(q->a->alerts));
    const struct alert_places_of *all = q->own;
    return *pos < all->n ? &all->v[(*pos)++] : NULL;
}

static bool alert_wants(struct resource_ask *q, const void *x)
{
    const struct alert *a = ((const struct alert_place *)x)->a;
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
    return message_refuse(&q->err, ERR_BAD_REQUEST, "alerts_state",
                          MESSAGE_ARGS(MESSAGE_STR("state", state)));
}

static const void *alert_look_up(struct resource_ask *q, const void *asked)
{
    struct alert_place at = {0};
    (void)asked;
    at.a = alert_table_find(alerts_table(q->a->alerts), q->name, &at.i);
    if (!at.a) {
        (void)message_refuse(&q->err, ERR_NOT_FOUND, "no_alert",
                             MESSAGE_ARGS(MESSAGE_STR("id", q->name))); /* only fills err */
        return NULL;
    }
    struct alert_places_of *one = xcalloc(1, sizeof(*one) + sizeof(one->v[0]));
    one->v[one->n++] = at;
    free(q->own);
    q->own = one;
    return &one->v[0];
}

/* To see or change an alert is to see or change the thing that it is about. */
int alert_access(const struct access_who *who,
                 enum access_action action,
                 const char *verb,
                 const struct alert *a,
                 struct err *err)
{
    struct access_thing thing = alerts_thing(a);
    bool changes = action == ACCESS_MACHINE_CHANGE;
    enum access_action see = access_kind_see(thing.kind);
    enum access_action act = thing.kind == ACCESS_KIND_JOB        ? ACCESS_JOB_CHANGE
                             : thing.kind == ACCESS_KIND_USER     ? ACCESS_USER_CHANGE
                             : thing.kind == ACCESS_KIND_PROJECT  ? ACCESS_PROJECT_CHANGE
                             : thing.kind == ACCESS_KIND_PIPELINE ? ACCESS_PIPELINE_CHANGE
                                                                  : ACCESS_MACHINE_CHANGE;
    return access_check(who, changes ? act : see, verb, &thing, err);
}

static int alert_may(struct resource_ask *q,
                     enum access_action action,
                     const char *verb,
                     const void *x)
{
    const struct alert *a = ((const struct alert_place *)x)->a;
    int r = alert_access(&q->who, action, verb, a, &q->err);
    if (r == ERR_NOT_FOUND) /* not what it is about: an alert's id is easily guessed */
        r = message_refuse(&q->err, r, "not_found",
                           MESSAGE_ARGS(MESSAGE_STR("noun", "alert"), MESSAGE_STR("name", a->id)));
    return r;
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
                                           .flags = RESOURCE_CUT | RESOURCE_PAGES,
                                           .check_list = alert_check_list,
                                           .next = alert_next,
                                           .wants = alert_wants,
                                           .find = alert_look_up,
                                           .may = alert_may,
                                           .fill = alert_fill_page};

static void alert_ack(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &alert_ack_form);
    const struct alert_place *at =
        body ? resource_find(&q, RESOURCE_TO_CHANGE, "acknowledge") : NULL;
    if (at) {
        alerts_ack(q.a->alerts, at->a, at->i, q.who.user, json_get_str(body, "note", NULL));
        resource_reply(&q, at, 200, api_barrier(q.a));
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
    if (q->name)
        (void)message_refuse(&q->err, ERR_NOT_FOUND, "no_silence",
                             MESSAGE_ARGS(MESSAGE_STR("id", q->name))); /* only fills err */
    return NULL;
}

static void silence_thing(struct resource_ask *q,
                          const void *x,
                          const void *asked,
                          struct access_thing *ret)
{
    (void)asked;
    const struct alert_silence *s = x;
    ret->kind = ACCESS_KIND_LOG; /* its events name what it is about, and say why */
    ret->name = s ? s->id : str_or(q->name, "new");
}

/* A silence of one alert is as visible as that alert, any other names what it is about: jobs,
 * users, projects. Who made one sees it. */
static int silence_may(struct resource_ask *q,
                       enum access_action action,
                       const char *verb,
                       const void *x)
{
    const struct alert_silence *s = x;
    struct incident *i;
    const struct access_thing all = {.kind = ACCESS_KIND_CLUSTER, .name = s->id};
    if (action == ACCESS_MACHINE_CHANGE)
        return access_check(&q->who, action, verb, &all, &q->err);
    const struct alert *a =
        s->alert ? alert_table_find(alerts_table(q->a->alerts), s->alert, &i) : NULL;
    if (q->who.sees_all || str_eq(s->by, q->who.user) ||
        (a && alert_access(&q->who, ACCESS_MACHINE_SEE, "see", a, NULL) == 0))
        return 0;
    return message_refuse(&q->err, ERR_NOT_FOUND, "not_found",
                          MESSAGE_ARGS(MESSAGE_STR("noun", "silence"), MESSAGE_STR("name", s->id)));
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
    return message_refuse(&q->err, ERR_BAD_SPEC, "silences_all", MESSAGE_NO_ARGS);
}

/* A second silence by the same user of what an alert is about takes the place of his first. Users,
 * who silence their own alerts one by one, leave places to admins. */
static int silence_make_room(struct resource_ask *q, const struct alert_silence *made)
{
    const struct alert_silence *s;
    size_t his = 0, of_alerts = 0;
    for (size_t i = 0; (s = alerts_silence_at(q->a->alerts, i));) {
        bool is_his = str_eq(s->by, q->who.user);
        if (is_his && alert_silence_is_again(s, made)) {
            alerts_silence_remove(q->a->alerts, s); /* the next one has its place */
            continue;
        }
        his += is_his;
        of_alerts += s->alert != NULL;
        i++;
    }
    size_t most = his >= SILENCES_OF_USER_MAX ? his : ALERTS_SILENCES_MAX - SILENCES_OF_ADMINS;
    if (q->who.role >= ACCESS_ADMIN || (his < SILENCES_OF_USER_MAX && of_alerts < most))
        return 0;
    return message_refuse(&q->err, ERR_REFUSED, "too_many_silences",
                          MESSAGE_ARGS(MESSAGE_NUM("most", most)));
}

static const void *silence_put_form(struct resource_ask *q,
                                    struct alert_silence *taken,
                                    usec_t lasts)
{
    const struct alert_silence *s = NULL;
    if (silence_make_room(q, taken) < 0)
        return NULL;
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

static const struct resource silence_noun = {.noun = "silence",
                                             .kind = ACCESS_KIND_CLUSTER,
                                             .collection = "silences",
                                             .param = "silence",
                                             .page = &alert_silence_table,
                                             .form = &silence_form_table,
                                             .may_see = ACCESS_MACHINE_SEE,
                                             .may_change = ACCESS_MACHINE_CHANGE,
                                             .add = {"silence_added", "make"},
                                             .remove = {"silence_removed", "remove"},
                                             .next = silence_next,
                                             .find = silence_find,
                                             .may = silence_may,
                                             .thing = silence_thing,
                                             .object = silence_object,
                                             .check = silence_check,
                                             .write = silence_write,
                                             .take_away = silence_take_away};

/* Silences one alert: its owner may. */
static void alert_silence(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct alert_silence s = {0};
    usec_t lasts = 0;
    resource_begin(&q, req, app);
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &alert_silence_form);
    const struct alert_place *at = body ? resource_find(&q, RESOURCE_TO_CHANGE, "silence") : NULL;
    q.field = at ? "for" : NULL;
    int r = at ? span_from_string(json_get_str(body, "for", ""), &lasts, &q.err) : -1;
    if (r < 0)
        q.err.code = at ? ERR_BAD_REQUEST : q.err.code;
    else if (lasts < USEC_SEC || lasts > SILENCE_MOST_DAYS * USEC_DAY)
        r = message_refuse(&q.err, ERR_BAD_REQUEST, "silence_span",
                           MESSAGE_ARGS(MESSAGE_NUM("most", SILENCE_MOST_DAYS)));
    if (r >= 0)
        alert_silence_cover(&s, at->a);
    set_str(&s.note, body ? json_get_str(body, "note", NULL) : NULL);
    const struct alert_silence *made = r < 0 ? NULL : silence_put_form(&q, &s, lasts);
    if (made)
        resource_reply(&q, at, 200, api_barrier(q.a));
    else if (body)
        resource_refuse(&q);
    field_release(&alert_silence_table, &s);
    resource_end(&q);
}

/* ---- routes ---- */

static const struct http_param alert_params[] = {
    {"state", HTTP_PARAM_STRING, "open (if not given), silenced, past or all"},
    {"severity", HTTP_PARAM_STRING, "info, warning or critical"},
    {"limit", HTTP_PARAM_INTEGER, "how many at most, 1 to 2000; 200 if absent"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before; what came since is not in it"},
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
                 .reply_schema = "Alert",
                 .example = "a1"),
    ACTION(&alert_noun,
           alert_ack,
           "/v1/alerts/{alert}:ack",
           USER,
           "say that somebody looks after the alert: it is not escalated any more",
           .request_schema = "AlertAck",
           .reply_schema = "Alert"),
    ACTION(&alert_noun,
           alert_silence,
           "/v1/alerts/{alert}:silence",
           USER,
           "tell nobody for a while of what this alert is about, also when that comes back",
           .request_schema = "AlertSilence",
           .reply_schema = "Alert"),
    RESOURCE_LIST(&silence_noun,
                  "/v1/silences",
                  VIEWER,
                  "silences of what you may see, also those that are over",
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
                    .reply_schema = "Silence",
                    .example = "s1"),
};
static const struct http_schema schemas[] = {
    {.name = "Alert", .table = &alert_page_table, .which = FIELD_SHOWN},
    LIST_AND("AlertList", "alerts", "Alert", "," KEY("next_cursor", TEXT_OR_NULL)),
    {.name = "AlertAck", .table = &alert_ack_form, .is_form = true},
    {.name = "AlertSilence", .table = &alert_silence_form, .is_form = true},
    {.name = "Silence", .table = &alert_silence_table, .which = FIELD_SHOWN},
    {.name = "SilenceForm", .table = &silence_form_table, .which = FIELD_ASKED, .is_form = true},
    LIST_OF("SilenceList", "silences", "Silence"),
};
const struct api_part part_alerts = {rows, array_len(rows), schemas, array_len(schemas)};
