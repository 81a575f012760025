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

/* 1: a directory of ours that is empty, or holds a trial alone; 0: something else. A look that
 * fails is neither, so that a server that was away for a moment makes no directory another's. */
static int jobdir_is_unused(const struct rootdir *jobs, const char *job, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    struct err why = {0};
    struct stat st;
    DIR *names = NULL;
    size_t n = 0;
    int r = rootdir_look(jobs, job, &st);
    if (r < 0)
        return message_refuse(err, r, "disk_no_look_in",
                              MESSAGE_ARGS(MESSAGE_STR("dir", jobs->path), MESSAGE_STR("name", job),
                                           MESSAGE_STR("why", strerror(-r))));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return 0;
    r = rootdir_open_in(jobs, job, 0, &d, &why);
    if (r == 0)
        r = rootdir_list(&d, &names, &why);
    if (r < 0 || !names)
        return r == -ELOOP || r == -ENOTDIR ? 0 : err_copy(err, r, &why);
    errno = 0;
    for (const struct dirent *e; n == 0 && (e = readdir(names)); errno = 0)
        n += jobdir_name_counts(e->d_name);
    r = n ? 0 : -errno;
    (void)closedir(names); /* it was only read */
    return r < 0 ? message_refuse(
                       err, r, "disk_no_list",
                       MESSAGE_ARGS(MESSAGE_STR("path", d.path), MESSAGE_STR("why", strerror(-r))))
                 : !n;
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
    r = jobdir_is_unused(&jobs, job, err);
    if (r != 0)
        return r < 0 ? r : 0;
    return message_refuse(err, ERR_CONFLICT, "job_dir_is_there",
                          MESSAGE_ARGS(MESSAGE_STR("dir", jobs.path), MESSAGE_STR("name", job)));
}

void fsroot_jobs_are_there(const char *root, const struct strv *jobs, enum fsroot_seen *ret)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int opened = rootdir_open(root, "jobs", 0, &dir, NULL);
    for (size_t i = 0; i < jobs->n; i++) {
        bool is_there = false;
        int r = opened;
        if (r == 0 && fsroot_is_name(jobs->v[i]))
            r = rootdir_look_for(&dir, jobs->v[i], &is_there, NULL);
        ret[i] = is_there                       ? FSROOT_PRESENT
                 : r == 0 || file_is_absence(r) ? FSROOT_ABSENT
                                                : FSROOT_UNREADABLE;
    }
}
