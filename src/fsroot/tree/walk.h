/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h - from a path that a user wrote to an open file below a root that the user may use.
 *
 * All code that opens a user's path comes through here. walk_parse() tells without looking at
 * the disk whose path it is: core/job/access.c decides. walk_open() then resolves it beneath
 * that root, link by link, so that no "..", no link and no directory that is swapped meanwhile
 * leads out; links that stay below the root are followed. Blocking calls; `root` as in tree/root.h.
 */
#pragma once
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

enum { WALK_PATH_MAX = 4000, WALK_NAME_MAX = 255, WALK_DEPTH_MAX = 64 };

enum walk_zone {
    WALK_COMMON, /* common/ */
    WALK_USER,   /* users/<name>/ */
    WALK_JOB,    /* jobs/<name>/ */
};

struct walk_place {
    enum walk_zone zone;
    char *name;      /* of the user or job; NULL for common */
    char *zone_path; /* "users/alice" */
    char *rest;      /* below it, without slashes at the ends; "" = the root of the zone itself */
    char *path;      /* "users/alice/datasets/x": below the shared root */
};
void walk_place_release(struct walk_place *p);

/* path: below the shared root, or absolute and then in it; "${SHARED_ROOT}/" may be in front.
 * ERR_BAD_REQUEST: a name that is never allowed; ERR_FORBIDDEN: outside of all zones. Pure. */
must_check int walk_parse(const char *root,
                          const char *path,
                          struct walk_place *ret,
                          struct err *err);
/* A name of one file or directory: no '/', "." or "..", no control characters, UTF-8, short. */
must_check int walk_check_name(const char *name, size_t n, struct err *err);

enum walk_flags {
    WALK_NO_OPENAT2 = 1 << 0, /* for tests: as on a kernel without it */
};

/* Open the place with these open() flags; O_CLOEXEC and O_NONBLOCK are always among them.
 * O_CREAT is not for here. ERR_NOT_FOUND, ERR_FORBIDDEN (mode; leads out), ERR_BAD_REQUEST (a part
 * of the way is no directory; it is a FIFO, a device or a socket), ERR_UNAVAILABLE (the root is
 * away). */
must_check int walk_open(const char *root,
                         const struct walk_place *p,
                         int open_flags,
                         unsigned flags,
                         int *ret_fd,
                         struct err *err);
/* The directory in which the last part of the place is, and that part: for what changes names.
 * ERR_BAD_REQUEST for the root of a zone. make: missing directories are made (0755). */
must_check int walk_open_parent(const char *root,
                                const struct walk_place *p,
                                bool make,
                                unsigned flags,
                                int *ret_fd,
                                const char **ret_name,
                                struct err *err);
/* Turns a failed call on a file of this place into one of the codes above. */
int walk_trouble(const struct walk_place *p, int error, struct err *err);
