/* SPDX-License-Identifier: Apache-2.0 */
/* host_load.c - what a load says comes back from its file, and a lie is not told. */
#include "core/figure/host_load.h"

#include <string.h>

#include "base/unit.h"

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    struct host_load l = {.at = 1234567, .processes = 12, .cpu_cores = 2.5, .mem_bytes = 3e9}, back;
    struct buf out = BUF_INIT(HOST_LOAD_MAX_BYTES);
    host_load_put(&l, &out);
    assert_false(out.failed);
    assert_true(host_load_read(buf_str(&out), out.len, &back));
    assert_int_equal(back.at, 1234567);
    assert_true(back.processes == 12 && back.cpu_cores == 2.5 && back.mem_bytes == 3e9);
    buf_reset(&out);
    host_load_init(&l);
    l.at = 7;
    host_load_put(&l, &out);
    assert_true(host_load_read(buf_str(&out), out.len, &back));
    assert_true(back.processes < 0 && back.cpu_cores < 0 && back.mem_bytes < 0);
    buf_release(&out);
}

static void test_a_file_that_lies(void **state)
{
    (void)state;
    static const char *const none[] = {
        "", "[]", "7", "{\"at\":", "{}", "{\"at\": -5}", "{\"at\": \"now\"}"};
    struct host_load l;
    for (size_t i = 0; i < array_len(none); i++) {
        l.cpu_cores = 1;
        assert_false(host_load_read(none[i], strlen(none[i]), &l));
        assert_true(l.cpu_cores < 0 && l.at == 0);
    }
    static const char lie[] =
        "{\"at\": 5, \"processes\": -3, \"cpu_cores\": 1e300, \"mem_bytes\": \"all\"}";
    assert_true(host_load_read(lie, strlen(lie), &l));
    assert_true(l.processes < 0 && l.cpu_cores < 0 && l.mem_bytes < 0);
    char large[HOST_LOAD_MAX_BYTES + 64];
    memset(large, ' ', sizeof(large));
    memcpy(large, "{\"at\": 5}", strlen("{\"at\": 5}"));
    assert_false(host_load_read(large, sizeof(large), &l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_a_file_that_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
