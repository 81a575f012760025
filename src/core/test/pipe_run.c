/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pipe_run.h: runs of small pipelines, told step by step what became of their items. */
#include "core/pipe/pipe_run.h"

#include <stdlib.h>

#include "base/str.h"
#include "base/text.h"

#include "pipe_made.h"

enum { NOW = 1000 };

/* A run of the pipeline; release both. */
static struct pipe_run begin(const char *text)
{
    struct pipe *p = pipe_made(text);
    struct pipe_run run = {.pipe = p,
                           .id = "r1",
                           .user = "alice",
                           .project = "rl",
                           .number = 7,
                           .params = json_object()};
    pipe_run_begin(&run);
    return run;
}

static void end(struct pipe_run *run)
{
    struct pipe *p = (struct pipe *)(uintptr_t)run->pipe;
    pipe_run_release(run);
    pipe_free(p);
}

/* All that is due now, as "+a -b": started and passed over. */
static const char *due(struct pipe_run *run, usec_t now, char *text, size_t size)
{
    struct buf out = BUF_INIT(1000);
    size_t i;
    for (enum pipe_act act; (act = pipe_run_next(run, now, &i)) != PIPE_ACT_NONE;) {
        assert_int_equal(buf_addf(&out, "%s%s%s", out.len ? " " : "",
                                  act == PIPE_ACT_START ? "+" : "-", run->v[i].name),
                         0);
        if (act == PIPE_ACT_START)
            pipe_run_started(run, i, "j", now);
        else
            pipe_run_skip(run, i, now);
    }
    text_copy_to(text, size, buf_str(&out));
    buf_release(&out);
    return text;
}
#define DUE(run, now) due(run, now, (char[200]){0}, 200)

static size_t item_of(const struct pipe_run *run, const char *name)
{
    for (size_t i = 0; i < run->n; i++)
        if (str_eq(run->v[i].name, name))
            return i;
    fail_msg("no item '%s'", name);
    return 0;
}

static void ended(struct pipe_run *run, const char *name, enum pipe_state state, const char *left)
{
    pipe_run_ended(run, item_of(run, name), state, left, NULL, NULL, NOW);
}

static void test_chain(void **state)
{
    struct pipe_run r =
        begin("name: p\nsteps:\n"
              "  c: {needs: [b], with: {}}\n"
              "  a: {with: {}}\n"
              "  b: {with: {x: 'v=${{ steps.a.metrics.loss }}', y: '${{ run.number }}'}}\n");
    struct buf out = BUF_INIT(200);
    (void)state;
    assert_string_equal(DUE(&r, NOW), "+a");
    assert_string_equal(DUE(&r, NOW), "");
    ended(&r, "a", PIPE_SUCCEEDED, "{\"metrics\":{\"loss\":0.5}}");
    assert_string_equal(DUE(&r, NOW), "+b");
    assert_int_equal(pipe_run_fill(&r, item_of(&r, "b"), &out, NULL), 0);
    assert_string_equal(buf_str(&out), "{\"x\":\"v=0.5\",\"y\":7}");
    ended(&r, "b", PIPE_SUCCEEDED, NULL);
    assert_int_equal(pipe_run_state(&r), PIPE_RUNNING);
    assert_string_equal(DUE(&r, NOW), "+c");
    ended(&r, "c", PIPE_SUCCEEDED, NULL);
    assert_int_equal(pipe_run_state(&r), PIPE_SUCCEEDED);
    buf_release(&out);
    end(&r);
}

static void test_no_value(void **state)
{
    struct pipe_run r = begin("name: p\nsteps:\n"
                              "  a: {with: {}}\n"
                              "  b: {with: {x: 'v=${{ steps.a.metrics.loss }}'}}\n");
    struct buf out = BUF_INIT(200);
    struct err err = {0};
    (void)state;
    assert_string_equal(DUE(&r, NOW), "+a");
    ended(&r, "a", PIPE_SUCCEEDED, "{}");
    assert_int_equal(pipe_run_fill(&r, item_of(&r, "b"), &out, &err), ERR_REFUSED);
    assert_string_equal(err.message, "pipe_no_value");
    buf_release(&out);
    end(&r);
}

