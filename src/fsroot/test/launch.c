/* SPDX-License-Identifier: Apache-2.0 */
/* launch.json both ways: every byte survives, and what is wrong is named. */
#include "fsroot/attempt/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static void fill(struct launch *l, const char *bytes)
{
    *l = (struct launch){.job = xstrdup("j1"),
                         .attempt = 3,
                         .cwd = xstrdup(bytes),
                         .pythonpath_prefix = xstrdup("/a:/b"),
                         .stop_grace = 1500 * USEC_MS,
                         .beat = 5 * USEC_SEC,
                         .secrets = xstrdup(".s"),
                         .worker_secrets = xstrdup("/w s")};
    strv_add(&l->argv, "prog");
    strv_add(&l->argv, bytes);
    strv_add(&l->argv, "");
    pairs_set(&l->env, "A", bytes);
    pairs_set(&l->env, "é", "");
}

static void test_every_byte_survives(void **state)
{
    (void)state;
    char bytes[256] = {0};
    for (int i = 0; i < 255; i++)
        bytes[i] = (char)(i + 1);
    _cleanup_(launch_release) struct launch in = {0}, out = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
    fill(&in, bytes);
    assert_int_equal(launch_to_json(&in, &text, NULL), 0);
    assert_int_equal(launch_from_json(text.data, text.len, &out, NULL), 0);
    assert_string_equal(out.job, "j1");
    assert_int_equal(out.attempt, 3);
    assert_int_equal(out.argv.n, 3);
    assert_string_equal(out.argv.v[1], bytes);
    assert_string_equal(out.argv.v[2], "");
    assert_string_equal(out.cwd, bytes);
    assert_string_equal(pairs_find(&out.env, "A"), bytes);
    assert_string_equal(pairs_find(&out.env, "é"), "");
    assert_string_equal(out.pythonpath_prefix, "/a:/b");
    assert_string_equal(out.secrets, ".s");
    assert_string_equal(out.worker_secrets, "/w s");
    assert_int_equal(out.stop_grace, 1500 * USEC_MS);
    assert_int_equal(out.beat, 5 * USEC_SEC);
}

static void test_each_single_byte_survives(void **state)
{
    (void)state;
    for (int b = 1; b < 256; b++) {
        char bytes[] = {'x', (char)b, 0};
        _cleanup_(launch_release) struct launch in = {0}, out = {0};
        _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
        fill(&in, bytes);
        assert_int_equal(launch_to_json(&in, &text, NULL), 0);
        assert_int_equal(launch_from_json(text.data, text.len, &out, NULL), 0);
        assert_string_equal(out.argv.v[1], bytes);
    }
}

static void test_wrong_names_of_variables(void **state)
{
    (void)state;
    const char *const names[] = {"", "A=B", "\xff"};
    for (size_t i = 0; i < array_len(names); i++) {
        _cleanup_(launch_release) struct launch l = {0};
        _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
        fill(&l, "x");
        pairs_set(&l.env, names[i], "v");
        assert_int_equal(launch_to_json(&l, &text, NULL), -EINVAL);
    }
}

static void test_too_large(void **state)
{
    (void)state;
    _cleanup_(launch_release) struct launch l = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(40);
    struct err err;
    fill(&l, "x");
    assert_int_equal(launch_to_json(&l, &text, &err), -EMSGSIZE);
    assert_string_equal(err.text, "launch.json would be larger than 40 bytes");
}

#define GOOD_HEAD "{\"version\":1,\"job\":\"j\",\"attempt\":1,"

static void test_wrong_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"", "broken"},
        {"3", "not an object"},
        {"{}", "'version'"},
        {"{\"version\":1}", "'attempt'"},
        {"{\"version\":1,\"attempt\":0}", "'attempt'"},
        {"{\"version\":1,\"attempt\":1.5}", "'attempt'"},
        {"{\"version\":1,\"attempt\":1}", "'job'"},
        {"{\"version\":1,\"attempt\":1,\"job\":\"\"}", "'job'"},
        {GOOD_HEAD "\"argv\":\"x\"}", "'argv'"},
        {GOOD_HEAD "\"argv\":[{\"hex\":\"0\"}]}", "'argv'"},
        {GOOD_HEAD "\"argv\":[{\"hex\":\"00\"}]}", "'argv'"},
        {GOOD_HEAD "\"argv\":[{\"hex\":\"4G\"}]}", "'argv'"},
        {GOOD_HEAD "\"argv\":[{\"hex\":\"41\",\"x\":1}]}", "'argv'"},
        {GOOD_HEAD "\"argv\":[\"x\"]}", "'env'"},
        {GOOD_HEAD "\"argv\":[\"x\"],\"env\":{\"A=\":\"1\"}}", "'env'"},
        {GOOD_HEAD "\"argv\":[\"x\"],\"env\":{},\"cwd\":1}", "'cwd'"},
        {GOOD_HEAD "\"argv\":[\"x\"],\"env\":{},\"stop_grace_s\":\"1\"}", "'stop_grace_s'"},
        {GOOD_HEAD "\"argv\":[\"x\"],\"env\":{},\"stop_grace_s\":1,\"beat_s\":1e300}", "'beat_s'"},
        {GOOD_HEAD "\"argv\":[\"x\"],\"env\":{},\"stop_grace_s\":1,\"beat_s\":1,"
                   "\"secrets\":\"../x\"}",
         "'secrets'"},
        {GOOD_HEAD "\"argv\":[\"x\"],\"env\":{},\"stop_grace_s\":1,\"beat_s\":1,"
                   "\"worker_secrets\":\"x\"}",
         "'worker_secrets'"},
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct launch l = {.attempt = 42};
        struct err err = {0};
        assert_true(launch_from_json(bad[i].text, strlen(bad[i].text), &l, &err) < 0);
        assert_non_null(strstr(err.text, bad[i].word));
        assert_int_equal(l.attempt, 42); /* untouched */
        assert_null(l.job);
    }
}

