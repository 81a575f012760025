/* SPDX-License-Identifier: Apache-2.0 */
/* snapcall.h - snapshots on the server: add one from a directory or an archive. */
#pragma once
#include <stdint.h>

#include "argus/cli/cli.h"

struct snapcall_add {
    const char *source; /* a directory or an archive */
    const char *name;   /* name@version; of a directory also the name alone */
    bool common;
    uint64_t most_bytes; /* of a directory; 0 = as much as it is */
};
/* A directory whose content is on the server already is not sent. *ret: the snapshot. */
must_check int snapcall_add(struct cli *cli,
                            const struct snapcall_add *what,
                            json_t **ret,
                            struct err *err);
