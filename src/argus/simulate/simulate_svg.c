/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_svg.c - the result of a simulation as one picture: how full the GPUs were and how long
 * the line was over the trace's span, then each pool's utilisation and waits as bars.
 *
 * Standalone: no font, script or style from elsewhere; light and dark by the reader's setting.
 * Whether text was cut by the buffer's ceiling is asked once, by the caller. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "argus/show/text.h"
#include "argus/simulate/simulate.h"
#include "base/text.h"

enum {
    WIDTH = 1120,
    LEFT = 64, /* of the charts */
    RIGHT = 24,
    CHART = 190, /* height */
    FIRST = 118, /* top of the first chart */
    GAP = 56,
    ROW = 54, /* of a pool */
    POOLS_MAX = 40,
    LABEL_MAX = 32,
};

static const char STYLE[] =
    "<style>"
    ":root{color-scheme:light dark}"
    "svg{--bg:#ffffff;--ink:#1d2430;--soft:#667085;--line:#e4e7ec;--band:#f6f7f9;"
    "--fifo:#98a2b3;--easy:#2e78d2;--fair:#d9480f}"
    "@media(prefers-color-scheme:dark){svg{--bg:#14181f;--ink:#e6e9ef;--soft:#98a2b3;"
    "--line:#2b323d;--band:#1a1f28;--fifo:#7d8899;--easy:#5aa2f5;--fair:#ff8a4c}}"
    "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--ink);"
    "font-variant-numeric:tabular-nums}"
    ".h{font-size:20px;font-weight:600}.t{font-size:14px;font-weight:600}"
    ".s{fill:var(--soft);font-size:12px}.e{text-anchor:end}.m{text-anchor:middle}"
    ".g{stroke:var(--line);stroke-width:1;fill:none}"
    ".l{fill:none;stroke-width:1.75;stroke-linejoin:round}"
    ".fifo{stroke:var(--fifo)}.easy{stroke:var(--easy)}.fair{stroke:var(--fair)}"
    ".bfifo{fill:var(--fifo)}.beasy{fill:var(--easy)}.bfair{fill:var(--fair)}"
    "</style>";

struct draw {
    const struct simulation *s;
    struct buf *out;
};

#define put(d, ...) ((void)buf_addf((d)->out, __VA_ARGS__)) /* see the top */

static void simulate_svg_put_text(const struct draw *d, const char *text)
{
    struct buf clean = BUF_INIT(4096);
    text_clean(&clean, text); /* too long: what fits */
    for (const char *c = buf_str(&clean); *c; c++) {
        if (*c == '<')
            put(d, "&lt;");
        else if (*c == '&')
            put(d, "&amp;");
        else
            put(d, "%c", *c);
    }
    buf_release(&clean);
}

static const char *policy_word(int p)
{
    return sched_policy_to_string((enum sched_policy)p);
}

/* "2 d 4 h", short: the two largest units of a wait. */
static const char *wait_label(double seconds, char text[static LABEL_MAX])
{
    char span[CLOCK_TEXT_MAX];
    text_copy_to(text, LABEL_MAX, span_to_string((usec_t)(seconds * 1e6), span));
    return text;
}

/* ---- the head ---- */

static void simulate_svg_put_head(const struct draw *d)
{
    const struct simulation_opts *o = &d->s->opts;
    char from[CLOCK_TEXT_MAX], until[CLOCK_TEXT_MAX];
    size_t jobs = 0;
    for (size_t i = 0; i < d->s->n_pools; i++)
        jobs += d->s->pools[i].n;
    const char *name = strrchr(o->name, '/');
    put(d, "<text class=\"h\" x=\"%d\" y=\"40\">", LEFT);
    simulate_svg_put_text(d, name ? name + 1 : o->name);
    put(d, "</text><text class=\"s\" x=\"%d\" y=\"62\">%zu jobs in %zu %s, %.10s to %.10s, ", LEFT,
        jobs, d->s->n_pools, d->s->n_pools == 1 ? "pool" : "pools",
        clock_to_string(d->s->start, from), clock_to_string(d->s->start + d->s->span, until));
    if (o->nodes)
        put(d, "%d×%d GPUs each", o->nodes, o->gpus_per_node);
    else
        put(d, "nodes for a load of %g", o->load);
    put(d, "; limits guessed at %g–%g× the run, seed %" PRIu64 ", learner %s</text>", o->guess_low,
        o->guess_high, o->seed, o->learner ? "on" : "off");
    int x = LEFT;
    for (int p = 0; p < SCHED_POLICY_END; p++) {
        if (!d->s->runs[p].tally)
            continue;
        put(d,
            "<rect class=\"b%s\" x=\"%d\" y=\"78\" width=\"14\" height=\"14\" rx=\"3\"/>"
            "<text x=\"%d\" y=\"90\">%s</text>",
            policy_word(p), x, x + 20, policy_word(p));
        x += 76;
    }
}

