/* SPDX-License-Identifier: Apache-2.0 */
/* packlist.h - what lies in a tree of files, entry by entry: the truth that an archive of the tree
 * is held against.
 *
 * A directory comes before what is in it, names byte by byte. Of a file with several names the
 * first one is the file, the others are SAME. The text has one line for each entry
 *
 *   D <mode> <mtime> <path>
 *   F <mode> <mtime> <size> <sha256 of the content> <path>
 *   L <mtime> <path> <target>
 *   S <path> <path of the first name>
 *
 * with the bytes of a path that are no plain ASCII written as %xx, so that it has one reading. The
 * tree is walked by descriptors, no link is followed. All blocks. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/digest/hash.h"
#include "base/err.h"
#include "fsroot/tree/rootdir.h"

enum packlist_kind { PACKLIST_DIR, PACKLIST_FILE, PACKLIST_LINK, PACKLIST_SAME };

struct packlist_entry {
    enum packlist_kind kind;
    mode_t mode;  /* 07777 at most; of a link 0 */
    char *path;   /* below the tree, "" is the tree itself */
    char *target; /* of LINK its text, of SAME the path of the first name; else NULL */
    uint64_t size;
    int64_t mtime_s;
    long mtime_ns;
    unsigned char hash[HASH_BYTES]; /* of a file, once its bytes were read */
    /* Who it was when it was gathered; zero in a list that was read from an archive. */
    dev_t dev;
    ino_t ino;
    struct timespec ctime;
};

struct packlist {
    struct packlist_entry *v;
    size_t n, cap;
    uint64_t bytes; /* of all files, each once */
    size_t files;
};

struct packlist_limits {
    uint64_t bytes;
    int64_t entries;
    volatile int *stop; /* not 0: give up; may be NULL */
    const char *hollow; /* of this directory of the tree only itself is gathered; NULL: of none */
};

void packlist_release(struct packlist *l); /* zeroed memory is an empty one */
/* A new last entry, zeroed; borrowed until the next one. Texts are copied, target may be NULL. */
struct packlist_entry *packlist_add(struct packlist *l,
                                    enum packlist_kind kind,
                                    const char *path,
                                    const char *target);
/* Appends all that lies in d, without hashes. ERR_REFUSED with the sentence: past a limit, too
 * deep, or what no archive can bring back (a socket, a pipe, a device); -ECANCELED. */
must_check int packlist_gather(const struct rootdir *d,
                               const struct packlist_limits *limits,
                               struct packlist *ret,
                               struct err *err);
/* What one file is by now is what it was when it was gathered. */
bool packlist_is_same_file(const struct packlist_entry *e, const struct stat *st);
/* The next bytes of a file that was gathered and is open as fd: from `at` on, as many as chunk
 * takes and the file had. ERR_CONFLICT: it has fewer by now. */
must_check int packlist_read_file(const struct packlist_entry *e,
                                  int fd,
                                  uint64_t at,
                                  void *chunk,
                                  size_t size,
                                  size_t *ret,
                                  struct err *err);

enum packlist_compare {
    PACKLIST_UNTOUCHED = 1 << 0, /* the very same files, not written since; not their hashes */
    PACKLIST_PLAIN = 1 << 1,     /* permissions and whole seconds only */
};
/* ERR_CONFLICT with the first difference. */
must_check int packlist_check_same(const struct packlist *was,
                                   const struct packlist *is,
                                   unsigned flags,
                                   struct err *err);
/* The text, or its hash. */
void packlist_write(const struct packlist *l, struct buf *out);
const char *packlist_hash(const struct packlist *l, char ret[static HASH_HEX]);
