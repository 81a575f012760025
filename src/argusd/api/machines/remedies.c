/* SPDX-License-Identifier: Apache-2.0 */
/* remedies.c - GET /v1/remedies: what argusd may put right on machines by itself, how often it
 * still may, and what it did lately; see core/job/remedy.h and docs/remedies.md.
 *
 * Limits are read from the books of the nodes. Acts are the events of machines of that time: the
 * one with which an act begins (node_remedy) and the one that ends it, node_remedied, or
 * node_online of a raylet that was started again. An act without an end is under way, or was broken
 * off by a restart of argusd. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/saying.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/remedy.h"

enum { REMEDIES_ANSWER_MAX = 16 << 20, REMEDIES_KEY_MAX = 48 };
static const usec_t REMEDIES_SPAN = USEC_DAY;
#define REMEDIES_KINDS "node_remedy,node_remedied,node_online"
#define REMEDIES_OF_NODE "node/"
#define REMEDIES_CODE "remedy_"

/* ---- the page; texts are borrowed for one answer ---- */

static const char *const remedy_names[] = {
#define X(e, name, limit, rest) name,
    REMEDY_TABLE(X)
#undef X
        NULL};
static const char *const leave_names[] = {"may", "rests", "spent", NULL};
static_assert(REMEDY_MAY == 0 && REMEDY_RESTS == 1 && REMEDY_SPENT == 2,
              "leave_names is in the order of enum remedy_leave");

