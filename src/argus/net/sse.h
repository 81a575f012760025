/* SPDX-License-Identifier: Apache-2.0 */
/* sse.h - reads a stream of server-sent events, however it is cut into pieces.
 *
 * Follows the WHATWG rules: LF, CR and CRLF end a line, a blank line ends an
 * event, data lines are joined by LF, ids with NUL are ignored, an event without
 * data is none. The id stays in force for later events without one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { SSE_EVENT_MAX = 4 << 20 };

struct sse_event {
    const char *name; /* "message" when the event has none */
    const char *id;   /* "" when there was none yet */
    const char *data;
    size_t data_len;
};

/* The event and its texts are borrowed for the call. Negative ends the reading. */
typedef int (*sse_event_f)(const struct sse_event *event, void *arg);

struct sse {
    sse_event_f on_event;
    void *arg;
    struct buf line, data, name, id;
    bool after_cr;
    bool begun; /* a byte order mark is skipped only at the very start */
};

void sse_init(struct sse *s, sse_event_f on_event, void *arg);
void sse_release(struct sse *s);
/* A new connection: what was half read is dropped, the id stays. */
void sse_restart(struct sse *s);

/* 0, what on_event returned when negative, or ERR_TOO_LARGE for a line or an event over the
 * ceiling. */
must_check int sse_feed(struct sse *s, const char *p, size_t n, struct err *err);
