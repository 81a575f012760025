/* SPDX-License-Identifier: Apache-2.0 */
/* The test of a shared root: passed by a file system that does it all, refused by one that lacks a
 * thing, and nothing is left of it. */
#define _GNU_SOURCE
#include "fsroot/tree/rootprobe.h"
#include "base/unit_dir.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/file.h>

/* A file server that gives a lock to everybody, and one that knows no second names. */
static bool locks_all, links_none;

int flock(int fd, int how)
{
    int (*real)(int, int) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "flock");
    return locks_all ? 0 : real(fd, how);
}

int linkat(int from, const char *name, int to, const char *to_name, int flags)
{
    int (*real)(int, const char *, int, const char *, int) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "linkat");
    errno = EPERM;
    return links_none ? -1 : real(from, name, to, to_name, flags);
}

static int set_up(void **state)
{
    locks_all = links_none = false;
    if (root_setup(state) < 0)
        return -1;
    put(*state, "argus/bin/kept", "");
    return 0;
}

static void expect_nothing_left(const char *root)
{
    _cleanup_(freep) char *path = xasprintf("%s/argus", root);
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    assert_int_equal(n, 3); /* with "." and ".." */
}

static void test_a_root_that_does_it_all(void **state)
{
    struct rootprobe p = {0};
    struct err err;
    assert_int_equal(rootprobe_run(*state, clock_mono, &p, &err), 0);
    assert_true(p.took > 0);
    assert_true(p.free_bytes > 0 && p.total_bytes >= p.free_bytes);
    expect_nothing_left(*state);
}

static void test_what_a_killed_one_has_left(void **state)
{
    struct rootprobe p = {0};
    struct err err;
    put(*state, "argus/.doctor-0123456789abcdef", "");
    put(*state, "argus/.doctor-0123456789abcdef-moved", "");
    assert_int_equal(rootprobe_run(*state, clock_mono, &p, &err), 0);
    expect_nothing_left(*state);
}

static void test_a_lock_that_two_can_have(void **state)
{
    struct rootprobe p = {0};
    struct err err;
    locks_all = true;
    assert_int_equal(rootprobe_run(*state, clock_mono, &p, &err), -EIO);
    assert_string_equal(err.message, "rootprobe_lock_twice");
    assert_int_equal(p.took, 0);
    expect_nothing_left(*state);
}

static void test_no_second_names(void **state)
{
    struct rootprobe p = {0};
    struct err err;
    links_none = true;
    assert_int_equal(rootprobe_run(*state, clock_mono, &p, &err), -EPERM);
    expect_nothing_left(*state);
}

/* Nothing is made where the root is not mounted, and nothing of ours was ever there. */
static void test_no_root_of_ours(void **state)
{
    struct rootprobe p = {0};
    struct err err;
    _cleanup_(freep) char *bare = xasprintf("%s/bare", (const char *)*state);
    put(*state, "bare/theirs", "");
    assert_int_equal(rootprobe_run(bare, clock_mono, &p, &err), -ENOENT);
    assert_int_equal(p.took, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_root_that_does_it_all, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_killed_one_has_left, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_a_lock_that_two_can_have, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_no_second_names, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_no_root_of_ours, set_up, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
