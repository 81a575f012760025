/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c - the head of a model's shard in safetensors; see safetensors.h. Outside bytes:
 * sums saturate instead of wrapping. */
#include "core/check/safetensors.h"

#include <errno.h>

#include "base/json.h"
#include "base/message.h"

enum { DIMENSIONS_MAX = 64 };

int safetensors_header_length(const unsigned char first[static SAFETENSORS_LENGTH_BYTES],
                              uint64_t *ret,
                              struct err *err)
{
    uint64_t n = 0;
    for (int i = SAFETENSORS_LENGTH_BYTES - 1; i >= 0; i--)
        n = n << 8 | first[i];
    if (n < 2 || n > SAFETENSORS_HEADER_MAX)
        return message_refuse(err, -EINVAL, "safetensors_head", MESSAGE_NO_ARGS);
    *ret = n;
    return 0;
}

static uint64_t safetensors_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t elements_of(const json_t *shape)
{
    uint64_t n = 1;
    size_t i;
    json_t *v;
    if (json_array_size(shape) > DIMENSIONS_MAX)
        return 0;
    json_array_foreach (shape, i, v) {
        json_int_t size = json_integer_value(v);
        if (size < 0 || __builtin_mul_overflow(n, (uint64_t)size, &n))
            return 0;
    }
    return n;
}

int safetensors_read(const char *header, size_t len, struct safetensors *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    const char *name;
    json_t *v;
    uint64_t end = 0;
    *ret = (struct safetensors){0};
    if (json_parse(header, len, SAFETENSORS_HEADER_MAX, &root, NULL) < 0 || !json_is_object(root))
        return message_refuse(err, -EINVAL, "safetensors_header", MESSAGE_NO_ARGS);
    json_object_foreach (root, name, v) {
        const json_t *offsets = json_get_array(v, "data_offsets");
        json_int_t last = json_integer_value(json_array_get(offsets, 1));
        if (json_array_size(offsets) != 2 || last < 0)
            continue; /* __metadata__ */
        if ((uint64_t)last > end)
            end = (uint64_t)last;
        ret->elements = safetensors_add(ret->elements, elements_of(json_get_array(v, "shape")));
        ret->tensors++;
    }
    ret->bytes = safetensors_add(end, SAFETENSORS_LENGTH_BYTES + (uint64_t)len);
    return 0;
}
