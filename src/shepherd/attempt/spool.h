/* SPDX-License-Identifier: Apache-2.0 */
/* spool.h - bytes that wait, in order, for a slow reader: in memory, then in a file of this node.
 *
 * The file is made when memory does not suffice, 0600 and without a name, and given back
 * when it is empty. Both have a ceiling; what does not fit is refused, never blocked on.
 * It knows no lock: who shares it brings one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum { SPOOL_MEMORY = 4 << 20 };

struct spool;

/* file_max: of the file in directory dir (copied); 0: memory only. */
struct spool *spool_new(size_t memory, uint64_t file_max, const char *dir);
void spool_free(struct spool *s); /* NULL is fine */

/* Room for n bytes, as far as known: the disk of the file may be full. */
bool spool_fits(const struct spool *s, uint64_t n);
/* All n bytes or, false, none. */
bool spool_add(struct spool *s, const char *p, size_t n);
/* The oldest bytes that lie together: *ret, valid until they are removed. Returns how many,
 * 0 when it is empty, or a negative errno: its file cannot be read. */
must_check int64_t spool_peek(struct spool *s, const char **ret);
void spool_remove(struct spool *s, size_t n);
/* Forget all; returns how many bytes they were. */
uint64_t spool_discard(struct spool *s);

uint64_t spool_bytes(const struct spool *s);
uint64_t spool_filed(const struct spool *s); /* of those, in the file */
/* The last reason why the file took nothing, "" if there never was one. */
const char *spool_trouble(const struct spool *s);
