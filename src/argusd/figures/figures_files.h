/* SPDX-License-Identifier: Apache-2.0 */
/* figures_files.h - the files of one node's figures; every call blocks and is for worker threads.
 *
 * dir is the node's own directory. A day is counted in UTC. */
#pragma once
#include "core/figure/figure_block.h"

enum figures_kind { FIGURES_SAMPLES, FIGURES_ROLLUPS };

/* Slots of a day, and the first slot of the day of this slot. */
enum { FIGURES_DAY_SLOTS = 5760 };

/* The directory of a node below `root`: its name, with what is no letter, digit, '-', '_' or a '.'
 * inside it as %XX. Yours. */
char *figures_dir(const char *root, const char *node);

/* Appends to the file of that slot's day. fresh: nobody appended since the program started, so the
 * file is first cut back to its last whole record. A file that is too large takes no more. */
must_check int figures_append(const char *dir,
                              enum figures_kind kind,
                              int64_t slot,
                              bool fresh,
                              const struct buf *record,
                              struct err *err);
/* Each record of the files of the days [from, to]; those that are damaged end their file. */
void figures_each_record(const char *dir,
                         enum figures_kind kind,
                         int64_t from,
                         int64_t to,
                         void (*each)(const struct figure_record *r, void *arg),
                         void *arg);
/* Removes what is older than it is kept for, and directories that are empty then. */
void figures_sweep(const char *root, int64_t now_slot);