/* ---- the charts ---- */

/* 1, 2 or 5 times a power of ten, so that about four of them reach top. */
static double tick_of(double top)
{
    double unit = pow(10, floor(log10(top / 4 > 1e-9 ? top / 4 : 1e-9)));
    double times = top / 4 / unit;
    return unit * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static double chart_x(size_t bucket)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * ((double)bucket + 0.5) / TALLY_BUCKETS;
}

static void put_axes(const struct draw *d, int top, double most, double scale, const char *unit)
{
    double tick = tick_of(most);
    for (int i = 0; i * tick <= most * 1.0001; i++) {
        double v = i * tick;
        double y = top + CHART - CHART * v / most;
        put(d,
            "<path class=\"g\" d=\"M%d %.1fH%d\"/><text class=\"s e\" x=\"%d\" "
            "y=\"%.1f\">%g%s</text>",
            LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, v * scale, unit);
    }
}

static void put_days(const struct draw *d, int top)
{
    char text[CLOCK_TEXT_MAX];
    double days = (double)d->s->span / (double)USEC_DAY;
    usec_t step = (usec_t)ceil(days / 8 > 1.0 / 24 ? days / 8 * 24 : 1) * USEC_HOUR;
    if (step > USEC_DAY)
        step = (step + USEC_DAY - 1) / USEC_DAY * USEC_DAY;
    usec_t first = (d->s->start + step - 1) / step * step;
    for (usec_t at = first; at <= d->s->start + d->s->span; at += step) {
        double part = (double)(at - d->s->start) / (double)d->s->span;
        double x = LEFT + (WIDTH - LEFT - RIGHT) * part;
        clock_to_string(at, text);
        put(d, "<text class=\"s m\" x=\"%.1f\" y=\"%d\">%.*s</text>", x, top + CHART + 18,
            step < USEC_DAY ? 11 : 5, text + 5);
    }
}

typedef const double *(*series_f)(const struct tally *t);

static void simulate_svg_put_series(const struct draw *d,
                                    int top,
                                    series_f series,
                                    double scale,
                                    double most)
{
    for (int p = 0; p < SCHED_POLICY_END; p++) {
        if (!d->s->runs[p].tally)
            continue;
        const double *v = series(d->s->runs[p].tally);
        put(d, "<path class=\"l %s\" d=\"", policy_word(p));
        for (size_t i = 0; i < TALLY_BUCKETS; i++)
            put(d, "%c%.1f %.1f", i ? 'L' : 'M', chart_x(i),
                top + CHART - CHART * v[i] * scale / most);
        put(d, "\"/>");
    }
}

static double most_of(const struct simulation *s, series_f series)
{
    double most = 1;
    for (int p = 0; p < SCHED_POLICY_END; p++)
        for (size_t i = 0; s->runs[p].tally && i < TALLY_BUCKETS; i++) {
            double v = series(s->runs[p].tally)[i];
            most = v > most ? v : most;
        }
    return most;
}

static void put_charts(const struct draw *d)
{
    double gpus = 0;
    for (size_t i = 0; i < d->s->n_pools; i++)
        gpus += (double)d->s->pools[i].nodes * d->s->pools[i].gpus_per_node;
    put(d, "<text class=\"t\" x=\"%d\" y=\"%d\">GPUs in use, of %.0f</text>", LEFT, FIRST, gpus);
    put_axes(d, FIRST + 14, 1, 100, "%");
    simulate_svg_put_series(d, FIRST + 14, tally_used, 1 / gpus, 1);
    put_days(d, FIRST + 14);
    int top = FIRST + 14 + CHART + GAP;
    double most = most_of(d->s, tally_queue) * 1.05;
    put(d, "<text class=\"t\" x=\"%d\" y=\"%d\">Jobs that wait</text>", LEFT, top);
    put_axes(d, top + 14, most, 1, "");
    simulate_svg_put_series(d, top + 14, tally_queue, 1, most);
    put_days(d, top + 14);
}

/* ---- the pools ---- */

struct bars {
    int x, width; /* the longest bar's */
    double most;
};

