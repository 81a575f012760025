/* SPDX-License-Identifier: Apache-2.0 */
/* NodeSpecs that are good, and each way of being bad with its place and its hint. */
#include "core/spec/nodespec.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"
#include "base/unit_message.h"

struct got {
    struct nodespec *v;
    size_t n;
    struct problems ps;
    int r;
};

static struct got read_text(const char *text)
{
    struct got g = {0};
    struct doc *d = NULL;
    assert_int_equal(doc_parse(text, strlen(text), true, &d, &g.ps), 0);
    g.r = nodespec_read_all(doc_root(d), &g.v, &g.n, &g.ps);
    doc_free(d);
    assert_true((g.r < 0) == (g.ps.errors > 0));
    return g;
}

static void release(struct got *g)
{
    for (size_t i = 0; i < g->n; i++)
        nodespec_release(&g->v[i]);
    free(g->v);
    problems_release(&g->ps);
}

static void test_a_whole_one_reads_back(void **state)
{
    (void)state;
    struct got g = read_text("name: a6000-1\nhost: 10.0.0.7\nuser: root\nport: 2222\n"
                             "labels: [a6000, network=sw1, shareable, rack-3]\ngpu_count: 8\n"
                             "cpu_count: 96\ngpu_type: A6000\nidentity_file: /k\n"
                             "proxy_jump: me@jump:22\nray_bin: /opt/bin/ray\n"
                             "env: {HF_TOKEN: t, A: b}\nimage: v1\ncluster: c\n"
                             "model_cache: /local/models\n");
    assert_int_equal(g.r, 0);
    assert_int_equal(g.n, 1);
    const struct nodespec *s = &g.v[0];
    assert_string_equal(s->name, "a6000-1");
    assert_string_equal(s->model_cache, "/local/models");
    assert_int_equal(s->port, 2222);
    assert_string_equal(s->network, "sw1");
    assert_true(s->shareable);
    char *pool = nodespec_pool(s);
    assert_string_equal(pool, "a6000,rack-3");
    free(pool);
    struct buf out = BUF_INIT(NODESPEC_JSON_MAX), masked = BUF_INIT(NODESPEC_JSON_MAX);
    struct jout j = jout_begin(&out), m = jout_begin(&masked);
    nodespec_to_json(s, &j, NULL, false);
    nodespec_to_json(s, &m, NULL, true);
    assert_non_null(strstr(buf_str(&masked), "\"HF_TOKEN\":\"***\""));
    struct got again = read_text(buf_str(&out));
    assert_int_equal(again.r, 0);
    assert_true(nodespec_equal(s, &again.v[0]));
    free(again.v[0].host);
    again.v[0].host = xstrdup("10.0.0.8");
    assert_false(nodespec_equal(s, &again.v[0]));
    buf_release(&out);
    buf_release(&masked);
    release(&again);
    release(&g);
}

static void test_labels_have_three_forms(void **state)
{
    (void)state;
    const char *texts[] = {"{name: n, host: h, labels: 'h20,fast'}",
                           "{name: n, host: h, labels: [h20, pool=fast, h20]}",
                           "{name: n, host: h, labels: {pool: 'h20,fast', network: x}}"};
    for (size_t i = 0; i < array_len(texts); i++) {
        struct got g = read_text(texts[i]);
        assert_int_equal(g.r, 0);
        char *pool = nodespec_pool(&g.v[0]);
        assert_string_equal(pool, "h20,fast");
        free(pool);
        release(&g);
    }
    struct got g = read_text("{name: n, host: h, labels: {rack: 3, shareable: true}}");
    char *pool = nodespec_pool(&g.v[0]);
    assert_string_equal(pool, "rack=3");
    assert_true(g.v[0].shareable);
    free(pool);
    release(&g);
}

