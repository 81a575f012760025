/* SPDX-License-Identifier: Apache-2.0 */
/* The shared root: there or not, its directories, paths that may not leave it. */
#define _GNU_SOURCE
#include "fsroot/tree/root.h"
#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/attempt/install.h"
#include "fsroot/look/verlversion.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/sweep.h"

#include <errno.h>
#include <sys/utsname.h>

static void test_check(void **state)
{
    const char *root = *state;
    struct fsroot_status s;
    struct err err;
    assert_int_equal(fsroot_check(root, clock_mono, &s, &err), 0);
    assert_true(s.free_bytes > 0 && s.total_bytes >= s.free_bytes);
    assert_true(s.write_took > 0);
    assert_false(s.prepared);
    assert_int_equal(fsroot_prepare(root, &err), 0);
    assert_int_equal(fsroot_check(root, clock_mono, &s, &err), 0);
    assert_true(s.prepared);
    _cleanup_(freep) char *gone = xasprintf("%s/gone", root);
    assert_int_equal(fsroot_check(gone, clock_mono, &s, &err), -ENOENT);
    assert_non_null(strstr(err.text, "does not exist: mount it"));
    put(root, "file", "");
    _cleanup_(freep) char *file = xasprintf("%s/file", root);
    assert_int_equal(fsroot_check(file, clock_mono, &s, &err), -ENOTDIR);
    assert_int_equal(fsroot_check("/proc", clock_mono, &s, &err),
                     -ENOENT); /* where nothing can be made */
    assert_non_null(strstr(err.text, "cannot be written"));
}

static void test_prepare(void **state)
{
    static const char *const dirs[] = {
        "common/datasets", "common/models", "common/code",  "users",        "hf", "jobs",
        "argus/bin",       "argus/hook",    "argus/backup", "argus/archive"};
    const char *root = *state;
    for (int twice = 0; twice < 2; twice++)
        assert_int_equal(fsroot_prepare(root, NULL), 0);
    for (size_t i = 0; i < array_len(dirs); i++)
        assert_int_equal(mode_of(root, dirs[i]) & 0755, 0755);
    assert_int_equal(mode_of(root, "common/datasets"), 0777);
    assert_int_equal(mode_of(root, "hf"), 0777);
    assert_int_equal(fsroot_user_prepare(root, "alice", NULL), 0);
    assert_int_equal(mode_of(root, "users/alice/code"), 0755);
    assert_int_equal(fsroot_user_prepare(root, "../x", NULL), -EINVAL);
    assert_int_equal(fsroot_check_mounted(root, NULL), 0);
    assert_int_equal(fsroot_user_prepare(root, "", NULL), -EINVAL);
}

static void assert_version(const char *root, const char *sub, const char *want)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, sub);
    _cleanup_(freep) char *got = NULL;
    assert_int_equal(fsroot_verl_version(root, path, &got, NULL), 0);
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
}

