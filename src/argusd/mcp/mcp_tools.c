/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c - see mcp_tools.h. The names of a path, the query and the form of the body of a route
 * are the arguments of its tool; no two of one route have the same name. */
#include "argusd/mcp/mcp_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "base/field.h"
#include "base/message.h"
#include "base/str.h"

#define READ(tool, path)                                                                           \
    {                                                                                              \
        tool, "GET", path, MCP_TOOL_READS                                                          \
    }
/* Reads what admins and Argus itself wrote. A single plan is none of these: it has the names of the
 * jobs that it touches, which are free text. Nor are clusters: the reason of a head that waits to
 * go has ids of jobs of Ray, which are whatever their owners chose. */
#define READ_OWN(tool, path)                                                                       \
    {                                                                                              \
        tool, "GET", path, MCP_TOOL_READS | MCP_TOOL_IS_OWN                                        \
    }
static const struct mcp_tool tools[] = {
    READ("list_jobs", "/v1/jobs"),
    READ("get_job", "/v1/jobs/{id}"),
    READ("why_job_waits", "/v1/jobs/{id}/why"),
    READ("get_job_findings", "/v1/jobs/{id}/findings"),
    READ("get_job_events", "/v1/jobs/{id}/events"),
    READ("get_job_log", "/v1/jobs/{id}/logs"),
    READ("get_job_metrics", "/v1/jobs/{id}/metrics"),
    READ("get_job_checkpoints", "/v1/jobs/{id}/checkpoints"),
    READ("search_logs", "/v1/logs"),
    READ("list_nodes", "/v1/nodes"),
    READ("get_node", "/v1/nodes/{name}"),
    READ_OWN("list_pools", "/v1/pools"),
    READ("list_clusters", "/v1/clusters"),
    READ("list_alerts", "/v1/alerts"),
    READ("list_incidents", "/v1/incidents"),
    READ("get_incident", "/v1/incidents/{incident}"),
    READ("list_events", "/v1/events"),
    READ("list_remedies", "/v1/remedies"),
    READ("get_usage", "/v1/usage"),
    READ_OWN("list_plans", "/v1/ops/plans"),
    READ("get_plan", "/v1/ops/plans/{plan}"),
    {"report_finding", "POST", "/v1/jobs/{id}/findings", 0},
    {"acknowledge_alert", "POST", "/v1/alerts/{alert}:ack", 0},
    {"plan_drain_node", "POST", "/v1/ops/drain_node", 0},
    {"plan_remove_node", "POST", "/v1/ops/remove_node", 0},
    {"plan_restart_ray_head", "POST", "/v1/ops/restart_ray_head", 0},
    {"plan_cleanup_job_artifacts", "POST", "/v1/ops/cleanup_job_artifacts", 0},
    {"plan_stop_many", "POST", "/v1/ops/stop_many", 0},
    {"approve_plan", "POST", "/v1/ops/plans/{plan}:approve", 0},
    {"apply_plan", "POST", "/v1/ops/plans/{plan}:apply", MCP_TOOL_DESTROYS},
};
/* Parameters of a query that make a stream of the answer, or something that is not JSON. */
static const char *const left_out[] = {"follow", "last_event_id", "format"};

const struct mcp_tool *mcp_tool_find(const char *name)
{
    for (size_t i = 0; i < array_len(tools); i++)
        if (str_eq(tools[i].name, name))
            return &tools[i];
    return NULL;
}

static bool mcp_is_at(const struct http_route *r, const char *method, const char *pattern)
{
    return str_eq(r->method, method) && str_eq(r->pattern, pattern);
}

static const struct http_route *mcp_route_at(const char *method, const char *pattern)
{
    for (size_t i = 0; API_PARTS[i]; i++)
        for (size_t k = 0; k < API_PARTS[i]->n_rows; k++) {
            const struct http_route *r = &API_PARTS[i]->rows[k];
            if (mcp_is_at(r, method, pattern))
                return r;
        }
    return NULL;
}

static const struct http_route *mcp_route(const struct mcp_tool *t)
{
    return mcp_route_at(t->method, t->pattern); /* mcp_rows_check(): there is one */
}

/* The form of a body; NULL: it has none. */
static const struct http_schema *mcp_form(const struct http_route *r)
{
    for (size_t i = 0; r->request_schema && API_PARTS[i]; i++)
        for (size_t k = 0; k < API_PARTS[i]->n_schemas; k++)
            if (str_eq(API_PARTS[i]->schemas[k].name, r->request_schema))
                return &API_PARTS[i]->schemas[k];
    return NULL;
}

