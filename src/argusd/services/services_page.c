/* SPDX-License-Identifier: Apache-2.0 */
/* services_page.c - /v1/services: list, look, serve, deploy, scale, roll back, stop, remove. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "argusd/kit/saying.h"
#include "argusd/services/service_figures.h"
#include "argusd/services/services_deploy.h"
#include "argusd/services/serving.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/serve/serve_idle.h"
#include "core/serve/serve_look.h"

enum { BODY_MAX = 1 << 20 };

/* ---- the page ---- */

struct replica_page {
    int64_t k;
    const char *state, *node, *job;
    int64_t requests;
    char *reason; /* JSON */
};
#define R(key, ftype, member, ...) FIELD_AT(replica_page, key, ftype, member, __VA_ARGS__)
static const struct field replica_rows[] = {
    R("replica", FIELD_INT, k),
    R("state",
      FIELD_STR,
      state,
      .flags = FIELD_ALWAYS | FIELD_BORROWED,
      .doc = "NEW, WAITING for its lease, LOADING, CHECKING, READY, LEAVING"),
    R("node", FIELD_STR, node, .flags = FIELD_BORROWED),
    R("job",
      FIELD_STR,
      job,
      .flags = FIELD_BORROWED,
      .doc = "job that is its lease, and has its log"),
    R("requests", FIELD_INT, requests, .doc = "under way"),
    R("reason", FIELD_JSON, reason, .schema = REF_OR_NULL("Reason"), .doc = "why it is not ready"),
};
static const struct field_table replica_table =
    FIELD_TABLE("ServiceReplica", replica_rows, replica_page);

struct version_page {
    struct service_version v; /* borrowed */
    const char *state;
    char *reason; /* JSON */
    struct field_list replicas;
};
#define V(key, ftype, member, ...) FIELD_AT(version_page, key, ftype, member, __VA_ARGS__)
static const struct field version_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct version_page, v),
     .of = &service_version_table,
     .flags = FIELD_BORROWED},
    V("state",
      FIELD_STR,
      state,
      .flags = FIELD_SHOWN | FIELD_ALWAYS | FIELD_BORROWED,
      .doc =
          "WAITING (for its model, for leases), LOADING, READY, DEGRADED, FAILED, COLD, SLEEPING"),
    V("reason",
      FIELD_JSON,
      reason,
      .schema = REF_OR_NULL("Reason"),
      .flags = FIELD_SHOWN,
      .doc =
          "why it failed, how far its model is that is still being made, or since when it sleeps"),
    V("replicas", FIELD_LIST, replicas, .of = &replica_table, .flags = FIELD_SHOWN | FIELD_ALWAYS),
};
static const struct field_table version_page_table = {.name = "ServiceVersion",
                                                      .rows = version_rows,
                                                      .n = array_len(version_rows),
                                                      .size = sizeof(struct version_page)};

struct service_page {
    struct served s; /* borrowed */
    const char *state, *what;
    char *endpoint;
    int64_t ready, in_flight, waiting;
    double gpus, gpu_hours;
    struct service_figures figures;
    struct field_list versions;
};
#define EVERYWHERE (FIELD_SHOWN | FIELD_LISTED)
#define P(key, ftype, member, ...) FIELD_AT(service_page, key, ftype, member, __VA_ARGS__)
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct service_page, s),
     .of = &service_table,
     .flags = FIELD_BORROWED},
    P("state",
      FIELD_STR,
      state,
      .flags = EVERYWHERE | FIELD_ALWAYS | FIELD_BORROWED,
      .doc = "state of the version that has the traffic, or is to get it, or STOPPED"),
    P("what",
      FIELD_STR,
      what,
      .flags = EVERYWHERE | FIELD_ALWAYS | FIELD_BORROWED,
      .doc = "the model or the application"),
    P("endpoint",
      FIELD_STR,
      endpoint,
      .flags = FIELD_SHOWN | FIELD_ALWAYS,
      .doc = "base URL for an OpenAI-compatible client, below this server"),
    P("ready", FIELD_INT, ready, .flags = EVERYWHERE, .doc = "replicas that answer"),
    P("in_flight", FIELD_INT, in_flight, .flags = EVERYWHERE, .doc = "requests under way"),
    P("waiting",
      FIELD_INT,
      waiting,
      .flags = EVERYWHERE,
      .doc = "of them those beyond what its replicas take at once"),
    P("gpu_hours",
      FIELD_REAL,
      gpu_hours,
      .flags = EVERYWHERE,
      .doc = "of all its leases, those that are over, too"),
    P("gpus", FIELD_REAL, gpus, .flags = EVERYWHERE, .doc = "GPUs of all its leases"),
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct service_page, figures),
     .of = &service_figures_table},
    P("versions",
      FIELD_LIST,
      versions,
      .of = &version_page_table,
      .flags = FIELD_SHOWN | FIELD_ALWAYS,
      .doc = "the newest first"),
};
static const struct field_table page_table = {.name = "Service",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct service_page)};

