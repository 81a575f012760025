/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of hostkey.c: fingerprints as ssh-keygen -l prints them, lines taken out. */
#include <errno.h>
#include <string.h>

#include "base/unit_dir.h"
#include "ssh/ssh.h"

static const char one[] =
    "argus-n1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGRZ5qcA5NSPaGSOOpLS9a1WWwVEPU91J1kbZOEnUBmw\n";
static const char other[] =
    "argus-n10 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGRZ5qcA5NSPaGSOOpLS9a1W\n";
static const char print_of_one[] = "SHA256:vdz1POVdDibmnJlO1CuzrJeEl3TYrSPYlf5axggJV6s";

static void test_find(void **state)
{
    (void)state;
    char key[SSH_KEY_MAX];
    ssh_find_key(one, strlen(one), "n1", key);
    assert_string_equal(key, print_of_one);
    static const char *const none[] = {
        "",
        "\n\n",
        "argus-n10 ssh-ed25519 AAAA\n",
        "argus-n1",
        "argus-n1 ssh-ed25519",
        "argus-n1 ssh-ed25519 !\n",
        "# argus-n1 ssh-ed25519 AAAA\n",
    };
    for (size_t i = 0; i < array_len(none); i++) {
        ssh_find_key(none[i], strlen(none[i]), "n1", key);
        assert_string_equal(key, "");
    }
}

static void test_forget(void **state)
{
    char key[SSH_KEY_MAX];
    _cleanup_(freep) char *text = xasprintf("%s%s%s# end", other, one, one);
    put(*state, "known", text);
    _cleanup_(freep) char *path = xasprintf("%s/known", (char *)*state);
    struct ssh_target t = {.name = "n1", .known_hosts = path};
    assert_int_equal(ssh_pinned_key(&t, key, NULL), 0);
    assert_string_equal(key, print_of_one);
    assert_int_equal(ssh_forget_key(&t, NULL), 0);
    _cleanup_(freep) char *rest = xasprintf("%s# end", other);
    assert_text(*state, "known", rest);
    assert_int_equal(mode_of(*state, "known"), 0600);
    assert_int_equal(ssh_pinned_key(&t, key, NULL), 0);
    assert_string_equal(key, "");
    assert_int_equal(ssh_forget_key(&t, NULL), 0);
}

static void test_no_file(void **state)
{
    char key[SSH_KEY_MAX] = "x";
    _cleanup_(freep) char *path = xasprintf("%s/none", (char *)*state);
    struct ssh_target t = {.name = "n1", .known_hosts = path};
    assert_int_equal(ssh_pinned_key(&t, key, NULL), 0);
    assert_string_equal(key, "");
    assert_int_equal(ssh_forget_key(&t, NULL), 0);
    assert_false(file_is_there(path));
    t.known_hosts = *state; /* no regular file */
    struct err err = {0};
    assert_true(ssh_pinned_key(&t, key, &err) < 0);
    assert_true(err.text[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test_setup_teardown(test_forget, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_no_file, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
