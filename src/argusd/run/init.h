/* SPDX-License-Identifier: Apache-2.0 */
/* init.h - `argusd init`: a first configuration and a token, while argusd is not running. */
#pragma once
#include "base/err.h"

struct init_args {
    const char *config;      /* written when it is not there yet */
    const char *shared_root; /* for a new configuration; NULL: it must be there */
    const char *state_dir;   /* of a new one; NULL: beside the file */
    const char *listen;      /* of a new one; NULL: the port 8080 of loopback */
    const char *ray;         /* of a new one: Ray's address; NULL: on this machine */
    const char *user, *role; /* NULL: the first admin */
};

/* Prints the token to stdout, the only time it is seen. Returns an exit status. */
int init_run(const struct init_args *args);
