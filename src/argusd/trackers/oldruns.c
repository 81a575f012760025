/* SPDX-License-Identifier: Apache-2.0 */
/* oldruns.c - see oldruns.h. The largest share is sought that leaves enough of them out when each
 * user keeps as many: one sort, and a few walks over the users. */
#include "argusd/trackers/oldruns.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static int oldruns_compare(const void *a, const void *b)
{
    const struct oldrun *x = a, *y = b;
    int r = strcmp(x->user, y->user);
    return r ? r : x->ended_at < y->ended_at ? -1 : x->ended_at > y->ended_at;
}

/* The end of the runs of v[at]'s user. */
static size_t oldruns_end(const struct oldrun *v, size_t n, size_t at)
{
    size_t end = at;
    while (end < n && str_eq(v[end].user, v[at].user))
        end++;
    return end;
}

/* So many are beyond this share. */
static size_t oldruns_beyond(const struct oldrun *v, size_t n, size_t share)
{
    size_t sum = 0;
    for (size_t at = 0, end; at < n; at = end) {
        end = oldruns_end(v, n, at);
        sum += end - at > share ? end - at - share : 0;
    }
    return sum;
}

size_t oldruns_choose(struct oldrun *v, size_t n, size_t excess)
{
    size_t low = 0, high = n, kept = 0, gone = 0; /* what a share of low leaves out is enough */
    if (!n || !excess)
        return 0;
    xsort(v, n, sizeof(*v), oldruns_compare);
    while (low + 1 < high) {
        size_t mid = low + (high - low) / 2;
        if (oldruns_beyond(v, n, mid) >= excess)
            low = mid;
        else
            high = mid;
    }
    struct oldrun *out = xcalloc(n, sizeof(*out));
    size_t most = oldruns_beyond(v, n, low);
    for (size_t at = 0, end; at < n; at = end) {
        end = oldruns_end(v, n, at);
        size_t go = end - at > low ? end - at - low : 0;
        memcpy(out + gone, v + at, go * sizeof(*v));
        memcpy(out + most + kept, v + at + go, (end - at - go) * sizeof(*v));
        gone += go;
        kept += end - at - go;
    }
    memcpy(v, out, n * sizeof(*v));
    free(out);
    return gone;
}
