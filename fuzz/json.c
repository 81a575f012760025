/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - any bytes through the JSON reader; what it accepts must survive being written
 * by our writer and read again. */
#include <assert.h>

#include "base/json.h"
#include "fuzz.h"

enum { TEXT_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    struct err err = {0};
    if (json_parse((const char *)data, size, TEXT_MAX, &root, &err) < 0) {
        assert(!root && err.code < 0 && err.text[0]);
        return 0;
    }
    _cleanup_(buf_release) struct buf out = BUF_INIT(16 * TEXT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_strn(&j, "text", (const char *)data, size);
    jout_str(&j, "id", json_get_str(root, "id", NULL));
    jout_real(&j, "n", json_get_real(root, "n", 0));
    jout_close(&j, '}');

    _cleanup_(json_unrefp) json_t *again = NULL;
    assert(json_parse(out.data, out.len, out.max, &again, &err) == 0);
    return 0;
}
