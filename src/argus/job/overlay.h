/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.h - values of --set laid over a spec before it is sent, and where a
 * field of the spec stands in the user's own file. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

/* Append the spec with each "a.b=value" put in, as YAML; value is YAML itself (12, [a, b],
 * "12"); "overrides.K=V" puts the one Hydra override K=V into the list. ERR_BAD_SPEC: text is no
 * mapping (send it as it is: the server says where). ERR_USAGE: a set is not of that form. */
must_check int overlay_apply(const char *text,
                             size_t len,
                             const struct strv *sets,
                             struct buf *out,
                             struct err *err);

/* Line and column of a dotted field in the text; both 0 when it is not there. */
void overlay_place(const char *text, size_t len, const char *field, int *ret_line, int *ret_column);
