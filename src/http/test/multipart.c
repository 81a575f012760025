/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.c - tests of forms taken apart: good ones however they are cut, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "http/multipart.h"

#define TYPE "multipart/form-data; boundary=XX"
#define PART(name) "--XX\r\nContent-Disposition: form-data; name=" name "\r\n\r\n"

static int on_part(const char *name, const char *file, void *arg, struct err *err)
{
    if (!strcmp(name, "no"))
        return err_set(err, ERR_CONFLICT, "no");
    return buf_addf(arg, "[%s|%s]", name, file ? file : "-");
}

static int on_data(const char *p, size_t n, void *arg, struct err *err)
{
    (void)err;
    return buf_add(arg, p, n);
}

/* In pieces of n bytes. What was seen is in out. */
static int read_form(const char *type, const char *body, size_t len, size_t n, struct buf *out)
{
    struct multipart_to to = {.part = on_part, .data = on_data, .arg = out};
    struct multipart *m = NULL;
    struct err err = {0};
    int r = multipart_new(type, &to, &m, &err);
    for (size_t at = 0; r == 0 && at < len; at += n)
        r = multipart_add(m, body + at, len - at < n ? len - at : n, &err);
    if (r == 0)
        r = multipart_end(m, &err);
    multipart_free(m);
    assert_true(r == 0 || *err.text);
    return r;
}

static void test_good(void **state)
{
    static const struct {
        const char *body, *seen;
    } forms[] = {
        {PART("a") "x\r\n--XX--\r\n", "[a|-]x"},
        {PART("a") "x\r\n--XX--", "[a|-]x"},
        {PART("a") "\r\n--XX--\r\n", "[a|-]"},
        {PART("\"a b\"; filename=\"c\\\"d.zip\"") "x\r\n" PART("b") "y\r\n--XX--\r\n",
         "[a b|c\"d.zip]x[b|-]y"},
        {PART("a;filename*=utf-8''c") "x\r\n--XX--\r\n", "[a|-]x"},
        {PART("a") "\r\r\n\r\n-\r\n--\r\n--X\r\n\r\n--XX--\r\n",
         "[a|-]\r\r\n\r\n-\r\n--\r\n--X\r\n"},
        {"--XX\r\nX: y\r\nCONTENT-DISPOSITION:form-data; name=a\r\nContent-Type: x/y\r\n\r\nx\r\n"
         "--XX--\r\n",
         "[a|-]x"},
        {"--XX--\r\n", ""},
    };
    (void)state;
    for (size_t i = 0; i < array_len(forms); i++)
        for (size_t n = 1; n < 40; n++) {
            struct buf out = BUF_INIT(4096);
            assert_int_equal(read_form(TYPE, forms[i].body, strlen(forms[i].body), n, &out), 0);
            assert_string_equal(buf_str(&out), forms[i].seen);
            buf_release(&out);
        }
}

static void test_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "hello",
        "\r\n" PART("a") "x\r\n--XX--\r\n",
        PART("a") "x\r\n--XX",
        PART("a") "x\r\n--XX-",
        PART("a") "x\r\n--XXY\r\n",
        PART("a") "x\r\n--XX \r\n--XX--",
        PART("a") "x\n--XX--\r\n",
        PART("a") "x\r\n--XX--\r\n\r\n",
        PART("a") "x\r\n--XX--\r\n" PART("b"),
        PART("\"a") "x\r\n--XX--\r\n",
        PART("a; name=b") "x\r\n--XX--\r\n",
        PART("a; filename=b; filename=c") "x\r\n--XX--\r\n",
        PART("a b") "x\r\n--XX--\r\n",
        PART("") "x\r\n--XX--\r\n",
        PART("0123456789012345678901234567890123456789012345678901234567890123") "x\r\n--XX--",
        "--XX\r\n\r\nx\r\n--XX--\r\n",
        "--XX\r\nContent-Disposition: form-data\r\n\r\nx\r\n--XX--\r\n",
        "--XX\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--XX--\r\n",
        "--XX\r\nContent-Disposition: form-data; name=a\r\n"
        "Content-Disposition: form-data; name=b\r\n\r\nx\r\n--XX--\r\n",
        "--XX\r\nContent-Disposition: form-data; name=a\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\nx\r\n--XX--\r\n",
        "--XX\r\nContent-Disposition: form-data; name=a\r\nfoo\r\n\r\nx\r\n--XX--\r\n",
        "--XX\r\nContent-Disposition: form-data; name=a\nX: y\r\n\r\nx\r\n--XX--\r\n",
    };
    (void)state;
    for (size_t i = 0; i < array_len(bodies); i++)
        for (size_t n = 1; n < 40; n++) {
            struct buf out = BUF_INIT(4096);
            assert_int_equal(read_form(TYPE, bodies[i], strlen(bodies[i]), n, &out),
                             ERR_BAD_REQUEST);
            buf_release(&out);
        }
    struct buf out = BUF_INIT(4096);
    assert_int_equal(read_form(TYPE, PART("no"), strlen(PART("no")), 7, &out), ERR_CONFLICT);
    static const char nul[] = "--XX\r\nContent-Disposition: form-data; name=a\0\r\n\r\nx\r\n--XX--";
    assert_int_equal(read_form(TYPE, nul, sizeof(nul) - 1, 7, &out), ERR_BAD_REQUEST);
    buf_release(&out);
}

static void test_long_head(void **state)
{
    struct buf body = BUF_INIT(64 << 10), out = BUF_INIT(4096);
    (void)state;
    assert_int_equal(buf_adds(&body, "--XX\r\nX: "), 0);
    for (size_t i = 0; i < MULTIPART_HEAD_MAX; i++)
        assert_int_equal(buf_addc(&body, 'a'), 0);
    assert_int_equal(read_form(TYPE, buf_str(&body), body.len, 1000, &out), ERR_BAD_REQUEST);
    buf_release(&body);
    buf_release(&out);
}

static void test_boundary(void **state)
{
    static const char *const good[] = {"multipart/form-data; boundary=XX",
                                       "multipart/form-data;boundary=\"XX\"",
                                       "multipart/form-data; charset=utf-8; Boundary=XX; x=y"};
    static const char *const bad[] = {
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"",
        "multipart/form-data; boundary=\"XX",
        "multipart/form-data; boundary=\"XX \"",
        "multipart/form-data; boundary=XX; boundary=YY",
        "multipart/form-data; boundary=X{",
        "multipart/form-data; boundary=\"XX\"YY",
        ("multipart/form-data; boundary="
         "01234567890123456789012345678901234567890123456789012345678901234567890"),
    };
    static const char body[] = PART("a") "x\r\n--XX--";
    (void)state;
    for (size_t i = 0; i < array_len(good); i++) {
        struct buf out = BUF_INIT(4096);
        assert_int_equal(read_form(good[i], body, strlen(body), 9, &out), 0);
        assert_string_equal(buf_str(&out), "[a|-]x");
        buf_release(&out);
    }
    for (size_t i = 0; i < array_len(bad); i++) {
        struct buf out = BUF_INIT(4096);
        assert_int_equal(read_form(bad[i], body, strlen(body), 9, &out), ERR_BAD_REQUEST);
        buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long_head),
        cmocka_unit_test(test_boundary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
