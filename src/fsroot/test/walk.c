/* SPDX-License-Identifier: Apache-2.0 */
/* Every way out of a root, with openat2 and without it, and while directories are swapped. */
#define _GNU_SOURCE
#include "fsroot/tree/walk.h"
#include "base/unit_dir.h"
#include "fsroot/tree/root.h"

#include <pthread.h>
#include <stdatomic.h>

static const unsigned ways[] = {0, WALK_NO_OPENAT2};

/* ---- what is written ---- */

static void expect_place(const char *path, enum walk_zone zone, const char *name, const char *rest)
{
    struct walk_place p = {0};
    struct err err = {0};
    if (walk_parse("/mnt/root/", path, &p, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    assert_int_equal(p.zone, zone);
    if (name)
        assert_string_equal(p.name, name);
    else
        assert_null(p.name);
    assert_string_equal(p.rest, rest);
    walk_place_release(&p);
}

static void test_places(void **state)
{
    (void)state;
    expect_place("common", WALK_COMMON, NULL, "");
    expect_place("common/", WALK_COMMON, NULL, "");
    expect_place("/mnt/root/common/a", WALK_COMMON, NULL, "a");
    expect_place("${SHARED_ROOT}/common//a///b/", WALK_COMMON, NULL, "a/b");
    expect_place("users/alice", WALK_USER, "alice", "");
    expect_place("users/alice/x y/z", WALK_USER, "alice", "x y/z");
    expect_place("jobs/j-1/logs/driver.log", WALK_JOB, "j-1", "logs/driver.log");
    expect_place("users/alice/中", WALK_USER, "alice", "中");
    expect_place("common/...", WALK_COMMON, NULL, "...");
}

static void test_refused_places(void **state)
{
    static const struct {
        const char *path;
        int code;
    } rows[] = {
        {"", ERR_FORBIDDEN},
        {"/", ERR_FORBIDDEN},
        {"users", ERR_FORBIDDEN},
        {"users/", ERR_FORBIDDEN},
        {"jobs", ERR_FORBIDDEN},
        {"argus/uploads", ERR_FORBIDDEN},
        {"hf/x", ERR_FORBIDDEN},
        {"commonx", ERR_FORBIDDEN},
        {"/etc/passwd", ERR_FORBIDDEN},
        {"/mnt/rootx/common", ERR_FORBIDDEN},
        {"/mnt", ERR_FORBIDDEN},
        {"common/../users/bob", ERR_BAD_REQUEST},
        {"common/./x", ERR_BAD_REQUEST},
        {"users/../common", ERR_BAD_REQUEST},
        {"common/..", ERR_BAD_REQUEST},
        {"common/a\nb", ERR_BAD_REQUEST},
        {"common/a\x7f", ERR_BAD_REQUEST},
        {"common/a\x01", ERR_BAD_REQUEST},
        {"common/\xff", ERR_BAD_REQUEST},
        {"common/\xc0\xaf", ERR_BAD_REQUEST},
    };
    (void)state;
    struct walk_place p = {0};
    struct err err = {0};
    for (size_t i = 0; i < array_len(rows); i++) {
        assert_int_equal(walk_parse("/mnt/root", rows[i].path, &p, &err), rows[i].code);
        assert_true(*err.text);
        assert_null(p.path);
    }
    char longest[300] = "common/";
    memset(longest + 7, 'a', 256);
    assert_int_equal(walk_parse("/r", longest, &p, &err), ERR_BAD_REQUEST);
    longest[7 + 255] = 0;
    assert_int_equal(walk_parse("/r", longest, &p, &err), 0);
    walk_place_release(&p);
    _cleanup_(buf_release) struct buf deep = BUF_INIT(10000);
    (void)buf_adds(&deep, "common");
    for (int i = 0; i < WALK_DEPTH_MAX; i++)
        (void)buf_adds(&deep, "/a");
    assert_int_equal(walk_parse("/r", buf_str(&deep), &p, &err), ERR_BAD_REQUEST);
    for (int i = 0; i < 3000; i++)
        (void)buf_addc(&deep, '/');
    for (int i = 0; i < 3000; i++)
        (void)buf_addc(&deep, 'a');
    assert_int_equal(walk_parse("/r", buf_str(&deep), &p, &err), ERR_BAD_REQUEST);
}

/* ---- what is there ---- */

static void link_to(const char *root, const char *name, const char *text)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    assert_int_equal(symlink(text, path), 0);
}

static int try_open(const char *root, const char *path, int flags, unsigned way, char *ret_byte)
{
    struct walk_place p = {0};
    struct err err = {0};
    int fd = -1;
    int r = walk_parse(root, path, &p, &err);
    if (r == 0)
        r = walk_open(root, &p, flags, way, &fd, &err);
    if (r < 0)
        assert_true(*err.text);
    else if (ret_byte)
        assert_int_equal(read(fd, ret_byte, 1), 1);
    if (fd >= 0)
        (void)close(fd);
    walk_place_release(&p);
    return r;
}

static int set_up(void **state)
{
    if (root_setup(state) < 0)
        return -1;
    const char *root = *state;
    put(root, "users/alice/a", "A");
    put(root, "users/alice/dir/b", "B");
    put(root, "users/bob/secret", "S");
    put(root, "common/c", "C");
    put(root, "jobs/j/logs/x", "X");
    put(root, "outside", "O");
    return fsroot_prepare(root, NULL);
}

static void test_inside(void **state)
{
    static const char *const paths[] = {"a",     "dir/b",      "in",  "dir/up", "dirlink/b",
                                        "chain", "dirlink/up", "dot", NULL};
    const char *root = *state;
    link_to(root, "users/alice/in", "dir/b");
    link_to(root, "users/alice/dir/up", "../a");
    link_to(root, "users/alice/dirlink", "dir");
    link_to(root, "users/alice/chain", "dirlink/../in");
    link_to(root, "users/alice/dot", "./dir/.././a");
    for (size_t w = 0; w < array_len(ways); w++)
        for (const char *const *s = paths; *s; s++) {
            char byte = 0;
            _cleanup_(freep) char *path = xasprintf("users/alice/%s", *s);
            int r = try_open(root, path, O_RDONLY, ways[w], &byte);
            if (r < 0)
                fail_msg("%s, way %u: %d", path, ways[w], r);
            assert_true(byte == 'A' || byte == 'B');
        }
}

static void test_ways_out(void **state)
{
    static const struct {
        const char *name, *text;
    } links[] = {
        {"out1", "/etc/passwd"},
        {"out2", "../bob/secret"},
        {"out3", "../../outside"},
        {"out4", "../alice/../bob/secret"},
        {"out5", "../../../../../etc"},
        {"out6", "/proc/self/root"},
        {"out7", "out2"},
        {"out8", "dir/../../bob"},
        {"loop", "loop"},
        {"loop1", "loop2"},
        {"loop2", "loop1"},
    };
    const char *root = *state;
    _cleanup_(freep) char *absolute = xasprintf("%s/users/alice/a", root);
    link_to(root, "users/alice/abs", absolute); /* stays inside, but by the top: refused as well */
    for (size_t i = 0; i < array_len(links); i++) {
        _cleanup_(freep) char *name = xasprintf("users/alice/%s", links[i].name);
        link_to(root, name, links[i].text);
    }
    for (size_t w = 0; w < array_len(ways); w++) {
        for (size_t i = 0; i < array_len(links); i++) {
            _cleanup_(freep) char *path = xasprintf("users/alice/%s", links[i].name);
            _cleanup_(freep) char *under = xasprintf("users/alice/%s/secret", links[i].name);
            assert_int_equal(try_open(root, path, O_RDONLY, ways[w], NULL), ERR_FORBIDDEN);
            assert_true(try_open(root, under, O_RDONLY, ways[w], NULL) < 0);
        }
        assert_int_equal(try_open(root, "users/alice/abs", O_RDONLY, ways[w], NULL), ERR_FORBIDDEN);
        assert_int_equal(try_open(root, "users/alice/none", O_RDONLY, ways[w], NULL),
                         ERR_NOT_FOUND);
        assert_int_equal(try_open(root, "users/alice/a/b", O_RDONLY, ways[w], NULL),
                         ERR_BAD_REQUEST);
        assert_int_equal(try_open(root, "users/carol/x", O_RDONLY, ways[w], NULL), ERR_NOT_FOUND);
    }
}

/* A zone that was replaced by a link to somebody else's. */
static void test_zone_is_no_link(void **state)
{
    const char *root = *state;
    link_to(root, "users/mallory", "bob");
    link_to(root, "jobs/m", "../users/bob");
    for (size_t w = 0; w < array_len(ways); w++) {
        assert_int_equal(try_open(root, "users/mallory/secret", O_RDONLY, ways[w], NULL),
                         ERR_FORBIDDEN);
        assert_int_equal(try_open(root, "jobs/m/secret", O_RDONLY, ways[w], NULL), ERR_FORBIDDEN);
    }
}

/* It is seen, and not opened. */
static void test_fifo_does_not_hold(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = xasprintf("%s/common/fifo", root);
    assert_int_equal(mkfifo(path, 0644), 0);
    for (size_t w = 0; w < array_len(ways); w++)
        assert_int_equal(try_open(root, "common/fifo", O_RDONLY, ways[w], NULL), ERR_BAD_REQUEST);
}

static void test_parent(void **state)
{
    const char *root = *state;
    link_to(root, "users/alice/out", "../bob");
    for (size_t w = 0; w < array_len(ways); w++) {
        struct walk_place p = {0};
        struct err err = {0};
        const char *name = NULL;
        int fd = -1;
        _cleanup_(freep) char *deep = xasprintf("users/alice/n%zu/m/x", w);
        assert_int_equal(walk_parse(root, deep, &p, NULL), 0);
        assert_int_equal(walk_open_parent(root, &p, false, ways[w], &fd, &name, &err),
                         ERR_NOT_FOUND);
        assert_int_equal(walk_open_parent(root, &p, true, ways[w], &fd, &name, &err), 0);
        assert_string_equal(name, "x");
        assert_int_equal(mkdirat(fd, name, 0755), 0);
        (void)close(fd);
        _cleanup_(freep) char *real = xasprintf("%s/%s", root, deep);
        assert_true(file_is_there(real));
        walk_place_release(&p);
        assert_int_equal(walk_parse(root, "users/alice/out/new/x", &p, NULL), 0);
        assert_int_equal(walk_open_parent(root, &p, true, ways[w], &fd, &name, &err),
                         ERR_FORBIDDEN);
        _cleanup_(freep) char *wrong = xasprintf("%s/users/bob/new", root);
        assert_false(file_is_there(wrong));
        walk_place_release(&p);
        assert_int_equal(walk_parse(root, "users/alice", &p, NULL), 0);
        assert_int_equal(walk_open_parent(root, &p, true, ways[w], &fd, &name, &err),
                         ERR_BAD_REQUEST);
        walk_place_release(&p);
    }
}

static void test_root_is_away(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *gone = xasprintf("%s/gone", root);
    _cleanup_(freep) char *empty = xasprintf("%s/hf", root);
    assert_int_equal(try_open(gone, "common/x", O_RDONLY, 0, NULL), ERR_UNAVAILABLE);
    assert_int_equal(try_open(empty, "common/x", O_RDONLY, 0, NULL), ERR_UNAVAILABLE);
}

/* ---- somebody swaps directories ---- */

struct swapper {
    char *a, *b;
    atomic_bool stop;
};

static void *swap(void *arg)
{
    struct swapper *s = arg;
    while (!atomic_load(&s->stop))
        (void)!renameat2(AT_FDCWD, s->a, AT_FDCWD, s->b, RENAME_EXCHANGE); /* again and again */
    return NULL;
}

/* "dir" is a directory of alice's in one moment and a link to bob's in the next. Whatever is read
 * is alice's. */
static void test_race(void **state)
{
    const char *root = *state;
    put(root, "users/alice/deep/dir/secret", "A");
    link_to(root, "users/alice/deep/other", "../../bob");
    struct swapper s = {.a = xasprintf("%s/users/alice/deep/dir", root),
                        .b = xasprintf("%s/users/alice/deep/other", root)};
    pthread_t thread;
    atomic_init(&s.stop, false);
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    for (size_t w = 0; w < array_len(ways); w++)
        for (int i = 0; i < 3000; i++) {
            char byte = 0;
            int r = try_open(root, "users/alice/deep/dir/secret", O_RDONLY, ways[w], &byte);
            assert_true(r < 0 || byte == 'A');
        }
    atomic_store(&s.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    free(s.a);
    free(s.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_refused_places),
        cmocka_unit_test_setup_teardown(test_inside, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_ways_out, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_zone_is_no_link, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_fifo_does_not_hold, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_parent, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_root_is_away, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_race, set_up, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
