/* SPDX-License-Identifier: Apache-2.0 */
/* jobarchive.h - the directory of a finished job becomes one verified archive, and comes back.
 *
 * Whoever calls keeps on disk which step was begun (argusd/archive/archives.h), so that a kill
 * at any moment is followed by one of these calls, each of which may be made again:
 *
 *   pack    jobs/<id> ─▶ <dir>/<id>-<token>.tar.zst, read back and held against what lies there;
 * then jobs/<id> gets the name jobs/.argus-old-<token>, and a stub its place killed or failed ─▶
 * undo: all is as it was, and no archive is left finish  jobs/.argus-old-<token> is removed unpack
 * <dir>/<id>-<token>.tar.zst ─▶ jobs/.argus-new-<token>, read again, synced killed or failed ─▶
 * drop: the archive and the stub stay swap    jobs/.argus-new-<token> takes the place of the stub,
 * which goes with the archive
 *
 * So at every moment either the whole directory or the whole archive is there. The stub holds
 * meta.json, and archived.json that says where the rest is. All blocks. */
#pragma once
#include "fsroot/archive/packlist.h"

enum { JOBARCHIVE_TOKEN_BYTES = 8, JOBARCHIVE_TOKEN_MAX = 2 * JOBARCHIVE_TOKEN_BYTES + 1 };

/* All borrowed. */
struct jobarchive {
    const char *root;  /* the shared root */
    const char *dir;   /* where archives are: below the root, or anywhere else */
    const char *id;    /* of the job */
    const char *token; /* nobody can have made a name with it before */
    /* hollow: a directory that comes back empty, what lies in it is removed with the rest. */
    struct packlist_limits limits;
    /* For tests: called with the name of each step before it is done; may be NULL. */
    void (*step)(const char *name);
};

struct jobarchive_made {
    uint64_t bytes, packed; /* of its files, of the archive */
    uint64_t files;
    char hash[HASH_HEX]; /* of the list (packlist.h) */
};

must_check int jobarchive_pack(const struct jobarchive *a,
                               struct jobarchive_made *ret,
                               struct err *err);
must_check int jobarchive_undo(const struct jobarchive *a, struct err *err);
must_check int jobarchive_finish(const struct jobarchive *a, struct err *err);
/* hash: that of the list when it was packed. ERR_REFUSED: the archive is not that one. */
must_check int jobarchive_unpack(const struct jobarchive *a, const char *hash, struct err *err);
must_check int jobarchive_drop(const struct jobarchive *a, struct err *err);
must_check int jobarchive_swap(const struct jobarchive *a, struct err *err);

/* The path of the archive; yours. */
char *jobarchive_path(const struct jobarchive *a);
