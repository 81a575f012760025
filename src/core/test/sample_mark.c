/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sample_mark.h. */
#include "core/sample/sample_mark.h"

#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

static unsigned marks_of(const char *text)
{
    return sample_marks(text, strlen(text));
}

static void knows_blank_answers(void **state)
{
    static const char zeros[] = {0, 0, '\n'};
    (void)state;
    assert_int_equal(marks_of(""), SAMPLE_IS_BLANK);
    assert_int_equal(marks_of(" \r\n\t "), SAMPLE_IS_BLANK);
    assert_int_equal(sample_marks(zeros, sizeof(zeros)), SAMPLE_IS_BLANK);
    assert_int_equal(marks_of(" . "), 0);
    assert_int_equal(marks_of("\xff"), 0);
}

static void knows_turns_of_a_chat(void **state)
{
    static const char *const turns[] = {
        "4<|im_end|>\n<|im_start|>user\n2+3=",
        "assistant\n4",
        "4\nuser\n2+3=\nassistant\n5",
        "4\r\nUser\r\n2+3=",
        "The sum is 4.\nHuman: and 2+3?",
        "[INST] 2+3 [/INST]",
        "User: 2+3?\n<|im_start|>5",
        "4\nuser", /* cut where the next turn begins */
        "<｜User｜>2+3=",
    };
    (void)state;
    for (size_t i = 0; i < array_len(turns); i++)
        if (marks_of(turns[i]) != SAMPLE_HAS_TEMPLATE)
            fail_msg("'%s' has a turn", turns[i]);
}

static void knows_what_is_text(void **state)
{
    static const char *const texts[] = {
        "4",
        "4<|im_end|>",
        "4<|im_end|><|endoftext|>",
        "users pay 3",
        "user is a word, as assistant: is",
        "systems of equations\nsystematic",
        "The user: 3 of them",
        "usual",
        "User: 2+3?\nAssistant: 5",
        "\n Assistant: yes\nUser: no",
        "<tool_call>{}</tool_call>\nuser\n<tool_response>4</tool_response>\nassistant\n4",
    };
    (void)state;
    for (size_t i = 0; i < array_len(texts); i++)
        if (marks_of(texts[i]))
            fail_msg("'%s' has none", texts[i]);
    /* Nothing is read behind the end. */
    assert_int_equal(sample_marks("4\nuser:", 4), 0);
    assert_int_equal(sample_marks("<|im_start|>", 11), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_blank_answers),
        cmocka_unit_test(knows_turns_of_a_chat),
        cmocka_unit_test(knows_what_is_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
