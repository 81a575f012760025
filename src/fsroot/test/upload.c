/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of an upload: added, hashed, gone on with after every kind of end. */
#define _GNU_SOURCE
#include "fsroot/content/upload.h"
#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/tree/root.h"

/* What its keeper knows of the upload: nothing before each test. */
static struct upload_progress known;

static void open_file(const char *root, unsigned flags, struct upload_file **f)
{
    struct err err = {0};
    if (upload_file_open(root, "u1", &known, flags, f, &err) < 0)
        fail_msg("%s", err.text);
}

/* All is safe, and its keeper hears of it. */
static void upload_settle(struct upload_file *f)
{
    assert_int_equal(upload_file_sync(f, NULL), 0);
    upload_file_progress(f, &known);
}

static void add(struct upload_file *f, const char *text)
{
    assert_int_equal(upload_file_add(f, text, strlen(text), NULL), 0);
}

static void expect_hash(const struct upload_file *f, const char *text)
{
    char is[HASH_HEX], wanted[HASH_HEX];
    upload_file_hash(f, is);
    assert_string_equal(is, hash_sha256_hex(text, strlen(text), wanted));
}

static void test_in_one_go(void **state)
{
    const char *root = *state;
    struct upload_file *f = NULL;
    open_file(root, UPLOAD_FILE_NEW, &f);
    assert_int_equal(upload_file_offset(f), 0);
    expect_hash(f, "");
    add(f, "hello ");
    add(f, "world");
    expect_hash(f, "hello world");
    assert_int_equal(upload_file_offset(f), 11);
    assert_int_equal(upload_file_synced(f), 0);
    assert_int_equal(upload_file_sync(f, NULL), 0);
    assert_int_equal(upload_file_synced(f), 11);
    upload_file_close(f);
    _cleanup_(freep) char *path = upload_path(root, "u1");
    _cleanup_(buf_release) struct buf text = BUF_INIT(100);
    assert_int_equal(file_read(path, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "hello world");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* Killed: what its keeper heard of counts, the rest comes again. */
static void test_killed(void **state)
{
    const char *root = *state;
    struct upload_file *f = NULL;
    open_file(root, UPLOAD_FILE_NEW, &f);
    add(f, "abc");
    upload_settle(f);
    add(f, "def");
    upload_file_close(f);
    open_file(root, 0, &f);
    assert_int_equal(upload_file_offset(f), 3);
    assert_int_equal(upload_file_synced(f), 3);
    expect_hash(f, "abc");
    add(f, "ghi");
    expect_hash(f, "abcghi");
    upload_file_close(f);
}

/* A job made it 15 TiB without a byte on the disk, or shorter than what was safe. */
static void test_tampered(void **state)
{
    const char *root = *state;
    struct upload_file *f = NULL;
    struct stat st;
    _cleanup_(freep) char *data = upload_path(root, "u1");
    open_file(root, UPLOAD_FILE_NEW, &f);
    add(f, "abc");
    upload_settle(f);
    upload_file_close(f);
    assert_int_equal(truncate(data, 15LL << 40), 0);
    open_file(root, 0, &f);
    assert_int_equal(upload_file_offset(f), 3);
    expect_hash(f, "abc");
    assert_int_equal(stat(data, &st), 0);
    assert_int_equal(st.st_size, 3);
    upload_file_close(f);
    assert_int_equal(truncate(data, 2), 0);
    open_file(root, 0, &f);
    assert_int_equal(upload_file_offset(f), 0);
    expect_hash(f, "");
    upload_file_close(f);
}

static void test_gone(void **state)
{
    const char *root = *state;
    struct upload_file *f = NULL;
    struct err err = {0};
    assert_int_equal(upload_file_open(root, "u1", &known, 0, &f, &err), ERR_NOT_FOUND);
    assert_int_equal(upload_remove(root, "u1", NULL), 0);
    open_file(root, UPLOAD_FILE_NEW, &f);
    upload_file_close(f);
    struct strv ids = {0};
    assert_int_equal(upload_list(root, &ids, NULL), 0);
    assert_int_equal(ids.n, 1);
    assert_string_equal(ids.v[0], "u1");
    strv_release(&ids);
    assert_int_equal(upload_remove(root, "u1", NULL), 0);
    assert_int_equal(upload_list(root, &ids, NULL), 0);
    assert_int_equal(ids.n, 0);
    assert_true(upload_remove(root, "../x", NULL) < 0);
}

/* An empty mount point gets no bytes, and a link in the place of the data is not followed. */
static void test_hostile(void **state)
{
    const char *root = *state;
    struct upload_file *f = NULL;
    struct err err = {0};
    _cleanup_(freep) char *other = xasprintf("%s/hf", root);
    assert_int_equal(upload_file_open(other, "u1", &known, UPLOAD_FILE_NEW, &f, &err),
                     ERR_UNAVAILABLE);
    open_file(root, UPLOAD_FILE_NEW, &f);
    upload_file_close(f);
    _cleanup_(freep) char *path = upload_path(root, "u1");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(upload_file_open(root, "u1", &known, UPLOAD_FILE_NEW, &f, &err),
                     ERR_UNAVAILABLE);
}

/* A FIFO in the place of the data holds nobody, and is not even opened. */
static void test_a_pipe_is_not_opened(void **state)
{
    const char *root = *state;
    struct upload_file *f = NULL;
    struct err err = {0};
    open_file(root, UPLOAD_FILE_NEW, &f);
    upload_file_close(f);
    _cleanup_(freep) char *path = upload_path(root, "u1");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(upload_file_open(root, "u1", &known, UPLOAD_FILE_NEW, &f, &err),
                     ERR_UNAVAILABLE);
}

static int set_up(void **state)
{
    upload_progress_init(&known);
    if (root_setup(state) < 0)
        return -1;
    return fsroot_prepare(*state, NULL);
}

/* What came before is kept where it cannot be looked at for a moment. */
static void test_a_failed_look_cuts_nothing(void **state)
{
    const char *root = *state;
    struct upload_file *f = NULL;
    struct err err;
    open_file(root, UPLOAD_FILE_NEW, &f);
    add(f, "abc");
    upload_settle(f);
    upload_file_close(f);
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"data", look_errors[i], 0, false};
        assert_int_equal(upload_file_open(root, "u1", &known, 0, &f, &err), ERR_UNAVAILABLE);
        look_broken.name = ".shared-root";
        assert_int_equal(upload_file_open(root, "u1", &known, UPLOAD_FILE_NEW, &f, &err),
                         ERR_UNAVAILABLE);
        assert_string_equal(err.message, "shared_root_unavailable");
        assert_non_null(strstr(err.args, "\"root_unseen\""));
    }
    look_broken = (struct look_broken){0};
    open_file(root, 0, &f);
    assert_int_equal(upload_file_offset(f), 3);
    expect_hash(f, "abc");
    upload_file_close(f);
}

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_cuts_nothing, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_in_one_go, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_killed, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_tampered, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_a_pipe_is_not_opened, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_gone, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_hostile, set_up, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