static void test_failure(void **state)
{
    struct pipe_run r = begin("name: p\nsteps:\n"
                              "  a: {with: {}}\n"
                              "  after: {needs: [a], with: {}}\n"
                              "  later: {needs: [after], with: {}}\n"
                              "  mourn: {needs: [a], if: failure(), with: {}}\n"
                              "  sweep: {needs: [later], if: always(), with: {}}\n"
                              "  other: {with: {}}\n");
    (void)state;
    assert_string_equal(DUE(&r, NOW), "+a +other");
    ended(&r, "a", PIPE_FAILED, NULL);
    assert_string_equal(DUE(&r, NOW), "-after -later +mourn +sweep");
    assert_string_equal(r.v[item_of(&r, "after")].code, "pipe_before_failed");
    ended(&r, "mourn", PIPE_SUCCEEDED, NULL);
    ended(&r, "sweep", PIPE_SUCCEEDED, NULL);
    assert_int_equal(pipe_run_state(&r), PIPE_RUNNING);
    ended(&r, "other", PIPE_SUCCEEDED, NULL);
    assert_int_equal(pipe_run_state(&r), PIPE_FAILED);

    /* Again, from the one that failed: what needs it too, the others stay. */
    pipe_run_again(&r, -1, NULL);
    assert_string_equal(DUE(&r, NOW), "+a");
    ended(&r, "a", PIPE_SUCCEEDED, NULL);
    assert_string_equal(DUE(&r, NOW), "+after -mourn");
    assert_string_equal(r.v[item_of(&r, "mourn")].code, "pipe_if_false");
    end(&r);
}

static void test_retry(void **state)
{
    struct pipe_run r = begin("name: p\nsteps: {a: {with: {}, retry: {limit: 1, backoff: 5s}}}\n");
    (void)state;
    assert_string_equal(DUE(&r, NOW), "+a");
    text_copy(r.v[0].hash, "of the first try");
    ended(&r, "a", PIPE_FAILED, NULL);
    assert_string_equal(DUE(&r, NOW), "");
    assert_int_equal(pipe_run_wake(&r), NOW + 5 * USEC_SEC);
    assert_int_equal(pipe_run_state(&r), PIPE_RUNNING);
    assert_string_equal(DUE(&r, NOW + 5 * USEC_SEC), "+a");
    assert_string_equal(r.v[0].hash, ""); /* its inputs are told anew, or not at all */
    ended(&r, "a", PIPE_FAILED, NULL);
    assert_int_equal(pipe_run_wake(&r), 0);
    assert_int_equal(pipe_run_state(&r), PIPE_FAILED);
    end(&r);
}

static void test_matrix(void **state)
{
    struct pipe_run r = begin(
        "name: p\nsteps:\n"
        "  e: {matrix: {x: [1, 2], y: [a, '3']}, with: {v: '${{ matrix.x }}-${{ matrix.y }}'}}\n"
        "  ok: {uses: check, with: {that: '${{ steps.e.metrics.m > 1 }}'}}\n"
        "  best: {if: steps.e.metrics.m > 5, with: {}}\n");
    struct buf out = BUF_INIT(200);
    (void)state;
    assert_string_equal(DUE(&r, NOW), "+e-1 +e-2 +e-3 +e-4");
    assert_string_equal(r.v[1].matrix, "{\"x\":1,\"y\":\"3\"}");
    assert_int_equal(pipe_run_fill(&r, 2, &out, NULL), 0);
    assert_string_equal(buf_str(&out), "{\"v\":\"2-a\"}");
    for (size_t i = 0; i < 4; i++)
        pipe_run_ended(&r, i, PIPE_SUCCEEDED, "{\"metrics\":{\"m\":2}}", NULL, NULL, NOW);
    assert_string_equal(DUE(&r, NOW), "+ok -best");
    buf_reset(&out);
    assert_int_equal(pipe_run_fill(&r, item_of(&r, "ok"), &out, NULL), 0);
    assert_string_equal(buf_str(&out), "{\"that\":true}");
    buf_release(&out);
    end(&r);
}

