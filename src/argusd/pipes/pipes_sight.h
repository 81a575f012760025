/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_sight.h - what is seen on the shared root for one question: is what a step left still
 * there, and what are the paths now that a step names.
 *
 * The loop asks; what was not looked at yet is written down, and pipes_sight_is_open() says so.
 * Then pipes_sight_look() looks at all of it in the worker pool, as the user's share of it, and who
 * asked asks the same again, which is answered. A look that fails, and one that is too much (there
 * are ceilings for the looks and for the paths of one question), is no absence. */
#pragma once
#include "argusd/kit/api.h"
#include "fsroot/tree/pathsum.h"

struct pipes_sight;

struct pipes_sight *pipes_sight_new(const struct api *a);
/* done is not called any more. NULL is fine. */
void pipes_sight_free(struct pipes_sight *s);

/* Is it gone? path: below the shared root; no link on the way is followed. */
bool pipes_sight_misses(struct pipes_sight *s, const char *path);
/* What a user's path is now; borrowed until the next question. NULL: it is not known. place:
 * copied.
 */
const struct pathsum *pipes_sight_sum(struct pipes_sight *s, const struct walk_place *place);

/* Something was asked that was not looked at yet. */
bool pipes_sight_is_open(const struct pipes_sight *s);
/* done on the loop, never before this returns; until then nothing may be asked. */
void pipes_sight_look(struct pipes_sight *s, const char *user, void (*done)(void *arg), void *arg);
