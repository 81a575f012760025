/* SPDX-License-Identifier: Apache-2.0 */
/* pack_list.h - the files of a directory that belong into a snapshot. For pack.c only. */
#pragma once
#include "base/err.h"
#include "base/strv.h"

/* Paths below dir (which is open as fd), of files and links, in no order. */
must_check int pack_list(const char *dir, int fd, struct strv *ret, struct err *err);
