/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_limits.c - how many notebooks one user has, and how many of a user and of a project run
 * at the same time.
 *
 * One that waits for its lease, and one whose job is still being stopped, counts as one that runs:
 * both hold a place in the queue or a machine. The limits are argus.yaml's and are asked at a start
 * alone, so that a lower one stops nobody. */
#include "argusd/notebooks/notebooks_state.h"
#include "base/message.h"
#include "base/str.h"

struct notebook_counts {
    size_t of_user, of_user_running, of_project_running;
};

static struct notebook_counts notebooks_count(const struct notebooks *ns,
                                              const struct notebook *asked)
{
    struct notebook_counts n = {0};
    const struct noted *x;
    for (size_t pos = 0; (x = notebooks_next(ns, &pos));) {
        bool runs = x->n.wanted || x->n.job, is_his = str_eq(x->n.owner, asked->owner);
        n.of_user += is_his;
        n.of_user_running += runs && is_his;
        n.of_project_running += runs && str_eq(x->n.project, asked->project);
    }
    return n;
}

static bool notebooks_reach(int64_t most, size_t n)
{
    return most > 0 && n >= (size_t)most;
}

int notebooks_check_limits(const struct notebooks *ns,
                           const struct notebook *asked,
                           bool is_new,
                           struct err *err)
{
    const struct settings *s = ns->a->settings;
    const struct notebook_counts n = notebooks_count(ns, asked);
    if (is_new && n.of_user >= NOTEBOOKS_OF_USER_MAX)
        return message_refuse(err, ERR_REFUSED, "notebooks_full",
                              MESSAGE_ARGS(MESSAGE_STR("user", asked->owner),
                                           MESSAGE_NUM("most", NOTEBOOKS_OF_USER_MAX)));
    if (notebooks_reach(s->notebooks_of_user, n.of_user_running))
        return message_refuse(err, ERR_REFUSED, "notebooks_of_user",
                              MESSAGE_ARGS(MESSAGE_STR("user", asked->owner),
                                           MESSAGE_NUM("most", s->notebooks_of_user)));
    if (notebooks_reach(s->notebooks_of_project, n.of_project_running))
        return message_refuse(err, ERR_REFUSED, "notebooks_of_project",
                              MESSAGE_ARGS(MESSAGE_STR("project", str_or(asked->project, "")),
                                           MESSAGE_NUM("most", s->notebooks_of_project)));
    return 0;
}
