/* SPDX-License-Identifier: Apache-2.0 */
/* expo.c - see expo.h. A whole number is written without a point, so that counts stay exact; other
 * values with nine digits. */
#include "http/expo.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/str.h"

static const char *const type_words[] = {"gauge", "counter", "histogram"};

void expo_family(struct expo *e, enum expo_type type, const char *name, const char *help)
{
    e->name = name;
    (void)buf_addf(e->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", e->prefix, name, help, e->prefix,
                   name, type_words[type]); /* overflow: out->failed, here and below */
}

static void expo_add_value(struct buf *out, const char *value)
{
    for (const char *p = str_or(value, ""); *p; p++)
        if (*p == '\n')
            (void)buf_adds(out, "\\n");
        else if (*p == '"' || *p == '\\')
            (void)buf_addf(out, "\\%c", *p);
        else
            (void)buf_addc(out, *p);
    if (!value || !*value)
        (void)buf_adds(out, "none");
}

static void expo_sample(struct expo *e,
                        const char *suffix,
                        double value,
                        const struct expo_label *labels,
                        size_t n)
{
    (void)buf_addf(e->out, "%s%s%s", e->prefix, e->name, suffix);
    for (size_t i = 0; i < n; i++) {
        (void)buf_addf(e->out, "%c%s=\"", i ? ',' : '{', labels[i].name);
        expo_add_value(e->out, labels[i].value);
        (void)buf_addc(e->out, '"');
    }
    if (n)
        (void)buf_addc(e->out, '}');
    if (fabs(value) < 1e15 && value == floor(value))
        (void)buf_addf(e->out, " %.0f\n", value);
    else
        (void)buf_addf(e->out, " %.9g\n", value);
}

void expo_put(struct expo *e, double value, const struct expo_label *labels, size_t n)
{
    expo_sample(e, "", value, labels, n);
}

void expo_one(struct expo *e, enum expo_type type, const char *name, const char *help, double value)
{
    expo_family(e, type, name, help);
    expo_sample(e, "", value, NULL, 0);
}

void expo_spans_add(struct expo_spans *s, usec_t span)
{
    size_t i = 0;
    while (i < s->n && span > s->bounds[i])
        i++;
    s->counts[i]++;
    s->count++;
    s->sum += span;
}

void expo_spans_put(struct expo *e,
                    const struct expo_spans *s,
                    const struct expo_label *labels,
                    size_t n)
{
    struct expo_label with[EXPO_LABELS];
    uint64_t sum = 0;
    assert(n < EXPO_LABELS && s->n <= EXPO_BOUNDS);
    for (size_t i = 0; i < n; i++)
        with[i] = labels[i];
    for (size_t i = 0; i <= s->n; i++) {
        char bound[32] = "+Inf";
        if (i < s->n)
            (void)snprintf(bound, sizeof(bound), "%g", (double)s->bounds[i] / 1e6); /* it fits */
        with[n] = (struct expo_label){"le", bound};
        sum += s->counts[i];
        expo_sample(e, "_bucket", (double)sum, with, n + 1);
    }
    expo_sample(e, "_sum", (double)s->sum / 1e6, labels, n);
    expo_sample(e, "_count", (double)s->count, labels, n);
}
