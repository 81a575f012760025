/* SPDX-License-Identifier: Apache-2.0 */
/* Files of users: looked at, listed by pages, put in one step, removed whole. */
#define _GNU_SOURCE
#include "fsroot/content/place.h"
#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/tree/root.h"

#include <fcntl.h>

static struct walk_place place(const char *root, const char *path)
{
    struct walk_place p = {0};
    assert_int_equal(walk_parse(root, path, &p, NULL), 0);
    return p;
}

static int set_up(void **state)
{
    return root_setup(state) < 0 ? -1 : fsroot_prepare(*state, NULL);
}

static void link_to(const char *root, const char *name, const char *text)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    assert_int_equal(symlink(text, path), 0);
}

static void expect_look(const char *root, const char *path, enum place_kind kind, uint64_t bytes)
{
    _cleanup_(walk_place_release) struct walk_place p = place(root, path);
    struct place_entry e;
    struct err err = {0};
    if (place_look(root, &p, &e, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(e.kind, kind);
    assert_int_equal(e.bytes, bytes);
    assert_int_equal(kind == PLACE_FILE, *e.etag != 0);
    place_entry_release(&e);
}

static void test_look(void **state)
{
    const char *root = *state;
    put(root, "common/f", "abc");
    link_to(root, "common/good", "f");
    link_to(root, "common/broken", "nothing");
    link_to(root, "common/out", "../users");
    expect_look(root, "common", PLACE_DIRECTORY, 0);
    expect_look(root, "common/f", PLACE_FILE, 3);
    expect_look(root, "common/good", PLACE_FILE, 3);
    expect_look(root, "common/broken", PLACE_LINK, 0);
    struct place_entry e;
    _cleanup_(walk_place_release) struct walk_place out = place(root, "common/out");
    _cleanup_(walk_place_release) struct walk_place none = place(root, "common/none");
    assert_int_equal(place_look(root, &out, &e, NULL), ERR_FORBIDDEN);
    assert_int_equal(place_look(root, &none, &e, NULL), ERR_NOT_FOUND);
}

static void test_list_by_pages(void **state)
{
    const char *root = *state;
    static const char *const names[] = {"b", "a", "d", "c", "\xff", ".hidden"};
    static const char *const sorted[] = {".hidden", "a",        "b", "c",      "code",
                                         "d",       "datasets", "l", "models", "\xff"};
    for (size_t i = 0; i < array_len(names); i++) {
        _cleanup_(freep) char *path = xasprintf("common/%s", names[i]);
        put(root, path, "x");
    }
    link_to(root, "common/l", "/etc/passwd");
    _cleanup_(walk_place_release) struct walk_place p = place(root, "common");
    for (size_t limit = 1; limit < 12; limit++) {
        size_t n = 0;
        _cleanup_(freep) char *after = xstrdup("");
        for (bool more = true; more;) {
            struct place_list l;
            assert_int_equal(place_list(root, &p, after, limit, &l, NULL), 0);
            assert_true(l.n <= limit);
            for (size_t i = 0; i < l.n; i++, n++) {
                assert_string_equal(l.v[i].name, sorted[n]);
                assert_int_equal(l.v[i].is_odd, l.v[i].name[0] == '\xff');
                if (l.v[i].kind == PLACE_LINK)
                    assert_string_equal(l.v[i].target, "/etc/passwd");
            }
            more = l.more;
            if (l.n)
                set_str(&after, l.v[l.n - 1].name);
            place_list_release(&l);
        }
        assert_int_equal(n, array_len(sorted));
    }
    _cleanup_(walk_place_release) struct walk_place file = place(root, "common/a");
    struct place_list l;
    assert_int_equal(place_list(root, &file, "", 10, &l, NULL), ERR_BAD_REQUEST);
}

static void test_read(void **state)
{
    const char *root = *state;
    char text[16] = "";
    size_t n;
    int fd = -1;
    struct place_entry e;
    put(root, "common/f", "0123456789");
    put(root, "jobs/j/open", "x");
    put(root, "jobs/j/closed", "secret");
    _cleanup_(freep) char *closed = xasprintf("%s/jobs/j/closed", root);
    assert_int_equal(chmod(closed, 0600), 0);
    _cleanup_(walk_place_release) struct walk_place p = place(root, "common/f");
    assert_int_equal(place_open_file(root, &p, &fd, &e, NULL), 0);
    assert_int_equal(e.bytes, 10);
    assert_int_equal(place_read(&p, fd, 7, text, 10, &n, NULL), 0);
    assert_int_equal(n, 3);
    assert_string_equal(text, "789");
    assert_int_equal(place_read(&p, fd, 10, text, 10, &n, NULL), 0);
    assert_int_equal(n, 0);
    (void)close(fd);
    _cleanup_(walk_place_release) struct walk_place dir = place(root, "common");
    assert_int_equal(place_open_file(root, &dir, &fd, &e, NULL), ERR_BAD_REQUEST);
    _cleanup_(walk_place_release) struct walk_place open_one = place(root, "jobs/j/open");
    assert_int_equal(place_open_file(root, &open_one, &fd, &e, NULL), 0);
    (void)close(fd);
    _cleanup_(walk_place_release) struct walk_place secret = place(root, "jobs/j/closed");
    assert_int_equal(place_open_file(root, &secret, &fd, &e, NULL), ERR_FORBIDDEN);
}

static int put_file(const char *root, const char *path, unsigned flags)
{
    _cleanup_(walk_place_release) struct walk_place p = place(root, path);
    _cleanup_(freep) char *from = xasprintf("%s/argus/data", root);
    put(root, "argus/data", "new");
    struct err err = {0};
    int r = place_put(root, &p, from, strlen("new"), flags, &err);
    assert_int_equal(file_is_there(from), r < 0);
    assert_int_equal(r < 0, *err.text != 0);
    return r;
}

static void test_put(void **state)
{
    const char *root = *state;
    assert_int_equal(put_file(root, "common/f", 0), 0);
    assert_text(root, "common/f", "new");
    assert_int_equal(mode_of(root, "common/f"), 0644);
    put(root, "common/f", "old");
    assert_int_equal(put_file(root, "common/f", 0), ERR_CONFLICT);
    assert_text(root, "common/f", "old");
    assert_int_equal(put_file(root, "common/f", PLACE_REPLACE), 0);
    assert_text(root, "common/f", "new");
    assert_int_equal(put_file(root, "common/a/b/c", 0), ERR_NOT_FOUND);
    assert_int_equal(put_file(root, "common/a/b/c", PLACE_PARENTS), 0);
    assert_text(root, "common/a/b/c", "new");
    assert_int_equal(put_file(root, "common/a/b", PLACE_REPLACE), ERR_CONFLICT);
    assert_int_equal(put_file(root, "common/f/x", PLACE_PARENTS), ERR_BAD_REQUEST);
    assert_int_equal(put_file(root, "common", PLACE_REPLACE), ERR_BAD_REQUEST);
    /* A link in the file's place is replaced and not written through. */
    put(root, "users/bob/x", "his");
    link_to(root, "common/l", "../users/bob/x");
    assert_int_equal(put_file(root, "common/l", 0), ERR_CONFLICT);
    assert_int_equal(put_file(root, "common/l", PLACE_REPLACE), 0);
    assert_text(root, "users/bob/x", "his");
    assert_text(root, "common/l", "new");
}

static int remove_one(const char *root, const char *path, bool recursive, uint64_t *n)
{
    _cleanup_(walk_place_release) struct walk_place p = place(root, path);
    return place_remove(root, &p, recursive, n, NULL);
}

static void test_remove(void **state)
{
    const char *root = *state;
    uint64_t n;
    put(root, "common/d/a", "");
    put(root, "common/d/e/b", "");
    put(root, "users/bob/x", "his");
    link_to(root, "common/d/l", "../../users/bob");
    link_to(root, "common/l", "../users/bob/x");
    assert_int_equal(remove_one(root, "common/none", true, &n), ERR_NOT_FOUND);
    assert_int_equal(remove_one(root, "common/d", false, &n), ERR_CONFLICT);
    assert_int_equal(remove_one(root, "common/d/a", false, &n), 0);
    assert_int_equal(remove_one(root, "common/d", true, &n), 0);
    assert_int_equal(n, 4);
    assert_int_equal(remove_one(root, "common/l", false, &n), 0);
    assert_text(root, "users/bob/x", "his");
    link_to(root, "common/code/v1", "../../argus/snapshots/abc/tree");
    assert_int_equal(remove_one(root, "common/code/v1", false, &n), ERR_CONFLICT);
    assert_int_equal(remove_one(root, "common/code", true, &n), ERR_CONFLICT);
    assert_int_equal(put_file(root, "common/code/v1", PLACE_REPLACE), ERR_CONFLICT);
    assert_int_equal(remove_one(root, "common/datasets", false, &n), 0); /* empty */
    assert_int_equal(remove_one(root, "common", true, &n), ERR_BAD_REQUEST);
}

static void test_a_failed_look_replaces_nothing(void **state)
{
    const char *root = *state;
    uint64_t n;
    put(root, "common/f", "old");
    link_to(root, "common/s", "../argus/snapshots/abc/tree");
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"f", look_errors[i], 0, false};
        assert_int_equal(put_file(root, "common/f", PLACE_REPLACE),
                         look_errors[i] == EACCES ? ERR_FORBIDDEN : ERR_UNAVAILABLE);
        look_broken.name = "s";
        assert_true(put_file(root, "common/s", PLACE_REPLACE) < 0);
        assert_true(remove_one(root, "common/s", false, &n) < 0);
    }
    look_broken = (struct look_broken){0};
    assert_text(root, "common/f", "old");
    assert_int_equal(put_file(root, "common/s", PLACE_REPLACE), ERR_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_replaces_nothing, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_look, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_list_by_pages, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_read, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_put, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_remove, set_up, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
