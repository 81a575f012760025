/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c - the table of figures; see figure.h. A value that is NaN, infinite or beyond 2^52 of
 * its steps is none: no peer makes arithmetic overflow. */
#include "core/figure/figure.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

static const struct {
    const char *word;
    double step;
    bool is_of_gpu;
} figures[] = {
#define X(name, word, step, gpu) {word, step, gpu},
    FIGURE_TABLE(X)
#undef X
};
static_assert(array_len(figures) == FIGURE_END, "each figure has its row");

const char *figure_to_string(enum figure f)
{
    return figures[f].word;
}

enum figure figure_from_string(const char *word)
{
    int f = 0;
    while (f < FIGURE_END && strcmp(figures[f].word, word) != 0)
        f++;
    return (enum figure)f;
}

bool figure_is_of_gpu(enum figure f)
{
    return figures[f].is_of_gpu;
}

bool figure_xid_is_of_program(double xid)
{
    static const int of_programs[] = {13, 31, 32, 38, 43, 45, 68, 69};
    for (size_t i = 0; i < array_len(of_programs); i++)
        if (xid == of_programs[i])
            return true;
    return false;
}

int64_t figure_to_steps(enum figure f, double value)
{
    double steps = value / figures[f].step;
    return isfinite(steps) && fabs(steps) < 4503599627370496.0 ? llround(steps) : FIGURE_NONE;
}

double figure_from_steps(enum figure f, int64_t steps)
{
    return steps == FIGURE_NONE ? (double)NAN : (double)steps * figures[f].step;
}
