/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - how the directories of jobs are called, and which names they may have.
 *
 * Pure. A job id or user name that is no plain file name is -EINVAL in all of fsroot. */
#pragma once
#include <stdbool.h>

bool fsroot_is_name(const char *name);                   /* a plain file name that we accept */
char *fsroot_job_dir(const char *root, const char *job); /* <root>/jobs/<job> */
/* <root>/jobs/<job>/attempts/<k>, and "/<sub>" when sub is not NULL. */
char *fsroot_attempt_dir(const char *root, const char *job, int attempt, const char *sub);
