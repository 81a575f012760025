/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - the secrets that Ray's workers of an attempt read at their start; see secrets.h.
 *
 * They lie outside of the job's directory, so that a copy or a listing of that directory
 * contains none. A crash in the middle of writing one leaves ".<name>.<number>.tmp", which is
 * found and removed with the file itself. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/secrets.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

#define PLACE "argus/secrets"

enum { FILES_MAX = 100000 };

char *fsroot_secrets_path(const char *root, const char *ray_id)
{
    return xasprintf("%s/" PLACE "/%s", root, ray_id);
}

static int secrets_check_name(const char *ray_id, struct err *err)
{
    return fsroot_is_name(ray_id) ? 0
                                  : message_refuse(err, -EINVAL, "bad_attempt_name",
                                                   MESSAGE_ARGS(MESSAGE_STR("name", ray_id)));
}

int fsroot_secrets_write(const char *root,
                         const char *ray_id,
                         const struct pairs *env,
                         struct err *err)
{
    return fsroot_secrets_write_hidden(root, ray_id, env, NULL, err);
}

int fsroot_secrets_write_hidden(const char *root,
                                const char *ray_id,
                                const struct pairs *env,
                                const struct strv *hidden,
                                struct err *err)
{
    int r = secrets_check_name(ray_id, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = fsroot_secrets_path(root, ray_id);
    _cleanup_(buf_release) struct buf out = BUF_INIT(LAUNCH_MAX_BYTES);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < env->n; i++)
        jout_str(&j, env->v[i].key, env->v[i].value);
    if (hidden)
        jout_open(&j, "", '[');
    for (size_t i = 0; hidden && i < hidden->n; i++)
        launch_jout_bytes(&j, NULL, hidden->v[i]);
    if (hidden)
        jout_close(&j, ']');
    jout_close(&j, '}');
    r = out.failed ? message_refuse(err, -EMSGSIZE, "secrets_large",
                                    MESSAGE_ARGS(MESSAGE_STR("name", ray_id),
                                                 MESSAGE_NUM("most", LAUNCH_MAX_BYTES)))
                   : rootfile_write(root, path, 0700, buf_str(&out), out.len, 0600, FILE_SYNC, err);
    if (out.data)
        explicit_bzero(out.data, out.len);
    return r;
}

/* The name that a temporary file was to get, or NULL when it is none. */
static char *meant_name(const char *entry)
{
    size_t n = strlen(entry);
    if (entry[0] != '.' || !str_ends(entry, ".tmp") || n < 8)
        return NULL;
    const char *end = entry + n - 4; /* of the number */
    while (end > entry + 1 && end[-1] >= '0' && end[-1] <= '9')
        end--;
    return end[-1] == '.' && end - 1 > entry + 1
               ? xstrndup(entry + 1, (size_t)(end - 1 - (entry + 1)))
               : NULL;
}

/* The file and what was to become it. Where the directory has gone, or a link is in its place,
 * there is nothing of ours. */
static int remove_all(const char *root, const char *path, const char *name, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    struct err why = {0};
    DIR *d = NULL;
    int r = rootdir_open(root, path, 0, &dir, &why);
    if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
        return 0;
    if (r < 0 || (r = rootdir_list(&dir, &d, &why)) < 0)
        return message_refuse(err, r, "secrets_no_remove",
                              MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_ERR("why", &why)));
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        _cleanup_(freep) char *meant = meant_name(e->d_name);
        if (str_eq(meant, name))
            r = rootdir_unlink(&dir, e->d_name, err);
    }
    (void)closedir(d); /* it was only read */
    return r < 0 ? r : rootdir_unlink(&dir, name, err);
}

/* "<job>" or "<job>-a<k>", as job_ray_id() makes it. */
static char *attempt_dir(const char *root, const char *ray_id)
{
    int64_t k = 1;
    const char *dash = strrchr(ray_id, '-');
    bool later = dash && dash[1] == 'a' && str_to_int(dash + 2, 1, 1000000, &k, NULL) == 0;
    size_t n = later ? (size_t)(dash - ray_id) : strlen(ray_id);
    _cleanup_(freep) char *job = xstrndup(ray_id, n);
    return fsroot_attempt_dir(root, job, later ? (int)k : 1, NULL);
}

int fsroot_secrets_remove(const char *root, const char *ray_id, struct err *err)
{
    int r = secrets_check_name(ray_id, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *dir = attempt_dir(root, ray_id);
    r = remove_all(root, dir, ATTEMPT_SECRETS, err); /* the one that is listed goes last */
    return r < 0 ? r : remove_all(root, PLACE, ray_id, err);
}

int fsroot_secrets_list(const char *root, struct strv *ret, struct err *err)
{
    DIR *dir = NULL;
    int r = rootfile_list(root, PLACE, &dir, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    for (struct dirent *e; ret->n < FILES_MAX && (e = readdir(dir));) {
        _cleanup_(freep) char *meant = meant_name(e->d_name);
        const char *name = meant ? meant : e->d_name;
        if (fsroot_is_name(name))
            strv_add(ret, name);
    }
    (void)closedir(dir); /* it was only read */
    return 0;
}
