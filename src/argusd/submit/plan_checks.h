/* SPDX-License-Identifier: Apache-2.0 */
/* plan_checks.h - what a dry run has looked at, and whether all was well with it: what is wrong has
 * its problem beside, and what is right would be silent. Pure. */
#pragma once
#include "argusd/kit/saying.h"
#include "base/doc/problem.h"

/* One check. */
struct plan_check {
    struct said said;
    bool ok; /* false: a problem says why */
};
extern const struct field_table plan_check_table;

struct plan_checked {
    const struct problems *ps;
    bool fits;                       /* the pool, when it is empty */
    uint64_t checkpoint_bytes, free; /* 0 = not known */
};

/* In the order in which they are made; to be released. */
struct field_list plan_checks(const struct api_eyes *eyes, const struct plan_checked *seen);
void plan_checks_release(struct field_list *list);
