/* SPDX-License-Identifier: Apache-2.0 */
/* jobdir.c - whose directory jobs/<id> is: made for a job once, or there before; see jobdir.h.
 *
 * A directory of our own uid with nothing in it but the job's trial is taken as made by us: NFS may
 * repeat a mkdir whose answer it lost, argusd may have ended before the first attempt, and what is
 * in a directory is all that could mislead a reader. Nothing of an attempt is read from a trial. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/jobdir.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

static bool jobdir_name_counts(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, JOBDIR_TRIAL) != 0;
}

static bool jobdir_is_unused(const struct rootdir *d)
{
    struct stat st;
    DIR *names = NULL;
    size_t n = 0;
    if (fstat(d->fd, &st) < 0 || st.st_uid != geteuid() || rootdir_list(d, &names, NULL) < 0)
        return false;
    for (const struct dirent *e; n == 0 && (e = readdir(names));)
        n += jobdir_name_counts(e->d_name);
    (void)closedir(names); /* it was only read */
    return n == 0;
}

int fsroot_job_make(const char *root, const char *job, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir jobs = ROOTDIR_NONE, dir = ROOTDIR_NONE;
    struct err why = {0};
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "bad_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    int r = rootdir_open(root, "jobs", 0, &jobs, err);
    if (r < 0)
        return r;
    r = rootdir_make_new(&jobs, job, 0755, &dir, &why);
    if (r != -EEXIST)
        return r < 0 ? err_copy(err, r, &why) : 0;
    if (rootdir_open_in(&jobs, job, 0, &dir, NULL) == 0 && jobdir_is_unused(&dir))
        return 0;
    return message_refuse(err, ERR_CONFLICT, "job_dir_is_there",
                          MESSAGE_ARGS(MESSAGE_STR("dir", jobs.path), MESSAGE_STR("name", job)));
}

void fsroot_jobs_are_there(const char *root, const struct strv *jobs, bool *ret)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    struct stat st;
    bool opened = rootdir_open(root, "jobs", 0, &dir, NULL) == 0;
    for (size_t i = 0; i < jobs->n; i++)
        ret[i] = opened && fsroot_is_name(jobs->v[i]) &&
                 fstatat(dir.fd, jobs->v[i], &st, AT_SYMLINK_NOFOLLOW) == 0;
}
