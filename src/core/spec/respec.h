/* SPDX-License-Identifier: Apache-2.0 */
/* respec.h - a JobSpec to be submitted once more, with some of its values changed.
 *
 * The id is left out, for the new job gets its own, unless it is to stay. What nobody changes stays
 * as it was given; a text in which nothing changes stays the same byte by byte. Pure. */
#pragma once
#include "base/buf.h"
#include "base/doc/doc.h"
#include "base/field.h"

enum { RESPEC_CHANGES_MAX = 64 << 10 }; /* bytes of the text that tells of the changes */

extern const struct field_table respec_edit_table; /* of what is told of one change */

struct respec {
    const char *resume;  /* in place of the spec's own; NULL: as it is */
    const json_t *patch; /* object as finding_patch_to_json() gives it: maps are merged, all else is
                            replaced; null takes away; "env" reaches runtime_env.env_vars too.
                            NULL: no patch */
    bool keeps_id;       /* the same job: its submission_id stays */
};

/* One change into an open array, old or new NULL where there is none; a value under a secret name
 * is "***". */
void respec_tell_edit(struct jout *j, const char *key, const char *old, const char *new);
/* "+trainer.x=1": its key, without the signs (heap), and its value, "" for none (borrowed). */
char *respec_override_key(const char *o);
const char *respec_override_value(const char *o);

/* Append the new text to out. changes gets a JSON array of {"key", "old", "new"}, old or new null
 * where there is none; values under secret names are "***" there. How many changes, or -EINVAL
 * with a sentence: the text is no mapping. out->failed or changes->failed tell of an overflow. */
must_check int respec_text(const char *text,
                           const struct respec *how,
                           struct buf *out,
                           struct buf *changes,
                           struct err *err);
