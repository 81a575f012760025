/* SPDX-License-Identifier: Apache-2.0 */
/* The client's file: written whole and private, read back, and what goes before it. */
#include "argus/net/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/unit.h"

static int setup(void **state)
{
    char dir[] = "/tmp/argus-settings-XXXXXX";
    assert_non_null(mkdtemp(dir));
    assert_int_equal(setenv("XDG_CONFIG_HOME", dir, 1), 0);
    unsetenv("ARGUS_URL");
    unsetenv("ARGUS_TOKEN");
    *state = xstrdup(dir);
    return 0;
}

static int teardown(void **state)
{
    char *path = settings_path(), *folder = xasprintf("%s/argus", (char *)*state);
    (void)unlink(path); /* not every test writes it */
    (void)rmdir(folder);
    assert_int_equal(rmdir(*state), 0); /* and nothing else was left */
    free(path);
    free(folder);
    free(*state);
    return 0;
}

static void save(const char *server, const char *token)
{
    char *path = settings_path();
    struct settings s = {.server = xstrdup(server), .token = token ? xstrdup(token) : NULL};
    assert_int_equal(settings_save(&s, path, NULL), 0);
    settings_release(&s);
    free(path);
}

static void test_round_trip(void **state)
{
    struct stat st;
    save("https://argus.example:8443", "t\"o: #k\\en");
    char *path = settings_path();
    assert_true(str_starts(path, *state));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct settings s = {0};
    assert_int_equal(settings_load(&s, NULL), 0);
    assert_string_equal(s.server, "https://argus.example:8443");
    assert_string_equal(s.token, "t\"o: #k\\en");
    assert_null(s.ca);
    settings_release(&s);
    save("http://127.0.0.1:1", NULL); /* replaces */
    assert_int_equal(settings_load(&s, NULL), 0);
    assert_string_equal(s.server, "http://127.0.0.1:1");
    assert_null(s.token);
    settings_release(&s);
    free(path);
}

static void test_environment_goes_before(void **state)
{
    (void)state;
    struct settings s = {0};
    assert_int_equal(settings_load(&s, NULL), 0);
    assert_string_equal(s.server, "http://127.0.0.1:8080");
    settings_release(&s);
    save("http://127.0.0.1:1", "mine");
    assert_int_equal(setenv("ARGUS_URL", "http://127.0.0.1:1/", 1), 0);
    assert_int_equal(settings_load(&s, NULL), 0);
    assert_string_equal(s.token, "mine"); /* the same server */
    settings_release(&s);
    assert_int_equal(setenv("ARGUS_URL", "http://127.0.0.1:2", 1), 0);
    assert_int_equal(settings_load(&s, NULL), 0);
    assert_null(s.token); /* another one never gets it */
    settings_release(&s);
    assert_int_equal(setenv("ARGUS_TOKEN", "other", 1), 0);
    assert_int_equal(settings_load(&s, NULL), 0);
    assert_string_equal(s.token, "other");
    settings_release(&s);
}

static void test_broken_file_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"server: [", "servr: http://a", "server: ftp://a", "- a"};
    char *path = settings_path();
    for (size_t i = 0; i < array_len(bad); i++) {
        struct settings s = {0};
        struct err err = {0};
        assert_int_equal(file_write_private(path, bad[i], strlen(bad[i]), NULL), 0);
        assert_int_equal(settings_load(&s, &err), ERR_USAGE);
        assert_true(*err.text);
        assert_null(s.server);
    }
    free(path);
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "x",          "ftp://x",
                                      "http://",    "http:///",   "http://a b",
                                      "http://u@h", "http://h?x", "http://:1"};
    char *url = NULL;
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(settings_tidy_url(bad[i], &url, NULL), ERR_USAGE);
    assert_int_equal(settings_tidy_url("http://h:1//", &url, NULL), 0);
    assert_string_equal(url, "http://h:1");
    free(url);
    assert_true(settings_url_is_private("https://h"));
    assert_true(settings_url_is_private("http://127.0.0.1:8080"));
    assert_true(settings_url_is_private("http://localhost"));
    assert_true(settings_url_is_private("http://[::1]:1"));
    assert_false(settings_url_is_private("http://10.0.0.1"));
    assert_false(settings_url_is_private("http://127.evil.example"));
    assert_false(settings_url_is_private("http://localhost.evil.example"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_environment_goes_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_file_is_refused, setup, teardown),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
