/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - what nodes and their GPUs do, now and lately: asked of every node each 15 s.
 *
 * Reading is cheap and never blocks: everything here is in memory. What was kept for longer is read
 * by figures_read(), in the worker pool. A node is known by the name it has in cluster.h, a GPU by
 * its index there, the one that leases name. Not told, or not lately, is NaN, never 0. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "core/figure/gpu_card.h"
#include "core/figure/rdma.h"
#include "core/job/gang.h"
#include "http/expo.h"

struct figures;

struct figures_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct cluster *cluster;
    struct ray_client *ray;
};

must_check int figures_new(const struct figures_parts *parts,
                           struct figures **ret,
                           struct err *err);
void figures_start(struct figures *fs);
/* No more is asked; what was not kept yet is written by the worker pool. */
void figures_close(struct figures *fs);
void figures_free(struct figures *fs); /* after the loop; NULL is fine */

/* ---- told by others ---- */

/* What a node's driver says of its GPUs (core/figure/gpu_card.h), as a look or a scout has read it:
 * for as long as it is fresh it stands in the place of Ray's page. allowed: bits of the indices
 * that are believed, since a job can write what its scout writes. */
void figures_put_cards(struct figures *fs,
                       const char *node,
                       const struct gpu_sample *sample,
                       uint64_t allowed);
/* The job's own part of the use of its GPUs on this node, as its newest book there says: it may
 * share them with other jobs. has_part: its lease is of a part of a GPU. */
void figures_put_parts(struct figures *fs,
                       const char *job,
                       const struct gang_node *node,
                       const struct gpu_sample *book,
                       bool has_part);
/* What a node's InfiniBand and RoCE ports carry, of two looks: Ray's page never tells it. */
void figures_put_rdma(struct figures *fs, const char *node, const struct rdma_rate *rate);
/* An exporter of GPU figures listens there on this port of the node: it is asked beside Ray's page,
 * whose GPU figures it replaces while it answers. port 0: there is none. */
void figures_put_exporter(struct figures *fs,
                          const char *node,
                          enum figure_source source,
                          int port);
/* Its port, 0: there is none. why: why its newest page could not be had, "" = it was; borrowed
 * until the loop goes on. */
int figures_exporter(const struct figures *fs, const char *node, const char **ret_why);
/* What the driver tells of a GPU beside its figures; a value below 0 was not told. */
struct figures_card {
    double throttle, rows_failed, rows_pending, nvlinks, slowdown_celsius, pcie_width,
        pcie_width_max;
    double nvlinks_most; /* that have been up at once since argusd began */
};
/* Is its clock held back by heat or by what protects its power, and not by a limit that was set? */
bool figures_card_is_throttled(const struct figures_card *c);
/* Links between GPUs that have fallen: it had more, or each of its neighbours (3 or more) has. -1:
 * not told. */
int figures_links_missing(const struct figures *fs, const char *node, int gpu);
/* False: the driver has not told of it within FIGURES_FRESH. */
bool figures_card(const struct figures *fs, const char *node, int gpu, struct figures_card *ret);

/* ---- in memory ---- */

/* A figure that was told within this span is one of now. */
#define FIGURES_FRESH (60 * USEC_SEC)
/* A window is at most this long. */
#define FIGURES_WINDOW_MAX (30 * USEC_MIN)

/* The newest value; gpu < 0: of the node itself. NaN: not told within FIGURES_FRESH. */
double figures_now(const struct figures *fs, const char *node, enum figure f, int gpu);

/* What the samples of a span say. */
struct figures_window {
    double mean, max, min, last; /* NaN without a sample */
    int n;                       /* samples */
    int of;                      /* so many would be there if each had been told */
};
/* At least half of it was told: enough to judge by. */
bool figures_window_is_told(const struct figures_window *w);
/* The window that ends now and began `span` ago. */
struct figures_window figures_window(const struct figures *fs,
                                     const char *node,
                                     enum figure f,
                                     int gpu,
                                     usec_t span);
/* The window of a GPU's figure over all GPUs of a lease: the mean is over GPUs and time alike,
 * `last` is the mean of the newest. `of` counts GPUs that never told, too: n < of means that not
 * all is known. */
struct figures_window figures_gang(const struct figures *fs,
                                   const struct gang *gang,
                                   enum figure f,
                                   usec_t span);
/* The job's own part of the use (FIGURE_GPU_UTIL) of one GPU, and of all GPUs of its lease: what a
 * job is judged by. Of a job that shares no GPU, and where no job there has told its part, it is
 * the GPU's use; where others have told that they work and this one has told nothing, it is untold,
 * since one that was not seen may work, too. Never more than the GPU's use. */
struct figures_window figures_use(const struct figures *fs,
                                  const char *job,
                                  const char *node,
                                  int gpu,
                                  usec_t span);
struct figures_window figures_gang_use(const struct figures *fs,
                                       const char *job,
                                       const struct gang *gang,
                                       usec_t span);
/* How many GPUs the node's last page told of; 0: none, or no page. */
int figures_gpus(const struct figures *fs, const char *node);
/* "GPU-…", "" where it was not told. Borrowed until the loop goes on. */
const char *figures_uuid(const struct figures *fs, const char *node, int gpu);
/* Calls each() with every node that was told within FIGURES_FRESH. Do not close fs meanwhile. */
void figures_each_node(const struct figures *fs,
                       void (*each)(const char *node, void *arg),
                       void *arg);
/* The port of the metrics page of its raylet; 0: Ray tells none, or it may not be asked; < 0: not
 * known yet. */
int figures_port(const struct figures *fs, const char *node);
/* Where its pages are asked for. "": nowhere, by cluster_may_ask(); NULL: not known yet. Borrowed
 * until the loop goes on. */
const char *figures_address(const struct figures *fs, const char *node);
/* Why the newest page of a node could not be had; "" = it was. Borrowed until the loop goes on. */
const char *figures_why_not(const struct figures *fs, const char *node);

/* ---- what was kept ---- */

enum { FIGURES_POINTS_MAX = 1000, FIGURES_ROWS_MAX = 512 };

/* One GPU (or the node, gpu < 0) of one node: a row of the answer. */
struct figures_row {
    char *node; /* owned */
    int gpu;
    /* Per point: NaN where nobody told. Owned; made by figures_read(). */
    float *mean, *max;
};
struct figures_read {
    enum figure figure;
    usec_t from, to; /* wall */
    usec_t step;     /* of a point: a multiple of FIGURE_EVERY */
    size_t points;
    struct figures_row *rows;
    size_t n_rows;
};

/* Points from `from` to `to`, each of `step` or what FIGURES_POINTS_MAX asks for; rows are added
 * with figures_read_add() before it is begun. done on the loop, once. */
struct figures_read *figures_read_new(enum figure f, usec_t from, usec_t to, usec_t step);
/* False: FIGURES_ROWS_MAX are there. */
bool figures_read_add(struct figures_read *r, const char *node, int gpu);
void figures_read_free(struct figures_read *r); /* NULL is fine; not while it is read */
void figures_read_start(struct figures *fs,
                        struct figures_read *r,
                        void (*done)(void *arg),
                        void *arg);

/* How the asking goes. */
void figures_put_metrics(const struct figures *fs, struct expo *e);
