/* SPDX-License-Identifier: Apache-2.0 */
/* ownsettings.h - what a person set for himself and finds again in every browser: saved views,
 * columns, language. Argus keeps them and does not read them.
 *
 * One small JSON object per user, in memory and as a row of the store. Who gets the name of a user
 * that was removed does not get his settings. */
#pragma once
#include "base/field.h"
#include "store/store.h"

struct people;
struct person;

enum {
    OWNSETTINGS_BYTES_MAX = 16 << 10, /* of all of a user, as JSON */
    OWNSETTINGS_KEYS_MAX = 64,
    OWNSETTINGS_KEY_MAX = 64, /* bytes; letters, digits, '.', '_', '-' */
};
#define OWNSETTINGS_ENTRY "own_settings"

struct ownsettings_of {
    char *settings; /* JSON object, never NULL once it is there */
    usec_t changed_at;
    usec_t user_since; /* of the person who set them */
};
extern const struct field_table ownsettings_table;

struct ownsettings;
struct ownsettings *ownsettings_new(struct store *store); /* borrowed */
void ownsettings_free(struct ownsettings *os);            /* NULL is fine */
void ownsettings_restore(struct ownsettings *os, const struct store_entry *row);

/* NULL: he has set nothing. Borrowed. */
const struct ownsettings_of *ownsettings_find(const struct ownsettings *os, const struct person *p);
/* Members of `changes`, an object, take the place of those of the same name; null takes one away.
 * ERR_BAD_SPEC: a name that is none; ERR_TOO_LARGE. Then nothing is changed. */
must_check int ownsettings_change(struct ownsettings *os,
                                  const struct person *p,
                                  const json_t *changes,
                                  usec_t now,
                                  struct err *err);
