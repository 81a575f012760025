/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of servicekeys.h: what a key opens, until when, and what is left of it in a row. */
#include "argusd/people/servicekeys.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/text.h"
#include "base/unit.h"
#include "store/test/bed.h"

static const usec_t NOW = 1000 * USEC_DAY;

struct keys_world {
    struct bed b;
    struct service_keys *ks;
};

static void keys_world_init(struct keys_world *w)
{
    bed_init(&w->b, NULL);
    w->ks = service_keys_new(w->b.s);
}

static void keys_world_release(struct keys_world *w)
{
    service_keys_free(w->ks);
    bed_release(&w->b);
}

static const struct service_key *keys_make(struct keys_world *w,
                                           const char *service,
                                           const char *user,
                                           usec_t expires_at,
                                           char ret[static TOKEN_TEXT_MAX])
{
    char s[32], u[32];
    text_copy(s, service);
    text_copy(u, user);
    const struct service_key form = {
        .service = s, .user = u, .requests_per_minute = 7, .expires_at = expires_at};
    return service_keys_add(w->ks, &form, NOW, ret);
}

static void test_it_opens_one_service(void **state)
{
    struct keys_world w;
    struct http_principal p = {0};
    char text[TOKEN_TEXT_MAX];
    (void)state;
    keys_world_init(&w);
    const struct service_key *k = keys_make(&w, "sums", "alice", 0, text);
    assert_true(service_keys_is_text(text));
    assert_int_equal(strlen(text), strlen("arguskey_") + 43);
    assert_null(strstr(k->hash, text + strlen("arguskey_")));
    assert_int_equal(service_keys_check(w.ks, text, NOW, &p), 0);
    assert_string_equal(p.only, "sums");
    assert_string_equal(p.user, "alice");
    assert_string_equal(p.token_id, k->id);
    assert_int_equal(p.role, HTTP_ROLE_NONE);
    assert_int_equal(k->last_use_at, NOW);
    text[strlen(text) - 1] ^= 1;
    p = (struct http_principal){0};
    assert_int_equal(service_keys_check(w.ks, text, NOW, &p), ERR_UNAUTHORISED);
    assert_string_equal(p.why_not, "key_unknown");
    assert_string_equal(p.only, "");
    /* A token never looks like one. */
    unsigned char hash[STORE_HASH_BYTES];
    token_make_text("argus_", text, hash);
    assert_false(service_keys_is_text(text));
    keys_world_release(&w);
}

static void test_it_ends(void **state)
{
    struct keys_world w;
    struct http_principal p = {0};
    char brief[TOKEN_TEXT_MAX], gone[TOKEN_TEXT_MAX];
    (void)state;
    keys_world_init(&w);
    (void)keys_make(&w, "sums", "alice", NOW + USEC_MIN, brief);
    assert_int_equal(service_keys_check(w.ks, brief, NOW + USEC_MIN - 1, &p), 0);
    p = (struct http_principal){0};
    assert_int_equal(service_keys_check(w.ks, brief, NOW + USEC_MIN, &p), ERR_UNAUTHORISED);
    assert_string_equal(p.why_not, "key_expired");
    assert_string_equal(p.only, "");
    service_keys_remove(w.ks, keys_make(&w, "sums", "alice", 0, gone));
    assert_int_equal(service_keys_check(w.ks, gone, NOW, &p), ERR_UNAUTHORISED);
    assert_int_equal(service_keys_count(w.ks, "sums"), 1);
    keys_world_release(&w);
}

static void test_they_go_with_their_service_and_their_maker(void **state)
{
    struct keys_world w;
    struct http_principal p = {0};
    char text[4][TOKEN_TEXT_MAX];
    (void)state;
    keys_world_init(&w);
    (void)keys_make(&w, "sums", "alice", 0, text[0]);
    (void)keys_make(&w, "sums", "bob", 0, text[1]);
    (void)keys_make(&w, "chat", "alice", 0, text[2]);
    (void)keys_make(&w, "chat", "bob", 0, text[3]);
    service_keys_remove_all(w.ks, "sums");
    assert_int_equal(service_keys_count(w.ks, "sums"), 0);
    assert_int_equal(service_keys_count(w.ks, "chat"), 2);
    service_keys_remove_user(w.ks, "bob");
    for (int i = 0; i < 4; i++)
        assert_int_equal(service_keys_check(w.ks, text[i], NOW, &p), i == 2 ? 0 : ERR_UNAUTHORISED);
    keys_world_release(&w);
}

/* What is stored of it opens it again, and does not hold its text. */
static void test_rows(void **state)
{
    struct keys_world w;
    struct http_principal p = {0};
    char text[TOKEN_TEXT_MAX];
    (void)state;
    keys_world_init(&w);
    const struct service_key *k = keys_make(&w, "sums", "alice", 0, text);
    _cleanup_(freep) char *body = field_to_text(&service_key_table, k, FIELD_STORED, FIELD_ROW);
    assert_null(strstr(body, text + strlen("arguskey_")));
    struct service_keys *again = service_keys_new(w.b.s);
    const struct store_entry row = {.kind = SERVICE_KEYS_ENTRY, .name = k->hash, .body = body};
    service_keys_restore(again, &row);
    service_keys_restore(again, &row); /* the same one twice is one */
    service_keys_restore(again, &(struct store_entry){.kind = SERVICE_KEYS_ENTRY, .body = "{}"});
    assert_int_equal(service_keys_count(again, "sums"), 1);
    assert_int_equal(service_keys_check(again, text, NOW, &p), 0);
    assert_int_equal(service_keys_find(again, k->id)->requests_per_minute, 7);
    service_keys_free(again);
    keys_world_release(&w);
}

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_opens_one_service),
        cmocka_unit_test(test_it_ends),
        cmocka_unit_test(test_they_go_with_their_service_and_their_maker),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