static void test_lists(void **state)
{
    (void)state;
    struct got g = read_text("nodes:\n- {name: a, host: h1}\n- {name: b, host: h2}\n");
    assert_int_equal(g.r, 0);
    assert_int_equal(g.n, 2);
    assert_string_equal(g.v[1].name, "b");
    assert_int_equal(g.v[1].gpu_count, -1);
    release(&g);
    g = read_text("- {name: a, host: h1}\n- {name: a, host: h2}\n");
    assert_int_equal(g.r, ERR_BAD_SPEC);
    assert_non_null(strstr(unit_problem(&g.ps.v[0]), "twice"));
    release(&g);
    g = read_text("- {name: a, host: h1}\n- {name: b, host: h1, port: 22}\n");
    assert_int_equal(g.r, ERR_BAD_SPEC);
    assert_non_null(strstr(unit_problem(&g.ps.v[0]), "same machine as 'a'"));
    release(&g);
    g = read_text("- {name: a, host: h1}\n- {name: b, host: h1, port: 23}\n");
    assert_int_equal(g.r, 0);
    release(&g);
    g = read_text("[]");
    assert_int_equal(g.r, ERR_BAD_SPEC);
    release(&g);
}

static void test_bad_ones_name_place_and_fix(void **state)
{
    (void)state;
    static const struct {
        const char *text, *field, *says, *hint;
    } cases[] = {
        {"{name: n, host: h, gpus_count: 4}", "gpus_count", "unknown key", "gpu_count"},
        {"{host: h}", "name", "missing", NULL},
        {"{name: n}", "host", "missing", NULL},
        {"{name: a b, host: h}", "name", "not a valid node name", NULL},
        {"{name: head, host: h}", "name", "belongs to the head", NULL},
        {"{name: n, host: -oProxyCommand=x}", "host", "as a host", "address"},
        {"{name: n, host: root@h}", "host", "as a host", "own keys"},
        {"{name: n, host: h, user: 'a b'}", "user", "as a user", NULL},
        {"{name: n, host: h, port: 0}", "port", "outside", NULL},
        {"{name: n, host: h, port: 70000}", "port", "outside", NULL},
        {"{name: n, host: h, proxy_jump: 'a;b'}", "proxy_jump", "not a valid jump host", NULL},
        {"{name: n, host: h, ray_bin: bin/ray}", "ray_bin", "not absolute", NULL},
        {"{name: n, host: h, labels: ['']}", "labels", "not a valid label", NULL},
        {"{name: n, host: h, labels: ['a b']}", "labels", "not a valid label", NULL},
        {"{name: n, host: h, labels: [[a]]}", "labels", "is a text", NULL},
        {"{name: n, host: h, env: {RAY_ADDRESS: x}}", "env", "sets this variable", NULL},
        {"{name: n, host: h, env: {ARGUS_X: x}}", "env", "belong to Argus", NULL},
        {"{name: n, host: h, env: {'a-b': x}}", "env", "not a valid name", NULL},
        {"{name: n, host: h, exporter: smi}", "exporter", "dcgm, nvidia", NULL},
        {"{name: n, host: h, model_cache: x}", "model_cache", "'x' cannot be", "absolute path"},
        {"{name: n, host: h, model_cache: /a/../b}", "model_cache", "cannot be", "without '..'"},
        {"{name: n, host: h, model_cache: '/a b'}", "model_cache", "cannot be", "letters, digits"},
        {"{name: n, host: h, gpu_count: 65}", "gpu_count", "outside", NULL},
        {"12", "", "mapping is expected", NULL},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct got g = read_text(cases[i].text);
        assert_int_equal(g.r, ERR_BAD_SPEC);
        bool found = false;
        for (size_t k = 0; k < g.ps.n; k++)
            found |= !strcmp(g.ps.v[k].field, cases[i].field) &&
                     strstr(unit_problem(&g.ps.v[k]), cases[i].says) &&
                     (!cases[i].hint || strstr(unit_problem(&g.ps.v[k]), cases[i].hint));
        if (!found)
            fail_msg("'%s' says '%s: %s'", cases[i].text, g.ps.v[0].field,
                     unit_problem(&g.ps.v[0]));
        release(&g);
    }
    struct got g = read_text("- {name: a, host: h1}\n- {name: b, host: h2,\n   hots: c}\n");
    assert_string_equal(g.ps.v[0].field, "[1].hots");
    assert_int_equal(g.ps.v[0].line, 3);
    release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_one_reads_back),
        cmocka_unit_test(test_labels_have_three_forms),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_bad_ones_name_place_and_fix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