static void test_verl_version(void **state)
{
    const char *root = *state;
    put(root, "tree/verl/version/version", "0.5.0.dev\n\n");
    assert_version(root, "tree", "0.5.0.dev");
    put(root, "venv/lib/python3.11/site-packages/verl/version/version", " 0.9.1 ");
    put(root, "venv/bin/python", "");
    assert_version(root, "venv/bin/python", "0.9.1");
    assert_version(root, "venv/bin/python3", "0.9.1");
    assert_version(root, "venv", NULL);
    assert_version(root, "none", NULL);
    put(root, "odd/verl/version/version", "0.5;rm\n");
    assert_version(root, "odd", NULL);
    put(root, "empty/verl/version/version", "\n");
    assert_version(root, "empty", NULL);
    char big[200];
    memset(big, '1', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    put(root, "big/verl/version/version", big);
    assert_version(root, "big", NULL);
}

static void test_names_and_entrypoint(void **state)
{
    (void)state;
    assert_true(fsroot_is_name("my-run-7.a_b"));
    const char *const bad[] = {"", ".", "..", ".x", "a/b", "a\nb", "a\\b"};
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(fsroot_is_name(bad[i]));
    _cleanup_(buf_release) struct buf out = BUF_INIT(4096);
    fsroot_entrypoint(&out, "/it's here", "j", 2);
    assert_string_equal(buf_str(&out), "exec '/it'\\''s here/argus/bin/'$(uname -m)/argus-shepherd "
                                       "'/it'\\''s here/jobs/j/attempts/2'");
}

static void test_install(void **state)
{
    const char *root = *state;
    struct err err;
    _cleanup_(freep) char *hook = xasprintf("%s/src", root);
    _cleanup_(freep) char *text = xasprintf("%s/src/sitecustomize.py", root);
    put(root, "src/sitecustomize.py", "pass\n");
    assert_int_equal(fsroot_prepare(root, NULL), 0);
    assert_int_equal(fsroot_install(root, text, hook, &err), -ENOEXEC);
    assert_non_null(strstr(err.text, "not a 64-bit ELF program"));
    assert_int_equal(fsroot_install(root, "/proc/self/exe", hook, &err), 2);
    assert_int_equal(fsroot_install(root, "/proc/self/exe", hook, &err), 0);
    struct utsname here;
    assert_int_equal(uname(&here), 0);
    _cleanup_(freep) char *binary = xasprintf("argus/bin/%s/argus-shepherd", here.machine);
    _cleanup_(freep) char *previous = xasprintf("%s.previous", binary);
    assert_int_equal(mode_of(root, binary), 0755);
    assert_null(get(root, previous));
    assert_int_equal(fsroot_install(root, "/bin/true", hook, &err), 1);
    assert_int_equal(mode_of(root, previous), 0755); /* running shepherds keep theirs */
    assert_text(root, "argus/hook/sitecustomize.py", "pass\n");
    assert_text(root, "argus/hook/__pycache__", "");
    put(root, "src/sitecustomize.py", "pass # new\n");
    assert_int_equal(fsroot_install(root, "/bin/true", hook, &err), 1);
    assert_text(root, "argus/hook/sitecustomize.py", "pass # new\n");
    assert_int_equal(fsroot_install(root, "/no/such", hook, &err), -ENOENT);
    put(root, "src/sitecustomize.py", "import sys\n\nfrom argus_say import _argus_quiet\n");
    assert_int_equal(fsroot_install(root, "/bin/true", hook, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "/src/sitecustomize.py' is one of the sources of the hook"));
    assert_text(root, "argus/hook/sitecustomize.py", "pass # new\n");
}

static void test_sweep(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *mine = xasprintf("%s/users/a/d/x", root);
    _cleanup_(freep) char *through = xasprintf("%s/users/b/d/x", root);
    _cleanup_(freep) char *link = xasprintf("%s/users/b", root);
    _cleanup_(freep) char *up = xasprintf("%s/users/a/..", root);
    put(root, "users/a/d/x/1/deep/file", "1");
    put(root, "users/a/d/y", "2");
    assert_int_equal(symlink("a", link), 0);
    assert_true(fsroot_sweep(root, through, NULL) < 0); /* another's, by a link of one's own */
    assert_text(root, "users/a/d/x/1/deep/file", "1");
    assert_int_equal(fsroot_sweep(root, mine, NULL), 0);
    assert_null(get(root, "users/a/d/x/1/deep/file"));
    assert_text(root, "users/a/d/y", "2");
    assert_int_equal(fsroot_sweep(root, mine, NULL), 0);
    assert_int_equal(fsroot_sweep(root, "/etc/passwd", NULL), -EINVAL);
    assert_int_equal(fsroot_sweep(root, up, NULL), -EINVAL);
    assert_int_equal(fsroot_sweep(root, root, NULL), -EINVAL);
}

static void test_install_lib(void **state)
{
    const char *root = *state;
    struct fsroot_file files[] = {{"a.py", "pass\n", 5}, {"b.py", "", 0}};
    assert_int_equal(fsroot_install_lib(root, files, 2, NULL), 2);
    assert_int_equal(fsroot_install_lib(root, files, 2, NULL), 0);
    files[1] = (struct fsroot_file){"b.py", "new", 3};
    assert_int_equal(fsroot_install_lib(root, files, 2, NULL), 1);
    assert_text(root, "argus/lib/a.py", "pass\n");
    assert_text(root, "argus/lib/b.py", "new");
    assert_text(root, "argus/lib/__pycache__", "");
}

static void test_a_failed_look_is_no_empty_root(void **state)
{
    const char *root = *state;
    struct fsroot_status s;
    struct err err;
    assert_int_equal(fsroot_prepare(root, NULL), 0);
    put(root, "argus/.shared-root", "as it was");
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){".shared-root", look_errors[i], 0, false};
        assert_int_equal(fsroot_check(root, clock_mono, &s, &err), -look_errors[i]);
        assert_string_equal(err.message, "root_unseen");
        assert_non_null(strstr(err.text, strerror(look_errors[i])));
        assert_int_equal(fsroot_check_mounted(root, &err), -look_errors[i]);
        assert_null(strstr(err.text, "empty"));
        assert_int_equal(fsroot_user_prepare(root, "bob", &err), -look_errors[i]);
        assert_int_equal(fsroot_prepare(root, &err), -look_errors[i]);
    }
    look_broken = (struct look_broken){".shared-root", ENOENT, 0, false};
    assert_int_equal(fsroot_check(root, clock_mono, &s, &err), 0);
    assert_false(s.prepared);
    assert_int_equal(fsroot_check_mounted(root, &err), -ENOENT);
    assert_non_null(strstr(err.text, "is empty now: mount it"));
    look_broken = (struct look_broken){0};
    assert_text(root, "argus/.shared-root", "as it was");
}

