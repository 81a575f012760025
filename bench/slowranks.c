/* SPDX-License-Identifier: Apache-2.0 */
/* slowranks.c - which rank is slow, of the files that are named: what the ranks of one training
 * told, now. "RANK CAUSE FACTOR LOST", or "none RANKS". For bench/slowranks, which makes them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/training/rank.h"

int main(int argc, char **argv)
{
    struct rank_told *v = xcalloc((size_t)argc, sizeof(*v));
    struct rank_verdict got;
    char text[RANK_BYTES_MAX];
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "re");
        size_t len = f ? fread(text, 1, sizeof(text), f) : 0;
        n += f && rank_read(text, len, &v[n]);
        if (f)
            (void)fclose(f);
    }
    rank_judge(v, n, clock_wall(), &got);
    if (got.is_slow)
        (void)printf("%lld %s %.2f %.2f\n", (long long)got.rank, rank_cause_to_string(got.cause),
                     got.factor, got.lost);
    else
        (void)printf("none %zu\n", got.ranks);
    free(v);
    return 0;
}
