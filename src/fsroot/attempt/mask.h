/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - hides secrets in what people read.
 *
 * Two ways at once: each occurrence of a value that is known to be secret (also
 * as JSON and the shell would quote it), and each value that stands behind a
 * secret name ("NAME: value", "NAME=value", --name value) or in a URL
 * ("://user:value@"). It may hide too much; it never changes anything else. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/strv.h"

#define MASK_STARS "***"

/* Zeroed memory knows no value yet. */
struct mask {
    struct strv values; /* sorted */
};

void mask_release(struct mask *m);
/* Hide this value wherever it stands. Copied; one of less than 4 bytes is left to its name. */
void mask_add(struct mask *m, const char *value);
/* True if a value under this name (the part after the last dot) is to be hidden. */
bool mask_is_secret(const char *name);

/* Append text with stars in place of secrets. Overflow is out->failed. */
void mask_text(const struct mask *m, const char *text, struct buf *out);
/* JSON text with stars in place of known values in its strings, by value alone. */
void mask_json(const struct mask *m, const char *json, struct buf *out);
/* The same with what either mask knows: at each place the longest value of both, so that nothing is
 * left of one that begins like another's. */
void mask_json_of_two(const struct mask *m,
                      const struct mask *also,
                      const char *json,
                      struct buf *out);
/* A known value stands in the text. */
bool mask_finds(const struct mask *m, const char *text);
/* The value of an environment variable, masked: a heap string. */
char *mask_value(const struct mask *m, const char *name, const char *value);
/* Sorts an environment: what people and Ray may see, and what is secret: all of secrets, each
 * value under a secret name, each that masking would change. The mask learns the secret values.
 * PYTHONPATH and our own names (ARGUS_…) are always open: Ray's workers cannot start without them.
 * Either list may be NULL; the results are added to. */
void mask_env(struct mask *m,
              const struct pairs *env,
              const struct pairs *secrets,
              struct pairs *ret_open,
              struct pairs *ret_secret);
/* The arguments, masked, into ret (emptied first). */
void mask_argv(const struct mask *m, const struct strv *argv, struct strv *ret);
