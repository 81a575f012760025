/* SPDX-License-Identifier: Apache-2.0 */
/* figures_state.h - inside of figures, for the files of this room alone. */
#pragma once
#include "argusd/figures/figures.h"
#include "argusd/figures/figures_cells.h"
#include "argusd/figures/figures_files.h"
#include "base/map.h"
#include "ray/wire.h"

enum {
    FIGURES_NODES_MAX = 4096, /* more are not asked */
    FIGURES_WRITING_MAX = 32, /* nodes whose files are written at once */
    FIGURES_GONE = 240,       /* slots: so long after Ray's list has lost it a node is remembered */
    FIGURES_PARTS_MAX = 256,  /* of a node; of more jobs the GPUs' own use is taken */
    FIGURES_PHASES = 60,      /* nodes are asked evenly over the 15 s */
};

/* What a better source than Ray's page told of a GPU: the driver itself, or an exporter. */
struct figures_best {
    int64_t slot;      /* 0: nothing */
    int64_t by_driver; /* the slot of the driver's own newest word; 0: none */
    uint32_t figures;  /* bit n: figure FIGURE_GPU_UTIL + n */
    struct figures_card card;
};

/* The exporter of a node. DCGM's page names the newest error of the driver for ever: only one that
 * came while it was watched is told. */
struct figures_exporter {
    enum figure_source source;
    int port; /* 0: there is none */
    struct wire_request *request;
    char why[200];
    struct {
        bool is_known, has_changed;
        int64_t was;
    } xid[FIGURE_GPUS_MAX];
};

/* The part of one GPU's use that is one job's. */
struct figures_part {
    char *job;
    int gpu;
    int64_t newest;                  /* slot */
    unsigned char use[FIGURES_LONG]; /* percent, by slot; figures_parts.c */
};

struct figures_node {
    struct figures *fs;
    char *name;
    /* Asking. */
    char *node_id; /* of the raylet that is there now */
    char *ip;      /* of it, "": nobody may ask there, see cluster_may_ask() */
    int port;      /* 0: not known yet */
    int told_port; /* the last one that was told for this raylet, for Prometheus */
    unsigned phase;
    uint64_t generation; /* of the cluster's list that it was last seen in */
    int64_t listed_at;   /* the slot then */
    struct ray_call *port_call;
    usec_t port_at; /* monotonic: when its port was last asked for */
    struct wire_request *request;
    char why[200];                     /* the newest page could not be had */
    struct figures_exporter *exporter; /* NULL: there never was one */
    /* The samples. */
    int n_gpus;
    char (*uuids)[FIGURE_UUID_MAX]; /* [n_gpus] */
    struct figures_best *best;      /* [n_best]; NULL: there is no better source */
    int n_best;
    struct figures_part *parts; /* [n_parts] of jobs that share GPUs */
    size_t n_parts;
    int64_t newest; /* slot; 0: none yet, and then there are no cells */
    struct figures_cells cells;
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
    int writing;   /* nodes whose files are written now */
    int64_t tick;  /* of the wall clock, in phases: done up to here */
    int64_t swept; /* the day of the last sweep */
    uint64_t pages, failures, bad_lines, bytes, write_failures;
};

/* figures.c */
void figures_node_free(struct figures_node *n);
void figures_put(struct figures_node *n, int64_t slot, const struct figure_page *page);
/* figures_cards.c: the same of a better source, which prevails over figures_put() while it is
 * fresh. */
void figures_put_best(struct figures_node *n, int64_t slot, const struct figure_page *page);
/* The driver itself tells of this GPU: no exporter has to. */
bool figures_has_driver(const struct figures_node *n, int gpu, int64_t slot);
/* Is this figure of the GPU not Ray's to tell at this slot? */
bool figures_has_better(const struct figures_node *n, int gpu, enum figure f, int64_t slot);
/* Room for that many GPUs, and for this slot. */
void figures_make_room(struct figures_node *n, int n_gpus, int64_t slot);
void figures_set(struct figures_node *n, size_t column, int64_t slot, int64_t steps);
/* The sample of a column; FIGURE_UNTOLD. */
int32_t figures_cell(const struct figures_node *n, size_t column, int64_t slot);

/* figures_parts.c: the sample of the job's own part, as figures_use() has it; FIGURE_UNTOLD. */
int32_t figures_part_cell(const struct figures_node *n, const char *job, int gpu, int64_t slot);
/* Forgets those of which no window that ends at this slot asks any more. */
void figures_parts_sweep(struct figures_node *n, int64_t slot);
void figures_parts_free(struct figures_node *n);

/* figures_keep.c: begins to write the rollups that are whole; all: the one that is not, too. */
void figures_keep(struct figures_node *n, int64_t now_slot, bool all);
void figures_keep_sweep(struct figures *fs, int64_t now_slot);

/* figures_exporter.c: asks its page. */
void figures_exporter_ask(struct figures_node *n);
void figures_exporter_stop(struct figures_node *n);

/* figures_scrape.c: asks those whose time it is. */
/* The page of this node on this port. */
struct wire_request *figures_scrape_page(struct figures_node *n,
                                         int port,
                                         void (*done)(const struct wire_reply *reply, void *arg));
/* It stands in Ray's newest list, as alive. */
bool figures_is_listed(const struct figures_node *n);
void figures_scrape_tick(struct figures *fs);
void figures_scrape_stop(struct figures_node *n);