struct remedy_node {
    const char *node;
    int acts, leave;
};
#define NODE(key, ftype, member, ...) FIELD_AT(remedy_node, key, ftype, member, __VA_ARGS__)
static const struct field node_rows[] = {
    NODE("node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    NODE("acts", FIELD_INT32, acts, .doc = "within the last hour"),
    NODE("leave",
         FIELD_ENUM,
         leave,
         .names = leave_names,
         .doc =
             "may: it may act again; rests: too soon after its last act; spent: its limit for an "
             "hour is reached"),
};
#undef NODE
static const struct field_table node_table = FIELD_TABLE("RemedyNode", node_rows, remedy_node);

struct remedy_page {
    int what, limit;
    char key[REMEDIES_KEY_MAX];
    bool is_on;
    usec_t rest;
    struct field_list nodes;
};
#define REMEDY(name, ftype, member, ...) FIELD_AT(remedy_page, name, ftype, member, __VA_ARGS__)
static const struct field remedy_fields[] = {
    REMEDY("remedy", FIELD_ENUM, what, .names = remedy_names),
    REMEDY("key",
           FIELD_TEXT,
           key,
           .size = REMEDIES_KEY_MAX,
           .flags = FIELD_ALWAYS,
           .doc = "key of argus.yaml that turns it off"),
    REMEDY("on", FIELD_BOOL, is_on),
    REMEDY("limit", FIELD_INT32, limit, .doc = "acts for a node and hour"),
    REMEDY("rest", FIELD_SPAN, rest, .doc = "after each act on a node"),
    REMEDY("nodes", FIELD_LIST, nodes, .of = &node_table, .doc = "where it acted in the last hour"),
};
#undef REMEDY
static const struct field_table remedy_page_table =
    FIELD_TABLE("Remedy", remedy_fields, remedy_page);

enum remedy_outcome {
    REMEDY_UNDER_WAY,
    REMEDY_IS_DONE,
    REMEDY_HAS_FAILED,
    REMEDY_IS_BROKEN_OFF,
};
static const char *const outcome_names[] = {"under_way", "done", "failed", "broken_off", NULL};
static_assert(array_len(outcome_names) == REMEDY_IS_BROKEN_OFF + 2,
              "outcome_names has a name for each outcome");

struct remedy_act {
    int what, outcome;
    const char *node;
    usec_t at, ended_at;
    struct said why, came;
    const struct said *found; /* came, or NULL */
};
#define ACT(key, ftype, member, ...) FIELD_AT(remedy_act, key, ftype, member, __VA_ARGS__)
static const struct field act_rows[] = {
    ACT("remedy", FIELD_ENUM, what, .names = remedy_names),
    ACT("node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    ACT("at", FIELD_TIME, at, .flags = FIELD_ALWAYS),
    ACT("ended_at", FIELD_TIME, ended_at),
    ACT("why", FIELD_OBJECT, why, .of = &said_table, .doc = "what was seen before it began"),
    ACT("outcome",
        FIELD_ENUM,
        outcome,
        .names = outcome_names,
        .doc = "broken_off: nobody knows its end, mostly because argusd was restarted"),
    ACT("found",
        FIELD_PART,
        found,
        .of = &said_table,
        .doc = "what came of it; null: it goes on, was broken off, or the raylet did not come up"),
};
#undef ACT
static const struct field_table act_table = FIELD_TABLE("RemedyAct", act_rows, remedy_act);

struct remedies_page {
    struct field_list remedies, acts;
    usec_t from;
    bool is_cut;
};
static const struct field list_rows[] = {
    FIELD_AT(remedies_page, "remedies", FIELD_LIST, remedies, .of = &remedy_page_table),
    FIELD_AT(remedies_page, "acts", FIELD_LIST, acts, .of = &act_table, .doc = "newest first"),
    FIELD_AT(remedies_page,
             "from",
             FIELD_TIME,
             from,
             .flags = FIELD_ALWAYS,
             .doc = "acts of this time and later"),
    FIELD_AT(remedies_page,
             "cut",
             FIELD_BOOL,
             is_cut,
             .doc = "there were more events than are read at once: the oldest acts are left out"),
};
static const struct field_table list_table = FIELD_TABLE("RemedyList", list_rows, remedies_page);

/* ---- a request ---- */

struct remedies_ask {
    struct http_req *req;
    struct api *a;
    struct http_principal who;
    struct store_read *read;
    char *object;     /* "node/NAME"; NULL: all nodes */
    struct strv busy; /* nodes on which a remedy acted when it was asked */
    usec_t from, asked_at;
    struct remedy_act *acts; /* the oldest first */
    size_t n_acts;
};

static void remedies_ask_free(struct remedies_ask *k)
{
    for (size_t i = 0; i < k->n_acts; i++) {
        said_release(&k->acts[i].why);
        said_release(&k->acts[i].came);
    }
    strv_release(&k->busy);
    free(k->acts);
    free(k->object);
    free(k);
}

static void remedies_on_gone(struct http_req *req, void *arg)
{
    struct remedies_ask *k = arg;
    (void)req;
    store_read_cancel(k->read);
    remedies_ask_free(k);
}

static bool remedies_is_of(const struct remedies_ask *k, const char *node)
{
    return !k->object || str_eq(k->object + strlen(REMEDIES_OF_NODE), node);
}

/* ---- acts ---- */

/* The newest act on this node that has no end: a raylet's start, or any other, which are one at a
 * time on a node. NULL: there is none. */
static struct remedy_act *remedies_open(const struct remedies_ask *k,
                                        const char *node,
                                        bool of_raylet)
{
    for (size_t i = k->n_acts; i-- > 0;) {
        struct remedy_act *act = &k->acts[i];
        if ((act->what == REMEDY_RAYLET) == of_raylet && str_eq(act->node, node))
            return act->outcome == REMEDY_UNDER_WAY ? act : NULL;
    }
    return NULL;
}

/* A raylet that is started again was not well by the start before. */
static void remedies_begin_act(struct remedies_ask *k,
                               const struct api_eyes *eyes,
                               const struct store_event *e,
                               const char *node)
{
    enum remedy what;
    const char *code = str_or(e->reason_code, "");
    if (!str_starts(code, REMEDIES_CODE) ||
        !remedy_from_string(code + strlen(REMEDIES_CODE), &what))
        return; /* remedy_spent: nothing was done */
    struct remedy_act *before = remedies_open(k, node, what == REMEDY_RAYLET);
    if (before)
        before->outcome = what == REMEDY_RAYLET ? REMEDY_HAS_FAILED : REMEDY_IS_BROKEN_OFF;
    struct remedy_act *act = &k->acts[k->n_acts++];
    *act = (struct remedy_act){.what = (int)what, .node = node, .at = e->at};
    saying_say(eyes, NULL, code, e->text, &act->why);
}

static void remedies_end_act(struct remedies_ask *k,
                             const struct api_eyes *eyes,
                             const struct store_event *e,
                             const char *node)
{
    struct remedy_act *act = remedies_open(k, node, str_eq(e->kind, "node_online"));
    if (!act)
        return;
    act->ended_at = e->at;
    act->outcome = str_eq(e->reason_code, "remedy_failed") ? REMEDY_HAS_FAILED : REMEDY_IS_DONE;
    saying_say(eyes, NULL, e->reason_code, e->text, &act->came);
    act->found = &act->came;
}

/* How an act without an end stands now. */
static enum remedy_outcome remedies_stands(const struct remedies_ask *k,
                                           const struct remedy_act *act)
{
    const struct noderun *nr = nodes_find(k->a->nodes, act->node);
    const struct node_row *row = nr ? nodes_row(nr) : NULL;
    bool is_newer = act->at >= k->asked_at; /* it began after it was asked who is busy */
    if (act->what != REMEDY_RAYLET)
        return is_newer || strv_has(&k->busy, act->node) ? REMEDY_UNDER_WAY : REMEDY_IS_BROKEN_OFF;
    if (!row || row->want != NODE_WANT_UP)
        return REMEDY_IS_BROKEN_OFF;
    if (row->state == NODE_ONLINE)
        return REMEDY_IS_DONE; /* its event is not on disk yet */
    return str_eq(row->reason.code, "raylet_rests") ? REMEDY_HAS_FAILED : REMEDY_UNDER_WAY;
}

static void remedies_take_events(struct remedies_ask *k, const struct store_result *r)
{
    const struct api_eyes eyes = {.a = k->a, .p = &k->who};
    k->acts = xcalloc(r->nevents + 1, sizeof(*k->acts));
    for (size_t i = r->nevents; i-- > 0;) {
        const struct store_event *e = &r->events[i];
        if (!e->object || !str_starts(e->object, REMEDIES_OF_NODE))
            continue;
        const char *node = e->object + strlen(REMEDIES_OF_NODE);
        if (str_eq(e->kind, "node_remedy"))
            remedies_begin_act(k, &eyes, e, node);
        else
            remedies_end_act(k, &eyes, e, node);
    }
    for (size_t i = 0; i < k->n_acts; i++)
        if (k->acts[i].outcome == REMEDY_UNDER_WAY)
            k->acts[i].outcome = (int)remedies_stands(k, &k->acts[i]);
}

/* The newest first; what they own stays with k. */
static struct field_list remedies_acts(const struct remedies_ask *k)
{
    struct remedy_act *v = xcalloc(k->n_acts + 1, sizeof(*v));
    for (size_t i = 0; i < k->n_acts; i++)
        v[i] = k->acts[k->n_acts - 1 - i];
    return (struct field_list){.v = v, .n = k->n_acts};
}

/* ---- remedies ---- */

static struct field_list remedies_nodes(const struct remedies_ask *k, enum remedy what)
{
    const struct node_row *row;
    size_t n = 0, all = 0, pos = 0;
    usec_t now = clock_wall();
    while (nodes_next(k->a->nodes, &pos))
        all++;
    struct remedy_node *v = xcalloc(all + 1, sizeof(*v));
    for (pos = 0; (row = nodes_next(k->a->nodes, &pos));) {
        int acts = remedy_times(row->remedies, what, now);
        if (acts && remedies_is_of(k, row->spec.name))
            v[n++] = (struct remedy_node){.node = row->spec.name,
                                          .acts = acts,
                                          .leave = (int)remedy_ask(row->remedies, what, now)};
    }
    return (struct field_list){.v = v, .n = n};
}

static void remedies_fill(const struct remedies_ask *k, struct remedy_page v[static REMEDY_END])
{
    for (int i = 0; i < REMEDY_END; i++) {
        enum remedy what = (enum remedy)i;
        v[i] = (struct remedy_page){.what = i,
                                    .limit = remedy_limit(what),
                                    .is_on = k->a->settings->remedies[i] == REMEDY_IS_ON,
                                    .rest = remedy_rest(what),
                                    .nodes = remedies_nodes(k, what)};
        text_printf(v[i].key, "remedies.%s", remedy_to_string(what));
    }
}

/* ---- the answer ---- */

static void remedies_answer(struct remedies_ask *k, bool is_cut)
{
    struct buf out = BUF_INIT(REMEDIES_ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct remedy_page v[REMEDY_END];
    remedies_fill(k, v);
    const struct remedies_page page = {.remedies = {.v = v, .n = REMEDY_END},
                                       .acts = remedies_acts(k),
                                       .from = k->from,
                                       .is_cut = is_cut};
    field_to_json(&list_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(k->req, 200, &out, api_reader_barrier(k->a));
    for (int i = 0; i < REMEDY_END; i++)
        free(v[i].nodes.v);
    free(page.acts.v);
    buf_release(&out);
}

static void remedies_on_events(const struct store_result *r, void *arg)
{
    struct remedies_ask *k = arg;
    http_req_on_close(k->req, NULL, NULL);
    if (r->err.code) {
        api_fail(k->req, &r->err, 0);
    } else {
        remedies_take_events(k, r);
        remedies_answer(k, r->nevents == STORE_PAGE_MAX);
    }
    remedies_ask_free(k);
}

static void remedies_read_events(struct remedies_ask *k)
{
    const struct store_then then = {.done = remedies_on_events, .arg = k};
    struct people_sight sight;
    people_sight(k->a->people, &k->who, &sight);
    const struct store_event_query q = {.kinds = REMEDIES_KINDS,
                                        .object = str_or(k->object, "node"),
                                        .from = k->from,
                                        .limit = STORE_PAGE_MAX,
                                        .newest_first = true,
                                        .scope = sight.scope};
    k->read = store_list_events(k->a->store, &q, &then);
    people_sight_release(&sight);
}

static void remedies_note_busy(struct remedies_ask *k)
{
    const struct node_row *row;
    for (size_t pos = 0; (row = nodes_next(k->a->nodes, &pos));) {
        const struct noderun *nr = nodes_find(k->a->nodes, row->spec.name);
        if (nr && nodes_is_mending(nr))
            strv_add(&k->busy, row->spec.name);
    }
}

static void api_remedies(struct http_req *req, void *app)
{
    struct err err = {0};
    const char *node = http_req_query(req, "node");
    struct remedies_ask *k = xcalloc(1, sizeof(*k));
    *k = (struct remedies_ask){
        .req = req, .a = app, .who = *http_req_principal(req), .asked_at = clock_wall()};
    k->from = k->asked_at - REMEDIES_SPAN;
    if (api_read_time(req, "from", k->asked_at, &k->from, &err) < 0) {
        err.code = ERR_BAD_REQUEST;
        api_fail(req, &err, 0);
        remedies_ask_free(k);
        return;
    }
    if (node && *node)
        k->object = xasprintf(REMEDIES_OF_NODE "%s", node);
    remedies_note_busy(k);
    http_req_on_close(req, remedies_on_gone, k);
    remedies_read_events(k);
}

static const struct http_param remedies_params[] = {
    {"from", HTTP_PARAM_STRING,
     "only acts from this time on, or from this long ago (2h); 24h if not given"},
    {"node", HTTP_PARAM_STRING, "only this node"},
    {0}};
static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/remedies",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_remedies,
     .summary = "what argusd may put right on machines by itself, and what it did lately",
     .params = remedies_params,
     .reply_schema = "RemedyList"},
};
static const struct http_schema schemas[] = {
    {.name = "RemedyNode", .table = &node_table},
    {.name = "Remedy", .table = &remedy_page_table},
    {.name = "RemedyAct", .table = &act_table},
    {.name = "RemedyList", .table = &list_table},
};
const struct api_part part_remedies = {rows, array_len(rows), schemas, array_len(schemas)};
