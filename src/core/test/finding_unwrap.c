/* SPDX-License-Identifier: Apache-2.0 */
/* Logs in what carries them: every sample of every rule says the same within each. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "core/finding/read/finding_unwrap.h"
#include "core/finding/rules/finding_rule.h"
#include "finding_world.h"

enum { LOG_MAX = 1 << 20 };

/* What stands around each line; a line is a text of JSON, or plain. One that has a level says as
 * much as a line that begins with it. */
static const struct wrapper {
    const char *before, *after;
    bool is_json;
} WRAPPERS[] = {
    {"Nov 05 10:00:00 gpu-node07 python3[812]: ", "", false},
    {"Nov 05 10:00:00.123456 gpu-node07 train[812]: ", "", false},
    {"2026-11-05T10:00:00+0000 gpu-node07 python3[812]: ", "", false},
    {"2026-11-05T10:00:00.123456+01:00 gpu-node07 python3[812]: ", "", false},
    {"Thu 2026-11-05 10:00:00 UTC gpu-node07 python3[812]: ", "", false},
    {"[ 1234.567890] gpu-node07 python3[812]: ", "", false},
    {"python3[812]: ", "", false},
    {"2026-11-05T10:00:00.123456789Z stderr F ", "", false},
    {"2026-11-05T10:00:00.123456789+01:00 stdout F ", "", false},
    {"2026-11-05T10:00:00.123456789Z ", "", false},
    {"[pod/trainer-0/main] ", "", false},
    {"[pod/trainer-0/main] 2026-11-05T10:00:00.123456789Z ", "", false},
    {"[trainer-0 main] ", "", false},
    {"[trainer-worker-0] ", "", false},
    {"trainer-1  | ", "", false},
    {"my_trainer_1  | ", "", false},
    {"trainer-1  | 2026-11-05T10:00:00.123456789Z ", "", false},
    {"gpu-node07: ", "", false},
    {"gpu07.cluster.local: ", "", false},
    {"10.0.0.5: ", "", false},
    {"2026-11-05 10:00:00.123 | ERROR    | train.loop:step:12 - ", "", false},
    {"2026-11-05 10:00:00.123 | ERROR    | __main__:<module>:7 - ", "", false},
    {"wandb: ", "", false},
    {"wandb: ERROR ", "", false},
    {"[2026-11-05T10:00:00.123456Z] [rank=0] 7a5bd9c2 || ERROR: ", "", false},
    {"[2026-11-05T10:00:00.123456Z] 7a5bd9c2 || ", "", false},
    {"<error> [2026-11-05T10:00:00.123456Z] 7a5bd9c2 || ", "", false},
    {"##[error]", "", false},
    {"2026-11-05T10:00:00.1234567Z ##[error]", "", false},
    {"train\tRun the tests\t2026-11-05T10:00:00.1234567Z ", "", false},
    {"::error file=train.py,line=3::", "", false},
    {"[2026-11-05, 10:00:00 UTC] {subprocess.py:93} ERROR - ", "", false},
    {"\xef\xbb\xbf", "", false},
    {"{\"log\":\"", "\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-05T10:00:00.1Z\"}", true},
    {"{\"time\":\"2026-11-05T10:00:00Z\",\"stream\":\"stderr\",\"_p\":\"F\",\"log\":\"", "\"}",
     true},
    {"{\"__REALTIME_TIMESTAMP\":\"1\",\"PRIORITY\":\"6\",\"MESSAGE\":\"", "\",\"_PID\":\"8\"}",
     true},
    {"{\"asctime\": \"2026-11-05 10:00:00\", \"levelname\": \"ERROR\", \"message\": \"", "\"}",
     true},
    {"{\"ts\":1.5,\"level\":\"error\",\"logger\":\"train\",\"msg\":\"", "\"}", true},
    {"{\"severity\":\"ERROR\",\"textPayload\":\"", "\",\"timestamp\":\"2026-11-05T10:00:00Z\"}",
     true},
    {"{\"severity\":\"ERROR\",\"jsonPayload\":{\"message\":\"", "\"},\"timestamp\":\"2026\"}",
     true},
};

