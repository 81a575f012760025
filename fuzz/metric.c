/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c - any bytes as a line of a log: a record keeps its ceilings, can be added up and is
 * the same once it was written. */
#include <assert.h>

#include "core/metric/metric_table.h"
#include "core/metric/metric_watch.h"
#include "fuzz.h"

static void check(const struct metric_record *r)
{
    struct buf line = BUF_INIT(1 << 20);
    struct metric_record back = {0};
    assert((r->n || r->n_unread) && r->n <= METRIC_VALUES_MAX && r->step >= 0);
    metric_record_to_json(r, &line);
    assert(line.failed || metric_read_line(line.data, line.len - 1, &back) == METRIC_RECORD);
    assert(line.failed || back.step == r->step);
    struct metric_table *t = metric_table_new(2);
    struct metric_watch *w = metric_watch_new();
    metric_table_add(t, r);
    metric_table_add(t, &back);
    metric_watch_add(w, r);
    assert(!metric_table_check(t));
    metric_table_free(t);
    metric_watch_free(w);
    metric_record_release(&back);
    buf_release(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metric_record r = {0};
    if (metric_read_line((const char *)data, size, &r) == METRIC_RECORD)
        check(&r);
    metric_record_release(&r);
    return 0;
}
