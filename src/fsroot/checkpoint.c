/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - finds a checkpoint that a job may go on from; see fsroot.h.
 *
 * verl writes global_step_N/ first and then N into the tracker file: a directory beyond the
 * tracker is one that was torn. Whether every shard is whole is not looked at here. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "fsroot/fsroot.h"

static int read_tracker(const char *dir, const char *job, int64_t *ret, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/latest_checkpointed_iteration.txt", dir);
    _cleanup_(buf_release) struct buf text = BUF_INIT(64);
    int r = file_read(path, &text, err);
    if (r == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "job '%s' has no finished checkpoint", job);
    if (r < 0)
        return r;
    if (text.len)
        text.data[strcspn(text.data, " \r\n")] = 0;
    if (str_to_int(buf_str(&text), 1, INT64_MAX, ret, NULL) < 0)
        return err_set(err, ERR_NOT_FOUND, "'%s' names no step", path);
    return 0;
}

int fsroot_checkpoint_find(const char *root,
                           const char *job,
                           int64_t step,
                           int64_t *ret,
                           struct err *err)
{
    struct stat st;
    int64_t newest = 0;
    if (!fsroot_is_name(job))
        return err_set(err, -EINVAL, "'%.60s' is no job's directory", job);
    _cleanup_(freep) char *dir = xasprintf("%s/jobs/%s/checkpoints", root, job);
    int r = read_tracker(dir, job, &newest, err);
    if (r < 0)
        return r;
    if (step > newest)
        return err_set(err, ERR_NOT_FOUND,
                       "job '%s' has no finished checkpoint of step %" PRId64
                       ": its newest is of step %" PRId64,
                       job, step, newest);
    int64_t found = step ? step : newest;
    _cleanup_(freep) char *path = xasprintf("%s/global_step_%" PRId64, dir, found);
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_NOT_FOUND,
                       "job '%s' has no checkpoint of step %" PRId64 ": '%s' is "
                       "not there",
                       job, found, path);
    *ret = found;
    return 0;
}
