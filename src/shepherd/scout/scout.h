/* SPDX-License-Identifier: Apache-2.0 */
/* scout.h - our process on each node where an attempt has processes: `argus-shepherd --scout`.
 *
 * The hook starts it with the first Python process there (on the driver's node the shepherd does,
 * before anything else). It has no owner: neither the end of that process nor of the raylet
 * ends it. It copies the workers' logs to the shared root as they grow (copier.h), answers
 * questions for stacks (stacks.h), and gathers its node's part of the scene (scene.h). It ends by
 * itself:
 *   - exit.json is there;
 *   - the raylet is gone: last logs and the scene first;
 *   - the shepherd's beat has been the same for SCOUT_SILENCE, or the attempt cannot be read for as
 *     long: the same;
 *   - SIGTERM, or the attempt's directory is gone.
 *
 * A process that only waits for it, its keeper, starts it again when it was killed, a few times;
 * where both are gone, the next worker's hook does.
 *
 * Its `place` is a directory on the node's own /tmp, one per attempt and raylet: making it is what
 * only one process can do, and in it the hook leaves an empty file "<Ray's job id>-<pid>" for each
 * of Ray's workers of the job. The scout and its keeper hold a lock on its file `lock`. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"

#define SCOUT_WORD "--scout"
#define SCOUT_SILENCE (10 * USEC_MIN)

/* "/tmp/argus-<uid>-<job>-a<k>-<host>-<pid of the raylet>"; the hook says the same. Yours. */
char *scout_place(const char *job, int attempt, int raylet);

/* argv: attempt's directory, place, pid of the raylet, node ("": the host's own name). Returns at
 * once in the caller's process; the scout is another one. */
int scout_main(int argc, char **argv);

/* Starts a scout for this attempt on this node; it ends at once if there is one already. Does
 * nothing where no raylet is above us. node: our name of this node, or NULL. True: a scout runs
 * now. */
bool scout_begin(const char *attempt, const char *job, int k, const char *node);
