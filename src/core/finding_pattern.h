/* SPDX-License-Identifier: Apache-2.0 */
/* finding_pattern.h - what every match of a PCRE2 pattern must contain.
 *
 * A set of texts of which any matching line has at least one (in any case of letters), so that
 * lines without one need not be tried. */
#pragma once
#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"

/* ERR_BAD_SPEC if no set of texts of NEEDLE_MIN bytes or more can be read off the pattern, which
 * is taken to be a valid one. */
must_check int pattern_needles(const char *pattern, struct strv *ret, struct err *err);
