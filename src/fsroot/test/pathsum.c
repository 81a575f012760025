/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pathsum.h: what changes the hash of a directory, and what does not. */
#define _GNU_SOURCE
#include "fsroot/tree/pathsum.h"

#include <fcntl.h>

#include "base/str.h"
#include "base/unit_dir.h"
#include "fsroot/tree/root.h"

static struct pathsum sum_of(const char *root, const char *path)
{
    struct walk_place p = {0};
    struct pathsum sum = {0};
    assert_int_equal(walk_parse(root, path, &p, NULL), 0);
    assert_int_equal(pathsum_take(root, &p, &sum), 0);
    walk_place_release(&p);
    return sum;
}

static void set_time(const char *root, const char *name, time_t sec)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    const struct timespec t[2] = {{.tv_sec = sec}, {.tv_sec = sec}};
    assert_int_equal(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW), 0);
}

static void test_what_changes_it(void **state)
{
    const char *root = *state;
    put(root, "common/d/a", "one");
    put(root, "common/d/sub/b", "two");
    set_time(root, "common/d/a", 1000);
    set_time(root, "common/d/sub/b", 1000);
    struct pathsum first = sum_of(root, "common/d");
    assert_true(first.is_there && !first.is_cut);
    assert_int_equal(first.files, 3); /* a, sub, sub/b */
    set_time(root, "common/d", 77);   /* a directory's own time does not count */
    put(root, "common/d/__pycache__/a.pyc", "made by who imports it");
    assert_string_equal(sum_of(root, "common/d").hash, first.hash);

    set_time(root, "common/d/sub/b", 1001);
    struct pathsum touched = sum_of(root, "common/d");
    assert_string_not_equal(touched.hash, first.hash);
    put(root, "common/d/sub/b", "longer");
    set_time(root, "common/d/sub/b", 1001);
    struct pathsum longer = sum_of(root, "common/d");
    assert_string_not_equal(longer.hash, touched.hash);
    put(root, "common/d/c", "");
    assert_string_not_equal(sum_of(root, "common/d").hash, longer.hash);
}

static void test_a_file_and_nothing(void **state)
{
    const char *root = *state;
    put(root, "common/f", "x");
    set_time(root, "common/f", 5);
    struct pathsum first = sum_of(root, "common/f");
    assert_true(first.is_there && first.files == 1);
    set_time(root, "common/f", 6);
    assert_string_not_equal(sum_of(root, "common/f").hash, first.hash);
    struct pathsum none = sum_of(root, "common/none");
    assert_false(none.is_there);
    assert_string_equal(none.hash, "");
}

/* Links inside are not followed, wherever they lead; another text is another hash. */
static void test_links(void **state)
{
    const char *root = *state;
    put(root, "common/l/a", "x");
    _cleanup_(freep) char *link = xasprintf("%s/common/l/out", root);
    assert_int_equal(symlink("/", link), 0);
    set_time(root, "common/l/out", 9);
    struct pathsum first = sum_of(root, "common/l");
    assert_int_equal(first.files, 2);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("l", link), 0);
    set_time(root, "common/l/out", 9);
    struct pathsum other = sum_of(root, "common/l");
    assert_int_equal(other.files, 2);
    assert_string_not_equal(other.hash, first.hash);
    /* The place itself may be a link that stays below the root, and no other. */
    struct walk_place p = {0};
    struct pathsum sum = {0};
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("/etc", link), 0);
    assert_int_equal(walk_parse(root, "common/l/out", &p, NULL), 0);
    assert_int_equal(pathsum_take(root, &p, &sum), ERR_FORBIDDEN);
    walk_place_release(&p);
}

/* Too deep: what can be told is the time of the place itself. */
static void test_cut(void **state)
{
    const char *root = *state;
    _cleanup_(buf_release) struct buf name = BUF_INIT(1024);
    (void)buf_adds(&name, "common/deep/"); /* it fits */
    for (int i = 0; i <= PATHSUM_DEPTH_MAX; i++)
        (void)buf_adds(&name, "d/"); /* as above */
    (void)buf_adds(&name, "f");      /* as above */
    put(root, buf_str(&name), "x");
    set_time(root, "common/deep", 5);
    struct pathsum first = sum_of(root, "common/deep");
    assert_true(first.is_there && first.is_cut);
    assert_string_equal(sum_of(root, "common/deep").hash, first.hash);
    set_time(root, "common/deep", 6);
    assert_string_not_equal(sum_of(root, "common/deep").hash, first.hash);
}

static int sum_setup(void **state)
{
    hash_init();
    return root_setup(state) < 0 ? -1 : fsroot_prepare(*state, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_changes_it, sum_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_and_nothing, sum_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_links, sum_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_cut, sum_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
