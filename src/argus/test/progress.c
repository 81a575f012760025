/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a progress line: sizes, and what fits. */
#include "argus/transfer/progress.h"

#include <string.h>

#include "argus/show/text.h"

#include "base/unit.h"

static void test_sizes(void **state)
{
    static const struct {
        double bytes;
        const char *text;
    } rows[] = {{0, "0B"},
                {1023, "1023B"},
                {1024, "1.0KiB"},
                {1536, "1.5KiB"},
                {200.0 * (1 << 20), "200MiB"},
                {3.25 * (1 << 30), "3.2GiB"},
                {5e18, "4441PiB"}};
    char out[PROGRESS_SIZE_MAX];
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++)
        assert_string_equal(progress_size(rows[i].bytes, out), rows[i].text);
}

static void test_line(void **state)
{
    char out[PROGRESS_TEXT_MAX];
    (void)state;
    assert_string_equal(progress_text("a.bin", 50, 100, 10, 60, out),
                        "a.bin  50% 50B/100B 10B/s 5s");
    assert_string_equal(progress_text("a.bin", 50, 0, 10, 60, out), "a.bin 50B 10B/s ");
    assert_string_equal(progress_text("a", 100, 100, 0, 100, out),
                        "a 100% [########################] 100B/100B 0B/s ");
    assert_string_equal(progress_text("a\033[31m", 0, 4, 0, 60, out), "a?[31m   0% 0B/4B 0B/s ");
    for (int width = 40; width < 130; width++) {
        progress_text("a very long name of a file that nobody can read on a small terminal, and it "
                      "goes on and on until the line is full",
                      1 << 20, 1 << 30, 1e6, width, out);
        assert_true(text_width(out) <= width);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
