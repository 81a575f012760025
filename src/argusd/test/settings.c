/* SPDX-License-Identifier: Apache-2.0 */
/* argus.yaml: defaults, every problem at once with its place, keys that must go together. */
#include "argusd/ground/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/text.h"
#include "base/unit.h"

/* Loads the text from a file; what was wrong goes to said. */
static int load(const char *text, struct settings *s, struct buf *said)
{
    char path[] = "/tmp/argus-settings-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    struct problems ps = {0};
    int r = settings_load(path, s, &ps);
    problems_to_text(&ps, "argus.yaml", MESSAGE_ENGLISH, said);
    problems_release(&ps);
    assert_int_equal(unlink(path), 0);
    return r;
}

static void expect(const char *text, int r, const char *part)
{
    struct settings s = {0};
    struct buf said = BUF_INIT(1 << 16);
    assert_int_equal(load(text, &s, &said), r);
    if (!strstr(buf_str(&said), part))
        fail_msg("'%s' is not in: %s", part, buf_str(&said));
    buf_release(&said);
    settings_release(&s);
}

static void test_defaults(void **state)
{
    (void)state;
    struct settings s = {0};
    struct buf said = BUF_INIT(1 << 16);
    assert_int_equal(load("shared_root: /mnt/shared\n", &s, &said), 0);
    assert_string_equal(buf_str(&said), "");
    assert_string_equal(s.shared_root, "/mnt/shared");
    assert_string_equal(s.listen, "127.0.0.1:8080");
    assert_string_equal(s.ray_address, "http://127.0.0.1:8265");
    assert_string_equal(pairs_find(&s.entrypoint_resources, "worker_node"), "1");
    assert_int_equal(s.start_deadline, 15 * USEC_MIN);
    assert_string_equal(s.text, "shared_root: /mnt/shared\n");
    buf_release(&said);
    settings_release(&s);
}

static void test_every_problem_at_once(void **state)
{
    (void)state;
    const char *text = "shared_rot: /mnt/shared\n"
                       "ray:\n"
                       "  head: {port: 99999}\n"
                       "policy: random\n";
    expect(text, -EINVAL, "argus.yaml:1:1: error: 'shared_rot'");
    expect(text, -EINVAL, "'shared_root'");
    expect(text, -EINVAL, "argus.yaml:3:16: error: 'ray.head.port'");
    expect(text, -EINVAL, "argus.yaml:4:9: error: 'policy'");
}

static void test_keys_that_go_together(void **state)
{
    (void)state;
    expect("shared_root: mnt\n", -EINVAL, "absolute");
    expect("shared_root: /m\naddress: http://a:1\nray: {address: http://b:1}\n", -EINVAL, "both");
    expect("shared_root: /m\nray: {address: 'a:8265'}\n", -EINVAL, "URL");
    expect("shared_root: /m\nray: {auth: token}\n", -EINVAL, "auth_token_file");
    expect("shared_root: /m\nray: {networks: [10.0.0.0/33]}\n", -EINVAL, "10.0.0.0/33");
    expect("shared_root: /m\nray: {networks: [10.0.0.0/8]}\n", 0, "");
    expect("shared_root: /m\nlisten: localhost\n", -EINVAL, "HOST:PORT");
    expect("shared_root: /m\ntls: {cert: /a.pem}\n", -EINVAL, "TLS");
    expect("shared_root: /m\nentrypoint_resources: {worker_node: much}\n", -EINVAL, "number");
    expect("shared_root: /m\nlisten: 0.0.0.0:8080\n", 0, "warning: 'listen'");
    expect("shared_root: /m\nuser_code_path: /common\n", 0, "warning: 'user_code_path'");
    expect("shared_root: /m\naddress: http://a:1\n", 0, "");
}