/* As JSON; NULL: there is nothing to say. */
static char *page_say(const struct resource_ask *q, const char *code, const char *text)
{
    const struct api_eyes eyes = {.a = q->a, .p = http_req_principal(q->req)};
    struct said said = {0};
    if (!code || !*code)
        return NULL;
    saying_say(&eyes, NULL, code, str_or(text, ""), &said);
    char *json = field_to_text(&said_table, &said, FIELD_ALL, FIELD_PAGE);
    said_release(&said);
    return json;
}

static enum serve_version_state page_state(const struct service_version *v, int64_t *ret_ready)
{
    struct serve_version_seen seen;
    service_version_see(v, &seen);
    if (ret_ready)
        *ret_ready = seen.ready;
    return serve_version_state(&seen);
}

static void page_fill_version(const struct resource_ask *q,
                              const struct service_version *v,
                              struct version_page *page)
{
    struct replica_page *all = xcalloc(v->n_units + 1, sizeof(*all));
    struct reason why;
    service_version_reason(v, &why);
    page->v = *v;
    page->state = serve_version_words[page_state(v, NULL)];
    page->reason = page_say(q, why.code, why.text);
    for (size_t i = 0; i < v->n_units; i++) {
        const struct service_unit *u = v->units[i];
        all[i] = (struct replica_page){.k = u->k,
                                       .state = serve_unit_words[u->state],
                                       .node = u->node,
                                       .job = u->job,
                                       .requests = u->requests};
        all[i].reason = page_say(q, u->reason.code, u->reason.text);
    }
    page->replicas = (struct field_list){.v = all, .n = v->n_units};
}

static void service_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct served *s = x;
    struct service_page *page = out;
    const struct service_version *v = service_find_version(s, s->current ? s->current : s->wanted);
    const bool has_any = s->n_versions > 0;
    if (has_any && !v)
        v = s->versions[0];
    page->s = *s;
    page->endpoint = xasprintf("/v1/services/%s/v1", s->name);
    page->state = s->stopped ? "STOPPED"
                  : has_any  ? serve_version_words[page_state(v, &page->ready)]
                             : "COLD";
    page->what = has_any ? str_or(v->spec.model, v->spec.app) : "";
    struct version_page *all = xcalloc(s->n_versions + 1, sizeof(*all));
    for (size_t i = 0; i < s->n_versions; i++) {
        page_fill_version(q, s->versions[i], &all[i]);
        page->in_flight += service_version_requests(s->versions[i]);
        page->waiting += service_version_waiting(s->versions[i]);
        for (size_t k = 0; k < s->versions[i]->n_units; k++)
            if (s->versions[i]->units[k]->held_at)
                page->gpus += serve_spec_gpus(&s->versions[i]->spec);
    }
    page->versions = (struct field_list){.v = all, .n = s->n_versions};
    page->gpu_hours = service_gpu_hours(s);
    service_figures_fill(s, clock_mono(), clock_wall(), &page->figures);
}

/* ---- the noun ---- */

static const void *services_page_next(struct resource_ask *q, size_t *pos)
{
    const struct served *s;
    do
        s = serving_next(q->a->serving, pos);
    while (s && s->removed);
    return s;
}

