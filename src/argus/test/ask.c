/* SPDX-License-Identifier: Apache-2.0 */
/* Requests made of options: where each value goes, and which options do not go together. */
#include "argus/cli/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/unit.h"

static const char *const ROLES[] = {"", "viewer", "user", NULL};

struct given {
    const char *pool, *share, *name, *user, *project;
    bool disable, enable;
    struct strv members, include;
    int64_t step;
    usec_t expires;
    int role;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct given, member)
static const struct opt OPTIONS[] = {
    {.name = "pool", ROW(OPT_TEXT, pool), .to = "body:pool"},
    {.name = "share", ROW(OPT_LIMIT, share), .to = "body:share"},
    {.name = "disable", ROW(OPT_FLAG, disable), .to = "body:disabled"},
    {.name = "enable", ROW(OPT_FLAG, enable), .to = "body:disabled=false"},
    {.name = "member", ROW(OPT_NAMES, members), .to = "body:members"},
    {.name = "include", ROW(OPT_LIST, include), .to = "body:include"},
    {.name = "step", ROW(OPT_NUMBER, step), .to = "body:step"},
    {.name = "expires", ROW(OPT_SPAN, expires), .to = "body:expires"},
    {.name = "role", ROW(OPT_CHOICE, role), .choices = ROLES, .to = "body:role"},
    {.name = "local", ROW(OPT_TEXT, name)},
    {.name = "query", ROW(OPT_TEXT, user), .to = "query:user"},
};

static const struct opt OF_OPTIONS[] = {
    {.name = "project", ROW(OPT_TEXT, project), .arg = "NAME", .to = "path:projects"},
    {.name = "user", ROW(OPT_TEXT, user), .arg = "NAME", .to = "path:users"},
};

static const struct opt NEED_OPTIONS[] = {
    {.name = "name", ROW(OPT_TEXT, name), .to = "body:name", .need = "cli_say_name"},
};

static void check_body(const struct given *given, const char *before, const char *want)
{
    struct err err = {0};
    json_t *body = json_loads(before, 0, NULL);
    assert_int_equal(ask_fill(OPTIONS, array_len(OPTIONS), given, body, &err), 0);
    char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, want);
    free(text);
    json_decref(body);
}

static void test_fill(void **state)
{
    (void)state;
    struct given none = {0};
    struct given all = {.pool = "",
                        .share = "2.5",
                        .name = "not of the request",
                        .user = "nor of its body",
                        .disable = true,
                        .step = 20,
                        .expires = 90 * USEC_SEC,
                        .role = 1};
    check_body(&none, "{}", "{}");
    check_body(&all, "{}",
               "{\"disabled\":true,\"expires\":\"90s\",\"pool\":\"\",\"role\":\"viewer\","
               "\"share\":2.5,\"step\":20}");
    check_body(&(struct given){.enable = true}, "{}", "{\"disabled\":false}");
}

static void test_fill_lists(void **state)
{
    (void)state;
    struct given lists = {0};
    strv_add(&lists.members, "a");
    strv_add(&lists.members, "b,c");
    strv_add(&lists.include, "x,y");
    check_body(&lists, "{}", "{\"include\":[\"x,y\"],\"members\":[\"a\",\"b\",\"c\"]}");
    strv_release(&lists.members);
    strv_release(&lists.include);
}

static void test_limits(void **state)
{
    (void)state;
    check_body(&(struct given){.share = "none"}, "{\"share\":1,\"x\":2}", "{\"x\":2}");
    check_body(&(struct given){.share = "-"}, "{}", "{}");
    check_body(&(struct given){.share = "4"}, "{\"share\":1}", "{\"share\":4}");
    static const char *const bad[] = {"many", "-1", "nan", ""};
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err = {0};
        struct given given = {.share = bad[i]};
        json_t *body = json_object();
        assert_int_equal(ask_fill(OPTIONS, array_len(OPTIONS), &given, body, &err), ERR_USAGE);
        assert_non_null(strstr(err.text, "is not a valid limit"));
        json_decref(body);
    }
}

static void check_refused(const struct opt *opts,
                          size_t n,
                          const struct given *given,
                          const char *want)
{
    struct err err = {0};
    int r = ask_check(opts, n, given, &err);
    assert_int_equal(r, want ? ERR_USAGE : 0);
    if (want)
        assert_string_equal(err.text, want);
}

static void test_check(void **state)
{
    (void)state;
    check_refused(OPTIONS, array_len(OPTIONS), &(struct given){.disable = true}, NULL);
    check_refused(OPTIONS, array_len(OPTIONS), &(struct given){.disable = true, .enable = true},
                  "--disable and --enable do not go together");
    check_refused(NEED_OPTIONS, array_len(NEED_OPTIONS), &(struct given){.name = "x"}, NULL);
    check_refused(NEED_OPTIONS, array_len(NEED_OPTIONS), &(struct given){0}, "say its name");
    check_refused(OF_OPTIONS, array_len(OF_OPTIONS), &(struct given){.user = "a"}, NULL);
    check_refused(OF_OPTIONS, array_len(OF_OPTIONS), &(struct given){0},
                  "give --project NAME or --user NAME");
    check_refused(OF_OPTIONS, array_len(OF_OPTIONS), &(struct given){.user = "a", .project = "b"},
                  "give --project NAME or --user NAME");
}

static void test_path(void **state)
{
    (void)state;
    char *path = ask_path("/v1/nodes/{}:drain", "a/b ü");
    assert_string_equal(path, "/v1/nodes/a%2Fb%20%C3%BC:drain");
    free(path);
    path = ask_path("/v1/nodes", "unused");
    assert_string_equal(path, "/v1/nodes");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),   cmocka_unit_test(test_fill_lists),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_check),
        cmocka_unit_test(test_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
