/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of logmerge.h: lines of several logs as one row, each told once, none held up by another.
 */
#include "fsroot/logs/logmerge.h"

#include "base/unit_dir.h"

#define LOGS "jobs/j/attempts/1/logs/"
#define WORKERS LOGS "workers/"
#define ZERO WORKERS "w1/worker-a.out"
#define ONE WORKERS "w2/worker-b.out"

/* One look of all logs, or of the workers' alone. */
static struct logmerge looked(const char *root, const char *places, bool has_driver)
{
    const struct logmerge_ask ask = {.root = root,
                                     .job = "j",
                                     .attempt = 1,
                                     .has_driver = has_driver,
                                     .tail = -1,
                                     .places = places};
    struct logmerge m = {0};
    assert_int_equal(logmerge_look(&ask, &m, NULL), 0);
    assert_true(m.n_lines <= LOGMERGE_LINES_MAX && m.n_sources <= LOGMERGE_SOURCES_MAX);
    return m;
}

/* "w1:text w2:text", and the places behind it in *places, which are replaced. */
static char *told(struct logmerge *m, char **places)
{
    struct buf out = BUF_INIT(1 << 20);
    for (size_t i = 0; i < m->n_lines; i++) {
        const struct logmerge_line *l = &m->lines[i];
        const struct loglist_file *f = m->sources[l->source].file;
        assert_int_equal(
            buf_addf(&out, "%s%s:%.*s", i ? " " : "", f ? f->node : "driver", (int)l->n, l->text),
            0);
    }
    free(*places);
    *places = logmerge_places(m);
    assert_true(logmerge_are_places(*places));
    logmerge_release(m);
    return buf_take(&out);
}

static void assert_told(const char *root, char **places, bool has_driver, const char *want)
{
    struct logmerge m = looked(root, *places, has_driver);
    _cleanup_(freep) char *got = told(&m, places);
    assert_string_equal(got, want);
}

static void test_each_line_once(void **state)
{
    _cleanup_(freep) char *places = NULL;
    assert_told(*state, &places, true, ""); /* there is no log yet */
    put(*state, LOGS "driver.log", "d1\n");
    put(*state, ZERO, "a1\na2\n");
    put(*state, WORKERS "w2/worker-c.err", "");
    assert_told(*state, &places, true, "driver:d1 w1:a1 w1:a2");
    assert_told(*state, &places, true, "");
    put(*state, ZERO, "a1\na2\na3\nhalf");
    put(*state, ONE, "b1\n"); /* a log that is new is told from its begin */
    assert_told(*state, &places, true, "w1:a3 w2:b1");
    assert_told(*state, &places, true, "");
    put(*state, ZERO, "a1\na2\na3\nhalf a line\n");
    assert_told(*state, &places, true, "w1:half a line");
    _cleanup_(freep) char *workers = NULL;
    assert_told(*state, &workers, false, "w1:a1 w2:b1 w1:a2 w1:a3 w1:half a line");
}

static void test_times_of_lines(void **state)
{
    _cleanup_(freep) char *places = NULL;
    put(*state, ZERO,
        "(w) 2026-01-31 12:00:01,500 x\ntrace\n[2026-01-31 12:00:03] x\n2026-01-31T12:00:05.1 x\n");
    put(*state, ONE, "2026-01-31 12:00:01.499999 y\n2026-01-31 12:00:04 y\n");
    assert_told(*state, &places, false,
                "w2:2026-01-31 12:00:01.499999 y w1:(w) 2026-01-31 12:00:01,500 x w1:trace "
                "w1:[2026-01-31 12:00:03] x w2:2026-01-31 12:00:04 y w1:2026-01-31T12:00:05.1 x");
}

/* What Ray repeats of a worker whose log is there is told once; of others it is all that there is.
 */
