/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - any bytes as what a rank tells: what is read has shares that add up, and two of it are
 * judged. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/training/rank.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rank_told two[2];
    struct rank_verdict got;
    if (!rank_read((const char *)data, size, &two[0]))
        return 0;
    assert(two[0].n >= 1 && two[0].n <= RANK_WINDOWS);
    assert(two[0].work + two[0].wait <= 1.2 && two[0].work >= 0 && two[0].wait >= 0);
    assert(memchr(two[0].node, 0, sizeof(two[0].node)));
    two[0].world = 2;
    two[0].rank = 0;
    two[1] = two[0];
    two[1].rank = 1;
    for (size_t i = 0; i < RANK_WINDOWS; i++)
        two[1].w[i].work /= 3;
    two[1].work /= 3;
    rank_judge(two, 2, two[0].at, &got);
    assert(!got.is_slow || (got.factor <= 100 && got.lost >= 0));
    return 0;
}
