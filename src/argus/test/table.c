/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of tables: what is dropped, what is cut, and that nothing is ever wider
 * than the terminal. */
#include "argus/show/table.h"

#include <stdlib.h>
#include <string.h>

#include "argus/show/text.h"
#include "base/unit.h"

static const struct column COLUMNS[] = {
    {.title = "say_id"},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 6, .rank = 1},
    {.title = "say_step", .flags = COLUMN_RIGHT, .rank = 2},
    {.title = "say_pool", .flags = COLUMN_WIDE},
    {.title = "say_reason", .flags = COLUMN_FLEX, .least = 8},
};

static struct table *sample(const char *step)
{
    struct table *t = table_new(COLUMNS, array_len(COLUMNS));
    static const char *const cells[2][5] = {
        {"job-1", "数学推理实验", NULL, "h20", "waiting for 8 GPUs\non pool h20"},
        {"job-22", "", NULL, "", ""},
    };
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 5; c++)
            table_add(t, STYLE_PLAIN, c == 2 ? step : cells[r][c]);
    return t;
}

static char *print(const struct table *t, int width, bool wide, bool colour, int *ret_dropped)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct term term = {.width = width, .colour = colour};
    *ret_dropped = table_print(t, &term, wide, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void check(const char *step, int width, bool wide, const char *want, int want_dropped)
{
    int dropped;
    struct table *t = sample(step);
    assert_int_equal(table_rows(t), 2);
    char *text = print(t, width, wide, false, &dropped);
    assert_string_equal(text, want);
    assert_int_equal(dropped, want_dropped);
    free(text);
    table_free(t);
}

static void test_layout(void **state)
{
    (void)state;
    check("7", 0, false,
          "ID      NAME          STEP  REASON\n"
          "job-1   数学推理实验     7  waiting for 8 GPUs on pool h20\n"
          "job-22  -                7  -\n",
          0);
    check("7", 0, true,
          "ID      NAME          STEP  POOL  REASON\n"
          "job-1   数学推理实验     7  h20   waiting for 8 GPUs on pool h20\n"
          "job-22  -                7  -     -\n",
          0);
    check("7", 40, false,
          "ID      NAME          STEP  REASON\n"
          "job-1   数学推理实验     7  waiting for…\n"
          "job-22  -                7  -\n",
          0);
    check("7", 22, false,
          "ID      REASON\n"
          "job-1   waiting for 8…\n"
          "job-22  -\n",
          2);
    /* A column that says nothing goes without being counted. */
    check("", 40, false,
          "ID      NAME          REASON\n"
          "job-1   数学推理实验  waiting for 8 GPU…\n"
          "job-22  -             -\n",
          0);
}

static const struct column ROOMY[] = {
    {.title = "say_id", .flags = COLUMN_FLEX, .least = 8},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 6, .rank = 1},
    {.title = "say_reason", .flags = COLUMN_ROOM},
};

static void check_room(const char *reason, int width, const char *want)
{
    int dropped;
    struct table *t = table_new(ROOMY, array_len(ROOMY));
    table_add(t, STYLE_PLAIN, "a-job-of-20-columns-");
    table_add(t, STYLE_PLAIN, "a-name-of-twenty-col");
    table_add(t, STYLE_PLAIN, reason);
    char *text = print(t, width, false, false, &dropped);
    assert_string_equal(strchr(text, '\n') + 1, want);
    free(text);
    table_free(t);
}

static void test_the_reason_has_its_room(void **state)
{
    (void)state;
    const char *whole = "it waits for 64 GPUs of the pool h20, of which 12 are free";
    check_room(whole, 0,
               "a-job-of-20-columns-  a-name-of-twenty-col  it waits for 64 GPUs of the pool h20, "
               "of which 12 are free\n");
    /* The others are cut first, until it is three times as wide as they are. */
    check_room(
        whole, 80,
        "a-job-of-20-c…  a-name-of-twen…  it waits for 64 GPUs of the pool h20, of which…\n");
    check_room(whole, 31, "a-job-o…  a-nam…  it waits for…\n");
    /* It never gets less than two fifths: a column goes. */
    check_room(whole, 20, "a-job-o…  it waits …\n");
    check_room("busy", 50, "a-job-of-20-columns-  a-name-of-twenty-col  busy\n");
}

static void test_never_wider_than_the_terminal(void **state)
{
    (void)state;
    struct table *t = sample("12345");
    for (int width = 1; width < 90; width++) {
        int dropped;
        char *text = print(t, width, false, false, &dropped);
        for (char *p = text; *p;) {
            char *end = strchr(p, '\n');
            *end = 0;
            assert_true(text_width(p) <= width);
            p = end + 1;
        }
        free(text);
    }
    table_free(t);
}

static void test_colour_takes_no_room(void **state)
{
    (void)state;
    int dropped;
    struct table *t = table_new(COLUMNS, 2);
    table_add(t, STYLE_RED, "FAILED");
    table_addf(t, STYLE_PLAIN, "%d", 3);
    char *text = print(t, 80, false, true, &dropped);
    assert_string_equal(text,
                        "\033[1mID\033[0m      \033[1mNAME\033[0m\n\033[31mFAILED\033[0m  3\n");
    free(text);
    table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_the_reason_has_its_room),
        cmocka_unit_test(test_never_wider_than_the_terminal),
        cmocka_unit_test(test_colour_takes_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
