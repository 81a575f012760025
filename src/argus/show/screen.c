/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c - a stream that filters before it writes; see screen.h. What is held back of a sequence
 * waits for the next write, as ansi.h says. */
#define _GNU_SOURCE
#include "argus/show/screen.h"

#include <stdlib.h>
#include <sys/types.h>

#include "argus/show/ansi.h"
#include "base/mem.h"

enum { SCREEN_PIECE = 4096 };

struct screen {
    FILE *to;
    struct ansi ansi;
};

static bool screen_put(struct screen *s, const char *p, size_t n, bool end)
{
    struct buf safe = BUF_INIT((SCREEN_PIECE + ANSI_HELD_MAX) * 4);
    ansi_filter(&s->ansi, p, n, end, &safe);
    size_t written = fwrite(buf_str(&safe), 1, safe.len, s->to);
    bool whole = written == safe.len;
    buf_release(&safe);
    return whole;
}

/* 0: it failed, and ferror() of the stream says so. */
static ssize_t screen_on_write(void *cookie, const char *p, size_t n)
{
    struct screen *s = cookie;
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < SCREEN_PIECE ? n - at : SCREEN_PIECE;
        if (!screen_put(s, p + at, k, false))
            return 0;
    }
    return fflush(s->to) == 0 ? (ssize_t)n : 0;
}

static int screen_on_close(void *cookie)
{
    struct screen *s = cookie;
    bool whole = screen_put(s, "", 0, true) && fflush(s->to) == 0;
    free(s);
    return whole ? 0 : EOF;
}

FILE *screen_open(FILE *to)
{
    struct screen *s = xcalloc(1, sizeof(*s));
    s->to = to;
    FILE *f = fopencookie(
        s, "w", (cookie_io_functions_t){.write = screen_on_write, .close = screen_on_close});
    if (!f) {
        free(s);
        return NULL;
    }
    (void)setvbuf(f, NULL, _IOLBF, 0); /* only slower without it */
    return f;
}
