/* SPDX-License-Identifier: Apache-2.0 */
/* nodespec.c - any bytes as NodeSpecs: a refusal names a problem, what is taken reads back. */
#include <assert.h>
#include <stdlib.h>

#include "core/spec/nodespec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *d = NULL;
    struct nodespec *v = NULL;
    size_t n = 0;
    if (doc_parse((const char *)data, size, true, &d, &ps) < 0)
        return 0;
    int r = nodespec_read_all(doc_root(d), &v, &n, &ps);
    assert((r < 0) == (ps.errors > 0));
    for (size_t i = 0; i < n; i++) {
        _cleanup_(buf_release) struct buf out = BUF_INIT(NODESPEC_JSON_MAX);
        struct jout j = jout_begin(&out);
        nodespec_to_json(&v[i], &j, NULL, false);
        _cleanup_(doc_freep) struct doc *again = NULL;
        struct nodespec back = {0};
        if (r == 0 && doc_parse(buf_str(&out), out.len, false, &again, &ps) == 0) {
            assert(nodespec_read(doc_root(again), "", &back, &ps) == 0);
            assert(nodespec_equal(&v[i], &back));
        }
        nodespec_release(&back);
        nodespec_release(&v[i]);
    }
    free(v);
    return 0;
}
