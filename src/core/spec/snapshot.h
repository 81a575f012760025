/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - names of snapshots, "verl@0.9.1", and names that may stand in one.
 *
 * A tree that users give us is unpacked on Linux and read by people and by Python elsewhere. So
 * its names are plain: relative, UTF-8 in composed form, without control, invisible or
 * direction-changing characters, without look-alikes of '/' and '.', and without words that mix
 * Latin letters with Cyrillic or Greek ones that look the same. Two names that differ in case or
 * composition alone are told apart by no person: snapshot_fold() makes them equal. Pure. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    SNAPSHOT_NAME_MAX = 63, /* of either half */
    SNAPSHOT_REF_BUF = 2 * SNAPSHOT_NAME_MAX + 2,
    SNAPSHOT_PATH_MAX = 1024, /* bytes of a path in a tree */
    SNAPSHOT_PART_MAX = 255,  /* of one name in it */
    SNAPSHOT_DEPTH_MAX = 64,  /* names in a path */
    SNAPSHOT_SHOWN = 200,     /* of a path in a sentence */
    SNAPSHOT_DERIVED_MAX = 40,
    SNAPSHOT_SHORT_HASH = 12, /* digits of the content's hash as a derived version */
};

/* "[a-z0-9][a-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9_.+-]*". ERR_BAD_REQUEST. */
must_check int snapshot_check_ref(const char *ref, struct err *err);
/* Meant as a reference and not as a path: it has an '@' and no '/'. */
bool snapshot_is_ref(const char *text);

/* The name of one that nobody named, from the last part of the path of what is in it. Returns ret.
 */
const char *snapshot_derive_name(const char *path, char ret[static SNAPSHOT_DERIVED_MAX + 1]);

/* ERR_REFUSED with a sentence that names the path, escaped where that is needed. */
must_check int snapshot_check_path(const char *path, struct err *err);
/* A link at path with this target stays in the tree as far as the text tells; links on its way
 * are the file system's to follow. ERR_REFUSED. */
must_check int snapshot_check_link(const char *path, const char *target, struct err *err);
/* Append what a path is compared by; the path was checked. */
void snapshot_fold(struct buf *out, const char *path);
/* The text for a sentence: as it is when it is printable ASCII, else escaped; cut. Returns ret. */
const char *snapshot_show(const char *text, char ret[static SNAPSHOT_SHOWN]);
