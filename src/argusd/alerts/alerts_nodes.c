/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_nodes.c - facts of machines and their GPUs: those of the registry, and those that stand in
 * Ray's list alone; see alerts_facts.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts_facts.h"
#include "argusd/figures/figures.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "core/alert/alert_cause.h"

enum { ATTACHED_ROW_MAX = 1000 };
static const usec_t ATTACHED_LOST_FOR = USEC_DAY;

/* ---- machines ---- */

static void fact_node_reason(struct facts *f, const struct node_row *n)
{
    if (*n->sick)
        fact_reason(f, "unhealthy", n->sick);
    else if (*n->reason.text)
        fact_reason(f, n->reason.code, n->reason.text);
    else
        fact_reason(f, n->net_code, n->net_text);
}

static void fact_ports(const struct alerts *as, struct facts *f, const char *node)
{
    struct nodes_port open;
    enum nodes_ports_known known = nodes_open_port(as->p.nodes, node, &open);
    if (known == NODES_PORTS_UNKNOWN)
        return;
    fact_yes(f, "ray_port_open", known == NODES_PORTS_OPEN);
    if (known == NODES_PORTS_OPEN) {
        fact_number(f, "ray_port", open.port);
        fact_text(f, "ray_port_key", open.key);
        fact_text(f, "ray_port_from", str_or(open.peer, "argusd"));
    }
}

static void see_node(struct alerts *as, const struct node_row *n, usec_t now)
{
    struct facts f = {0};
    struct strv suspects = {0};
    bool was_in = n->state != NODE_PENDING;
    int slow_users;
    fact_text(&f, "state", node_state_to_string(n->state));
    fact_text(&f, "want", node_want_to_string(n->want));
    fact_yes(&f, "wanted", n->want == NODE_WANT_UP);
    fact_yes(&f, "head", n->is_head);
    if (was_in)
        fact_yes(&f, "alive", n->state != NODE_OFFLINE);
    fact_yes(&f, "unhealthy", node_is_unhealthy(n));
    fact_yes(&f, "ssh_away", n->ssh_away);
    fact_node_reason(&f, n);
    if (n->facts.at) {
        fact_number(&f, "clock_skew", fabs((double)n->facts.skew) / (double)USEC_SEC);
        fact_number(&f, "disk_free", (double)n->facts.disk_free_bytes);
        fact_number(&f, "shm_free", (double)n->facts.shm_free_bytes);
    }
    if (n->facts.root_write)
        fact_number(&f, "root_write_time", (double)n->facts.root_write / (double)USEC_SEC);
    fact_ports(as, &f, n->spec.name);
    fact_number(&f, "slow_jobs", node_slow_count(n->slow, now, &slow_users));
    fact_number(&f, "slow_users", slow_users);
    struct alert_where where = {.cluster = as->p.settings->cluster,
                                .misses_root = node_misses_root(n)};
    alert_suspects(ALERT_OF_NODE, &where, &suspects);
    struct alert_subject s = {.of = ALERT_OF_NODE,
                              .name = n->spec.name,
                              .suspects = &suspects,
                              .gpus = (double)n->spec.gpu_count};
    alerts_see(as, &s, &f, now);
    strv_release(&suspects);
}

/* ---- nodes of Ray's list alone, which nobody registered ---- */

void alerts_seen_free(struct alerts *as)
{
    char *id;
    for (size_t pos = 0; (id = map_next(as->seen_alive, &pos, NULL));)
        free(id);
    map_free(as->seen_alive);
}

static void keep_alive(struct alerts *as, const char *name, const char *node_id)
{
    free(map_set(as->seen_alive, name, xstrdup(node_id)));
}

bool alerts_restore_node(struct alerts *as, const struct store_entry *row)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (json_parse(row->body, strlen(row->body), ATTACHED_ROW_MAX, &o, NULL) < 0)
        return false;
    keep_alive(as, row->name, json_get_str(o, "node_id", ""));
    return true;
}

static void note_alive(struct alerts *as, const struct cluster_node *k, usec_t now)
{
    if (str_eq(map_find(as->seen_alive, k->name), k->node_id))
        return;
    struct buf body = BUF_INIT(ATTACHED_ROW_MAX);
    struct jout j = jout_begin(&body);
    jout_open(&j, NULL, '{');
    jout_str(&j, "node_id", k->node_id);
    jout_close(&j, '}');
    struct store_entry row = {
        .kind = ALERTS_ENTRY_NODE, .name = k->name, .body = buf_str(&body), .at = now};
    store_put_entry(as->p.store, &row);
    buf_release(&body);
    keep_alive(as, k->name, k->node_id);
}

/* One that was dead already when argusd first saw Ray is no news; Ray lists it until its head
 * starts anew. One that died is told for a day: whoever took it away for good has nowhere to say
 * so. */
static bool attached_is_told(struct alerts *as, const struct cluster_node *k, usec_t now)
{
    if (k->is_alive) {
        note_alive(as, k, now);
        return true;
    }
    if (!str_eq(map_find(as->seen_alive, k->name), k->node_id))
        return false;
    if (now < k->since + ATTACHED_LOST_FOR)
        return true;
    store_remove_entry(as->p.store, ALERTS_ENTRY_NODE, k->name);
    free(map_remove(as->seen_alive, k->name));
    return false;
}