static void test_a_failed_look_is_no_other_verl(void **state)
{
    static const int unseen[] = {ESTALE, EIO, EMFILE};
    static const int answers[] = {ENOENT, EACCES}; /* there is none that argusd may read */
    const char *root = *state;
    struct err err;
    put(root, "tree/verl/version/version", "0.5.0\n");
    put(root, "venv/lib/python3.11/site-packages/verl/version/version", "0.9.1");
    put(root, "venv/bin/python", "");
    _cleanup_(freep) char *tree = xasprintf("%s/tree", root);
    _cleanup_(freep) char *python = xasprintf("%s/venv/bin/python", root);
    char *got = NULL;
    for (size_t i = 0; i < array_len(unseen); i++) {
        look_broken = (struct look_broken){"version", unseen[i], 0, false};
        assert_int_equal(fsroot_verl_version(root, tree, &got, &err), -unseen[i]);
        assert_non_null(strstr(err.text, strerror(unseen[i])));
        assert_int_equal(fsroot_verl_version(root, python, &got, &err), -unseen[i]);
        look_broken.name = "lib";
        assert_int_equal(fsroot_verl_version(root, python, &got, &err), -unseen[i]);
        assert_null(got);
    }
    for (size_t i = 0; i < array_len(answers); i++) {
        look_broken = (struct look_broken){"version", answers[i], 0, false};
        assert_version(root, "tree", NULL);
        assert_version(root, "venv/bin/python", NULL);
    }
    look_broken = (struct look_broken){0};
    assert_version(root, "tree", "0.5.0");
}

/* The one before stays the previous one, and nothing is written into what cannot be looked at. */
static void test_a_failed_look_replaces_no_program(void **state)
{
    static const int unseen[] = {ESTALE, EIO, EMFILE};
    const char *root = *state;
    struct utsname here;
    assert_int_equal(uname(&here), 0);
    _cleanup_(freep) char *hook = xasprintf("%s/src", root);
    _cleanup_(freep) char *previous =
        xasprintf("argus/bin/%s/argus-shepherd.previous", here.machine);
    put(root, "src/sitecustomize.py", "pass\n");
    assert_int_equal(fsroot_prepare(root, NULL), 0);
    assert_int_equal(fsroot_install(root, "/proc/self/exe", hook, NULL), 2);
    for (size_t i = 0; i < array_len(unseen); i++) {
        look_broken = (struct look_broken){"argus-shepherd", unseen[i], 0, false};
        assert_int_equal(fsroot_install(root, "/proc/self/exe", hook, NULL), -unseen[i]);
        look_broken.name = "__pycache__";
        assert_int_equal(fsroot_install(root, "/proc/self/exe", hook, NULL), -unseen[i]);
    }
    look_broken = (struct look_broken){0};
    assert_null(get(root, previous));
    assert_int_equal(fsroot_install(root, "/proc/self/exe", hook, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_is_no_empty_root, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_look_is_no_other_verl, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_look_replaces_no_program, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_check, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_prepare, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_verl_version, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_install, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_sweep, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_install_lib, root_setup, root_teardown),
        cmocka_unit_test(test_names_and_entrypoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
