/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of command.c: what a target may be, and what the real ssh makes of the words (-G
 * prints the configuration that it would use, and connects to nobody). */
#include "ssh/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/str.h"
#include "base/unit_dir.h"

static struct ssh_target good(void)
{
    return (struct ssh_target){
        .name = "n1", .host = "10.0.0.1", .known_hosts = "/tmp/k h%o", .control_dir = "/tmp/c d%r"};
}

static int words_of(const struct ssh_target *t, struct strv *words, struct err *err)
{
    return command_words(t, false, words, err);
}

/* argv's whole output; its exit status must be 0. */
static char *output_of(const struct strv *words, int in)
{
    int p[2], status = 0;
    struct child c;
    struct err err = {0};
    struct buf out = BUF_INIT(1 << 20);
    char part[4096];
    ssize_t n;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    struct child_spec spec = {
        .argv = (const char *const *)words->v, .in = in, .out = p[1], .err = 2};
    if (child_start(&spec, &c, &err) < 0)
        fail_msg("%s", err.text);
    close(p[1]);
    while ((n = read(p[0], part, sizeof(part))) > 0)
        assert_int_equal(buf_add(&out, part, (size_t)n), 0);
    close(p[0]);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_int_equal(status, 0);
    closep(&c.pidfd);
    return buf_take(&out);
}

/* What ssh understood. */
static char *understood(const struct ssh_target *t)
{
    _cleanup_(strv_release) struct strv words = {0};
    _cleanup_(strv_release) struct strv asked = {0};
    struct err err = {0};
    if (words_of(t, &words, &err) < 0)
        fail_msg("%s", err.text);
    strv_add(&asked, words.v[0]);
    strv_add(&asked, "-G");
    for (size_t i = 1; i < words.n; i++)
        strv_add(&asked, words.v[i]);
    return output_of(&asked, -1);
}

static bool has_line(const char *text, const char *line)
{
    _cleanup_(freep) char *whole = xasprintf("\n%s\n", line);
    _cleanup_(freep) char *all = xasprintf("\n%s", text);
    return strstr(all, whole) != NULL;
}

static void test_ssh_understands(void **state)
{
    (void)state;
    struct ssh_target t = good();
    t.user = "ray";
    t.port = 2222;
    t.identity_file = "/tmp/i d%u";
    _cleanup_(freep) char *got = understood(&t);
    static const char *const lines[] = {
        "user ray",
        "port 2222",
        "hostname 10.0.0.1",
        "batchmode yes",
        "stricthostkeychecking accept-new",
        "hostkeyalias argus-n1",
        "userknownhostsfile /tmp/k h%o",
        "controlmaster auto",
        "controlpersist 60",
        "updatehostkeys false",
        "permitlocalcommand no",
    };
    for (size_t i = 0; i < array_len(lines); i++)
        if (!has_line(got, lines[i]))
            fail_msg("no '%s' in %s", lines[i], got);
    assert_non_null(strstr(got, "\ncontrolpath /tmp/c d%r/"));
    assert_non_null(strstr(got, "\nidentityfile \"/tmp/i d%%u\"\n") ? got
                                                                    : strstr(got, "/tmp/i d%"));
}

static void test_pinned_is_strict(void **state)
{
    (void)state;
    struct ssh_target t = good();
    _cleanup_(strv_release) struct strv words = {0};
    assert_int_equal(command_words(&t, true, &words, NULL), 0);
    assert_true(strv_has(&words, "StrictHostKeyChecking=yes"));
    assert_false(strv_has(&words, "StrictHostKeyChecking=accept-new"));
}

