/* SPDX-License-Identifier: Apache-2.0 */
/* hydra_read.c - reads any override; what is called near is read without a fault. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "core/spec/hydra_read.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(freep) char *text = xstrndup((const char *)data, size);
    struct hydra_value v;
    enum hydra_fault fault = hydra_read(text, &v);
    assert(v.fault == fault && v.at <= strlen(text) && v.value <= strlen(text));
    assert(fault == HYDRA_FINE || !v.is_known);
    hydra_value_release(&v);
    _cleanup_(freep) char *near = hydra_nearest(text);
    if (near) {
        assert(hydra_read(near, &v) == HYDRA_FINE);
        hydra_value_release(&v);
    }
    return 0;
}