static void test_what_ray_repeats(void **state)
{
    _cleanup_(freep) char *places = NULL;
    put(*state, LOGS "driver.log",
        "\033[36m(Trainer pid=11)\033[0m a1\n(Trainer pid=12, ip=10.0.0.2) b1\n"
        "(Trainer pid=11, ip=10.0.0.1) a2\n(raylet) d1\n(pid=11) a3\nsaw (Trainer pid=11) d2\n"
        "(Trainer pid=111) d3\n(Trainer pid=11\n");
    put(*state, ZERO, "a1\na2\na3\n");
    put(*state, WORKERS "w1/ranks.json", "{\"worker-a.out\":{\"rank\":0,\"pid\":11}}");
    assert_told(*state, &places, false, "w1:a1 w1:a2 w1:a3");
    struct logmerge m = looked(*state, NULL, true);
    size_t of_driver = 0;
    for (size_t i = 0; i < m.n_lines; i++)
        of_driver += !m.sources[m.lines[i].source].file;
    assert_int_equal(m.n_lines, 8);
    assert_int_equal(of_driver, 5);
    _cleanup_(freep) char *got = told(&m, &places);
    assert_null(strstr(got, ") a"));
    assert_null(strstr(got, "\033"));
    assert_non_null(strstr(got, "b1"));
    put(*state, LOGS "driver.log.1000", "(Trainer pid=11) a4\n");
    assert_told(*state, &places, true, ""); /* nothing but repetitions: it goes on behind them */
    assert_told(*state, &places, true, "");
}

static void test_a_nul_is_no_text(void **state)
{
    _cleanup_(freep) char *places = NULL, *path = xasprintf("%s/" ZERO, (char *)*state);
    put(*state, ZERO, "");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite("a\0b\n", 1, 4, f), 4);
    assert_int_equal(fclose(f), 0);
    assert_told(*state, &places, false,
                "w1:a\xff"
                "b");
}

static char *many_lines(const char *text, size_t n)
{
    struct buf out = BUF_INIT(8 << 20);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(buf_addf(&out, "%s %zu\n", text, i), 0);
    return buf_take(&out);
}

/* How many lines of a node, and of the last one its number. */
static size_t lines_of(const struct logmerge *m, const char *node, size_t *ret_last)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_lines; i++) {
        const struct logmerge_line *l = &m->lines[i];
        if (strcmp(m->sources[l->source].file->node, node) != 0)
            continue;
        const char *number = memrchr(l->text, ' ', l->n);
        assert_non_null(number);
        *ret_last = strtoul(number, NULL, 10);
        n++;
    }
    return n;
}

static void test_a_loud_log_holds_up_none(void **state)
{
    enum { LOUD = 200000 };
    size_t last = 0, loud = 0, looks = 0;
    _cleanup_(freep) char *text = many_lines("loud", LOUD), *places = NULL;
    put(*state, ZERO, text);
    put(*state, ONE, "quiet 0\nquiet 1\n");
    struct logmerge m = looked(*state, NULL, false);
    assert_true(lines_of(&m, "w1", &last) <= LOGMERGE_LINES_MAX / 2);
    assert_int_equal(last, LOUD - 1); /* the newest ones */
    assert_int_equal(lines_of(&m, "w2", &last), 2);
    assert_false(m.has_more);
    logmerge_release(&m);
    places = xstrdup("");
    for (bool more = true; more; looks++) {
        m = looked(*state, places, false);
        size_t quiet = lines_of(&m, "w2", &last);
        assert_int_equal(quiet, looks ? 0 : 2); /* it comes with the first look */
        loud += lines_of(&m, "w1", &last);
        assert_int_equal(last, loud - 1); /* in order, none is missed */
        more = m.has_more;
        free(places);
        places = logmerge_places(&m);
        logmerge_release(&m);
    }
    assert_int_equal(loud, LOUD);
}

