/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.c - the description of the API, made from the table of routes; see openapi.h. Rows of
 * one pattern become one path item; they need not stand side by side in the table, so each
 * pattern is written at its first row. */
#include "http/openapi.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/problem.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"

enum { NAME_MAX_BYTES = 128, SCHEMA_MAX = 1 << 20 };

static const char problem_schema[] =
    "{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"detail\",\"code\"],"
    "\"properties\":{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},\"code\":{\"type\":"
    "\"string\"},"
    "\"field\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"},"
    "\"line\":{\"type\":\"integer\"},\"column\":{\"type\":\"integer\"},"
    "\"args\":{\"type\":\"object\",\"additionalProperties\":{\"description\":\"arguments of the code\"}},"
    "\"problems\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/SpecProblem\"}}}}";

/* "POST /v1/jobs/{id}:stop" → "post_v1_jobs_id_stop": unique as the table's rows are. */
static void add_operation_id(const struct http_route *route, struct jout *j)
{
    char id[NAME_MAX_BYTES];
    size_t n = 0;
    for (const char *p = route->method; *p && n < sizeof(id) - 1; p++)
        id[n++] = (char)tolower((unsigned char)*p);
    bool gap = true;
    for (const char *p = route->pattern; *p && n < sizeof(id) - 2; p++) {
        if (!isalnum((unsigned char)*p)) {
            gap = true;
            continue;
        }
        if (gap)
            id[n++] = '_';
        gap = false;
        id[n++] = *p;
    }
    jout_strn(j, "operationId", id, n);
}

static void add_ref(struct jout *j, const char *key, const char *kind, const char *name)
{
    char ref[NAME_MAX_BYTES];
    text_printf(ref, "#/components/%s/%s", kind, name);
    jout_open(j, key, '{');
    jout_str(j, "$ref", ref);
    jout_close(j, '}');
}

/* The table of routes while it is written down. */
struct written {
    const struct http_route *routes;
    size_t n;
};

/* An example of the last name in the first n bytes of the pattern; NULL: no row has one. */
static const char *find_example(const struct written *w, const char *pattern, size_t n)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct http_route *route = &w->routes[i];
        if (route->example && !strncmp(route->pattern, pattern, n) &&
            !strchr(route->pattern + n, '}'))
            return route->example;
    }
    return NULL;
}

static void add_path_params(const char *pattern, const struct written *w, struct jout *j)
{
    for (const char *p = pattern; (p = strchr(p, '{'));) {
        const char *end = strchr(++p, '}');
        const char *example = find_example(w, pattern, (size_t)(end + 1 - pattern));
        jout_open(j, NULL, '{');
        jout_strn(j, "name", p, (size_t)(end - p));
        jout_str(j, "in", "path");
        jout_bool(j, "required", true);
        if (example)
            jout_str(j, "example", example);
        jout_open(j, "schema", '{');
        jout_str(j, "type", "string");
        jout_close(j, '}');
        jout_close(j, '}');
    }
}

static void add_query_params(const struct http_param *params, struct jout *j)
{
    static const char *const types[] = {[HTTP_PARAM_STRING] = "string",
                                        [HTTP_PARAM_INTEGER] = "integer",
                                        [HTTP_PARAM_BOOLEAN] = "boolean",
                                        [HTTP_PARAM_SPAN] = "string"};
    for (const struct http_param *p = params; p && p->name; p++) {
        jout_open(j, NULL, '{');
        jout_str(j, "name", p->name);
        jout_str(j, "in", "query");
        jout_str(j, "description", str_or(p->doc, ""));
        jout_open(j, "schema", '{');
        jout_str(j, "type", types[p->type]);
        if (p->type == HTTP_PARAM_SPAN)
            jout_str(j, "pattern", "^([0-9]+[smhd]?)+$");
        jout_close(j, '}');
        jout_close(j, '}');
    }
}

/* Adds one entry per media type of a list such as "application/json, application/yaml". */
static void add_types(struct jout *j, const char *types, const char *schema)
{
    for (const char *p = types; *p; p += strspn(p, ", ")) {
        char type[NAME_MAX_BYTES];
        size_t n = strcspn(p, ", ");
        text_printf(type, "%.*s", (int)n, p);
        p += n;
        jout_open(j, type, '{');
        if (schema)
            add_ref(j, "schema", "schemas", schema);
        jout_close(j, '}');
    }
}

