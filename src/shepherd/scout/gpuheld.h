/* SPDX-License-Identifier: Apache-2.0 */
/* gpuheld.h - which GPUs of a node an attempt holds, by their PCI addresses, so that the Xid of a
 * neighbour's GPU is not taken for its own. Pure.
 *
 * Ray deals out the GPUs, and the lease only says how many there are on each node. So the GPUs are
 * those on which processes of the attempt were seen (gpubook.h), and they are known only once as
 * many were seen as the lease has: until then, and wherever the driver counts pids in another way,
 * nothing is known. */
#pragma once
#include <stdint.h>

#include "core/figure/gpu_card.h"

/* GPUs that this text (ARGUS_LEASE, argusd/jobs/lease.h) has on the node, shares of one as parts of
 * 1. Below 0: it does not say, or is NULL. */
double gpuheld_leased(const char *lease, const char *node);
/* Their addresses, as kernel_gpu_at() has them; returns how many. Below 0: they are not all known,
 * and nothing is written. */
int gpuheld_find(const struct gpu_sample *book, double leased, uint64_t *ret, size_t room);
