/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - runs another program with a deadline; see tool.h.
 *
 * A program that has said enough, or has taken too long, is killed with its whole group. One that
 * hangs in a driver must not keep a scene from being told: it is not waited for either. */
#define _GNU_SOURCE
#include "shepherd/scout/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"

enum { PIECE = 16 << 10, LOOK_MS = 20 };
#define LAST_LIMIT USEC_SEC       /* from the end of its output to its own */
#define KILL_LIMIT (2 * USEC_SEC) /* then it hangs in the kernel, and is left */

/* False: it is over, or as much as may be was said. */
static bool read_some(int fd, struct buf *out, int wait_ms)
{
    char piece[PIECE];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, wait_ms) <= 0)
        return true;
    ssize_t n = read(fd, piece, sizeof(piece));
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = out->max - out->len, take = (size_t)n < room ? (size_t)n : room;
    return n > 0 && buf_add(out, piece, take) == 0 && take == (size_t)n;
}

/* False while the program still runs. *status stays unchanged if the exit status is not known. */
static bool has_ended(const struct child *c, usec_t limit, int *status)
{
    usec_t until = clock_mono() + limit;
    pid_t pid;
    while ((pid = waitpid(c->pid, status, WNOHANG)) == 0 && clock_mono() < until) {
        struct pollfd p = {.fd = c->pidfd, .events = POLLIN}; /* -1: only the time counts */
        (void)poll(&p, 1, LOOK_MS);
    }
    return pid != 0;
}

int tool_run(const char *const *argv,
             bool with_errors,
             usec_t limit,
             struct buf *out,
             struct err *err)
{
    int pipes[2];
    struct child child = {.pidfd = -1};
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    _cleanup_(closep) int ours = pipes[0], theirs = pipes[1];
    struct child_spec spec = {.argv = argv,
                              .in = -1,
                              .out = theirs,
                              .err = with_errors ? theirs : -1,
                              .flags = CHILD_NEW_SESSION | CHILD_DIE_WITH_PARENT};
    int r = child_start(&spec, &child, err);
    if (r < 0)
        return r;
    closep(&theirs); /* or reading would never end */
    theirs = -1;
    usec_t until = clock_mono() + limit, now;
    bool goes_on = true;
    while (goes_on && (now = clock_mono()) < until)
        goes_on = read_some(ours, out, (int)((until - now) / USEC_MS) + 1);
    int status = -1; /* no exit */
    bool is_full = out->len == out->max;
    bool is_late = goes_on || (!is_full && !has_ended(&child, LAST_LIMIT, &status));
    if (is_late || is_full) {
        (void)kill(-child.pid, SIGKILL); /* it leads its own group; gone already is fine */
        (void)has_ended(&child, KILL_LIMIT, &status);
    }
    closep(&child.pidfd);
    if (is_late)
        return err_set(err, -ETIME, "'%s' did not end in time", argv[0]);
    if (!is_full && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return err_set(err, -EIO, "'%s' failed", argv[0]);
    return 0;
}

int tool_note(const char *dir,
              const char *name,
              struct veil *veil,
              const struct buf *text,
              struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, name);
    _cleanup_(buf_release) struct buf shown = BUF_INIT(text->len + 1);
    const char *p = buf_str(text);
    size_t n = text->len;
    int r = file_mkdirs(dir, 0755, err);
    if (r < 0)
        return r;
    if (veil) { /* what it shows is never longer than what it was given */
        n = veil_pass(veil, p, n, &p);
        r = buf_add(&shown, p, n);
        n = veil_finish(veil, &p);
        r = r < 0 ? r : buf_add(&shown, p, n);
        (void)veil_hand_back(veil); /* nothing is left after a finish */
        p = buf_str(&shown);
        n = shown.len;
    }
    return r < 0 ? err_set(err, r, "'%s' is too long", path) : file_write(path, p, n, 0644, 0, err);
}
