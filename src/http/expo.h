/* SPDX-License-Identifier: Apache-2.0 */
/* expo.h - a page in the text form that Prometheus scrapes (text format 0.0.4).
 *
 * A family is written whole before the next one begins. Label values are escaped; an empty one is
 * written as "none", since Prometheus takes an empty label for a missing one. Nothing here fails:
 * a page beyond its ceiling shows in out->failed. Units and names follow Prometheus: seconds,
 * bytes, `_total` for what only grows. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

enum expo_type { EXPO_GAUGE, EXPO_COUNTER, EXPO_HISTOGRAM };

struct expo {
    struct buf *out;    /* borrowed */
    const char *prefix; /* borrowed: "argus_" */
    const char *name;   /* of the family that is being written, borrowed until the next */
};

struct expo_label {
    const char *name, *value;
};
enum { EXPO_LABELS = 8 };

/* name, help: literals; help without a line's end. */
void expo_family(struct expo *e, enum expo_type type, const char *name, const char *help);
/* One sample of the family. */
void expo_put(struct expo *e, double value, const struct expo_label *labels, size_t n);
#define EXPO_PUT(e, value, ...)                                                                    \
    expo_put(e, value, (const struct expo_label[]){__VA_ARGS__},                                   \
             sizeof((const struct expo_label[]){__VA_ARGS__}) / sizeof(struct expo_label))
/* A family of one sample without labels. */
void expo_one(struct expo *e,
              enum expo_type type,
              const char *name,
              const char *help,
              double value);

/* A histogram of spans. `bounds` grow, at most EXPO_BOUNDS of them. */
enum { EXPO_BOUNDS = 14 };
struct expo_spans {
    const usec_t *bounds;
    size_t n;
    uint64_t counts[EXPO_BOUNDS + 1], count;
    usec_t sum;
};
void expo_spans_add(struct expo_spans *s, usec_t span);
/* Its samples, in seconds; the family is of the type EXPO_HISTOGRAM. At most EXPO_LABELS - 1
 * labels. */
void expo_spans_put(struct expo *e,
                    const struct expo_spans *s,
                    const struct expo_label *labels,
                    size_t n);