static void see_attached(struct alerts *as, const struct cluster_node *k, usec_t now)
{
    struct facts f = {0};
    struct strv suspects = {0};
    if (!attached_is_told(as, k, now))
        return;
    fact_text(&f, "state", k->is_alive ? "online" : "offline");
    fact_yes(&f, "wanted", true);
    fact_yes(&f, "head", k->is_head);
    fact_yes(&f, "alive", k->is_alive);
    if (k->message && *k->message)
        fact_text(&f, "reason", k->message);
    else
        fact_message(&f, "reason", "ray_dead", "{}");
    struct alert_where where = {.cluster = as->p.settings->cluster};
    alert_suspects(ALERT_OF_NODE, &where, &suspects);
    struct alert_subject s = {
        .of = ALERT_OF_NODE, .name = k->name, .suspects = &suspects, .gpus = k->gpus};
    alerts_see(as, &s, &f, now);
    strv_release(&suspects);
}

/* A name that is there again stands twice in Ray's list: the living one counts. */
static bool has_successor(const struct cluster_node *v, size_t n, const struct cluster_node *k)
{
    bool found = false;
    for (size_t i = 0; i < n && !k->is_alive; i++)
        found =
            found || (&v[i] != k && !strcmp(v[i].name, k->name) && (v[i].is_alive || &v[i] > k));
    return found;
}

void alerts_see_nodes(struct alerts *as, usec_t now)
{
    const struct node_row *row;
    size_t n;
    const struct cluster_node *v = cluster_nodes(as->p.cluster, &n);
    for (size_t pos = 0; (row = nodes_next(as->p.nodes, &pos));)
        see_node(as, row, now);
    for (size_t i = 0; i < n; i++)
        if (!nodes_is_registered(as->p.nodes, v[i].name) && !nodes_is_former(as->p.nodes, &v[i]) &&
            !v[i].is_head && !has_successor(v, n, &v[i]))
            see_attached(as, &v[i], now);
    if (cluster_generation(as->p.cluster) > 0)
        alert_table_round(as->table, ALERT_OF_NODE, now);
}

/* ---- GPUs ---- */

static void fact_figure(const struct alerts *as,
                        struct facts *f,
                        const char *name,
                        const char *node,
                        enum figure what,
                        int gpu)
{
    double v = figures_now(as->p.figures, node, what, gpu);
    if (!isnan(v))
        fact_number(f, name, v);
}

static void fact_told(struct facts *f, const char *name, double v)
{
    if (v >= 0)
        fact_number(f, name, v);
}

/* What the driver alone tells. */
static void fact_card(struct facts *f, const struct figures_card *c, int links_missing)
{
    fact_told(f, "nvlinks", c->nvlinks);
    fact_told(f, "nvlinks_missing", links_missing);
    fact_told(f, "rows_failed", c->rows_failed);
    fact_told(f, "rows_pending", c->rows_pending);
    fact_told(f, "slowdown_temperature", c->slowdown_celsius);
    if (c->throttle >= 0)
        fact_yes(f, "throttled", figures_card_is_throttled(c));
    if (c->pcie_width > 0 && c->pcie_width_max > 0) {
        fact_number(f, "pcie_lanes", c->pcie_width);
        fact_number(f, "pcie_lanes_missing", c->pcie_width_max - c->pcie_width);
    }
}

static void see_gpu(struct alerts *as, const char *node, int gpu, usec_t now)
{
    char name[160];
    struct facts f = {0};
    struct figures_card card;
    struct strv suspects = {0};
    const struct figures *fs = as->p.figures;
    text_printf(name, "%.128s/%d", node, gpu);
    fact_text(&f, "node", node);
    fact_text(&f, "uuid", figures_uuid(fs, node, gpu));
    fact_number(&f, "index", gpu);
    fact_figure(as, &f, "use", node, FIGURE_GPU_UTIL, gpu);
    fact_figure(as, &f, "temperature", node, FIGURE_GPU_TEMPERATURE, gpu);
    double xid = figures_now(fs, node, FIGURE_GPU_XID, gpu);
    if (!isnan(xid)) {
        fact_number(&f, "xid", xid);
        fact_yes(&f, "xid_of_program", figure_xid_is_of_program(xid));
    }
    fact_figure(as, &f, "ecc_uncorrected", node, FIGURE_GPU_ECC, gpu);
    if (figures_card(fs, node, gpu, &card))
        fact_card(&f, &card, figures_links_missing(fs, node, gpu));
    struct alert_where where = {.cluster = as->p.settings->cluster, .node = node};
    alert_suspects(ALERT_OF_GPU, &where, &suspects);
    struct alert_subject s = {.of = ALERT_OF_GPU, .name = name, .suspects = &suspects, .gpus = 1};
    alerts_see(as, &s, &f, now);
    strv_release(&suspects);
}

struct gpus_seen {
    struct alerts *as;
    usec_t now;
};

static void see_gpus_of(const char *node, void *arg)
{
    const struct gpus_seen *g = arg;
    for (int gpu = 0; gpu < figures_gpus(g->as->p.figures, node); gpu++)
        see_gpu(g->as, node, gpu, g->now);
}

void alerts_see_gpus(struct alerts *as, usec_t now)
{
    struct gpus_seen seen = {as, now};
    figures_each_node(as->p.figures, see_gpus_of, &seen);
    alert_table_round(as->table, ALERT_OF_GPU, now);
}
