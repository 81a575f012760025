/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots_view.h - a snapshot as JSON, and the event when one is added or removed. */
#pragma once
#include "argusd/content/snapshots.h"
#include "argusd/ground/events.h"
#include "base/json.h"

/* What GET /v1/snapshots has of one. */
struct snapshots_page {
    struct snapshot snapshot; /* borrowed */
    bool common;
};
extern const struct field_table snapshots_page_table;
void snapshots_fill(const struct snapshot *s, struct snapshots_page *ret);
/* What access_check() is asked about, and what its events are about. Borrows from s. */
struct access_thing snapshots_thing(const struct snapshot *s);
/* "user/alice/snapshot/x@1". Heap. */
char *snapshots_object(const struct snapshot *s);
void snapshots_note(struct events *events,
                    const struct snapshot *s,
                    const char *actor,
                    bool removed);
