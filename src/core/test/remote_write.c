/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of core/figure/remote_write.h: the bytes, read as protobuf and snappy have them. */
#include "core/figure/remote_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/unit.h"

static const struct remote_write_label whose[] = {{"job", "argusd"}, {"instance", "h:1"}};

static uint64_t read_varint(const unsigned char **p)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        v |= (uint64_t)(**p & 127) << shift;
        if (!(*(*p)++ & 128))
            return v;
    }
}

/* Undoes snappy's literal chunks into `ret`, and says how many bytes there are. */
static size_t read_snappy(const struct buf *body, unsigned char *ret)
{
    const unsigned char *p = (const unsigned char *)buf_str(body), *end = p + body->len;
    size_t whole = read_varint(&p), at = 0;
    while (p < end) {
        assert_int_equal(p[0], 61 << 2);
        size_t n = (size_t)(p[1] | p[2] << 8) + 1;
        memcpy(ret + at, p + 3, n);
        at += n;
        p += 3 + n;
    }
    assert_ptr_equal(p, end);
    assert_int_equal(at, whole);
    return at;
}

/* name=value,... value@ms; one series a line. */
static void read_series(const unsigned char *p, const unsigned char *end, struct buf *out)
{
    while (p < end) {
        unsigned field = *p++;
        const unsigned char *next = p, *of;
        size_t n = read_varint(&next);
        of = next;
        p = next + n;
        if (field == (1 << 3 | 2)) {
            for (int i = 0; i < 2; i++) {
                assert_int_equal(*of++, (i + 1) << 3 | 2);
                size_t len = read_varint(&of);
                (void)buf_add(out, of, len);
                (void)buf_adds(out, i ? "," : "=");
                of += len;
            }
        } else {
            double value;
            assert_int_equal(field, 2 << 3 | 2);
            assert_int_equal(*of++, 1 << 3 | 1);
            memcpy(&value, of, sizeof(value));
            of += sizeof(value);
            assert_int_equal(*of++, 2 << 3);
            uint64_t bits, ms = read_varint(&of);
            memcpy(&bits, &value, sizeof(bits));
            if (bits == 0x7ff0000000000002)
                (void)buf_addf(out, " stale@%llu\n", (unsigned long long)ms);
            else
                (void)buf_addf(out, " %g@%llu\n", value, (unsigned long long)ms);
        }
        assert_ptr_equal(of, p);
    }
}

enum { BODY_MAX = 4 << 20 };

/* What a request of at most max bytes says, as text to be freed. */
static char *written(const char *page, const char *before, size_t max)
{
    const struct remote_write of = {
        .page = page, .before = before, .at_ms = 1700, .labels = whose, .n_labels = 2};
    struct buf body = BUF_INIT(max), out = BUF_INIT(BODY_MAX);
    struct err err = {0};
    assert_int_equal(remote_write_body(&of, &body, &err), 0);
    unsigned char *raw = xcalloc(body.len + 1, 1);
    const unsigned char *p = raw, *end = raw + read_snappy(&body, raw);
    while (p < end) {
        assert_int_equal(*p++, 1 << 3 | 2);
        size_t n = read_varint(&p);
        read_series(p, p + n, &out);
        p += n;
    }
    free(raw);
    buf_release(&body);
    return buf_take(&out);
}

static void check_written(const char *page, const char *before, const char *want)
{
    char *got = written(page, before, BODY_MAX);
    assert_string_equal(got, want);
    free(got);
}

static void samples_with_labels(void **state)
{
    (void)state;
    check_written(
        "# HELP a x\n# TYPE a gauge\na{z=\"1\",b=\"a\\\"b\\\\c\\nd\",job=\"other\"} 1.5\n", NULL,
        "__name__=a,b=a\"b\\c\nd,instance=h:1,job=argusd,z=1, 1.5@1700\n");
    check_written("a 7\n", NULL, "__name__=a,instance=h:1,job=argusd, 7@1700\n");
    check_written("", NULL, "");
}

static void one_bad_line_costs_itself(void **state)
{
    (void)state;
    check_written("a{x=\"1\",x=\"2\"} 1\nb{x=\"1\n!\na{__name__=\"b\"} 1\nc{e=\"\"} 2\n", NULL,
                  "__name__=c,instance=h:1,job=argusd, 2@1700\n");
}

static void what_has_gone_ends(void **state)
{
    (void)state;
    check_written("a{x=\"1\"} 2\n", "a{x=\"1\"} 1\na{x=\"2\"} 1\na 1\n",
                  "__name__=a,instance=h:1,job=argusd,x=1, 2@1700\n"
                  "__name__=a,instance=h:1,job=argusd,x=2, stale@1700\n"
                  "__name__=a,instance=h:1,job=argusd, stale@1700\n");
}

static void more_than_a_chunk(void **state)
{
    (void)state;
    struct buf page = BUF_INIT(1 << 20);
    for (int i = 0; i < 3000; i++)
        (void)buf_addf(&page, "a{x=\"%d\"} %d\n", i, i);
    char *got = written(buf_str(&page), NULL, BODY_MAX);
    assert_non_null(strstr(got, "__name__=a,instance=h:1,job=argusd,x=2999, 2999@1700\n"));
    free(got);
    struct buf small = BUF_INIT(1000);
    struct err err = {0};
    const struct remote_write of = {.page = buf_str(&page)};
    assert_int_equal(remote_write_body(&of, &small, &err), -EMSGSIZE);
    buf_release(&small);
    buf_release(&page);
}

/* The request has room for the page and for one marker, and not for 300. */
static void markers_without_room_cost_no_page(void **state)
{
    (void)state;
    struct buf before = BUF_INIT(1 << 20);
    for (int i = 0; i < 300; i++)
        (void)buf_addf(&before, "gone{x=\"%d\"} 1\n", i);
    char *got = written("a 7\n", buf_str(&before), 1000);
    assert_string_equal(got, "__name__=a,instance=h:1,job=argusd, 7@1700\n");
    free(got);
    got = written("a 7\n", "gone 1\n", 1000);
    assert_string_equal(got, "__name__=a,instance=h:1,job=argusd, 7@1700\n"
                             "__name__=gone,instance=h:1,job=argusd, stale@1700\n");
    free(got);
    buf_release(&before);
}

static void each_page_is_later(void **state)
{
    (void)state;
    assert_int_equal(remote_write_time(1700, 0), 1700);
    assert_int_equal(remote_write_time(1700, 1699), 1700);
    assert_int_equal(remote_write_time(1700, 1700), 1701);
    int64_t last = 1700;
    for (int i = 1; i <= 3; i++) { /* the clock was set back */
        last = remote_write_time(900, last);
        assert_int_equal(last, 1700 + i);
    }
    assert_int_equal(remote_write_time(1704, last), 1704);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples_with_labels),
                                       cmocka_unit_test(one_bad_line_costs_itself),
                                       cmocka_unit_test(what_has_gone_ends),
                                       cmocka_unit_test(more_than_a_chunk),
                                       cmocka_unit_test(markers_without_room_cost_no_page),
                                       cmocka_unit_test(each_page_is_later)};
    return cmocka_run_group_tests_name("core/remote_write", tests, NULL, NULL);
}
