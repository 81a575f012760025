/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a reply as cells: each kind with a value, with none, and with one that is no such
 * kind. */
#include "argus/show/cell.h"

#include <stdlib.h>
#include <string.h>

#include "argus/show/member.h"
#include "argus/show/when.h"
#include "base/unit.h"

static void check(enum cell as, const char *key, const char *most, const char *want)
{
    static const char reply[] =
        "{\"text\":\"grpo\",\"empty\":\"\",\"null\":null,\"whole\":12,\"real\":0.25,"
        "\"at\":\"1970-01-01T00:00:00Z\",\"bytes\":1536,\"rate\":2560.5,\"huge\":1e300,\"list\":[\"a\",\"b\",1],\"none\":[],"
        "\"in\":{\"text\":\"deep\",\"used\":4,\"half\":4.5,\"most\":8}}";
    const struct column column = {.title = "say_id", .key = key, .as = as, .most = most};
    struct when w = {.now = 60 * USEC_SEC};
    struct term term = {0};
    char *text = NULL;
    size_t len = 0;
    json_t *item = json_loads(reply, 0, NULL);
    FILE *out = open_memstream(&text, &len);
    struct table *t = table_new(&column, 1);
    table_add_item(t, item, &w);
    assert_int_equal(table_rows(t), 1);
    (void)table_print(t, &term, true, out);
    assert_int_equal(fclose(out), 0);
    char *line = strchr(text, '\n');
    assert_non_null(line);
    line[strlen(line) - 1] = 0;
    assert_string_equal(line + 1, want);
    free(text);
    table_free(t);
    json_decref(item);
}

static void test_kinds(void **state)
{
    (void)state;
    char size[SIZE_TEXT_MAX];
    check(CELL_TEXT, "text", NULL, "grpo");
    check(CELL_TEXT, "in.text", NULL, "deep");
    check(CELL_NUMBER, "whole", NULL, "12");
    check(CELL_NUMBER, "real", NULL, "0.25");
    check(CELL_VALUE, "real", NULL, "0.25");
    check(CELL_SIZE, "bytes", NULL, "1.5 KiB");
    check(CELL_SIZE, "rate", NULL, "2.5 KiB");
    check(CELL_SIZE, "huge", NULL, size_text(1000000000000000000, size));
    check(CELL_RATIO, "real", NULL, "25%");
    check(CELL_RATIO, "whole", NULL, "1200%");
    check(CELL_LIST, "list", NULL, "a,b,?");
    check(CELL_USE, "in.used", "in.most", "4/8");
    check(CELL_USE, "in.half", "in.gone", "4.5/-");
}

static void test_missing(void **state)
{
    (void)state;
    static const char *const keys[] = {"gone", "null", "gone.deeper", "text.deeper"};
    for (size_t i = 0; i < array_len(keys); i++) {
        check(CELL_TEXT, keys[i], NULL, "-");
        check(CELL_TIME, keys[i], NULL, "-");
        check(CELL_VALUE, keys[i], NULL, "-");
        check(CELL_SIZE, keys[i], NULL, "-");
        check(CELL_RATIO, keys[i], NULL, "-");
        check(CELL_LIST, keys[i], NULL, "-");
        check(CELL_NUMBER, keys[i], NULL, "0");
        check(CELL_USE, keys[i], keys[i], "0/-");
    }
    check(CELL_TEXT, "empty", NULL, "-");
    check(CELL_TEXT, "whole", NULL, "-");
    check(CELL_TIME, "text", NULL, "-");
    check(CELL_LIST, "none", NULL, "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds),
                                       cmocka_unit_test(test_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
