/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of usage: added up per key, read by name and point, over spans of several steps, by who may
 * see them, and pruned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/test/bed.h"

#include <cmocka.h>

enum { QUARTER = 900, DAY = 86400 };

static void add(struct bed *b, int64_t step, int64_t at, const char *project, const char *user)
{
    struct store_usage u = {.cluster = "main",
                            .labels = "h20",
                            .project = project,
                            .user = user,
                            .workload = *user ? "verl" : "",
                            .step = step,
                            .at = at};
    for (int i = 0; i < STORE_USAGE_SUMS; i++)
        u.sums[i] = (int64_t)1 << (i + 30);
    store_add_usage(b->s, &u);
}

struct told {
    bool done;
    int code;
    char text[4000]; /* "name:point:first sum>>30 " */
};

static void usage_on_done(const struct store_result *r, void *arg)
{
    struct told *t = arg;
    size_t n = 0;
    t->done = true;
    t->code = r->err.code;
    for (size_t i = 0; i < r->nusage; i++) {
        const struct store_usage_sum *s = &r->usage[i];
        for (int k = 0; k < STORE_USAGE_SUMS; k++)
            assert_int_equal(s->sums[k], s->sums[0] << k);
        n += (size_t)snprintf(t->text + n, sizeof(t->text) - n, "%s%s:%lld:%lld", i ? " " : "",
                              s->name, (long long)s->point, (long long)(s->sums[0] >> 30));
    }
}

static void expect(struct bed *b, const struct store_usage_query *q, const char *text)
{
    struct told t = {0};
    assert_non_null(
        store_list_usage(b->s, q, &(struct store_then){.done = usage_on_done, .arg = &t}));
    while (!t.done)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
    assert_int_equal(t.code, 0);
    assert_string_equal(t.text, text);
}

static void test_sums(void **state)
{
    static const char *const rl[] = {"rl"};
    struct store_usage_query q = {.by = STORE_USAGE_BY_PROJECT,
                                  .spans = {{QUARTER, 0, 2 * QUARTER}},
                                  .n_spans = 1,
                                  .point = QUARTER};
    struct store_scope who = {.user = "bo", .projects = rl, .nprojects = 1};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    expect(&b, &q, "");
    add(&b, QUARTER, 0, "", "");
    add(&b, QUARTER, 0, "rl", "ann");
    add(&b, QUARTER, 0, "rl", "ann"); /* it is added */
    add(&b, QUARTER, 0, "rl", "bo");
    add(&b, QUARTER, QUARTER, "vision", "bo");
    add(&b, QUARTER, QUARTER, "vision", "cy");
    add(&b, QUARTER, 2 * QUARTER, "vision", "cy"); /* beyond */
    add(&b, DAY, 0, "rl", "ann");
    bed_settle(&b);
    expect(&b, &q, ":0:1 rl:0:3 vision:1:2");
    q.owned = true;
    expect(&b, &q, "rl:0:3 vision:1:2");
    q.by = STORE_USAGE_BY_USER;
    expect(&b, &q, "ann:0:2 bo:0:1 bo:1:1 cy:1:1");
    q.scope = &who;
    expect(&b, &q, "ann:0:2 bo:0:1 bo:1:1");
    who.nprojects = 0;
    expect(&b, &q, "bo:0:1 bo:1:1");
    q.scope = NULL;
    q.project = "vision";
    expect(&b, &q, "bo:1:1 cy:1:1");
    q.user = "cy";
    expect(&b, &q, "cy:1:1");
    q = (struct store_usage_query){.by = STORE_USAGE_BY_CLUSTER,
                                   .spans = {{QUARTER, QUARTER, 9 * QUARTER}, {DAY, 0, DAY}},
                                   .n_spans = 2,
                                   .point = 10 * (int64_t)DAY};
    expect(&b, &q, "main:0:3 main:0:1");
    store_prune_usage(b.s, QUARTER, 2 * QUARTER);
    bed_settle(&b);
    expect(&b, &q, "main:0:1 main:0:1");
    bed_close(&b);
    bed_open(&b, NULL);
    expect(&b, &q, "main:0:1 main:0:1");
    bed_release(&b);
}

static void test_too_many_projects(void **state)
{
    const char *many[STORE_SCOPE_MAX + 1];
    struct store_scope crowd = {.user = "bo", .projects = many, .nprojects = STORE_SCOPE_MAX + 1};
    struct store_usage_query q = {.spans = {{QUARTER, 0, 1}}, .n_spans = 1, .point = 1};
    struct told t = {0};
    struct bed b;
    (void)state;
    for (size_t i = 0; i < array_len(many); i++)
        many[i] = "x";
    q.scope = &crowd;
    bed_init(&b, NULL);
    assert_non_null(
        store_list_usage(b.s, &q, &(struct store_then){.done = usage_on_done, .arg = &t}));
    while (!t.done)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(t.code, ERR_REFUSED);
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_too_many_projects),
    };

    return cmocka_run_group_tests_name("store/usage", tests, NULL, NULL);
}
