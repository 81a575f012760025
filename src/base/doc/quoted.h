/* SPDX-License-Identifier: Apache-2.0 */
/* quoted.h - what a YAML scalar in quotes says.
 *
 * Takes the bytes between the quotes; undoes escapes and folds lines as YAML 1.2 does (JSON's
 * surrogate pairs too). Nothing else is known here: no document, no places. */
#pragma once
#include "base/buf.h"

/* quote is '\'' or '"'. -EINVAL: an escape that does not exist, or no character has that
 * number; -EMSGSIZE: out is full. */
must_check int quoted_decode(const char *raw, size_t n, char quote, struct buf *out);
