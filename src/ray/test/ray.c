/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of calls and of the client, at every moment: no callback after a free, no
 * handle left in the loop. The peer is a listener on the same loop that tells its
 * version and then never answers; what answers mean is tested in tests/ray. */
#include "ray/ray.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

enum { PEERS_MAX = 32 };

struct world {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_tcp_t peers[PEERS_MAX];
    char in[PEERS_MAX][4096];
    size_t n_peers;
    int posts; /* that arrived */
    int open;  /* handles of the peer */
    char url[64];
    struct ray_client *rc;
    int calls; /* callbacks that came */
};

/* -- the peer ------------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle)
{
    struct world *w = handle->loop->data;
    w->open--;
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    (void)size;
    struct world *w = handle->loop->data;
    size_t i = (size_t)((uv_tcp_t *)handle - w->peers);
    memset(w->in[i], 0, sizeof(w->in[i]));
    *ret = uv_buf_init(w->in[i], sizeof(w->in[i]) - 1);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    static char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 49\r\n\r\n"
                           "{\"ray_version\":\"2.51.1\",\"session_name\":\"session\"}";
    struct world *w = stream->loop->data;
    if (n < 0) {
        if (!uv_is_closing((uv_handle_t *)stream))
            uv_close((uv_handle_t *)stream, on_closed);
        return;
    }
    w->posts += strncmp(buf->base, "POST", 4) == 0;
    if (strncmp(buf->base, "GET /api/version", 16) == 0) {
        uv_buf_t out = uv_buf_init(answer, sizeof(answer) - 1);
        assert_int_equal(uv_try_write(stream, &out, 1), sizeof(answer) - 1);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct world *w = listener->loop->data;
    assert_int_equal(status, 0);
    assert_true(w->n_peers < PEERS_MAX);
    uv_tcp_t *peer = &w->peers[w->n_peers++];
    assert_int_equal(uv_tcp_init(&w->loop, peer), 0);
    w->open++;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)peer), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)peer, on_alloc, on_read), 0);
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int len = sizeof(at);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    w->loop.data = w;
    assert_int_equal(uv_tcp_init(&w->loop, &w->listener), 0);
    w->open = 1;
    assert_int_equal(uv_tcp_bind(&w->listener, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&w->listener, 16, on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&w->listener, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d/", ntohs(at.sin_port)); /* fits */
    struct ray_options opt = {.loop = &w->loop, .base_url = w->url, .parallel_max = 2};
    assert_int_equal(ray_client_new(&opt, &w->rc, NULL), 0);
    *state = w;
    return 0;
}

/* The client is freed; with the peer gone too nothing must be left in the loop. */
static int tear_down(void **state)
{
    struct world *w = *state;
    ray_client_free(w->rc);
    uv_close((uv_handle_t *)&w->listener, on_closed);
    for (size_t i = 0; i < w->n_peers; i++)
        if (!uv_is_closing((uv_handle_t *)&w->peers[i]))
            uv_close((uv_handle_t *)&w->peers[i], on_closed);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(w->open, 0);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    free(w);
    return 0;
}

/* -- callbacks ------------------------------------------------------------------- */

static void on_jobs(const struct ray_jobs *jobs, const struct err *err, void *arg)
{
    (void)jobs;
    (void)err;
    struct world *w = arg;
    w->calls++;
}

static void on_submit(enum ray_submit_outcome outcome, const struct err *err, void *arg)
{
    (void)outcome;
    (void)err;
    struct world *w = arg;
    w->calls++;
}

static void on_version(const struct ray_version *version, const struct err *err, void *arg)
{
    struct world *w = arg;
    assert_non_null(version);
    assert_null(err);
    assert_string_equal(version->text, "2.51.1");
    w->calls++;
}

static void on_version_frees_client(const struct ray_version *version,
                                    const struct err *err,
                                    void *arg)
{
    struct world *w = arg;
    ray_client_free(w->rc);
    w->rc = NULL;
    on_version(version, err, arg); /* what was given lives on until we return */
}

static struct ray_call *submit(struct world *w, const char *id)
{
    struct ray_submit what = {.submission_id = id, .entrypoint = "true"};
    struct ray_call *call = ray_submit(w->rc, &what, on_submit, w, NULL);
    assert_non_null(call);
    return call;
}

