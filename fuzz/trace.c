/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - any bytes as a trace: rows in order, each inside its pool, or one sentence. */
#include <assert.h>

#include "core/past/trace.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace t;
    struct err err = {0};
    if (trace_parse("t.csv", (const char *)data, size, &t, &err) < 0) {
        assert(err.text[0]);
        return 0;
    }
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_row *r = &t.rows[i];
        const struct trace_pool *p = &t.pools[r->pool];
        assert(i >= p->first && i < p->first + p->n);
        assert(r->gpus >= 0 && r->gpus <= TRACE_MAX_GPUS);
        assert(i == p->first || r[-1].submit <= r->submit);
        assert(r->submit >= trace_start(&t));
    }
    assert(t.n && trace_span(&t) > 0);
    trace_release(&t);
    return 0;
}