static int service_compare(const void *x, const void *y)
{
    return strcmp((*(const struct served *const *)x)->name,
                  (*(const struct served *const *)y)->name);
}

static const void *services_page_find(struct resource_ask *q, const void *asked)
{
    const struct served *s = serving_find(q->a->serving, q->name);
    (void)asked;
    return s && s->removed ? NULL : s;
}

static void service_ask_thing(struct resource_ask *q,
                              const void *x,
                              const void *asked,
                              struct access_thing *ret)
{
    (void)asked;
    if (x)
        *ret = service_thing(x);
    else
        *ret = (struct access_thing){
            .kind = ACCESS_KIND_SERVICE, .name = q->name, .owner = q->who.user};
}

static const struct resource service_noun = {
    .noun = "service",
    .kind = ACCESS_KIND_SERVICE,
    .collection = "services",
    .param = "name",
    .page = &page_table,
    .item = FIELD_LISTED,
    .trail = FIELD_LISTED,
    .form = &serve_ask_table,
    .may_see = ACCESS_SERVICE_SEE,
    .may_change = ACCESS_SERVICE_CHANGE,
    .next = services_page_next,
    .compare = service_compare,
    .find = services_page_find,
    .thing = service_ask_thing,
    .fill = service_fill,
};

/* ---- actions ---- */

static const struct field scale_form_rows[] = {
    SAYS("replicas", FIELD_INT, .flags = FIELD_REQUIRED)};
static const struct field_table scale_form = ACTION_FORM(scale_form_rows);
static const struct field rollback_form_rows[] = {SAYS("version", FIELD_INT, .flags = 0)};
static const struct field_table rollback_form = ACTION_FORM(rollback_form_rows);
static const struct field keep_form_rows[] = {
    OPT_AS("keep", WORDS("\"warm\",\"cold\",\"none\"")),
    OPT_TEXT("idle"),
};
static const struct field_table keep_form = ACTION_FORM(keep_form_rows);

static int service_do_scale(struct resource_ask *q, const struct served *s, const json_t *body)
{
    return serving_scale(q->a->serving, s, json_get_int(body, "replicas", 0), q->who.user, &q->err);
}

static int service_do_rollback(struct resource_ask *q, const struct served *s, const json_t *body)
{
    return serving_roll_back(q->a->serving, s, json_get_int(body, "version", 0), q->who.user,
                             &q->err);
}

static int service_do_stop(struct resource_ask *q, const struct served *s, const json_t *body)
{
    (void)body;
    serving_stop(q->a->serving, s, q->who.user);
    return 0;
}

/* SERVE_KEEPS: it is no word of that. */
static int service_keep_of(const char *word)
{
    int i = 0;
    while (i < SERVE_KEEPS && !str_eq(word, serve_keep_words[i]))
        i++;
    return i;
}

static int service_do_keep(struct resource_ask *q, const struct served *s, const json_t *body)
{
    const json_t *idle = json_object_get(body, "idle"), *keep = json_object_get(body, "keep");
    const int how = keep ? service_keep_of(json_string_value(keep)) : SERVE_KEEPS;
    usec_t span = 0;
    if ((keep || !idle) && how == SERVE_KEEPS)
        return message_refuse(&q->err, ERR_BAD_REQUEST, "serve_keep", MESSAGE_NO_ARGS);
    int r = idle ? serve_idle_read(str_or(json_string_value(idle), ""), &span, &q->err) : 0;
    if (r == 0)
        r = serve_idle_check(span, q->a->settings->serve_idle_least, &q->err);
    if (r < 0)
        return r;
    if (keep)
        serving_set_keep(q->a->serving, s, how);
    if (idle)
        serving_set_idle(q->a->serving, s, span, q->who.user);
    return 0;
}

/* One action: the form of its body, its word in a refusal, who may, what it does. */
struct service_action {
    const struct field_table *form; /* NULL: it has no member */
    const char *verb;
    bool by_callers; /* whoever may call it may do it; else who may change it */
    int (*act)(struct resource_ask *q, const struct served *s, const json_t *body);
};

