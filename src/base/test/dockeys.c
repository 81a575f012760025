/* SPDX-License-Identifier: Apache-2.0 */
/* A question mark that is text, and one that begins a key. */
#include "base/doc/dockeys.h"

#include <string.h>

#include "base/doc/doc.h"
#include "base/unit.h"

static void test_texts_with_a_question_mark(void **state)
{
    static const char *const texts[] = {
        "# lr: ? (to be tuned)\na: 1\n",
        "a: 1 # ? later\nb: 2\n",
        "#? \na: 1\n",
        "a: 'really, ? no'\n",
        "env: {P: \"yes, ? or no\", Q: ' ? '}\n",
        "a: 'it''s\n  ? so'\n",
        "a: \"x\n  ? \\\" ? y\"\n",
        "a: yes, ? or no\n",
        "a: it is\n  ? so\nb: 1\n",
        "a: is it so ? yes  # no\nb: what?\n",
        "e:\n  - run\n  - |\n    x\n    ? no\n    \"\"\"\n  - last\n",
        "a:\n  b: >-\n    foo\n    - ? x\nc: 1\n",
        "- |\n ? x\n",
        "k: | # text\n  - ? x\n  a ? b\nz: ?y\n",
        "k: |\n\n  ? x\n\n  y\nl: 1\n",
        "k: |2\n    ? x\n  y\nl: 1\n",
        "k: |+\r\n  ? x\r\n  y\r\nb: 1\r\n",
        "'k': |\n  ? x\n",
        "\xef\xbb\xbf# ? x\na: 1\n",
        "%YAML 1.2\n---\n# ? x\na: |\n  ? y\n...\n",
        "a: [b?, 'c ? d', e ? f] # ?\n",
    };
    (void)state;
    for (size_t i = 0; i < array_len(texts); i++) {
        int line = 0, column = 0;
        if (dockeys_find(texts[i], strlen(texts[i]), &line, &column))
            fail_msg("taken for a key: %s", texts[i]);
        struct problems ps = {0};
        struct doc *d = NULL;
        if (doc_parse(texts[i], strlen(texts[i]), true, &d, &ps) < 0)
            fail_msg("not read: %s", texts[i]);
        doc_free(d);
    }
}

static void test_explicit_keys(void **state)
{
    static const struct {
        const char *text;
        int line, column;
    } rows[] = {
        {"? a: 1\n", 1, 1},
        {"?\ta\n", 1, 1},
        {"a:\n  ? b\n  : c\n", 2, 3},
        {"- ? a\n", 1, 3},
        {"- - ?\n", 1, 5},
        {"{? a : b}", 1, 2},
        {"[x, ? y]", 1, 5},
        {"a: 'b'\n? c\n", 2, 1},
        {"a: |\n  ? text\n? c\n", 3, 1},
        {"a: text\n? c\n", 2, 1},
        {"a: text # 'more\n? c\n", 2, 1},
        {"a: it's\n? c\n", 2, 1},
        {"a: |x\n  ? c\n", 2, 3},
        {"---\n? a\n", 2, 1},
        {"a:\n  - b\n  - ? c\n", 3, 5},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        int line = 0, column = 0;
        if (!dockeys_find(rows[i].text, strlen(rows[i].text), &line, &column))
            fail_msg("not seen: %s", rows[i].text);
        assert_int_equal(line, rows[i].line);
        assert_int_equal(column, rows[i].column);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts_with_a_question_mark),
                                       cmocka_unit_test(test_explicit_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