static void test_cancel(void **state)
{
    struct pipe_run r = begin("name: p\nsteps:\n"
                              "  a: {with: {}, retry: {limit: 5}}\n"
                              "  b: {needs: [a], with: {}}\n"
                              "  sweep: {needs: [a], if: always(), with: {}}\n");
    (void)state;
    assert_string_equal(DUE(&r, NOW), "+a");
    pipe_run_cancel(&r, NOW);
    assert_int_equal(pipe_run_state(&r), PIPE_RUNNING); /* until a has been stopped */
    ended(&r, "a", PIPE_CANCELLED, NULL);
    assert_string_equal(DUE(&r, NOW), "");
    assert_int_equal(pipe_run_state(&r), PIPE_CANCELLED);
    pipe_run_again(&r, -1, NULL);
    assert_string_equal(DUE(&r, NOW), "+a");
    end(&r);
}

/* From a step that succeeded: it and all that needs it. */
static void test_again_from(void **state)
{
    struct pipe_run r = begin("name: p\nsteps:\n"
                              "  a: {with: {}}\n  b: {needs: [a], with: {}}\n"
                              "  c: {needs: [b], with: {}}\n  d: {needs: [a], with: {}}\n");
    (void)state;
    const char *all[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < array_len(all); i++)
        ended(&r, all[i], PIPE_SUCCEEDED, "{}");
    pipe_run_again(&r, 1, NULL);
    assert_string_equal(DUE(&r, NOW), "+b");
    ended(&r, "b", PIPE_SUCCEEDED, NULL);
    assert_string_equal(DUE(&r, NOW), "+c");
    assert_int_equal(r.v[item_of(&r, "d")].state, PIPE_SUCCEEDED);
    end(&r);
}

/* What is kept of an item is all of it but its step. */
static void test_kept(void **state)
{
    struct pipe_run r = begin("name: p\nsteps: {a: {with: {}, matrix: {x: [1]}}}\n");
    struct pipe_item back = {0};
    (void)state;
    assert_string_equal(DUE(&r, NOW), "+a-1");
    pipe_run_ended(&r, 0, PIPE_FAILED, "{\"job\":\"j\"}", "pipe_no_value", "{}", NOW);
    _cleanup_(freep) char *text = field_to_text(&pipe_item_table, &r.v[0], FIELD_STORED, FIELD_ROW);
    assert_true(field_from_text(&pipe_item_table, text, FIELD_STORED, &back));
    assert_true(field_equal(&pipe_item_table, &r.v[0], &back, FIELD_STORED));
    field_release(&pipe_item_table, &back);
    end(&r);
}

/* ---- random graphs ---- */

enum { GRAPHS = 200, STEPS_OF_GRAPH = 12 };

/* Steps s0, s1, …; needs[i][k]: step i needs k, which is smaller; file[i] stands at place i. */
struct graph {
    uint64_t random;
    size_t n;
    bool needs[STEPS_OF_GRAPH][STEPS_OF_GRAPH];
    size_t file[STEPS_OF_GRAPH];
};

static size_t graph_below(struct graph *g, size_t below)
{
    g->random ^= g->random << 13;
    g->random ^= g->random >> 7;
    g->random ^= g->random << 17;
    return (size_t)(g->random % below);
}

/* Each step has a parameter of its own, in `with` or in `if`, and its needs by name or by
 * reference. */
static void graph_write(struct graph *g, struct buf *out)
{
    g->n = 1 + graph_below(g, STEPS_OF_GRAPH);
    assert_int_equal(buf_adds(out, "name: p\nparams:\n"), 0);
    for (size_t i = 0; i < g->n; i++) {
        size_t at = graph_below(g, i + 1);
        g->file[i] = g->file[at];
        g->file[at] = i;
        assert_int_equal(buf_addf(out, "  p%zu: {type: integer, default: 1}\n", i), 0);
    }
    assert_int_equal(buf_adds(out, "steps:\n"), 0);
    for (size_t place = 0; place < g->n; place++) {
        size_t i = g->file[place];
        bool in_if = graph_below(g, 4) == 0;
        struct buf needs = BUF_INIT(1000), with = BUF_INIT(2000);
        for (size_t k = 0; k < i; k++) {
            g->needs[i][k] = graph_below(g, 3) == 0;
            if (g->needs[i][k] && graph_below(g, 2))
                assert_int_equal(buf_addf(&needs, "%ss%zu", needs.len ? ", " : "", k), 0);
            else if (g->needs[i][k])
                assert_int_equal(buf_addf(&with, ", n%zu: '${{ steps.s%zu.job }}'", k, k), 0);
        }
        if (!in_if)
            assert_int_equal(buf_addf(&with, ", own: '${{ params.p%zu }}'", i), 0);
        assert_int_equal(buf_addf(out, "  s%zu: {needs: [%s], with: {x: 1%s}", i, buf_str(&needs),
                                  buf_str(&with)),
                         0);
        if (in_if)
            assert_int_equal(buf_addf(out, ", if: params.p%zu > 0", i), 0);
        assert_int_equal(buf_adds(out, "}\n"), 0);
        buf_release(&needs);
        buf_release(&with);
    }
}