/* NULL: *q says why. */
static const struct served *service_find_to_call(struct resource_ask *q)
{
    const struct served *s = resource_find(q, RESOURCE_TO_SEE, "see");
    if (!s)
        return NULL;
    const struct access_thing thing = service_thing(s);
    bool may = access_check(&q->who, ACCESS_SERVICE_CALL, "call", &thing, &q->err) == 0;
    return may && resource_can_store(q) == 0 ? s : NULL;
}

static void service_act(struct http_req *req, struct api *a, const struct service_action *what)
{
    struct resource_ask q;
    resource_begin(&q, req, a);
    q.of = &service_noun;
    const struct served *s = what->by_callers ? service_find_to_call(&q)
                                              : resource_find(&q, RESOURCE_TO_CHANGE, what->verb);
    _cleanup_(json_unrefp) json_t *body = NULL;
    if (!s)
        resource_refuse(&q);
    else if ((body = api_read_action(req, what->form))) {
        if (what->act(&q, s, body) < 0)
            resource_refuse(&q);
        else
            resource_reply(&q, s, 200, api_barrier(q.a));
    }
    resource_end(&q);
}

static void service_scale(struct http_req *req, void *app)
{
    static const struct service_action what = {&scale_form, "scale", false, service_do_scale};
    service_act(req, app, &what);
}

static void service_rollback(struct http_req *req, void *app)
{
    static const struct service_action what = {&rollback_form, "roll back", false,
                                               service_do_rollback};
    service_act(req, app, &what);
}

static void service_stop(struct http_req *req, void *app)
{
    static const struct service_action what = {NULL, "stop", false, service_do_stop};
    service_act(req, app, &what);
}

static void service_keep(struct http_req *req, void *app)
{
    static const struct service_action what = {&keep_form, "change", false, service_do_keep};
    service_act(req, app, &what);
}

static int service_do_wake(struct resource_ask *q, const struct served *s, const json_t *body)
{
    (void)body;
    return serving_wake(q->a->serving, s, q->who.user, &q->err);
}

/* As a request would. */
static void service_wake(struct http_req *req, void *app)
{
    static const struct service_action what = {NULL, "call", true, service_do_wake};
    service_act(req, app, &what);
}

static void service_remove(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct served *s = resource_find(&q, RESOURCE_TO_CHANGE, "remove");
    if (!s) {
        resource_refuse(&q);
    } else {
        serving_remove(q.a->serving, s, q.who.user);
        resource_reply(&q, s, 200, api_barrier(q.a));
    }
    resource_end(&q);
}

/* ---- its last requests ---- */

#define C(key, ftype, ...) FIELD_AT(service_call_row, #key, ftype, key, __VA_ARGS__)
static const struct field call_rows[] = {
    C(at, FIELD_TIME, .doc = "when it ended"),
    C(version, FIELD_INT),
    C(user, FIELD_TEXT, .size = HTTP_USER_MAX, .flags = FIELD_ALWAYS),
    C(key,
      FIELD_TEXT,
      .size = SERVICE_CALL_KEY,
      .flags = FIELD_ALWAYS,
      .doc = "id of the key that it came with; empty: it came with a token"),
    C(method, FIELD_TEXT, .size = SERVICE_CALL_METHOD, .flags = FIELD_ALWAYS),
    C(path,
      FIELD_TEXT,
      .size = SERVICE_CALL_PATH,
      .flags = FIELD_ALWAYS,
      .doc = "below the service, without its query, cut where it is long"),
    C(status, FIELD_INT, .doc = "0: no answer came; 499: the client left first"),
    C(took_ms, FIELD_INT),
    C(first_ms, FIELD_INT, .doc = "until the first byte of the answer"),
    C(bytes_in, FIELD_INT),
    C(bytes_out, FIELD_INT),
    C(tokens_in, FIELD_INT, .doc = "-1: the answer does not say"),
    C(tokens_out, FIELD_INT, .doc = "as above"),
    C(tokens_estimated,
      FIELD_BOOL,
      .doc = "a stream whose client did not ask for `usage`: both are a guess"),
};
static const struct field_table call_table =
    FIELD_TABLE("ServiceRequest", call_rows, service_call_row);

