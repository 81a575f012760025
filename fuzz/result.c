/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - any bytes as the result file of an import: a job may have written them. What is taken
 * fits a row of the registry. */
#include <assert.h>

#include "argusd/content/registry.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct registry_result r = {0};
    struct err err = {0};
    if (registry_result_read((const char *)data, size, &r, &err) < 0) {
        assert(err.text[0]);
        return 0;
    }
    assert(json_is_object(r.about) && r.bytes >= 0 && r.files >= 0);
    struct registry_entry *e = xcalloc(1, sizeof(*e));
    e->about = json_incref(r.about);
    struct buf out = BUF_INIT(REGISTRY_BODY_MAX * 2);
    registry_record_write(e, &out);
    assert(!out.failed);
    buf_release(&out);
    registry_entry_free(e);
    registry_result_release(&r);
    return 0;
}