/* The line goes through a real shell, after ssh's %-expansion was done by hand. */
static void test_jump_line_survives_its_shell(void **state)
{
    _cleanup_(freep) char *bin = xasprintf("%s/bin", (char *)*state);
    put(*state, "bin/ssh", "#!/bin/sh\nfor w; do printf '%s\\n' \"$w\"; done\n");
    _cleanup_(freep) char *path = xasprintf("%s/ssh", bin);
    assert_int_equal(chmod(path, 0755), 0);
    struct ssh_target t = good();
    t.proxy_jump = "a,u@b:23";
    t.identity_file = "/tmp/it's";
    _cleanup_(strv_release) struct strv words = {0};
    assert_int_equal(words_of(&t, &words, NULL), 0);
    const char *line = NULL;
    for (size_t i = 0; i < words.n; i++)
        if (str_starts(words.v[i], "ProxyCommand="))
            line = words.v[i] + strlen("ProxyCommand=");
    assert_non_null(line);
    struct buf once = BUF_INIT(16 << 10); /* as ssh does: %% is %, %h and %p are the host's */
    for (const char *p = line; *p; p++) {
        if (*p == '%' && (p++, *p) != '%')
            assert_int_equal(buf_adds(&once, *p == 'h' ? "HOST" : "PORT"), 0);
        else
            assert_int_equal(buf_addc(&once, *p), 0);
    }
    _cleanup_(strv_release) struct strv sh = {0};
    strv_add(&sh, "/bin/sh");
    strv_add(&sh, "-c");
    strv_addf(&sh, "PATH=%s:$PATH; %s", bin, buf_str(&once));
    _cleanup_(freep) char *got = output_of(&sh, -1);
    buf_release(&once);
    assert_true(has_line(got, "-J") && has_line(got, "a"));
    assert_true(has_line(got, "ssh://u@b:23"));
    assert_true(has_line(got, "[HOST]:PORT"));
    assert_true(has_line(got, "UserKnownHostsFile=\"/tmp/k h%%o\""));
    assert_true(has_line(got, "IdentityFile=\"/tmp/it's\""));
    assert_true(has_line(got, "BatchMode=yes"));
}

static void test_one_socket_for_each_way(void **state)
{
    (void)state;
    struct ssh_target a = good(), b = good();
    _cleanup_(strv_release) struct strv wa = {0};
    _cleanup_(strv_release) struct strv wb = {0};
    b.port = 23;
    assert_int_equal(words_of(&a, &wa, NULL), 0);
    assert_int_equal(command_master(&b, "exit", &wb, NULL), 0);
    const char *pa = NULL, *pb = NULL;
    for (size_t i = 0; i < wa.n; i++)
        pa = str_starts(wa.v[i], "ControlPath=") ? wa.v[i] : pa;
    for (size_t i = 0; i < wb.n; i++)
        pb = str_starts(wb.v[i], "ControlPath=") ? wb.v[i] : pb;
    assert_string_not_equal(pa, pb);
    strv_release(&wb);
    assert_int_equal(command_master(&a, "exit", &wb, NULL), 0);
    for (size_t i = 0; i < wb.n; i++)
        pb = str_starts(wb.v[i], "ControlPath=") ? wb.v[i] : pb;
    assert_string_equal(pa, pb);
}

static void refuse(struct ssh_target t, const char *quoted)
{
    _cleanup_(strv_release) struct strv words = {0};
    struct err err = {0};
    assert_true(words_of(&t, &words, &err) < 0);
    if (!strstr(err.text, quoted))
        fail_msg("no '%s' in: %s", quoted, err.text);
    assert_int_equal(words.n, 0);
}

static void test_refused_targets(void **state)
{
    (void)state;
    struct ssh_target t = good();
#define BAD(field, value, quoted)                                                                  \
    t = good();                                                                                    \
    t.field = value;                                                                               \
    refuse(t, quoted)
    BAD(name, "", "name of a node");
    BAD(name, "a b", "'a b'");
    BAD(name, NULL, "name of a node");
    BAD(host, NULL, "no host name");
    BAD(host, "-oProxyCommand=x", "-oProxyCommand");
    BAD(host, "h;reboot", "h;reboot");
    BAD(host, "h`id`", "h`id`");
    BAD(user, "a b", "'a b'");
    BAD(user, "-x", "'-x'");
    BAD(user, "$(id)", "$(id)");
    BAD(proxy_jump, "a b", "'a b'");
    BAD(port, -1, "-1");
    BAD(port, 65536, "65536");
    BAD(known_hosts, NULL, "no place");
    BAD(known_hosts, "/a\"b", "known_hosts");
    BAD(known_hosts, "/${HOME}/x", "known_hosts");
    BAD(identity_file, "/a\nb", "identity_file");
    BAD(control_dir, "/1234567890/1234567890/1234567890/1234567890/1234567890/1234567890/12345678",
        "too long");
#undef BAD
}