static void test_secrets(void **state)
{
    (void)state;
    _cleanup_(pairs_release) struct pairs env = {0};
    _cleanup_(strv_release) struct strv argv = {0};
    _cleanup_(launch_release) struct launch l = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
    pairs_set(&env, "A", "secret \xff");
    fill(&l, "x");
    assert_int_equal(launch_secrets_to_json(&env, NULL, &text, NULL), 0);
    assert_int_equal(launch_secrets_add(&l, text.data, text.len, NULL), 0);
    assert_string_equal(pairs_find(&l.env, "A"), "secret \xff");
    assert_string_equal(l.argv.v[0], "prog");
    assert_int_equal(l.secret_values.n, 1);
    assert_string_equal(l.secret_values.v[0], "secret \xff");
    strv_add(&argv, "real");
    strv_release(&l.argv); /* as it is shown */
    strv_add(&l.argv, "re***l");
    buf_reset(&text);
    assert_int_equal(launch_secrets_to_json(&env, &argv, &text, NULL), 0);
    assert_int_equal(launch_secrets_add(&l, text.data, text.len, NULL), 0);
    assert_int_equal(l.argv.n, 1);
    assert_string_equal(l.argv.v[0], "real");
    assert_int_equal(l.secret_values.n, 3);
    assert_string_equal(l.secret_values.v[2], "a");
    assert_int_equal(launch_secrets_add(&l, "{\"env\":{},\"argv\":3}", 19, NULL), -EINVAL);
    assert_string_equal(l.argv.v[0], "real");
}

static void test_what_stars_hide(void **state)
{
    (void)state;
    static const struct {
        const char *shown, *real, *hidden; /* each with a blank behind it */
    } rows[] = {
        {"plain", "plain", ""},
        {"***", "secret", "secret "},
        {"a=***", "a=secret", "secret "},
        {"a=***,b=***;c", "a=one,b=two;c", "one two "},
        {"******", "both", "both "},
        {"a=***", "a=***", "*** "}, /* what was there is as good */
        {"a=***", "b=secret", "b=secret "},
        {"a=***,b=***", "a=one", "a=one "}, /* it is not made of it: all of it */
        {"***b", "ab", "a "},
        {"***bb", "b", "b "},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct strv shown = {0}, real = {0}, hidden = {0};
        struct buf got = BUF_INIT(1000);
        strv_add(&shown, rows[i].shown);
        strv_add(&real, rows[i].real);
        launch_hidden_add(&shown, &real, &hidden);
        for (size_t k = 0; k < hidden.n; k++)
            assert_int_equal(buf_addf(&got, "%s ", hidden.v[k]), 0);
        assert_string_equal(buf_str(&got), rows[i].hidden);
        strv_release(&shown);
        strv_release(&real);
        strv_release(&hidden);
        buf_release(&got);
    }
}

static void test_pythonpath(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"/a", NULL, "/a"},    {"/a", "", "/a"},
        {"/a", "/b", "/a:/b"}, {"/a", "/a:/b", "/a:/b"},
        {"/a", "/a", "/a"},    {"/a", "/ab", "/a:/ab"},
        {"", "/b", "/b"},      {"/a:/c", "/a", "/a:/c:/a"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        _cleanup_(freep) char *got = launch_pythonpath(rows[i][0], rows[i][1]);
        assert_string_equal(got, rows[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_survives),
        cmocka_unit_test(test_each_single_byte_survives),
        cmocka_unit_test(test_wrong_names_of_variables),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_pythonpath),
        cmocka_unit_test(test_what_stars_hide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
