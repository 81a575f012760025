/* SPDX-License-Identifier: Apache-2.0 */
/* restart.c - reads a spec's `restart` and counts what came of it. The list of bad nodes has a
 * ceiling: a job with a thousand restarts does not grow its row with each. See restart.h. */
#include "core/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { BAD_NODES_MAX = 1024 };

/* What is taken where the spec names no classes: failures that are not the job's own. */
static const char DEFAULT_ON[] = "node_lost,nccl_network,nccl_timeout,gpu_hardware,infra";

static char *join(const struct strv *list)
{
    struct buf out = BUF_INIT(64 << 10);
    for (size_t i = 0; i < list->n; i++)
        (void)buf_addf(&out, "%s%s", i ? "," : "", list->v[i]); /* words of a short table */
    return buf_take(&out);
}

void restart_from_spec(const struct spec *spec, struct restart *ret)
{
    bool trains = workload_trains((enum workload)spec->workload);
    bool goes_on = !trains || (spec->resume_mode != SPEC_RESUME_NEVER && !spec->checkpoint_none);
    *ret = (struct restart){.max = (int)spec->restart_max,
                            .backoff = spec->restart_backoff,
                            .avoid = spec->restart_avoid_failed_nodes,
                            .preemptible = spec->restart_max > 0 && goes_on};
    if (ret->max)
        ret->on = spec->restart_on.n ? join(&spec->restart_on) : xstrdup(DEFAULT_ON);
}

void restart_release(struct restart *r)
{
    free(r->on);
    free(r->bad_nodes);
    *r = (struct restart){0};
}

bool restart_is_due(const struct restart *r, const char *finding, bool head_lost)
{
    bool infra = head_lost || str_eq(finding, "platform");
    if (r->failures >= r->max)
        return false;
    return (finding && str_list_has(r->on, finding)) || (infra && str_list_has(r->on, "infra"));
}

int restart_code_of(const char *word)
{
    static const char PREFIX[] = "exit:";
    int64_t code = 0;
    if (!str_starts(word, PREFIX) || str_to_int(word + strlen(PREFIX), 1, 255, &code, NULL) < 0)
        return 0;
    return (int)code;
}

bool restart_is_due_by_code(const struct restart *r, int code)
{
    char word[16];
    (void)snprintf(word, sizeof(word), "exit:%d", code); /* fits */
    return code > 0 && r->failures < r->max && str_list_has(r->on, word);
}

bool restart_blames_node(const char *finding)
{
    static const char NODES[] = "node_lost,gpu_hardware,nccl_network,nccl_timeout,cuda_error,"
                                "driver_mismatch,host_oom,shm_exhausted,disk_full,actor_died,"
                                "platform,infra,unknown";
    return finding && str_list_has(NODES, finding);
}

void restart_note_failure(struct restart *r, const char *node)
{
    r->failures++;
    r->pause = r->backoff;
    if (!r->avoid || !node || !*node || str_list_has(r->bad_nodes, node))
        return;
    const char *old = str_or(r->bad_nodes, "");
    if (strlen(old) + strlen(node) > BAD_NODES_MAX)
        old = ""; /* so many: begin anew */
    char *list = xasprintf("%s%s%s", node, *old ? "," : "", old);
    free(r->bad_nodes);
    r->bad_nodes = list;
}
