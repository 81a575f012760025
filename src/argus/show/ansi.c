/* SPDX-License-Identifier: Apache-2.0 */
/* ansi.c - the filter of ansi.h: holds back a possible sequence until its last
 * byte decides. A sequence longer than the holding place is no colour. */
#include "argus/show/ansi.h"

#include <ctype.h>

static void show(unsigned char c, struct buf *out)
{
    if (c == '\n' || c == '\r' || c == '\t' || (c >= 0x20 && c != 0x7f))
        (void)buf_addc(out, (char)c); /* the caller sized out: 4 bytes for each one in */
    else
        (void)buf_addf(out, "^%c", c ^ 0x40);
}

static void let_out(struct ansi *a, struct buf *out)
{
    size_t i = 0;
    if (a->n_held == 2 && a->held[0] == '\xc2') { /* U+0080..U+009F: 8-bit controls */
        (void)buf_addf(out, "\\x%02x", (unsigned char)a->held[1]);
        i = 2;
    }
    for (; i < a->n_held; i++)
        show((unsigned char)a->held[i], out);
    a->n_held = 0;
}

static void ansi_hold(struct ansi *a, char c)
{
    a->held[a->n_held++] = c;
}

/* True if c goes on with, or ends, what is held. */
static bool ansi_goes_on(struct ansi *a, unsigned char c, struct buf *out)
{
    if (a->held[0] == '\xc2') {
        if (c < 0x80 || c > 0x9f)
            return false;
        ansi_hold(a, (char)c);
        let_out(a, out);
        return true;
    }
    if (a->n_held == 1) {
        if (c == '[')
            ansi_hold(a, (char)c);
        return c == '[';
    }
    if (isdigit(c) || c == ';' || c == ':') {
        if (a->n_held == ANSI_HELD_MAX)
            return false;
        ansi_hold(a, (char)c);
        return true;
    }
    if (c != 'm')
        return false;
    (void)buf_add(out, a->held, a->n_held);
    (void)buf_addc(out, 'm');
    a->n_held = 0;
    return true;
}

void ansi_filter(struct ansi *a, const char *p, size_t n, bool end, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (a->n_held && ansi_goes_on(a, c, out))
            continue;
        let_out(a, out);
        if (c == 0x1b || c == 0xc2)
            ansi_hold(a, (char)c);
        else
            show(c, out);
    }
    if (end)
        let_out(a, out);
}
