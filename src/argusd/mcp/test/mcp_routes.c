/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_routes.c - tests that somebody decided about each route: who may call it, and whether
 * programs are offered it as a tool. A route is added to fail here until that is written down. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/mcp/mcp_tools.h"
#include "base/str.h"
#include "base/unit.h"

/* Without a token: a row that forgot its role would be one of them. */
static const char *const open_to_all[] = {
    "GET /healthz",    "GET /readyz",      "GET /v1/jobspec.schema.json", "GET /v1/openapi.json",
    "GET /v1/version", "POST /v1/session", /* which asks for the token itself */
};

static bool is_open_to_all(const struct http_route *r)
{
    _cleanup_(freep) char *name = xasprintf("%s %s", r->method, r->pattern);
    for (size_t i = 0; i < array_len(open_to_all); i++)
        if (str_eq(open_to_all[i], name))
            return true;
    return false;
}

static void test_each_route_has_a_role(void **state)
{
    size_t open_rows = 0;
    (void)state;
    for (size_t i = 0; API_PARTS[i]; i++)
        for (size_t k = 0; k < API_PARTS[i]->n_rows; k++) {
            const struct http_route *r = &API_PARTS[i]->rows[k];
            if (r->least != HTTP_ROLE_NONE || r->flags & HTTP_ROUTE_HIDDEN)
                continue;
            if (!is_open_to_all(r))
                fail_msg("%s %s asks for no token", r->method, r->pattern);
            open_rows++;
        }
    assert_int_equal(open_rows, array_len(open_to_all));
}

static void test_each_route_is_a_tool_or_left(void **state)
{
    size_t seen = 0;
    (void)state;
    for (size_t i = 0; API_PARTS[i]; i++)
        for (size_t k = 0; k < API_PARTS[i]->n_rows; k++, seen++) {
            const struct http_route *r = &API_PARTS[i]->rows[k];
            const char *trouble = mcp_route_check(r);
            if (trouble)
                fail_msg("%s %s: %s", r->method, r->pattern, trouble);
        }
    assert_true(seen > 100);
}

static void test_no_row_is_stale(void **state)
{
    _cleanup_(freep) char *stale = mcp_rows_check();
    (void)state;
    if (stale)
        fail_msg("%s is no route", stale);
}

static void test_what_is_found(void **state)
{
    const struct http_route none = {
        .method = "GET", .pattern = "/v1/new", .least = HTTP_ROLE_ADMIN};
    const struct http_route hidden = {
        .method = "GET", .pattern = "/v1/new", .flags = HTTP_ROUTE_HIDDEN};
    const struct http_route open_tool = {.method = "GET", .pattern = "/v1/jobs"};
    const struct http_route weak_tool = {
        .method = "POST", .pattern = "/v1/ops/stop_many", .least = HTTP_ROLE_VIEWER};
    const struct http_route hidden_tool = {.method = "GET",
                                           .pattern = "/v1/jobs",
                                           .least = HTTP_ROLE_VIEWER,
                                           .flags = HTTP_ROUTE_HIDDEN};
    const struct http_route left = {
        .method = "POST", .pattern = "/v1/jobs", .least = HTTP_ROLE_USER};
    (void)state;
    assert_non_null(strstr(mcp_route_check(&none), "decide"));
    assert_null(mcp_route_check(&hidden));
    assert_non_null(mcp_route_check(&open_tool));
    assert_non_null(mcp_route_check(&weak_tool));
    assert_non_null(mcp_route_check(&hidden_tool));
    assert_null(mcp_route_check(&left));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_route_has_a_role),
        cmocka_unit_test(test_each_route_is_a_tool_or_left),
        cmocka_unit_test(test_no_row_is_stale),
        cmocka_unit_test(test_what_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
