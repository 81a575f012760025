/* SPDX-License-Identifier: Apache-2.0 */
/* Every call on a root whose directories and files are links to what lies outside of it. */
#define _GNU_SOURCE
#include "fsroot/tree/rootdir.h"
#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/tree/rootfile.h"

#include <errno.h>
#include <fcntl.h>

/* *state is a directory with root/ and outside/ in it; outside/secret is what nobody may touch. */
static int set_up(void **state)
{
    if (root_setup(state) < 0)
        return -1;
    put(*state, "outside/secret", "key");
    put(*state, "root/jobs/j/real", "text");
    return 0;
}

static char *root_of(void **state)
{
    return xasprintf("%s/root", (const char *)*state);
}

static void link_in(void **state, const char *name, const char *text)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", (const char *)*state, name);
    assert_int_equal(symlink(text, path), 0);
}

/* Nothing came into outside/, and what is in it is as it was. */
static void expect_untouched(void **state)
{
    _cleanup_(freep) char *path = xasprintf("%s/outside", (const char *)*state);
    int n = 0;
    DIR *d = opendir(path);
    while (readdir(d))
        n++;
    closedir(d);
    assert_int_equal(n, 3); /* with "." and ".." */
    assert_text(*state, "outside/secret", "key");
    assert_int_equal(mode_of(*state, "outside/secret"), 0644);
    assert_int_equal(mode_of(*state, "outside"), 0755);
}

static void test_makes_what_is_missing(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(freep) char *whole = xasprintf("%s/users/a/code", root);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE, e = ROOTDIR_NONE;
    struct err err = {0};
    mode_t old = umask(077);
    assert_int_equal(rootdir_open(root, "users/a", 0, &d, &err), -ENOENT);
    assert_int_equal(rootdir_open(root, whole, 0775, &d, &err), 0);
    umask(old);
    assert_int_equal(mode_of(root, "users"), 0775);
    assert_int_equal(mode_of(root, "users/a/code"), 0775);
    assert_int_equal(rootdir_make_new(&d, "n", 0700, &e, &err), 0);
    assert_int_equal(mode_of(root, "users/a/code/n"), 0700);
    rootdir_release(&e);
    assert_int_equal(rootdir_make_new(&d, "n", 0700, &e, &err), -EEXIST);
    assert_int_equal(rootdir_open(root, *state, 0, &e, &err), -EXDEV);
    assert_int_equal(rootdir_open(root, "users/../..", 0755, &e, &err), -ELOOP);
    assert_int_equal(rootdir_open(root, "none/../../x", 0755, &e, &err), -ELOOP);
    assert_int_equal(rootdir_open("/nowhere", "users", 0755, &e, &err), -EIO);
}

static void test_no_directory_by_a_link(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE, jobs = ROOTDIR_NONE;
    struct err err = {0};
    link_in(state, "root/jobs/out", "../../outside");
    link_in(state, "root/jobs/inside", "j");
    put(root, "jobs/file", "x");
    assert_int_equal(rootdir_open(root, "jobs/out", 0, &d, &err), -ELOOP);
    assert_int_equal(rootdir_open(root, "jobs/out/new", 0755, &d, &err), -ELOOP);
    assert_int_equal(rootdir_open(root, "jobs/inside", 0755, &d, &err), -ELOOP);
    assert_int_equal(rootdir_open(root, "jobs/file", 0755, &d, &err), -ENOTDIR);
    assert_int_equal(rootdir_open(root, "jobs/file/x", 0755, &d, &err), -ENOTDIR);
    assert_int_equal(rootdir_open(root, "jobs", 0, &jobs, &err), 0);
    assert_int_equal(rootdir_make_new(&jobs, "out", 0755, &d, &err), -EEXIST);
    assert_int_equal(rootdir_open_in(&jobs, "out", 0755, &d, &err), -ELOOP);
    assert_int_equal(rootfile_write(root, "jobs/out/f", 0755, "x", 1, 0644, 0, &err), -ELOOP);
    assert_int_equal(rootfile_symlink(root, "jobs/out/f", 0755, "x", &err), -ELOOP);
    bool is_there = false;
    assert_int_equal(rootfile_look_for(root, "jobs/out/secret", &is_there, &err), -ELOOP);
    expect_untouched(state);
}

