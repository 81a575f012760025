/* SPDX-License-Identifier: Apache-2.0 */
/* doc.c - any bytes as YAML or JSON document; what is accepted prints as JSON that can be read. */
#include <assert.h>

#include "base/doc/doc.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *d = NULL;
    if (doc_parse((const char *)data, size, true, &d, &ps) < 0) {
        assert(!d && ps.errors > 0);
        return 0;
    }
    _cleanup_(buf_release) struct buf out = BUF_INIT(16 * DOC_MAX_BYTES);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    node_to_json(doc_root(d), &j, NULL);
    jout_close(&j, ']');

    _cleanup_(json_unrefp) json_t *again = NULL;
    assert(out.failed || json_parse(buf_str(&out), out.len, out.max, &again, NULL) == 0);
    return 0;
}