/* One message of a stream: its data are JSON, of which the schema is. */
static void add_stream(struct jout *j, const char *schema)
{
    static const char *const others[] = {"id", "event"};
    jout_open(j, "text/event-stream", '{');
    jout_open(j, "schema", '{');
    jout_str(j, "type", "object");
    jout_open(j, "properties", '{');
    for (size_t i = 0; i < array_len(others); i++) {
        jout_open(j, others[i], '{');
        jout_str(j, "type", "string");
        jout_close(j, '}');
    }
    jout_open(j, "data", '{');
    jout_str(j, "type", "string");
    jout_str(j, "contentMediaType", "application/json");
    add_ref(j, "contentSchema", "schemas", schema);
    jout_close(j, '}');
    jout_close(j, '}');
    jout_close(j, '}');
    jout_close(j, '}');
}

static void openapi_add_content(struct jout *j,
                                const char *types,
                                const char *schema,
                                const char *stream_schema)
{
    jout_open(j, "content", '{');
    add_types(j, types, schema);
    if (stream_schema)
        add_stream(j, stream_schema);
    jout_close(j, '}');
}

static void add_reply(const struct http_route *route,
                      int status,
                      const char *schema,
                      struct jout *j)
{
    char code[16];
    text_printf(code, "%d", status);
    jout_open(j, code, '{');
    jout_str(j, "description", str_or(route->summary, "success"));
    if (status != 204)
        openapi_add_content(j, str_or(route->reply_type, "application/json"), schema,
                            route->stream_schema);
    jout_close(j, '}');
}

static void add_replies(const struct http_route *route, struct jout *j)
{
    jout_open(j, "responses", '{');
    add_reply(route, route->reply_status ? route->reply_status : 200, route->reply_schema, j);
    if (route->other_schema)
        add_reply(route, 200, route->other_schema, j);
    add_ref(j, "default", "responses", "Problem");
    jout_close(j, '}');
}

static void add_operation(const struct http_route *route, const struct written *w, struct jout *j)
{
    char method[16];
    size_t n = 0;
    for (const char *p = route->method; *p && n < sizeof(method) - 1; p++)
        method[n++] = (char)tolower((unsigned char)*p);
    method[n] = 0;
    jout_open(j, method, '{');
    jout_str(j, "summary", str_or(route->summary, ""));
    add_operation_id(route, j);
    jout_str(j, "x-least-role", http_role_to_string(route->least));
    if (route->max_body)
        jout_int(j, "x-max-body-bytes", (int64_t)route->max_body);
    jout_open(j, "security", '[');
    if (route->least != HTTP_ROLE_NONE) {
        jout_open(j, NULL, '{');
        jout_open(j, "token", '[');
        jout_close(j, ']');
        jout_close(j, '}');
    }
    jout_close(j, ']');
    jout_open(j, "parameters", '[');
    add_path_params(route->pattern, w, j);
    add_query_params(route->params, j);
    jout_close(j, ']');
    if (route->max_body) {
        jout_open(j, "requestBody", '{');
        jout_open(j, "content", '{');
        add_types(j, str_or(route->request_type, "application/json"), route->request_schema);
        if (route->pieces_type)
            add_types(j, route->pieces_type, route->pieces_schema);
        jout_close(j, '}');
        jout_close(j, '}');
    }
    add_replies(route, j);
    jout_close(j, '}');
}

static bool is_first(const struct written *w, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!(w->routes[k].flags & HTTP_ROUTE_HIDDEN) &&
            !strcmp(w->routes[k].pattern, w->routes[i].pattern))
            return false;
    return true;
}

