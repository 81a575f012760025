/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - the facts of core/check/preflight.h, read from the shared root.
 *
 * Blocking, for the worker pool: a hung file system holds these calls for as long as it likes.
 * Nothing is opened for writing and no special file is opened at all; what is read has a
 * ceiling. Nothing outside of the shared root (and of a cache of models that argus.yaml names) is
 * looked at, whatever links lead there. What cannot be read is a fact, not a failure. */
#pragma once
#include "core/check/preflight.h"

struct looked;

/* Looks at all files that preflight_plan() named. Files in known (fsroot/look/looked.h, may be
 * NULL) that have not changed since an earlier look are not read again. *at (may be NULL) always
 * tells waiting threads how far the look is: 0 the root, i + 1 file i, n_files + 1 the model. */
void fsroot_look(const char *shared_root,
                 struct looked *known,
                 struct preflight_facts *f,
                 _Atomic(size_t) *at);

/* The keys of configuration `name` of the verl in `tree` (a directory on the shared root that holds
 * the package, or an interpreter of a venv there). ret->whole is false when some part of it could
 * not be read. 1, or 0: there is no such configuration; a negative errno: that could not be found
 * out. In both *ret is empty. */
must_check int fsroot_verl_keys(const char *root,
                                const char *tree,
                                const char *name,
                                struct preflight_keys *ret);
