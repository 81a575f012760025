/* SPDX-License-Identifier: Apache-2.0 */
/* sse.c - any bytes as an event stream: the same events whether it comes whole or byte by byte. */
#include <assert.h>
#include <string.h>

#include "argus/net/sse.h"
#include "fuzz.h"

static int note(const struct sse_event *e, void *arg)
{
    struct buf *out = arg;
    assert(strlen(e->data) <= e->data_len);
    (void)buf_addf(out, "%s|%s|%zu|", e->name, e->id, e->data_len); /* the ceiling is high */
    (void)buf_add(out, e->data, e->data_len);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(buf_release) struct buf whole = BUF_INIT(1 << 24), bytes = BUF_INIT(1 << 24);
    _cleanup_(sse_release) struct sse a, b;
    sse_init(&a, note, &whole);
    sse_init(&b, note, &bytes);
    int r = sse_feed(&a, (const char *)data, size, NULL), q = 0;
    for (size_t i = 0; i < size && q == 0; i++)
        q = sse_feed(&b, (const char *)data + i, 1, NULL);
    assert(r == q && whole.len == bytes.len);
    assert(whole.len == 0 || !memcmp(whole.data, bytes.data, whole.len));
    return 0;
}
