/* SPDX-License-Identifier: Apache-2.0 */
/* storage.h - the bytes that people keep on the shared root, against their quotas of `storage`:
 * snapshots, data sets, models and archives of jobs.
 *
 * A snapshot is charged to its user, a common one to who added it: content with several names once
 * to each who names it, however many others do, so that what one removes never weighs on another. A
 * data set or model is charged to its owner, and to its project where it has one; what stays where
 * it was (in place) to nobody. An archive is charged as its job was, with the bytes that it was
 * packed to. Nothing is counted apart: the sums are those of the rows of now. */
#pragma once
#include <stdint.h>

#include "base/err.h"

struct archives;
struct people;
struct registry;
struct snapshots;

/* All borrowed; a part that is not there (NULL) has nothing. */
struct storage {
    const struct people *people;
    const struct registry *registry;
    const struct snapshots *snapshots;
    const struct archives *archives;
};

/* Bytes of a user (project NULL) or of a project (user NULL). */
uint64_t storage_used(const struct storage *s, const char *user, const char *project);
/* What may still come for this user and, unless it is NULL or "", project. UINT64_MAX: no limit. */
uint64_t storage_left(const struct storage *s, const char *user, const char *project);
/* Room for so many bytes more, and at least for one; ERR_REFUSED says what is used, what may be,
 * and what to remove. */
must_check int storage_check(const struct storage *s,
                             const char *user,
                             const char *project,
                             uint64_t more,
                             struct err *err);
/* That refusal, for bytes whose number is not known, as message_keep() keeps it: yours; NULL: there
 * is no limit. */
char *storage_keep(const struct storage *s, const char *user, const char *project);
/* He has this content already: a further name of it costs nothing. */
bool storage_has_content(const struct storage *s, const char *user, const char *hash);
