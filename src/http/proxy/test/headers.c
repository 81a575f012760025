/* SPDX-License-Identifier: Apache-2.0 */
/* headers.c - tests of which lines pass a proxy, and where its addresses lead. */
#include <string.h>

#include "base/unit.h"
#include "http/proxy/headers.h"

static void test_what_goes_up(void **state)
{
    static const char *const good[] = {"Accept", "Content-Type",  "User-Agent",      "X-Mine",
                                       "Range",  "If-None-Match", "Accept-Encoding", "X-XSRFToken"};
    static const char *const bad[] = {"Host",
                                      "Connection",
                                      "Keep-Alive",
                                      "TE",
                                      "Trailer",
                                      "Transfer-Encoding",
                                      "Upgrade",
                                      "Content-Length",
                                      "Content_Length",
                                      "Expect",
                                      "Origin",
                                      "Referer",
                                      "Cookie",
                                      "Authorization",
                                      "authorization",
                                      "Proxy-Authorization",
                                      "Proxy-Connection",
                                      "Forwarded",
                                      "X-Forwarded-For",
                                      "X_Forwarded_For",
                                      "X-Forwarded-Anything",
                                      "X-Real-IP",
                                      "X-Argus-User",
                                      "X_Argus_Key",
                                      "Argus-CSRF",
                                      "X-Ray-Authorization",
                                      "x-request-timeout-seconds",
                                      "serve_multiplexed_model_id",
                                      "Sec-WebSocket-Key",
                                      "X-Mine"};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_true(header_goes_up(good[i], "keep-alive"));
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(header_goes_up(bad[i], "close, x-mine"));
}

static void test_what_comes_down(void **state)
{
    static const char *const good[] = {"Content-Type",
                                       "ETag",
                                       "Cache-Control",
                                       "Retry-After",
                                       "Content-Encoding",
                                       "Content-Security-Policy",
                                       "Vary"};
    static const char *const bad[] = {"Set-Cookie",
                                      "set-cookie2",
                                      "Access-Control-Allow-Origin",
                                      "Server",
                                      "Strict-Transport-Security",
                                      "Clear-Site-Data",
                                      "Transfer-Encoding",
                                      "Content-Length",
                                      "Location",
                                      "WWW-Authenticate",
                                      "Service-Worker-Allowed",
                                      "Alt-Svc",
                                      "X-Accel-Redirect",
                                      "Connection",
                                      "X-Hop"};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_true(header_goes_down(good[i], ""));
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(header_goes_down(bad[i], "X-Hop"));
}

static void test_paths_that_leave_their_place(void **state)
{
    static const char *const good[] = {
        "", "/", "/a/b", "/a..b/.c/d.", "/...", "/%2e%2e%2e", "/a/..b", "/.well-known/x", "//a"};
    static const char *const bad[] = {
        "/..",         "/../a",     "/a/../b",   "/a/.",   "/./a",     "/%2e%2E/a", "/a/.%2e",
        "/a%2f..%2fb", "/a\\..\\b", "/a%5C../b", "/..;/a", "/a/%2e/b", ".."};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_true(header_is_below(good[i]));
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(header_is_below(bad[i]));
}

static void test_locations(void **state)
{
    const struct header_place at = {
        .host = "10.0.0.1:8000", .base = "/s/chat-v2", .prefix = "/v1/services/chat"};
    static const struct {
        const char *in, *out; /* NULL: it is dropped */
    } rows[] = {
        {"http://10.0.0.1:8000/s/chat-v2/x?y#z", "/v1/services/chat/x?y#z"},
        {"https://10.0.0.1:8000/s/chat-v2", "/v1/services/chat"},
        {"//10.0.0.1:8000/s/chat-v2?x", "/v1/services/chat?x"},
        {"/s/chat-v2/docs", "/v1/services/chat/docs"},
        {"/s/chat-v22/docs", "/v1/services/chat/s/chat-v22/docs"},
        {"/v1/services/chat/a", "/v1/services/chat/a"},
        {"/elsewhere", "/v1/services/chat/elsewhere"},
        {"http://10.0.0.1:80001/x", "http://10.0.0.1:80001/x"},
        {"https://example.org/x", "https://example.org/x"},
        {"next", "next"},
        {"?page=2", "?page=2"},
        {"javascript:alert(1)", NULL},
        {"data:text/html,x", NULL},
        {"../../v1/users", NULL},
        {"\\\\evil", NULL},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        _cleanup_(buf_release) struct buf out = BUF_INIT(4096);
        assert_int_equal(header_location(&at, rows[i].in, &out), rows[i].out != NULL);
        if (rows[i].out)
            assert_string_equal(buf_str(&out), rows[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_goes_up),
        cmocka_unit_test(test_what_comes_down),
        cmocka_unit_test(test_paths_that_leave_their_place),
        cmocka_unit_test(test_locations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