static void service_requests(struct http_req *req, void *app)
{
    struct resource_ask q;
    const struct service_call_row *found[SERVICE_CALLS_KEPT];
    struct buf out = BUF_INIT(SERVICE_CALLS_KEPT * 2048);
    resource_begin(&q, req, app);
    q.of = &service_noun;
    const struct served *s = resource_find(&q, RESOURCE_TO_SEE, "see");
    if (!s) {
        resource_refuse(&q);
        resource_end(&q);
        return;
    }
    size_t n = s->calls
                   ? service_calls_list(s->calls, http_req_query_bool(req, "failed", false), found)
                   : 0;
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "requests", '[');
    for (size_t i = 0; i < n; i++)
        field_to_json(&call_table, found[i], FIELD_ALL, FIELD_PAGE, &j, NULL);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply(req, 200, "application/json", &out, api_reader_barrier(q.a));
    resource_end(&q);
}
static const struct http_param request_params[] = {
    {"failed", HTTP_PARAM_BOOLEAN, "only those without an answer, or with 500 and above"},
    {0}};

/* ---- what there is in Ray Serve ---- */

struct application_page {
    const char *name, *route, *status, *made_by;
    int64_t replicas;
};
#define A(key, ftype, member, ...) FIELD_AT(application_page, key, ftype, member, __VA_ARGS__)
static const struct field application_rows[] = {
    A("name", FIELD_STR, name, .flags = FIELD_ALWAYS | FIELD_BORROWED),
    A("route", FIELD_STR, route, .flags = FIELD_BORROWED),
    A("status", FIELD_STR, status, .flags = FIELD_ALWAYS | FIELD_BORROWED, .doc = "Ray's word"),
    A("made_by",
      FIELD_STR,
      made_by,
      .flags = FIELD_ALWAYS | FIELD_BORROWED,
      .doc =
          "argusd, list (of somebody else: argusd keeps it), program (serve.run of a job: it outlives "
          "the job, and no list removes it)"),
    A("replicas", FIELD_INT, replicas, .doc = "replicas that run"),
};
static const struct field_table application_table =
    FIELD_TABLE("ServeApplication", application_rows, application_page);

