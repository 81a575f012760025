/* SPDX-License-Identifier: Apache-2.0 */
/* backupfile.h - one backup: made, found, opened. All blocks: for a worker thread, or a program
 * that does nothing else. */
#pragma once
#include "argusd/ground/settings.h"
#include "base/digest/seal.h"
#include "store/copy.h"

enum { BACKUP_NAME_MAX = 40, BACKUPS_MAX = 10000 };

/* A file by its name: argus-20261126T213000Z.backup. That it opens is not known. */
struct backup_file {
    char name[BACKUP_NAME_MAX];
    usec_t at; /* by its name */
    uint64_t bytes;
};

struct backup_files {
    struct backup_file *v; /* the newest first */
    size_t n;
};
void backup_files_release(struct backup_files *f);

/* Where, and with what. All borrowed. */
struct backup_place {
    const struct settings *settings;
    const unsigned char *key; /* SEAL_KEY_BYTES */
    volatile int *stop;       /* not 0: give up; may be NULL */
};

/* The key in state_dir, made where there is none. */
must_check int backup_need_key(const struct settings *s,
                               unsigned char ret[static SEAL_KEY_BYTES],
                               struct err *err);
/* A new one, read again before it has its name; of the older ones those beyond `backup.keep` go.
 * *ret and *ret_of: which, and what is in it. */
must_check int backup_make(const struct backup_place *p,
                           usec_t now,
                           struct backup_file *ret,
                           struct store_copied *ret_of,
                           struct err *err);
must_check int backup_list(const struct settings *s, struct backup_files *ret, struct err *err);
/* What is in it comes into the directory `into`, which is not there yet. ERR_REFUSED: it does not
 * open with this key, or is no backup; then nothing is left of it. */
must_check int backup_open(const struct backup_place *p,
                           const char *name,
                           const char *into,
                           struct store_copied *ret_of,
                           struct err *err);

/* Beside the store, what a backup brings and a restore puts in place. Ends with NULL. */
extern const char *const backup_kept[];
#define BACKUP_STORE "argus.db"
