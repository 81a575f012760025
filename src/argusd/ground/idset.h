/* SPDX-License-Identifier: Apache-2.0 */
/* idset.h - which job ids were ever used: 8 bytes each, for a million of them.
 *
 * Keeps SipHash values, not texts: "has" may be wrong once in 10^13 and then says
 * yes. Who refuses an id because of it asks the store first. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct idset;

struct idset *idset_new(const unsigned char seed[static 16]);
void idset_free(struct idset *s);
void idset_add(struct idset *s, const char *id);
bool idset_has(const struct idset *s, const char *id);
size_t idset_count(const struct idset *s);