/* ---- what a tool takes ---- */

static bool mcp_is_asked(const struct http_param *p)
{
    for (size_t i = 0; i < array_len(left_out); i++)
        if (str_eq(left_out[i], p->name))
            return false;
    return true;
}

/* The next {name} of a pattern, or NULL. */
static const char *mcp_next_name(const char **at, size_t *ret_n)
{
    const char *open = strchr(*at, '{');
    if (!open)
        return NULL;
    *ret_n = strcspn(open + 1, "}");
    *at = open + 1 + *ret_n;
    return open + 1;
}

static void mcp_add_member(json_t *schema, const char *name, json_t *taken, bool required)
{
    (void)json_object_set_new(json_object_get(schema, "properties"), name,
                              taken); /* lack of memory, as below */
    if (required)
        (void)json_array_append_new(json_object_get(schema, "required"), json_string(name));
}

static void mcp_add_form(json_t *schema, const struct http_schema *form)
{
    struct buf out = BUF_INIT(MCP_BODY_MAX);
    struct jout j = jout_begin(&out);
    _cleanup_(json_unrefp) json_t *body = NULL;
    const char *name;
    json_t *v;
    size_t i;
    if (form->table)
        field_form_schema(form->table, form->which, &j, NULL);
    else
        (void)buf_adds(&out, str_or(form->json, "{}")); /* a literal: it fits */
    if (json_parse(buf_str(&out), out.len, out.max, &body, NULL) == 0) {
        json_object_foreach (json_object_get(body, "properties"), name, v)
            mcp_add_member(schema, name, json_incref(v), false);
        json_array_foreach (json_object_get(body, "required"), i, v)
            (void)json_array_append(json_object_get(schema, "required"), v);
    }
    buf_release(&out);
}

static json_t *mcp_schema(const struct http_route *r)
{
    static const char *const types[] = {[HTTP_PARAM_STRING] = "string",
                                        [HTTP_PARAM_INTEGER] = "integer",
                                        [HTTP_PARAM_BOOLEAN] = "boolean",
                                        [HTTP_PARAM_SPAN] = "string"};
    json_t *schema = json_pack("{s:s,s:{},s:[],s:b}", "type", "object", "properties", "required",
                               "additionalProperties", 0);
    const struct http_schema *form = mcp_form(r);
    const char *at = r->pattern, *name;
    size_t n;
    while ((name = mcp_next_name(&at, &n))) {
        _cleanup_(freep) char *key = xstrndup(name, n);
        mcp_add_member(schema, key, json_pack("{s:s}", "type", "string"), true);
    }
    for (const struct http_param *p = r->params; p && p->name; p++)
        if (mcp_is_asked(p))
            mcp_add_member(schema, p->name,
                           json_pack("{s:s,s:s}", "type", types[p->type], "description", p->doc),
                           false);
    if (form)
        mcp_add_form(schema, form);
    return schema;
}

void mcp_tools_put(enum http_role role, struct jout *j)
{
    jout_open(j, "tools", '[');
    for (size_t i = 0; i < array_len(tools); i++) {
        const struct mcp_tool *t = &tools[i];
        const struct http_route *r = mcp_route(t);
        if (!r || role < r->least)
            continue;
        _cleanup_(json_unrefp) json_t *schema = mcp_schema(r);
        char *text = json_dumps(schema, JSON_COMPACT);
        jout_open(j, NULL, '{');
        jout_str(j, "name", t->name);
        jout_str(j, "description", r->summary);
        jout_raw(j, "inputSchema", str_or(text, "{}"));
        jout_open(j, "annotations", '{');
        jout_bool(j, "readOnlyHint", t->flags & MCP_TOOL_READS);
        jout_bool(j, "destructiveHint", t->flags & MCP_TOOL_DESTROYS);
        jout_bool(j, "openWorldHint", false);
        jout_close(j, '}');
        jout_close(j, '}');
        free(text);
    }
    jout_close(j, ']');
}

/* ---- a call ---- */

/* As it stands in a query; heap, NULL: it is no such value. */
static char *mcp_value(const json_t *v)
{
    if (json_is_string(v))
        return xstrdup(json_string_value(v));
    if (json_is_boolean(v))
        return xstrdup(json_is_true(v) ? "true" : "false");
    return json_is_integer(v) ? xasprintf("%lld", (long long)json_integer_value(v)) : NULL;
}

static int mcp_refuse(const char *name, struct err *err)
{
    return message_refuse(err, ERR_BAD_REQUEST, "mcp_argument",
                          MESSAGE_ARGS(MESSAGE_STR("name", name)));
}

