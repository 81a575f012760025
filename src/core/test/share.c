/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of share.c: what a node is given, which leases meet, which share is next. */
#include "core/job/share.h"

#include <string.h>

#include "base/json.h"
#include "base/unit.h"

static void names(void **state)
{
    (void)state;
    char name[SHARE_NAME_MAX];
    assert_string_equal(share_name(0, name), "argus_share_0");
    assert_string_equal(share_name(15, name), "argus_share_15");
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    share_put_resources(&j);
    jout_close(&j, '}');
    assert_non_null(strstr(buf_str(&out), "\"argus_share_0\":1,\"argus_share_1\":1"));
    assert_non_null(strstr(buf_str(&out), "\"argus_share_15\":1}"));
    buf_release(&out);
}

static void lowest_free(void **state)
{
    (void)state;
    assert_int_equal(share_free(0), 0);
    assert_int_equal(share_free(0xb), 2);
    assert_int_equal(share_free(0x7fff), 15);
    assert_int_equal(share_free(0xffff), SHARE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(lowest_free)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
