/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - a child process on the loop; see run.h.
 *
 * Four descriptors are polled: the three streams and the process itself (pidfd). The memory
 * lives until the child was waited for and uv has closed every handle, which may be after the
 * owner let go; then `ops` is NULL. Where there is no pidfd, a timer asks instead. */
#include "ssh/run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"

enum { STREAM_IN, STREAM_OUT, STREAM_ERR, STREAMS };
enum { ASK_MS = 20, CHUNK = 16 << 10 };

struct stream {
    uv_poll_t poll;
    int fd; /* ours; -1 = closed */
};

struct run {
    struct stream streams[STREAMS];
    uv_poll_t exit; /* of the pidfd */
    uv_timer_t ask; /* where there is none */
    uv_timer_t limit;
    unsigned handles; /* of uv, not closed yet */
    struct child child;
    bool is_alive, has_pidfd, spares_group;
    struct buf input, out, errs;
    struct run_end end;
    const struct run_ops *ops; /* NULL: the caller does not want to know (any more) */
    void *arg;
};

/* ---- the end ---- */

static void ssh_run_on_closed(uv_handle_t *h)
{
    struct run *r = h->data;
    if (--r->handles > 0)
        return;
    if (r->has_pidfd)
        closep(&r->child.pidfd);
    buf_release(&r->input);
    buf_release(&r->out);
    buf_release(&r->errs);
    free(r);
}

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, ssh_run_on_closed);
}

static void close_stream(struct run *r, int i)
{
    struct stream *s = &r->streams[i];
    if (s->fd < 0)
        return;
    close_handle((uv_handle_t *)&s->poll);
    closep(&s->fd);
}

static void close_all(struct run *r)
{
    for (int i = 0; i < STREAMS; i++)
        close_stream(r, i);
    close_handle((uv_handle_t *)&r->limit);
    close_handle((uv_handle_t *)&r->ask);
    if (r->has_pidfd)
        close_handle((uv_handle_t *)&r->exit);
}

static void kill_child(struct run *r)
{
    if (r->is_alive) /* not waited for yet, so the number is still its own */
        (void)kill(r->spares_group ? r->child.pid : -r->child.pid, SIGKILL);
}

static void ssh_run_tell(struct run *r)
{
    const struct run_ops *ops = r->ops;
    r->ops = NULL;
    r->end.out = &r->out;
    r->end.errs = &r->errs;
    if (ops)
        ops->ended(&r->end, r->arg);
}

void run_free(struct run *r)
{
    if (!r)
        return;
    r->ops = NULL;
    kill_child(r);
    if (!r->is_alive)
        close_all(r);
}

void run_spare_group(struct run *r)
{
    r->spares_group = true;
}

/* ---- streams ---- */