static void test_no_file_by_a_link(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    _cleanup_(buf_release) struct buf text = BUF_INIT(100);
    _cleanup_(buf_release) struct buf small = BUF_INIT(2);
    struct err err = {0};
    link_in(state, "root/jobs/j/out", "../../../outside/secret");
    assert_int_equal(rootdir_open(root, "jobs/j", 0, &d, &err), 0);
    assert_int_equal(mkfifoat(d.fd, "pipe", 0600), 0);
    assert_int_equal(rootdir_read(&d, "out", &text, &err), -ELOOP);
    assert_int_equal(rootdir_append(&d, "out", "x", 1, &err), -ELOOP);
    assert_int_equal(rootdir_chmod(&d, "out", 0666, &err), -ELOOP);
    assert_int_equal(rootdir_read(&d, "pipe", &text, &err), -EINVAL);
    assert_int_equal(rootdir_read(&d, "real/x", &text, &err), -ENOENT);
    assert_int_equal(rootdir_read(&d, "../j/real", &text, &err), -ELOOP);
    assert_int_equal(rootdir_read(&d, "real", &small, &err), -EMSGSIZE);
    assert_int_equal(text.len, 0);
    assert_int_equal(rootfile_read(root, "jobs/j/real", &text, &err), 0);
    assert_string_equal(buf_str(&text), "text");
    bool is_there = false;
    assert_int_equal(rootdir_look_for(&d, "out", &is_there, &err), 0);
    assert_true(is_there);
    expect_untouched(state);
}

/* What stands under the temporary name, or under the name itself, is replaced and not opened. */
static void test_writing_replaces_links(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    _cleanup_(freep) char *tmp = xasprintf("root/jobs/j/.f.%d.tmp", (int)gettid());
    struct err err = {0};
    link_in(state, "root/jobs/j/f", "../../../outside/secret");
    link_in(state, tmp, "../../../outside/secret");
    assert_int_equal(rootdir_open(root, "jobs/j", 0, &d, &err), 0);
    assert_int_equal(rootdir_write(&d, "f", "new", 3, 0640, FILE_SYNC, &err), 0);
    assert_text(root, "jobs/j/f", "new");
    assert_int_equal(mode_of(root, "jobs/j/f"), 0640);
    assert_int_equal(mkfifoat(d.fd, strrchr(tmp, '/') + 1, 0600), 0);
    assert_int_equal(rootdir_write(&d, "f", "pipe", 4, 0644, 0, &err), 0);
    assert_text(root, "jobs/j/f", "pipe");
    link_in(state, tmp, "../../../outside");
    assert_int_equal(rootdir_symlink(&d, "l", "f", &err), 0);
    assert_int_equal(rootdir_symlink(&d, "l", "f", &err), 0);
    assert_text(root, "jobs/j/l", "pipe");
    expect_untouched(state);
}

static void test_names_are_one_part(void **state)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "../j", "/x"};
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE, e = ROOTDIR_NONE;
    struct stat st;
    assert_int_equal(rootdir_open(root, "jobs/j", 0, &d, NULL), 0);
    for (size_t i = 0; i < array_len(bad); i++) {
        assert_int_equal(rootdir_write(&d, bad[i], "", 0, 0644, 0, NULL), -EINVAL);
        assert_int_equal(rootdir_append(&d, bad[i], "", 0, NULL), -EINVAL);
        assert_int_equal(rootdir_symlink(&d, bad[i], "x", NULL), -EINVAL);
        assert_int_equal(rootdir_link(&d, "real", &d, bad[i], NULL), -EINVAL);
        assert_int_equal(rootdir_rename(&d, "real", &d, bad[i], 0, NULL), -EINVAL);
        assert_int_equal(rootdir_rename(&d, bad[i], &d, "x", 0, NULL), -EINVAL);
        assert_int_equal(rootdir_chmod(&d, bad[i], 0644, NULL), -EINVAL);
        assert_int_equal(rootdir_unlink(&d, bad[i], NULL), -EINVAL);
        assert_int_equal(rootdir_make_new(&d, bad[i], 0755, &e, NULL), -EINVAL);
        assert_int_equal(rootdir_look(&d, bad[i], &st), -EINVAL);
    }
    assert_text(root, "jobs/j/real", "text");
}

