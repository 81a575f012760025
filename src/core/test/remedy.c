/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of remedy.h. */
#include "core/job/remedy.h"

#include "base/text.h"
#include "base/unit.h"

static const usec_t NOW = 1796000000 * USEC_SEC;

static void one_rests_and_the_others_do_not(void **state)
{
    char book[REMEDY_BOOK_MAX] = "";
    (void)state;
    assert_int_equal(remedy_ask(book, REMEDY_SESSIONS, NOW), REMEDY_MAY);
    remedy_note(book, REMEDY_SESSIONS, NOW);
    assert_string_equal(book, "dead_sessions@1796000000");
    assert_int_equal(remedy_ask(book, REMEDY_SESSIONS, NOW), REMEDY_RESTS);
    assert_int_equal(remedy_ask(book, REMEDY_SESSIONS, NOW + 10 * USEC_MIN - USEC_SEC),
                     REMEDY_RESTS);
    assert_int_equal(remedy_ask(book, REMEDY_SESSIONS, NOW + 10 * USEC_MIN), REMEDY_MAY);
    assert_int_equal(remedy_ask(book, REMEDY_STRAY, NOW), REMEDY_MAY);
    remedy_note(book, REMEDY_RAYLET, NOW); /* one without a rest */
    assert_int_equal(remedy_ask(book, REMEDY_RAYLET, NOW), REMEDY_MAY);
}

static void each_has_its_limit(void **state)
{
    char book[REMEDY_BOOK_MAX] = "";
    (void)state;
    for (int r = 0; r < REMEDY_END; r++) {
        int n = remedy_limit((enum remedy)r);
        for (int i = 0; i < n; i++) {
            assert_int_not_equal(remedy_ask(book, (enum remedy)r, NOW), REMEDY_SPENT);
            remedy_note(book, (enum remedy)r, NOW);
        }
        assert_int_equal(remedy_ask(book, (enum remedy)r, NOW), REMEDY_SPENT);
    }
    /* All of them at their limit: the book has had room. */
    for (int r = 0; r < REMEDY_END; r++) {
        assert_int_equal(remedy_ask(book, (enum remedy)r, NOW + USEC_HOUR - USEC_SEC),
                         REMEDY_SPENT);
        assert_int_equal(remedy_ask(book, (enum remedy)r, NOW + USEC_HOUR), REMEDY_MAY);
    }
    /* One more than may be pushes out the oldest, and cuts none. */
    remedy_note(book, REMEDY_STRAY, NOW + 1 * USEC_SEC);
    assert_int_equal(remedy_ask(book, REMEDY_STRAY, NOW + USEC_SEC), REMEDY_SPENT);
    assert_int_equal(remedy_ask(book, REMEDY_RAYLET, NOW + USEC_SEC), REMEDY_SPENT);
}

static void each_is_found_by_its_name(void **state)
{
    enum remedy found = REMEDY_END;
    (void)state;
    for (int r = 0; r < REMEDY_END; r++) {
        assert_true(remedy_from_string(remedy_to_string((enum remedy)r), &found));
        assert_int_equal(found, r);
    }
    assert_false(remedy_from_string("raylets", &found));
    assert_false(remedy_from_string("", &found));
    assert_int_equal(found, REMEDY_END - 1); /* as it was */
    assert_int_equal(remedy_rest(REMEDY_STRAY), 30 * USEC_SEC);
    assert_int_equal(remedy_rest(REMEDY_RAYLET), 0);
}

static void a_book_of_another_time(void **state)
{
    static const char *const odd[] = {"",
                                      "@",
                                      "raylet",
                                      "raylet@",
                                      "raylet@x",
                                      "raylet@-5",
                                      "gone@1796000000",
                                      "raylet@99999999999999999999",
                                      "  raylet@1  ",
                                      "stray_process@1796000001"}; /* the clock was set back */
    (void)state;
    for (size_t i = 0; i < array_len(odd); i++) {
        char book[REMEDY_BOOK_MAX];
        text_copy(book, odd[i]);
        for (int r = 0; r < REMEDY_END; r++)
            assert_int_equal(remedy_ask(book, (enum remedy)r, NOW), REMEDY_MAY);
        remedy_note(book, REMEDY_STRAY, NOW);
        assert_string_equal(book, "stray_process@1796000000");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rests_and_the_others_do_not),
        cmocka_unit_test(each_has_its_limit),
        cmocka_unit_test(each_is_found_by_its_name),
        cmocka_unit_test(a_book_of_another_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
