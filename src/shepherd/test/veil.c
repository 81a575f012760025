/* SPDX-License-Identifier: Apache-2.0 */
/* Every form of a value, in every cut of the stream; and nothing else. */
#define _GNU_SOURCE
#include "shepherd/host/veil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/unit.h"

static struct veil *veil_of(const char *const *values)
{
    _cleanup_(strv_release) struct strv sv = {0};
    for (; *values; values++)
        strv_add(&sv, *values);
    return veil_new(&sv);
}

/* In pieces of these sizes, again and again. */
static char *passed(struct veil *v, const char *text, size_t n, const size_t *sizes, size_t n_sizes)
{
    struct buf out = BUF_INIT(1 << 22);
    const char *got;
    for (size_t at = 0, i = 0; at < n; i++) {
        size_t want = sizes[i % n_sizes], k = want < n - at ? want : n - at;
        char *piece = xstrndup(text + at, k); /* a read behind its end is seen */
        size_t len = veil_pass(v, piece, k, &got);
        (void)buf_add(&out, got, len);
        free(piece);
        at += k;
    }
    size_t len = veil_finish(v, &got);
    (void)buf_add(&out, got, len);
    assert_false(out.failed);
    return buf_take(&out);
}

static void assert_passed(const char *const *values, const char *text, const char *expected)
{
    struct veil *v = veil_of(values);
    assert_non_null(v);
    for (size_t size = 1; size <= strlen(text) + 1; size++) {
        _cleanup_(freep) char *got = passed(v, text, strlen(text), &size, 1);
        assert_string_equal(got, expected);
    }
    veil_free(v);
}

#define VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_where_it_stands(void **state)
{
    (void)state;
    assert_passed(VALUES("canary-12345"), "canary-12345", "***");
    assert_passed(VALUES("canary-12345"), "a canary-12345canary-12345 b\ncanary-1234",
                  "a ****** b\n***");
    assert_passed(VALUES("canary-12345"), "ccanary-1234ccanary-12345canar",
                  "ccanary-1234c***canar");
    assert_passed(VALUES("aaaaaaaa"), "aaaaaaaaaaaaaaaaaaaa b", "******aaaa b");
    assert_passed(VALUES("canary-12345", "canary-12345-longer"),
                  "canary-12345-long canary-12345-longer.", "***-long ***.");
    assert_passed(VALUES("canary-12345", "canary-12345-longer"), "canary-12345", "***");
    assert_passed(VALUES("\n canary-12345\n"), "'canary-12345'\n", "'***'\n");
}

static void test_how_it_is_written(void **state)
{
    (void)state;
    const char *const value = "p@ss/w\"o'r\\d\n\xc3\xa9 x";
    assert_passed(VALUES(value), "{\"a\":\"p@ss/w\\\"o'r\\\\d\\n\xc3\xa9 x\"}", "{\"a\":\"***\"}");
    assert_passed(VALUES(value), "'p@ss/w\"o'\\''r\\d\n\xc3\xa9 x'", "'***'");
    assert_passed(VALUES(value), "[p@ss/w\"o'r\\\\d\\n\xc3\xa9 x]", "[***]");
    assert_passed(VALUES(value), "'p@ss/w\"o\\'r\\\\d\\n\xc3\xa9 x'", "'***'");
    assert_passed(VALUES(value), "?k=p%40ss%2Fw%22o%27r%5Cd%0A%C3%A9%20x&", "?k=***&");
    assert_passed(VALUES(value), "?k=p%40ss%2fw%22o%27r%5cd%0a%c3%a9%20x&", "?k=***&");
    assert_passed(VALUES(value), "p%40ss/w%22o%27r%5Cd%0A%C3%A9%20x", "***");
    assert_passed(VALUES("subjects?>>?~"), "c3ViamVjdHM/Pj4/fg==", "***");
    assert_passed(VALUES("subjects?>>?~"), "c3ViamVjdHM_Pj4_fg==", "***");
    /* "user:subjects?>>?~:x": what does not fill a group of its own may stay */
    assert_passed(VALUES("subjects?>>?~"), "dXNlcjpzdWJqZWN0cz8+Pj9+Ong=", "dXNlcjpz***Ong=");
}

static void test_lines(void **state)
{
    (void)state;
    const char *const key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG\n-----END KEY-----\n";
    assert_passed(VALUES(key), "a: MIIEvQIBADANBgkq hkiG\n", "a: *** hkiG\n");
    assert_passed(VALUES(key), key, "***\n");
}

static void test_nothing_to_hide(void **state)
{
    (void)state;
    assert_null(veil_of(VALUES("", "short", "      7777777 \n")));
}

/* A slow one to compare with: at each place the longest pattern, else the byte. Values of few
 * letters, so that beginnings agree often; of those forms that are their own. */
static char *plainly(const char *const *values, const char *text)
{
    struct buf out = BUF_INIT(1 << 22);
    while (*text) {
        size_t best = 0;
        for (size_t i = 0; values[i]; i++)
            if (strlen(values[i]) > best && !strncmp(text, values[i], strlen(values[i])))
                best = strlen(values[i]);
        (void)buf_add(&out, best ? "***" : text, best ? 3 : 1);
        text += best ? best : 1;
    }
    return buf_take(&out);
}

static void test_random_streams(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int round = 0; round < 300; round++) {
        char a[32] = {0}, b[32] = {0}, text[600] = {0};
        size_t na = 8 + (size_t)rand_r(&seed) % 6, nb = 8 + (size_t)rand_r(&seed) % 20, n = 0;
        for (size_t i = 0; i < na; i++)
            a[i] = "xy"[rand_r(&seed) % 2];
        for (size_t i = 0; i < nb; i++)
            b[i] = i < na && round % 2 ? a[i] : "xy"[rand_r(&seed) % 2];
        while (n < 500) {
            const char *put = rand_r(&seed) % 2 ? a : b;
            size_t k = 1 + (size_t)rand_r(&seed) % strlen(put);
            memcpy(text + n, put, k);
            n += k;
            if (rand_r(&seed) % 4 == 0)
                text[n++] = "xy\n"[rand_r(&seed) % 3];
        }
        text[n++] = '\n'; /* nothing waits at the end */
        const char *const values[] = {a, b, NULL};
        size_t sizes[] = {1 + (size_t)rand_r(&seed) % 40, 1, 1 + (size_t)rand_r(&seed) % 600};
        struct veil *v = veil_of(values);
        _cleanup_(freep) char *got = passed(v, text, n, sizes, 3);
        _cleanup_(freep) char *expected = plainly(values, text);
        assert_string_equal(got, expected);
        veil_free(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_it_stands), cmocka_unit_test(test_how_it_is_written),
        cmocka_unit_test(test_lines),           cmocka_unit_test(test_nothing_to_hide),
        cmocka_unit_test(test_random_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
