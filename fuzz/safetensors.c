/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a model's shard that a user downloaded. */
#include <assert.h>

#include "core/check/safetensors.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors st;
    struct err err = {0};
    uint64_t n;
    if (size < SAFETENSORS_LENGTH_BYTES)
        return 0;
    if (safetensors_header_length(data, &n, NULL) < 0)
        n = size;
    size_t left = size - SAFETENSORS_LENGTH_BYTES;
    int r = safetensors_read((const char *)data + SAFETENSORS_LENGTH_BYTES, n < left ? n : left,
                             &st, &err);
    assert((r < 0) == (err.code < 0));
    assert(r < 0 || st.bytes >= SAFETENSORS_LENGTH_BYTES);
    return 0;
}
