/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - see progress.h. The line is written over itself, a few times a second. */
#include "argus/transfer/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "argus/show/text.h"
#include "argus/show/when.h"
#include "base/text.h"

enum { BAR = 24, NAME_LEAST = 8, LINE_MOST = 120 };
static const usec_t EVERY = 150 * USEC_MS;

const char *progress_size(double bytes, char out[static PROGRESS_SIZE_MAX])
{
    double n = bytes;
    const char *unit = text_bytes_unit(&n);
    bool is_fine = bytes >= 1024 && n < 100;
    text_printf_to(out, PROGRESS_SIZE_MAX, is_fine ? "%.1f%s" : "%.0f%s", n, unit);
    return out;
}

static void add_bar(struct buf *b, double part)
{
    int full = (int)(part * BAR);
    (void)buf_addc(b, '['); /* the buf is large enough for all of it, here and below */
    for (int i = 0; i < BAR; i++)
        (void)buf_addc(b, i < full ? '#' : '.');
    (void)buf_adds(b, "] ");
}

const char *progress_text(const char *what,
                          uint64_t done,
                          uint64_t total,
                          double per_second,
                          int width,
                          char out[static PROGRESS_TEXT_MAX])
{
    char a[PROGRESS_SIZE_MAX], t[PROGRESS_SIZE_MAX], s[PROGRESS_SIZE_MAX], left[WHEN_TEXT_MAX] = "";
    _cleanup_(buf_release) struct buf numbers = BUF_INIT(PROGRESS_TEXT_MAX);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(1 << 14), line = BUF_INIT(1 << 14);
    double part = total ? (double)done / (double)total : 0;
    part = part > 1 ? 1 : part;
    if (total && per_second > 0 && done < total)
        (void)when_rough((usec_t)((double)(total - done) / per_second * (double)USEC_SEC), left);
    if (total) {
        (void)buf_addf(&numbers, " %3.0f%% ", part * 100);
        if (width >= 80)
            add_bar(&numbers, part);
        (void)buf_addf(&numbers, "%s/", progress_size((double)done, a));
        (void)buf_adds(&numbers, progress_size((double)total, t));
    } else {
        (void)buf_addf(&numbers, " %s", progress_size((double)done, a));
    }
    (void)buf_addf(&numbers, " %s/s %s", progress_size(per_second, s), left);
    int room = width - (int)numbers.len;
    text_clean(&clean, what);
    text_cut(&line, buf_str(&clean), room < NAME_LEAST ? NAME_LEAST : room);
    (void)buf_adds(&line, buf_str(&numbers));
    text_copy_to(out, PROGRESS_TEXT_MAX, buf_str(&line));
    return out;
}

static int columns(void)
{
    struct winsize ws = {0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) < 0 || ws.ws_col < 20)
        return 79;
    return ws.ws_col > LINE_MOST ? LINE_MOST : ws.ws_col - 1;
}

void progress_begin(struct progress *p,
                    const struct cli *cli,
                    const char *what,
                    uint64_t from,
                    uint64_t total)
{
    *p = (struct progress){
        .cli = cli, .what = what, .from = from, .total = total, .began = clock_mono()};
}

void progress_at(struct progress *p, uint64_t done)
{
    char text[PROGRESS_TEXT_MAX];
    usec_t now = clock_mono();
    if (!p->cli->term.is_talk || now - p->shown < EVERY)
        return;
    p->shown = now;
    p->is_open = true;
    double seconds = (double)(now - p->began) / (double)USEC_SEC;
    double fresh = done > p->from ? (double)(done - p->from) : 0;
    (void)fprintf(stderr, "\r%s\033[K",
                  progress_text(p->what, done, p->total, seconds > 0 ? fresh / seconds : 0,
                                columns(), text)); /* a lost line is no loss */
    (void)fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->is_open)
        (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
    p->is_open = false;
}
