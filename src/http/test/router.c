/* SPDX-License-Identifier: Apache-2.0 */
/* router.c - tests of finding a row by method and path. */
#include <string.h>

#include "base/unit.h"
#include "http/router.h"

static void handle(struct http_req *req, void *app)
{
    (void)req, (void)app;
}

#define ROW(m, p)                                                                                  \
    {                                                                                              \
        .method = (m), .pattern = (p), .handle = handle                                            \
    }

static const struct http_route routes[] = {
    ROW("GET", "/"),
    ROW("GET", "/v1/jobs/{id}"),
    ROW("GET", "/v1/jobs"),
    ROW("POST", "/v1/jobs/{id}:stop"),
    ROW("POST", "/v1/jobs/{id}:stopped"),
    ROW("POST", "/v1/jobs"),
    ROW("GET", "/v1/jobs/{id}/logs"),
    ROW("GET", "/v1/jobs/newest"),
    ROW("POST", "/v1/clusters/{c}/foreign/{ray_id}:adopt"),
    ROW("DELETE", "/v1/jobs/{id}"),
    ROW("GET", "/v1/apps/{id}/*"),
    ROW("POST", "/v1/apps/{id}/*"),
    ROW("GET", "/v1/apps/{id}/v1/*"),
    ROW("POST", "/v1/apps/{id}/v1/models"),
};

static int find(const char *method, const char *path, struct router_match *m)
{
    struct router *r = NULL;
    struct err err;
    assert_int_equal(router_open(routes, array_len(routes), &r, &err), 0);
    int e = router_find(r, method, path, m);
    router_free(r);
    return e;
}

static void expect(const char *method, const char *path, const char *pattern)
{
    struct router_match m = {0};
    int r = find(method, path, &m);
    if (!pattern) {
        assert_int_equal(r, ERR_NOT_FOUND);
        return;
    }
    assert_int_equal(r, 0);
    assert_string_equal(m.route->pattern, pattern);
}

static void test_paths(void **state)
{
    (void)state;
    expect("GET", "/", "/");
    expect("GET", "/v1/jobs", "/v1/jobs");
    expect("HEAD", "/v1/jobs", "/v1/jobs");
    expect("GET", "/v1/jobs/a", "/v1/jobs/{id}");
    expect("GET", "/v1/jobs/newest", "/v1/jobs/newest");
    expect("GET", "/v1/jobs/newest2", "/v1/jobs/{id}");
    expect("POST", "/v1/jobs/a:stop", "/v1/jobs/{id}:stop");
    expect("POST", "/v1/jobs/a:stopped", "/v1/jobs/{id}:stopped");
    expect("GET", "/v1/jobs/a/logs", "/v1/jobs/{id}/logs");
    expect("GET", "/v1/jobs/a%3Ab", "/v1/jobs/{id}");
}

static void test_no_such_path(void **state)
{
    static const char *const paths[] = {
        "",
        "*",
        "v1/jobs",
        "//",
        "/v1",
        "/v1/",
        "/v1/jobs/",
        "/v1//jobs",
        "/v1/jobsx",
        "/v1/job",
        "/V1/jobs",
        "/v1/jobs/a/",
        "/%761/jobs",
        "/v1/jobs/a/logs/b",
        "/v1/jobs/:stop",
        "/v1/jobs/a:b:stop",
        "/v1/jobs/a:sto",
        "/v1/jobs/a:",
        "/a/b/c/d/e/f/g/h/i/j",
        "/v1/jobs/a:stop/logs",
    };
    (void)state;
    for (size_t i = 0; i < array_len(paths); i++) {
        expect("GET", paths[i], NULL);
        expect("POST", paths[i], NULL);
    }
}

static void test_params(void **state)
{
    struct router_match m;
    (void)state;
    assert_int_equal(find("POST", "/v1/clusters/main/foreign/raysubmit_1:adopt", &m), 0);
    assert_int_equal(m.n_params, 2);
    assert_memory_equal(m.params[0].name, "c", m.params[0].name_len);
    assert_int_equal(m.params[0].len, 4);
    assert_memory_equal(m.params[0].start, "main", 4);
    assert_int_equal(m.params[1].name_len, 6);
    assert_int_equal(m.params[1].len, strlen("raysubmit_1"));
    assert_memory_equal(m.params[1].start, "raysubmit_1", m.params[1].len);
}

