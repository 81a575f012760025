/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c - machines over HTTP: register, list, look, drain, remove, check; and pools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/machines/clusters.h"
#include "argusd/api/machines/drainplan.h"
#include "argusd/kit/part.h"
#include "argusd/kit/saying.h"
#include "argusd/network/netchecks.h"
#include "argusd/network/netpairs_view.h"
#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"

enum { ANSWER_MAX = 16 << 20, NODE_MAX = 1 << 20, ETAG_CHARS = 20 };
static const usec_t CHECK_PATIENCE = 100 * USEC_SEC;

/* ---- reading ---- */

static void api_nodes(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct api_eyes who = {a, http_req_principal(req)};
    struct saying_to to = {.eyes = &who};
    struct message_listener listener = saying_listener(&to);
    struct nodes_eyes eyes = {
        .sees = api_sees_job, .arg = &who, .listener = &listener, .with_slots = true};
    const char *code, *text;
    cluster_why_not(a->cluster, &code, &text);
    jout_open(&j, NULL, '{');
    nodes_put_all(a->nodes, &eyes, &j, "nodes");
    jout_bool(&j, "stale", !cluster_is_up(a->cluster));
    struct buf held = {0};
    jout_str(&j, "reason", *code ? message_say(code, text, &listener, &held) : NULL);
    buf_release(&held);
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

static void api_cluster_nodes(struct http_req *req, void *app)
{
    if (api_is_our_cluster(req, app))
        api_nodes(req, app);
}

static void api_pools(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    nodes_put_pools(a->nodes, &j, "pools");
    jout_bool(&j, "stale", !cluster_is_up(a->cluster));
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

static void fail_unknown(struct http_req *req, const char *name)
{
    struct err err = {0};
    (void)message_refuse(&err, ERR_NOT_FOUND, "not_found",
                         MESSAGE_ARGS(MESSAGE_STR("noun", "node"), MESSAGE_STR("name", name)));
    api_fail(req, &err, 0);
}

/* The registered node of the path; else the refusal was sent. */
static struct noderun *find_registered(struct http_req *req, const struct api *a)
{
    const char *name = http_req_param(req, "name");
    struct noderun *nr = nodes_find(a->nodes, name);
    struct err err = {0};
    if (nr)
        return nr;
    const struct cluster_node *k = cluster_find_name(a->cluster, name);
    if (k && !nodes_is_former(a->nodes, k)) {
        (void)message_refuse(&err, ERR_CONFLICT, "node_not_ours",
                             MESSAGE_ARGS(MESSAGE_STR("name", name)));
        api_fail(req, &err, 0);
        return NULL;
    }
    fail_unknown(req, name);
    return NULL;
}

/* Empty: there is no such node. */
static void api_nodes_render(struct http_req *req,
                             const struct api *a,
                             const char *name,
                             struct buf *out)
{
    struct api_eyes who = {a, http_req_principal(req)};
    struct saying_to to = {.eyes = &who};
    struct message_listener listener = saying_listener(&to);
    _cleanup_(freep) char *peers = netpairs_peers(netchecks_pairs(a->netchecks), name);
    struct nodes_eyes eyes = {
        .sees = api_sees_job, .arg = &who, .listener = &listener, .peers = peers};
    struct jout j = jout_begin(out);
    const struct noderun *nr = nodes_find(a->nodes, name);
    if (nr)
        nodes_put(nr, &eyes, &j, NULL);
    else
        (void)nodes_put_attached(a->nodes, name, &eyes, &j, NULL); /* empty tells */
}

static void etag_of(const struct buf *body, char ret[static HASH_HEX])
{
    (void)hash_sha256_hex(buf_str(body), body->len, ret);
    ret[ETAG_CHARS] = 0;
}

static void answer_node(struct http_req *req, const struct api *a, const char *name, int status)
{
    struct buf out = BUF_INIT(NODE_MAX);
    char etag[HASH_HEX];
    uint64_t barrier = status == 200 ? api_reader_barrier(a) : api_barrier(a);
    api_nodes_render(req, a, name, &out);
    if (!out.len) {
        fail_unknown(req, name);
    } else {
        etag_of(&out, etag);
        if (status != 200 || !http_reply_not_modified(req, etag, barrier))
            http_reply_json(req, status, &out, barrier);
    }
    buf_release(&out);
}

/* ---- one node, now or when it changes ---- */

struct node_wait {
    struct http_req *req;
    struct api *a;
    struct nodes_waiter *waiter;
    char *name;
};

static void api_nodes_end_wait(struct node_wait *w)
{
    http_req_on_close(w->req, NULL, NULL);
    answer_node(w->req, w->a, w->name, 200);
    free(w->name);
    free(w);
}

static void api_nodes_on_changed(void *arg)
{
    api_nodes_end_wait(arg); /* the waiter is gone with the call */
}

static void api_nodes_on_wait_over(struct http_req *req, void *arg)
{
    struct node_wait *w = arg;
    (void)req;
    nodes_unwait(w->waiter);
    api_nodes_end_wait(w);
}

static void api_nodes_on_waiter_gone(struct http_req *req, void *arg)
{
    struct node_wait *w = arg;
    (void)req;
    nodes_unwait(w->waiter);
    free(w->name);
    free(w);
}

static bool is_current(struct http_req *req, const struct api *a, const char *name)
{
    struct buf out = BUF_INIT(NODE_MAX);
    char etag[HASH_HEX];
    api_nodes_render(req, a, name, &out);
    etag_of(&out, etag);
    bool current = out.len && http_req_has_etag(req, etag);
    buf_release(&out);
    return current;
}

static void api_nodes_get(struct http_req *req, void *app)
{
    struct api *a = app;
    const char *name = http_req_param(req, "name");
    struct noderun *nr = nodes_find(a->nodes, name);
    usec_t span = http_req_wait(req);
    if (!nr || !span || !is_current(req, a, name)) {
        answer_node(req, a, name, 200);
        return;
    }
    struct node_wait *w = xcalloc(1, sizeof(*w));
    *w = (struct node_wait){.req = req, .a = a, .name = xstrdup(name)};
    w->waiter = nodes_wait(nr, api_nodes_on_changed, w);
    http_req_on_close(req, api_nodes_on_waiter_gone, w);
    http_req_park(req, span, api_nodes_on_wait_over, w);
}

static void api_nodes_firewall(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    const struct noderun *nr = find_registered(req, a);
    struct buf out = BUF_INIT(NODE_MAX);
    struct jout j = jout_begin(&out);
    if (!nr)
        return;
    if (nodes_put_firewall(nr, http_req_query(req, "argusd"), http_req_query(req, "prometheus"), &j,
                           &err) < 0)
        api_fail(req, &err, 0);
    else
        http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

/* ---- changing ---- */

/* False: the refusal was sent. */
static bool can_change(struct http_req *req, const struct api *a)
{
    struct err err = {0};
    if (store_check(a->store, &err) == 0)
        return true;
    api_fail(req, &err, 0);
    return false;
}

static void answer_added(struct http_req *req,
                         const struct api *a,
                         struct noderun *const *v,
                         size_t n,
                         size_t added)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct api_eyes who = {a, http_req_principal(req)};
    struct saying_to to = {.eyes = &who};
    struct message_listener listener = saying_listener(&to);
    struct nodes_eyes eyes = {.sees = api_sees_job, .arg = &who, .listener = &listener};
    jout_open(&j, NULL, '{');
    jout_open(&j, "nodes", '[');
    for (size_t i = 0; i < n; i++)
        nodes_put(v[i], &eyes, &j, NULL);
    jout_close(&j, ']');
    jout_close(&j, '}');
    if (n == 1) {
        _cleanup_(freep) char *at = xasprintf("/v1/nodes/%s", nodes_row(v[0])->spec.name);
        http_reply_header(req, "Location", at);
    }
    http_reply_json(req, added ? 201 : 200, &out, api_barrier(a));
    buf_release(&out);
}

static void api_nodes_add(struct http_req *req,
                          struct api *a,
                          const struct doc *d,
                          struct problems *ps)
{
    struct nodespec *specs = NULL;
    struct noderun **v = NULL;
    struct err err = {0};
    size_t n = 0, added = 0;
    const char *user = http_req_principal(req)->user;
    if (nodespec_read_all(doc_root(d), &specs, &n, ps) < 0)
        api_answer_problems(req, ps);
    else if (nodes_add(a->nodes, specs, n, user, &v, &added, &err) < 0)
        api_fail(req, &err, 0);
    else
        answer_added(req, a, v, n, added);
    for (size_t i = 0; i < n; i++)
        nodespec_release(&specs[i]);
    free(specs);
    free(v);
}

static void api_nodes_create(struct http_req *req, void *app)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    size_t len;
    const char *body = http_req_body(req, &len);
    if (!can_change(req, app))
        return;
    if (doc_parse(body, len, true, &d, &ps) < 0)
        api_answer_problems(req, &ps);
    else
        api_nodes_add(req, app, d, &ps);
    doc_free(d);
    problems_release(&ps);
}

#define OPT_STOP_FOREIGN                                                                           \
    SAYS("stop_foreign", FIELD_BOOL, .flags = 0,                                                   \
         .doc = "jobs that Argus did not submit are not waited for, but stopped with the machine")
static const struct field drain_rows[] = {
    OPT_AS("deadline", "{\"type\":[\"string\",\"integer\",\"null\"]}"),
    OPT_AS("then", WORDS("\"wait\",\"stop\",\"restart\"")),
    OPT_STOP_FOREIGN,
};
static const struct field_table node_drain_form = ACTION_FORM(drain_rows);
static const struct field_table undrain_form = {0};
static const struct field remove_rows[] = {OPT_BOOLEAN("force"), OPT_STOP_FOREIGN};
static const struct field_table node_remove_form = ACTION_FORM(remove_rows);
static const struct field check_rows[] = {OPT_BOOLEAN("accept_key")};
static const struct field_table node_check_form = ACTION_FORM(check_rows);

static int read_drain(const json_t *o, struct nodes_drain *ret, struct err *err)
{
    const char *then = json_get_str(o, "then", "wait");
    const json_t *deadline = json_object_get(o, "deadline");
    ret->then = node_then_from_string(then);
    ret->stop_foreign = json_get_bool(o, "stop_foreign", false);
    if (ret->then == NODE_THEN_END)
        return message_refuse(err, ERR_BAD_REQUEST, "drain_then",
                              MESSAGE_ARGS(MESSAGE_STR("then", then)));
    if (!deadline || json_is_null(deadline))
        return 0;
    if (json_is_integer(deadline) && json_integer_value(deadline) >= 0)
        ret->within = (usec_t)json_integer_value(deadline) * USEC_SEC;
    else if (!json_is_string(deadline) ||
             span_from_string(json_string_value(deadline), &ret->within, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "drain_deadline", MESSAGE_NO_ARGS);
    return 0;
}

/* The machine that an action is about, and the body of the action; NULL: it was refused. */
static json_t *node_action_begin(struct http_req *req,
                                 struct api *a,
                                 const struct field_table *form,
                                 struct noderun **ret)
{
    *ret = can_change(req, a) ? find_registered(req, a) : NULL;
    return *ret ? api_read_action(req, form) : NULL;
}

static void node_action_end(struct http_req *req,
                            struct api *a,
                            const struct noderun *nr,
                            int result,
                            const struct err *err)
{
    if (result < 0)
        api_fail(req, err, 0);
    else
        answer_node(req, a, nodes_row(nr)->spec.name, 202);
}

static void api_nodes_drain(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct nodes_drain how = {0};
    struct noderun *nr = NULL;
    _cleanup_(json_unrefp) json_t *o = node_action_begin(req, a, &node_drain_form, &nr);
    if (!o)
        return;
    bool is_dry = http_req_query_bool(req, "dry_run", false);
    int r = read_drain(o, &how, &err);
    if (r == 0)
        r = is_dry ? nodes_check_drain(nr, &err)
                   : nodes_drain(nr, &how, http_req_principal(req)->user, &err);
    if (r >= 0 && is_dry)
        api_nodes_plan_drain(req, a, nr, &how);
    else
        node_action_end(req, a, nr, r, &err);
}

static void api_nodes_undrain(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct noderun *nr = NULL;
    _cleanup_(json_unrefp) json_t *o = node_action_begin(req, a, &undrain_form, &nr);
    if (!o)
        return;
    node_action_end(req, a, nr, nodes_undrain(nr, http_req_principal(req)->user, &err), &err);
}

static void api_nodes_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct noderun *nr = NULL;
    _cleanup_(json_unrefp) json_t *o = node_action_begin(req, a, &node_remove_form, &nr);
    if (!o)
        return;
    unsigned flags = (json_get_bool(o, "force", false) ? NODES_REMOVE_FORCED : 0u) |
                     (json_get_bool(o, "stop_foreign", false) ? NODES_REMOVE_STOP_FOREIGN : 0u);
    int r = nodes_remove(nr, flags, http_req_principal(req)->user, &err);
    node_action_end(req, a, nr, r, &err);
}

/* ---- check: the answer comes with what was found ---- */

struct checking {
    struct http_req *req;
    struct api *a;
    struct nodes_check *check;
    char *name;
};

static void end_check(struct checking *k, int status)
{
    http_req_on_close(k->req, NULL, NULL);
    answer_node(k->req, k->a, k->name, status);
    free(k->name);
    free(k);
}

static void api_nodes_on_checked(struct noderun *nr, void *arg)
{
    (void)nr;
    end_check(arg, 200); /* the check is gone with the call */
}

static void on_check_late(struct http_req *req, void *arg)
{
    struct checking *k = arg;
    (void)req;
    nodes_check_free(k->check);
    end_check(k, 202);
}

static void on_checker_gone(struct http_req *req, void *arg)
{
    struct checking *k = arg;
    (void)req;
    nodes_check_free(k->check);
    free(k->name);
    free(k);
}

static void api_nodes_check(struct http_req *req, void *app)
{
    struct api *a = app;
    struct noderun *nr = NULL;
    _cleanup_(json_unrefp) json_t *o = node_action_begin(req, a, &node_check_form, &nr);
    if (!o)
        return;
    struct checking *k = xcalloc(1, sizeof(*k));
    *k = (struct checking){.req = req, .a = a, .name = xstrdup(nodes_row(nr)->spec.name)};
    k->check = nodes_check(nr, json_get_bool(o, "accept_key", false), http_req_principal(req)->user,
                           api_nodes_on_checked, k);
    http_req_on_close(req, on_checker_gone, k);
    http_req_park(req, CHECK_PATIENCE, on_check_late, k);
}

enum { NODESPEC_BODY_MAX = 1 << 20, ACTION_MAX = 4096 };

static const struct http_param wait_params[] = {
    {"wait", HTTP_PARAM_SPAN, "with If-None-Match: answer when it changes, at most 60s"},
    {0}};
static const struct http_param firewall_params[] = {
    {"argusd", HTTP_PARAM_STRING, "argusd's addresses as the machine sees them; else found out"},
    {"prometheus", HTTP_PARAM_STRING, "addresses of who reads the metrics, parted by commas"},
    {0}};
static const struct http_param drain_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "answer what it would do to the jobs there, and do nothing"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/nodes",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_nodes,
     .summary = "the machines: those of the registry, and those that only Ray lists",
     .reply_schema = "NodeList"},
    {.method = "POST",
     .pattern = "/v1/nodes",
     .least = HTTP_ROLE_ADMIN,
     .max_body = NODESPEC_BODY_MAX,
     .handle = api_nodes_create,
     .summary = "register one machine or a list of them; argusd brings them in over ssh",
     .request_type = TEXT_TYPES,
     .request_schema = "NodeOrder",
     .reply_schema = "NodeList",
     .reply_status = 201,
     .other_schema = "NodeList"},
    {.method = "GET",
     .pattern = "/v1/nodes/{name}",
     .example = "worker1",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_nodes_get,
     .summary = "one machine",
     .params = wait_params,
     .reply_schema = "Node"},
    {.method = "GET",
     .pattern = "/v1/nodes/{name}/firewall",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_nodes_firewall,
     .summary = "who is to reach which of its ports",
     .params = firewall_params,
     .reply_schema = "Firewall"},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:drain",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_drain,
     .summary = "no new job from now on; when nothing runs on it any more it goes offline",
     .params = drain_params,
     .request_schema = "Drain",
     .reply_schema = "Node",
     .reply_status = 202,
     .other_schema = "DrainPlan"},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:undrain",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_undrain,
     .summary = "take a drained machine back",
     .reply_schema = "Node",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:remove",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_remove,
     .summary = "stop Ray there and forget the machine and its host key",
     .request_schema = "Remove",
     .reply_schema = "Node",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:check",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_check,
     .summary = "look at the machine now; the answer has the findings",
     .request_schema = "Check",
     .reply_schema = "Node"},
    {.method = "GET",
     .pattern = "/v1/pools",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_pools,
     .summary = "GPUs by use, of the cluster and of each label",
     .reply_schema = "PoolList"},
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/nodes",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_nodes,
     .summary = "the machines of a cluster",
     .reply_schema = "NodeList"},
};
#define STALE "," KEY("stale", BOOLEAN)

