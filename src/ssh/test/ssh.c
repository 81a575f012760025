/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of ssh.c: calls on this machine, and calls through an `ssh` that is a script of the
 * test. The real client meets the real sshd in tests/ssh. */
#include "ssh/ssh.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest/hash.h"
#include "base/unit_dir.h"
#include "base/unit_message.h"

struct world {
    uv_loop_t loop;
    char *root, *path;
    struct ssh_target t;
    int calls;
    struct ssh_result r;
    char *out;
};

static void on_result(const struct ssh_result *r, void *arg)
{
    struct world *w = arg;
    w->calls++;
    w->r = *r;
    free(w->out);
    w->out = xmalloc(r->out_len + 1);
    memcpy(w->out, r->out, r->out_len + 1);
}

static void call(struct world *w, const char *script, const char *const *argv, usec_t limit)
{
    (void)ssh_run(&w->loop, &w->t, script, argv, limit, on_result, w); /* it ends by itself */
    assert_int_equal(w->calls, 0);
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(w->calls, 1);
    w->calls = 0;
}

/* From now on this is `ssh`. "$*" has the words that it got. */
static void fake_ssh(struct world *w, const char *script)
{
    _cleanup_(freep) char *text = xasprintf("#!/bin/sh\n%s\n", script);
    put(w->root, "bin/ssh", text);
    _cleanup_(freep) char *file = xasprintf("%s/bin/ssh", w->root);
    assert_int_equal(chmod(file, 0755), 0);
    _cleanup_(freep) char *path = xasprintf("%s/bin:%s", w->root, w->path);
    assert_int_equal(setenv("PATH", path, 1), 0);
    w->t.local = false;
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    if (root_setup((void **)&w->root) < 0)
        return -1;
    w->path = xstrdup(getenv("PATH"));
    w->t = (struct ssh_target){
        .name = "n1", .host = "10.0.0.1", .control_dir = w->root, .local = true};
    w->t.known_hosts = xasprintf("%s/known_hosts", w->root);
    *state = w;
    return uv_loop_init(&w->loop);
}

static int teardown(void **state)
{
    struct world *w = *state;
    int r = uv_loop_close(&w->loop);
    r |= setenv("PATH", w->path, 1);
    r |= root_teardown((void **)&w->root);
    free(w->path);
    free((char *)(uintptr_t)w->t.known_hosts);
    free(w->out);
    free(w);
    return r;
}

static void test_here(void **state)
{
    struct world *w = *state;
    const char *argv[] = {"a b", "'", NULL};
    call(w, "printf '%s,' \"$@\"; exit 255", argv, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_OK);
    assert_int_equal(w->r.status, 255);
    assert_string_equal(w->out, "a b,',");
    assert_true(w->r.heard_after > 0);
    assert_string_equal(w->r.text, "");
}

static void test_our_environment_stays_here(void **state)
{
    struct world *w = *state;
    assert_int_equal(setenv("ARGUS_TEST_SECRET", "x", 1), 0);
    call(w, "env | grep -c ARGUS_TEST_SECRET; echo \"$HOME\"", NULL, USEC_MIN);
    _cleanup_(freep) char *want = xasprintf("0\n%s\n", getenv("HOME") ? getenv("HOME") : "");
    assert_string_equal(w->out, want);
    assert_int_equal(unsetenv("ARGUS_TEST_SECRET"), 0);
}

static void test_there_with_noise(void **state)
{
    struct world *w = *state;
    fake_ssh(w, "printf 'Welcome!\\nno newline'; sh -s; echo bye; exit 0");
    call(w, "echo word; exit 4", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_OK);
    assert_int_equal(w->r.status, 4);
    assert_string_equal(w->out, "word\n");
}

static void test_words_of_ssh(void **state)
{
    struct world *w = *state;
    fake_ssh(w, "for last; do :; done; echo \"$*\" > \"${0%/bin/ssh}/words\"; exec sh -s");
    call(w, "true", NULL, USEC_MIN);
    _cleanup_(freep) char *words = get(w->root, "words");
    assert_non_null(strstr(words, " -- 10.0.0.1 exec sh -s\n"));
    assert_non_null(strstr(words, "StrictHostKeyChecking=accept-new"));
    put(w->root, "known_hosts", "argus-n1 ssh-ed25519 AAAA\n");
    call(w, "true", NULL, USEC_MIN);
    _cleanup_(freep) char *strict = get(w->root, "words");
    assert_non_null(strstr(strict, "StrictHostKeyChecking=yes"));
}

