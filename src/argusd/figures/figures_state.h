/* SPDX-License-Identifier: Apache-2.0 */
/* figures_state.h - inside of figures, for figures.c, figures_keep.c and figures_scrape.c only. */
#pragma once
#include "argusd/figures/figures.h"
#include "argusd/figures/figures_files.h"
#include "base/map.h"
#include "ray/wire.h"

enum {
    FIGURES_KEPT = 128,       /* samples in memory: 32 minutes */
    FIGURES_NODES_MAX = 4096, /* more are not asked */
    FIGURES_PHASES = 60,      /* nodes are asked evenly over the 15 s */
};

struct figures_node {
    struct figures *fs;
    char *name;
    /* Asking. */
    char *node_id, *ip; /* of the raylet that is there now */
    int port;           /* 0: not known yet */
    int told_port;      /* the last one that was told for this raylet, for Prometheus */
    unsigned phase;
    uint64_t generation; /* of the cluster's list that it was last seen in */
    struct ray_call *port_call;
    usec_t port_at; /* monotonic: when its port was last asked for */
    struct wire_request *request;
    char why[200]; /* the newest page could not be had */
    /* The samples. */
    int n_gpus;
    char uuids[FIGURE_GPUS_MAX][FIGURE_UUID_MAX];
    int64_t newest;  /* slot; 0: none yet */
    int32_t *cells;  /* [figure_columns(n_gpus)][FIGURES_KEPT], slot n at n % FIGURES_KEPT */
    int64_t kept_to; /* the first slot of the rollup that is not kept yet */
    /* Files. */
    bool is_writing;
    bool fresh[2];
    int64_t day; /* that `before` is for */
    struct figure_before before[2];
};

struct figures {
    uv_loop_t *loop;
    const struct settings *settings;
    struct cluster *cluster;
    struct ray_client *ray;
    struct wire *wire;
    uv_timer_t timer;
    char *root; /* of the files */
    struct map *nodes;
    bool closing, is_sweeping;
    int64_t tick;  /* of the wall clock, in phases: done up to here */
    int64_t swept; /* the day of the last sweep */
    uint64_t pages, failures, bad_lines, bytes, write_failures;
};

/* figures.c */
void figures_put(struct figures_node *n, int64_t slot, const struct figure_page *page);
/* The sample of a column; FIGURE_UNTOLD. */
int32_t figures_cell(const struct figures_node *n, size_t column, int64_t slot);

/* figures_keep.c: begins to write the rollups that are whole; all: the one that is not, too. */
void figures_keep(struct figures_node *n, int64_t now_slot, bool all);
void figures_keep_sweep(struct figures *fs, int64_t now_slot);

/* figures_scrape.c: asks those whose time it is. */
void figures_scrape_tick(struct figures *fs);
void figures_scrape_stop(struct figures_node *n);
