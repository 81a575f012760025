/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.h - a git bundle as a tar of one commit, by git as a child process. Blocking. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "fsroot/unpack.h"

/* The file begins as a bundle does. */
bool bundle_is(int fd);

/* All files are made below dir, which the caller removes. The commit: the one that `version`
 * names (a branch, a tag, a commit or its beginning), else HEAD, else the only branch. *ret_fd
 * is open for reading. ERR_REFUSED: no git here, an incomplete bundle, several branches and no
 * HEAD. */
must_check int bundle_to_tar(int bundle,
                             const char *dir,
                             const char *version,
                             const struct unpack_limits *limits,
                             int *ret_fd,
                             struct err *err);
