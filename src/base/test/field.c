/* SPDX-License-Identifier: Apache-2.0 */
/* Every type of row in both forms and back, copies that share nothing, and closed schemas. */
#include "base/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/unit.h"

enum { OUT_MAX = 16 << 10 };

struct part {
    char *name;
    int count;
};

struct thing {
    char *name;
    char *note;
    char code[8];
    int64_t port;
    int k;
    uint64_t bytes;
    double ratio, limit;
    bool on;
    usec_t wait, at;
    uint64_t size;
    int mode;
    struct strv list;
    struct pairs env;
    char *raw;
    struct part part;
    struct field_list parts;
};

#define AT(member) offsetof(struct thing, member)
static const struct field part_rows[] = {
    {.name = "name",
     .type = FIELD_STR,
     .offset = offsetof(struct part, name),
     .flags = FIELD_REQUIRED},
    {.name = "count", .type = FIELD_INT32, .offset = offsetof(struct part, count)},
};
static const struct field_table part_table = {NULL, part_rows, array_len(part_rows),
                                              sizeof(struct part), 0};
static const char *const modes[] = {"", "slow", "fast", NULL};
enum { STORED = FIELD_STORED, SHOWN = FIELD_SHOWN };
static const struct field rows[] = {
    {.name = "name", .type = FIELD_STR, .offset = AT(name), .flags = STORED | FIELD_REQUIRED},
    {.name = "note", .type = FIELD_STR, .offset = AT(note), .flags = STORED | SHOWN, .doc = "text"},
    {.name = "code", .type = FIELD_TEXT, .offset = AT(code), .size = 8, .flags = STORED},
    {.name = "net.port",
     .type = FIELD_INT,
     .offset = AT(port),
     .flags = STORED,
     .min = 1,
     .max = 9},
    {.name = "net.k", .type = FIELD_INT32, .offset = AT(k), .flags = STORED},
    {.name = "net.deep.bytes", .type = FIELD_COUNT, .offset = AT(bytes), .flags = STORED},
    {.name = "ratio", .type = FIELD_REAL, .offset = AT(ratio), .flags = STORED},
    {.name = "limit", .type = FIELD_REAL, .offset = AT(limit), .flags = STORED | FIELD_NO_LIMIT},
    {.name = "on", .type = FIELD_BOOL, .offset = AT(on), .flags = STORED},
    {.name = "wait", .type = FIELD_SPAN, .offset = AT(wait), .flags = STORED},
    {.name = "at", .type = FIELD_TIME, .offset = AT(at), .flags = STORED | SHOWN},
    {.name = "size", .type = FIELD_SIZE, .offset = AT(size), .flags = STORED},
    {.name = "mode", .type = FIELD_ENUM, .offset = AT(mode), .names = modes, .flags = STORED},
    {.name = "list", .type = FIELD_STRV, .offset = AT(list), .flags = STORED},
    {.name = "env", .type = FIELD_PAIRS, .offset = AT(env), .flags = STORED},
    {.name = "raw", .type = FIELD_JSON, .offset = AT(raw), .flags = STORED | FIELD_OMIT},
    {.name = "part", .type = FIELD_OBJECT, .offset = AT(part), .of = &part_table, .flags = STORED},
    {.name = "parts", .type = FIELD_LIST, .offset = AT(parts), .of = &part_table, .flags = STORED},
};
static const struct field_table table = {"Thing", rows, array_len(rows), sizeof(struct thing), 0};

static void fill(struct thing *t)
{
    *t = (struct thing){.name = xstrdup("a"),
                        .code = "abc",
                        .port = 7,
                        .k = -3,
                        .bytes = 1,
                        .ratio = 0.5,
                        .limit = -1,
                        .on = true,
                        .wait = 90 * USEC_SEC,
                        .at = 1700000000 * USEC_SEC,
                        .size = (uint64_t)3 << 30,
                        .mode = 2,
                        .raw = xstrdup("[1,{\"x\":2}]"),
                        .part = {xstrdup("p"), 4}};
    strv_add(&t->list, "x");
    strv_add(&t->list, "y");
    pairs_set(&t->env, "A", "1");
    pairs_set(&t->env, "HF_TOKEN", "hush");
    t->parts.v = xcalloc(2, sizeof(struct part));
    t->parts.n = 2;
    ((struct part *)t->parts.v)[1] = (struct part){xstrdup("q"), 5};
}

