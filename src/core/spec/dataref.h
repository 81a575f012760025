/* SPDX-License-Identifier: Apache-2.0 */
/* dataref.h - how a registered data set or model is named: [owner:]name[@version][/file].
 *
 *   gsm8k                 the newest version, one's own before the common one
 *   gsm8k@2/train.parquet one file of version 2
 *   common:gsm8k          the common one; alice:gsm8k that of alice
 * Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { DATAREF_NAME_MAX = 63, DATAREF_OWNER_MAX = 31 };

struct dataref {
    char name[DATAREF_NAME_MAX + 1];
    char owner[DATAREF_OWNER_MAX + 1]; /* "" = not said */
    int64_t version;                   /* 0 = the newest */
    const char *file;                  /* borrowed from the text; NULL = not said */
};

/* [A-Za-z0-9][A-Za-z0-9_.-]{0,62}. ERR_BAD_SPEC; what: "data set". */
must_check int dataref_check_name(const char *what, const char *name, struct err *err);
/* False: the text cannot be such a name (a path, an id with two slashes …). */
bool dataref_read(const char *text, struct dataref *ret);
