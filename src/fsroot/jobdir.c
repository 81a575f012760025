/* SPDX-License-Identifier: Apache-2.0 */
/* jobdir.c - whose directory jobs/<id> is: made for a job once, or there before; see fsroot.h.
 *
 * An empty directory of our own uid is taken as made by us: NFS may repeat a mkdir whose answer it
 * lost, and what is in a directory is all that could mislead a reader. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "fsroot/fsroot.h"
#include "fsroot/rootfile.h"

/* 1: an empty directory of ours; 0: something else. A look that fails is neither, so that a server
 * that was away for a moment makes no directory another's. */
static int jobdir_is_fresh(const struct rootdir *jobs, const char *job, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    struct err why = {0};
    struct stat st;
    DIR *names = NULL;
    size_t n = 0;
    int r = rootdir_look(jobs, job, &st);
    if (r < 0)
        return err_set(err, r, "cannot look at '%s/%s': %s", jobs->path, job, strerror(-r));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return 0;
    r = rootdir_open_in(jobs, job, 0, &d, &why);
    if (r == 0)
        r = rootdir_list(&d, &names, &why);
    if (r < 0 || !names)
        return r == -ELOOP || r == -ENOTDIR ? 0 : err_set(err, r, "%s", why.text);
    errno = 0;
    for (const struct dirent *e; n == 0 && (e = readdir(names)); errno = 0)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    r = n ? 0 : -errno;
    (void)closedir(names); /* it was only read */
    return r < 0 ? err_set(err, r, "cannot list '%s/%s': %s", jobs->path, job, strerror(-r)) : !n;
}

int fsroot_job_make(const char *root, const char *job, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir jobs = ROOTDIR_NONE, dir = ROOTDIR_NONE;
    struct err why = {0};
    if (!fsroot_is_name(job))
        return err_set(err, -EINVAL, "'%.60s' cannot be the name of a job's directory", job);
    int r = rootdir_open(root, "jobs", 0, &jobs, err);
    if (r < 0)
        return r;
    r = rootdir_make_new(&jobs, job, 0755, &dir, &why);
    if (r != -EEXIST)
        return r < 0 ? err_set(err, r, "%s", why.text) : 0;
    r = jobdir_is_fresh(&jobs, job, err);
    if (r != 0)
        return r < 0 ? r : 0;
    return err_set(err, ERR_CONFLICT,
                   "'%s/%s' was there before the job: submit it under another submission_id, or "
                   "remove what is there",
                   jobs.path, job);
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
