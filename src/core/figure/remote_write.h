/* SPDX-License-Identifier: Apache-2.0 */
/* remote_write.h - a page in Prometheus' text form as the body of one remote_write request (its
 * version 0.1.0). Pure.
 *
 * A receiver refuses a whole request for one bad sample, so that all samples have one time, labels
 * are in order, and a line that cannot be read, or has a label twice, is left out; two lines of one
 * series are the page's fault. A series that the page before had and this one has not ends with a
 * stale marker, as it does where Prometheus scrapes: else it would live on for five minutes. Where
 * the page and all markers have no room in one request, the page goes without any. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { REMOTE_WRITE_LABELS = 8 };

struct remote_write_label {
    const char *name, *value;
};
struct remote_write {
    const char *page, *before; /* before: the page that was taken last, NULL: none */
    int64_t at_ms;             /* Unix time of all samples */
    /* Every series has them; a label of the page with the same name is left out. At most
     * REMOTE_WRITE_LABELS. */
    const struct remote_write_label *labels;
    size_t n_labels;
};

/* The time of the next page, later than that of the last one that a receiver may have (0: none). A
 * receiver refuses samples that are not newer than those it has: while the wall clock is behind,
 * because somebody set it back, each page is a millisecond after the one before. */
int64_t remote_write_time(int64_t now_ms, int64_t last_ms);

/* Appended to out: snappy around a protobuf WriteRequest. -EMSGSIZE: it does not fit, out->failed.
 */
must_check int remote_write_body(const struct remote_write *of, struct buf *out, struct err *err);