/* By the code that opens the socket, asks Ray, and starts ssh. */
static void test_what_the_start_refuses(void **state)
{
    static const struct {
        const char *listen, *part; /* NULL: it is taken */
    } listens[] = {
        {"127.0.0.1:8470", NULL},
        {"'[::1]:8470'", NULL},
        {"localhost:8470", "write 127.0.0.1:8470"},
        {"'::1:8470'", "write [::1]:8470"},
        {"'*:8470'", "write 0.0.0.0:8470"},
        {"':8470'", "write 0.0.0.0:8470"},
        {"argus.example.org:8470", "not the IP address"},
        {"127.0.0.1:http", "not an address to listen on"},
        {"127.0.0.1:70000", "not an address to listen on"},
        {"'[127.0.0.1]:8470'", "not the IP address"},
        {"'[::1'", "not the IP address"},
    };
    static const char *const addresses[] = {"http://::1:8265",   "http://",    "ftp://a:1",
                                            "http://u:p@a:8265", "http://a:b", "a:8265"};
    static const char *const indexes[] = {
        "m.example.org/simple", "ftp://m",   "https://", "https:///simple",
        "https://u:p@m/simple", "http://a b"};
    static const char *const hosts[][2] = {
        {"10.0.0.9:6379", "write 'host: 10.0.0.9' and 'port: 6379'"},
        {"'[fd00::9]'", "write 'host: fd00::9'"},
        {"'[fd00::9]:22'", "write 'host: fd00::9' and 'port: 22'"},
        {"a b", "does not accept"},
    };
    char text[200];
    (void)state;
    for (size_t i = 0; i < array_len(listens); i++) {
        text_printf(text, "shared_root: /m\nlisten: %s\n", listens[i].listen);
        expect(text, listens[i].part ? -EINVAL : 0, str_or(listens[i].part, ""));
        text_printf(text, "shared_root: /m\nnotebooks: {url: 'http://n:1', listen: %s}\n",
                    listens[i].listen);
        expect(text, listens[i].part ? -EINVAL : 0, str_or(listens[i].part, ""));
    }
    for (size_t i = 0; i < array_len(addresses); i++) {
        text_printf(text, "shared_root: /m\nray: {address: '%s'}\n", addresses[i]);
        expect(text, -EINVAL, "error: 'ray.address'");
    }
    for (size_t i = 0; i < array_len(indexes); i++) {
        text_printf(text, "shared_root: /m\nnotebooks: {pip_index_url: '%s'}\n", indexes[i]);
        expect(text, -EINVAL, "error: 'notebooks.pip_index_url'");
    }
    expect("shared_root: /m\nnotebooks: {pip_index_url: 'https://m.example.org/simple', "
           "pip_trusted_host: 'm.example.org:8443'}\n",
           0, "");
    expect(
        "shared_root: /m\nnotebooks: {pip_index_url: 'https://m.example.org/feed@view/simple'}\n",
        0, "");
    expect("shared_root: /m\nnotebooks: {running_per_user: 0, running_per_project: 9}\n", 0, "");
    expect("shared_root: /m\nnotebooks: {running_per_user: 51}\n", -EINVAL,
           "error: 'notebooks.running_per_user'");
    expect("shared_root: /m\nremedies: {stray_process: off, raylet: on}\n", 0, "");
    expect("shared_root: /m\nremedies: {raylet: maybe}\n", -EINVAL, "error: 'remedies.raylet'");
    expect("shared_root: /m\nnotebooks: {pip_trusted_host: '--index-url'}\n", -EINVAL,
           "error: 'notebooks.pip_trusted_host'");
    expect("shared_root: /m\nray: {address: 'http://[::1]:8265'}\n", 0, "");
    for (size_t i = 0; i < array_len(hosts); i++) {
        text_printf(text, "shared_root: /m\nray: {head: {managed: true, host: %s}}\n", hosts[i][0]);
        expect(text, -EINVAL, hosts[i][1]);
    }
    expect("shared_root: /m\nray: {address: 'http://[fd00::9]:8265', "
           "head: {managed: true, host: 'fd00::9'}}\n",
           0, "");
    expect("shared_root: /m\ntls: {cert: /nowhere/a.pem, key: /nowhere/b.pem}\n", -EINVAL,
           "/nowhere/a.pem");
}

static void test_no_such_file(void **state)
{
    (void)state;
    struct settings s = {0};
    struct problems ps = {0};
    assert_int_equal(settings_load("/nonexistent/argus.yaml", &s, &ps), -ENOENT);
    assert_int_equal(ps.errors, 1);
    problems_release(&ps);
    settings_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_problem_at_once),
        cmocka_unit_test(test_keys_that_go_together),
        cmocka_unit_test(test_what_the_start_refuses),
        cmocka_unit_test(test_no_such_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
