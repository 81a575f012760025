/* SPDX-License-Identifier: Apache-2.0 */
/* finding_start.h - mistakes of the command that a job names, by which it does not start.
 *
 * The shepherd says why it could not start a command as a message of the catalogue. Most of these
 * are the user's own: no such program, a script without its interpreter, a directory. Then neither
 * the node nor the platform is at fault. Pure. */
#pragma once
#include "core/spec/finding_class.h"

struct finding_start {
    const char *says;         /* code of the catalogue */
    enum finding_class class; /* one of two, by which a fact is chosen: see finding_judge.c */
    const char *advice;       /* code of the catalogue; that of the rule for the same in a log */
};

/* That of a message that was kept (base/message.h). NULL: it is no mistake of the command, or
 * nothing was said. */
const struct finding_start *finding_start_of(const char *kept);