/* What is there now; false at the end of the stream. */
static bool ssh_run_read_stream(struct run *r, int i)
{
    struct buf *to = i == STREAM_OUT ? &r->out : &r->errs;
    char chunk[CHUNK];
    for (;;) {
        ssize_t n = read(r->streams[i].fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        if (buf_add(to, chunk, (size_t)n) == 0 || i == STREAM_ERR)
            continue; /* of complaints the first ones are enough */
        r->end.is_loud = true;
        kill_child(r);
        return false;
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct run *r = poll->data;
    int i = (int)(container_of(poll, struct stream, poll) - r->streams);
    size_t before = r->out.len;
    if (status < 0 || !ssh_run_read_stream(r, i))
        close_stream(r, i);
    if (r->out.len > before && r->ops && r->ops->heard)
        r->ops->heard(&r->out, r->arg);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct run *r = poll->data;
    struct stream *s = &r->streams[STREAM_IN];
    ssize_t n = 0;
    if (status == 0 && r->input.len) {
        n = send(s->fd, r->input.data, r->input.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
    }
    if (n > 0)
        buf_consume(&r->input, (size_t)n);
    if (n < 0 || status < 0 || !r->input.len)
        close_stream(r, STREAM_IN); /* it has all, or wants no more */
}

/* ---- the process ---- */

static void look_for_end(struct run *r)
{
    int status = 0;
    pid_t got = r->is_alive ? waitpid(r->child.pid, &status, WNOHANG) : 0;
    if (got == 0 || (got < 0 && errno == EINTR))
        return;
    r->is_alive = false;
    r->end.status = got < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    for (int i = STREAM_OUT; i <= STREAM_ERR; i++)
        if (r->streams[i].fd >= 0)
            (void)ssh_run_read_stream(
                r, i); /* the last output; processes that inherited the pipe are not waited for */
    ssh_run_tell(r);
    close_all(r);
}

static void on_exit_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    look_for_end(poll->data);
}

static void on_ask(uv_timer_t *timer)
{
    look_for_end(timer->data);
}

static void on_limit(uv_timer_t *timer)
{
    struct run *r = timer->data;
    r->end.is_late = true;
    kill_child(r);
}

/* The process never started: told from the loop, as every end is. */
static void on_stillborn(uv_timer_t *timer)
{
    struct run *r = timer->data;
    ssh_run_tell(r);
    close_all(r);
}

/* ---- the beginning ---- */

static void init_handle(struct run *r, uv_handle_t *h)
{
    h->data = r; /* of each, for ssh_run_on_closed() */
    r->handles++;
}

static void init_timer(struct run *r, uv_loop_t *loop, uv_timer_t *timer)
{
    (void)uv_timer_init(loop, timer); /* cannot fail */
    init_handle(r, (uv_handle_t *)timer);
}

static bool init_poll(struct run *r, uv_loop_t *loop, uv_poll_t *poll, int fd)
{
    if (uv_poll_init(loop, poll, fd) < 0)
        return false;
    init_handle(r, (uv_handle_t *)poll);
    return true;
}

/* What we write goes through a socket, since a pipe without reader would raise a signal. */
static int open_pair(int i, int ret[static 2])
{
    return i == STREAM_IN ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret)
                          : pipe2(ret, O_CLOEXEC);
}

static int open_streams(struct run *r, uv_loop_t *loop, int theirs[static STREAMS], struct err *err)
{
    for (int i = 0; i < STREAMS; i++) {
        int pair[2];
        if (open_pair(i, pair) < 0)
            return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
        theirs[i] = pair[1];
        struct stream *s = &r->streams[i];
        if (!init_poll(r, loop, &s->poll, pair[0])) {
            close(pair[0]);
            return err_set(err, -EIO, "cannot poll a pipe");
        }
        s->fd = pair[0]; /* non-blocking since uv polls it */
    }
    return 0;
}

static int start_child(struct run *r,
                       uv_loop_t *loop,
                       const char *const *argv,
                       const struct pairs *env,
                       struct err *err)
{
    int theirs[STREAMS] = {-1, -1, -1};
    int rc = open_streams(r, loop, theirs, err);
    if (rc == 0) {
        struct child_spec spec = {.argv = argv,
                                  .env = env,
                                  .in = theirs[STREAM_IN],
                                  .out = theirs[STREAM_OUT],
                                  .err = theirs[STREAM_ERR],
                                  .flags = CHILD_NEW_SESSION | CHILD_DIE_WITH_PARENT};
        rc = child_start(&spec, &r->child, err);
    }
    for (int i = 0; i < STREAMS; i++)
        closep(&theirs[i]);
    return rc;
}

static void ssh_run_watch(struct run *r, uv_loop_t *loop, usec_t limit)
{
    r->is_alive = true;
    (void)uv_poll_start(&r->streams[STREAM_IN].poll, UV_WRITABLE, on_writable);
    (void)uv_poll_start(&r->streams[STREAM_OUT].poll, UV_READABLE, on_readable);
    (void)uv_poll_start(&r->streams[STREAM_ERR].poll, UV_READABLE, on_readable);
    (void)uv_timer_start(&r->limit, on_limit, (limit + USEC_MS - 1) / USEC_MS, 0);
    r->has_pidfd = r->child.pidfd >= 0 && init_poll(r, loop, &r->exit, r->child.pidfd);
    if (r->has_pidfd)
        (void)uv_poll_start(&r->exit, UV_READABLE, on_exit_poll);
    else
        (void)uv_timer_start(&r->ask, on_ask, ASK_MS, ASK_MS);
}

struct run *run_start(uv_loop_t *loop,
                      const char *const *argv,
                      const struct pairs *env,
                      struct buf *input,
                      usec_t limit,
                      const struct run_ops *ops,
                      void *arg)
{
    struct run *r = xcalloc(1, sizeof(*r));
    r->ops = ops;
    r->arg = arg;
    r->input = *input;
    buf_init(input, input->max);
    buf_init(&r->out, RUN_OUT_MAX);
    buf_init(&r->errs, RUN_ERR_MAX);
    for (int i = 0; i < STREAMS; i++)
        r->streams[i] = (struct stream){.fd = -1};
    init_timer(r, loop, &r->limit);
    init_timer(r, loop, &r->ask);
    if (start_child(r, loop, argv, env, &r->end.err) == 0)
        ssh_run_watch(r, loop, limit);
    else
        (void)uv_timer_start(&r->ask, on_stillborn, 0, 0);
    return r;
}
