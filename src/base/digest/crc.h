/* SPDX-License-Identifier: Apache-2.0 */
/* crc.h - the CRC-32 of zip, gzip and PNG. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Begin with 0; the result goes on as crc. */
uint32_t crc32_add(uint32_t crc, const void *p, size_t n);
