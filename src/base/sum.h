/* SPDX-License-Identifier: Apache-2.0 */
/* sum.h - sums that stay at the largest number where they would overflow. None of their operands is
 * negative. */
#pragma once
#include <stdint.h>

static inline void sum_add(int64_t *sum, int64_t amount)
{
    if (__builtin_add_overflow(*sum, amount, sum))
        *sum = INT64_MAX;
}

static inline int64_t sum_times(int64_t a, int64_t b)
{
    int64_t ret;
    return __builtin_mul_overflow(a, b, &ret) ? INT64_MAX : ret;
}
