/* SPDX-License-Identifier: Apache-2.0 */
/* gpufiles.c - the books of GPUs that the scouts of an attempt keep; see gpufiles.h. */
#include <errno.h>

#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/gpufiles.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

int fsroot_gpus_read(const char *root,
                     const char *job,
                     int attempt,
                     const char *node,
                     struct buf *out,
                     struct err *err)
{
    if (!fsroot_is_name(job) || !fsroot_is_name(node))
        return message_refuse(err, -EINVAL, "no_gpu_dir",
                              MESSAGE_ARGS(MESSAGE_STR("name", job), MESSAGE_STR("node", node)));
    _cleanup_(freep) char *name = xasprintf(ATTEMPT_GPUS "/%s.json", node);
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, name);
    return rootfile_read(root, path, out, err);
}
