/* SPDX-License-Identifier: Apache-2.0 */
/* opsfacts.h - what a plan stands on: facts by name ("node/w1" is "online, wanted up"), their hash,
 * and what differs between two moments. Pure. */
#pragma once
#include "base/digest/hash.h"
#include "base/field.h"
#include "base/strv.h"

/* The same facts in any order have the same hash. */
void opsfacts_hash(const struct pairs *facts, char ret[static HASH_HEX]);

/* A fact that is not what it was; NULL: there was none then, or is none now. */
struct opsfacts_change {
    char *fact, *planned, *now;
};
extern const struct field_table opsfacts_change_table;

/* By the name of the fact. Copied; opsfacts_release() frees them. */
void opsfacts_compare(const struct pairs *planned, const struct pairs *now, struct field_list *ret);
void opsfacts_release(struct field_list *changes);
/* "node/w1: online -> offline; job/x: none -> RUNNING", of the first few. Heap. */
char *opsfacts_say(const struct field_list *changes);