static char *text_of(const struct thing *t, unsigned which, enum field_form form)
{
    struct buf b = BUF_INIT(OUT_MAX);
    struct jout j = jout_begin(&b);
    field_to_json(&table, t, which, form, &j, NULL);
    return buf_take(&b);
}

static json_t *parse(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

static void test_the_page(void **state)
{
    (void)state;
    struct thing t;
    fill(&t);
    _cleanup_(freep) char *page = text_of(&t, FIELD_ALL, FIELD_PAGE);
    assert_string_equal(page,
                        "{\"name\":\"a\",\"note\":null,\"code\":\"abc\","
                        "\"net\":{\"port\":7,\"k\":-3,\"deep\":{\"bytes\":1}},\"ratio\":0.5,"
                        "\"limit\":null,\"on\":true,\"wait\":\"90s\","
                        "\"at\":\"2023-11-14T22:13:20.000Z\",\"size\":\"3GiB\",\"mode\":\"fast\","
                        "\"list\":[\"x\",\"y\"],\"env\":{\"A\":\"1\",\"HF_TOKEN\":\"***\"},"
                        "\"raw\":[1,{\"x\":2}],\"part\":{\"name\":\"p\",\"count\":4},"
                        "\"parts\":[{\"name\":null,\"count\":0},{\"name\":\"q\",\"count\":5}]}");
    _cleanup_(freep) char *shown = text_of(&t, FIELD_SHOWN, FIELD_PAGE);
    assert_string_equal(shown, "{\"note\":null,\"at\":\"2023-11-14T22:13:20.000Z\"}");
    field_release(&table, &t);
}

/* Both forms come back as the struct that they were made from, secrets of the row included. */
static void test_back(void **state)
{
    (void)state;
    struct thing t, u = {.limit = 5};
    fill(&t);
    _cleanup_(freep) char *row = text_of(&t, FIELD_STORED, FIELD_ROW);
    assert_non_null(strstr(row, "\"wait\":90000000"));
    assert_non_null(strstr(row, "hush"));
    json_t *v = parse(row);
    field_from_json(&table, v, FIELD_STORED, &u);
    json_decref(v);
    assert_true(field_equal(&table, &t, &u, FIELD_ALL));
    pairs_set(&t.env, "HF_TOKEN", "public");
    assert_false(field_equal(&table, &t, &u, FIELD_ALL));
    _cleanup_(freep) char *page = text_of(&t, FIELD_ALL, FIELD_PAGE);
    v = parse(page);
    field_from_json(&table, v, FIELD_ALL, &u);
    json_decref(v);
    assert_int_equal(u.wait, t.wait);
    assert_int_equal(u.at, t.at);
    assert_int_equal(u.size, t.size);
    field_release(&table, &t);
    field_release(&table, &u);
}

/* Members that are missing or of another type stay as they are. */
static void test_nothing_is_trusted(void **state)
{
    (void)state;
    struct thing t, u;
    fill(&t);
    fill(&u);
    json_t *v = parse("{\"code\":3,\"net\":[],\"ratio\":\"x\",\"on\":1,\"wait\":\"soon\",\"at\":-5,"
                      "\"size\":\"big\",\"mode\":\"odd\",\"list\":{},\"env\":[1],\"part\":7,"
                      "\"parts\":\"\"}");
    field_from_json(&table, v, FIELD_ALL, &u);
    json_decref(v);
    assert_true(field_equal(&table, &t, &u, FIELD_ALL));
    field_release(&table, &t);
    field_release(&table, &u);
}

static void test_copies_share_nothing(void **state)
{
    (void)state;
    struct thing t, u = {0};
    fill(&t);
    field_copy(&table, &u, &t);
    assert_true(field_equal(&table, &t, &u, FIELD_ALL));
    field_release(&table, &t);
    assert_string_equal(u.name, "a");
    assert_string_equal(((struct part *)u.parts.v)[1].name, "q");
    field_release(&table, &u);
    assert_null(u.name);
    assert_int_equal(u.parts.n, 0);
}

static void test_schemas_are_closed(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(OUT_MAX);
    struct jout j = jout_begin(&b);
    jout_open(&j, NULL, '[');
    field_page_schema(&table, FIELD_ALL, &j, NULL);
    field_form_schema(&table, FIELD_ALL, &j, NULL);
    jout_close(&j, ']');
    json_t *v = parse(buf_str(&b));
    const json_t *page = json_array_get(v, 0), *form = json_array_get(v, 1);
    const json_t *net = json_object_get(json_object_get(page, "properties"), "net");
    assert_false(json_get_bool(page, "additionalProperties", true));
    assert_false(json_get_bool(net, "additionalProperties", true));
    assert_int_equal(json_array_size(json_object_get(net, "required")), 3);
    assert_int_equal(json_array_size(json_object_get(page, "required")),
                     15); /* raw may be absent */
    assert_int_equal(json_array_size(json_object_get(form, "required")), 1);
    const json_t *port = json_object_get(json_object_get(net, "properties"), "port");
    assert_int_equal(json_get_int(port, "maximum", 0), 9);
    json_decref(v);
    buf_release(&b);
}

/* ---- a struct whose page has members of its own ---- */

struct page {
    struct thing of; /* borrowed */
    struct strv marks;
    int64_t seats;
};
#define PAGE(member) offsetof(struct page, member)
static const struct field page_rows[] = {
    {.name = "", .type = FIELD_INLINE, .offset = PAGE(of), .of = &table, .flags = FIELD_BORROWED},
    {.name = "marks", .type = FIELD_STRV, .offset = PAGE(marks), .flags = SHOWN},
    {.name = "seats",
     .type = FIELD_INT,
     .offset = PAGE(seats),
     .dflt = "3",
     .flags = FIELD_ASKED | FIELD_NO_LIMIT},
};
static const struct field_table page_table = {"Page", page_rows, array_len(page_rows),
                                              sizeof(struct page), 0};

static void test_a_struct_inline(void **state)
{
    (void)state;
    struct thing t;
    struct buf b = BUF_INIT(OUT_MAX), schema = BUF_INIT(OUT_MAX);
    struct jout j = jout_begin(&b), k = jout_begin(&schema);
    fill(&t);
    struct page page = {.of = t};
    strv_add(&page.marks, "m");
    field_to_json(&page_table, &page, SHOWN, FIELD_PAGE, &j, NULL);
    assert_string_equal(buf_str(&b),
                        "{\"note\":null,\"at\":\"2023-11-14T22:13:20.000Z\",\"marks\":[\"m\"]}");
    field_page_schema(&page_table, SHOWN, &k, NULL);
    json_t *v = parse(buf_str(&schema));
    assert_int_equal(3, json_array_size(json_object_get(v, "required")));
    assert_int_equal(3, json_object_size(json_object_get(v, "properties")));
    json_decref(v);
    field_release(&page_table, &page); /* and not what it borrows */
    field_release(&table, &t);
    buf_release(&b);
    buf_release(&schema);
}

/* A struct that may not be there, and an object for which a word may stand. */
struct holder {
    const struct part *one, *none;
    int64_t last;
};
static const struct field holder_rows[] = {
    {.name = "one", .type = FIELD_PART, .offset = offsetof(struct holder, one), .of = &part_table},
    {.name = "none",
     .type = FIELD_PART,
     .offset = offsetof(struct holder, none),
     .of = &part_table},
    {.name = "keep.last",
     .type = FIELD_INT,
     .offset = offsetof(struct holder, last),
     .flags = FIELD_OR_NONE},
};
static const struct field_table holder_table = {"Holder", holder_rows, array_len(holder_rows),
                                                sizeof(struct holder), 0};

static void test_parts_and_words(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(OUT_MAX), schema = BUF_INIT(OUT_MAX);
    struct jout j = jout_begin(&b), k = jout_begin(&schema);
    struct part part = {0};
    struct holder holder = {.one = &part, .last = 3};
    field_to_json(&holder_table, &holder, FIELD_ALL, FIELD_PAGE, &j, NULL);
    json_t *v = parse(buf_str(&b));
    assert_true(json_is_object(json_object_get(v, "one")));
    assert_true(json_is_null(json_object_get(v, "none")));
    assert_int_equal(json_get_int(json_get_object(v, "keep"), "last", 0), 3);
    json_decref(v);
    field_page_schema(&holder_table, FIELD_ALL, &k, NULL);
    v = parse(buf_str(&schema));
    const json_t *members = json_object_get(v, "properties");
    assert_int_equal(json_array_size(json_get_array(json_get_object(members, "one"), "anyOf")), 2);
    assert_int_equal(json_array_size(json_get_array(json_get_object(members, "keep"), "anyOf")), 2);
    json_decref(v);
    buf_release(&b);
    buf_release(&schema);
}

static void test_flat_rows(void **state)
{
    (void)state;
    size_t n;
    _cleanup_(freep) struct field *all = field_flatten(&page_table, FIELD_ALL, &n);
    assert_int_equal(array_len(rows) + 2, n);
    assert_string_equal("name", all[0].name);
    free(field_flatten(&page_table, SHOWN, &n));
    assert_int_equal(3, n);
}

static void test_some_rows_are_assigned(void **state)
{
    (void)state;
    struct thing a, b;
    fill(&a);
    fill(&b);
    set_str(&b.note, "new");
    set_str(&b.name, "other");
    b.at = 5;
    field_assign(&table, &a, &b, SHOWN);
    assert_string_equal("new", a.note);
    assert_string_equal("a", a.name);
    assert_int_equal(5, a.at);
    a.limit = 4;
    field_clear_limits(&table, &a);
    assert_true(a.limit < 0 && a.ratio > 0);
    field_release(&table, &a);
    field_release(&table, &b);
}

static void test_a_body_is_read_into_some_rows(void **state)
{
    (void)state;
    struct page page = {.seats = 7};
    struct problems ps = {0};
    struct doc *d = NULL;
    assert_int_equal(0, doc_parse("{}", 2, true, &d, &ps));
    conf_read_table(&page_table, FIELD_ASKED, true, doc_root(d), &page, &ps);
    assert_int_equal(7, page.seats);
    conf_read_table(&page_table, FIELD_ASKED, false, doc_root(d), &page, &ps);
    assert_int_equal(3, page.seats);
    doc_free(d);
    assert_int_equal(0, doc_parse("{note: x}", 9, false, &d, &ps));
    conf_read_table(&page_table, FIELD_ASKED, true, doc_root(d), &page, &ps);
    assert_int_equal(1, ps.errors); /* it is not asked for */
    doc_free(d);
    problems_release(&ps);
}

struct odd {
    uint64_t flags, gpus;
    double value;
    int nodes, priority;
};
enum { KIND_SHAPE, KIND_PRIORITY };
static const char *const odd_flags[] = {"HELD", "HUNG", NULL};
static const struct field odd_rows[] = {
    FIELD_AT(odd, "flags", FIELD_BITS, flags, .names = odd_flags, .flags = FIELD_REQUIRED),
    FIELD_AT(odd, "gpus", FIELD_BITS, gpus, .flags = FIELD_REQUIRED),
    FIELD_AT(odd, "value", FIELD_REAL, value, .flags = FIELD_REQUIRED | FIELD_MAYBE),
    FIELD_AT(odd, "nodes", FIELD_INT32, nodes, .flags = FIELD_OWN(KIND_SHAPE)),
    FIELD_AT(odd, "priority", FIELD_INT32, priority, .flags = FIELD_OWN(KIND_PRIORITY)),
};
static const struct field_table odd_table = FIELD_TABLE(NULL, odd_rows, odd);

static void odd_reads(const struct odd *odd, unsigned which, const char *wanted)
{
    char *text = field_to_text(&odd_table, odd, which, FIELD_PAGE);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_bits_and_numbers_that_are_none(void **state)
{
    struct odd odd = {.flags = 3, .gpus = 1 | (uint64_t)1 << 63, .value = -0.5};
    (void)state;
    odd_reads(&odd, FIELD_REQUIRED,
              "{\"flags\":[\"HELD\",\"HUNG\"],\"gpus\":[0,63],\"value\":-0.5}");
    odd = (struct odd){.flags = 2, .value = NAN};
    odd_reads(&odd, FIELD_REQUIRED, "{\"flags\":[\"HUNG\"],\"gpus\":[],\"value\":null}");
}

struct curve {
    double least;
    struct field_list points;
};
static const struct field curve_rows[] = {
    FIELD_AT(curve, "least", FIELD_REAL, least, .flags = FIELD_OMIT | FIELD_MAYBE),
    FIELD_AT(curve, "points", FIELD_REALS, points),
};
static const struct field_table curve_table = FIELD_TABLE(NULL, curve_rows, curve);

static void test_lists_of_numbers(void **state)
{
    double *v = xcalloc(3, sizeof(*v));
    struct curve curve = {.least = NAN, .points = {.v = v, .n = 3}};
    (void)state;
    v[0] = 0.5;
    v[1] = NAN;
    v[2] = 3;
    char *text = field_to_text(&curve_table, &curve, FIELD_ALL, FIELD_PAGE);
    assert_string_equal(text, "{\"points\":[0.5,null,3]}");
    free(text);
    curve.least = 0; /* is a value here */
    field_release(&curve_table, &curve);
    assert_null(curve.points.v);
    text = field_to_text(&curve_table, &curve, FIELD_ALL, FIELD_PAGE);
    assert_string_equal(text, "{\"least\":0,\"points\":[]}");
    free(text);
    struct buf out = BUF_INIT(OUT_MAX);
    struct jout j = jout_begin(&out);
    field_page_schema(&curve_table, FIELD_ALL, &j, NULL);
    assert_non_null(strstr(buf_str(&out), "\"items\":{\"type\":[\"number\",\"null\"]}"));
    assert_non_null(strstr(buf_str(&out), "\"required\":[\"points\"]"));
    buf_release(&out);
}

static void test_a_list_that_grows(void **state)
{
    struct field_list list = {0};
    char name[] = "borrowed";
    (void)state;
    for (int i = 0; i < 300; i++) {
        const struct part part = {.name = name, .count = i};
        field_list_add(&list, &part, sizeof(part));
    }
    const struct part *v = list.v;
    assert_int_equal(list.n, 300);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(v[i].count, i);
        assert_ptr_equal(v[i].name, name);
    }
    free(list.v);
}

static void test_rows_of_one_kind(void **state)
{
    const struct odd odd = {.nodes = 2, .priority = 0};
    struct buf out = BUF_INIT(OUT_MAX);
    struct jout j = jout_begin(&out);
    (void)state;
    odd_reads(&odd, FIELD_OWN(KIND_SHAPE), "{\"nodes\":2}");
    odd_reads(&odd, FIELD_OWN(KIND_PRIORITY), "{\"priority\":0}");
    field_page_schema(&odd_table, FIELD_ALL, &j, NULL);
    assert_non_null(strstr(buf_str(&out), "\"required\":[\"flags\",\"gpus\",\"value\"]"));
    assert_non_null(strstr(buf_str(&out), "\"value\":{\"type\":[\"number\",\"null\"]}"));
    assert_non_null(strstr(buf_str(&out), "\"items\":{\"type\":\"integer\"}"));
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_page),
                                       cmocka_unit_test(test_bits_and_numbers_that_are_none),
                                       cmocka_unit_test(test_lists_of_numbers),
                                       cmocka_unit_test(test_a_list_that_grows),
                                       cmocka_unit_test(test_rows_of_one_kind),
                                       cmocka_unit_test(test_back),
                                       cmocka_unit_test(test_nothing_is_trusted),
                                       cmocka_unit_test(test_copies_share_nothing),
                                       cmocka_unit_test(test_schemas_are_closed),
                                       cmocka_unit_test(test_a_struct_inline),
                                       cmocka_unit_test(test_parts_and_words),
                                       cmocka_unit_test(test_flat_rows),
                                       cmocka_unit_test(test_some_rows_are_assigned),
                                       cmocka_unit_test(test_a_body_is_read_into_some_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
