/* SPDX-License-Identifier: Apache-2.0 */
/* metric_json.c - any bytes as a JSON object of metrics: what is told lies inside them, the object
 * ends where it says, and neither what follows it nor a cut inside it changes what was told before.
 */
#include <assert.h>

#include "core/metric/metric_json.h"
#include "fuzz.h"

struct told {
    size_t size, members;
    int last; /* depth of the newest; -1: none */
};

static void look(const struct metric_json_value *v, void *arg)
{
    struct told *t = arg;
    assert(v->depth >= 0 && v->depth <= METRIC_JSON_DEPTH && v->depth <= t->last + 1);
    assert(v->name && v->n <= t->size);
    t->last = v->depth;
    t->members++;
}

static size_t read_it(const uint8_t *data, size_t size, struct told *ret)
{
    *ret = (struct told){.size = size, .last = -1};
    size_t n = metric_json_read((const char *)data, size, look, ret);
    assert(n <= size && (!n || data[n - 1] == '}'));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct told whole, alone;
    size_t n = read_it(data, size, &whole);
    if (n) { /* what follows the object is not of it */
        assert(read_it(data, n, &alone) == n);
        assert(alone.members == whole.members);
        assert(read_it(data, n - 1, &alone) == 0); /* without its end it is none */
    }
    return 0;
}