static const struct http_schema schemas[] = {
    {.name = "NodeSpec", .table = &nodespec_table, .is_form = true},
    {.name = "NodeOrder",
     .json = "{\"anyOf\":[" REF("NodeSpec") "," LIST(
         REF("NodeSpec")) "," OBJECT("\"nodes\"", KEY("nodes", LIST(REF("NodeSpec")))) "]}"},
    LIST_AND("PoolList", "pools", "Pool", STALE),
    LIST_AND("NodeList", "nodes", "Node", STALE "," KEY("reason", TEXT_OR_NULL)),
    {.name = "NodeDrain", .table = &nodes_drain_table},
    {.name = "NodeSpecShown", .table = &nodespec_shown_table},
    {.name = "NodeFacts", .table = &node_facts_table},
    {.name = "NodeReason", .table = &nodes_reason_table},
    {.name = "NodeLease", .table = &nodes_lease_table},
    {.name = "NodeSlot", .table = &nodes_slot_table},
    {.name = "Node", .table = &nodes_node_table},
    {.name = "FirewallRule", .table = &nodes_rule_table},
    {.name = "Firewall", .table = &nodes_firewall_table},
    {.name = "Drain", .table = &node_drain_form, .is_form = true},
    {.name = "Remove", .table = &node_remove_form, .is_form = true},
    {.name = "Check", .table = &node_check_form, .is_form = true},
    {.name = "Pool", .table = &nodes_pool_table},
};
const struct api_part part_nodes = {rows, array_len(rows), schemas, array_len(schemas)};
