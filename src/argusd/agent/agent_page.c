/* SPDX-License-Identifier: Apache-2.0 */
/* agent_page.c - GET /v1/agent: how the push to the ops agent goes; and in openapi.json what it is
 * sent. Neither its address nor a key is told, and what an address answered to admins alone. */
#include "argusd/agent/agent.h"
#include "argusd/agent/agent_run.h"
#include "argusd/agent/secondopinion.h"
#include "argusd/api/routes.h"
#include "argusd/kit/view.h"

enum { AGENT_PAGE_MAX = 16 << 10 };

struct second_page {
    struct secondopinion_state state;
    const char *trouble;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(second_page, key, ftype, member, __VA_ARGS__)
static const struct field second_page_rows[] = {
    PAGE("model", FIELD_STR, state.model, .flags = FIELD_ALWAYS, .doc = "model that is asked"),
    PAGE("asked", FIELD_INT, state.asked, .doc = "since argusd started"),
    PAGE("answered", FIELD_INT, state.answered),
    PAGE("failed", FIELD_INT, state.failed, .doc = "questions without an answer"),
    PAGE("passed_over",
         FIELD_INT,
         state.passed_over,
         .doc = "questions that were not asked, because of the bounds of hour and day"),
    PAGE("left_in_hour", FIELD_INT, state.left_in_hour, .doc = "questions"),
    PAGE("tokens_left", FIELD_INT, state.tokens_left, .doc = "tokens that are left for the day"),
    PAGE("asked_at", FIELD_TIME, state.asked_at),
    PAGE("trouble",
         FIELD_STR,
         trouble,
         .doc = "why the last question had no answer; told to admins"),
};
#undef PAGE
static const struct field_table second_page_table =
    FIELD_TABLE(NULL, second_page_rows, second_page);

struct agent_page {
    struct agent_state state;
    usec_t failing_since;
    const struct agent_gap *gap;
    const char *schema, *trouble;
    const struct second_page *second;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(agent_page, key, ftype, member, __VA_ARGS__)
static const struct field agent_page_rows[] = {
    PAGE("is_there", FIELD_BOOL, state.is_there, .doc = "argus.yaml names one"),
    PAGE("schema", FIELD_STR, schema, .flags = FIELD_ALWAYS, .doc = "schema of the messages"),
    PAGE("token", FIELD_STR, state.token, .doc = "the id of its token"),
    PAGE("taken",
         FIELD_INT,
         state.taken,
         .doc = "number of the last event that the agent has taken"),
    PAGE("last", FIELD_INT, state.last, .doc = "the newest event"),
    PAGE("gap", FIELD_PART, gap, .of = &agent_gap_table, .doc = "events that it is not told of"),
    PAGE("batches",
         FIELD_INT,
         state.batches,
         .doc = "batches that the agent took since argusd started"),
    PAGE("taken_at", FIELD_TIME, state.taken_at),
    PAGE("failing_since", FIELD_TIME, failing_since),
    PAGE("trouble", FIELD_STR, trouble, .doc = "why it did not take the last one; told to admins"),
    PAGE("second_opinion",
         FIELD_PART,
         second,
         .of = &second_page_table,
         .doc = "the model that is asked about failures; null: none is"),
};
#undef PAGE
static const struct field_table agent_page_table =
    FIELD_TABLE("Agent", agent_page_rows, agent_page);

/* NULL: nothing is wrong, or who asks is not told. */
static const char *agent_trouble_for(const struct access_who *who, const char *trouble)
{
    return *trouble && access_sees_answers(who) ? trouble : NULL;
}

static void agent_get(struct http_req *req, void *app)
{
    struct api *a = app;
    struct agent_page page = {.schema = AGENT_SCHEMA};
    struct buf out = BUF_INIT(AGENT_PAGE_MAX);
    struct jout j = jout_begin(&out);
    struct second_page second = {0};
    struct access_who who;
    people_who(a->people, http_req_principal(req), &who);
    agent_state(a->agent, &page.state);
    secondopinion_state(a->secondopinion, &second.state);
    second.trouble = agent_trouble_for(&who, second.state.trouble);
    page.second = second.state.model ? &second : NULL;
    const struct agent_gap gap = {.since = page.state.gap_since, .next = page.state.gap_next};
    page.gap = page.state.has_gap ? &gap : NULL;
    page.trouble = agent_trouble_for(&who, page.state.trouble);
    page.failing_since = page.state.failing_for ? clock_wall() - page.state.failing_for : 0;
    field_to_json(&agent_page_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/agent",
     .least = HTTP_ROLE_VIEWER,
     .handle = agent_get,
     .summary = "how the push of events and figures to the ops agent goes",
     .reply_schema = "Agent"},
};
static const struct http_schema schemas[] = {
    {.name = "Agent", .table = &agent_page_table},
    {.name = "AgentFigures", .table = &agent_figures_table},
    {.name = "AgentBatch",
     .table = &agent_batch_table,
     .sent = "events and figures, to the ops agent that argus.yaml names (docs/ops-agent.md)"},
};
const struct api_part part_agent_page = {rows, array_len(rows), schemas, array_len(schemas)};
