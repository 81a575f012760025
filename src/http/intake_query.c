/* SPDX-License-Identifier: Apache-2.0 */
/* intake_query.c - the query of a request, held against the parameters of its route. */
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/state.h"

static bool query_fits(enum http_param_type type, const char *value)
{
    int64_t number;
    usec_t span;
    switch (type) {
    case HTTP_PARAM_STRING:
        return true;
    case HTTP_PARAM_INTEGER:
        return str_to_int(value, INT64_MIN, INT64_MAX, &number, NULL) == 0;
    case HTTP_PARAM_BOOLEAN:
        return !*value || str_eq(value, "true") || str_eq(value, "false") || str_eq(value, "1") ||
               str_eq(value, "0");
    case HTTP_PARAM_SPAN:
        return span_from_string(value, &span, NULL) == 0;
    }
    return false;
}

static const struct http_param *query_param(const struct http_route *route, const char *name)
{
    for (const struct http_param *p = route->params; p && p->name; p++)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

static void query_refuse_unknown(struct http_req *req, const char *name)
{
    enum { KNOWN_MAX = 32 };
    const char *names[KNOWN_MAX];
    size_t n = 0;
    for (const struct http_param *p = req->route->params; p && p->name && n < KNOWN_MAX; p++)
        names[n++] = p->name;
    const char *near = str_nearest(name, names, n);
    struct err err;
    message_refuse(&err, ERR_BAD_REQUEST, "unknown_query",
                   MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("near", str_or(near, ""))));
    http_problem(req, ERR_BAD_REQUEST, &err, name, NULL, 0);
}

bool intake_refuse_query(struct http_req *req)
{
    static const char *const forms[] = {
        [HTTP_PARAM_STRING] = "any text",
        [HTTP_PARAM_INTEGER] = "a whole number",
        [HTTP_PARAM_BOOLEAN] = "true or false",
        [HTTP_PARAM_SPAN] = "a span such as 30s or 1h30m",
    };
    struct err err;
    int n = uri_split_query(req->query, req->queries, QUERY_MAX, &err);
    if (n < 0) {
        http_problem(req, n, &err, NULL, NULL, 0);
        return true;
    }
    req->n_query = (size_t)n;
    for (size_t i = 0; i < req->n_query; i++) {
        const struct uri_pair *q = &req->queries[i];
        const struct http_param *p = query_param(req->route, q->name);
        if (!p && !(req->route->flags & HTTP_ROUTE_ANY_QUERY)) {
            query_refuse_unknown(req, q->name);
            return true;
        }
        if (!p || query_fits(p->type, q->value))
            continue;
        message_refuse(&err, ERR_BAD_REQUEST, "bad_query",
                       MESSAGE_ARGS(MESSAGE_STR("value", q->value), MESSAGE_STR("name", p->name),
                                    MESSAGE_STR("is", forms[p->type])));
        http_problem(req, ERR_BAD_REQUEST, &err, p->name, NULL, 0);
        return true;
    }
    return false;
}
