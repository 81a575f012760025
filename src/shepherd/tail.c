/* SPDX-License-Identifier: Apache-2.0 */
/* tail.c - a bounded copy of the output for Ray; see tail.h. */
#define _GNU_SOURCE
#include "shepherd/tail.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void tail_init(struct tail *t, int fd, const char *log_path)
{
    *t = (struct tail){.fd = fd, .log_path = log_path, .first_left = TAIL_FIRST};
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking; a file takes anything. */
static void give(struct tail *t, const char *p, size_t n)
{
    while (n) {
        struct pollfd ready = {.fd = t->fd, .events = POLLOUT};
        if (poll(&ready, 1, t->patience_ms) != 1 || !(ready.revents & POLLOUT)) {
            t->patience_ms = 0; /* it was waited for once, and that was long enough */
            return;
        }
        ssize_t k = write(t->fd, p, n < PIPE_BUF ? n : PIPE_BUF);
        if (k <= 0)
            return;
        p += k;
        n -= (size_t)k;
    }
}

void tail_say(struct tail *t, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
    line[len++] = '\n';
    give(t, "argus-shepherd: ", 16);
    give(t, line, len);
}

/* Keep the newest TAIL_LAST bytes; what falls off is left out. */
static void hold(struct tail *t, const char *p, size_t n)
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
        give(t, p, now);
        t->first_left -= now;
    }
    if (now < n)
        hold(t, p + now, n - now);
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
    give(t, t->newest + from, t->n - from);
    t->n = 0;
    t->left_out = 0;
}

void tail_tick(struct tail *t, usec_t mono)
{
    if (!t->n || mono < t->next)
        return;
    t->next = mono + USEC_SEC;
    give_newest(t, TAIL_PER_SECOND);
}

void tail_finish(struct tail *t)
{
    t->patience_ms = 1000;
    if (t->n)
        give_newest(t, TAIL_LAST);
}
