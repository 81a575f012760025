/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - tests of heads and chunks, of honest servers and of others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "http/proxy/answer.h"

static int parse(const char *head, bool to_head, struct answer *ret)
{
    static char text[4096]; /* the fields point into it */
    size_t n = strlen(head);
    assert_true(n < sizeof(text));
    memcpy(text, head, n + 1);
    assert_int_equal(answer_head_length(text, n, 0), n);
    return answer_parse(text, n, to_head, ret, NULL);
}

static void test_good_heads(void **state)
{
    struct answer a;
    (void)state;
    assert_int_equal(parse("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX-A:b \r\n\r\n", false, &a),
                     0);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body, ANSWER_LENGTH);
    assert_int_equal(a.length, 12);
    assert_string_equal(answer_find(&a, "x-a"), "b");
    assert_null(answer_find(&a, "x-b"));
    assert_int_equal(parse("HTTP/1.1 200\r\ntransfer-encoding: Chunked\r\n\r\n", false, &a), 0);
    assert_int_equal(a.body, ANSWER_CHUNKED);
    assert_int_equal(parse("HTTP/1.0 404 Not Found\r\n\r\n", false, &a), 0);
    assert_int_equal(a.body, ANSWER_UNTIL_CLOSE);
    assert_int_equal(parse("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, &a), 0);
    assert_int_equal(a.body, ANSWER_NONE);
    assert_int_equal(a.length, 7);
    assert_int_equal(parse("HTTP/1.1 204 x\r\n\r\n", false, &a), 0);
    assert_int_equal(a.body, ANSWER_NONE);
    assert_int_equal(a.length, -1);
}

static void test_bad_heads(void **state)
{
    static const char *const bad[] = {
        "\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 x\r\n\r\n",
        "HTTP/1.1 2000 x\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nnothing\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: b\nX-B: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: b\x01\r\n\r\n",
    };
    struct answer a;
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(parse(bad[i], false, &a), -EBADMSG);
}

static void test_head_in_pieces(void **state)
{
    const char *text = "HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\n";
    size_t whole = strlen("HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
    (void)state;
    for (size_t n = 0; n < whole; n++)
        assert_int_equal(answer_head_length(text, n, n ? n - 1 : 0), 0);
    for (size_t n = whole; n <= strlen(text); n++)
        assert_int_equal(answer_head_length(text, n, whole - 1), whole);
}

/* The content of the text given in steps of k bytes; -1: refused. */
static int64_t dechunk(const char *text, size_t k, char *ret, bool *ret_over)
{
    struct dechunk d = {0};
    size_t total = strlen(text), out = 0;
    for (size_t at = 0; at < total; at += k) {
        char piece[256];
        size_t n = total - at < k ? total - at : k;
        memcpy(piece, text + at, n);
        int64_t got = dechunk_step(&d, piece, n);
        if (got < 0)
            return -1;
        memcpy(ret + out, piece, (size_t)got);
        out += (size_t)got;
    }
    ret[out] = 0;
    *ret_over = d.is_over;
    return (int64_t)out;
}

static void test_chunks(void **state)
{
    static const char *const good[][2] = {
        {"5\r\nhello\r\n0\r\n\r\n", "hello"},
        {"5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", "hello!"},
        {"00A \r\n0123456789\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\nmore", "0123456789"},
        {"0\r\n\r\n", ""},
    };
    static const char *const bad[] = {
        "\r\nhello",    "x\r\n",       "5\nhello\r\n",    "5\r\nhello0\r\n\r\n",
        "-1\r\n",       "1\r\nab\r\n", "5\r\rhello\r\n",  "fffffffffffffffff\r\n",
        "0x5\r\nhello", ";\r\n",       "0\r\nX: 1\n\r\n", "5 \nhello",
    };
    char text[256];
    bool over = false;
    (void)state;
    for (size_t k = 1; k < 40; k++) {
        for (size_t i = 0; i < array_len(good); i++) {
            assert_int_equal(dechunk(good[i][0], k, text, &over), strlen(good[i][1]));
            assert_string_equal(text, good[i][1]);
            assert_true(over);
        }
        for (size_t i = 0; i < array_len(bad); i++)
            assert_int_equal(dechunk(bad[i], k, text, &over), -1);
        assert_int_equal(dechunk("5\r\nhel", k, text, &over), 3);
        assert_false(over);
    }
}

static void test_endless_lines_of_chunks_are_refused(void **state)
{
    (void)state;
    for (int trailer = 0; trailer < 2; trailer++) {
        struct dechunk d = {0};
        char head[] = "0\r\n", size[] = "1;";
        int64_t r = trailer ? dechunk_step(&d, head, strlen(head)) : dechunk_step(&d, size, 2);
        size_t n = 0;
        for (; r >= 0 && n < 100000; n++) {
            char c = 'x';
            r = dechunk_step(&d, &c, 1);
        }
        assert_int_equal(r, -EBADMSG);
        assert_true(n < 10000);
    }
}

static void test_lists(void **state)
{
    (void)state;
    assert_true(answer_list_has("close, Upgrade", "upgrade"));
    assert_true(answer_list_has(" ,x,", "X"));
    assert_false(answer_list_has("upgraded", "upgrade"));
    assert_false(answer_list_has("", "upgrade"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_heads),
        cmocka_unit_test(test_bad_heads),
        cmocka_unit_test(test_head_in_pieces),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_endless_lines_of_chunks_are_refused),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
