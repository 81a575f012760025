/* SPDX-License-Identifier: Apache-2.0 */
/* What was sealed opens with its key at its place, and not otherwise. */
#include "base/digest/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/unit.h"

static void test_there_and_back(void **state)
{
    (void)state;
    unsigned char key[SEAL_KEY_BYTES];
    hash_init();
    random_bytes(key, sizeof(key));
    static const char *const texts[] = {"", "x", "canary-4711", "a\nlong\ttext \xc3\xa9"};
    for (size_t i = 0; i < array_len(texts); i++) {
        _cleanup_(buf_release) struct buf out = BUF_INIT(100);
        _cleanup_(freep) char *a = seal_close(key, "place/1", texts[i], strlen(texts[i]));
        _cleanup_(freep) char *b = seal_close(key, "place/1", texts[i], strlen(texts[i]));
        assert_string_not_equal(a, b);
        assert_true(seal_is_sealed(a));
        assert_null(*texts[i] && texts[i][1] ? strstr(a, texts[i]) : NULL);
        assert_int_equal(seal_open(key, "place/1", a, &out, NULL), 0);
        assert_string_equal(buf_str(&out), texts[i]);
    }
    assert_false(seal_is_sealed("workload: ray"));
    assert_false(seal_is_sealed(NULL));
}

static void test_what_does_not_open(void **state)
{
    (void)state;
    unsigned char key[SEAL_KEY_BYTES], other[SEAL_KEY_BYTES];
    hash_init();
    random_bytes(key, sizeof(key));
    random_bytes(other, sizeof(other));
    _cleanup_(buf_release) struct buf out = BUF_INIT(100);
    _cleanup_(freep) char *sealed = seal_close(key, "place/1", "canary", 6);
    struct err err = {0};
    assert_int_equal(seal_open(other, "place/1", sealed, &out, &err), -EBADMSG);
    assert_string_equal(err.text, "'place/1' was sealed with another key, or its row was changed");
    assert_int_equal(seal_open(key, "place/2", sealed, &out, NULL), -EBADMSG);
    assert_int_equal(seal_open(key, "place", sealed, &out, NULL), -EBADMSG);
    assert_int_equal(seal_open(key, "place/1", "argus-sealed:1:", &out, NULL), -EBADMSG);
    assert_int_equal(seal_open(key, "place/1", "argus-sealed:1:!!", &out, NULL), -EBADMSG);
    assert_int_equal(seal_open(key, "place/1", "x", &out, NULL), -EBADMSG);
    for (size_t i = strlen("argus-sealed:1:"); i + 1 < strlen(sealed); i++) {
        _cleanup_(freep) char *bad = xstrdup(sealed);
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        assert_int_equal(seal_open(key, "place/1", bad, &out, NULL), -EBADMSG);
        _cleanup_(freep) char *cut = xstrndup(sealed, i);
        assert_int_equal(seal_open(key, "place/1", cut, &out, NULL), -EBADMSG);
    }
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back),
                                       cmocka_unit_test(test_what_does_not_open)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
