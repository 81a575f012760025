/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a snapshot: one for one content, read back, refused when it was changed. */
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "core/check/manifest.h"

static void add(struct manifest *m, enum manifest_kind kind, const char *path, const char *text)
{
    struct manifest_entry e = {.kind = kind, .path = (char *)(size_t)path};
    if (kind == MANIFEST_LINK) {
        e.target = (char *)(size_t)text;
    } else {
        e.size = strlen(text);
        hash_sha256(text, strlen(text), e.hash);
    }
    assert_int_equal(manifest_add(m, &e, NULL), 0);
}

static void make(struct manifest *m)
{
    add(m, MANIFEST_LINK, "z/link", "../a");
    add(m, MANIFEST_PROGRAM, "run.sh", "#!/bin/sh\n");
    add(m, MANIFEST_FILE, "a", "abc");
    add(m, MANIFEST_FILE, "with blank/b c", "");
    manifest_sort(m);
}

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void test_text(void **state)
{
    struct manifest m = {0}, back = {0};
    struct buf text = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
    char hash[HASH_HEX], want[HASH_HEX];
    (void)state;
    make(&m);
    assert_int_equal(m.bytes, 13);
    manifest_write(&m, &text);
    assert_non_null(strstr(buf_str(&text), "argus-snapshot 1\nF " ABC " 3 a\nX "));
    assert_non_null(strstr(buf_str(&text), "\nF " NOTHING " 0 with blank/b c\nL z/link\t../a\n"));
    assert_string_equal(manifest_hash(&m, hash), hash_sha256_hex(text.data, text.len, want));
    assert_int_equal(manifest_read(text.data, text.len, &back, NULL), 0);
    assert_int_equal(back.n, m.n);
    manifest_write(&back, &again);
    assert_string_equal(buf_str(&text), buf_str(&again));
    assert_string_equal(back.v[back.n - 1].path, "z/link");
    assert_string_equal(back.v[back.n - 1].target, "../a");
    manifest_release(&back);
    manifest_release(&m);
    buf_release(&text);
    buf_release(&again);
}

static void test_order_does_not_count(void **state)
{
    struct manifest a = {0}, b = {0};
    char x[HASH_HEX], y[HASH_HEX];
    (void)state;
    add(&a, MANIFEST_FILE, "x", "1");
    add(&a, MANIFEST_FILE, "y", "2");
    add(&b, MANIFEST_FILE, "y", "2");
    add(&b, MANIFEST_FILE, "x", "1");
    manifest_sort(&a);
    manifest_sort(&b);
    assert_string_equal(manifest_hash(&a, x), manifest_hash(&b, y));
    b.v[0].kind = MANIFEST_PROGRAM;
    assert_string_not_equal(manifest_hash(&a, x), manifest_hash(&b, y));
    manifest_release(&a);
    manifest_release(&b);
}

static void test_broken(void **state)
{
    static const char *const bad[] = {
        "",
        "argus-snapshot 2\n",
        "argus-snapshot 1\nF " ABC " 3 a", /* the last line is cut */
        "argus-snapshot 1\nF " ABC " 3 ../a\n",
        "argus-snapshot 1\nF " ABC " 3 /a\n",
        "argus-snapshot 1\nF " ABC " -3 a\n",
        "argus-snapshot 1\nF " ABC " 3\n",
        "argus-snapshot 1\nF " ABC "3 a\n",
        "argus-snapshot 1\nF zz" ABC " 3 a\n",
        "argus-snapshot 1\nD " ABC " 3 a\n",
        "argus-snapshot 1\n\n",
        "argus-snapshot 1\nL a\t/etc\n",
        "argus-snapshot 1\nL a\t../b\n",
        "argus-snapshot 1\nL a\n",
        "argus-snapshot 1\nF " ABC " 3 b\nF " ABC " 3 a\n", /* not sorted */
        "argus-snapshot 1\nF " ABC " 3 a\nF " ABC " 3 a\n", /* twice */
    };
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++) {
        struct manifest m = {0};
        struct err err;
        if (manifest_read(bad[i], strlen(bad[i]), &m, &err) != ERR_REFUSED)
            fail_msg("%zu is taken", i);
        assert_non_null(strstr(err.text, "broken in line "));
        assert_null(m.v);
    }
    struct manifest empty = {0};
    assert_int_equal(manifest_read("argus-snapshot 1\n", 17, &empty, NULL), 0);
    assert_int_equal(empty.n, 0);
}

static void test_ceiling(void **state)
{
    struct manifest m = {.n = MANIFEST_ENTRIES_MAX, .cap = MANIFEST_ENTRIES_MAX};
    struct manifest_entry e = {.path = (char *)(size_t) "a"};
    struct err err;
    (void)state;
    assert_int_equal(manifest_add(&m, &e, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "more than 250000 files"));
}

static void put_diff(const struct manifest_entry *a, const struct manifest_entry *b, void *arg)
{
    assert_int_equal(buf_addf(arg, "%c%s ", !a ? '+' : !b ? '-' : '~', a ? a->path : b->path), 0);
}

static void test_diff(void **state)
{
    struct manifest a = {0}, b = {0};
    struct buf out = BUF_INIT(1000);
    (void)state;
    make(&a);
    make(&b);
    manifest_diff(&a, &b, put_diff, &out);
    assert_string_equal(buf_str(&out), "");
    add(&a, MANIFEST_FILE, "only/a", "");
    add(&b, MANIFEST_FILE, "only/b", "");
    b.v[0].hash[0] ^= 1;
    free(b.v[3].target);
    b.v[3].target = xstrdup("../run.sh");
    manifest_sort(&a);
    manifest_sort(&b);
    manifest_diff(&a, &b, put_diff, &out);
    assert_string_equal(buf_str(&out), "~a -only/a +only/b ~z/link ");
    buf_release(&out);
    manifest_release(&a);
    manifest_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),   cmocka_unit_test(test_order_does_not_count),
        cmocka_unit_test(test_broken), cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_diff),
    };
    hash_init();
    return cmocka_run_group_tests_name("core/manifest", tests, NULL, NULL);
}
