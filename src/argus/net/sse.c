/* SPDX-License-Identifier: Apache-2.0 */
/* sse.c - the line machine of sse.h. Bytes are copied up to the next line end at
 * once, so that a long data line costs one search and one copy. */
#include "argus/net/sse.h"
#include "base/message.h"

#include <string.h>

void sse_init(struct sse *s, sse_event_f on_event, void *arg)
{
    *s = (struct sse){.on_event = on_event,
                      .arg = arg,
                      .line = BUF_INIT(SSE_EVENT_MAX),
                      .data = BUF_INIT(SSE_EVENT_MAX),
                      .name = BUF_INIT(256),
                      .id = BUF_INIT(256)};
}

void sse_release(struct sse *s)
{
    buf_release(&s->line);
    buf_release(&s->data);
    buf_release(&s->name);
    buf_release(&s->id);
}

void sse_restart(struct sse *s)
{
    buf_reset(&s->line);
    buf_reset(&s->data);
    buf_reset(&s->name);
    s->after_cr = s->begun = false;
}

static int dispatch(struct sse *s)
{
    int r = 0;
    if (s->data.len) {
        s->data.data[--s->data.len] = 0; /* the LF after the last data line */
        struct sse_event event = {.name = s->name.len ? buf_str(&s->name) : "message",
                                  .id = buf_str(&s->id),
                                  .data = buf_str(&s->data),
                                  .data_len = s->data.len};
        r = s->on_event(&event, s->arg);
    }
    buf_reset(&s->data);
    buf_reset(&s->name);
    return r;
}

static void set_field(struct buf *field, const char *value, size_t n)
{
    buf_reset(field);
    if (!memchr(value, 0, n))
        (void)buf_add(field, value, n); /* longer than any of ours: stays empty */
}

static int sse_take_line(struct sse *s, struct err *err)
{
    const char *line = buf_str(&s->line);
    size_t len = s->line.len;
    if (!len)
        return dispatch(s);
    const char *colon = memchr(line, ':', len);
    size_t n_key = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    if (*value == ' ' && value < line + len)
        value++;
    size_t n = (size_t)(line + len - value);
    if (n_key == 4 && !memcmp(line, "data", 4)) {
        (void)buf_add(&s->data, value, n); /* looked at below */
        (void)buf_addc(&s->data, '\n');
    } else if (n_key == 5 && !memcmp(line, "event", 5)) {
        set_field(&s->name, value, n);
    } else if (n_key == 2 && !memcmp(line, "id", 2)) {
        set_field(&s->id, value, n);
    }
    if (s->data.failed)
        return message_refuse(err, ERR_TOO_LARGE, "cli_event_large",
                              MESSAGE_ARGS(MESSAGE_NUM("most", SSE_EVENT_MAX)));
    return 0;
}

int sse_feed(struct sse *s, const char *p, size_t n, struct err *err)
{
    while (n) {
        if (s->after_cr && *p == '\n') {
            s->after_cr = false;
            p++, n--;
            continue;
        }
        s->after_cr = false;
        const char *lf = memchr(p, '\n', n);
        const char *cr = memchr(p, '\r', lf ? (size_t)(lf - p) : n);
        const char *end = cr ? cr : lf;
        size_t used = end ? (size_t)(end - p) : n;
        if (buf_add(&s->line, p, used) < 0)
            return message_refuse(err, ERR_TOO_LARGE, "cli_line_large",
                                  MESSAGE_ARGS(MESSAGE_NUM("most", SSE_EVENT_MAX)));
        p += used, n -= used;
        if (!end)
            return 0;
        s->after_cr = *p == '\r';
        p++, n--;
        if (!s->begun && s->line.len >= 3 && !memcmp(s->line.data, "\xef\xbb\xbf", 3))
            buf_consume(&s->line, 3);
        s->begun = true;
        int r = sse_take_line(s, err);
        buf_reset(&s->line);
        if (r < 0)
            return r;
    }
    return 0;
}
