/* SPDX-License-Identifier: Apache-2.0 */
/* figures_scrape.c - asks each node of Ray's list for its page; see README.md.
 *
 * The port of a raylet's page is in Ray's detail of the node: asked once per raylet, again after a
 * while when it was not told. A node has its own moment within the 15 s, by its name. An address
 * for which only Ray's word stands is asked nothing, and neither is the port there. */
#include <stdlib.h>
#include <string.h>

#include "argusd/figures/figures_state.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

enum { PAGE_BYTES_MAX = 4 << 20, PORT_CALLS_MAX = 8 };
static const usec_t PAGE_TIMEOUT = 5 * USEC_SEC;
static const usec_t PORT_EVERY = 10 * USEC_SEC;
static const usec_t PHASE = FIGURE_EVERY / FIGURES_PHASES;

void figures_scrape_stop(struct figures_node *n)
{
    ray_call_free(n->port_call);
    wire_request_free(n->request);
    n->port_call = NULL;
    n->request = NULL;
    figures_exporter_stop(n);
}

/* ---- the list ---- */

/* The same text: the same phase; 1,000 nodes spread over the 15 s. */
static unsigned figures_phase(const char *name)
{
    return str_mark(name, SIZE_MAX) % FIGURES_PHASES;
}

/* Another raylet took the name of a node: it does not take the place of one that may be asked. */
static bool figures_has_true_one(const struct figures_node *n, bool may_ask)
{
    return n && !may_ask && figures_is_listed(n) && *n->ip;
}

static void figures_see(struct figures *fs, const struct cluster_node *k, bool may_ask)
{
    struct figures_node *n = map_find(fs->nodes, k->name);
    const char *ip = may_ask ? k->ip : "";
    if (!k->is_alive || figures_has_true_one(n, may_ask) ||
        (!n && map_count(fs->nodes) >= FIGURES_NODES_MAX))
        return;
    if (!n) {
        n = xcalloc(1, sizeof(*n));
        *n = (struct figures_node){.fs = fs,
                                   .name = xstrdup(k->name),
                                   .phase = figures_phase(k->name),
                                   .fresh = {true, true}};
        (void)map_set(fs->nodes, n->name, n); /* there was none */
    }
    n->generation = cluster_generation(fs->cluster);
    n->listed_at = figure_slot(clock_wall());
    if (str_eq(n->node_id, k->node_id) && str_eq(n->ip, ip))
        return;
    figures_scrape_stop(n);
    set_str(&n->node_id, k->node_id);
    set_str(&n->ip, ip);
    n->port = n->told_port = 0;
    n->port_at = 0;
    text_copy(n->why, may_ask ? ""
                              : "its metrics are not asked for: only Ray says that it is at this "
                                "address; register the node, or list its network in ray.networks "
                                "of argus.yaml");
}

/* Ray's list has lost it a while ago, and all that it told is in files. */
static struct figures_node *figures_find_gone(const struct figures *fs)
{
    int64_t slot = figure_slot(clock_wall());
    size_t pos = 0;
    for (struct figures_node *n; (n = map_next(fs->nodes, &pos, NULL));)
        if (!figures_is_listed(n) && !n->is_writing && slot >= n->listed_at + FIGURES_GONE)
            return n;
    return NULL;
}

static void figures_forget_gone(struct figures *fs)
{
    struct figures_node *n = figures_find_gone(fs);
    if (!n)
        return; /* one at each tick: nobody waits for it */
    figures_scrape_stop(n);
    (void)map_remove(fs->nodes, n->name); /* it is n */
    figures_node_free(n);
}

static void figures_take_list(struct figures *fs)
{
    size_t count;
    const struct cluster_node *v = cluster_nodes(fs->cluster, &count);
    for (int may_ask = 1; may_ask >= 0; may_ask--) /* those that may be asked come first */
        for (size_t i = 0; i < count; i++)
            if (cluster_may_ask(fs->cluster, &v[i]) == (may_ask == 1))
                figures_see(fs, &v[i], may_ask == 1);
    figures_forget_gone(fs);
}

