/* SPDX-License-Identifier: Apache-2.0 */
/* backup_restore.h - `argusd restore`: the store and the keys of a backup in the place of those
 * that are there. */
#pragma once
#include "argusd/ground/settings.h"

struct restore_args {
    const char *from; /* the name of a backup; NULL: the newest that opens */
    const char *key;  /* a file with the key; NULL: backup.key in state_dir */
    bool list;        /* only say what there is */
};

/* An exit code; everything is said. */
must_check int backup_restore(const struct settings *s, const struct restore_args *a);
