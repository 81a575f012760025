/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides as people write them: what Hydra reads, what it cannot, and what was meant. That both
 * read alike is shown by tests/daemon/test_hydra_reading.py. */
#include "core/spec/hydra_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

static void test_faults_and_what_is_near(void **state)
{
    static const struct {
        const char *override;
        enum hydra_fault fault;
        const char *near; /* NULL: there is none */
    } rows[] = {
        {"a.b=1", HYDRA_FINE, NULL},
        {"a=x|y", HYDRA_FINE, NULL},
        {"a=x: y", HYDRA_FINE, NULL},
        {"a=", HYDRA_FINE, NULL},
        {"~a.b", HYDRA_FINE, NULL},
        {"++a.b={c: [1, 'd e'], f: {}}", HYDRA_FINE, NULL},
        {"group/sub@there=x", HYDRA_FINE, NULL},
        {"a=sort([3,1])", HYDRA_FINE, NULL},
        {"a='${b} it\\'s'", HYDRA_FINE, NULL},
        {"a=/ckpt/step=9.ckpt", HYDRA_BAD_VALUE, "a='/ckpt/step=9.ckpt'"},
        {"a=强化", HYDRA_BAD_VALUE, "a='强化'"},
        {"a=run #7", HYDRA_BAD_VALUE, "a='run #7'"},
        {"a=it's", HYDRA_BAD_VALUE, "a='it\\'s'"},
        {"a=(x, y)", HYDRA_BAD_VALUE, "a='(x, y)'"},
        {"a=[x, y", HYDRA_BAD_VALUE, "a=[x, y]"},
        {"a={b:1", HYDRA_BAD_VALUE, "a={b:1}"},
        {"a={\"b\": 1, \"c\": \"d\"}", HYDRA_BAD_VALUE, "a={b: 1, c: \"d\"}"},
        {"a='x' ", HYDRA_BAD_VALUE, "a='\\'x\\''"},
        {"a=x,y", HYDRA_SWEEP, "a=[x,y]"},
        {"a=choice(1,2)", HYDRA_SWEEP, "a='choice(1,2)'"},
        {"a=range(1,9)", HYDRA_SWEEP, "a='range(1,9)'"},
        {"a=f(x)", HYDRA_NO_CALL, "a='f(x)'"},
        {"a='x ${'", HYDRA_OPEN_NAME, NULL},
        {" a=1", HYDRA_BAD_KEY, "a=1"},
        {"a = 1", HYDRA_BAD_KEY, "a=1"},
        {"a b=1", HYDRA_BAD_KEY, NULL},
        {"a[0].b=1", HYDRA_BAD_KEY, NULL},
        {"学习=1", HYDRA_BAD_KEY, NULL},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct hydra_value v;
        enum hydra_fault fault = hydra_read(rows[i].override, &v);
        _cleanup_(freep) char *near = fault ? hydra_nearest(rows[i].override) : NULL;
        if (fault != rows[i].fault)
            fail_msg("%s: %d", rows[i].override, (int)fault);
        if (!rows[i].near != !near || (near && strcmp(near, rows[i].near) != 0))
            fail_msg("%s: near %s", rows[i].override, near ? near : "nothing");
        hydra_value_release(&v);
    }
}

static void test_texts(void **state)
{
    static const struct {
        const char *override;
        const char *texts[4]; /* NULL at once: not known */
        bool is_quoted;
    } rows[] = {
        {"a=/d/x.parquet", {"/d/x.parquet"}, false},
        {"a='/d/a b.parquet'", {"/d/a b.parquet"}, true},
        {"a=[/d/x.parquet, '/d/y.parquet' ,\"z\"]", {"/d/x.parquet", "/d/y.parquet", "z"}, false},
        {"a=\\[x\\]", {"[x]"}, false},
        {"a= b c ", {"b c"}, false},
        {"a='it\\'s \\\\ \\\\'", {"it's \\\\ \\"}, true},
        {"a=${b}/x", {NULL}, false},
        {"a='${b}/x'", {NULL}, true},
        {"a='\\${b}'", {"\\${b}"}, true},
        {"a={b: c}", {NULL}, false},
        {"a=[[x]]", {NULL}, false},
        {"a=int(3)", {NULL}, false},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct hydra_value v;
        assert_int_equal(hydra_read(rows[i].override, &v), HYDRA_FINE);
        assert_int_equal(v.is_quoted, rows[i].is_quoted);
        assert_int_equal(v.is_known, rows[i].texts[0] != NULL);
        for (size_t k = 0; v.is_known && rows[i].texts[k]; k++) {
            assert_true(k < v.texts.n);
            assert_string_equal(v.texts.v[k], rows[i].texts[k]);
        }
        hydra_value_release(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults_and_what_is_near),
                                       cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
