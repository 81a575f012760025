/* SPDX-License-Identifier: Apache-2.0 */
/* promptcount.c - tests of the tokens of a request: of words, of pictures, in pieces of any size.
 */
#include <stdlib.h>
#include <string.h>

#include "argusd/calls/promptcount.h"
#include "base/mem.h"
#include "base/unit.h"

static int64_t tokens_in_pieces(const char *text, size_t n, size_t k)
{
    struct promptcount c = {0};
    for (size_t at = 0; at < n; at += k)
        promptcount_add(&c, text + at, n - at < k ? n - at : k);
    return promptcount_tokens(&c);
}

static void test_words(void **state)
{
    const char *text = "{\"messages\":[{\"role\":\"user\",\"content\":\"how are you today?\"}]}";
    (void)state;
    assert_int_equal(tokens_in_pieces("", 0, 1), 0);
    assert_int_equal(tokens_in_pieces("one", 3, 1), 1);
    for (size_t k = 1; k < 80; k++)
        assert_int_equal(tokens_in_pieces(text, strlen(text), k), (strlen(text) + 3) / 4);
}

static void test_a_picture_counts_as_so_many_bytes_at_most(void **state)
{
    enum { HEAD = 6, PICTURE = 1 << 20, N = HEAD + PICTURE + 2 };
    _cleanup_(freep) char *body = xmalloc(N);
    (void)state;
    memcpy(body, "{\"x\":\"", HEAD);
    memset(body + HEAD, 'A', PICTURE);
    memcpy(body + N - 2, "\"}", 2);
    assert_int_equal(tokens_in_pieces(body, N, N), (HEAD + PROMPTCOUNT_RUN + 2 + 3) / 4);
    assert_int_equal(tokens_in_pieces(body, N, 4093), (HEAD + PROMPTCOUNT_RUN + 2 + 3) / 4);
    body[HEAD + PICTURE / 2] = ','; /* two of them */
    assert_int_equal(tokens_in_pieces(body, N, 4093), (HEAD + 2 * PROMPTCOUNT_RUN + 3 + 3) / 4);
}

/* Words have spaces between them: however long a text is, all of it counts. */
static void test_a_long_text_counts_whole(void **state)
{
    enum { WORDS = 100000 };
    struct promptcount c = {0};
    (void)state;
    for (int i = 0; i < WORDS; i++)
        promptcount_add(&c, "seven: ", 7);
    assert_int_equal(promptcount_tokens(&c), WORDS * 7 / 4);
}

/* As json.dumps() of Python writes it, without a space in it. */
static void test_escaped_letters_count_as_what_they_are(void **state)
{
    enum { LETTERS = 100000 };
    struct promptcount c = {0}, lines = {0};
    (void)state;
    for (int i = 0; i < LETTERS; i++)
        promptcount_add(&c, "\\u4f60", 6);
    assert_int_equal(promptcount_tokens(&c), (LETTERS * 3 + 3) / 4);
    assert_int_equal(tokens_in_pieces("\\u4f60\\\\x", 9, 1), (3 + 3 + 3) / 4);
    for (int i = 0; i < LETTERS; i++) /* base64 with ends of lines is a picture all the same */
        promptcount_add(&lines, "AAAA\\n", 6);
    assert_true(promptcount_tokens(&lines) < PROMPTCOUNT_RUN / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_a_picture_counts_as_so_many_bytes_at_most),
        cmocka_unit_test(test_a_long_text_counts_whole),
        cmocka_unit_test(test_escaped_letters_count_as_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