static void services_applications(struct http_req *req, void *app)
{
    struct api *a = app;
    const struct serve_look *l = serving_look(a->serving);
    struct access_who who;
    struct buf out = BUF_INIT(SERVE_LOOK_MAX);
    people_who(a->people, http_req_principal(req), &who);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "applications", '[');
    for (size_t i = 0; l && i < l->n_apps; i++) {
        const struct serve_seen *s = &l->apps[i];
        const struct served *of = serving_owner_of(a->serving, s->name);
        if (of && !service_is_seen(of, &who))
            continue; /* others' are shown to everybody */
        const struct application_page page = {.name = s->name,
                                              .route = s->route,
                                              .status = serve_status_to_string(s->status),
                                              .made_by = s->imperative ? "program"
                                                         : of          ? "argusd"
                                                                       : "list",
                                              .replicas = s->running};
        field_to_json(&application_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply(req, 200, "application/json", &out, api_reader_barrier(a));
}

#define SERVE_YAML "application/json, application/yaml, application/x-yaml, text/yaml, text/plain"
static const struct http_route rows[] = {
    RESOURCE_LIST(&service_noun,
                  "/v1/services",
                  VIEWER,
                  "services: yours and those of your projects, or all",
                  .reply_schema = "ServiceList"),
    RESOURCE_ROUTE(
        "POST",
        services_deploy,
        &service_noun,
        "/v1/services",
        USER,
        "serve a model, a checkpoint of a job or an application: a new service, or the next version of the one of that name",
        .max_body = BODY_MAX,
        .request_type = SERVE_YAML,
        .request_schema = "ServiceForm",
        .reply_schema = "Service",
        .reply_status = 201),
    RESOURCE_GET(&service_noun,
                 "/v1/services/{name}",
                 VIEWER,
                 "one service, with its versions and replicas",
                 .reply_schema = "Service",
                 .example = "chat"),
    RESOURCE_ROUTE(
        "PATCH",
        service_keep,
        &service_noun,
        "/v1/services/{name}",
        USER,
        "what becomes of the version before (warm, cold or none), after how long it sleeps",
        .max_body = RESOURCE_BODY_MAX,
        .request_schema = "ServiceKeepForm",
        .reply_schema = "Service"),
    RESOURCE_ROUTE("DELETE",
                   service_remove,
                   &service_noun,
                   "/v1/services/{name}",
                   USER,
                   "remove a service: its replicas finish their requests first",
                   .reply_schema = "Service"),
    RESOURCE_ROUTE(
        "POST",
        services_deploy,
        &service_noun,
        "/v1/services/{name}:deploy",
        USER,
        "its next version: as the current one, but for what is said; it takes the traffic once it is ready",
        .max_body = BODY_MAX,
        .request_type = SERVE_YAML,
        .request_schema = "ServiceForm",
        .reply_schema = "Service",
        .reply_status = 201),
    RESOURCE_ROUTE("POST",
                   service_scale,
                   &service_noun,
                   "/v1/services/{name}:scale",
                   USER,
                   "so many replicas",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "ServiceScaleForm",
                   .reply_schema = "Service"),
    RESOURCE_ROUTE("POST",
                   service_rollback,
                   &service_noun,
                   "/v1/services/{name}:rollback",
                   USER,
                   "that version, or the one before, takes the traffic: at once where it is warm",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "ServiceRollbackForm",
                   .reply_schema = "Service"),
    RESOURCE_ROUTE("POST",
                   service_stop,
                   &service_noun,
                   "/v1/services/{name}:stop",
                   USER,
                   "no replicas any more; a rollback starts it again",
                   .max_body = RESOURCE_BODY_MAX,
                   .reply_schema = "Service"),
    RESOURCE_ROUTE("POST",
                   service_wake,
                   &service_noun,
                   "/v1/services/{name}:wake",
                   USER,
                   "one that sleeps is loaded again, as by a request; another stays as it is",
                   .max_body = RESOURCE_BODY_MAX,
                   .reply_schema = "Service"),
    RESOURCE_ROUTE("GET",
                   service_requests,
                   &service_noun,
                   "/v1/services/{name}:requests",
                   VIEWER,
                   "its last requests, the newest first, kept in memory: never a body",
                   .params = request_params,
                   .reply_schema = "ServiceRequestList"),
    {.method = "GET",
     .pattern = "/v1/service-applications",
     .least = HTTP_ROLE_VIEWER,
     .handle = services_applications,
     .summary = "what there is in Ray Serve, argusd's and others'",
     .reply_schema = "ServeApplicationList"},
};
static const struct http_schema schemas[] = {
    {.name = "ServiceForm", .table = &serve_ask_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "ServiceSpec", .table = &serve_spec_table, .which = FIELD_SHOWN},
    {.name = "ServiceDeployment", .table = &serve_deployment_table, .which = FIELD_SHOWN},
    {.name = "ServiceVersion", .table = &version_page_table, .which = FIELD_SHOWN},
    {.name = "ServiceReplica", .table = &replica_table},
    {.name = "ServiceSpan", .table = &service_span_table},
    {.name = "ServiceRequest", .table = &call_table},
    {.name = "ServiceRequestList",
     .json = OBJECT("\"requests\"", KEY("requests", LIST(REF("ServiceRequest"))))},
    {.name = "Service", .table = &page_table, .which = FIELD_SHOWN},
    {.name = "ServiceItem", .table = &page_table, .which = FIELD_LISTED},
    LIST_OF("ServiceList", "services", "ServiceItem"),
    {.name = "ServiceKeepForm", .table = &keep_form, .is_form = true},
    {.name = "ServiceScaleForm", .table = &scale_form, .is_form = true},
    {.name = "ServiceRollbackForm", .table = &rollback_form, .is_form = true},
    {.name = "ServeApplication", .table = &application_table},
    {.name = "ServeApplicationList",
     .json = OBJECT("\"applications\"", KEY("applications", LIST(REF("ServeApplication"))))},
};
const struct api_part part_services_page = {rows, array_len(rows), schemas, array_len(schemas)};
