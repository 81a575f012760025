/* SPDX-License-Identifier: Apache-2.0 */
/* veil.h - hides secret values in a stream of bytes, whatever pieces it comes in.
 *
 * A value of at least VEIL_MIN bytes becomes three stars wherever it stands: as it is, as
 * JSON, the shell, Python's repr and URLs write it, and in base64 at any alignment (there up to
 * two bytes at either end may stay). Of a value of several lines each long line counts too.
 * Nothing else is changed. What could be the beginning of a value waits for the bytes
 * after it, in memory: less than the longest form of a value. */
#pragma once
#include <stddef.h>

#include "base/strv.h"

enum { VEIL_MIN = 8 };

struct veil;

/* NULL: there is nothing to hide. */
struct veil *veil_new(const struct strv *values);
void veil_free(struct veil *v); /* NULL is fine */

/* The bytes that may be shown now that p came: *ret, valid until the next call (it may be p).
 * Returns how many. */
size_t veil_pass(struct veil *v, const char *p, size_t n, const char **ret);
/* Ends the stream: gives the bytes that still wait. Half a value of VEIL_MIN bytes or more
 * becomes stars. */
size_t veil_finish(struct veil *v, const char **ret);
/* Forgets the bytes that still wait and returns how many bytes of the input they are: a caller
 * that feeds them again later loses nothing, and meanwhile the veil can serve another stream. */
size_t veil_hand_back(struct veil *v);
