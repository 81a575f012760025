/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.h - the header of a .safetensors file: how long the file must be, and how many
 * numbers it holds. Nothing of a tensor is read. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    SAFETENSORS_LENGTH_BYTES = 8,       /* little endian, before the header */
    SAFETENSORS_HEADER_MAX = 100000000, /* the library's own ceiling */
};

struct safetensors {
    uint64_t bytes;    /* of the whole file */
    uint64_t elements; /* of all tensors together */
    uint64_t tensors;
};

/* -EINVAL when these 8 bytes cannot be the length of a header. */
must_check int safetensors_header_length(const unsigned char first[static SAFETENSORS_LENGTH_BYTES],
                                         uint64_t *ret,
                                         struct err *err);
/* header: the JSON text after them. -EINVAL when it is none. */
must_check int safetensors_read(const char *header,
                                size_t len,
                                struct safetensors *ret,
                                struct err *err);
