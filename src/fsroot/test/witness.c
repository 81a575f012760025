/* SPDX-License-Identifier: Apache-2.0 */
/* Absent, unreadable and present are three different answers. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/unit_dir.h"
#include "fsroot/attempt/witness.h"

#define DIR_1 "jobs/j1/attempts/1/"
#define BEAT                                                                                       \
    "{\"job\":\"j1\",\"attempt\":1,\"seq\":7,\"at\":\"2026-01-31T12:00:00.500Z\","                 \
    "\"state\":\"running\",\"pid\":12,\"start_ticks\":34,\"shepherd_pid\":11,\"node\":\"n1\","     \
    "\"ip\":null,\"log_bytes\":99,\"dropped_bytes\":0}"
#define EXIT_HEAD                                                                                  \
    "{\"started_at\":null,\"ended_at\":\"2026-01-31T12:00:00Z\",\"max_rss_bytes\":1,"              \
    "\"user_s\":0.5,\"sys_s\":0,\"log_bytes\":3,\"dropped_bytes\":0,\"oom_kill\":null,"            \
    "\"node\":\"n1\",\"pid\":null,\"sentence\":\"s\","

static struct fsroot_beat beat(const char *root, const char *text)
{
    struct fsroot_beat b;
    if (text)
        put(root, DIR_1 "beat", text);
    fsroot_beat_read(root, "j1", 1, &b);
    return b;
}

static struct fsroot_exit end(const char *root, const char *text)
{
    struct fsroot_exit e;
    if (text)
        put(root, DIR_1 "exit.json", text);
    fsroot_exit_read(root, "j1", 1, &e);
    return e;
}

static void test_absent(void **state)
{
    assert_int_equal(beat(*state, NULL).seen, FSROOT_UNREADABLE); /* no directory: not mounted? */
    assert_non_null(strstr(beat(*state, NULL).why, "directory"));
    put(*state, DIR_1 "launch.json", "{}");
    assert_int_equal(beat(*state, NULL).seen, FSROOT_ABSENT);
    assert_int_equal(end(*state, NULL).seen, FSROOT_ABSENT);
}

static void test_beat(void **state)
{
    struct fsroot_beat b = beat(*state, BEAT);
    assert_int_equal(b.seen, FSROOT_PRESENT);
    assert_int_equal(b.seq, 7);
    assert_int_equal(b.at, 1769860800500000);
    assert_int_equal(b.pid, 12);
    assert_int_equal(b.start_ticks, 34);
    assert_int_equal(b.shepherd_pid, 11);
    assert_int_equal(b.log_bytes, 99);
    assert_string_equal(b.node, "n1");
    assert_string_equal(b.ip, "");
    assert_string_equal(b.state, "running");
}

static void test_beat_that_is_wrong(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"seq\":-1}",
        "\xff\xfe",
        "{\"seq\":1,\"at\":\"yesterday\"}",
        "{\"seq\":\"7\",\"at\":\"2026-01-31T12:00:00Z\",\"state\":\"running\",\"pid\":12,"
        "\"start_ticks\":34,\"shepherd_pid\":11,\"node\":\"n1\",\"log_bytes\":9,\"dropped_bytes\":"
        "0}",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct fsroot_beat b = beat(*state, bad[i]);
        assert_int_equal(b.seen, FSROOT_UNREADABLE);
        assert_true(b.why[0]);
        assert_int_equal(b.seq, 0);
    }
    for (size_t cut = 1; cut < sizeof(BEAT) - 1; cut++) { /* torn anywhere */
        _cleanup_(freep) char *torn = xstrndup(BEAT, cut);
        assert_int_equal(beat(*state, torn).seen, FSROOT_UNREADABLE);
    }
}

static void test_huge_and_odd_files(void **state)
{
    size_t n = 65 << 10;
    _cleanup_(freep) char *huge = xmalloc(n + 1);
    memset(huge, ' ', n);
    memcpy(huge, BEAT, sizeof(BEAT) - 1);
    huge[n] = 0;
    struct fsroot_beat b = beat(*state, huge);
    assert_int_equal(b.seen, FSROOT_UNREADABLE);
    assert_non_null(strstr(b.why, "larger than"));
    _cleanup_(freep) char *path = xasprintf("%s/" DIR_1 "exit.json", (char *)*state);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(end(*state, NULL).seen, FSROOT_UNREADABLE); /* and did not wait for a writer */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(end(*state, NULL).seen, FSROOT_UNREADABLE);
}

