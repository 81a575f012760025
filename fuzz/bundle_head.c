/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_head.c - any bytes as the head of a git bundle: what is taken ends in them, and each of
 * its references is a hash and a name. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "fsroot/content/bundle_head.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bundle_head h = {0};
    struct err err = {0};
    if (bundle_head_read((const char *)data, size, &h, &err) < 0) {
        assert(*err.text && !h.refs);
        return 0;
    }
    assert(h.size <= size && h.size >= 2 && data[h.size - 1] == '\n' && data[h.size - 2] == '\n');
    for (const char *s = h.refs; *s; s = strchr(s, '\n') + 1)
        assert(strspn(s, "0123456789abcdef") >= 40 && strchr(s, '\n'));
    bundle_head_release(&h);
    return 0;
}
