/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of trouble.c: the OpenSSH client's own sentences. */
#include "ssh/trouble.h"

#include <string.h>

#include "base/unit.h"
#include "base/unit_message.h"

static const struct ssh_target target = {.name = "n1",
                                         .host = "10.0.0.1",
                                         .user = "ray",
                                         .port = 2222};

static struct ssh_result read_text(const char *errs)
{
    struct ssh_result r = {0};
    trouble_read(errs, strlen(errs), &target, "SHA256:old", &r);
    return r;
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(ssh_trouble_to_string(SSH_OK), "ok");
    assert_string_equal(ssh_trouble_to_string(SSH_FAILED), "ssh_failed");
}

static void test_meanings(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        enum ssh_trouble trouble;
    } rows[] = {
        {"ssh: connect to host 10.0.0.1 port 22: Connection refused\r\n", SSH_UNREACHABLE},
        {"ssh: connect to host 10.0.0.1 port 22: No route to host\r\n", SSH_UNREACHABLE},
        {"ssh: connect to host 10.0.0.1 port 22: Connection timed out\r\n", SSH_UNREACHABLE},
        {"ssh: Could not resolve hostname x: Name or service not known\r\n", SSH_UNREACHABLE},
        {"kex_exchange_identification: read: Connection reset by peer\r\n", SSH_UNREACHABLE},
        {"Connection closed by 10.0.0.1 port 22\r\n", SSH_UNREACHABLE},
        {"Timeout, server 10.0.0.1 not responding.\r\n", SSH_UNREACHABLE},
        {"root@10.0.0.1: Permission denied (publickey).\r\n", SSH_REFUSED},
        {"Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures\r\n",
         SSH_REFUSED},
        {"No ED25519 host key is known for argus-n1 and you have requested strict checking.\r\n"
         "Host key verification failed.\r\n",
         SSH_HOST_KEY_CHANGED},
        {"Bad owner or permissions on ~/.ssh/config\r\n", SSH_FAILED},
        {"something that nobody ever saw\r\n", SSH_FAILED},
        {"", SSH_FAILED},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct ssh_result r = read_text(rows[i].said);
        assert_int_equal(r.trouble, rows[i].trouble);
        assert_non_null(strstr(unit_said(ssh_trouble_to_string(r.trouble), r.text), "'n1'"));
        assert_true(unit_fix(ssh_trouble_to_string(r.trouble), r.text)[0]);
    }
}

static void test_a_key_that_is_not_there_is_told(void **state)
{
    (void)state;
    static const char said[] = "root@10.0.0.1: Permission denied (publickey).\r\n";
    struct ssh_target t = target;
    struct ssh_result r = {0};
    t.identity_file = "/none/of/ours";
    trouble_read(said, strlen(said), &t, "", &r);
    assert_int_equal(r.trouble, SSH_REFUSED);
    assert_string_equal(
        unit_said(ssh_trouble_to_string(r.trouble), r.text),
        "'n1' refuses us: the key '/none/of/ours' cannot be read: No such file or directory");
    assert_non_null(strstr(unit_fix(ssh_trouble_to_string(r.trouble), r.text), "identity_file"));
}

static void test_sentences_quote_ssh(void **state)
{
    (void)state;
    struct ssh_result r =
        read_text("motd\nssh: connect to host h port 22: Connection refused\r\n\n");
    assert_string_equal(unit_said(ssh_trouble_to_string(r.trouble), r.text),
                        "'n1' cannot be reached: connect to host h port 22: Connection refused");
    assert_non_null(
        strstr(unit_fix(ssh_trouble_to_string(r.trouble), r.text), "ssh -p 2222 ray@10.0.0.1"));
}

static void test_the_jumps_own_complaint(void **state)
{
    (void)state;
    struct ssh_result r =
        read_text("ssh: connect to host jump port 1: Connection refused\r\n"
                  "kex_exchange_identification: Connection closed by remote host\r\n"
                  "Connection closed by UNKNOWN port 65535\r\n");
    assert_string_equal(unit_said(ssh_trouble_to_string(r.trouble), r.text),
                        "'n1' cannot be reached: connect to host jump port 1: Connection refused");
}

static void test_changed_key_shows_both(void **state)
{
    (void)state;
    struct ssh_result r = read_text(
        "@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@\n"
        "The fingerprint for the ED25519 key sent by the remote host is\nSHA256:new+/key.\n"
        "Host key verification failed.\n");
    assert_int_equal(r.trouble, SSH_HOST_KEY_CHANGED);
    assert_non_null(strstr(unit_said(ssh_trouble_to_string(r.trouble), r.text),
                           "pinned SHA256:old, shown now SHA256:new+/key)"));
    assert_non_null(strstr(unit_fix(ssh_trouble_to_string(r.trouble), r.text),
                           "argus node check n1 --accept-key"));
}

static void test_nothing_unprintable(void **state)
{
    (void)state;
    struct ssh_result r = read_text("a\033[31m\x01 Connection refused\xff\n");
    for (const char *p = r.text; *p; p++)
        assert_true(*p >= 0x20 && *p < 0x7f);
}

static void test_last_line(void **state)
{
    (void)state;
    char line[8];
    assert_string_equal(trouble_last_line("one\ntwo\n---\n\n", 13, line, sizeof(line)), "two");
    assert_string_equal(trouble_last_line("much too long", 13, line, sizeof(line)), "much to");
    assert_string_equal(trouble_last_line("", 0, line, sizeof(line)), "");
    assert_string_equal(trouble_last_line("\n12\n", 4, line, sizeof(line)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_meanings),
        cmocka_unit_test(test_a_key_that_is_not_there_is_told),
        cmocka_unit_test(test_sentences_quote_ssh),
        cmocka_unit_test(test_the_jumps_own_complaint),
        cmocka_unit_test(test_changed_key_shows_both),
        cmocka_unit_test(test_nothing_unprintable),
        cmocka_unit_test(test_last_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
