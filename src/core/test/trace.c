/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace may look like, and which sentence a bad one gets. */
#include "core/past/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/unit.h"

#define HEAD "submit_time,duration_s,num_gpus,cluster\n"

static struct trace read_ok(const char *text)
{
    struct trace t;
    struct err err = {0};
    int r = trace_parse("t.csv", text, strlen(text), &t, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    return t;
}

static void read_bad(const char *text, size_t len, const char *sentence)
{
    struct trace t = {0};
    struct err err = {0};
    assert_int_equal(trace_parse("t.csv", text, len, &t, &err), ERR_BAD_SPEC);
    assert_string_equal(err.text, sentence);
    assert_null(t.rows); /* untouched */
}

static void reads_times_in_both_forms(void **state)
{
    (void)state;
    struct trace t = read_ok(HEAD "1970-01-02 00:00:01,5,1,a\n86402,5,1,a\n86403.5,5,1,a\n"
                                  "2000-02-29T12:00:00Z,5,1,a\n2017-09-07 03:58:57.25,5,1,a\n");
    const usec_t want[] = {86401 * USEC_SEC, 86402 * USEC_SEC, 86403500 * USEC_MS,
                           951825600 * USEC_SEC, 1504756737250 * USEC_MS};
    assert_int_equal(t.n, array_len(want));
    for (size_t i = 0; i < t.n; i++)
        assert_int_equal(t.rows[i].submit, want[i]);
    trace_release(&t);
}

static void agrees_with_the_clock(void **state)
{
    (void)state;
    for (usec_t day = 0; day < 60000; day += 17) { /* to the year 2134 */
        char text[CLOCK_TEXT_MAX];
        struct buf b = BUF_INIT(1000);
        usec_t at = day * USEC_DAY + 3661 * USEC_SEC;
        assert_int_equal(buf_addf(&b, HEAD "%s,1,1,a", clock_to_string(at, text)), 0);
        struct trace t = read_ok(buf_str(&b));
        assert_int_equal(t.rows[0].submit, at);
        trace_release(&t);
        buf_release(&b);
    }
}

static void sorts_by_pool_time_and_line(void **state)
{
    (void)state;
    struct trace t = read_ok(HEAD "30,1,1,b\n10,2,1,b\n30,3,1,a\n10,4,1,b\n10,4,1,b\n");
    assert_int_equal(t.n_pools, 2);
    assert_string_equal(t.pools[0].name, "a");
    assert_int_equal(t.pools[0].first, 0);
    assert_int_equal(t.pools[0].n, 1);
    assert_string_equal(t.pools[1].name, "b");
    assert_int_equal(t.pools[1].n, 4); /* the same row twice is two jobs */
    const unsigned lines[] = {4, 3, 5, 6, 2};
    for (size_t i = 0; i < t.n; i++)
        assert_int_equal(t.rows[i].line, lines[i]);
    assert_int_equal(trace_start(&t), 10 * USEC_SEC);
    assert_int_equal(trace_span(&t), 20 * USEC_SEC);
    trace_release(&t);
}

static void takes_what_editors_and_tools_make(void **state)
{
    (void)state;
    struct trace t = read_ok("\xef\xbb\xbfnum_gpus,note,\"cluster\",submit_time,duration_s\r\n"
                             "8.0,\"a \"\"b\"\", c\",\"x,y\",100,0\r\n\r\n0,,z,\"100\",1.5\r\n\n");
    assert_int_equal(t.n, 2);
    assert_string_equal(t.pools[0].name, "x,y");
    assert_int_equal(t.rows[0].gpus, 8);
    assert_int_equal(t.rows[0].duration, 0);
    assert_int_equal(t.rows[1].gpus, 0);
    assert_int_equal(t.rows[1].duration, 1500 * USEC_MS);
    assert_int_equal(t.rows[1].line, 4);
    assert_int_equal(trace_span(&t), 1500 * USEC_MS); /* one instant: the longest run */
    trace_release(&t);
    t = read_ok("submit_time,duration_s,num_gpus\n1,1,1\n");
    assert_string_equal(t.pools[0].name, "all");
    trace_release(&t);
}

static void refuses_in_one_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"", "t.csv is empty: it begins with a line that names submit_time, duration_s, num_gpus "
             "and cluster"},
        {HEAD, "t.csv has no rows below its first line"},
        {"time,gpus\n1,1\n", "t.csv:1: the first line has no column 'submit_time': it names "
                             "submit_time, duration_s, num_gpus and cluster"},
        {"num_gpus,num_gpus\n", "t.csv:1: a column is named twice, got 'num_gpus'"},
        {HEAD "1,1,1\n", "t.csv:2: 3 fields where the first line names 4"},
        {HEAD "1,1,1,a,b\n", "t.csv:2: 5 fields where the first line names 4"},
        {HEAD "1,1,1,a\n\nx,1,1,a\n",
         "t.csv:4: submit_time is YYYY-MM-DD HH:MM:SS or seconds since "
         "1970, got 'x'"},
        {HEAD "2017-02-29 00:00:00,1,1,a\n",
         "t.csv:2: submit_time is YYYY-MM-DD HH:MM:SS or seconds "
         "since 1970, got '2017-02-29 00:00:00'"},
        {HEAD "1,-1,1,a\n", "t.csv:2: duration_s is a number of seconds from 0 to 1e9, got '-1'"},
        {HEAD "1,nan,1,a\n", "t.csv:2: duration_s is a number of seconds from 0 to 1e9, got 'nan'"},
        {HEAD "1,,1,a\n", "t.csv:2: duration_s is a number of seconds from 0 to 1e9, got ''"},
        {HEAD "1,1,1.5,a\n", "t.csv:2: num_gpus is a whole number from 0 to 8192, got '1.5'"},
        {HEAD "1,1,8193,a\n", "t.csv:2: num_gpus is a whole number from 0 to 8192, got '8193'"},
        {HEAD "1,1,1,\n", "t.csv:2: cluster is empty"},
        {HEAD "1,1,1,\"a\n", "t.csv:2: a quoted field has no end on its line"},
        {HEAD "1,1,\x01z\xff,a\n", "t.csv:2: num_gpus is a whole number from 0 to 8192, got '?z?'"},
    };
    for (size_t i = 0; i < array_len(rows); i++)
        read_bad(rows[i].text, strlen(rows[i].text), rows[i].sentence);
    read_bad(HEAD "1,1,1,a\0b\n", sizeof(HEAD "1,1,1,a\0b\n") - 1,
             "t.csv:2: a field has a NUL byte");
}

static void has_ceilings(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(64 << 20);
    assert_int_equal(buf_adds(&b, HEAD), 0);
    for (int i = 0; i <= TRACE_MAX_POOLS; i++)
        assert_int_equal(buf_addf(&b, "1,1,1,p%d\n", i), 0);
    read_bad(b.data, b.len, "t.csv:1002: a trace has at most 1000 clusters, got 'p1000'");
    buf_reset(&b);
    assert_int_equal(buf_adds(&b, HEAD), 0);
    for (int i = 0; i <= TRACE_MAX_ROWS; i++)
        assert_int_equal(buf_adds(&b, "1,1,1,a\n"), 0);
    read_bad(b.data, b.len, "t.csv:1000002: a trace has at most 1000000 rows");
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_times_in_both_forms),
        cmocka_unit_test(agrees_with_the_clock),
        cmocka_unit_test(sorts_by_pool_time_and_line),
        cmocka_unit_test(takes_what_editors_and_tools_make),
        cmocka_unit_test(refuses_in_one_sentence),
        cmocka_unit_test(has_ceilings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