/* What sh -s makes of it. */
static char *run_script(const char *script, const char *const *argv)
{
    struct buf b = BUF_INIT(SSH_SCRIPT_MAX);
    struct err err = {0};
    if (command_script(script, argv, "MARK", &b, &err) < 0)
        fail_msg("%s", err.text);
    int fd = memfd_create("script", MFD_CLOEXEC);
    assert_int_equal(file_write_all(fd, buf_str(&b), b.len), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    _cleanup_(strv_release) struct strv sh = {0};
    strv_add(&sh, "/bin/sh");
    strv_add(&sh, "-s");
    char *out = output_of(&sh, fd);
    close(fd);
    buf_release(&b);
    return out;
}

static void test_script(void **state)
{
    (void)state;
    char bytes[256];
    for (int i = 1; i < 256; i++)
        bytes[i - 1] = (char)i;
    bytes[255] = 0;
    const char *argv[] = {bytes, "", "two words", "it's", NULL};
    _cleanup_(freep) char *got = run_script("printf '%s|' \"$@\"\ncat\nexit 3", argv);
    _cleanup_(freep) char *want = xasprintf("\nMARK\n%s||two words|it's|\nMARK 3\n", bytes);
    assert_string_equal(got, want);
    _cleanup_(freep) char *none = run_script("echo \"$#\"", NULL);
    assert_string_equal(none, "\nMARK\n0\n\nMARK 0\n");
}

static void test_cut_script_runs_nothing(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(SSH_SCRIPT_MAX);
    assert_int_equal(command_script("echo first\necho second", NULL, "MARK", &b, NULL), 0);
    char *cut = strstr(b.data, "second");
    int fd = memfd_create("script", MFD_CLOEXEC);
    assert_int_equal(file_write_all(fd, b.data, (size_t)(cut - b.data)), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    _cleanup_(strv_release) struct strv sh = {0};
    strv_add(&sh, "/bin/sh");
    strv_add(&sh, "-c");
    strv_add(&sh, "sh -s 2>&1; echo over");
    _cleanup_(freep) char *out = output_of(&sh, fd);
    close(fd);
    buf_release(&b);
    assert_null(strstr(out, "first"));
    assert_non_null(strstr(out, "over"));
}

static void test_script_too_large(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(64);
    struct err err = {0};
    assert_int_equal(
        command_script("echo 0123456789012345678901234567890123456789", NULL, "MARK", &b, &err),
        ERR_TOO_LARGE);
    buf_release(&b);
}

static void test_control_dir(void **state)
{
    char dir[SSH_DIR_MAX], again[SSH_DIR_MAX];
    struct err err = {0};
    _cleanup_(freep) char *want = xasprintf("%s/ssh", (char *)*state);
    assert_int_equal(ssh_control_dir(*state, dir, NULL), 0);
    assert_string_equal(dir, want);
    assert_int_equal(mode_of(*state, "ssh"), 0700);
    _cleanup_(freep) char *deep = xasprintf("%s/%064d", (char *)*state, 0);
    assert_int_equal(ssh_control_dir(deep, dir, NULL), 0);
    assert_int_equal(ssh_control_dir(deep, again, NULL), 0);
    assert_string_equal(dir, again);
    assert_true(str_starts(dir, "/tmp/argus-ssh-"));
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(symlink("/tmp", dir), 0);
    assert_int_equal(ssh_control_dir(deep, again, &err), -EPERM);
    assert_string_equal(err.message, "ssh_dir_anothers");
    assert_int_equal(unlink(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ssh_understands),
        cmocka_unit_test(test_pinned_is_strict),
        cmocka_unit_test_setup_teardown(test_jump_line_survives_its_shell, root_setup,
                                        root_teardown),
        cmocka_unit_test(test_one_socket_for_each_way),
        cmocka_unit_test(test_refused_targets),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_cut_script_runs_nothing),
        cmocka_unit_test(test_script_too_large),
        cmocka_unit_test_setup_teardown(test_control_dir, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
