/* SPDX-License-Identifier: Apache-2.0 */
/* preset.c - any bytes as a preset: one that is taken can be filled with its examples, into JSON.
 */
#include <assert.h>

#include "core/preset/preset.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(problems_release) struct problems ps = {0};
    struct preset *p = NULL;
    int r = preset_parse((const char *)data, size, &p, &ps);
    assert((r < 0) == (ps.errors > 0));
    if (r < 0)
        return 0;
    _cleanup_(buf_release) struct buf out = BUF_INIT(DOC_MAX_BYTES);
    assert(preset_sample(p, &out, &ps) == 0);
    _cleanup_(json_unrefp) json_t *spec = NULL;
    assert(json_parse(buf_str(&out), out.len, out.max, &spec, NULL) == 0);
    preset_free(p);
    return 0;
}
