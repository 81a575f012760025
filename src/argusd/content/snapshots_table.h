/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots_table.h - the snapshots that there are, and their rows in the store: snapshots.h's
 * own. Nothing here touches the shared root. */
#pragma once
#include "argusd/content/snapshots.h"

struct snapshots_table {
    struct store *store;     /* borrowed */
    const char *shared_root; /* borrowed */
    struct snapshot **v;     /* in order; read only */
    size_t n;
};

void snapshots_table_release(struct snapshots_table *t);

/* Also one that is leaving. user NULL: a common one. NULL: there is none. Borrowed. */
struct snapshot *snapshots_table_at(const struct snapshots_table *t,
                                    const char *user,
                                    const char *ref);
/* But for this one (NULL: none) some name has this content. */
bool snapshots_table_has_content(const struct snapshots_table *t,
                                 const struct snapshot *but,
                                 const char *hash);

/* With its row; its name is not in the table yet. */
void snapshots_table_add(struct snapshots_table *t, struct snapshot *taken);
/* It has changed, and its row does. */
void snapshots_table_save(struct snapshots_table *t, const struct snapshot *s);
/* With its row; s is freed. */
void snapshots_table_remove(struct snapshots_table *t, struct snapshot *s);
/* A row at start, see snapshots_restore(). */
void snapshots_table_restore(struct snapshots_table *t, const struct store_entry *entry);
