/* SPDX-License-Identifier: Apache-2.0 */
/* specdiff.h - in what two JobSpecs differ, as their authors wrote them.
 *
 * A spec is read once into its keys, and then compared with as many others as one likes. Two
 * spellings of one value are the same ("1e-6" and 1.0e-06, a map in any order), and so are an
 * override with a plus and without. The submission_id is left out, which differs always. Pure. */
#pragma once
#include "base/buf.h"

struct speckeys;

/* NULL: the text is no mapping, or an empty one, or its keys are too long. */
struct speckeys *speckeys_new(const char *text);
void speckeys_free(struct speckeys *k); /* NULL is fine */

/* Appends a JSON array of respec.h's edits, in the order of the keys; an override is a key of its
 * own, any other list one value; values under secret names are "***". How many;
 * changes->failed tells of an overflow, where it ends. */
int speckeys_diff(const struct speckeys *old, const struct speckeys *new, struct buf *changes);
