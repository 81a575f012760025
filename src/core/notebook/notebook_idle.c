/* SPDX-License-Identifier: Apache-2.0 */
/* notebook_idle.c - see notebook_idle.h. The notice is a quarter of the limit, ten minutes at most.
 */
#include "core/notebook/notebook_idle.h"

static const usec_t NOTICE_MOST = 10 * USEC_MIN;

usec_t notebook_idle_notice(usec_t limit)
{
    usec_t quarter = limit / 4;
    return quarter < NOTICE_MOST ? quarter : NOTICE_MOST;
}

enum notebook_idle notebook_idle_judge(const struct notebook_use *u, usec_t *ret_left)
{
    usec_t notice = notebook_idle_notice(u->limit);
    usec_t left = u->quiet < u->limit ? u->limit - u->quiet : 0;
    usec_t owed = u->warned && u->warned < notice ? notice - u->warned : 0;
    if (left < u->kept)
        left = u->kept;
    *ret_left = 0;
    if (!u->limit)
        return NOTEBOOK_IN_USE;
    if (left > notice) {
        *ret_left = left;
        return NOTEBOOK_IN_USE;
    }
    if (!u->warned)
        owed = notice; /* the notice begins now, however late it is */
    *ret_left = left > owed ? left : owed;
    return *ret_left ? NOTEBOOK_WARNED : NOTEBOOK_OVERDUE;
}
