/* SPDX-License-Identifier: Apache-2.0 */
/* alert_cause.c - see alert_cause.h.
 *
 * A job dies with its node, with the root on which it writes and with Ray's head. A node suspects
 * the root only where that is what ails it: away on one node alone it is that node's own incident,
 * which its jobs join; away or slow everywhere it is one of the root with all nodes in it. Quotas,
 * argusd and its receivers have no cause among these subjects. */
#include "core/alert/alert_cause.h"

#include "base/str.h"

static const struct {
    enum alert_of of, cause;
} causes[] = {
    {ALERT_OF_JOB, ALERT_OF_NODE},     {ALERT_OF_JOB, ALERT_OF_ROOT},
    {ALERT_OF_JOB, ALERT_OF_CLUSTER},  {ALERT_OF_GPU, ALERT_OF_NODE},
    {ALERT_OF_GPU, ALERT_OF_CLUSTER},  {ALERT_OF_NODE, ALERT_OF_ROOT},
    {ALERT_OF_NODE, ALERT_OF_CLUSTER}, {ALERT_OF_QUEUE, ALERT_OF_CLUSTER},
    {ALERT_OF_QUEUE, ALERT_OF_ROOT},
};

static void suspect_nodes(const struct alert_where *where, struct strv *ret)
{
    for (size_t i = 0; where->nodes && i < where->nodes->n; i++)
        strv_addf(ret, "%s/%s", alert_of_names[ALERT_OF_NODE], where->nodes->v[i]);
    if (where->node)
        strv_addf(ret, "%s/%s", alert_of_names[ALERT_OF_NODE], where->node);
}

void alert_suspects(enum alert_of of, const struct alert_where *where, struct strv *ret)
{
    for (size_t i = 0; i < array_len(causes); i++) {
        bool is_no_disk_of_it =
            of == ALERT_OF_NODE && causes[i].cause == ALERT_OF_ROOT && !where->misses_root;
        if (causes[i].of != of || is_no_disk_of_it)
            continue;
        if (causes[i].cause == ALERT_OF_NODE)
            suspect_nodes(where, ret);
        else if (causes[i].cause == ALERT_OF_ROOT)
            strv_addf(ret, "%s/" ALERT_ROOT_NAME, alert_of_names[ALERT_OF_ROOT]);
        else if (where->cluster)
            strv_addf(ret, "%s/%s", alert_of_names[ALERT_OF_CLUSTER], where->cluster);
    }
}
