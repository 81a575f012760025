/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_head.h - the text in front of a git bundle's pack: which references it has, and whether
 * it is whole. Outside bytes. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { BUNDLE_HEAD_MAX = 1 << 20 };

struct bundle_head {
    size_t size;    /* the pack begins here */
    bool is_sha256; /* else SHA-1 */
    char *refs;     /* lines "<hash> <name>\n" */
};
void bundle_head_release(struct bundle_head *h);

/* text: the first bytes of the file, at most BUNDLE_HEAD_MAX of them. ERR_REFUSED with a sentence:
 * it is damaged, or needs commits that are not in it. */
must_check int bundle_head_read(const char *text,
                                size_t n,
                                struct bundle_head *ret,
                                struct err *err);