bool figures_is_listed(const struct figures_node *n)
{
    return n->generation == cluster_generation(n->fs->cluster);
}

static bool figures_may_be_asked(const struct figures_node *n)
{
    return figures_is_listed(n) && *n->ip;
}

/* ---- its port ---- */

static void figures_on_port(int port, const struct err *err, void *arg)
{
    struct figures_node *n = arg;
    n->port_call = NULL;
    n->port = port > 0 ? port : 0;
    if (n->port)
        n->told_port = n->port;
    if (!n->port)
        text_printf(n->why, "ray does not say where its metrics are: %s",
                    err ? err->text : "it has no port");
}

static void figures_ask_ports(struct figures *fs)
{
    usec_t now = clock_mono();
    size_t pos = 0;
    int calls = 0;
    for (struct figures_node *n; (n = map_next(fs->nodes, &pos, NULL));) {
        calls += n->port_call != NULL;
        if (n->port || n->port_call || calls >= PORT_CALLS_MAX || !figures_may_be_asked(n) ||
            (n->port_at && now - n->port_at < PORT_EVERY))
            continue;
        n->port_at = now;
        n->port_call = ray_get_metrics_port(fs->ray, n->node_id, figures_on_port, n);
        calls++;
    }
}

/* ---- its page ---- */

static void figures_on_page(const struct wire_reply *reply, void *arg)
{
    struct figures_node *n = arg;
    struct figures *fs = n->fs;
    n->request = NULL;
    if (reply->status != 200) {
        fs->failures++;
        if (reply->status)
            text_printf(n->why, "its metrics page answers %d", reply->status);
        else
            text_printf(n->why, "%s", reply->err.text);
        log_debug("figures", "%s node=%s", n->why, n->name);
        if (!reply->status)
            n->port = 0; /* a raylet that was started again may have another */
        return;
    }
    struct figure_page *page = xcalloc(1, sizeof(*page));
    figure_page_init(page);
    figure_page_read(page, FIGURE_OF_RAY, reply->body, reply->len);
    figures_put(n, figure_slot(clock_wall()), page);
    fs->pages++;
    fs->bad_lines += page->bad;
    *n->why = 0;
    if (page->is_cut)
        text_printf(n->why, "its metrics page has more than %d series", (int)FIGURE_SERIES_MAX);
    free(page);
}

struct wire_request *figures_scrape_page(struct figures_node *n,
                                         int port,
                                         void (*done)(const struct wire_reply *reply, void *arg))
{
    _cleanup_(freep) char *at = str_with_port(n->ip, port);
    _cleanup_(freep) char *url = xasprintf("http://%s/metrics", at);
    struct wire_order order = {
        .method = "GET", .url = url, .timeout = PAGE_TIMEOUT, .max_bytes = PAGE_BYTES_MAX};
    return wire_send(n->fs->wire, &order, done, n);
}

static void figures_ask_page(struct figures_node *n)
{
    if (!figures_may_be_asked(n))
        return;
    if (n->port && !n->request)
        n->request = figures_scrape_page(n, n->port, figures_on_page);
    figures_exporter_ask(n);
}

void figures_scrape_tick(struct figures *fs)
{
    int64_t tick = (int64_t)(clock_wall() / PHASE);
    int64_t due = tick - fs->tick;
    figures_take_list(fs);
    figures_ask_ports(fs);
    if (due <= 0 && due > -FIGURES_PHASES)
        return; /* nothing is due, or the clock was set back a little */
    size_t pos = 0;
    for (struct figures_node *n; (n = map_next(fs->nodes, &pos, NULL));) {
        int64_t since = (tick - (int64_t)n->phase) % FIGURES_PHASES;
        if (since < due || due < 0 || due > FIGURES_PHASES)
            figures_ask_page(n);
    }
    fs->tick = tick;
}
