/* SPDX-License-Identifier: Apache-2.0 */
/* driverplace.c - where the driver really is; see driverplace.h. */
#include "argusd/watch/driverplace.h"

#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* From the node of the driver, and from driver_info once ray.init() was called. A node that Ray's
 * list lacks now proves nothing. */
static bool read_proof(const struct cluster *c, const struct ray_job *rj, struct proof *ret)
{
    const struct cluster_node *n = cluster_find_id(c, rj->driver_node_id);
    const char *head = cluster_head_ip(c);
    if (!n || !*head)
        return false;
    const char *ip = str_or(rj->driver_ip, n->ip);
    bool at_head = n->is_head;
    if (!strcmp(ip, head) && strcmp(n->ip, head) != 0 && !cluster_is_worker_ip(c, head))
        at_head = true;
    *ret = (struct proof){.on_worker = !at_head, .pid = rj->driver_pid, .checked_at = clock_wall()};
    text_copy(ret->driver_ip, ip);
    text_copy(ret->head_ip, head);
    text_copy(ret->node, n->name);
    text_copy(ret->node_id, n->node_id);
    return true;
}

void driverplace_check(const struct cluster *c, struct live *l, const struct ray_job *rj)
{
    const struct proof *old = job_proof(l->job);
    struct proof p;
    if ((old->checked_at && (old->pid || !rj->driver_ip)) || !read_proof(c, rj, &p))
        return;
    bool first = !old->checked_at;
    job_set_proof(l->job, &p);
    char text[400];
    const char *message = p.on_worker ? "driver_placed" : "driver_on_head";
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("node", p.node), MESSAGE_STR("ip", p.driver_ip),
                               MESSAGE_STR("head", p.head_ip)));
    jobs_save(l);
    if (first || p.pid)
        jobs_note(l, "driver_placed", message, text, clock_wall());
    if (p.on_worker)
        return;
    struct job_event e = {.kind = JOB_EV_STOP,
                          .cause = STOP_FINDING,
                          .finding = FINDING_PLATFORM,
                          .message = message,
                          .text = text};
    (void)jobs_apply(l, &e, "argusd", clock_wall());
}
