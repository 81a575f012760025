/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: replaced or left, never half; nothing is left lying about. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "base/digest/filehash.h"
#include "base/test/unit_look.h"
#include "base/unit_dir.h"

static bool count(int dir, const char *name, void *arg)
{
    int *n = arg;
    assert_int_equal(faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW), 0);
    ++*n;
    return true;
}

static int entries(const char *root)
{
    int n = 0;
    file_each_name(root, count, &n);
    return n;
}

static bool stop_at_once(int dir, const char *name, void *arg)
{
    (void)dir;
    (void)name;
    ++*(int *)arg;
    return false;
}

static void test_names(void **state)
{
    const char *root = *state;
    int n = 0;
    for (const char *s = "abc"; *s; s++) {
        _cleanup_(freep) char *path = xasprintf("%s/.%c", root, *s);
        assert_int_equal(file_write(path, "", 0, 0644, 0, NULL), 0);
    }
    assert_int_equal(entries(root), 3);
    file_each_name(root, stop_at_once, &n);
    assert_int_equal(n, 1);
    file_each_name("/nonexistent", stop_at_once, &n);
    assert_int_equal(n, 1);
}

static void test_write_replaces(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = xasprintf("%s/f", root);
    assert_int_equal(file_write(path, "one", 3, 0640, 0, NULL), 0);
    assert_text(root, "f", "one");
    assert_int_equal(mode_of(root, "f"), 0640);
    assert_int_equal(file_write(path, "two", 3, 0666, FILE_SYNC, NULL), 0);
    assert_text(root, "f", "two");
    assert_int_equal(mode_of(root, "f"), 0666); /* whatever the umask is */
    assert_int_equal(entries(root), 1);
}

static void test_failed_write_changes_nothing(void **state)
{
    const char *root = *state;
    struct err err;
    _cleanup_(freep) char *dir = xasprintf("%s/d", root);
    _cleanup_(freep) char *nowhere = xasprintf("%s/none/f", root);
    put(root, "d/x", "x");
    assert_int_equal(file_write(dir, "one", 3, 0644, 0, &err), -EISDIR);
    assert_non_null(strstr(err.text, "cannot write '"));
    assert_int_equal(entries(root), 1);
    assert_int_equal(file_write(nowhere, "one", 3, 0644, 0, &err), -ENOENT);
}

static void test_read(void **state)
{
    const char *root = *state;
    struct err err;
    _cleanup_(freep) char *path = xasprintf("%s/f", root);
    _cleanup_(freep) char *below = xasprintf("%s/f/g", root);
    _cleanup_(buf_release) struct buf four = BUF_INIT(4);
    put(root, "f", "1234");
    assert_int_equal(file_read(path, &four, &err), 0);
    assert_string_equal(buf_str(&four), "1234");
    buf_reset(&four);
    put(root, "f", "12345");
    assert_int_equal(file_read(path, &four, &err), -EMSGSIZE);
    assert_non_null(strstr(err.text, "is larger than the 4 bytes"));
    assert_int_equal(file_read(below, &four, &err), -ENOENT);
    assert_int_equal(file_read(root, &four, &err), -EINVAL);
}

static void test_mkdirs(void **state)
{
    const char *root = *state;
    struct err err;
    _cleanup_(freep) char *deep = xasprintf("%s/a/b/c", root);
    _cleanup_(freep) char *blocked = xasprintf("%s/f/x", root);
    for (int twice = 0; twice < 2; twice++)
        assert_int_equal(file_mkdirs(deep, 0777, &err), 0);
    assert_int_equal(mode_of(root, "a/b/c"), 0777);
    put(root, "f", "");
    assert_int_equal(file_mkdirs(blocked, 0755, &err), -ENOTDIR);
}

