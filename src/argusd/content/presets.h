/* SPDX-License-Identifier: Apache-2.0 */
/* presets.h - the presets there are: those that are shipped in argusd, and those of projects.
 *
 * A project's own are rows of the store, live in memory; names are unique within a project. A
 * shipped name cannot be taken. Pointers to items are borrowed until it is put or removed. */
#pragma once
#include "base/clock.h"
#include "base/digest/hash.h"
#include "base/field.h"
#include "core/job/access.h"
#include "core/preset/preset.h"
#include "store/store.h"

enum { PRESETS_OF_PROJECT_MAX = 200 };

/* Read-only to everybody but presets.c. */
struct preset_item {
    char *name;
    char *project;         /* NULL: it is shipped */
    char *text;            /* YAML, as it was given */
    char *changed_by;      /* "" of a shipped one */
    struct preset *preset; /* NULL: this version cannot read it any more */
    char hash[HASH_HEX];   /* SHA-256 of the text */
    usec_t created_at, changed_at;
};

/* What is stored, shown and listed of one. */
extern const struct field_table preset_item_table;

struct presets;

struct presets *presets_new(struct store *store);
void presets_free(struct presets *pr); /* NULL is fine */
/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define PRESETS_ENTRY "preset"
void presets_restore_entry(struct presets *pr, const struct store_entry *entry);

/* NULL if there is none. project NULL: of the shipped ones. */
const struct preset_item *presets_find(const struct presets *pr,
                                       const char *project,
                                       const char *name);
/* In no order; shipped ones too. */
const struct preset_item *presets_next(const struct presets *pr, size_t *pos);
size_t presets_count(const struct presets *pr);

/* Adds or replaces. ERR_BAD_SPEC with ps; ERR_CONFLICT: it is a shipped name; ERR_REFUSED: the
 * project has too many. *ret is borrowed. */
must_check int presets_put(struct presets *pr,
                           const char *project,
                           const char *name,
                           const char *text,
                           const char *by,
                           usec_t now,
                           const struct preset_item **ret,
                           struct problems *ps,
                           struct err *err);
void presets_remove(struct presets *pr, const struct preset_item *item);
void presets_remove_all(struct presets *pr, const char *project);

/* What access_check() is asked about, and what its events are about. Borrows from item. */
struct access_thing presets_thing(const struct preset_item *item);
/* May he do this with it? Everybody sees the shipped ones and those of project "default". */
must_check int presets_may(const struct preset_item *item,
                           const struct access_who *who,
                           enum access_action action,
                           const char *verb,
                           struct err *err);
/* What a spec of this project (NULL: default) means by ref: "project/name", or a name of its own
 * project, of "default", or a shipped one. ERR_BAD_SPEC, with the nearest name he may see. */
must_check int presets_look_up(const struct presets *pr,
                               const struct access_who *who,
                               const char *project,
                               const char *ref,
                               const struct preset_item **ret,
                               struct err *err);