static void test_methods(void **state)
{
    struct router_match m;
    struct router *r = NULL;
    char allow[ROUTER_ALLOW_MAX];
    (void)state;
    assert_int_equal(find("DELETE", "/v1/jobs", &m), ERR_METHOD);
    assert_int_equal(find("get", "/v1/jobs", &m), ERR_METHOD);
    assert_int_equal(find("GET", "/v1/jobs/a:stop", &m), ERR_METHOD);
    assert_int_equal(router_open(routes, array_len(routes), &r, NULL), 0);
    assert_string_equal(router_allow(r, "/v1/jobs", allow), "GET, HEAD, POST, OPTIONS");
    assert_string_equal(router_allow(r, "/v1/jobs/x", allow), "DELETE, GET, HEAD, OPTIONS");
    assert_string_equal(router_allow(r, "/v1/jobs/x:stop", allow), "POST, OPTIONS");
    assert_string_equal(router_allow(r, "/nothing", allow), "");
    router_free(r);
}

static void test_bad_tables(void **state)
{
    static const char *const patterns[] = {"",
                                           "/*",
                                           "/a/*/b",
                                           "/a/*/",
                                           "v1",
                                           "/v1/",
                                           "/a//b",
                                           "/{",
                                           "/{}",
                                           "/{a",
                                           "/{a}b",
                                           "/{a}:",
                                           "/a}",
                                           "/{a}/{b}/{c}/{d}/{e}",
                                           "/1/2/3/4/5/6/7/8/9"};
    struct router *r = NULL;
    (void)state;
    for (size_t i = 0; i < array_len(patterns); i++) {
        const struct http_route row = ROW("GET", patterns[i]);
        struct err err = {0};
        assert_int_equal(router_open(&row, 1, &r, &err), ERR_USAGE);
        assert_true(err.text[0]);
        assert_null(r);
    }
    const struct http_route twice[] = {ROW("GET", "/a/{x}"), ROW("GET", "/a/{y}")};
    assert_int_equal(router_open(twice, 2, &r, NULL), ERR_USAGE);
}

static void test_stars(void **state)
{
    struct router_match m;
    struct router *r = NULL;
    char allow[ROUTER_ALLOW_MAX];
    static const char *const tails[][2] = {
        {"/v1/apps/a/", "/"},
        {"/v1/apps/a/b", "/b"},
        {"/v1/apps/a//b/", "//b/"},
        {"/v1/apps/a/b:c/%2F/1/2/3/4/5/6/7/8/9", "/b:c/%2F/1/2/3/4/5/6/7/8/9"},
        {"/v1/apps/a/v1", "/v1"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(tails); i++) {
        assert_int_equal(find("GET", tails[i][0], &m), 0);
        assert_string_equal(m.route->pattern, "/v1/apps/{id}/*");
        assert_string_equal(m.tail, tails[i][1]);
        assert_int_equal(m.n_params, 1);
        assert_memory_equal(m.params[0].start, "a", 1);
    }
    assert_int_equal(find("GET", "/v1/apps/a/v1/x", &m), 0);
    assert_string_equal(m.tail, "/x"); /* the longer pattern goes first */
    assert_int_equal(find("POST", "/v1/apps/a/v1/models", &m), 0);
    assert_null(m.tail);
    assert_int_equal(find("GET", "/v1/apps/a/v1/models", &m), ERR_METHOD);
    assert_int_equal(find("PUT", "/v1/apps/a/b", &m), ERR_METHOD);
    assert_int_equal(find("GET", "/v1/apps/a", &m), ERR_NOT_FOUND);
    assert_int_equal(find("GET", "/v1/apps//b", &m), ERR_NOT_FOUND);
    assert_int_equal(find("GET", "/v1/apps/a:b/c", &m), ERR_NOT_FOUND);
    assert_int_equal(router_open(routes, array_len(routes), &r, NULL), 0);
    assert_string_equal(router_allow(r, "/v1/apps/x/y", allow), "GET, HEAD, POST, OPTIONS");
    router_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),      cmocka_unit_test(test_no_such_path),
        cmocka_unit_test(test_params),     cmocka_unit_test(test_methods),
        cmocka_unit_test(test_bad_tables), cmocka_unit_test(test_stars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
