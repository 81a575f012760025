/* SPDX-License-Identifier: Apache-2.0 */
/* logout.c - filters pieces of bounded size; a line that is longer than --grep can
 * hold is judged, and printed, by its beginning. See logout.h. */
#include "argus/log/logout.h"

#include <string.h>

#include "base/err.h"

enum { PIECE = 4096 };

int logout_init(struct logout *l, FILE *out, bool is_tty, const char *pattern, struct err *err)
{
    *l = (struct logout){.out = out, .is_tty = is_tty, .line = BUF_INIT(LOGOUT_LINE_MAX)};
    if (!pattern)
        return 0;
    struct err why = {0};
    int r = loggrep_new(pattern, &l->grep, &why);
    return r < 0 ? err_copy(err, ERR_USAGE, &why) : 0;
}

void logout_release(struct logout *l)
{
    loggrep_free(l->grep);
    buf_release(&l->line);
}

/* A failed write shows in ferror(out) when the program ends. */
static void logout_print(struct logout *l, const char *p, size_t n)
{
    if (!n)
        return;
    if (l->head)
        (void)fputs(l->head, l->out);
    l->head = NULL;
    l->in_line = p[n - 1] != '\n';
    if (!l->is_tty) {
        (void)fwrite(p, 1, n, l->out);
        return;
    }
    struct buf safe = BUF_INIT((PIECE + ANSI_HELD_MAX) * 4);
    for (size_t k; n; p += k, n -= k) {
        k = n < PIECE ? n : PIECE;
        ansi_filter(&l->ansi, p, k, false, &safe);
        (void)fwrite(buf_str(&safe), 1, safe.len, l->out);
        buf_reset(&safe);
    }
    buf_release(&safe);
}

void logout_line(struct logout *l, const char *p, size_t n)
{
    logout_print(l, p, n);
    logout_print(l, "\n", 1);
}

static void logout_judge(struct logout *l)
{
    if (l->line.len && loggrep_matches(l->grep, buf_str(&l->line), l->line.len))
        logout_line(l, buf_str(&l->line), l->line.len);
    buf_reset(&l->line);
}

void logout_add(struct logout *l, const char *p, size_t n)
{
    if (!l->grep) {
        logout_print(l, p, n);
        return;
    }
    while (n) {
        const char *lf = memchr(p, '\n', n);
        size_t k = lf ? (size_t)(lf - p) : n;
        size_t room = l->line.max - l->line.len;
        (void)buf_add(&l->line, p,
                      k < room ? k : room); /* longer lines are judged by their start */
        if (lf)
            logout_judge(l);
        p += k + !!lf;
        n -= k + !!lf;
    }
}

void logout_end(struct logout *l)
{
    struct buf safe = BUF_INIT(ANSI_HELD_MAX * 4);
    if (l->grep)
        logout_judge(l);
    ansi_filter(&l->ansi, "", 0, true, &safe);
    (void)fwrite(buf_str(&safe), 1, safe.len, l->out);
    buf_release(&safe);
}