/* The path with the names' values; they are taken off the rest. */
static int mcp_put_path(const char *pattern, json_t *rest, struct buf *out, struct err *err)
{
    const char *from = pattern, *at = pattern, *name;
    size_t n;
    while ((name = mcp_next_name(&at, &n))) {
        _cleanup_(freep) char *key = xstrndup(name, n);
        const char *value = json_get_str(rest, key, NULL);
        if (!value || !*value)
            return mcp_refuse(key, err);
        (void)buf_add(out, from, (size_t)(name - 1 - from)); /* as above */
        buf_add_url(out, value);
        (void)json_object_del(rest, key); /* it is there */
        from = at + 1;
    }
    (void)buf_adds(out, from); /* as above */
    return 0;
}

static int mcp_put_query(const struct http_route *r, json_t *rest, struct buf *out, struct err *err)
{
    char sign = '?';
    for (const struct http_param *p = r->params; p && p->name; p++) {
        const json_t *given = json_object_get(rest, p->name);
        _cleanup_(freep) char *value = given ? mcp_value(given) : NULL;
        if (!given || !mcp_is_asked(p))
            continue;
        if (!value)
            return mcp_refuse(p->name, err);
        (void)buf_addf(out, "%c%s=", sign, p->name); /* as above */
        buf_add_url(out, value);
        sign = '&';
        (void)json_object_del(rest, p->name); /* it is there */
    }
    return 0;
}

int mcp_tool_ask(const struct mcp_tool *t,
                 const json_t *arguments,
                 struct buf *ret_target,
                 struct buf *ret_body,
                 struct err *err)
{
    const struct http_route *r = mcp_route(t);
    _cleanup_(json_unrefp) json_t *rest =
        arguments ? json_copy((json_t *)(uintptr_t)arguments) : json_object();
    int e = mcp_put_path(r->pattern, rest, ret_target, err);
    if (e == 0)
        e = mcp_put_query(r, rest, ret_target, err);
    if (e < 0)
        return e;
    bool has_body = !str_eq(r->method, "GET");
    if (json_object_size(rest) && (!has_body || !mcp_form(r)))
        return mcp_refuse(json_object_iter_key(json_object_iter(rest)), err);
    char *text = json_object_size(rest) ? json_dumps(rest, JSON_COMPACT) : NULL;
    if (text)
        (void)buf_adds(ret_body, text); /* as below */
    free(text);
    return ret_target->failed || ret_body->failed ? mcp_refuse("arguments", err) : 0;
}

/* ---- is each route decided about ---- */

static const struct mcp_tool *mcp_tool_of(const struct http_route *r)
{
    for (size_t i = 0; i < array_len(tools); i++)
        if (mcp_is_at(r, tools[i].method, tools[i].pattern))
            return &tools[i];
    return NULL;
}

static bool mcp_is_left(const struct http_route *r)
{
    size_t n;
    const struct mcp_left *v = mcp_left(&n);
    for (size_t i = 0; i < n; i++)
        if (mcp_is_at(r, v[i].method, v[i].pattern))
            return true;
    return false;
}

const char *mcp_route_check(const struct http_route *r)
{
    const struct mcp_tool *t = mcp_tool_of(r);
    bool is_left = mcp_is_left(r), reads = t && t->flags & MCP_TOOL_READS;
    if (r->flags & HTTP_ROUTE_HIDDEN)
        return t || is_left ? "it is hidden, and for no program" : NULL;
    if (!t && !is_left)
        return "it is neither a tool (mcp_tools.c) nor left (mcp_left.c): decide";
    if (t && is_left)
        return "it is a tool, and left as well";
    if (t && !str_eq(r->method, reads ? "GET" : "POST"))
        return "a tool that reads is a GET, and one that changes something a POST";
    if (t && r->least < (reads ? HTTP_ROLE_VIEWER : HTTP_ROLE_USER))
        return "a tool is for a role, and one that changes something for users";
    return NULL;
}

char *mcp_rows_check(void)
{
    size_t n;
    const struct mcp_left *v = mcp_left(&n);
    for (size_t i = 0; i < array_len(tools); i++)
        if (!mcp_route(&tools[i]))
            return xasprintf("%s %s", tools[i].method, tools[i].pattern);
    for (size_t i = 0; i < n; i++)
        if (!mcp_route_at(v[i].method, v[i].pattern))
            return xasprintf("%s %s", v[i].method, v[i].pattern);
    return NULL;
}
