/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - 'argus events --verify': has anybody changed what happened? */
#pragma once
#include "argus/cli.h"

/* expect: a hash noted before, NULL = none. Prints what was found; returns 0 when all is as it
 * was written, ERR_INTERNAL with the sentence (exit status 1) when not. */
must_check int verify_events(struct cli *cli, const char *expect, int output, struct err *err);