static void test_a_line_without_end(void **state)
{
    enum { LONG = 600 << 10 };
    char *text = xmalloc(LONG + 3);
    size_t bytes = 0, looks = 0;
    _cleanup_(freep) char *places = xstrdup("");
    memset(text, 'x', LONG);
    memcpy(text + LONG, "\ny", sizeof("\ny"));
    put(*state, ZERO, text);
    free(text);
    for (bool more = true; more; looks++) {
        struct logmerge m = looked(*state, places, false);
        for (size_t i = 0; i < m.n_lines; i++)
            assert_true(m.lines[i].is_cut && m.lines[i].n == LOGMERGE_LINE_BYTES);
        bytes = m.sources[0].next;
        more = m.has_more;
        free(places);
        places = logmerge_places(&m);
        logmerge_release(&m);
    }
    assert_true(looks > 1);
    assert_int_equal(bytes, LONG + 1); /* the line that has no end yet is left */
    const struct logmerge_ask ask = {
        .root = *state, .job = "j", .attempt = 1, .is_over = true, .tail = -1, .places = places};
    struct logmerge m = {0};
    assert_int_equal(logmerge_look(&ask, &m, NULL), 0);
    assert_int_equal(m.n_lines, 1); /* nothing more is written: it is one */
    logmerge_release(&m);
}

static void test_gaps_and_tails(void **state)
{
    _cleanup_(freep) char *places = xstrdup("");
    put(*state, ZERO, "a1\nhalf");
    put(*state, ZERO ".100", "a9\n");
    assert_told(*state, &places, false, "w1:a1");
    assert_told(*state, &places, false, "w1:half"); /* its rest was dropped */
    struct logmerge m = looked(*state, places, false);
    assert_int_equal(m.sources[0].skipped, 93);
    _cleanup_(freep) char *got = told(&m, &places);
    assert_string_equal(got, "w1:a9");
    const struct logmerge_ask ask = {.root = *state, .job = "j", .attempt = 1, .tail = 1};
    put(*state, ONE, "2026-01-31 12:00:00 b1\n2026-01-31 12:00:01 b2\n");
    assert_int_equal(logmerge_look(&ask, &m, NULL), 0);
    _cleanup_(freep) char *tail = told(&m, &places);
    assert_string_equal(tail, "w2:2026-01-31 12:00:01 b2");
    assert_told(*state, &places, false, "");
}

static void test_very_many_logs(void **state)
{
    enum { LOGS_OF_IT = LOGMERGE_SOURCES_MAX + 40 };
    for (int i = 0; i < LOGS_OF_IT; i++) {
        _cleanup_(freep) char *name = xasprintf(WORKERS "w1/worker-%03d.out", i);
        put(*state, name, "x\n");
    }
    put(*state, ONE, "y\n");
    put(*state, WORKERS "w2/ranks.json", "{\"worker-b.out\":{\"rank\":7}}");
    struct logmerge m = looked(*state, NULL, false);
    assert_int_equal(m.n_sources, LOGMERGE_SOURCES_MAX);
    assert_int_equal(m.left_out, 41);
    assert_int_equal(m.n_lines, LOGMERGE_SOURCES_MAX);
    assert_int_equal(m.sources[0].file->rank, 7); /* those of a rank before others */
    _cleanup_(freep) char *places = logmerge_places(&m);
    logmerge_release(&m);
    m = looked(*state, places, false);
    assert_int_equal(m.n_lines, 0); /* the same logs again, none of those that were left out */
    logmerge_release(&m);
}

static void test_places(void **state)
{
    (void)state;
    static const char *const good[] = {"", "0123abcd0", "0123abcdff-00000000123456789abcdef0"};
    static const char *const bad[] = {"x",
                                      "0123abcd",
                                      "0123abcd0-",
                                      "-0123abcd0",
                                      "0123ABCD00",
                                      "0123abcd0 ",
                                      "../x",
                                      "0123abcd0--0123abcd0",
                                      "0123abcd0123456789abcdef0"};
    for (size_t i = 0; i < array_len(good); i++)
        assert_true(logmerge_are_places(good[i]));
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(logmerge_are_places(bad[i]));
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_root(test_each_line_once),
        with_root(test_times_of_lines),
        with_root(test_what_ray_repeats),
        with_root(test_a_nul_is_no_text),
        with_root(test_a_loud_log_holds_up_none),
        with_root(test_a_line_without_end),
        with_root(test_gaps_and_tails),
        with_root(test_very_many_logs),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
