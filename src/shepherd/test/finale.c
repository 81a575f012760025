/* SPDX-License-Identifier: Apache-2.0 */
/* What the output ends with is told, and what it has long gone on after is not. */
#include "shepherd/attempt/finale.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

#define RAISED                                                                                     \
    "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    main()\n"       \
    "RuntimeError: loss is nan\n"

/* What it says, "" for nothing. Fed whole and byte by byte. */
static const char *said(const char *text, char line[static FINALE_LINE_MAX])
{
    _cleanup_(freep) struct finale *whole = xcalloc(1, sizeof(*whole)),
                                   *bytes = xcalloc(1, sizeof(*bytes));
    char other[FINALE_LINE_MAX] = "";
    *line = 0;
    finale_add(whole, text, strlen(text));
    for (const char *p = text; *p; p++)
        finale_add(bytes, p, 1);
    bool says = finale_says_failure(whole, line);
    assert_int_equal(finale_says_failure(bytes, other), says);
    assert_string_equal(line, other);
    return line;
}

static void failures_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line;
    } rows[] = {
        {"step 1\n" RAISED, "RuntimeError: loss is nan"},
        {RAISED "\n\nwandb: run is over\nwandb: bye\n", "RuntimeError: loss is nan"},
        {"100%|##| 8/8\rTraceback (most recent call last):\n  File \"a\"\na.b.MyError\n",
         "a.b.MyError"},
        {"[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a\"\n[rank0]: KeyError: 'x'\n",
         "KeyError: 'x'"},
        {"(pid=9) Traceback (most recent call last):\n(pid=9)   File \"a\"\nother\n(pid=9) KeyError: 1\n",
         "KeyError: 1"},
        {RAISED "\nDuring handling of the above exception, another exception occurred:\n\n"
                "Traceback (most recent call last):\n  File \"b\"\nValueError: y\n",
         "ValueError: y"},
        {"ok\nbash: line 1: torchrun: command not found\n",
         "bash: line 1: torchrun: command not found"},
        {"sh: 1: ./a: Permission denied\n", "sh: 1: ./a: Permission denied"},
        {"run.sh: line 3:    17 Segmentation fault      (core dumped) python t.py | tee log\n",
         "run.sh: line 3:    17 Segmentation fault      (core dumped) python t.py | tee log"},
        {"Segmentation fault (core dumped)\n", "Segmentation fault (core dumped)"},
    };
    char line[FINALE_LINE_MAX];
    for (size_t i = 0; i < array_len(rows); i++)
        assert_string_equal(said(rows[i].text, line), rows[i].line);
}

static void what_went_on_is_no_failure(void **state)
{
    static const char *const rows[] = {
        "",
        "all is well\n",
        RAISED "retrying\nstep 1\nstep 2\nstep 3\nstep 4\nstep 5\nstep 6\n",
        "Exception ignored in: <function f at 0x1>\nTraceback (most recent call last):\n"
        "  File \"a\"\nImportError: sys.meta_path is None, Python is likely shutting down\n",
        "Traceback (most recent call last):\n  File \"a\"\n",
        "Traceback (most recent call last):\n  File \"a\"\nall is well again\n",
        "the key was: not found\n",
    };
    char line[FINALE_LINE_MAX];
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++)
        assert_string_equal(said(rows[i], line), "");
}

static void the_last_counts_after_very_much(void **state)
{
    _cleanup_(freep) struct finale *f = xcalloc(1, sizeof(*f));
    char line[FINALE_LINE_MAX], much[1000];
    (void)state;
    memset(much, 'x', sizeof(much));
    for (int i = 0; i < 200; i++)
        finale_add(f, much, sizeof(much));
    finale_add(f, "\n" RAISED, strlen("\n" RAISED));
    assert_true(finale_says_failure(f, line));
    assert_string_equal(line, "RuntimeError: loss is nan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(what_went_on_is_no_failure),
        cmocka_unit_test(the_last_counts_after_very_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
