/* SPDX-License-Identifier: Apache-2.0 */
/* localdir.h - a spec's working_dir that is a directory of this machine ("./code"): it becomes a
 * snapshot on the server, and the spec names that. What the server has already is not sent. */
#pragma once
#include "argus/job/submission.h"

/* Meant as a directory here: "." ".." "./…" "../…"; other paths are of the shared root. */
bool localdir_is(const char *text);

/* Nothing happens if s has none. It is relative to the directory of file; to the one where we are
 * when there is no file, or when a --set says it. ERR_USAGE: no such directory; ERR_REFUSED: it is
 * too large, or holds what no snapshot takes. */
must_check int localdir_send(struct cli *cli,
                             struct submission *s,
                             const char *file,
                             const struct strv *sets,
                             struct err *err);
