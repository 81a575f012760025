/* SPDX-License-Identifier: Apache-2.0 */
/* unsaved.c - see unsaved.h. The sums of each attempt stand in the metrics as they are kept:
 * nothing is read from the shared root, and nothing is remembered here. */
#include "argusd/jobs/unsaved.h"

#include <stdlib.h>

#include "argusd/jobs/record.h"

/* Below 0: it has told of no step. */
static double unsaved_steps(const struct live *l, const struct attempt *newest)
{
    struct goodput_sums *sums = xcalloc(1, sizeof(*sums));
    double seconds = -1;
    (void)record_steps(l->extra.metrics, sums);
    for (size_t i = 0; i < sums->n; i++)
        if (sums->v[i].k == newest->k)
            seconds = sums->v[i].unsaved_s;
    free(sums);
    return seconds;
}

double live_unsaved(const struct live *l, usec_t now)
{
    const struct attempt *newest = job_attempt(l->job);
    if (!newest)
        return 0;
    double seconds = unsaved_steps(l, newest);
    if (seconds >= 0)
        return seconds;
    usec_t end = newest->ended_at ? newest->ended_at : now;
    return newest->started_at && newest->started_at < end ? (double)(end - newest->started_at) / 1e6
                                                          : 0;
}
