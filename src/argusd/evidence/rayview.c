/* SPDX-License-Identifier: Apache-2.0 */
/* rayview.c - the two texts of a scene, from the cluster and from a job's last read-back; see
 * rayview.h. */
#include "argusd/evidence/rayview.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

enum { VIEW_MAX = 1 << 20 };

static void rayview_put_node(const struct cluster *c, const char *name, struct jout *j)
{
    const struct cluster_node *n = cluster_find_name(c, name);
    jout_open(j, NULL, '{');
    jout_str(j, "name", name);
    if (n) {
        jout_str(j, "node_id", n->node_id);
        jout_str(j, "ip", n->ip);
        jout_str(j, "pool", n->pool);
        jout_bool(j, "is_alive", n->is_alive);
        jout_time(j, "since", n->since);
        jout_real(j, "gpus", n->gpus);
        jout_real(j, "gpus_used", n->gpus_used);
        jout_real(j, "cpus", n->cpus);
        jout_real(j, "cpus_used", n->cpus_used);
        jout_str(j, "message", n->message);
    } else {
        jout_null(j, "is_alive");
    }
    jout_close(j, '}');
}

static void rayview_begin(struct jout *j)
{
    jout_open(j, NULL, '{');
    jout_int(j, "version", 1);
    jout_time(j, "at", clock_wall());
}

static char *rayview_end(struct jout *j, struct buf *out)
{
    jout_close(j, '}');
    return out->failed ? NULL : buf_take(out);
}

char *rayview_nodes(const struct cluster *c, const struct job *j)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(VIEW_MAX);
    struct jout o = jout_begin(&out);
    rayview_begin(&o);
    jout_bool(&o, "ray_answers", cluster_is_up(c));
    jout_str(&o, "ray_version", cluster_ray_version(c));
    jout_str(&o, "session", cluster_session(c));
    jout_str(&o, "head_ip", cluster_head_ip(c));
    jout_open(&o, "nodes", '[');
    for (size_t i = 0; i < j->gang.n; i++)
        rayview_put_node(c, j->gang.v[i].name, &o);
    jout_close(&o, ']');
    return rayview_end(&o, &out);
}

char *rayview_actors(const struct record_extra *extra)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(VIEW_MAX);
    struct jout o = jout_begin(&out);
    rayview_begin(&o);
    if (extra->placement)
        jout_raw(&o, "placement", extra->placement);
    else
        jout_null(&o, "placement");
    return rayview_end(&o, &out);
}
