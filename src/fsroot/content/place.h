/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - a user's operations on files in a place (walk.h): look, list, put, remove.
 *
 * The calls block; access was decided before. Error codes are those of walk.h and ERR_CONFLICT. */
#pragma once
#include "base/clock.h"
#include "fsroot/tree/walk.h"

enum place_kind { PLACE_FILE, PLACE_DIRECTORY, PLACE_LINK, PLACE_OTHER };
const char *place_kind_to_string(enum place_kind k); /* "file" "directory" "link" "other" */

enum { PLACE_ETAG_MAX = 64, PLACE_ENTRIES_MAX = 200000 };

struct place_entry {
    char *name;
    char *target; /* of a link; NULL */
    enum place_kind kind;
    uint64_t bytes;
    usec_t changed_at;
    bool is_odd;               /* its name cannot be written in a path here */
    char etag[PLACE_ETAG_MAX]; /* of a file: another one when it was changed */
};
void place_entry_release(struct place_entry *e);

/* Looks at the file or directory; links are followed while they stay below the root, and a
 * dangling link is itself the result. */
must_check int place_look(const char *root,
                          const struct walk_place *p,
                          struct place_entry *ret,
                          struct err *err);

struct place_list {
    struct place_entry *v;
    size_t n;
    bool more; /* there are others after the last one */
};
void place_list_release(struct place_list *l);
/* Up to limit entries of the directory after the name `after` ("" = from the first), by name. */
must_check int place_list(const char *root,
                          const struct walk_place *p,
                          const char *after,
                          size_t limit,
                          struct place_list *ret,
                          struct err *err);

/* Open a regular file for reading. ret->name is NULL. In jobs/ what only its owner may read is
 * closed: secrets of an attempt lie there for a moment. */
must_check int place_open_file(const char *root,
                               const struct walk_place *p,
                               int *ret_fd,
                               struct place_entry *ret,
                               struct err *err);
/* Up to n bytes at offset. *ret_n 0: at or past the end. */
must_check int place_read(const struct walk_place *p,
                          int fd,
                          uint64_t offset,
                          void *buf,
                          size_t n,
                          size_t *ret_n,
                          struct err *err);

enum place_put_flags {
    PLACE_REPLACE = 1 << 0, /* a file that is there goes; else ERR_CONFLICT */
    PLACE_PARENTS = 1 << 1, /* make the directories above it */
};
/* Moves the file `from` (an upload of so many bytes) into the place in one step, readable by all,
 * so that no reader sees half of it; onto another file system no more than those bytes are copied.
 * On failure it stays where it was. */
must_check int place_put(const char *root,
                         const struct walk_place *p,
                         const char *from,
                         uint64_t bytes,
                         unsigned flags,
                         struct err *err);

/* A file, a link, an empty directory, or with `recursive` all that is in it; *ret_removed counts
 * them, also of a removal that failed halfway. Links are removed and not followed. */
must_check int place_remove(const char *root,
                            const struct walk_place *p,
                            bool recursive,
                            uint64_t *ret_removed,
                            struct err *err);
