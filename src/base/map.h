/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - text to pointer. Keys are copied, values are borrowed. Keys that a
 * peer chooses cannot be made to collide on purpose (SipHash, key per map). */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct map;

/* seed: 16 random bytes from the caller (core takes no randomness by itself). */
struct map *map_new(const unsigned char seed[static 16]);
void map_free(struct map *m); /* NULL is fine */
size_t map_count(const struct map *m);
void *map_find(const struct map *m, const char *key);
/* Adds or replaces; returns the value that was there, or NULL. value is not NULL. */
void *map_set(struct map *m, const char *key, void *value);
/* Removes; returns the value that was there, or NULL. */
void *map_remove(struct map *m, const char *key);
/* Walk in no order: start with *pos = 0; NULL at the end. Do not change the map meanwhile. */
void *map_next(const struct map *m, size_t *pos, const char **ret_key);
