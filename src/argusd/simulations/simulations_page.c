/* SPDX-License-Identifier: Apache-2.0 */
/* simulations_page.c - /v1/simulations: ask for one, list them, look, cancel, forget, take the
 * numbers as CSV. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "argusd/kit/saying.h"
#include "argusd/simulations/simulations.h"
#include "argusd/simulations/simulations_csv.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { SIMULATIONS_CSV_MAX = 4 << 20, ACTION_MAX = 4096 };
static const usec_t SIMULATIONS_SINCE = 28 * USEC_DAY;

/* ---- the page ---- */

struct simulation_shown {
    struct simulated s; /* borrowed */
    char *reason;       /* JSON, heap */
    char *result;       /* borrowed */
};
static const struct field shown_rows[] = {
    FIELD_AT(simulation_shown,
             "",
             FIELD_INLINE,
             s,
             .of = &simulated_table,
             .flags = FIELD_BORROWED),
    FIELD_AT(simulation_shown,
             "reason",
             FIELD_JSON,
             reason,
             .flags = FIELD_SHOWN | FIELD_LISTED,
             .schema = REF_OR_NULL("Reason"),
             .doc = "why there is no result"),
    FIELD_AT(simulation_shown,
             "result",
             FIELD_JSON,
             result,
             .flags = FIELD_SHOWN | FIELD_BORROWED,
             .schema = REF_OR_NULL("SimulationResult")),
};
static const struct field_table shown_table =
    FIELD_TABLE("Simulation", shown_rows, simulation_shown);

static char *simulation_reason(struct resource_ask *q, const char *kept)
{
    const struct api_eyes eyes = {q->a, http_req_principal(q->req)};
    struct said said;
    if (!kept)
        return NULL;
    saying_say(&eyes, NULL, message_kept_code(kept), message_kept_text(kept), &said);
    char *text = field_to_text(&said_table, &said, FIELD_ALL, FIELD_PAGE);
    said_release(&said);
    return text;
}

static void simulation_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct simulated *s = x;
    struct simulation_shown *page = out;
    *page = (struct simulation_shown){
        .s = *s, .reason = simulation_reason(q, s->reason), .result = s->result};
    page->s.progress = simulated_progress(s);
}

static const void *simulation_next(struct resource_ask *q, size_t *pos)
{
    return simulations_next(q->a->simulations, pos);
}

/* The newest first. */
static int simulation_compare(const void *x, const void *y)
{
    const struct simulated *a = *(const struct simulated *const *)x,
                           *b = *(const struct simulated *const *)y;
    if (a->created_at != b->created_at)
        return a->created_at < b->created_at ? 1 : -1;
    return strcmp(a->id, b->id);
}

static const void *simulation_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return simulations_find(q->a->simulations, q->name);
}

static void simulation_thing(struct resource_ask *q,
                             const void *x,
                             const void *asked,
                             struct access_thing *ret)
{
    const struct simulated *s = x;
    (void)asked;
    ret->name = s ? s->id : "new";
    ret->owner = s ? s->user : q->who.user;
}

static bool simulation_take_away(struct resource_ask *q, const void *x)
{
    simulations_remove(q->a->simulations, simulations_find(q->a->simulations, q->name));
    return x != NULL;
}

static const struct resource simulation_noun = {.noun = "simulation",
                                                .kind = ACCESS_KIND_SIMULATION,
                                                .collection = "simulations",
                                                .param = "simulation",
                                                .page = &shown_table,
                                                .item = FIELD_LISTED,
                                                .trail = FIELD_LISTED,
                                                .may_see = ACCESS_SIMULATION_SEE,
                                                .may_change = ACCESS_SIMULATION_CHANGE,
                                                .remove = {.verb = "forget"},
                                                .next = simulation_next,
                                                .compare = simulation_compare,
                                                .find = simulation_find,
                                                .thing = simulation_thing,
                                                .fill = simulation_fill,
                                                .take_away = simulation_take_away};

/* ---- ask for one ---- */

/* A text of the query, which must not be long; NULL: not given, or given without anything. */
static const char *simulation_text(const struct http_req *req, const char *name)
{
    const char *text = http_req_query(req, name);
    return text && *text ? text : NULL;
}

