/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of verdictview.h, without a server: it has no samples then. */
#include "argus/job/verdictview.h"

#include <string.h>

#include "base/unit.h"

static json_t *verdictview_read(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

static void picks_a_step_that_is_kept(void **state)
{
    json_t *steps = verdictview_read("[{\"step\":40},{\"step\":20},{\"step\":30}]");
    (void)state;
    assert_int_equal(verdictview_step(steps, 20), 20);
    assert_int_equal(verdictview_step(steps, 21), 30);
    assert_int_equal(verdictview_step(steps, 1), 20);
    assert_int_equal(verdictview_step(steps, 41), 40);
    assert_int_equal(verdictview_step(NULL, 1), -1);
    json_decref(steps);
}

static void verdictview_note(void *page, const char *label, enum style style, const char *text)
{
    struct buf *out = page;
    (void)style;
    if (text && *text)
        assert_int_equal(buf_addf(out, "%s=%s\n", label ? label : "", text), 0);
}

static void assert_says(const char *verdict, const char *want)
{
    struct cli cli = {0};
    struct buf out = BUF_INIT(1 << 12);
    json_t *v = verdictview_read(verdict);
    verdictview_print(&cli, "x", v, verdictview_note, &out);
    assert_string_equal(buf_str(&out), want);
    json_decref(v);
    buf_release(&out);
}

static void says_all_that_stands(void **state)
{
    (void)state;
    assert_says("{\"state\":\"bad\",\"kind\":\"a\",\"text\":\"A\",\"fix\":\"F\",\"items\":["
                "{\"stands\":true,\"text\":\"A\"},{\"stands\":true,\"text\":\"B\"},"
                "{\"stands\":true,\"text\":\"C\"},{\"stands\":false,\"text\":\"D\"}]}",
                "say_l_verdict=A\nsay_l_advice=F\nsay_l_beside=B\n=C\n");
    assert_says("{\"state\":\"fine\",\"kind\":null,\"text\":\"well\",\"fix\":null,\"items\":["
                "{\"stands\":false,\"text\":\"D\"}]}",
                "say_l_verdict=well\n");
    assert_says("{}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_a_step_that_is_kept),
        cmocka_unit_test(says_all_that_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
