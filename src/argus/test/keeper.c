/* SPDX-License-Identifier: Apache-2.0 */
/* The unit and the script name argusd and its configuration, and no path that would mean more. */
#include "argus/setup/keeper.h"

#include <string.h>

#include "base/unit.h"

static void test_plain(void **state)
{
    (void)state;
    assert_true(keeper_is_plain("/etc/argus-1/argus_2.yaml"));
    static const char *const odd[] = {"/a b", "/a;b", "/a\nb", "/a%n",
                                      "/a'b", "/a#b", "/$a",   "/数"};
    for (size_t i = 0; i < array_len(odd); i++)
        assert_false(keeper_is_plain(odd[i]));
}

static void test_texts(void **state)
{
    (void)state;
    _cleanup_(buf_release) struct buf unit = BUF_INIT(1 << 14), script = BUF_INIT(1 << 14);
    keeper_write_unit(&unit, "/opt/argus/bin/argusd", "/etc/argus/argus.yaml");
    keeper_write_script(&script, "/opt/argus/bin/argusd", "/etc/argus/argus.yaml");
    static const char call[] = "/opt/argus/bin/argusd --config /etc/argus/argus.yaml";
    assert_non_null(strstr(buf_str(&unit), call));
    assert_non_null(strstr(buf_str(&unit), "\nType=notify\n"));
    assert_non_null(strstr(buf_str(&script), call));
    assert_int_equal(strncmp(buf_str(&script), "#!/bin/sh\n", 10), 0);
    assert_false(unit.failed || script.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