/* Runs what is due until nothing is; marks what was started. */
static void graph_run(struct pipe_run *r, bool *started)
{
    size_t i;
    for (enum pipe_act act; (act = pipe_run_next(r, NOW, &i)) != PIPE_ACT_NONE;) {
        assert_int_equal(act, PIPE_ACT_START);
        assert_false(started[i]); /* once each */
        started[i] = true;
        pipe_run_started(r, i, "j", NOW);
        pipe_run_ended(r, i, PIPE_SUCCEEDED, "{\"job\":\"j\"}", NULL, NULL, NOW);
    }
    assert_int_equal(pipe_run_state(r), PIPE_SUCCEEDED);
}

/* Exactly the changed step and its descendants were run, whatever told that it changed. */
static void graph_compare(const struct graph *g, size_t changed, const bool *started)
{
    bool want[STEPS_OF_GRAPH] = {false};
    for (size_t i = changed; i < g->n; i++) { /* needs lead to smaller ones only */
        want[i] = i == changed;
        for (size_t k = changed; k < i; k++)
            want[i] = want[i] || (g->needs[i][k] && want[k]);
    }
    for (size_t place = 0; place < g->n; place++)
        assert_int_equal(started[place], want[g->file[place]]);
}

static void test_random_graphs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        struct graph g = {.random = seed * 2654435761U + 88172645463325252ULL};
        struct buf text = BUF_INIT(16384);
        bool all[STEPS_OF_GRAPH] = {false}, by_param[STEPS_OF_GRAPH] = {false},
             by_step[STEPS_OF_GRAPH] = {false};
        char name[16];
        graph_write(&g, &text);
        struct pipe_run r = begin(buf_str(&text));
        for (size_t i = 0; i < g.n; i++) {
            text_printf(name, "p%zu", i);
            assert_int_equal(json_object_set_new(r.params, name, json_integer(1)), 0);
        }
        graph_run(&r, all);
        for (size_t i = 0; i < g.n; i++)
            assert_true(all[i]);

        size_t changed = graph_below(&g, g.n), place = 0;
        json_t *params = json_deep_copy(r.params);
        text_printf(name, "p%zu", changed);
        assert_int_equal(json_object_set_new(params, name, json_integer(2)), 0);
        pipe_run_again(&r, -1, params);
        graph_run(&r, by_param);
        graph_compare(&g, changed, by_param);

        while (g.file[place] != changed)
            place++;
        pipe_run_again(&r, (int)place, json_deep_copy(r.params)); /* the same values */
        graph_run(&r, by_step);
        graph_compare(&g, changed, by_step);
        end(&r);
        buf_release(&text);
    }
}

/* What an earlier try held is not lost with its job, nor is it counted twice. */
static void test_hours_of_all_tries(void **state)
{
    struct pipe_run r = begin("name: p\nsteps:\n  a: {with: {}}\n");
    (void)state;
    for (int k = 1; k <= 3; k++) {
        assert_string_equal(DUE(&r, NOW), "+a");
        r.v[0].gpu_hours = k;
        ended(&r, "a", PIPE_FAILED, NULL);
        assert_true(r.v[0].gpu_hours + r.v[0].gpu_hours_before == k * (k + 1) / 2.0);
        pipe_run_again(&r, -1, NULL);
    }
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),         cmocka_unit_test(test_no_value),
        cmocka_unit_test(test_failure),       cmocka_unit_test(test_retry),
        cmocka_unit_test(test_matrix),        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_again_from),    cmocka_unit_test(test_kept),
        cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_hours_of_all_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
