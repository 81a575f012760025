/* SPDX-License-Identifier: Apache-2.0 */
/* Options in every spelling, and the sentence for each mistake. */
#include "argus/cli/opts.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/unit.h"

struct got {
    bool follow, all;
    const char *name;
    int64_t limit;
    usec_t since;
    struct strv state;
    int output;
};

static const char *const FORMATS[] = {"table", "json", NULL};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct got, member)
static const struct opt OPTS[] = {
    {.letter = 'f', .name = "follow", ROW(OPT_FLAG, follow), .doc = "d"},
    {.letter = 'a', .name = "all", ROW(OPT_FLAG, all), .doc = "d"},
    {.name = "name", ROW(OPT_TEXT, name), .arg = "N", .doc = "d"},
    {.letter = 'n', .name = "limit", ROW(OPT_NUMBER, limit), .arg = "N", .doc = "d"},
    {.name = "since", ROW(OPT_SPAN, since), .arg = "S", .doc = "d"},
    {.name = "state", ROW(OPT_LIST, state), .arg = "S", .doc = "d"},
    {.letter = 'o', .name = "output", ROW(OPT_CHOICE, output), .arg = "F", .choices = FORMATS},
};

static int parse(const char *line, struct got *got, struct strv *args, bool *help, struct err *err)
{
    static char copy[300];
    char *argv[20];
    int argc = 0;
    (void)snprintf(copy, sizeof(copy), "%s", line);
    for (char *p = copy; *p;) {
        argv[argc++] = p;
        p += strcspn(p, " ");
        if (*p)
            *p++ = 0;
    }
    return opts_parse(OPTS, array_len(OPTS), argc, argv, got, args, help, err);
}

static void test_every_spelling(void **state)
{
    (void)state;
    struct got g = {0};
    struct strv args = {0};
    bool help = false;
    int r = parse("x -fan5 --name=a=b --since 2h -o json --state A --state=B y - -- --all", &g,
                  &args, &help, NULL);
    assert_int_equal(r, 0);
    assert_true(g.follow && g.all && !help);
    assert_int_equal(g.limit, 5);
    assert_string_equal(g.name, "a=b");
    assert_int_equal(g.since, 2 * USEC_HOUR);
    assert_int_equal(g.output, 1);
    assert_int_equal(g.state.n, 2);
    assert_string_equal(g.state.v[1], "B");
    assert_int_equal(args.n, 4);
    assert_string_equal(args.v[2], "-");
    assert_string_equal(args.v[3], "--all");
    strv_release(&args);
    opts_release(OPTS, array_len(OPTS), &g);
    assert_int_equal(parse("-h", &g, &args, &help, NULL), 0);
    assert_true(help);
}

static void test_every_mistake(void **state)
{
    (void)state;
    static const struct {
        const char *line, *sentence;
    } cases[] = {
        {"--folow", "unknown option '--folow': did you mean '--follow'?"},
        {"--zzzzzzzz", "unknown option '--zzzzzzzz': there are --follow, --all, --name"},
        {"-fz", "unknown option '-z'"},
        {"--follow=1", "option '--follow' takes no value"},
        {"--limit", "option '--limit' needs a value: --limit N"},
        {"-n", "option '--limit' needs a value: --limit N"},
        {"-n -1", "wrong value of '--limit': '-1' is outside"},
        {"--since soon", "wrong value of '--since': 'soon' is not a duration"},
        {"-ojsn", "'jsn' is not a valid value for '--output': it takes table, json"},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct got g = {0};
        struct strv args = {0};
        struct err err = {0};
        bool help = false;
        assert_int_equal(parse(cases[i].line, &g, &args, &help, &err), ERR_USAGE);
        assert_int_equal(err.code, ERR_USAGE);
        assert_memory_equal(err.text, cases[i].sentence, strlen(cases[i].sentence));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_spelling),
        cmocka_unit_test(test_every_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
