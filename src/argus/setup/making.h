/* SPDX-License-Identifier: Apache-2.0 */
/* making.h - `argusd init` as a child: argus.yaml, the store and the first token of an admin. */
#pragma once
#include "base/err.h"

struct making {
    const char *argusd;                                          /* the program */
    const char *config, *shared_root, *state_dir, *listen, *ray; /* its options; ray may be NULL */
};

/* The token, yours to free(); or what argusd said. */
must_check int making_run(const struct making *m, char **ret_token, struct err *err);
