/* SPDX-License-Identifier: Apache-2.0 */
/* gpufiles.c - the books that the scouts of an attempt keep of its nodes; see gpufiles.h. */
#include <errno.h>

#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/gpufiles.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

/* The file of a node in this folder of the attempt. */
static int gpufiles_read(const char *root,
                         const char *job,
                         int attempt,
                         const char *folder,
                         const char *node,
                         struct buf *out,
                         struct err *err)
{
    if (!fsroot_is_name(job) || !fsroot_is_name(node))
        return message_refuse(err, -EINVAL, "no_gpu_dir",
                              MESSAGE_ARGS(MESSAGE_STR("name", job), MESSAGE_STR("node", node)));
    _cleanup_(freep) char *name = xasprintf("%s/%s.json", folder, node);
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, name);
    return rootfile_read(root, path, out, err);
}

int fsroot_gpus_read(const char *root,
                     const char *job,
                     int attempt,
                     const char *node,
                     struct buf *out,
                     struct err *err)
{
    return gpufiles_read(root, job, attempt, ATTEMPT_GPUS, node, out, err);
}

int fsroot_load_read(const char *root,
                     const char *job,
                     int attempt,
                     const char *node,
                     struct buf *out,
                     struct err *err)
{
    return gpufiles_read(root, job, attempt, ATTEMPT_LOAD, node, out, err);
}
