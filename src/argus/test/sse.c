/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, cut at every byte, and the rules that are easy to get wrong. */
#include "argus/net/sse.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

/* Each event as "name|id|data;" */
static int gather(const struct sse_event *event, void *arg)
{
    struct buf *out = arg;
    assert_int_equal(event->data_len, strlen(event->data));
    return buf_addf(out, "%s|%s|%s;", event->name, event->id, event->data);
}

static void check(const char *in, const char *want)
{
    size_t n = strlen(in);
    for (size_t cut = 0; cut <= n; cut++) {
        struct sse s;
        struct buf out = BUF_INIT(4096);
        sse_init(&s, gather, &out);
        assert_int_equal(sse_feed(&s, in, cut, NULL), 0);
        for (size_t i = cut; i < n; i++) /* the rest byte by byte */
            assert_int_equal(sse_feed(&s, in + i, 1, NULL), 0);
        assert_string_equal(buf_str(&out), want);
        sse_release(&s);
        buf_release(&out);
    }
}

static void test_events(void **state)
{
    (void)state;
    check("data: x\n\n", "message||x;");
    check("event: log\nid: 7\ndata: a\ndata: b\n\n", "log|7|a\nb;");
    check("event: log\r\nid: 7\r\ndata: a\r\n\r\n", "log|7|a;");
    check("data: a\r\rdata: b\r\r", "message||a;message||b;");
    check("\xef\xbb\xbf"
          "data: a\n\n",
          "message||a;");
    check(": comment\n\n:\n\ndata:no space\n\n", "message||no space;");
    check("data:  two\n\n", "message|| two;");
    check("id: 1\n\ndata: keeps the id\n\n", "message|1|keeps the id;");
    check("event: x\n\ndata: y\n\n", "message||y;"); /* a name without data is forgotten */
    check("data\n\n", "message||;");
    check("retry: 5\nnonsense\ndata: a\n\n", "message||a;");
    check("data: never ended\n", "");
}

static void test_restart_drops_the_half_and_keeps_the_id(void **state)
{
    (void)state;
    struct sse s;
    struct buf out = BUF_INIT(4096);
    sse_init(&s, gather, &out);
    const char *first = "id: 5\ndata: whole\n\nevent: x\ndata: ha";
    assert_int_equal(sse_feed(&s, first, strlen(first), NULL), 0);
    sse_restart(&s);
    assert_int_equal(sse_feed(&s, "data: next\n\n", 12, NULL), 0);
    assert_string_equal(buf_str(&out), "message|5|whole;message|5|next;");
    sse_release(&s);
    buf_release(&out);
}

static int refuse(const struct sse_event *event, void *arg)
{
    (void)event;
    (void)arg;
    return -77;
}

static void test_refusals(void **state)
{
    (void)state;
    struct sse s;
    struct err err = {0};
    sse_init(&s, refuse, NULL);
    assert_int_equal(sse_feed(&s, "data: x\n\n", 9, &err), -77);
    sse_release(&s);
    char *endless = xcalloc(1, SSE_EVENT_MAX);
    memset(endless, 'x', SSE_EVENT_MAX);
    sse_init(&s, refuse, NULL);
    assert_int_equal(sse_feed(&s, endless, SSE_EVENT_MAX, &err), 0);
    assert_int_equal(sse_feed(&s, "x", 1, &err), ERR_TOO_LARGE);
    sse_release(&s);
    sse_init(&s, refuse, NULL);
    memcpy(endless, "data:", 5);
    endless[SSE_EVENT_MAX / 2] = '\n';
    int r = sse_feed(&s, endless, SSE_EVENT_MAX / 2 + 1, &err);
    assert_int_equal(r, 0);
    r = sse_feed(&s, endless, SSE_EVENT_MAX / 2 + 1, &err);
    assert_int_equal(r, 0);
    r = sse_feed(&s, endless, SSE_EVENT_MAX / 2 + 1, &err);
    assert_int_equal(r, ERR_TOO_LARGE);
    sse_release(&s);
    free(endless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_restart_drops_the_half_and_keeps_the_id),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
