/* SPDX-License-Identifier: Apache-2.0 */
/* upload.h - the bytes of an upload on the shared root: argus/uploads/<id>/data.
 *
 * Bytes are only added at the end. The caller keeps how far it is, and the running SHA-256 of that,
 * where no job can write: a job can change what lies on the root. So the hash of the whole is known
 * when the last byte is there, also after argusd was killed, and opening reads nothing, whatever
 * lies there. Blocking calls of one thread at a time; `root` as in tree/root.h. Failures:
 * ERR_NO_SPACE when the root is full, ERR_UNAVAILABLE when it cannot be reached, ERR_NOT_FOUND
 * when the bytes are gone. */
#pragma once
#include <stdint.h>

#include "base/digest/hash.h"
#include "base/err.h"
#include "base/strv.h"

struct upload_file;

/* How many bytes are safe on the disk, and their hash, to be continued. */
struct upload_progress {
    uint64_t synced;
    struct hash_running hash;
};
void upload_progress_init(struct upload_progress *p); /* of none */

enum upload_file_flags {
    UPLOAD_FILE_NEW = 1 << 0, /* make it if it is not there */
};

/* from: as upload_file_progress() was after the last sync; copied. What lies behind it is cut off,
 * and when less lies there it begins anew, from none. */
must_check int upload_file_open(const char *root,
                                const char *id,
                                const struct upload_progress *from,
                                unsigned flags,
                                struct upload_file **ret,
                                struct err *err);
/* NULL is fine. What was not synced is on its way to the disk and no more. */
void upload_file_close(struct upload_file *f);

uint64_t upload_file_offset(const struct upload_file *f); /* bytes written */
uint64_t upload_file_synced(const struct upload_file *f); /* of these, safe */
/* As of the last sync. */
void upload_file_progress(const struct upload_file *f, struct upload_progress *ret);
/* The hash of the bytes that were written so far. */
void upload_file_hash(const struct upload_file *f, char ret[static HASH_HEX]);

/* Adds all n bytes, or none. */
must_check int upload_file_add(struct upload_file *f, const void *p, size_t n, struct err *err);
must_check int upload_file_sync(struct upload_file *f, struct err *err);

/* <root>/argus/uploads/<id>/data */
char *upload_path(const char *root, const char *id);
/* The bytes and all that is kept with them; nothing there is fine. */
must_check int upload_remove(const char *root, const char *id, struct err *err);
/* The ids that have a directory. */
must_check int upload_list(const char *root, struct strv *ret, struct err *err);

/* Turns a system error on the shared root into one of the codes above with its sentence. */
int upload_trouble(const char *root, int error, const char *what, struct err *err);
