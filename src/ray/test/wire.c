/* SPDX-License-Identifier: Apache-2.0 */
/* What of a request's headers reaches the other side, where a value of theirs is a user's, and a
 * body that is no text. The peer is a listener on the same loop; what answers mean is tested in
 * tests/ray. */
#include "ray/wire.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/unit.h"

struct wire_world {
    uv_loop_t loop;
    uv_tcp_t listener, peer;
    char url[64], in[8192];
    size_t n_in, body_len; /* so many bytes of a body it waits for */
    int status;
    bool is_answered;
};

static void wire_peer_on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    struct wire_world *w = handle->loop->data;
    (void)size;
    *ret = uv_buf_init(w->in + w->n_in, (unsigned)(sizeof(w->in) - 1 - w->n_in));
}

static void wire_peer_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    static char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct wire_world *w = stream->loop->data;
    (void)buf;
    if (n < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    w->n_in += (size_t)n;
    const char *end = strstr(w->in, "\r\n\r\n");
    if (end && w->n_in >= (size_t)(end - w->in) + 4 + w->body_len && !w->is_answered) {
        uv_buf_t out = uv_buf_init(answer, sizeof(answer) - 1);
        w->is_answered = true;
        assert_int_equal(uv_try_write(stream, &out, 1), sizeof(answer) - 1);
    }
}

static void wire_peer_on_connection(uv_stream_t *listener, int status)
{
    struct wire_world *w = listener->loop->data;
    assert_int_equal(status, 0);
    assert_int_equal(uv_tcp_init(&w->loop, &w->peer), 0);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&w->peer), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)&w->peer, wire_peer_on_alloc, wire_peer_on_read),
                     0);
    uv_close((uv_handle_t *)listener, NULL); /* one connection is all */
}

static void wire_world_listen(struct wire_world *w)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int len = sizeof(at);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    w->loop.data = w;
    assert_int_equal(uv_tcp_init(&w->loop, &w->listener), 0);
    assert_int_equal(uv_tcp_bind(&w->listener, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&w->listener, 1, wire_peer_on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&w->listener, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d/", ntohs(at.sin_port)); /* fits */
}

static void wire_test_on_reply(const struct wire_reply *reply, void *arg)
{
    struct wire_world *w = arg;
    w->status = reply->status;
}

static void test_a_header_ends_with_its_line(void **state)
{
    struct wire_world w = {0};
    struct wire *wire = NULL;
    struct strv headers = {0};
    (void)state;
    wire_world_listen(&w);
    struct wire_options opt = {.loop = &w.loop,
                               .user_agent = "argus/test",
                               .connect_timeout = 10 * USEC_SEC,
                               .parallel_max = 1};
    assert_int_equal(wire_new(&opt, &wire, NULL), 0);
    strv_add(&headers, "Authorization: Bearer mine\r\nX-Second: his\r\n\r\nPOST /third HTTP/1.1");
    strv_add(&headers, "X-Newline: as files end\n");
    strv_add(&headers, "X-Return: a\rX-Fourth: b");
    strv_add(&headers, "X-Plain: caf\xc3\xa9 ; =");
    struct wire_order order = {.method = "GET",
                               .url = w.url,
                               .timeout = 60 * USEC_SEC,
                               .max_bytes = 1024,
                               .headers = &headers};
    (void)wire_send(wire, &order, wire_test_on_reply, &w); /* wire_free() would end it */
    strv_release(&headers);
    while (!w.status && uv_run(&w.loop, UV_RUN_ONCE))
        ;
    assert_int_equal(w.status, 200);
    assert_non_null(strstr(w.in, "\r\nAuthorization: Bearer mine\r\n"));
    assert_non_null(strstr(w.in, "\r\nX-Newline: as files end\r\n"));
    assert_non_null(strstr(w.in, "\r\nX-Return: a\r\n"));
    assert_non_null(strstr(w.in, "\r\nX-Plain: caf\xc3\xa9 ; =\r\n"));
    assert_null(strstr(w.in, "X-Second"));
    assert_null(strstr(w.in, "X-Fourth"));
    assert_null(strstr(w.in, "/third"));
    wire_free(wire);
    uv_run(&w.loop, UV_RUN_DEFAULT); /* the peer hears of the end, and closes */
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

static void test_a_body_that_is_no_text(void **state)
{
    static const char body[] = "a\0b\r\n\0";
    struct wire_world w = {.body_len = sizeof(body)};
    struct wire *wire = NULL;
    (void)state;
    wire_world_listen(&w);
    struct wire_options opt = {.loop = &w.loop,
                               .user_agent = "argus/test",
                               .connect_timeout = 10 * USEC_SEC,
                               .parallel_max = 1};
    assert_int_equal(wire_new(&opt, &wire, NULL), 0);
    struct wire_order order = {.method = "POST",
                               .url = w.url,
                               .body = body,
                               .body_len = sizeof(body),
                               .type = "application/x-protobuf",
                               .timeout = 60 * USEC_SEC,
                               .max_bytes = 1024};
    (void)wire_send(wire, &order, wire_test_on_reply, &w); /* wire_free() would end it */
    while (!w.status && uv_run(&w.loop, UV_RUN_ONCE))
        ;
    assert_int_equal(w.status, 200);
    assert_non_null(strstr(w.in, "\r\nContent-Type: application/x-protobuf\r\n"));
    assert_null(strstr(w.in, "Content-Type: application/json"));
    assert_memory_equal(w.in + w.n_in - sizeof(body), body, sizeof(body));
    wire_free(wire);
    uv_run(&w.loop, UV_RUN_DEFAULT); /* the peer hears of the end, and closes */
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_header_ends_with_its_line),
                                       cmocka_unit_test(test_a_body_that_is_no_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
