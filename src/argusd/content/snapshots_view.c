/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots_view.c - the words for a snapshot in replies and in events; see snapshots_view.h.
 *
 * Nothing is decided here: who may see it was asked before. */
#include "argusd/content/snapshots_view.h"

#include <stdlib.h>

static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct snapshots_page, snapshot),
     .of = &snapshot_table,
     .flags = FIELD_BORROWED},
    {.name = "common",
     .type = FIELD_BOOL,
     .offset = offsetof(struct snapshots_page, common),
     .flags = FIELD_SHOWN,
     .doc = "everybody's"},
};
const struct field_table snapshots_page_table = {.name = "Snapshot",
                                                 .rows = page_rows,
                                                 .n = array_len(page_rows),
                                                 .size = sizeof(struct snapshots_page)};

void snapshots_fill(const struct snapshot *s, struct snapshots_page *ret)
{
    *ret = (struct snapshots_page){.snapshot = *s, .common = !s->user};
}

/* The owner of a common one is who added it. */
struct access_thing snapshots_thing(const struct snapshot *s)
{
    return (struct access_thing){.kind = ACCESS_KIND_SNAPSHOT,
                                 .name = s->ref,
                                 .owner = s->user ? s->user : s->actor,
                                 .is_common = !s->user};
}

char *snapshots_object(const struct snapshot *s)
{
    return s->user ? xasprintf("user/%s/snapshot/%s", s->user, s->ref)
                   : xasprintf("snapshot/%s", s->ref);
}

void snapshots_note(struct events *events,
                    const struct snapshot *s,
                    const char *actor,
                    bool removed)
{
    _cleanup_(freep) char *object = snapshots_object(s);
    struct snapshots_page page;
    snapshots_fill(s, &page);
    _cleanup_(freep) char *text =
        field_to_text(&snapshots_page_table, &page, FIELD_SHOWN, FIELD_PAGE);
    struct access_thing thing = snapshots_thing(s);
    struct events_note n = {.thing = &thing,
                            .kind = removed ? "snapshot_removed" : "snapshot_added",
                            .actor = actor,
                            .object = object,
                            .before = removed ? text : NULL,
                            .after = removed ? NULL : text};
    events_add(events, &n, clock_wall());
}
