/* SPDX-License-Identifier: Apache-2.0 */
/* The root by another name: through a link, and in the text of a spec. */
#include "argusd/ground/rootnames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/unit.h"

static void test_a_link_is_found(void **state)
{
    char top[] = "/tmp/argus-rootnames-XXXXXX";
    struct strv names = {0};
    (void)state;
    assert_non_null(mkdtemp(top));
    _cleanup_(freep) char *real = xasprintf("%s/real root", top), *link = xasprintf("%s/link", top);
    _cleanup_(freep) char *other = xasprintf("%s/other", top);
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(symlink(real, link), 0);
    rootnames_find(link, &names);
    assert_true(strv_has(&names, real));
    assert_false(strv_has(&names, link));
    assert_false(strv_has(&names, other));
    rootnames_find(real, &names);
    assert_false(strv_has(&names, real));
    strv_release(&names);
    rootnames_find("/nowhere/at/all", &names);
    assert_int_equal(names.n, 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(real), 0);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(rmdir(top), 0);
}

static void test_texts_are_respelled(void **state)
{
    static const char *const rows[][2] = {
        {"train_file: /data/real/x.parquet\n", "train_file: /mnt/root/x.parquet\n"},
        {"a: \"/data/real root/x y\"\n", "a: \"/mnt/root/x y\"\n"},
        {"[/data/real,/data/real/b]", "[/mnt/root,/mnt/root/b]"},
        {"PATH=/bin:/data/real/bin", "PATH=/bin:/mnt/root/bin"},
        {"b.c=/data/real/x", "b.c=/mnt/root/x"},
        {"/data/real", "/mnt/root"},
        {"/data/realm/x /x/data/real/y /data/real-2 /data", NULL},
        {"${SHARED_ROOT}/x", NULL},
        {"", NULL},
    };
    struct strv names = {0}, none = {0};
    (void)state;
    strv_add(&names, "/data/real");
    strv_add(&names, "/data/real root");
    for (size_t i = 0; i < array_len(rows); i++) {
        _cleanup_(freep) char *text = rootnames_respell(rows[i][0], &names, "/mnt/root");
        if (!rows[i][1])
            assert_null(text);
        else
            assert_string_equal(text, rows[i][1]);
    }
    assert_null(rootnames_respell("/data/real", &none, "/mnt/root"));
    strv_release(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_link_is_found),
                                       cmocka_unit_test(test_texts_are_respelled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