/* As Go's encoder writes it, which escapes more than it must. */
static void add_json_text(struct buf *out, const char *s)
{
    for (; *s; s++) {
        if (strchr("\"\\", *s))
            assert_int_equal(buf_addf(out, "\\%c", *s), 0);
        else if (strchr("<>&'", *s) || (unsigned char)*s < ' ')
            assert_int_equal(buf_addf(out, "\\u%04x", *s), 0);
        else
            assert_int_equal(buf_addc(out, *s), 0);
    }
}

static void add_wrapped(struct buf *out, const struct wrapper *w, const char *line)
{
    assert_int_equal(buf_adds(out, w->before), 0);
    if (w->is_json)
        add_json_text(out, line);
    else
        assert_int_equal(buf_adds(out, line), 0);
    assert_int_equal(buf_addf(out, "%s\n", w->after), 0);
}

static void add_utf16(struct buf *out, const char *s, bool is_little)
{
    assert_int_equal(buf_add(out, is_little ? "\xff\xfe" : "\xfe\xff", 2), 0);
    for (size_t n; *s; s += n) {
        unsigned char c = (unsigned char)*s;
        n = str_utf8_length(s, strlen(s));
        unsigned unit = n == 1 ? c : 0xfffd;
        for (size_t i = 1; n > 1 && i < n; i++)
            unit = (i == 1 ? (n == 2 ? c & 0x1fU : c & 0x0fU) : unit) << 6 |
                   ((unsigned char)s[i] & 0x3fU);
        char low = (char)(unit & 0xff), high = (char)(unit >> 8);
        const char pair[] = {is_little ? low : high, is_little ? high : low};
        assert_int_equal(buf_add(out, pair, 2), 0);
    }
}

static void judge_bytes(const char *p, size_t n, struct finding *ret)
{
    struct finder *f = finder_new(rules);
    finder_source(f, "a.log");
    finder_feed(f, p, n);
    finder_end(f, NULL, ret);
    finder_free(f);
}

static bool is_same(const struct finding *a, const struct finding *b)
{
    return a && a->class == b->class && str_eq(a->rule, b->rule);
}

/* The same class by the same rule as one of these; how many differ. */
static int differs(const struct finding *a,
                   const struct finding *or_as,
                   const char *bytes,
                   size_t n,
                   const char *by,
                   const char *line)
{
    struct finding b;
    judge_bytes(bytes, n, &b);
    bool same = is_same(a, &b) || is_same(or_as, &b);
    if (!same)
        print_error("'%s' within '%s': %s (%s) and not %s (%s)\n", line, by,
                    finding_class_to_string(b.class), str_or(b.rule, "-"),
                    finding_class_to_string(a->class), str_or(a->rule, "-"));
    finding_release(&b);
    return !same;
}

static bool has_level(const char *before)
{
    return strcasestr(before, "error");
}

static int try_sample(const char *line)
{
    int wrong = 0;
    struct finding bare, as_error;
    _cleanup_(buf_release) struct buf log = BUF_INIT(LOG_MAX);
    assert_int_equal(buf_addf(&log, "ERROR %s\n", line), 0);
    judge_bytes(log.data, log.len, &as_error);
    judge_bytes(log.data + 6, log.len - 6, &bare);
    for (size_t i = 0; i < array_len(WRAPPERS); i++) {
        buf_reset(&log);
        add_wrapped(&log, &WRAPPERS[i], line);
        bool may_be_louder = has_level(WRAPPERS[i].before);
        wrong += differs(may_be_louder ? &as_error : &bare, may_be_louder ? &bare : NULL, log.data,
                         log.len, WRAPPERS[i].before, line);
    }
    _cleanup_(freep) char *whole = xasprintf("%s\n", line);
    for (int little = 0; little < 2; little++) {
        buf_reset(&log);
        add_utf16(&log, whole, little);
        wrong += differs(&bare, NULL, log.data, log.len, little ? "UTF-16LE" : "UTF-16BE", line);
    }
    finding_release(&bare);
    finding_release(&as_error);
    return wrong;
}

static void each_sample_within_each_wrapper(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < rules->n; i++)
        for (size_t k = 0; k < rules->v[i].match.n; k++)
            wrong += try_sample(rules->v[i].match.v[k]);
    assert_int_equal(wrong, 0);
}

