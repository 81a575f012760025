/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of safetensors.h. */
#include "core/check/safetensors.h"

#include <errno.h>
#include <string.h>

#include "base/unit.h"

static int read_text(const char *text, struct safetensors *ret)
{
    struct err err = {0};
    return safetensors_read(text, strlen(text), ret, &err);
}

static void reads_lengths(void **state)
{
    (void)state;
    const unsigned char good[8] = {10}, none[8] = {0}, huge[8] = {0, 0, 0, 0, 0, 0, 0, 0x7f};
    struct err err = {0};
    uint64_t n = 0;
    assert_int_equal(safetensors_header_length(good, &n, &err), 0);
    assert_int_equal(n, 10);
    assert_int_equal(safetensors_header_length(none, &n, &err), -EINVAL);
    assert_int_equal(safetensors_header_length(huge, &n, &err), -EINVAL);
}

static void adds_up_tensors(void **state)
{
    (void)state;
    struct safetensors st;
    static const char text[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                               "\"a\":{\"shape\":[2,3],\"data_offsets\":[0,12]},"
                               "\"s\":{\"shape\":[],\"data_offsets\":[12,14]}}";
    assert_int_equal(read_text(text, &st), 0);
    assert_int_equal(st.bytes, 8 + sizeof(text) - 1 + 14);
    assert_int_equal(st.elements, 7);
    assert_int_equal(st.tensors, 2);
}

static void refuses_and_survives(void **state)
{
    (void)state;
    struct safetensors st;
    assert_int_equal(read_text("[]", &st), -EINVAL);
    assert_int_equal(read_text("{\"a\":", &st), -EINVAL);
    assert_int_equal(read_text("{\"a\":{\"shape\":[-1],\"data_offsets\":[0,-5]},\"b\":1,"
                               "\"c\":{\"shape\":[4611686018427387904,8],\"data_offsets\":[0,9]}}",
                               &st),
                     0);
    assert_int_equal(st.elements, 0);
    assert_int_equal(st.tensors, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lengths),
        cmocka_unit_test(adds_up_tensors),
        cmocka_unit_test(refuses_and_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
