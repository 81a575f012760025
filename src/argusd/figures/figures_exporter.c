/* SPDX-License-Identifier: Apache-2.0 */
/* figures_exporter.c - the page of a node's exporter of GPU figures; see figures.h.
 *
 * It is asked at the node's own moment, beside Ray's page, and its figures stand in the place of
 * Ray's (figures_cards.c). Where the driver itself is heard its word counts: it knows means over
 * the 15 s, an exporter those of a moment. Whoever listens on the port may lie: what its page says
 * is told of this node's GPUs alone, and a GPU that Ray's page does not know is not made by it
 * unless Ray tells of none at all. */
#include <stdlib.h>
#include <string.h>

#include "argusd/figures/figures_state.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

void figures_exporter_stop(struct figures_node *n)
{
    if (!n->exporter)
        return;
    wire_request_free(n->exporter->request);
    n->exporter->request = NULL;
}

/* ---- its page ---- */

/* 0 until the error that stands there is another one than the first that was met. */
static void exporter_judge_xid(struct figures_exporter *x, int g, int64_t *xid)
{
    if (*xid == FIGURE_NONE)
        return;
    x->xid[g].has_changed |= x->xid[g].is_known && x->xid[g].was != *xid;
    x->xid[g].is_known = true;
    x->xid[g].was = *xid;
    if (!x->xid[g].has_changed)
        *xid = 0;
}

static void exporter_take_page(struct figures_node *n, struct figure_page *page, int had)
{
    int64_t slot = figure_slot(clock_wall());
    if (had && page->n_gpus > had)
        page->n_gpus = had;
    for (int g = 0; g < page->n_gpus; g++) {
        struct figure_gpu *gpu = &page->gpus[g];
        exporter_judge_xid(n->exporter, g, &gpu->v[FIGURE_GPU_XID - FIGURE_GPU_UTIL]);
        gpu->is_there = gpu->is_there && !figures_has_driver(n, g, slot);
    }
    figures_put_best(n, slot, page);
}

static void exporter_on_page(const struct wire_reply *reply, void *arg)
{
    struct figures_node *n = arg;
    struct figures_exporter *x = n->exporter;
    x->request = NULL;
    if (reply->status != 200) {
        n->fs->failures++;
        if (reply->status)
            text_printf(x->why, "its exporter's page answers %d", reply->status);
        else
            text_printf(x->why, "its exporter: %s", reply->err.text);
        log_debug("figures", "%s node=%s", x->why, n->name);
        return;
    }
    struct figure_page *page = xcalloc(1, sizeof(*page));
    figure_page_init(page);
    page->n_gpus = n->n_gpus;
    for (int g = 0; g < n->n_gpus; g++)
        memcpy(page->gpus[g].uuid, n->uuids[g], sizeof(n->uuids[g]));
    figure_page_read(page, x->source, reply->body, reply->len);
    *x->why = 0;
    if (page->is_cut)
        text_printf(x->why, "its exporter's page has more than %d series", (int)FIGURE_SERIES_MAX);
    n->fs->pages++;
    n->fs->bad_lines += page->bad;
    exporter_take_page(n, page, n->n_gpus);
    free(page);
}

void figures_exporter_ask(struct figures_node *n)
{
    struct figures_exporter *x = n->exporter;
    if (x && x->port && !x->request)
        x->request = figures_scrape_page(n, x->port, exporter_on_page);
}

/* ---- told by others ---- */

void figures_put_exporter(struct figures *fs, const char *node, enum figure_source source, int port)
{
    struct figures_node *n = map_find(fs->nodes, node);
    if (!n || fs->closing || (!n->exporter && !port))
        return;
    if (!n->exporter)
        n->exporter = xcalloc(1, sizeof(*n->exporter));
    struct figures_exporter *x = n->exporter;
    if (x->port == port && x->source == source)
        return;
    figures_exporter_stop(n);
    *x = (struct figures_exporter){.source = source, .port = port};
}

int figures_exporter(const struct figures *fs, const char *node, const char **ret_why)
{
    const struct figures_node *n = map_find(fs->nodes, node);
    const struct figures_exporter *x = n ? n->exporter : NULL;
    *ret_why = x ? x->why : "";
    return x ? x->port : 0;
}