static int simulation_check_name(const char *name, struct err *err)
{
    if (strlen(name) >= SIMULATIONS_NAME_MAX)
        return message_refuse(
            err, ERR_BAD_REQUEST, "name_too_long",
            MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_NUM("most", SIMULATIONS_NAME_MAX - 1)));
    return str_has_control(name)
               ? message_refuse(err, ERR_BAD_REQUEST, "name_control", MESSAGE_NO_ARGS)
               : 0;
}

static int simulation_read_query(struct resource_ask *q, struct simulated *ret)
{
    struct simulation_texts t = {.nodes = ret->nodes,
                                 .load = ret->load,
                                 .policy = ret->policy,
                                 .guess = ret->guess,
                                 .pool = ret->pool};
    struct simulation_opts opts;
    usec_t now = clock_wall();
    ret->since = ret->source == SIMULATED_HISTORY ? now - SIMULATIONS_SINCE : 0;
    if (http_req_query_int(q->req, "seed", 0, INT64_MAX / 2, 0, &ret->seed, &q->err) < 0)
        return q->err.code = ERR_BAD_REQUEST;
    if (ret->source == SIMULATED_HISTORY && simulation_text(q->req, "since")) {
        int r = api_read_time(q->req, "since", now, &ret->since, &q->err);
        if (r < 0)
            return r;
    }
    return simulation_read(&t, &opts, &q->err);
}

static void simulation_ask(const struct http_req *req, size_t body, struct simulated *ret)
{
    *ret = (struct simulated){
        .user = (char *)(uintptr_t)http_req_principal(req)->user, /* only copied, as all here */
        .source = body ? SIMULATED_TRACE : SIMULATED_HISTORY,
        .nodes = (char *)(uintptr_t)simulation_text(req, "nodes"),
        .load = (char *)(uintptr_t)simulation_text(req, "load"),
        .policy = (char *)(uintptr_t)simulation_text(req, "policy"),
        .guess = (char *)(uintptr_t)simulation_text(req, "guess"),
        .pool = (char *)(uintptr_t)simulation_text(req, "pool"),
        .learner = http_req_query_bool(req, "learner", true)};
}

static void simulation_start(struct resource_ask *q,
                             const struct simulated *asked,
                             const char *body,
                             size_t n)
{
    struct simulations *ss = q->a->simulations;
    char name[SIMULATIONS_NAME_MAX];
    text_copy(name, str_or(simulation_text(q->req, "name"), n ? "trace" : "history"));
    struct simulated named = *asked;
    named.name = name;
    struct simulated *s = simulations_add(ss, &named, clock_wall());
    if (n) {
        struct buf trace = BUF_INIT(SIMULATIONS_TRACE_MAX + 1);
        (void)buf_add(&trace, body, n); /* fits: the route has that ceiling */
        simulations_play(ss, s, &trace, 0, 0);
        buf_release(&trace);
    } else {
        simulations_play_history(q->a, http_req_principal(q->req), s);
    }
    resource_reply(q, s, 202, api_barrier(q->a));
}

static void simulations_post(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct simulated asked;
    size_t n;
    const char *body = http_req_body(req, &n);
    resource_begin(&q, req, app);
    simulation_ask(req, n, &asked);
    if (resource_may(&q, RESOURCE_TO_CHANGE, "start", NULL, NULL) < 0 ||
        simulation_check_name(str_or(simulation_text(req, "name"), ""), &q.err) < 0 ||
        simulation_read_query(&q, &asked) < 0 ||
        simulations_check(q.a->simulations, q.who.user, &q.err) < 0)
        resource_refuse(&q);
    else
        simulation_start(&q, &asked, body, n);
    resource_end(&q);
}

/* ---- cancel, CSV ---- */

static void simulations_post_cancel(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct simulated *s = resource_find(&q, RESOURCE_TO_CHANGE, "cancel");
    if (s && simulations_cancel(q.a->simulations, simulations_find(q.a->simulations, q.name),
                                q.who.user, &q.err) == 0)
        resource_reply(&q, s, 200, api_barrier(q.a));
    else
        resource_refuse(&q);
    resource_end(&q);
}