/* Turn the loop until the peer has seen so many POSTs. */
static void run_until_posts(struct world *w, int posts)
{
    while (w->posts < posts)
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void run_until_calls(struct world *w, int calls)
{
    while (w->calls < calls)
        uv_run(&w->loop, UV_RUN_ONCE);
}

/* -- tests ----------------------------------------------------------------------- */

static void test_call_never_comes_from_inside(void **state)
{
    struct world *w = *state;
    struct ray_call *call = ray_get_version(w->rc, on_version, w);
    assert_non_null(call);
    assert_int_equal(w->calls, 0);
    run_until_calls(w, 1);
}

static void test_freed_call_never_calls(void **state)
{
    struct world *w = *state;
    /* Two run, three wait for their turn. */
    struct ray_call *calls[5];
    for (size_t i = 0; i < array_len(calls); i++)
        calls[i] = ray_list_jobs(w->rc, on_jobs, w);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    static const size_t order[] = {4, 0, 2, 1, 3};
    for (size_t i = 0; i < array_len(order); i++)
        ray_call_free(calls[order[i]]);
    ray_call_free(NULL);
    (void)ray_get_version(w->rc, on_version, w); /* they made room */
    run_until_calls(w, 1);
    assert_int_equal(w->calls, 1);
}

static void test_free_with_everything_under_way(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 4; i++)
        (void)ray_list_jobs(w->rc, on_jobs, w);
    for (int i = 0; i < 3; i++)
        submit(w, "a");
    uv_run(&w->loop, UV_RUN_NOWAIT);
    ray_client_free(w->rc);
    w->rc = NULL;
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->calls, 0);
}

static void test_free_from_a_callback(void **state)
{
    struct world *w = *state;
    (void)ray_get_version(w->rc, on_version_frees_client, w);
    (void)ray_list_jobs(w->rc, on_jobs, w);
    submit(w, "a");
    run_until_calls(w, 1);
    assert_null(w->rc);
    assert_int_equal(w->calls, 1);
}

static void test_free_at_once(void **state)
{
    struct world *w = *state;
    ray_client_free(w->rc);
    w->rc = NULL;
}

static void test_freed_submit_that_waits_is_never_posted(void **state)
{
    struct world *w = *state;
    submit(w, "first");
    struct ray_call *second = submit(w, "second");
    run_until_posts(w, 1);
    ray_call_free(second);
    ray_client_free(w->rc);
    w->rc = NULL;
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->posts, 1);
    assert_int_equal(w->calls, 0);
}

static void test_freed_submit_under_way_is_not_cut(void **state)
{
    struct world *w = *state;
    struct ray_call *call = submit(w, "a");
    run_until_posts(w, 1);
    ray_call_free(call);
    size_t closed = 0;
    for (int i = 0; i < 5; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < w->n_peers; i++)
        closed += uv_is_closing((uv_handle_t *)&w->peers[i]) != 0;
    assert_int_equal(closed, 0); /* the POST's line is up: cut, it could leave an orphan */
    assert_int_equal(w->calls, 0);
}

static void test_options_refused(void **state)
{
    struct world *w = *state;
    static const struct ray_options bad[] = {
        {.base_url = "ftp://a"},
        {.base_url = "127.0.0.1:8265"},
        {.base_url = "http://"},
        {.base_url = "http://user:pw@a"},
        {.base_url = "http://a/?x=1"},
        {.base_url = "http://a", .user_agent = "mozilla"},
        {.base_url = "http://a", .user_agent = "x\r\nOrigin: y"},
        {.base_url = "http://a", .token = ""},
        {.base_url = "http://a", .token = "t\n"},
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct ray_options opt = bad[i];
        struct ray_client *rc = NULL;
        struct err err = {0};
        opt.loop = &w->loop;
        assert_int_equal(ray_client_new(&opt, &rc, &err), ERR_USAGE);
        assert_null(rc);
        assert_true(strlen(err.text) > 10);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_call_never_comes_from_inside),
        TEST(test_freed_call_never_calls),
        TEST(test_free_with_everything_under_way),
        TEST(test_free_from_a_callback),
        TEST(test_free_at_once),
        TEST(test_freed_submit_that_waits_is_never_posted),
        TEST(test_freed_submit_under_way_is_not_cut),
        TEST(test_options_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
