/* SPDX-License-Identifier: Apache-2.0 */
/* init.h - `argusd init`: a first configuration and a token, while argusd is not running. */
#pragma once
#include "base/err.h"

struct init_args {
    const char *config;      /* written when it is not there yet */
    const char *shared_root; /* for a new configuration; NULL: it must be there */
    const char *user, *role; /* NULL: the first admin */
};

/* Prints the token to stdout, the only time it is seen. Returns an exit status. */
int init_run(const struct init_args *args);
