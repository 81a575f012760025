/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - see curve.h. A small curve has as many columns as there is room for, each the mean
 * of what falls on it. */
#include "argus/show/curve.h"

#include <inttypes.h>

#include "argus/show/text.h"
#include "base/str.h"
#include "base/text.h"

enum { TEXT_MAX = 4096, SPARK_LEAST = 8, SPARK_MOST = 32, HEIGHTS = 8 };

/* The mean of the values that fall on column i of n. */
static double column(const json_t *values, size_t i, size_t n)
{
    size_t count = json_array_size(values), from = i * count / n, to = (i + 1) * count / n;
    double sum = 0;
    for (size_t k = from; k < to; k++)
        sum += json_number_value(json_array_get(values, k));
    return sum / (double)(to - from);
}

void curve_spark(struct buf *out, const json_t *values, int width)
{
    static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t count = json_array_size(values), n = (size_t)(width > 0 ? width : 0);
    n = count < n ? count : n;
    double low = 0, high = 0;
    for (size_t i = 0; i < n; i++) {
        double v = column(values, i, n);
        low = !i || v < low ? v : low;
        high = !i || v > high ? v : high;
    }
    for (size_t i = 0; i < n; i++) {
        double part = high > low ? (column(values, i, n) - low) / (high - low) : 0;
        size_t at = (size_t)(part * (HEIGHTS - 1) + 0.5);
        (void)buf_adds(out, blocks[at < HEIGHTS ? at : HEIGHTS - 1]); /* n is small */
    }
}

static void curve_add_real(struct buf *out, const json_t *o, const char *key, const char *unit)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_number(v))
        (void)buf_addf(out, "%s%.4g%s", out->len ? ", " : "", json_number_value(v),
                       unit); /* too long: cut */
}

char *curve_progress(const json_t *metrics, const struct when *w)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    char at[WHEN_TEXT_MAX];
    int64_t step = json_get_int(metrics, "step", -1),
            total = json_get_int(metrics, "total_steps", 0);
    double progress = json_get_real(metrics, "progress", -1);
    usec_t eta = when_get(metrics, "eta");
    if (step < 0)
        return buf_take(&out);
    (void)buf_addf(&out, "step %" PRId64, step); /* all of it is short */
    if (total > 0)
        (void)buf_addf(&out, " of %" PRId64, total);
    if (progress >= 0)
        (void)buf_addf(&out, " (%.0f%%)", progress * 100);
    if (eta > w->now || (eta && w->utc))
        (void)buf_addf(&out, ", ends %s", when_point(w, eta, at));
    curve_add_real(&out, metrics, "step_seconds", "s per step");
    curve_add_real(&out, metrics, "tokens_per_s", " tokens/s");
    const json_t *mfu = json_object_get(metrics, "mfu");
    if (json_is_number(mfu))
        (void)buf_addf(&out, ", MFU %.2g", json_number_value(mfu));
    return buf_take(&out);
}

char *curve_line(const json_t *curve, int width)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    _cleanup_(buf_release) struct buf range = BUF_INIT(TEXT_MAX);
    const json_t *value = json_object_get(curve, "value"), *values = json_get_array(curve, "spark");
    if (!json_get_str(curve, "key", NULL))
        return buf_take(&out);
    (void)buf_adds(&out, json_get_str(curve, "key", "")); /* what is too long is cut */
    if (json_is_number(value))
        (void)buf_addf(&out, " %.4g", json_number_value(value));
    else
        (void)buf_adds(&out, " nan");
    if (json_array_size(values) < 2)
        return buf_take(&out);
    (void)buf_addf(&range, " %.4g to %.4g", json_get_real(curve, "min", 0),
                   json_get_real(curve, "max", 0));
    int room = (width ? width : 80) - text_width(buf_str(&out)) - (int)range.len - 1;
    room = room < SPARK_LEAST ? SPARK_LEAST : room > SPARK_MOST ? SPARK_MOST : room;
    (void)buf_addc(&out, ' ');
    curve_spark(&out, values, room);
    (void)buf_add(&out, range.data, range.len);
    return buf_take(&out);
}

char *curve_trouble(const json_t *metrics, enum message_language lang)
{
    enum { KEY, STEP, BEST, NOW, VALUES };
    static const struct {
        const char *name;
        const char *msg;
        unsigned char args[3];
    } troubles[] = {{"not_finite", "say_not_finite", {KEY, STEP}},
                    {"collapse", "say_collapse", {BEST, NOW, STEP}},
                    {"unread", "say_unread", {VALUES, KEY, STEP}}};
    char step[32], best[32], now[32], values[32], text[1024] = "";
    const json_t *o = NULL;
    size_t i = 0;
    while (i < array_len(troubles) && !(o = json_get_object(metrics, troubles[i].name)))
        i++;
    if (!o)
        return xstrdup("");
    text_printf(step, "%" PRId64, json_get_int(o, "step", 0));
    text_printf(best, "%.4g", json_get_real(o, "best", 0));
    text_printf(now, "%.4g", json_get_real(o, "now", 0));
    text_printf(values, "%" PRId64, json_get_int(o, "values", 0));
    const char *all[] = {json_get_str(o, "key", ""), step, best, now, values};
    const char *args[array_len(troubles[0].args)];
    for (size_t k = 0; k < array_len(args); k++)
        args[k] = all[troubles[i].args[k]];
    return xstrdup(msg_fill(lang, troubles[i].msg, args, text, sizeof(text)));
}
