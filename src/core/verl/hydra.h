/* SPDX-License-Identifier: Apache-2.0 */
/* hydra.h - one command-line override for Hydra, quoted so that verl's config
 * holds exactly the bytes that were meant.
 *
 * Two grammars lie on the way: Hydra's own (quotes, backslashes before quotes)
 * and OmegaConf's, which reads ${…} in the result. Both are escaped. What cannot
 * be said at all is refused: invalid UTF-8, and "???", OmegaConf's mark for a
 * missing value. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

/* Append the value: bare where that means the same text, else in quotes. -EINVAL with a
 * sentence for what cannot be said, -EMSGSIZE; out is unchanged then. */
must_check int hydra_quote(struct buf *out, const char *value, struct err *err);
/* The same always in quotes, and as a list: ["a","b"]. */
must_check int hydra_quote_list(struct buf *out, const struct strv *values, struct err *err);

/* Add "key=<quoted value>" to argv. key may begin with + or ++. */
must_check int hydra_add(struct strv *argv, const char *key, const char *value, struct err *err);
must_check int hydra_add_list(struct strv *argv,
                              const char *key,
                              const struct strv *values,
                              struct err *err);
