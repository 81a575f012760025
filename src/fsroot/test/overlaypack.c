/* SPDX-License-Identifier: Apache-2.0 */
/* The packages of a notebook as a tar: what is in it, what is left out, and what jobs may have put
 * there instead. */
#define _GNU_SOURCE
#include "fsroot/archive/overlaypack.h"

#include <errno.h>
#include <fcntl.h>

#include "base/str.h"
#include "base/unit_dir.h"
#include "fsroot/content/unpack.h"
#include "fsroot/content/upload.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/root.h"

#define OWN "users/alice/.argus/"
#define SITE OWN "overlay-0123456789ab/lib/python3.11/site-packages/"
#define UPLOAD_ID "z0123"

static int overlay_setup(void **state)
{
    if (root_setup(state) || fsroot_prepare(*state, NULL))
        return -1;
    const char *root = *state;
    put(root, OWN "notebooks/main/overlay", "overlay-0123456789ab python3.11\n");
    put(root, SITE "_environment.pth", "/usr/lib/python3\n");
    put(root, SITE "cowsay/__init__.py", "MOO = 1\n");
    put(root, SITE "cowsay/__pycache__/__init__.pyc", "x");
    put(root, SITE "cowsay-6.1.dist-info/METADATA", "Name: something else\n");
    put(root, SITE "two_words-1.0+cu121.dist-info/RECORD", "");
    put(root, SITE "pip/__init__.py", "");
    put(root, SITE "pip-24.0.dist-info/METADATA", "");
    put(root, SITE "od;d-1.dist-info/METADATA", "");
    return 0;
}

static int overlay_teardown(void **state)
{
    int r = dirtree_remove(*state, NULL);
    free(*state);
    return r;
}

static int overlay_write(const char *root, struct overlaypack_made *made, struct err *err)
{
    const struct overlaypack o = {.root = root,
                                  .user = "alice",
                                  .notebook = "main",
                                  .upload = UPLOAD_ID,
                                  .limits = {.bytes = 1 << 20, .entries = 1000}};
    return overlaypack_write(&o, made, err);
}

/* What a snapshot would be made of, below "out". */
static void overlay_unpack(const char *root, struct manifest *ret)
{
    struct err err = {0};
    _cleanup_(freep) char *tar = upload_path(root, UPLOAD_ID);
    _cleanup_(freep) char *out = xasprintf("%s/out", root);
    assert_int_equal(mkdir(out, 0755), 0);
    _cleanup_(closep) int fd = open(tar, O_RDONLY | O_CLOEXEC);
    _cleanup_(closep) int tree = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0 && tree >= 0);
    if (unpack_archive(fd, tree, true, &unpack_default_limits, ret, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_what_is_kept(void **state)
{
    struct overlaypack_made made = {0};
    struct manifest m = {0};
    struct err err = {0};
    if (overlay_write(*state, &made, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(made.packages, 2);
    assert_string_equal(made.environment, "0123456789ab");
    overlay_unpack(*state, &m);
    manifest_release(&m);
    assert_text(*state, "out/argus-packages.txt", "cowsay==6.1\ntwo_words==1.0+cu121\n");
    assert_text(*state, "out/argus-environment.json",
                "{\"environment\": \"0123456789ab\", \"python\": \"python3.11\"}\n");
    assert_text(*state, "out/cowsay/__init__.py", "MOO = 1\n");
    assert_text(*state, "out/cowsay-6.1.dist-info/METADATA", "Name: something else\n");
    static const char *const left_out[] = {"_environment.pth", "pip", "pip-24.0.dist-info",
                                           "cowsay/__pycache__"};
    for (size_t i = 0; i < array_len(left_out); i++) {
        _cleanup_(freep) char *path = xasprintf("%s/out/%s", (char *)*state, left_out[i]);
        assert_false(file_is_there(path));
    }
}

static void test_where_nothing_is_kept(void **state)
{
    struct overlaypack_made made = {0};
    struct err err = {0};
    static const char *const bad[] = {
        "",
        "overlay-0123456789ab\n",
        "overlay-0123456789AB python3.11\n",
        "overlay-0123456789ab python3.\n",
        "overlay-0123456789ab ../../bob\n",
        "../../../bob/.argus/overlay-0123456789ab python3.11\n",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        put(*state, OWN "notebooks/main/overlay", bad[i]);
        assert_int_equal(overlay_write(*state, &made, &err), ERR_CONFLICT);
        assert_string_equal(err.message, "freeze_no_overlay");
    }
    put(*state, OWN "overlay-00000000000a/lib/python3.11/site-packages/pip/x.py", "");
    put(*state, OWN "notebooks/main/overlay", "overlay-00000000000a python3.11\n");
    assert_int_equal(overlay_write(*state, &made, &err), ERR_CONFLICT);
    assert_string_equal(err.message, "freeze_nothing");
}

/* A job made the directory of packages a link to somebody else's files. */
static void test_no_link_is_followed(void **state)
{
    struct overlaypack_made made = {0};
    struct err err = {0};
    const char *root = *state;
    put(root, "users/bob/secret-1.dist-info/key", "bob's");
    _cleanup_(freep) char *site = xasprintf("%s/" SITE "inner", root);
    _cleanup_(freep) char *lib = xasprintf("%s/" OWN "overlay-00000000000b/lib/python3.11", root);
    _cleanup_(freep) char *swapped = xasprintf("%s/site-packages", lib);
    assert_int_equal(symlink("../../../../../../bob", site), 0);
    assert_int_equal(overlay_write(root, &made, &err), 0);
    struct manifest m = {0};
    overlay_unpack(root, &m);
    manifest_release(&m);
    _cleanup_(freep) char *inner = xasprintf("%s/out/inner", root);
    assert_false(file_is_there(inner));
    assert_int_equal(file_mkdirs(lib, 0755, NULL), 0);
    assert_int_equal(symlink("../../../../../bob", swapped), 0);
    put(root, OWN "notebooks/main/overlay", "overlay-00000000000b python3.11\n");
    assert_true(overlay_write(root, &made, &err) < 0);
}

static void test_limits(void **state)
{
    struct overlaypack_made made = {0};
    struct err err = {0};
    const char *root = *state;
    _cleanup_(freep) char *first = xasprintf("%s/" SITE "cowsay/__init__.py", root);
    _cleanup_(freep) char *second = xasprintf("%s/" SITE "cowsay/again.py", root);
    assert_int_equal(link(first, second), 0);
    assert_int_equal(overlay_write(root, &made, &err), ERR_REFUSED);
    assert_string_equal(err.message, "freeze_two_names");
    assert_int_equal(unlink(second), 0);
    assert_int_equal(truncate(first, 2 << 20), 0);
    assert_int_equal(overlay_write(root, &made, &err), ERR_REFUSED);
    assert_string_equal(err.message, "pack_too_large");
}

int main(void)
{
#define WITH_OVERLAY(f) cmocka_unit_test_setup_teardown(f, overlay_setup, overlay_teardown)
    const struct CMUnitTest tests[] = {
        WITH_OVERLAY(test_what_is_kept),
        WITH_OVERLAY(test_where_nothing_is_kept),
        WITH_OVERLAY(test_no_link_is_followed),
        WITH_OVERLAY(test_limits),
    };
    hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