/* A pipe in place of a file is no file to us, and input when a person names it. */
static void test_input_may_be_a_pipe(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = xasprintf("%s/pipe", root);
    _cleanup_(buf_release) struct buf text = BUF_INIT(64);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(file_read(path, &text, NULL), -EINVAL);
    pid_t writer = fork();
    if (writer == 0)
        _exit(file_write_all(open(path, O_WRONLY | O_CLOEXEC), "piped", 5) < 0);
    assert_int_equal(file_read_input(path, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "piped");
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    struct err err;
    _cleanup_(freep) char *none = xasprintf("%s/none", root);
    assert_int_equal(file_read_input(none, &text, &err), -ENOENT);
    assert_non_null(strstr(err.text, none));
}

static void test_private(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = xasprintf("%s/new/dir/f", root);
    assert_int_equal(file_write_private(path, "x", 1, NULL), 0);
    assert_int_equal(mode_of(root, "new/dir/f"), 0600);
    assert_int_equal(mode_of(root, "new/dir"), 0700);
    _cleanup_(buf_release) struct buf text = BUF_INIT(64);
    assert_int_equal(file_read_input(path, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "x");
}

static void parts_of_a_file(void **state)
{
    char part[8] = "zzzzzzz";
    size_t n = 9;
    put(*state, "f", "0123456789");
    _cleanup_(freep) char *path = xasprintf("%s/f", (const char *)*state);
    _cleanup_(closep) int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(file_read_at(fd, 3, part, 4, &n), 0);
    assert_int_equal(n, 4);
    assert_memory_equal(part, "3456zzz", 7);
    assert_int_equal(file_read_at(fd, 8, part, 8, &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(file_read_at(fd, 10, part, 8, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(file_read_at(-1, 0, part, 8, &n), -EBADF);
    assert_int_equal(n, 0);
    assert_int_equal(file_write_at(fd, 8, "abcd", 4), 0);
    assert_text(*state, "f", "01234567abcd");
    assert_int_equal(file_write_at(-1, 0, "a", 1), -EBADF);
}

static void a_failed_look_is_no_absence(void **state)
{
    static const int absences[] = {ENOENT, ENOTDIR};
    _cleanup_(freep) char *path = xasprintf("%s/f", (const char *)*state);
    struct err err;
    bool is_there = true;
    put(*state, "f", "x");
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"f", look_errors[i], 0, false};
        assert_false(file_is_absence(-look_errors[i]));
        assert_int_equal(file_look_for(path, &is_there, &err), -look_errors[i]);
        assert_non_null(strstr(err.text, strerror(look_errors[i])));
        assert_true(is_there);
    }
    for (size_t i = 0; i < array_len(absences); i++) {
        look_broken = (struct look_broken){"f", absences[i], 0, false};
        assert_true(file_is_absence(-absences[i]));
        assert_int_equal(file_look_for(path, &is_there, &err), 0);
        assert_false(is_there);
    }
    look_broken = (struct look_broken){0};
    assert_int_equal(file_look_for(path, &is_there, &err), 0);
    assert_true(is_there);
    assert_false(file_is_absence(0));
}

/* A pipe, a directory and a link are seen and not opened; a file is. */
static void test_regular_alone(void **state)
{
    _cleanup_(freep) char *pipe = xasprintf("%s/pipe", (const char *)*state);
    _cleanup_(freep) char *link = xasprintf("%s/link", (const char *)*state);
    _cleanup_(closep) int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char text[8];
    size_t n = 0;
    put(*state, "f", "abc");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink("f", link), 0);
    assert_int_equal(file_open_regular(dir, "pipe", O_RDONLY), -EINVAL);
    assert_int_equal(file_open_regular(dir, ".", O_RDONLY), -EINVAL);
    assert_int_equal(file_open_regular(dir, "link", O_RDONLY), -ELOOP);
    assert_int_equal(file_open_regular(dir, "none", O_RDONLY), -ENOENT);
    _cleanup_(closep) int fd = file_open_regular(dir, "f", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(file_read_at(fd, 0, text, sizeof(text), &n), 0);
    assert_int_equal(n, 3);
    assert_int_equal(file_write_at(fd, 3, "d", 1), 0);
}

/* No more is read than was said: a file that somebody made 15 TiB long is told at once. */
static void test_hash_of_a_known_size(void **state)
{
    unsigned char is[HASH_BYTES], wanted[HASH_BYTES];
    struct err err;
    _cleanup_(freep) char *path = xasprintf("%s/f", (const char *)*state);
    _cleanup_(closep) int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(*state, "f", "abc");
    hash_sha256("abc", 3, wanted);
    assert_int_equal(filehash_at(dir, "f", 3, is, &err), 0);
    assert_memory_equal(is, wanted, sizeof(is));
    assert_int_equal(filehash_at(dir, "f", 2, is, &err), -EMSGSIZE);
    assert_int_equal(truncate(path, 15LL << 40), 0);
    assert_int_equal(filehash_at(dir, "f", 3, is, &err), -EMSGSIZE);
    assert_non_null(strstr(err.text, "somebody changed it"));
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_root(test_read),
        with_root(parts_of_a_file),
        with_root(test_names),
        with_root(test_write_replaces),
        with_root(test_failed_write_changes_nothing),
        with_root(test_mkdirs),
        with_root(test_input_may_be_a_pipe),
        with_root(test_private),
        with_root(a_failed_look_is_no_absence),
        with_root(test_regular_alone),
        with_root(test_hash_of_a_known_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
