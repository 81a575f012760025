/* SPDX-License-Identifier: Apache-2.0 */
/* api_snapshots.h - what is told of a snapshot, for those who add one by other ways. */
#pragma once
#include "argusd/api.h"

struct snapshot;

/* The event of it; after is as GET /v1/snapshots has it. */
void api_snapshot_note(struct api *a, const struct snapshot *s, const char *actor, bool removed);
