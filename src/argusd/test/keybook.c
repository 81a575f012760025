/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of keybook.c: what is found again, and whose keys go where there are too many. */
#include "argusd/submit/keybook.h"

#include <stdio.h>
#include <string.h>

#include "base/unit.h"

static const usec_t NOW = 1796000000 * USEC_SEC;

struct keybook_told {
    int times;
    char last[32];
    usec_t before;
};

static void keybook_on_forgot(const char *user, usec_t before, void *arg)
{
    struct keybook_told *told = arg;
    told->times++;
    told->before = before;
    (void)snprintf(told->last, sizeof(told->last), "%s", user);
}

static void keybook_put(struct keybook *kb, const char *user, const char *key, usec_t at)
{
    static const unsigned char body[HASH_BYTES] = {1};
    keybook_add(kb, user, key, body, "job-1", at);
}

/* n keys, all of that moment. */
static void keybook_fill(struct keybook *kb, const char *user, int n, usec_t at)
{
    char key[32];
    for (int i = 0; i < n; i++) {
        (void)snprintf(key, sizeof(key), "%llu-%d", (unsigned long long)at, i);
        keybook_put(kb, user, key, at);
    }
}

static void keys_are_of_their_user(void **state)
{
    struct keybook *kb = keybook_new();
    (void)state;
    keybook_put(kb, "alice", "k", NOW);
    assert_null(keybook_find(kb, "bob", "k"));
    keybook_put(kb, "bob", "k", NOW + 1);
    assert_true(keybook_find(kb, "alice", "k")->at == NOW);
    assert_string_equal(keybook_find(kb, "bob", "k")->job_id, "job-1");
    keybook_put(kb, "bob", "k", NOW + 2); /* in the place of the other */
    assert_true(keybook_find(kb, "bob", "k")->at == NOW + 2);
    assert_int_equal(keybook_count(kb, NULL), 2);
    assert_int_equal(keybook_count(kb, "bob"), 1);
    keybook_free(kb);
}

/* Who has his share forgets his own older ones, and nobody else's. */
static void one_user_pushes_out_his_own(void **state)
{
    struct keybook *kb = keybook_new();
    struct keybook_told told = {0};
    (void)state;
    keybook_put(kb, "bob", "old", NOW - 20 * USEC_DAY);
    keybook_fill(kb, "alice", KEYBOOK_OF_USER_MAX / 2, NOW - 2 * USEC_MIN);
    keybook_fill(kb, "alice", KEYBOOK_OF_USER_MAX / 2, NOW);
    assert_int_equal(keybook_make_room(kb, "alice", NOW, keybook_on_forgot, &told), 0);
    assert_int_equal(keybook_count(kb, "alice"), KEYBOOK_OF_USER_MAX / 2);
    assert_string_equal(told.last, "alice");
    assert_true(told.before == NOW - USEC_MIN);
    assert_non_null(keybook_find(kb, "bob", "old"));
    keybook_free(kb);
}

/* A key of the last minute is never forgotten: a retry would make a second job. */
static void who_is_too_quick_is_refused(void **state)
{
    struct keybook *kb = keybook_new();
    struct keybook_told told = {0};
    (void)state;
    keybook_fill(kb, "alice", KEYBOOK_OF_USER_MAX, NOW);
    assert_int_equal(keybook_make_room(kb, "alice", NOW, keybook_on_forgot, &told),
                     KEYBOOK_OF_USER_MAX);
    assert_int_equal(keybook_count(kb, "alice"), KEYBOOK_OF_USER_MAX);
    told = (struct keybook_told){0};
    assert_int_equal(keybook_make_room(kb, "bob", NOW, keybook_on_forgot, &told), 0);
    assert_int_equal(told.times, 0);
    keybook_free(kb);
}

/* Where all together are too many, those of who has most go. */
static void the_greatest_share_goes_first(void **state)
{
    enum { OTHERS = 1000 };
    struct keybook *kb = keybook_new();
    struct keybook_told told = {0};
    char user[16];
    (void)state;
    keybook_fill(kb, "alice", KEYBOOK_OF_USER_MAX, NOW - 2 * USEC_DAY);
    for (int i = 0; keybook_count(kb, NULL) < KEYBOOK_MAX; i++) {
        (void)snprintf(user, sizeof(user), "u%d", i);
        keybook_fill(kb, user, OTHERS, NOW - 3 * USEC_DAY);
    }
    assert_int_equal(keybook_make_room(kb, "u0", NOW, keybook_on_forgot, &told), 0);
    assert_int_equal(told.times, 1);
    assert_string_equal(told.last, "alice");
    assert_int_equal(keybook_count(kb, "u0"), OTHERS);
    assert_int_equal(keybook_count(kb, "alice"), 0);
    keybook_free(kb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_of_their_user),
        cmocka_unit_test(one_user_pushes_out_his_own),
        cmocka_unit_test(who_is_too_quick_is_refused),
        cmocka_unit_test(the_greatest_share_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
