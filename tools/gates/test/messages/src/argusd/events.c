/* SPDX-License-Identifier: Apache-2.0 */
static const struct resource thing_noun = {
    .add = {"full", "make"},
    .remove = {"thing_removed", "remove"},
};
void tell(struct events *events)
{
    struct events_note told = {.kind = "thing_told", .code = "full", .text = "{}"};
    struct events_note bare = {.kind = "thing_made", .actor = "argusd"};
    events_add(events, &told, 0);
    events_add(events, &bare, 0);
}
