/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - what it costs to read the JSON of a metrics line, beside jansson on the same lines.
 *
 *   bench-metrics LINES
 *
 * Two kinds of lines: as verl prints them (flat, 60 numbers), and the same numbers nested in three
 * objects. Both readers add all numbers up, and the sums have to be equal. Prints a line of JSON
 * per reader and kind: n lines, each a sample. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "bench.h"
#include "core/metric/metric_json.h"

enum { NUMBERS = 60, GROUPS = 3, LINE_BYTES = 16 << 10 };

static void line_make(struct buf *out, uint64_t step, bool nested)
{
    buf_reset(out);
    (void)buf_addf(out, "{\"step\": %" PRIu64, step);
    for (unsigned i = 0; i < NUMBERS; i++) {
        unsigned group = i / (NUMBERS / GROUPS);
        double value = (double)((step * 7919 + i * 104729) % 1000003) / 1009.0;
        if (nested && i % (NUMBERS / GROUPS) == 0)
            (void)buf_addf(out, "%s, \"group_%u\": {\"first\": 0", group ? "}" : "", group);
        (void)buf_addf(out, ", \"%smetric_%u/mean\": %.17g", nested ? "" : "actor/", i, value);
    }
    (void)buf_adds(out, nested ? "}}" : "}");
    if (out->failed)
        bench_die("line", "it is too long");
}

static void sum_member(const struct metric_json_value *v, void *arg)
{
    double *sum = arg;
    *sum += v->is_object || v->is_unread ? 0 : v->value;
}

static double sum_ours(const struct buf *line)
{
    double sum = 0;
    if (metric_json_read(buf_str(line), line->len, sum_member, &sum) != line->len)
        bench_die("metric_json_read", "it did not read the line");
    return sum;
}

static double sum_members(const json_t *object)
{
    double sum = 0;
    const char *key;
    json_t *v;
    json_object_foreach ((json_t *)(uintptr_t)object, key, v)
        sum += json_is_object(v) ? sum_members(v) : json_number_value(v);
    return sum;
}

static double sum_jansson(const struct buf *line)
{
    _cleanup_(json_unrefp) json_t *root = json_loadb(buf_str(line), line->len, 0, NULL);
    if (!root)
        bench_die("jansson", "it did not read the line");
    return sum_members(root);
}

/* The readers in turns, so that what else the machine does hits both. */
static void bench_kind(const char *kind, uint64_t lines, bool nested)
{
    static double (*const readers[])(const struct buf *) = {sum_ours, sum_jansson};
    static const char *const names[] = {"ours", "jansson"};
    struct buf line = BUF_INIT(LINE_BYTES);
    struct samples samples[2] = {{0}, {0}};
    uint64_t took[2] = {0};
    for (uint64_t step = 0; step < lines; step++) {
        double sums[2];
        line_make(&line, step, nested);
        for (unsigned i = 0; i < 2; i++) {
            unsigned r = (unsigned)(step + i) % 2;
            uint64_t start = bench_now();
            sums[r] = readers[r](&line);
            uint64_t ns = bench_now() - start;
            samples_add(&samples[r], ns);
            took[r] += ns;
        }
        if (fabs(sums[0] - sums[1]) > 1e-6 * fabs(sums[1]))
            bench_die(kind, "the two readers do not agree");
    }
    for (unsigned r = 0; r < 2; r++) {
        char what[64];
        (void)snprintf(what, sizeof(what), "%s %s", kind, names[r]); /* fits */
        bench_print(what, 1, lines, took[r], &samples[r]);
        samples_release(&samples[r]);
    }
    buf_release(&line);
}

int main(int argc, char **argv)
{
    uint64_t lines = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    if (!lines) {
        (void)fprintf(stderr, "usage: bench-metrics LINES\n");
        return 2;
    }
    bench_kind("flat", lines, false);
    bench_kind("nested", lines, true);
    return 0;
}