static void test_renaming_and_names(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    struct err err = {0};
    DIR *list = NULL;
    int n = 0;
    assert_int_equal(rootdir_open(root, "jobs/j", 0, &d, &err), 0);
    assert_int_equal(rootdir_chmod(&d, "real", 0600, &err), 0);
    assert_int_equal(mode_of(root, "jobs/j/real"), 0600);
    assert_int_equal(rootdir_link(&d, "real", &d, "second", &err), 0);
    assert_int_equal(rootdir_chmod(&d, "real", 0644, &err), -EPERM);
    assert_int_equal(rootdir_rename(&d, "real", &d, "second", ROOTDIR_NEW, &err), -EEXIST);
    assert_int_equal(rootdir_unlink(&d, "second", &err), 0);
    assert_int_equal(rootdir_unlink(&d, "second", &err), 0);
    assert_int_equal(rootdir_rename(&d, "real", &d, "third", ROOTDIR_NEW, &err), 0);
    assert_int_equal(rootdir_append(&d, "third", " and more", 9, &err), 0);
    assert_text(root, "jobs/j/third", "text and more");
    assert_int_equal(rootdir_list(&d, &list, &err), 0);
    while (readdir(list))
        n++;
    closedir(list);
    assert_int_equal(n, 3);
}

/* Users link to what lies elsewhere on the root; off the root nothing is opened. */
static void test_links_that_stay(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(freep) char *absolute = xasprintf("%s/jobs/j/real", root);
    _cleanup_(freep) char *outside = xasprintf("%s/outside/secret", (const char *)*state);
    struct err err = {0};
    link_in(state, "root/jobs/near", "j");
    link_in(state, "root/jobs/j/far", absolute);
    link_in(state, "root/jobs/j/out", "../../../outside/secret");
    static const char *const good[] = {"jobs/near/real", "jobs/j/far", "jobs/near/far"};
    for (size_t i = 0; i < array_len(good); i++) {
        _cleanup_(closep) int fd = rootfile_open_followed(root, good[i], O_RDONLY, &err);
        assert_true(fd >= 0);
    }
    assert_int_equal(rootfile_open_followed(root, "jobs/near/out", O_RDONLY, &err), -EXDEV);
    assert_int_equal(rootfile_open_followed(root, outside, O_RDONLY, &err), -EXDEV);
    assert_int_equal(rootfile_open_followed(root, "jobs/none", O_RDONLY, &err), -ENOENT);
}

static void expect_real(const struct rootdir *d, const char *below, int want, const char *text)
{
    char *real = NULL;
    int fd = rootdir_open_followed(d, below, O_PATH, &real);
    assert_int_equal(fd < 0 ? fd : 0, want);
    if (text)
        assert_string_equal(real, text);
    else
        assert_null(real);
    free(real);
    closep(&fd);
}

