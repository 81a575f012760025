/* SPDX-License-Identifier: Apache-2.0 */
/* looking.h - inside of the look (look.h): what look.c does for each file, look_model.c does for
 * the files of a model. */
#pragma once
#include <sys/stat.h>

#include "fsroot/look/look.h"
#include "fsroot/look/looked.h"
#include "fsroot/tree/rootdir.h"

/* What the looks of one question share. */
struct looking {
    const struct rootdir *top; /* nothing outside of it is looked at */
    struct looked *known;
    struct rootdir dir; /* the directory of the last file, with its path as it really is */
    char *asked;        /* by this path below top */
};

void looking_release(struct looking *k);
/* The thing at the end of the path: its name in k->dir. -EXDEV: a link leads off the root, and
 * *ret_out says where; that is not looked at. */
int look_reach(struct looking *k,
               const char *path,
               char **ret_name,
               struct stat *ret,
               char **ret_out);
/* What cannot be read is missing. */
size_t look_read_at(int fd, void *buf, size_t n, uint64_t at);
/* Opened for reading; it is plain. */
int look_open_plain(const struct rootdir *dir, const char *name, struct stat *ret);
/* So that the judge sees that it is not below the root, however it is written. */
char *look_outside(const struct looking *k, char *taken);
/* On the shared root, or in a cache that argus.yaml has elsewhere. */
void look_at_model_there(struct preflight_model *m, const struct looking *on_root);
