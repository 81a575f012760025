/* SPDX-License-Identifier: Apache-2.0 */
/* dirtree.h - what is done to whole trees of files: removing, the time of what is kept, and what in
 * them is Python's own.
 *
 * Links are never followed. Blocking. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The mtime of every file of a snapshot: what was touched afterwards has another one. */
enum { DIRTREE_MTIME = 946684800 }; /* 2000-01-01 */

/* The name and everything below it, read-only directories too; fine if it is not there. */
int dirtree_remove(const char *path, struct err *err);
/* A name below fd. */
int dirtree_remove_at(int fd, const char *name, struct err *err);

/* Python's bytecode, which whoever imports from a tree writes beside what is imported. A path is
 * below the tree's top: "a/__pycache__/b.pyc" is in such a directory, "a/__pycache__" is not. */
#define DIRTREE_BYTECODE "__pycache__"
bool dirtree_is_bytecode(const char *path);

/* ---- removing a tree that belongs to another user ---- */

struct dirtree_removal {
    bool unlock; /* read-only directories are opened for it */
    /* Asked before each name, with the directory that it is in: negative leaves it, and ends all.
     * NULL: everything goes. */
    int (*check)(int dir, const char *name, void *arg);
    void *arg;
    uint64_t removed; /* files and directories, also of a removal that failed halfway */
    char *at;         /* the name that it failed at; yours to free() */
};
/* 0, what check said, or a negative errno; -E2BIG: too deep. */
must_check int dirtree_remove_with(int fd, const char *name, struct dirtree_removal *x);