/* A link off the root is told by its text, whether or not anything is there. */
static void test_where_links_lead(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(freep) char *real_root = realpath(root, NULL);
    _cleanup_(freep) char *other = xasprintf("%s/other", (const char *)*state);
    _cleanup_(freep) char *far = xasprintf("%s/jobs/j", real_root);
    _cleanup_(freep) char *sly = xasprintf("%s/../outside/secret", other);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    link_in(state, "other", "root");
    link_in(state, "root/jobs/near", "./j");
    link_in(state, "root/jobs/far", far);
    link_in(state, "root/jobs/j/up", "../near/real");
    link_in(state, "root/top", other);
    link_in(state, "root/out", "/nowhere/at/all");
    link_in(state, "root/sly", sly);
    link_in(state, "root/deep", "jobs/../../outside");
    link_in(state, "root/circle", "circle");
    assert_int_equal(rootdir_open(other, "", 0, &d, NULL), 0);
    expect_real(&d, "jobs/j/real", 0, "jobs/j/real");
    expect_real(&d, "jobs/near/real", 0, "jobs/j/real");
    expect_real(&d, "jobs/far/up", 0, "jobs/j/real"); /* by the real path of the root */
    expect_real(&d, "top/jobs/near", 0, "jobs/j");    /* and by the other one */
    expect_real(&d, "top", 0, "");
    expect_real(&d, "out", -EXDEV, "/nowhere/at/all");
    expect_real(&d, "out/further", -EXDEV, "/nowhere/at/all");
    expect_real(&d, "sly", -EXDEV, sly);
    expect_real(&d, "deep/secret", -EXDEV, "jobs/../../outside");
    expect_real(&d, "circle", -ELOOP, NULL);
    expect_real(&d, "jobs/near/none", -ENOENT, NULL);
}

static void test_files_for_writing(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    struct err err = {0};
    link_in(state, "root/jobs/j/out", "../../../outside/secret");
    assert_int_equal(rootdir_open(root, "jobs/j", 0, &d, &err), 0);
    _cleanup_(closep) int fd = rootdir_open_for(&d, "new", O_WRONLY | O_CREAT, 0600, &err);
    assert_true(fd >= 0);
    assert_int_equal(rootdir_open_for(&d, "new", O_WRONLY | O_CREAT | O_EXCL, 0600, &err), -EEXIST);
    assert_int_equal(rootdir_open_for(&d, "out", O_WRONLY | O_CREAT, 0600, &err), -ELOOP);
    assert_int_equal(rootdir_open_for(&d, "none", O_RDWR, 0600, &err), -ENOENT);
    assert_int_equal(rootdir_open_for(&d, "a/b", O_RDWR | O_CREAT, 0600, &err), -EINVAL);
    expect_untouched(state);
}

/* "absent" is said where a name or a directory on the way is missing, and for no other failure. */
static void test_a_failed_look_is_no_absence(void **state)
{
    _cleanup_(freep) char *root = root_of(state);
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    struct err err;
    bool is_there = true;
    assert_int_equal(rootdir_open(root, "jobs/j", 0, &d, NULL), 0);
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"real", look_errors[i], 0, false};
        assert_int_equal(rootdir_look_for(&d, "real", &is_there, &err), -look_errors[i]);
        assert_int_equal(rootfile_look_for(root, "jobs/j/real", &is_there, &err), -look_errors[i]);
        assert_non_null(strstr(err.text, strerror(look_errors[i])));
        look_broken.name = "j"; /* the directory on the way */
        assert_int_equal(rootfile_look_for(root, "jobs/j/real", &is_there, &err), -look_errors[i]);
        assert_true(is_there);
    }
    look_broken = (struct look_broken){"j", ENOENT, 0, false};
    assert_int_equal(rootfile_look_for(root, "jobs/j/real", &is_there, &err), 0);
    assert_false(is_there);
    look_broken = (struct look_broken){0};
    assert_int_equal(rootfile_look_for(root, "jobs/j/real", &is_there, &err), 0);
    assert_true(is_there);
    assert_int_equal(rootfile_look_for(root, "jobs/j/real/below", &is_there, &err), 0);
    assert_false(is_there);
    assert_int_equal(rootfile_look_for("/no/such/root", "x", &is_there, &err), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_is_no_absence, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_makes_what_is_missing, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_no_directory_by_a_link, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_no_file_by_a_link, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_writing_replaces_links, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_names_are_one_part, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_renaming_and_names, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_links_that_stay, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_where_links_lead, set_up, root_teardown),
        cmocka_unit_test_setup_teardown(test_files_for_writing, set_up, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
