/* SPDX-License-Identifier: Apache-2.0 */
/* What of a log may reach a terminal, however its bytes are cut into chunks. */
#include "argus/show/ansi.h"

#include <string.h>

#include "base/unit.h"

static void check(const char *in, size_t n, const char *want)
{
    for (size_t cut = 0; cut <= n; cut++) {
        struct ansi a = {0};
        struct buf b = BUF_INIT(4096);
        ansi_filter(&a, in, cut, false, &b);
        ansi_filter(&a, in + cut, n - cut, true, &b);
        assert_string_equal(buf_str(&b), want);
        buf_release(&b);
    }
}

static void test_sequences(void **state)
{
    (void)state;
    static const struct {
        const char *in, *want;
    } cases[] = {
        {"plain\r\n\t", "plain\r\n\t"},
        {"\033[1;31mred\033[0m\033[m", "\033[1;31mred\033[0m\033[m"},
        {"\033[38:2:1:2:3mx", "\033[38:2:1:2:3mx"},
        {"\033]0;title\007", "^[]0;title^G"},
        {"\033[2J\033[10;1H", "^[[2J^[[10;1H"},
        {"\033[?25l", "^[[?25l"},
        {"\033\033[31mx", "^[\033[31mx"},
        {"\033[31\033[32mx", "^[[31\033[32mx"},
        {"\302\2332J", "\\x9b2J"},
        {"\302\243 \344\270\255", "\302\243 \344\270\255"},
        {"\302\302\233", "\302\\x9b"},
        {"end\033[3", "end^[[3"},
        {"\b\177\016", "^H^?^N"},
    };
    for (size_t i = 0; i < array_len(cases); i++)
        check(cases[i].in, strlen(cases[i].in), cases[i].want);
    check("a\0b", 3, "a^@b");
}

static void test_endless_sequence_is_let_out(void **state)
{
    (void)state;
    char in[200] = "\033[", want[201] = "^[[";
    memset(in + 2, '1', 198);
    memset(want + 3, '1', 197);
    struct ansi a = {0};
    struct buf b = BUF_INIT(4096);
    ansi_filter(&a, in, 199, true, &b);
    assert_int_equal(b.len, 200);
    assert_memory_equal(buf_str(&b), want, 200);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_endless_sequence_is_let_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
