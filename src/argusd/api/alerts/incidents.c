/* SPDX-License-Identifier: Apache-2.0 */
/* incidents.c - /v1/incidents: an incident shows its reader the alerts that he may see, and counts
 * the others. */
#include "argusd/api/alerts/notices.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/api/alerts/incident_acts.h"
#include "argusd/kit/part.h"
#include "argusd/kit/reports.h"
#include "argusd/kit/resource.h"
#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"

/* ---- incidents ---- */

struct incident_page {
    char *id, *cause, *merged_into; /* borrowed */
    char *title;
    int severity;
    bool open;
    usec_t opened_at, closed_at;
    int64_t jobs, hidden;
    double gpu_hours;
    struct strv told;
    struct field_list tellings; /* of struct telling */
    struct field_list alerts;   /* of struct alert_page */
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
    INCIDENT_PAGE("title",
                  FIELD_STR,
                  title,
                  FIELD_LISTED | FIELD_ALWAYS,
                  .doc = "text of its worst alert, in the reader's language"),
    INCIDENT_PAGE("opened_at", FIELD_TIME, opened_at, FIELD_LISTED),
    INCIDENT_PAGE("closed_at", FIELD_TIME, closed_at, FIELD_LISTED),
    INCIDENT_PAGE("jobs", FIELD_INT, jobs, FIELD_LISTED, .doc = "jobs that the incident hit"),
    INCIDENT_PAGE("gpu_hours", FIELD_REAL, gpu_hours, FIELD_LISTED, .doc = "what it cost"),
    INCIDENT_PAGE("merged_into",
                  FIELD_STR,
                  merged_into,
                  FIELD_LISTED | FIELD_BORROWED,
                  .doc = "the incident whose part it turned out to be"),
    INCIDENT_PAGE("hidden", FIELD_INT, hidden, FIELD_LISTED, .doc = "alerts that you may not see"),
    INCIDENT_PAGE("told", FIELD_STRV, told, 0u, .doc = "receivers that took the last message"),
    INCIDENT_PAGE("tellings",
                  FIELD_LIST,
                  tellings,
                  0u,
                  .of = &telling_table,
                  .doc = "each receiver that it concerns, and what became of its message"),
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
    return message_refuse(&q->err, ERR_NOT_FOUND, "no_incident",
                          MESSAGE_ARGS(MESSAGE_STR("id", i->id)));
}

static char *page_title(struct resource_ask *q, const struct incident *i, enum message_language in)
{
    const struct alert *first = incident_first(i);
    struct buf out = BUF_INIT(ALERT_SHOWN_MAX);
    if (first && incident_sees(first, q))
        incident_sentence(i, in, &out);
    else
        (void)buf_adds(&out, incident_cause(i, incident_sees, q)); /* fits */
    return buf_take(&out);
}

/* To be freed. */
static struct field_list incident_tellings(const struct resource_ask *q, const struct incident *i)
{
    struct telling *v = xcalloc(i->tellings.n ? i->tellings.n : 1, sizeof(*v));
    for (size_t k = 0; k < i->tellings.n; k++) {
        field_copy(&telling_table, &v[k], incident_telling_at(i, k));
        if (!access_sees_answers(&q->who))
            set_str(&v[k].why, NULL);
    }
    return (struct field_list){.v = v, .n = i->tellings.n};
}

static void incident_fill_tellings(struct incident_page *page)
{
    for (size_t k = 0; k < page->tellings.n; k++) {
        const struct telling *t = &((struct telling *)page->tellings.v)[k];
        if (t->state == TELLING_TAKEN)
            strv_add(&page->told, t->receiver);
    }
}

static void incident_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct incident *i = x;
    struct incident_page *page = out;
    enum message_language reader = http_req_principal(q->req)->language;
    *page = (struct incident_page){.id = alert_borrow(i->id),
                                   .cause = alert_borrow(incident_cause(i, incident_sees, q)),
                                   .merged_into = i->merged_into,
                                   .title = page_title(q, i, reader),
                                   .severity = i->severity,
                                   .open = i->open,
                                   .opened_at = i->opened_at,
                                   .closed_at = i->closed_at,
                                   .jobs = (int64_t)incident_jobs(i),
                                   .gpu_hours = incident_gpu_hours(i, clock_wall()),
                                   .tellings = incident_tellings(q, i)};
    struct alert_page *v = xcalloc(i->alerts.n ? i->alerts.n : 1, sizeof(*v));
    incident_fill_tellings(page);
    page->alerts.v = v;
    for (size_t k = 0; k < i->alerts.n; k++)
        if (incident_sees(incident_alert(i, k), q))
            alert_page_fill(q->a, reader, i, incident_alert(i, k), &v[page->alerts.n++]);
    page->hidden = (int64_t)(i->alerts.n - page->alerts.n) + i->left_out;
}

