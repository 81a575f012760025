/* SPDX-License-Identifier: Apache-2.0 */
/* figure.h - the figures of a machine and of its GPUs: their words, units and steps. Pure.
 *
 * One table: whoever reads pages, keeps samples, answers requests or alerts uses these rows. A
 * value is kept as a whole number of its figure's steps: finer differences are noise and cost
 * bytes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* X(enumerator, word, step, per GPU): the word carries the unit; ratios are 0 to 1. */
#define FIGURE_TABLE(X)                                                                            \
    X(CPU_UTIL, "cpu_util_ratio", 0.001, false)                                                    \
    X(CPU_COUNT, "cpu_count", 1, false)                                                            \
    X(MEM_USED, "mem_used_bytes", 1048576, false)                                                  \
    X(MEM_TOTAL, "mem_total_bytes", 1048576, false)                                                \
    X(DISK_USED, "disk_used_bytes", 1048576, false)                                                \
    X(DISK_FREE, "disk_free_bytes", 1048576, false)                                                \
    X(DISK_READ, "disk_read_bytes_per_second", 65536, false)                                       \
    X(DISK_WRITE, "disk_write_bytes_per_second", 65536, false)                                     \
    X(NET_SENT, "net_sent_bytes_per_second", 65536, false)                                         \
    X(NET_RECEIVED, "net_received_bytes_per_second", 65536, false)                                 \
    X(OBJECTS_USED, "object_store_used_bytes", 1048576, false)                                     \
    X(OBJECTS_FREE, "object_store_free_bytes", 1048576, false)                                     \
    X(RDMA_SENT, "net_rdma_sent_bytes_per_second", 65536, false)                                   \
    X(RDMA_RECEIVED, "net_rdma_received_bytes_per_second", 65536, false)                           \
    X(GPU_UTIL, "gpu_util_ratio", 0.01, true)                                                      \
    X(GPU_MEM_USED, "gpu_mem_used_bytes", 1048576, true)                                           \
    X(GPU_MEM_TOTAL, "gpu_mem_total_bytes", 1048576, true)                                         \
    X(GPU_POWER, "gpu_power_watts", 1, true)                                                       \
    X(GPU_TEMPERATURE, "gpu_temperature_celsius", 1, true)                                         \
    X(GPU_XID, "gpu_xid", 1, true)                                                                 \
    X(GPU_ECC, "gpu_ecc_uncorrected", 1, true)

#define X(name, word, step, gpu) FIGURE_##name,
enum figure { FIGURE_TABLE(X) FIGURE_END };
#undef X

enum {
    FIGURE_NODE_FIGURES = FIGURE_GPU_UTIL,  /* those before it are the node's */
    FIGURE_PAGE_FIGURES = FIGURE_RDMA_SENT, /* and of these, those of Ray's page; others: rdma.h */
    FIGURE_GPU_FIGURES = FIGURE_END - FIGURE_GPU_UTIL,
    FIGURE_GPUS_MAX = 64,      /* of one node; a higher index is not read */
    FIGURE_UUID_MAX = 64,      /* with its end */
    FIGURE_SERIES_MAX = 50000, /* of one page; those beyond are not read */
};

/* "gpu_util_ratio". Borrowed. */
const char *figure_to_string(enum figure f);
/* FIGURE_END: there is none of this name. */
enum figure figure_from_string(const char *word);
bool figure_is_of_gpu(enum figure f);

/* Whether a program that goes astray causes this Xid of NVIDIA's driver: of any other the GPU, its
 * driver or its links are to blame. */
bool figure_xid_is_of_program(double xid);

/* A value as steps. FIGURE_NONE stands for "not told". Values beyond +-2^52 steps, and what is no
 * number, are none. */
#define FIGURE_NONE INT64_MIN
int64_t figure_to_steps(enum figure f, double value);
double figure_from_steps(enum figure f, int64_t steps); /* NaN for none */

/* Samples are taken on one grid for all: sample number n covers FIGURE_EVERY from n * FIGURE_EVERY
 * of the wall clock on. A rollup covers FIGURE_ROLL samples. */
#define FIGURE_EVERY (15 * USEC_SEC)
enum { FIGURE_ROLL = 20 };
static inline int64_t figure_slot(usec_t wall)
{
    return (int64_t)(wall / FIGURE_EVERY);
}

/* What one page of one node says. Steps; FIGURE_NONE where it says nothing. */
struct figure_gpu {
    bool is_there;
    char uuid[FIGURE_UUID_MAX]; /* "": not told (Ray before 2.60) */
    int64_t v[FIGURE_GPU_FIGURES];
};
struct figure_page {
    int64_t v[FIGURE_NODE_FIGURES];
    struct figure_gpu gpus[FIGURE_GPUS_MAX];
    int n_gpus;          /* highest index that is there, and one */
    unsigned bad, lines; /* lines that could not be read, of all that are no comment */
    bool is_cut;         /* it had more than FIGURE_SERIES_MAX */
};

/* Whose page it is. */
enum figure_source { FIGURE_OF_RAY, FIGURE_OF_DCGM, FIGURE_OF_NVIDIA };

/* Empty: none is told. */
void figure_page_init(struct figure_page *p);
/* Adds what a page in Prometheus' text form says; what it does not say stays. text needs no end.
 * A later sample of one figure replaces an earlier one. A GPU that is named by its UUID alone
 * (FIGURE_OF_NVIDIA) is the one that has this UUID in p, else the one of the index that the page
 * gives it; without either it is not read. */
void figure_page_read(struct figure_page *p, enum figure_source source, const char *text, size_t n);
