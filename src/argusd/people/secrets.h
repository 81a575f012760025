/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.h - named values of users and projects, kept sealed, never told.
 *
 * In memory and in the store a value is sealed with the key in state_dir/secrets.key, for its
 * owner and name alone. It is opened where an attempt is written, and at submit, to see that it
 * does not stand in the spec. Specs that hold a secret are sealed with the same key. Users' names
 * and projects' names are apart: "user/alice", "project/llm". */
#pragma once
#include <stdbool.h>

#include "base/clock.h"
#include "base/digest/seal.h"
#include "base/err.h"
#include "base/field.h"
#include "base/strv.h"
#include "store/store.h"

enum { SECRETS_OF_OWNER_MAX = 200, SECRET_VALUE_MAX = 32 << 10 };

/* What may be told of one. Read-only to everybody but secrets.c. */
struct secret {
    char *key; /* "user/alice/WANDB_API_KEY" */
    bool of_project;
    char *owner, *name;
    char *sealed, *changed_by;
    uint64_t bytes;
    usec_t created_at, changed_at, last_use_at; /* 0 = never */
};

/* What is stored and shown of one. */
extern const struct field_table secret_table;

struct secrets;
struct job;

struct secrets *secrets_new(struct store *store, const char *state_dir);
void secrets_free(struct secrets *s); /* NULL is fine */
/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define SECRETS_ENTRY "secret"
void secrets_restore_entry(struct secrets *s, const struct store_entry *entry);
/* After the rows: reads the key. ERR_USAGE with its sentence: others can read the file, it is
 * missing while something is sealed, or it is not the one that sealed the rows. */
must_check int secrets_restored(struct secrets *s, bool has_sealed_specs, struct err *err);

/* Not for a name that stands in secrets.c's way: spec_check_secret_name() said yes. Makes the key
 * when it is the first. ERR_REFUSED: the owner has too many. *ret is borrowed. */
must_check int secrets_set(struct secrets *s,
                           bool of_project,
                           const char *owner,
                           const char *name,
                           const char *value,
                           const char *by,
                           usec_t now,
                           const struct secret **ret,
                           struct err *err);
void secrets_remove(struct secrets *s, const struct secret *k);
/* The owner is no more: nobody who gets his name later has them. */
void secrets_remove_all(struct secrets *s, bool of_project, const char *owner);

/* NULL if there is none. */
const struct secret *secrets_find(const struct secrets *s,
                                  bool of_project,
                                  const char *owner,
                                  const char *name);
const struct secret *secrets_next(const struct secrets *s, size_t *pos); /* in no order */

/* ---- of a job: the user's own come before those of its project ---- */

/* ERR_BAD_SPEC: there is none of this name; the sentence says how to store it. */
must_check int secrets_check(const struct secrets *s,
                             const char *user,
                             const char *project,
                             const struct strv *names,
                             struct err *err);
/* Adds all of them to ret, for an attempt: notes the use. Wipe it. */
must_check int secrets_take(struct secrets *s,
                            const char *user,
                            const char *project,
                            const struct strv *names,
                            usec_t now,
                            struct pairs *ret,
                            struct err *err);
/* The same to look for them: what is not there is left out, and no use is noted. */
void secrets_reveal(const struct secrets *s,
                    const char *user,
                    const char *project,
                    const struct strv *names,
                    struct pairs *ret);
/* The same of whoever argus.yaml says: "user/NAME" or "project/NAME"; NULL: of nobody. */
void secrets_reveal_of(const struct secrets *s,
                       const char *of,
                       const struct strv *names,
                       struct pairs *ret);
/* Adds "Authorization: Bearer" with that secret; NULL: none is wanted. False: it is not there. */
must_check bool secrets_add_bearer(const struct secrets *s,
                                   const char *of,
                                   const char *name,
                                   struct strv *headers);

/* There is a key from here on: it is made once in the life of a store, a few bytes on a local disk.
 * ERR_STORE. */
must_check int secrets_need_key(struct secrets *s, struct err *err);

/* 32 bytes that follow from our key and the purpose, and from which the key does not. While there
 * is no key: random ones, which nobody has again. */
void secrets_derive(const struct secrets *s, const char *purpose, unsigned char ret[static 32]);

/* ---- specs at rest ---- */

/* Seals the spec of the job with this id. *ret is the text for the store, heap. */
must_check int secrets_seal_spec(struct secrets *s,
                                 const char *id,
                                 const char *spec,
                                 char **ret,
                                 struct err *err);
/* *spec is replaced when it is sealed; by a comment when it cannot be opened. */
void secrets_open_spec(const struct secrets *s, const char *id, char **spec);

/* For a worker, which does not touch the struct secrets: a copy of the key, until it is forgotten.
 * Zeroed memory is no key. */
struct secrets_key {
    unsigned char bytes[SEAL_KEY_BYTES];
    bool is_there;
};
void secrets_copy_key(const struct secrets *s, struct secrets_key *ret);
void secrets_forget_key(struct secrets_key *k);
/* As secrets_open_spec(). On any thread. */
void secrets_key_open_spec(const struct secrets_key *k, const char *id, char **spec);
