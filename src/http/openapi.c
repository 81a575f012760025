/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.c - see openapi.h. Rows of one pattern become one path item; they need not stand
 * side by side in the table, so each pattern is written at its first row. */
#include "http/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum { NAME_MAX_BYTES = 128 };

static const char problem_schema[] =
    "{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"detail\",\"code\"],"
    "\"properties\":{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},\"code\":{\"type\":"
    "\"string\"},"
    "\"field\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"},"
    "\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"level\":{\"type\":\"string\"},\"field\":{\"type\":\"string\"},\"line\":{\"type\":"
    "\"integer\"},"
    "\"column\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},"
    "\"hint\":{\"type\":[\"string\",\"null\"]}}}}}}";

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
    (void)snprintf(ref, sizeof(ref), "#/components/%s/%s", kind, name); /* names are ours, short */
    jout_open(j, key, '{');
    jout_str(j, "$ref", ref);
    jout_close(j, '}');
}

static void add_path_params(const char *pattern, struct jout *j)
{
    for (const char *p = pattern; (p = strchr(p, '{'));) {
        const char *end = strchr(++p, '}');
        jout_open(j, NULL, '{');
        jout_strn(j, "name", p, (size_t)(end - p));
        jout_str(j, "in", "path");
        jout_bool(j, "required", true);
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

/* One entry per media type of a list such as "application/json, application/yaml". */
static void add_types(struct jout *j, const char *types, const char *schema)
{
    for (const char *p = types; *p; p += strspn(p, ", ")) {
        char type[NAME_MAX_BYTES];
        size_t n = strcspn(p, ", ");
        (void)snprintf(type, sizeof(type), "%.*s", (int)n, p); /* media types are short */
        p += n;
        jout_open(j, type, '{');
        if (schema)
            add_ref(j, "schema", "schemas", schema);
        jout_close(j, '}');
    }
}

static void add_content(struct jout *j, const char *types, const char *schema)
{
    jout_open(j, "content", '{');
    add_types(j, types, schema);
    jout_close(j, '}');
}

static void add_replies(const struct http_route *route, struct jout *j)
{
    char status[16];
    (void)snprintf(status, sizeof(status), "%d", route->reply_status ? route->reply_status : 200);
    jout_open(j, "responses", '{');
    jout_open(j, status, '{');
    jout_str(j, "description", str_or(route->summary, "success"));
    if (route->reply_status != 204)
        add_content(j, str_or(route->reply_type, "application/json"), route->reply_schema);
    jout_close(j, '}');
    add_ref(j, "default", "responses", "Problem");
    jout_close(j, '}');
}

static void add_operation(const struct http_route *route, struct jout *j)
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
    add_path_params(route->pattern, j);
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

static bool is_first(const struct http_route *routes, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!(routes[k].flags & HTTP_ROUTE_HIDDEN) && !strcmp(routes[k].pattern, routes[i].pattern))
            return false;
    return true;
}

static void add_paths(const struct http_route *routes, size_t n, struct jout *j)
{
    jout_open(j, "paths", '{');
    for (size_t i = 0; i < n; i++) {
        if (routes[i].flags & HTTP_ROUTE_HIDDEN || !is_first(routes, i))
            continue;
        jout_open(j, routes[i].pattern, '{');
        for (size_t k = i; k < n; k++)
            if (!(routes[k].flags & HTTP_ROUTE_HIDDEN) &&
                !strcmp(routes[k].pattern, routes[i].pattern))
                add_operation(&routes[k], j);
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
    add_content(j, "application/problem+json", "Problem");
    jout_close(j, '}');
    jout_close(j, '}');
    jout_open(j, "schemas", '{');
    jout_raw(j, "Problem", problem_schema);
    for (size_t i = 0; i < n; i++)
        jout_raw(j, schemas[i].name, schemas[i].json);
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
    add_paths(routes, n_routes, &j);
    add_components(schemas, n_schemas, &j);
    jout_close(&j, '}');
}
