/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - replies without an end, written as things happen.
 *
 * A stream's bytes wait in one queue with a ceiling; libmicrohttpd fetches them when the
 * socket takes more. An empty queue puts the connection to sleep, a write wakes it: nothing
 * is polled. A slow client fills its queue, the producer pauses until on_drain, and a client
 * that takes nothing at all is closed by the idle time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "http/state.h"

enum { BLOCK_BYTES = 4096, SIZED_BLOCK_BYTES = 128 << 10, KEEP_BYTES = 16 << 10 };

static size_t queued(const struct http_stream *st)
{
    return st->queue.len - st->start;
}

/* A drained queue that was large gives its memory back: thousands of streams are idle. */
static void rewind_queue(struct http_stream *st)
{
    st->start = 0;
    if (st->queue.cap > KEEP_BYTES)
        buf_release(&st->queue);
    else
        buf_reset(&st->queue);
}

static ssize_t stream_on_read(void *cls, uint64_t pos, char *to, size_t max)
{
    struct http_stream *st = cls;
    (void)pos;
    if (st->req->aborted)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = queued(st) < max ? queued(st) : max;
    if (!n) {
        if (st->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        st->req->suspended = true;
        MHD_suspend_connection(st->req->conn->mhd);
        return 0;
    }
    memcpy(to, st->queue.data + st->start, n);
    st->start += n;
    if (!queued(st))
        rewind_queue(st);
    if (st->ended || (queued(st) && (!st->wants_drain || queued(st) >= st->max / 2)))
        return (ssize_t)n;
    st->wants_drain = false;
    if (st->on_drain)
        st->on_drain(st, st->on_drain_arg);
    return (ssize_t)n;
}

static struct http_stream *stream_begin(struct http_req *req,
                                        int status,
                                        const char *content_type,
                                        uint64_t bytes,
                                        uint64_t barrier)
{
    struct http_server *s = req->conn->server;
    if (s->n_streams >= s->limits.streams || s->closing) {
        struct err err;
        message_refuse(&err, ERR_UNAVAILABLE, s->closing ? "server_closing" : "streams_full",
                       MESSAGE_NO_ARGS);
        http_problem(req, ERR_UNAVAILABLE, &err, NULL, NULL, barrier);
        return NULL;
    }
    if (!shares_take(s->shares, SHARE_STREAMS, req->principal.user, s->limits.user_streams)) {
        req_busy(req, s->limits.user_streams, "too_many_streams");
        return NULL;
    }
    struct http_stream *st = xcalloc(1, sizeof(*st));
    st->req = req;
    st->max = s->limits.stream_bytes;
    st->is_events = !strcmp(content_type, "text/event-stream");
    st->last_write = s->opt.mono();
    buf_init(&st->queue, 2 * st->max); /* given-away bytes before `start` count too */
    link_add_after(s->streams.prev, &st->link);
    s->n_streams++;
    req->stream = st;
    size_t block = bytes == MHD_SIZE_UNKNOWN ? BLOCK_BYTES : SIZED_BLOCK_BYTES;
    struct MHD_Response *response =
        MHD_create_response_from_callback(bytes, block, stream_on_read, st, NULL);
    req_headers(req, response, content_type);
    req_leave(req, response, (unsigned)status, barrier);
    return st;
}

struct http_stream *http_stream_begin(struct http_req *req,
                                      const char *content_type,
                                      uint64_t barrier)
{
    return stream_begin(req, MHD_HTTP_OK, content_type, MHD_SIZE_UNKNOWN, barrier);
}

struct http_stream *http_stream_begin_sized(struct http_req *req,
                                            int status,
                                            const char *content_type,
                                            uint64_t bytes,
                                            uint64_t barrier)
{
    return stream_begin(req, status, content_type, bytes, barrier);
}

void http_stream_cut(struct http_stream *st)
{
    st->ended = true;
    st->req->aborted = true;
    if (st->req->state == REQ_SENT)
        req_wake(st->req);
}

void stream_free(struct http_stream *st)
{
    if (!st)
        return;
    struct http_server *s = st->req->conn->server;
    s->n_streams--;
    shares_give(s->shares, SHARE_STREAMS, st->req->principal.user);
    link_remove(&st->link);
    buf_release(&st->queue);
    free(st);
}

void stream_close(struct http_stream *st)
{
    if (st->ended)
        return;
    st->ended = true;
    if (st->on_close)
        st->on_close(st, st->on_close_arg);
}

/* Only a stream that has begun sleeps for want of bytes; before, the request waits for its
 * barrier and must go on doing so. */
static void stream_wake(struct http_stream *st)
{
    if (st->req->state == REQ_SENT)
        req_wake(st->req);
}

static int stream_make_room(struct http_stream *st, size_t n)
{
    if (st->ended || queued(st) + n > st->max) {
        st->wants_drain = true;
        return -EMSGSIZE;
    }
    if (st->queue.len + n > st->queue.max && st->start) {
        buf_consume(&st->queue, st->start);
        st->start = 0;
    }
    return 0;
}

static int64_t stream_written(struct http_stream *st)
{
    st->last_write = st->req->conn->server->opt.mono();
    if (queued(st) >= st->max / 2)
        st->wants_drain = true;
    stream_wake(st);
    return (int64_t)queued(st);
}

int64_t http_stream_write(struct http_stream *st, const void *p, size_t n)
{
    int r = stream_make_room(st, n);
    if (r == 0)
        r = buf_add(&st->queue, p, n);
    return r < 0 ? r : stream_written(st);
}

/* A line ends with LF, CR or CRLF for the reader, so each of them starts a new data line. */
static void stream_add_lines(struct buf *out, const char *p, size_t n)
{
    const char *end = p + n;
    for (;;) {
        const char *stop = p;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        buf_adds(out, "data: ");
        buf_add(out, p, (size_t)(stop - p));
        buf_addc(out, '\n');
        if (stop == end)
            return;
        p = stop + (*stop == '\r' && stop + 1 < end && stop[1] == '\n' ? 2 : 1);
    }
}

static size_t sse_size(const char *id, const char *event, const char *data, size_t n)
{
    size_t size = n + sizeof("data: \n\n");
    for (size_t i = 0; i < n; i++)
        if (data[i] == '\n' || data[i] == '\r')
            size += sizeof("data: \n");
    return size + (id ? strlen(id) + sizeof("id: \n") : 0) +
           (event ? strlen(event) + sizeof("event: \n") : 0);
}

int64_t http_stream_sse(struct http_stream *st,
                        const char *id,
                        const char *event,
                        const char *data,
                        size_t n)
{
    int r = stream_make_room(st, sse_size(id, event, data, n));
    if (r < 0)
        return r;
    if (id)
        buf_addf(&st->queue, "id: %s\n", id);
    if (event)
        buf_addf(&st->queue, "event: %s\n", event);
    stream_add_lines(&st->queue, data, n);
    buf_addc(&st->queue, '\n');
    return stream_written(st);
}

void stream_beat(struct http_stream *st)
{
    /* Longer than it must be: curl takes less than one byte a second for a lost connection. */
    static const char beat[] = ": nothing has happened, the connection is alive\n\n";
    if (st->is_events && !queued(st) && st->req->state == REQ_SENT)
        (void)!http_stream_write(st, beat, sizeof(beat) - 1); /* an empty queue has room */
}

size_t http_stream_queued(const struct http_stream *st)
{
    return queued(st);
}

size_t http_stream_room(const struct http_stream *st)
{
    return st->max - queued(st);
}

void http_stream_on_drain(struct http_stream *st, http_stream_f cb, void *arg)
{
    st->on_drain = cb;
    st->on_drain_arg = arg;
}

void http_stream_on_close(struct http_stream *st, http_stream_f cb, void *arg)
{
    st->on_close = cb;
    st->on_close_arg = arg;
}

void http_stream_end(struct http_stream *st)
{
    st->ended = true;
    stream_wake(st);
}