/* A whole traceback, as it comes line by line. */
static void a_traceback_within_each_wrapper(void **state)
{
    static const char *const lines[] = {
        "Traceback (most recent call last):", "  File \"/code/train.py\", line 31, in <module>",
        "    main(\"CUDA out of memory\")",   "  File \"/code/train.py\", line 12, in main",
        "    rows = table[\"x\"] | other",    "KeyError: 'algebra'"};
    (void)state;
    for (size_t i = 0; i < array_len(WRAPPERS); i++) {
        struct finding f;
        _cleanup_(buf_release) struct buf log = BUF_INIT(LOG_MAX);
        for (size_t k = 0; k < array_len(lines); k++)
            add_wrapped(&log, &WRAPPERS[i], lines[k]);
        judge_bytes(log.data, log.len, &f);
        if (f.class != FINDING_USER_CODE_ERROR)
            print_error("within '%s': %s (%s)\n", WRAPPERS[i].before,
                        finding_class_to_string(f.class), str_or(f.rule, "-"));
        assert_int_equal(f.class, FINDING_USER_CODE_ERROR);
        assert_non_null(strstr(f.evidence[0].text, "KeyError: 'algebra'"));
        assert_int_equal(f.evidence[0].line, 6);
        assert_int_equal(f.lines, 6);
        assert_int_equal(f.bytes, log.len);
        finding_release(&f);
    }
}

/* Where the line stands, and the text as its writer wrote it. */
static void the_place_is_that_of_the_source(void **state)
{
    static const char log[] =
        "starting the container\n"
        "{\"log\":\"torch.OutOfMemoryError: CUDA out \",\"stream\":\"stderr\",\"time\":\"1\"}\n"
        "{\"log\":\"of memory. Tried\\n\",\"stream\":\"stderr\",\"time\":\"1\"}\r\n"
        "not JSON at all\n"
        "{\"level\":\"error\",\"time\":1,\"message\":\"it failed\",\"exc_info\":\"Traceback (most recent "
        "call last):\\n  File \\\"a.py\\\", line 1, in f\\nValueError: bad \\u00e9\"}\n";
    struct finding f;
    (void)state;
    for (size_t step = 1; step < sizeof(log); step += step < 9 ? 1 : 50) {
        struct finder *finder = finder_new(rules);
        finder_source(finder, "a.log");
        for (size_t i = 0; i < sizeof(log) - 1; i += step)
            finder_feed(finder, log + i, sizeof(log) - 1 - i < step ? sizeof(log) - 1 - i : step);
        finder_end(finder, NULL, &f);
        finder_free(finder);
        assert_int_equal(f.class, FINDING_GPU_OOM);
        assert_string_equal(f.evidence[0].text,
                            "torch.OutOfMemoryError: CUDA out of memory. Tried");
        assert_int_equal(f.evidence[0].line, 2);
        assert_int_equal(f.evidence[0].offset, strlen("starting the container\n"));
        assert_int_equal(f.lines, 5);
        bool has_second = false;
        for (size_t i = 0; i < f.n_after; i++)
            has_second = has_second || str_eq(f.after[i].text, "ValueError: bad \xc3\xa9");
        assert_true(has_second);
        finding_release(&f);
    }
}

static void what_is_no_text(void **state)
{
    char random[4096], hole[4096] = {0};
    unsigned x = 12345;
    (void)state;
    for (size_t i = 0; i < sizeof(random); i++)
        random[i] = (char)((x = x * 1103515245U + 12345U) >> 16);
    memcpy(hole + 4000, "MemoryError\nMemoryError\n", 24);
    assert_false(unwrap_is_text(random, sizeof(random)));
    assert_true(unwrap_is_text(hole, sizeof(hole)));
    assert_false(unwrap_is_text(hole, 4000));
    assert_true(unwrap_is_text("a\r\n\033[1mb\n", 9));
    assert_true(unwrap_is_text("\xff\xfe"
                               "a\0\n\0",
                               6));
    assert_int_equal(unwrap_form_of("{\"step\": 1, \"loss\": 2}\n", 23), UNWRAP_PLAIN);
    assert_int_equal(unwrap_form_of("a\n{\"log\":\"x\"}\n", 14), UNWRAP_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sample_within_each_wrapper),
        cmocka_unit_test(a_traceback_within_each_wrapper),
        cmocka_unit_test(the_place_is_that_of_the_source),
        cmocka_unit_test(what_is_no_text),
    };
    return cmocka_run_group_tests(tests, finding_set_up, finding_tear_down);
}
