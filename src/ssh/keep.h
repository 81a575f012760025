/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - inside of this layer: copies of a caller's texts that outlive the call. */
#pragma once
#include "base/strv.h"

/* A copy that lives as long as `own`; NULL stays NULL. */
static inline const char *keep(struct strv *own, const char *s)
{
    if (!s)
        return NULL;
    strv_add(own, s);
    return own->v[own->n - 1];
}
