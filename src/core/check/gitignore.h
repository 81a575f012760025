/* SPDX-License-Identifier: Apache-2.0 */
/* gitignore.h - the patterns of .gitignore files, as gitignore(5) documents them: comments,
 * negation, anchoring, "dir/", * ? [a-z] and **, and nested files that win over outer ones.
 *
 * For a walk from the top down that does not enter what is ignored: so nothing below an ignored
 * directory can be taken back in, as with git. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct gitignore;

struct gitignore *gitignore_new(void);
void gitignore_free(struct gitignore *g); /* NULL is fine */

/* The text of dir/.gitignore; dir is relative to the top of the walk, "" = the top. Copied. */
void gitignore_add(struct gitignore *g, const char *dir, const char *text, size_t n);
/* How many patterns there are, and forget the later ones: when the walk leaves a directory. */
size_t gitignore_count(const struct gitignore *g);
void gitignore_cut(struct gitignore *g, size_t count);

/* path is relative to the top, without a slash at either end. */
bool gitignore_skips(const struct gitignore *g, const char *path, bool is_dir);