static void test_ssh_gives_up(void **state)
{
    struct world *w = *state;
    fake_ssh(w, "echo 'x@h: Permission denied (publickey).' >&2; exit 255");
    call(w, "true", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_REFUSED);
    assert_int_equal(w->r.status, -1);
    assert_string_equal(w->out, "");
    fake_ssh(w,
             "cat >/dev/null; echo 'connect to host h port 22: Connection refused' >&2; exit 255");
    call(w, "true", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_UNREACHABLE);
}

static void test_connection_breaks(void **state)
{
    struct world *w = *state;
    fake_ssh(w, "sh -s | head -n 3; echo 'Connection to h closed by remote host.' >&2; exit 255");
    call(w, "echo one; echo two; sleep 0", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_UNREACHABLE);
    assert_non_null(strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text),
                           "the connection to 'n1' broke"));
    assert_string_equal(w->out, "one\n"); /* what came until then */
    assert_true(w->r.heard_after > 0);
}

static void test_no_shell_there(void **state)
{
    struct world *w = *state;
    fake_ssh(w, "echo 'This account is currently not available.'; exit 1");
    call(w, "true", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_FAILED);
    assert_non_null(strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text),
                           "currently not available"));
}

static void test_shell_killed(void **state)
{
    struct world *w = *state;
    call(w, "kill -9 $$", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_FAILED);
    assert_non_null(strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text), "signal 9"));
}

static void test_deadline(void **state)
{
    struct world *w = *state;
    call(w, "echo begun; sleep 600", NULL, 300 * USEC_MS);
    assert_int_equal(w->r.trouble, SSH_TIMEOUT);
    assert_non_null(
        strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text), "did not finish"));
    assert_string_equal(w->out, "begun\n");
    fake_ssh(w, "case $* in *exit*) exit 0;; esac; sleep 600");
    call(w, "true", NULL, 300 * USEC_MS);
    assert_int_equal(w->r.trouble, SSH_TIMEOUT);
    assert_non_null(
        strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text), "did not answer"));
}

static void test_no_client(void **state)
{
    struct world *w = *state;
    w->t.local = false;
    assert_int_equal(setenv("PATH", w->root, 1), 0);
    call(w, "true", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_NO_CLIENT);
    assert_non_null(strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text), "'ssh'"));
}

static void test_unusable_target(void **state)
{
    struct world *w = *state;
    fake_ssh(w, "exec sh -s");
    w->t.host = "-bad";
    call(w, "true", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_FAILED);
    assert_non_null(strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text), "'-bad'"));
    ssh_call_free(ssh_run(&w->loop, &w->t, "true", NULL, 0, on_result, w));
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(w->calls, 0);
}

static void test_cancelled(void **state)
{
    struct world *w = *state;
    ssh_call_free(NULL);
    ssh_call_free(ssh_run(&w->loop, &w->t, "sleep 600", NULL, 0, on_result, w));
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(w->calls, 0);
}

static void test_too_loud(void **state)
{
    struct world *w = *state;
    call(w, "yes", NULL, USEC_MIN);
    assert_int_equal(w->r.trouble, SSH_FAILED);
    assert_non_null(
        strstr(unit_said(ssh_trouble_to_string(w->r.trouble), w->r.text), "printed more than"));
}

/* A mark that was cut off behind its number, or that the script prints itself, is no end. */
static void test_bytes_are_exact(void **state)
{
    struct world *w = *state;
    call(w, "printf 'a\\0b\\n\\n'", NULL, USEC_MIN);
    assert_int_equal(w->r.out_len, 5);
    assert_memory_equal(w->out, "a\0b\n\n", 6);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        T(test_here),
        T(test_our_environment_stays_here),
        T(test_there_with_noise),
        T(test_words_of_ssh),
        T(test_ssh_gives_up),
        T(test_connection_breaks),
        T(test_no_shell_there),
        T(test_shell_killed),
        T(test_deadline),
        T(test_no_client),
        T(test_unusable_target),
        T(test_cancelled),
        T(test_too_loud),
        T(test_bytes_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
