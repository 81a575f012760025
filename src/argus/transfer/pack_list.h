/* SPDX-License-Identifier: Apache-2.0 */
/* pack_list.h - the files of a directory that belong into a snapshot. For pack.c only, but for
 * what it tells. */
#pragma once
#include "base/err.h"
#include "base/strv.h"

/* What is told while a tree is looked at, beside the one error at its end. */
struct pack_tell {
    void (*say)(const struct err *what, void *arg);
    void *arg;
};

/* Paths below dir (which is open as fd), of files and links, in no order. A submodule without files
 * is told: git lists it, and nobody has checked it out. */
must_check int pack_list(const char *dir,
                         int fd,
                         const struct pack_tell *tell,
                         struct strv *ret,
                         struct err *err);
