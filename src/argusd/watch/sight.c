/* SPDX-License-Identifier: Apache-2.0 */
/* sight.c - see sight.h. A new attempt begins with nothing seen: the number of the attempt is kept
 * beside what was seen, so nobody has to say that one begins. */
#include "argusd/watch/sight.h"

const struct sight *sight_of(const struct live *l)
{
    static const struct sight nothing = {0};
    const struct sight *s = live_kept(l, LIVE_SIGHT);
    return s && s->k == l->job->n_attempts ? s : &nothing;
}

struct sight *sight_change(struct live *l)
{
    struct sight *s = live_keep(l, LIVE_SIGHT, sizeof(*s));
    if (s->k != l->job->n_attempts)
        *s = (struct sight){.k = l->job->n_attempts};
    return s;
}
