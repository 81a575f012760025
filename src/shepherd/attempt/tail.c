/* SPDX-License-Identifier: Apache-2.0 */
/* tail.c - a bounded copy of the output for Ray; see tail.h. */
#define _GNU_SOURCE
#include "shepherd/attempt/tail.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MARK "argus-shepherd: "

void tail_init(struct tail *t, int fd, const char *log_path)
{
    *t = (struct tail){.fd = fd, .log_path = log_path, .first_left = TAIL_FIRST};
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking; a file takes anything. How many
 * bytes were taken. */
static size_t tail_give(struct tail *t, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        struct pollfd ready = {.fd = t->fd, .events = POLLOUT};
        if (poll(&ready, 1, t->patience_ms) != 1 || !(ready.revents & POLLOUT)) {
            t->patience_ms = 0; /* it was waited for once, and that was long enough */
            break;
        }
        ssize_t k = write(t->fd, p + done, n - done < PIPE_BUF ? n - done : PIPE_BUF);
        if (k <= 0)
            break;
        done += (size_t)k;
    }
    return done;
}

/* Our own lines wait for a reader that is slow, and go before anything newer. */
static bool give_said(struct tail *t)
{
    size_t done = tail_give(t, t->said, t->said_n);
    t->said_n -= done;
    memmove(t->said, t->said + done, t->said_n);
    return t->said_n == 0;
}

void tail_say(struct tail *t, const char *fmt, ...)
{
    char line[TAIL_LINE];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
    line[len++] = '\n';
    const size_t mark = sizeof(MARK) - 1;
    if (t->said_n + mark + len <= sizeof(t->said)) {
        memcpy(t->said + t->said_n, MARK, mark);
        memcpy(t->said + t->said_n + mark, line, len);
        t->said_n += mark + len;
    }
    (void)give_said(t); /* what is not taken now waits */
}

/* Keep the newest TAIL_LAST bytes; what falls off is left out. */
static void tail_hold(struct tail *t, const char *p, size_t n)
{
    if (n >= TAIL_LAST) {
        t->left_out += t->n + (n - TAIL_LAST);
        memcpy(t->newest, p + (n - TAIL_LAST), TAIL_LAST);
        t->n = TAIL_LAST;
        return;
    }
    size_t over = t->n + n > TAIL_LAST ? t->n + n - TAIL_LAST : 0;
    memmove(t->newest, t->newest + over, t->n - over);
    memcpy(t->newest + t->n - over, p, n);
    t->n += n - over;
    t->left_out += over;
}

void tail_add(struct tail *t, const char *p, size_t n)
{
    size_t now = n < t->first_left ? n : (size_t)t->first_left;
    if (now) {
        if (give_said(t))
            (void)tail_give(t, p, now); /* a reader that does not read loses */
        t->first_left -= now;
    }
    if (now < n)
        tail_hold(t, p + now, n - now);
}

/* The newest `most` bytes, from the beginning of a line where something was left out. */
static void give_newest(struct tail *t, size_t most)
{
    size_t from = t->n > most ? t->n - most : 0;
    if (from || t->left_out) {
        const char *line = memchr(t->newest + from, '\n', t->n - from);
        if (line && line + 1 < t->newest + t->n)
            from = (size_t)(line + 1 - t->newest);
        tail_say(t, "%" PRIu64 " bytes left out here: the whole output is in '%s'",
                 t->left_out + from, t->log_path);
    }
    (void)tail_give(t, t->newest + from, t->n - from); /* a reader that does not read loses */
    t->n = 0;
    t->left_out = 0;
}

void tail_tick(struct tail *t, usec_t mono)
{
    if (!give_said(t) || !t->n || mono < t->next)
        return;
    t->next = mono + USEC_SEC;
    give_newest(t, TAIL_PER_SECOND);
}

void tail_finish(struct tail *t)
{
    t->patience_ms = 5000;
    if (give_said(t) && t->n)
        give_newest(t, TAIL_LAST);
}
