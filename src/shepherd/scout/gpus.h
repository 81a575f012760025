/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - the GPUs of a scout's node: argus-gpus as a child, and attempts/<k>/gpus/<node>.json,
 * the book of what they did (gpubook.h).
 *
 * Where there is no such program, no driver or no GPU, there is no book, and nothing else differs.
 * A child that hangs or dies is started again after a minute; nothing here waits for it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "shepherd/host/kin.h"
#include "shepherd/host/peek.h"

struct gpus;

/* attempt: its directory; kin, peek: borrowed. Never NULL. */
struct gpus *gpus_new(const char *attempt, const char *node, struct kin *kin, struct peek *peek);
void gpus_free(struct gpus *g); /* ends the child; the book stays */
/* Takes what has come, without waiting; starts the child where it is time. */
void gpus_turn(struct gpus *g, usec_t now);
/* Which of them the attempt holds, by all that was seen so far: as gpuheld_find(). */
int gpus_held(const struct gpus *g, uint64_t *ret, size_t room);
