/* SPDX-License-Identifier: Apache-2.0 */
/* firstserver.h - a first server on this machine: argus.yaml, the token of an admin, what keeps
 * argusd running. Nothing that is there is written over. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct cli;

/* NULL and 0: not given. */
struct init_opts {
    const char *config, *shared_root, *state_dir, *listen, *ray, *token_file;
    int keeper; /* of INIT_KEEPERS */
    bool print_unit;
};

extern const char *const INIT_KEEPERS[];

must_check int firstserver_make(struct cli *cli, const struct init_opts *o, struct err *err);
