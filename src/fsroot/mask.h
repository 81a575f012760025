/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - hides secrets in what people read.
 *
 * Two ways at once: each occurrence of a value that is known to be secret (also
 * as JSON and the shell would quote it), and each value that stands behind a
 * secret name ("NAME: value", "NAME=value", --name value) or in a URL
 * ("://user:value@"). It may hide too much; it never changes anything else. */
#pragma once
#include "base/buf.h"
#include "base/strv.h"

#define MASK_STARS "***"

/* Zeroed memory knows no value yet. */
struct mask {
    struct strv values;
};

void mask_release(struct mask *m);
/* Hide this value wherever it stands. Copied; one of less than 4 bytes is left to its name. */
void mask_add(struct mask *m, const char *value);
/* True if a value under this name (the part after the last dot) is to be hidden. */
bool mask_is_secret(const char *name);

/* Append text with stars in place of secrets. Overflow is out->failed. */
void mask_text(const struct mask *m, const char *text, struct buf *out);
/* The value of an environment variable, masked: a heap string. */
char *mask_value(const struct mask *m, const char *name, const char *value);
/* The arguments, masked, into ret (emptied first). */
void mask_argv(const struct mask *m, const struct strv *argv, struct strv *ret);
