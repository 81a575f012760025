/* SPDX-License-Identifier: Apache-2.0 */
/* pathsum.h - what a user's file or directory is now, as one hash: the names, sizes and times of
 * its files. Nothing of their contents is read, so that it costs a look at each name and no more.
 *
 * Whatever may be written by a run that only reads (__pycache__) is left out, and so are the times
 * of directories. Links below the place are not followed: their text counts. Blocking. */
#pragma once
#include "base/digest/hash.h"
#include "fsroot/tree/walk.h"

enum { PATHSUM_FILES_MAX = 20000, PATHSUM_DEPTH_MAX = 32 };

struct pathsum {
    bool is_there;
    bool is_cut;    /* there is more in it than is looked at: only its own time is in the hash */
    uint64_t files; /* that were looked at */
    char hash[HASH_HEX]; /* "" where nothing is there */
};

/* 0 also where nothing is there. The codes of walk_open(): what is there could not be found out. */
must_check int pathsum_take(const char *root, const struct walk_place *p, struct pathsum *ret);