static const void *incident_next(struct resource_ask *q, size_t *pos)
{
    const struct alert_table *t = alerts_table(q->a->alerts);
    size_t n = alert_table_incidents(t);
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
    const struct incident *i = incident_find(alerts_table(q->a->alerts), q->name);
    if (!i)
        (void)message_refuse(&q->err, ERR_NOT_FOUND, "no_incident",
                             MESSAGE_ARGS(MESSAGE_STR("id", q->name))); /* only fills err */
    return i;
}

static const struct resource incident_noun = {.noun = "incident",
                                              .kind = ACCESS_KIND_CLUSTER,
                                              .collection = "incidents",
                                              .param = "incident",
                                              .page = &incident_page_table,
                                              .item = FIELD_LISTED,
                                              .may_see = ACCESS_MACHINE_SEE,
                                              .may_change = ACCESS_MACHINE_CHANGE,
                                              .flags = RESOURCE_CUT | RESOURCE_PAGES,
                                              .next = incident_next,
                                              .wants = incident_wants,
                                              .find = incident_look_up,
                                              .may = incident_may,
                                              .fill = incident_fill};

/* ---- the report ---- */

struct incident_report_wait { /* a report that waits for its acts */
    struct api *a;
    struct http_req *req;
    struct report_ask asked;
    struct incident_gather *gather;
};

static void incident_report_free(struct incident_report_wait *w)
{
    incident_gather_free(w->gather);
    free(w);
}

static void incident_report_on_gone(struct http_req *req, void *arg)
{
    (void)req;
    incident_report_free(arg);
}

static void incident_report_write(struct resource_ask *q,
                                  const struct incident *i,
                                  const struct report_ask *asked,
                                  const struct incident_acts *acts)
{
    struct buf out = BUF_INIT(INCIDENT_REPORT_MAX);
    struct incident shown = *i; /* shallow, but for its tellings */
    shown.tellings = incident_tellings(q, i);
    incident_report(&shown, acts, asked->is_html, asked->in, clock_wall(), incident_sees, q, &out);
    report_reply(q->req, asked, &out, api_reader_barrier(q->a));
    for (size_t k = 0; k < shown.tellings.n; k++)
        field_release(&telling_table, incident_telling_at(&shown, k));
    free(shown.tellings.v);
}

/* The incident is looked up anew: meanwhile it may have gone, or who asks may see it no more. */
static void incident_report_on_acts(const struct incident_acts *acts,
                                    const struct err *err,
                                    void *arg)
{
    struct incident_report_wait *w = arg;
    struct resource_ask q;
    http_req_on_close(w->req, NULL, NULL);
    resource_begin(&q, w->req, w->a);
    const struct incident *i = err->code ? NULL : resource_find(&q, RESOURCE_TO_SEE, "see");
    if (err->code)
        api_fail(w->req, err, 0);
    else if (i)
        incident_report_write(&q, i, &w->asked, acts);
    else
        resource_refuse(&q);
    resource_end(&q);
    incident_report_free(w);
}

static void incident_report_reply(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct report_ask asked;
    struct incident_report_wait *w = NULL;
    resource_begin(&q, req, app);
    const struct incident *i = resource_find(&q, RESOURCE_TO_SEE, "see");
    if (i)
        q.field = report_ask(req, &asked, &q.err);
    if (i && !q.field) {
        w = xcalloc(1, sizeof(*w));
        *w = (struct incident_report_wait){.a = q.a, .req = req, .asked = asked};
        w->gather =
            incident_gather_new(q.a, http_req_principal(req), asked.in, i, incident_sees, &q);
    } else {
        resource_refuse(&q);
    }
    resource_end(&q);
    if (!w)
        return;
    http_req_on_close(req, incident_report_on_gone, w);
    incident_gather_begin(w->gather, incident_report_on_acts, w);
}

/* ---- routes ---- */

static const struct http_param incident_params[] = {
    {"all", HTTP_PARAM_BOOLEAN, "those that are over, too"},
    {"limit", HTTP_PARAM_INTEGER, "how many at most, 1 to 2000; 200 if absent"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before; what came since is not in it"},
    {0}};
static const struct http_route rows[] = {
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
                 .reply_schema = "Incident",
                 .example = "i1"),
    RESOURCE_ROUTE("GET",
                   incident_report_reply,
                   &incident_noun,
                   "/v1/incidents/{incident}/report",
                   VIEWER,
                   "what, when, who, evidence, what was done, what it cost",
                   .params = report_params,
                   .reply_type = "text/markdown"),
};
static const struct http_schema schemas[] = {
    {.name = "Incident", .table = &incident_page_table, .which = FIELD_SHOWN},
    {.name = "Telling", .table = &telling_table, .which = FIELD_SHOWN},
    {.name = "IncidentItem", .table = &incident_page_table, .which = FIELD_LISTED},
    LIST_AND("IncidentList", "incidents", "IncidentItem", "," KEY("next_cursor", TEXT_OR_NULL)),
};
const struct api_part part_incidents = {rows, array_len(rows), schemas, array_len(schemas)};
