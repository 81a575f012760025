/* SPDX-License-Identifier: Apache-2.0 */
/* Every type of row, and every problem of an input told at once with its place. */
#include "base/doc/conf.h"

#include <string.h>

#include "base/text.h"
#include "base/unit.h"

struct sample {
    char *name;
    int64_t port;
    double ratio;
    bool on;
    usec_t wait;
    uint64_t size;
    int mode;
    struct strv list;
    struct pairs env;
    const struct node *any;
};

static const char *const modes[] = {"slow", "fast", NULL};
static const struct field keys[] = {
    {"name", FIELD_STR, offsetof(struct sample, name), .flags = FIELD_REQUIRED, .doc = "its name"},
    {"net.port", FIELD_INT, offsetof(struct sample, port), "80", 1, 65535, .doc = "the port"},
    {"ratio", FIELD_REAL, offsetof(struct sample, ratio), "0.5", 0, 1, .doc = "the ratio"},
    {"on", FIELD_BOOL, offsetof(struct sample, on), "true", .doc = "on or off"},
    {"wait", FIELD_SPAN, offsetof(struct sample, wait), "30s", 1, 60, .doc = "how long"},
    {"size", FIELD_SIZE, offsetof(struct sample, size), "1MiB", .doc = "how much"},
    {"mode", FIELD_ENUM, offsetof(struct sample, mode), "slow", .names = modes, .doc = "how"},
    {"list", FIELD_STRV, offsetof(struct sample, list), .doc = "some"},
    {"env", FIELD_PAIRS, offsetof(struct sample, env), .doc = "names to texts"},
    {"any", FIELD_NODE, offsetof(struct sample, any), .doc = "anything"},
};

static struct doc *read(const char *text, struct sample *s, struct problems *ps)
{
    struct doc *d = NULL;
    assert_int_equal(doc_parse(text, strlen(text), true, &d, ps), 0);
    conf_read(keys, array_len(keys), doc_root(d), s, ps);
    return d;
}

/* Forms of a mapping of texts that other programs read, and null in one. */
static void test_pairs(void **state)
{
    static const struct {
        const char *env, *part;
    } rows[] = {
        {"[LR=1e-5, X=2]", "write a line 'LR: 1e-5' below 'env:'"},
        {"LR=1e-5", "write a line 'LR: 1e-5' below 'env:'"},
        {"[{LR: 1e-5}]", "write a line 'LR: 1e-5' below 'env:'"},
        {"[{name: LR, value: 1e-5}]", "write a line 'LR: 1e-5' below 'env:'"},
        {"[[LR]]", "write a line 'NAME: value' below 'env:'"},
        {"[]", "a list stands where"},
        {"{A: null}", "'A' is null"},
        {"{A: ~}", "'A' is ~"},
        {"{A: NULL}", "'A' is NULL"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct sample s = {0};
        struct problems ps = {0};
        struct buf all = BUF_INIT(1000);
        char text[200];
        text_printf(text, "name: x\nenv: %s\n", rows[i].env);
        doc_free(read(text, &s, &ps));
        problems_to_text(&ps, "f", MESSAGE_ENGLISH, &all);
        if (ps.errors != 1 || !strstr(buf_str(&all), rows[i].part))
            fail_msg("%s: %s", rows[i].env, buf_str(&all));
        buf_release(&all);
        problems_release(&ps);
        conf_release(keys, array_len(keys), &s);
    }
    struct sample s = {0};
    struct problems ps = {0};
    doc_free(read("name: x\nenv: {A: '~', B: \"null\", C: , D: nullable}\n", &s, &ps));
    assert_int_equal(ps.n, 0);
    assert_string_equal(pairs_find(&s.env, "A"), "~");
    assert_string_equal(pairs_find(&s.env, "B"), "null");
    assert_string_equal(pairs_find(&s.env, "C"), "");
    conf_release(keys, array_len(keys), &s);
}

static void test_defaults_and_values(void **state)
{
    (void)state;
    struct sample s = {0};
    struct problems ps = {0};
    struct doc *d = read("name: x\nnet: {port: 8080}\nlist: [a, b]\nenv: {A: 1, B: ''}\n"
                         "mode: fast\nany: [1]\n",
                         &s, &ps);
    assert_int_equal(ps.n, 0);
    assert_int_equal(s.port, 8080);
    assert_true(s.on);
    assert_int_equal(s.wait, 30 * USEC_SEC);
    assert_int_equal(s.size, 1 << 20);
    assert_int_equal(s.mode, 1);
    assert_int_equal(s.list.n, 2);
    assert_string_equal(pairs_find(&s.env, "A"), "1");
    assert_int_equal(s.any->n, 1);
    conf_release(keys, array_len(keys), &s);
    problems_release(&ps);
    doc_free(d);
}

static void test_all_problems_at_once(void **state)
{
    (void)state;
    struct sample s = {0};
    struct problems ps = {0};
    struct doc *d = read("net: {prt: 1, port: 70000}\nratio: x\non: maybe\nwait: 2h\nsize: big\n"
                         "mode: fsat\nlist: {a: 1}\nenv: [1]\nnmae: y\nnet2: 1\n",
                         &s, &ps);
    struct buf out = BUF_INIT(10000);
    problems_to_text(&ps, "f.yaml", MESSAGE_ENGLISH, &out);
    const char *t = buf_str(&out);
    assert_non_null(strstr(t, "f.yaml: error: 'name': 'name' is missing (its name)"));
    assert_non_null(
        strstr(t, "f.yaml:1:7: error: 'net.prt': unknown key 'prt' (did you mean 'port'?)"));
    assert_non_null(strstr(t, "f.yaml:1:21: error: 'net.port': '70000' is outside 1 to 65535"));
    assert_non_null(strstr(t, "f.yaml:2:8: error: 'ratio'"));
    assert_non_null(strstr(t, "f.yaml:4:7: error: 'wait': '2h' is outside 1 to 60 seconds"));
    assert_non_null(strstr(t, "'fsat' is not one of slow, fast"));
    assert_non_null(strstr(t, "f.yaml:7:7: error: 'list': a mapping stands where"));
    assert_non_null(
        strstr(t, "f.yaml:9:1: error: 'nmae': unknown key 'nmae' (did you mean 'name'?)"));
    assert_int_equal(ps.errors, 12);
    buf_release(&out);
    conf_release(keys, array_len(keys), &s);
    problems_release(&ps);
    doc_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs),
                                       cmocka_unit_test(test_defaults_and_values),
                                       cmocka_unit_test(test_all_problems_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
