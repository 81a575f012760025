/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - how the directories of jobs are called, and which names they may have; see paths.h. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "fsroot/tree/paths.h"

enum { NAME_MAX_BYTES = 200 };

bool fsroot_is_name(const char *name)
{
    size_t n = strlen(name);
    return n && n <= NAME_MAX_BYTES && name[0] != '.' && !strpbrk(name, "/\\\n\r\t\x7f");
}

char *fsroot_job_dir(const char *root, const char *job)
{
    return xasprintf("%s/jobs/%s", root, job);
}

char *fsroot_attempt_dir(const char *root, const char *job, int attempt, const char *sub)
{
    return xasprintf("%s/jobs/%s/attempts/%d%s%s", root, job, attempt, sub ? "/" : "",
                     str_or(sub, ""));
}
