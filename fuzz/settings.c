/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - any bytes as argus.yaml: either whole settings or problems, all of it releasable. */
#include <assert.h>

#include "argusd/ground/settings.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *d = NULL;
    if (doc_parse((const char *)data, size, true, &d, &ps) < 0)
        return 0;
    size_t n;
    const struct field *keys = settings_keys(&n);
    struct settings s = {0};
    conf_read(keys, n, doc_root(d), &s, &ps);
    conf_release(keys, n, &s);

    _cleanup_(buf_release) struct buf out = BUF_INIT(1 << 20);
    problems_to_text(&ps, "argus.yaml", MESSAGE_ENGLISH, &out);
    assert(ps.n == 0 || out.len > 0);
    return 0;
}