static void simulations_get_csv(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct buf out = BUF_INIT(SIMULATIONS_CSV_MAX);
    resource_begin(&q, req, app);
    const struct simulated *s = resource_find(&q, RESOURCE_TO_SEE, "see");
    if (s && !s->result)
        (void)message_refuse(&q.err, ERR_CONFLICT, "simulation_no_result",
                             MESSAGE_ARGS(MESSAGE_STR("id", s->id),
                                          MESSAGE_STR("state", simulated_states[s->state])));
    if (s && s->result &&
        simulations_csv(s->result, str_or(simulation_text(req, "part"), "policies"), &out,
                        &q.err) == 0)
        http_reply(req, 200, "text/csv", &out, api_reader_barrier(q.a));
    else
        resource_refuse(&q);
    buf_release(&out);
    resource_end(&q);
}

/* ---- the routes ---- */

static const struct http_param ask_params[] = {
    {"name", HTTP_PARAM_STRING, "name of the trace, for people"},
    {"since", HTTP_PARAM_STRING, "without a trace: jobs queued from then on, or so long ago (28d)"},
    {"pool", HTTP_PARAM_STRING, "this one alone"},
    {"policy", HTTP_PARAM_STRING,
     "fifo, easy, fair, flow and shortest, parted by commas (the first three)"},
    {"nodes", HTTP_PARAM_STRING, "nodes of each pool and the GPUs of each node: 64x8"},
    {"load", HTTP_PARAM_STRING,
     "each pool gets the fewest 8-GPU nodes for this share of use (0.85; without a trace and "
     "without nodes: the nodes that there are now)"},
    {"guess", HTTP_PARAM_STRING,
     "a job's limit is its run times a factor drawn evenly between these two (1-5)"},
    {"seed", HTTP_PARAM_INTEGER, "seed of the guesses (0)"},
    {"learner", HTTP_PARAM_BOOLEAN, "expectations are learnt from ended runs (true)"},
    {0}};
static const struct http_param csv_params[] = {
    {"part", HTTP_PARAM_STRING, "policies (if not given), pools, sizes or series"},
    {0}};

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/simulations",
     .least = HTTP_ROLE_USER,
     .max_body = SIMULATIONS_TRACE_MAX,
     .handle = simulations_post,
     .arg = &simulation_noun,
     .summary = "replay past jobs under several policies: those of a trace (CSV with submit_time, "
                "duration_s, num_gpus, cluster), or, without one, those that you may see",
     .params = ask_params,
     .request_type = "text/csv, application/octet-stream, text/plain",
     .reply_schema = "Simulation",
     .reply_status = 202},
    RESOURCE_LIST(&simulation_noun,
                  "/v1/simulations",
                  VIEWER,
                  "the simulations that are kept, the newest first",
                  .reply_schema = "SimulationList"),
    RESOURCE_GET(&simulation_noun,
                 "/v1/simulations/{simulation}",
                 VIEWER,
                 "one simulation, how far it is, and its result",
                 .reply_schema = "Simulation",
                 .example = "sim-0123456789"),
    RESOURCE_REMOVE(&simulation_noun,
                    "/v1/simulations/{simulation}",
                    USER,
                    "remove a simulation; one that runs is ended first",
                    .reply_schema = "Simulation"),
    {.method = "POST",
     .pattern = "/v1/simulations/{simulation}:cancel",
     .least = HTTP_ROLE_USER,
     .max_body = ACTION_MAX,
     .handle = simulations_post_cancel,
     .arg = &simulation_noun,
     .summary = "end a simulation that waits or runs",
     .reply_schema = "Simulation"},
    {.method = "GET",
     .pattern = "/v1/simulations/{simulation}/csv",
     .least = HTTP_ROLE_VIEWER,
     .handle = simulations_get_csv,
     .arg = &simulation_noun,
     .summary = "the numbers of a result as CSV",
     .params = csv_params,
     .reply_type = "text/csv"},
};

static const struct http_schema schemas[] = {
    {.name = "SimulationWaits", .table = &simulation_waits_table},
    {.name = "SimulationPool", .table = &simulation_pool_table},
    {.name = "SimulationPolicy", .table = &simulation_policy_table},
    {.name = "SimulationResult", .table = &simulation_table},
    {.name = "Simulation", .table = &shown_table, .which = FIELD_SHOWN},
    {.name = "SimulationItem", .table = &shown_table, .which = FIELD_LISTED},
    LIST_OF("SimulationList", "simulations", "SimulationItem"),
};

const struct api_part part_simulations_page = {rows, array_len(rows), schemas, array_len(schemas)};