static void put_bar(const struct draw *d,
                    const struct bars *b,
                    int p,
                    double y,
                    double v,
                    const char *label)
{
    double w = b->most > 0 ? b->width * v / b->most : 0;
    put(d,
        "<rect class=\"b%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"11\" rx=\"2\"/>"
        "<text class=\"s\" x=\"%.1f\" y=\"%.1f\">%s</text>",
        policy_word(p), b->x, y, w > 1.5 ? w : 1.5, b->x + (w > 1.5 ? w : 1.5) + 6, y + 10, label);
}

static void simulate_svg_put_rows(const struct draw *d,
                                  double y,
                                  const struct bars columns[static 3],
                                  const struct tally_report *const reports[static SCHED_POLICY_END])
{
    char label[LABEL_MAX];
    y += 8;
    for (int p = 0; p < SCHED_POLICY_END; p++) {
        const struct tally_report *r = reports[p];
        if (!r)
            continue;
        text_printf(label, "%.1f%%", 100 * r->utilisation);
        put_bar(d, &columns[0], p, y, r->utilisation, label);
        put_bar(d, &columns[1], p, y, r->wait.mean, wait_label(r->wait.mean, label));
        put_bar(d, &columns[2], p, y, r->wait.p95, wait_label(r->wait.p95, label));
        y += 13;
    }
}

static void put_pool_name(const struct draw *d,
                          double y,
                          const char *name,
                          double gpus,
                          size_t jobs)
{
    put(d, "<text x=\"%d\" y=\"%.1f\">", LEFT, y + 22);
    simulate_svg_put_text(d, name);
    put(d, "</text><text class=\"s\" x=\"%d\" y=\"%.1f\">%.0f GPUs, %zu %s</text>", LEFT, y + 39,
        gpus, jobs, jobs == 1 ? "job" : "jobs");
}

static void widest(const struct simulation *s, struct bars columns[static 3])
{
    for (int p = 0; p < SCHED_POLICY_END; p++)
        for (size_t i = 0; s->runs[p].tally && i < s->n_pools; i++) {
            const struct tally_report *r = &s->runs[p].pools[i];
            columns[1].most = fmax(columns[1].most, r->wait.mean);
            columns[2].most = fmax(columns[2].most, r->wait.p95);
        }
}

static void put_pools(const struct draw *d, double top, size_t n)
{
    const struct simulation *s = d->s;
    struct bars columns[3] = {{240, 190, 1}, {510, 200, 0}, {800, 200, 0}};
    static const char *const titles[] = {"utilisation", "mean wait", "95% waited less than"};
    widest(s, columns);
    put(d, "<text class=\"t\" x=\"%d\" y=\"%.1f\">Pools</text>", LEFT, top);
    for (size_t i = 0; i < 3; i++)
        put(d, "<text class=\"s\" x=\"%d\" y=\"%.1f\">%s</text>", columns[i].x, top, titles[i]);
    for (size_t i = 0; i <= n; i++) { /* the last row: all of them */
        double y = top + 12 + (double)i * ROW;
        double gpus = 0;
        size_t jobs = 0;
        const struct tally_report *reports[SCHED_POLICY_END] = {0};
        for (int p = 0; p < SCHED_POLICY_END; p++) {
            if (!s->runs[p].tally)
                continue;
            reports[p] = i < n ? &s->runs[p].pools[i] : &s->runs[p].report;
            gpus = reports[p]->gpus;
            jobs = reports[p]->jobs;
        }
        if (i % 2 == 0)
            put(d,
                "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"4\" "
                "fill=\"var(--band)\"/>",
                LEFT - 12, y, WIDTH - LEFT - RIGHT + 12, ROW);
        put_pool_name(d, y, i < n ? s->pools[i].name : "all pools", gpus, jobs);
        simulate_svg_put_rows(d, y, columns, reports);
    }
}

void simulate_svg(const struct simulation *s, struct buf *out)
{
    struct draw d = {s, out};
    size_t n = s->n_pools < POOLS_MAX ? s->n_pools : POOLS_MAX;
    int pools = FIRST + 2 * (14 + CHART + GAP) + 8;
    int height = pools + 12 + (int)(n + 1) * ROW + 48;
    put(&d,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
        "height=\"%d\" "
        "role=\"img\" aria-label=\"simulation\">%s"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"var(--bg)\"/>",
        WIDTH, height, WIDTH, height, STYLE);
    simulate_svg_put_head(&d);
    put_charts(&d);
    put_pools(&d, pools, n);
    put(&d, "<text class=\"s\" x=\"%d\" y=\"%d\">", LEFT, height - 16);
    if (n < s->n_pools)
        put(&d, "%zu more pools are in -o json. ", s->n_pools - n);
    put(&d, "argus simulate, hash %016" PRIx64 "</text></svg>\n", s->digest);
}
