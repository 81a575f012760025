/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - snapshots on the shared root.
 *
 *   <root>/argus/snapshots/<hash>/tree        the files, read-only, all of one mtime
 *   <root>/argus/snapshots/<hash>/manifest    what they are (core/check/manifest.h); its SHA-256 is
 * <hash> <root>/argus/snapshots/<hash>/settled     an empty file: all of it is on disk
 *   <root>/common/code/<name>/<version>       a link to such a tree, and
 *   <root>/users/<user>/code/<name>/<version> the same for what is one user's
 *   <root>/argus/snapshots/.new-<random>      one that is being made
 *
 * The same content is there once, whatever its names. Read-only bits stop accidents and not a
 * job that runs as root: so snapshot_verify() looks before a job starts. What is not settled a
 * power cut may have damaged: it is looked at as a whole. Blocking. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/digest/hash.h"
#include "base/err.h"
#include "base/strv.h"
#include "core/check/manifest.h"
#include "fsroot/content/unpack.h"

#define SNAPSHOT_SETTLED "settled"

struct snapshot_made {
    char hash[HASH_HEX];
    uint64_t bytes, files;
    char *verl;        /* the version of verl in it; NULL: none */
    struct strv needs; /* what its setup files ask for, see core/job/needs.h */
    bool existed;      /* this content was there already */
};
void snapshot_made_release(struct snapshot_made *m);

/* The requested snapshot. Texts are borrowed. */
struct snapshot_source {
    const char *root;
    int archive;         /* descriptor of a plain file, from its beginning */
    const char *work;    /* a directory that no job reaches: git works below it */
    const char *want;    /* the hash that it must have, else ERR_REFUSED; NULL: any */
    const char *version; /* of a git bundle: the commit, branch or tag of this name is taken if
                            there is one; may be NULL */
    const struct unpack_limits *limits; /* NULL: unpack_default_limits */
    pthread_mutex_t *healing; /* shared by all makers on this root: they replace damaged snapshots
                                 one at a time; NULL: there is no other maker */
};
/* Unpack, hash, put under its hash; snapshot_settle() is owed. Nothing is left behind on failure.
 */
must_check int snapshot_make(const struct snapshot_source *s,
                             struct snapshot_made *ret,
                             struct err *err);

/* Syncs the content to disk and then marks it as settled; this takes as long as the disk is busy
 * with other data. unsure: the machine may have gone down since the snapshot was made, so all of
 * it is checked first (ERR_REFUSED: it was damaged, and stays unsettled). A settled snapshot
 * stays settled. */
must_check int snapshot_settle(const char *root, const char *hash, bool unsure, struct err *err);

/* Appends what the content of this hash asks for; what is no plain file or a giant one asks for
 * nothing. */
must_check int snapshot_read_needs(const char *root,
                                   const char *hash,
                                   struct strv *ret,
                                   struct err *err);

/* <root>/argus/snapshots/<hash>/tree */
char *snapshot_tree(const char *root, const char *hash);
/* <root>/common/code/<name>/<version>, or of a user. ref was checked. */
char *snapshot_path(const char *root, const char *user, const char *ref);

/* Make the name a link to the content. -EEXIST: something that is no link of ours has it. */
must_check int snapshot_link(const char *root,
                             const char *user,
                             const char *ref,
                             const char *hash,
                             struct err *err);
/* Remove the link, if it is ours. */
must_check int snapshot_unlink(const char *root,
                               const char *user,
                               const char *ref,
                               struct err *err);
/* Remove the content. */
must_check int snapshot_remove(const char *root, const char *hash, struct err *err);
/* Remove what an argusd that ended left half made. */
void snapshot_sweep(const char *root);

/* ret is to be released on success. */
must_check int snapshot_read(const char *root,
                             const char *hash,
                             struct manifest *ret,
                             struct err *err);
/* Is the content still what its hash says? Sizes and times of a sample, and of the names at the
 * top all; where one is not as it was, or it is not settled, everything. ERR_REFUSED names what
 * changed. */
must_check int snapshot_verify(const char *root, const char *hash, struct err *err);
