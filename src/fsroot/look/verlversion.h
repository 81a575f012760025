/* SPDX-License-Identifier: Apache-2.0 */
/* verlversion.h - which verl lies in a snapshot, or in the venv of an interpreter. Blocking. */
#pragma once

#include "base/err.h"

/* The version of verl in a snapshot (<path>/verl/version/version), or of the one installed beside
 * an interpreter (<venv>/bin/python), in *ret, to be freed; NULL: there is none on the shared root.
 * A failure says nothing about that. */
must_check int fsroot_verl_version(const char *root, const char *path, char **ret, struct err *err);

struct rootdir;
/* The path of site-packages/<name> in the venv of this interpreter, below top, in *ret, to be
 * freed; NULL: there is none. A negative errno: that could not be found out. */
must_check int fsroot_beside_interpreter(const struct rootdir *top,
                                         const char *below,
                                         const char *name,
                                         char **ret);
