/* SPDX-License-Identifier: Apache-2.0 */
/* hash_blocks.h - SHA-256 of whole blocks by the processor's own instructions, where it has them.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_BLOCK = 64 };

/* False: not on this processor, and state is as it was. */
bool hash_blocks(uint32_t state[static 8], const unsigned char *p, size_t blocks);