static void add_paths(const struct written *w, struct jout *j)
{
    jout_open(j, "paths", '{');
    for (size_t i = 0; i < w->n; i++) {
        const char *pattern = w->routes[i].pattern;
        if (w->routes[i].flags & HTTP_ROUTE_HIDDEN || !is_first(w, i))
            continue;
        jout_open(j, pattern, '{');
        for (size_t k = i; k < w->n; k++)
            if (!(w->routes[k].flags & HTTP_ROUTE_HIDDEN) && !strcmp(w->routes[k].pattern, pattern))
                add_operation(&w->routes[k], w, j);
        jout_close(j, '}');
    }
    jout_close(j, '}');
}

/* An object whose members are named has no others, at any depth. */
static void schema_close(json_t *schema)
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    json_t *members = json_object_get(schema, "properties"), *v;
    const char *key;
    size_t i;
    if (members && !json_object_get(schema, "additionalProperties"))
        (void)json_object_set_new(schema, "additionalProperties", json_false()); /* is an object */
    json_object_foreach (members, key, v)
        schema_close(v);
    for (size_t k = 0; k < array_len(choices); k++)
        json_array_foreach (json_object_get(schema, choices[k]), i, v)
            schema_close(v);
    if (json_object_get(schema, "items"))
        schema_close(json_object_get(schema, "items"));
    if (json_object_get(schema, "additionalProperties"))
        schema_close(json_object_get(schema, "additionalProperties"));
}

static void add_schema_text(const char *name, const char *text, struct jout *j)
{
    json_t *schema = NULL;
    int r = json_parse(text, strlen(text), SCHEMA_MAX, &schema, NULL);
    assert(r == 0); /* our own literal */
    schema_close(schema);
    char *closed = json_dumps(schema, JSON_COMPACT);
    jout_raw(j, name, closed);
    free(closed);
    json_decref(schema);
}

static void add_schema(const struct http_schema *s, struct jout *j)
{
    if (s->json)
        add_schema_text(s->name, s->json, j);
    else if (s->is_form)
        field_form_schema(s->table, s->which, j, s->name);
    else
        field_page_schema(s->table, s->which, j, s->name);
}

/* What is sent without being asked for. */
static void add_webhooks(const struct http_schema *schemas, size_t n, struct jout *j)
{
    jout_open(j, "webhooks", '{');
    for (size_t i = 0; i < n; i++) {
        if (!schemas[i].sent)
            continue;
        jout_open(j, schemas[i].name, '{');
        jout_open(j, "post", '{');
        jout_str(j, "summary", schemas[i].sent);
        jout_open(j, "requestBody", '{');
        openapi_add_content(j, "application/json", schemas[i].name, NULL);
        jout_close(j, '}');
        jout_raw(j, "responses", "{\"2XX\":{\"description\":\"it was taken\"}}");
        jout_close(j, '}');
        jout_close(j, '}');
    }
    jout_close(j, '}');
}

static void add_components(const struct http_schema *schemas, size_t n, struct jout *j)
{
    jout_open(j, "components", '{');
    jout_open(j, "securitySchemes", '{');
    jout_open(j, "token", '{');
    jout_str(j, "type", "http");
    jout_str(j, "scheme", "bearer");
    jout_close(j, '}');
    jout_close(j, '}');
    jout_open(j, "responses", '{');
    jout_open(j, "Problem", '{');
    jout_str(j, "description", "an error, as RFC 9457 has it");
    openapi_add_content(j, "application/problem+json", "Problem", NULL);
    jout_close(j, '}');
    jout_close(j, '}');
    jout_open(j, "schemas", '{');
    add_schema_text("Problem", problem_schema, j);
    field_page_schema(&problem_table, FIELD_ALL, j, problem_table.name);
    for (size_t i = 0; i < n; i++)
        add_schema(&schemas[i], j);
    jout_close(j, '}');
    jout_close(j, '}');
}

void http_openapi(const struct http_route *routes,
                  size_t n_routes,
                  const struct http_schema *schemas,
                  size_t n_schemas,
                  const char *version,
                  struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "openapi", "3.1.0");
    jout_open(&j, "info", '{');
    jout_str(&j, "title", "Argus");
    jout_str(&j, "version", version);
    jout_close(&j, '}');
    add_paths(&(const struct written){routes, n_routes}, &j);
    add_webhooks(schemas, n_schemas, &j);
    add_components(schemas, n_schemas, &j);
    jout_close(&j, '}');
}
