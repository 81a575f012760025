/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - from a lease to the text of ARGUS_LEASE; see lease.h.
 *
 * All nodes of a lease are told apart in one way: the weakest that one of them can. A node
 * that is not there now is taken for one of ours, since only ours come back by name. */
#include "argusd/jobs/lease.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/jobspec.h"
#include "base/json.h"
#include "base/str.h"

enum { LEASE_TEXT_MAX = 96 << 10 }; /* one variable of an environment holds at most 128 KiB */

int lease_share(const struct jobs *js, const struct gang *gang)
{
    uint32_t taken = 0;
    const struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(js, &pos));)
        if (l->job->share >= 0 && l->job->share < SHARES && gang_meets(&l->job->gang, gang))
            taken |= 1u << l->job->share;
    return share_free(taken);
}

char *lease_node_resource(const struct cluster_node *n)
{
    return n->has_own_resource ? xasprintf("argus_node_%s", n->name) : xasprintf("node:%s", n->ip);
}

/* What all nodes of the lease have in common. */
struct common {
    enum cluster_label label;
    int shares;
};

/* A node that is gone counts as one of ours: if it comes back, it is. */
static struct common common_of(const struct cluster *c, const struct gang *gang)
{
    struct common all = {.label = CLUSTER_LABEL_NAME, .shares = SHARES};
    for (size_t i = 0; i < gang->n; i++) {
        const struct cluster_node *n = cluster_find_name(c, gang->v[i].name);
        if (n && n->label < all.label)
            all.label = n->label;
        if (n && n->shares < all.shares)
            all.shares = n->shares;
    }
    return all;
}

static void put_env(struct jout *j, const struct pairs *env)
{
    if (!env->n)
        return;
    jout_open(j, "env", '{');
    for (size_t i = 0; i < env->n; i++)
        jout_str(j, env->v[i].key, env->v[i].value);
    jout_close(j, '}');
}

static void put_nodes(struct jout *j,
                      const struct cluster *c,
                      const struct gang *gang,
                      const struct pairs *env)
{
    jout_open(j, "nodes", '[');
    for (size_t i = 0; i < gang->n; i++) {
        const struct cluster_node *n = cluster_find_name(c, gang->v[i].name);
        _cleanup_(freep) char *resource = n && !n->has_own_resource ? lease_node_resource(n) : NULL;
        jout_open(j, NULL, '{');
        jout_str(j, "name", gang->v[i].name);
        jout_str(j, "id", n ? n->node_id : "");
        if (resource)
            jout_str(j, "resource", resource);
        put_env(j, &env[i]);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static const char *label_key(enum cluster_label label)
{
    static const char *const keys[] = {[CLUSTER_LABEL_NONE] = NULL,
                                       [CLUSTER_LABEL_ID] = "ray.io/node-id",
                                       [CLUSTER_LABEL_NAME] = "argus.node"};
    return keys[label];
}

bool lease_spreads(const struct job *j, const struct settings *settings)
{
    const struct spec *spec = jobspec_of(settings, j);
    return spec && spec->spread == SPEC_SPREAD_CLUSTER;
}

char *lease_text(const struct job *j,
                 const struct cluster *c,
                 const struct settings *settings,
                 const struct pairs *env)
{
    char share[SHARE_NAME_MAX];
    struct buf out = BUF_INIT(LEASE_TEXT_MAX);
    struct jout o = jout_begin(&out);
    struct common all = common_of(c, &j->gang);
    const struct pairs *asked = &settings->entrypoint_resources;
    jout_open(&o, NULL, '{');
    jout_str(&o, "job", j->id);
    jout_int(&o, "attempt", j->n_attempts);
    jout_real(&o, "gpus", j->demand.gpus_per_node);
    jout_real(&o, "driver_gpus", j->demand.driver_gpus);
    put_nodes(&o, c, &j->gang, env);
    jout_str(&o, "label", label_key(all.label));
    jout_str(&o, "share",
             j->share >= 0 && j->share < all.shares ? share_name(j->share, share) : NULL);
    jout_str(&o, "worker", asked->n ? asked->v[0].key : NULL);
    jout_str(&o, "spread", lease_spreads(j, settings) ? "cluster" : "lease");
    jout_close(&o, '}');
    if (out.failed)
        buf_reset(&out); /* thousands of nodes: unbound, and read back */
    return buf_take(&out);
}
