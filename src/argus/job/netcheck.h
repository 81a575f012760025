/* SPDX-License-Identifier: Apache-2.0 */
/* netcheck.h - a check of the network between machines: asked for, waited for, printed. */
#pragma once
#include "argus/cli/cli.h"

struct netcheck_wish { /* borrowed */
    const struct strv *nodes;
    const char *pool, *python; /* NULL = not given */
    bool anew, no_wait;
    int output;
};
/* ERR_REFUSED: a machine or a pair is not as it should be, and it is printed which; or what the
 * server refused. Ctrl-C ends the waiting alone. */
must_check int netcheck_ask(struct cli *cli, const struct netcheck_wish *w, struct err *err);
/* A line for each pair that this list has ("w1 - w2"); from: NULL, or the name of the machine whose
 * page it is. */
void netcheck_print_pairs(struct cli *cli, const json_t *pairs, const char *from);
