/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rules in metric_json.h, row by row. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/unit.h"
#include "core/metric/metric_json.h"

static void put(const struct metric_json_value *v, void *arg)
{
    struct buf *out = arg;
    if (out->len)
        (void)buf_addc(out, ' ');
    (void)buf_add(out, v->name, v->n);
    if (v->is_unread)
        (void)buf_adds(out, "?");
    else if (v->is_object)
        (void)buf_adds(out, "{}");
    else
        (void)buf_addf(out, "=%g", v->value);
}

/* How many bytes were read, and what was told: "a=1 b{} b/c=2 d?". */
static size_t said(const char *text, size_t n, struct buf *out)
{
    buf_reset(out);
    return metric_json_read(text, n, put, out);
}

static void each_row_of_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"{}", ""},
        {" { } ", ""},
        {"{\"a\":1}", "a=1"},
        {"{ \"a\" : -2.5e-3 , \"b\":+1 }", "a=-0.0025 b=1"},
        {"{\"a\":1180591620717411303424}", "a=1.18059e+21"},
        {"{\"a\":1e999,\"b\":-1e999}", "a=inf b=-inf"},
        {"{\"a\":NaN,\"b\":Infinity,\"c\":-Infinity,\"d\":nan,\"e\":-inf}",
         "a=nan b=inf c=-inf d=nan e=-inf"},
        {"{\"a\":true,\"b\":false,\"c\":null}", "a=1 b=0 c=nan"},
        {"{\"a\":{\"b\":{\"c\":1}},\"d\":2}", "a{} a/b{} a/b/c=1 d=2"},
        {"{\"a\":\"te,xt}\\\"\",\"b\":1}", "b=1"},
        {"{\"a\":[1,[2,\"]\"],{\"x\":3}],\"b\":1}", "b=1"},
        {"{\"a\":1,\"a\":2}", "a=1 a=2"},
        {"{\"a\":1,}", "a=1"},
        {"{\"a\":oops,\"b\":1}", "a? b=1"},
        {"{\"a\":,\"b\":1}", "a? b=1"},
        {"{\"a\":1 \"b\":2,\"c\":3}", "a? c=3"},
        {"{\"a\":1.2.3,\"b\":0x10,\"c\":1}", "a? b? c=1"},
        {"{\"a\":tensor(0.5, device='cuda:0'),\"b\":1}", "a? b=1"},
        {"{\"a\":<x at 1, y>,\"b\":1}", "a? b=1"},
        {"{\"a\":<x at 1, y>}", "a?"},
        {"{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":1}}}}},\"g\":2}",
         "a{} a/b{} a/b/c{} a/b/c/d{} a/b/c/d/e? g=2"},
        {"{\"\\u00e9\\n\\\"\\\\\":1}", "\xc3\xa9 \"\\=1"},
        {"{\"\\ud83d\\ude00\":1}", "\xf0\x9f\x98\x80=1"},
        {"{\"\\ud83d\":1,\"\\ude00x\":2,\"\\ud83d\\n\":3}",
         "\xef\xbf\xbd=1 \xef\xbf\xbdx=2 \xef\xbf\xbd =3"},
        {"{\"\\u0000\":1,\"\\u12\":2,\"\\uzzzz\":3}", " =1 u12=2 uzzzz=3"},
        {"{\"a\":1} and more {", "a=1"},
    };
    struct buf out = BUF_INIT(4096);
    for (size_t i = 0; i < array_len(rows); i++) {
        assert_true(said(rows[i].text, strlen(rows[i].text), &out) > 0);
        assert_string_equal(buf_str(&out), rows[i].said);
    }
    buf_release(&out);
}

static void what_has_no_end_is_none(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"step\":1,\"a\":{\"b\":[1,\"x\"]},\"c\":\"\\u00e9\",\"d\":-1e5,\"e\":null}";
    struct buf out = BUF_INIT(4096);
    for (size_t n = 0; n + 1 < sizeof(whole) - 1; n++)
        assert_int_equal(said(whole, n, &out), 0);
    assert_int_equal(said(whole, sizeof(whole) - 1, &out), sizeof(whole) - 1);
    static const char *const none[] = {"",        "x",       "[1]",       "{a:1}",
                                       "{'a':1}", "{\"a\"}", "{\"a\":1]", "{,}"};
    for (size_t i = 0; i < array_len(none); i++)
        assert_int_equal(said(none[i], strlen(none[i]), &out), 0);
    buf_release(&out);
}

static void a_long_key_is_unread_and_the_next_is_not(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(1 << 16), out = BUF_INIT(1 << 16);
    (void)buf_addf(&text, "{\"%05000d\":1,\"o\":{\"%05000d\":1,\"p\":3},\"b\":2}", 0, 0);
    assert_true(said(text.data, text.len, &out) > 0);
    const char *from = strstr(buf_str(&out), "? o{}");
    assert_non_null(from);
    assert_non_null(strstr(from, "? o/p=3 b=2"));
    buf_release(&text);
    buf_release(&out);
}

/* Every byte of a line replaced by every other one: it ends, and reads nothing behind the text. */
static void any_byte_anywhere(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"a\":{\"\\ud83d\\ude00\":[1,(2)]},\"b\":-1e5,\"c\":tensor(1, x)}";
    struct buf out = BUF_INIT(1 << 12);
    for (size_t i = 0; i < sizeof(whole) - 1; i++)
        for (int c = 0; c < 256; c++) {
            char *text = xmalloc(sizeof(whole) - 1); /* of this size: the sanitizer looks */
            memcpy(text, whole, sizeof(whole) - 1);
            text[i] = (char)c;
            assert_true(said(text, sizeof(whole) - 1, &out) <= sizeof(whole) - 1);
            free(text);
        }
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_the_table),
        cmocka_unit_test(what_has_no_end_is_none),
        cmocka_unit_test(a_long_key_is_unread_and_the_next_is_not),
        cmocka_unit_test(any_byte_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
