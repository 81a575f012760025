/* SPDX-License-Identifier: Apache-2.0 */
/* netcheck.h - what a check of the network between machines has measured, and whether that is well.
 *
 * The job of a check (lib/argus_netcheck.py) measures torch's all-reduce over each pair of nodes
 * and over all of them, and writes what it found as JSON. Here that text is read, since whatever
 * runs in a job may have written it, and judged: against the baseline of each pair, or, where there
 * is none yet, against the median of the nodes. Pure. */
#pragma once
#include "base/err.h"
#include "base/field.h"
#include "core/job/job.h"

enum {
    NETCHECK_NODES_MAX = 32, /* of one check: 496 pairs, one after the other */
    NETCHECK_SIZES_MAX = 16,
    NETCHECK_BYTES_MAX = 256 << 10, /* of the text */
    NETCHECK_LEAST = 80,            /* percent of what is expected; less is too slow */
};

struct netcheck_pair {
    char *a, *b; /* in the order of their names */
    double mbps; /* Mbit/s of the bus */
    double usec; /* of a KiB */
};
struct netcheck_size { /* over all nodes at once */
    int64_t bytes;
    double algo_mbps, bus_mbps, usec;
};
struct netcheck_missed {
    char *node;
    struct strv by; /* who does not reach it */
};
struct netcheck_found {
    char *backend; /* "nccl" "gloo" */
    struct field_list pairs, sizes, missed;
};
extern const struct field_table netcheck_size_table;

void netcheck_found_release(struct netcheck_found *f);
/* ret is zeroed memory. ERR_BAD_REQUEST with a sentence: it is no result for these nodes, each pair
 * of which is there once, unless somebody was not reached. */
must_check int netcheck_found_read(const char *text,
                                   size_t n,
                                   const struct strv *nodes,
                                   struct netcheck_found *ret,
                                   struct err *err);

/* What is wrong, as a message (base/message_node.c). */
struct netcheck_trouble {
    char code[JOB_REASON_CODE_MAX];
    char text[JOB_REASON_TEXT_MAX];
};
/* The pair's baseline in Mbit/s; 0 = it has none. */
typedef double netcheck_baseline_f(const struct netcheck_pair *p, void *arg);
/* Troubles, the first ones up to max, into ret; how many there are. baseline NULL: what was
 * measured is to become the baseline, whatever it is, if only all were reached. */
size_t netcheck_judge(const struct netcheck_found *f,
                      netcheck_baseline_f *baseline,
                      void *arg,
                      struct netcheck_trouble *ret,
                      size_t max);
