/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - any bytes as the manifest of a snapshot: what is taken is written back the same. */
#include <assert.h>
#include <string.h>

#include "core/check/manifest.h"
#include "core/spec/snapshot.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest m = {0};
    struct err err = {0};
    if (manifest_read((const char *)data, size, &m, &err) < 0) {
        assert(*err.text && !m.v);
        return 0;
    }
    _cleanup_(buf_release) struct buf out = BUF_INIT(MANIFEST_TEXT_MAX);
    manifest_write(&m, &out);
    struct manifest again = {0};
    assert(!out.failed && manifest_read(buf_str(&out), out.len, &again, NULL) == 0);
    assert(again.n == m.n);
    for (size_t i = 0; i < m.n; i++) {
        assert(snapshot_check_path(m.v[i].path, NULL) == 0);
        assert(!strcmp(again.v[i].path, m.v[i].path));
    }
    manifest_release(&again);
    manifest_release(&m);
    return 0;
}
