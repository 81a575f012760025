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

static bool is_empty_of_ours(const struct rootdir *d)
{
    struct stat st;
    DIR *names = NULL;
    size_t n = 0;
    if (fstat(d->fd, &st) < 0 || st.st_uid != geteuid() || rootdir_list(d, &names, NULL) < 0)
        return false;
    for (const struct dirent *e; n == 0 && (e = readdir(names));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    (void)closedir(names); /* it was only read */
    return n == 0;
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
    if (rootdir_open_in(&jobs, job, 0, &dir, NULL) == 0 && is_empty_of_ours(&dir))
        return 0;
    return err_set(err, ERR_CONFLICT,
                   "'%s/%s' was there before the job: submit it under another submission_id, or "
                   "remove what is there",
                   jobs.path, job);
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
