/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.h - a git bundle as a tar of one commit, by git as a child process. Blocking. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "fsroot/content/unpack.h"

/* The file begins as a bundle does. */
bool bundle_is(int fd);

/* Writes a tar of one commit to `tar` (an empty file): the commit that `version` names (a branch, a
 * tag, a commit or its beginning), else HEAD, else the only branch. git works in a directory of its
 * own below `work`, where nobody else may write, since it obeys what lies in a repository; it is
 * gone at the end. ERR_REFUSED: no git here, an incomplete or damaged bundle, several branches and
 * no HEAD, too much of anything. */
must_check int bundle_to_tar(int bundle,
                             const char *work,
                             const char *version,
                             const struct unpack_limits *limits,
                             int tar,
                             struct err *err);
/* Removes what an argusd that ended left below work. */
void bundle_sweep(const char *work);