static void test_exit(void **state)
{
    struct fsroot_exit e = end(*state, EXIT_HEAD "\"cause\":\"signal\",\"signal\":\"SIGKILL\"}");
    assert_int_equal(e.seen, FSROOT_PRESENT);
    assert_string_equal(e.cause, "signal");
    assert_string_equal(e.signal, "SIGKILL");
    assert_false(e.has_code);
    assert_int_equal(e.oom_kills, -1);
    assert_int_equal(e.pid, 0);
    assert_int_equal(e.started, 0);
    assert_true(e.user_s > 0.4 && e.user_s < 0.6);
    e = end(*state, EXIT_HEAD "\"cause\":\"exit\",\"code\":0}");
    assert_true(e.has_code);
    assert_int_equal(e.code, 0);
    assert_string_equal(e.signal, "");
    assert_string_equal(e.class, "");
    e = end(*state, EXIT_HEAD "\"cause\":\"mismatch\",\"class\":\"import_error\",\"code\":0}");
    assert_string_equal(e.cause, "mismatch");
    assert_string_equal(e.class, "import_error");
}

static void test_kills_for_memory(void **state)
{
    struct fsroot_exit e =
        end(*state, EXIT_HEAD "\"kernel_oom_kill\":2,\"cause\":\"exit\",\"code\":1}");
    assert_int_equal(e.oom_kills, 2); /* a shepherd of before */
    e = end(*state,
            EXIT_HEAD "\"own_oom_kill\":1,\"oom_unsure\":true,\"cause\":\"exit\",\"code\":1}");
    assert_int_equal(e.oom_kills, 1);
    assert_true(e.oom_unsure);
    e = end(*state,
            EXIT_HEAD "\"own_oom_kill\":null,\"kernel_oom_kill\":3,\"cause\":\"exit\",\"code\":1}");
    assert_int_equal(e.oom_kills, -1);
}

static void test_exit_that_is_wrong(void **state)
{
    static const char *const bad[] = {
        "{}",
        EXIT_HEAD "\"cause\":\"exploded\"}",
        EXIT_HEAD "\"cause\":1}",
        EXIT_HEAD "\"cause\":\"exit\",\"code\":\"0\"}",
        EXIT_HEAD "\"cause\":\"exit\",\"code\":256}",
        EXIT_HEAD "\"cause\":\"exit\",\"code\":-1}",
        EXIT_HEAD "\"cause\":\"exit\",\"code\":0,\"signal\":9}",
        EXIT_HEAD "\"cause\":\"exit\",\"code\":0,\"code\":1}",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct fsroot_exit e = end(*state, bad[i]);
        assert_int_equal(e.seen, FSROOT_UNREADABLE);
        assert_true(e.why[0]);
        assert_string_equal(e.cause, "");
    }
}

static void test_texts_are_harmless(void **state)
{
    char long_node[600], text[2000];
    memset(long_node, 'n', sizeof(long_node) - 1);
    long_node[sizeof(long_node) - 1] = 0;
    (void)snprintf(text, sizeof(text),
                   "{\"ended_at\":\"2026-01-31T12:00:00Z\",\"max_rss_bytes\":1,\"user_s\":0,"
                   "\"sys_s\":0,\"log_bytes\":3,\"dropped_bytes\":0,\"cause\":\"exit\",\"code\":1,"
                   "\"node\":\"%s\",\"sentence\":\"a\\u001b[31m\\nb\"}",
                   long_node);
    struct fsroot_exit e = end(*state, text);
    assert_int_equal(e.seen, FSROOT_PRESENT);
    assert_int_equal(strlen(e.node), sizeof(e.node) - 1);
    assert_string_equal(e.sentence, "a [31m b");
}

static void assert_says(const char *root, const char *says, const char *want)
{
    char text[2000];
    (void)snprintf(text, sizeof(text),
                   "{\"ended_at\":\"2026-01-31T12:00:00Z\",\"max_rss_bytes\":1,\"user_s\":0,"
                   "\"sys_s\":0,\"log_bytes\":3,\"dropped_bytes\":0,\"cause\":\"start_failed\","
                   "\"code\":null,\"node\":\"n\",\"says\":\"%s\",\"sentence\":\"s\"}",
                   says);
    struct fsroot_exit e = end(root, text);
    assert_int_equal(e.seen, FSROOT_PRESENT);
    assert_string_equal(e.says, want);
}

/* What a job may have written in the shepherd's place never becomes a part of another JSON text. */
static void test_what_it_says(void **state)
{
    assert_says(*state, "shepherd_no_pipe{\\\"why\\\":\\\"full\\\"}",
                "shepherd_no_pipe{\"why\":\"full\"}");
    assert_says(*state, "no_such_code{}", "");
    assert_says(*state, "shepherd_no_pipe{\\\"why\\\":", "");
    assert_says(*state, "shepherd_no_pipe{} , {}", "");
    assert_says(*state, "it is a sentence", "");
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_root(test_absent),
        with_root(test_beat),
        with_root(test_beat_that_is_wrong),
        with_root(test_huge_and_odd_files),
        with_root(test_exit),
        with_root(test_kills_for_memory),
        with_root(test_exit_that_is_wrong),
        with_root(test_what_it_says),
        with_root(test_texts_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
