/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of log.h: whatever somebody else chose stays within its line and steers no terminal. */
#include "base/log.h"

#include <string.h>
#include <unistd.h>

#include "base/unit.h"

/* What a line with this text says, behind its time. */
static void log_test_read(const char *text, char *ret, size_t size)
{
    int p[2], before = dup(STDERR_FILENO);
    assert_true(before >= 0);
    assert_int_equal(pipe(p), 0);
    assert_true(dup2(p[1], STDERR_FILENO) >= 0);
    log_line(LOG_LEVEL_INFO, "test", "name=%s", text);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    ssize_t n = read(p[0], ret, size - 1);
    assert_true(n > 0);
    ret[n] = '\0';
    (void)close(p[0]);
    (void)close(p[1]);
    (void)close(before);
}

static void test_controls(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"plain", "name=plain\n"},
        {"a\nb\rc\td", "name=a b c d\n"},
        {"\x1b[2J\x7f", "name= [2J \n"},
        {"a\xc2\x9b"
         "2Jb",
         "name=a  2Jb\n"},
        {"caf\xc3\xa9 \xe5\x90\x8d \xc2\xb5", "name=caf\xc3\xa9 \xe5\x90\x8d \xc2\xb5\n"},
        {"cut\xc2", "name=cut\xc2\n"},
    };
    char line[4096];
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        log_test_read(rows[i].text, line, sizeof(line));
        assert_string_equal(strstr(line, "name="), rows[i].want);
        assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
