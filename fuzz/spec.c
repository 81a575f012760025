/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c - any bytes as a JobSpec: read, expanded and printed; a refusal names a problem. */
#include <assert.h>

#include "core/spec/spec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *d = NULL;
    if (doc_parse((const char *)data, size, true, &d, &ps) < 0)
        return 0;
    _cleanup_(spec_release) struct spec s = {0};
    int r = spec_read(doc_root(d), NULL, &s, &ps);
    assert((r < 0) == (ps.errors > 0));
    if (r < 0)
        return 0;
    const struct spec_roots roots = {"/mnt/shared", "/mnt/shared/users/ann", NULL};
    r = spec_expand(&s, &roots, &ps);
    assert((r < 0) == (ps.errors > 0));

    _cleanup_(buf_release) struct buf out = BUF_INIT(64 * DOC_MAX_BYTES);
    struct jout j = jout_begin(&out);
    spec_to_json(&s, &j, NULL);
    _cleanup_(json_unrefp) json_t *again = NULL;
    assert(out.failed || json_parse(buf_str(&out), out.len, out.max, &again, NULL) == 0);
    return 0;
}
