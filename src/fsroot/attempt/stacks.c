/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - asks the nodes of an attempt where its processes stand; see stacks.h.
 *
 * What is in there the nodes wrote, whose job may write too: names are plain files of a listed
 * directory, and everything read has a ceiling. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/stacks.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { ENTRIES_MAX = 100000 };
#define END ".json"

/* Calls for each plain name in the directory; that there is none is fine. */
static int each_name(const char *root,
                     const char *dir,
                     void (*call)(const char *name, void *arg),
                     void *arg,
                     struct err *err)
{
    DIR *d = NULL;
    const struct dirent *e;
    int r = rootfile_list(root, dir, &d, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    for (int n = 0; n < ENTRIES_MAX && (e = readdir(d)); n++)
        if (e->d_name[0] != '.')
            call(e->d_name, arg);
    (void)closedir(d); /* only read */
    return 0;
}

/* "7.ask": 7 */
static void note_number(const char *name, void *arg)
{
    int64_t n, *most = arg;
    size_t len = strlen(name);
    if (!str_ends(name, ".ask"))
        return;
    _cleanup_(freep) char *digits = xstrndup(name, len - strlen(".ask"));
    if (str_to_int(digits, 1, FSROOT_STACKS_MOST, &n, NULL) == 0 && n > *most)
        *most = n;
}

int fsroot_stacks_ask(const char *root,
                      const char *job,
                      int attempt,
                      const char *text,
                      int *ret_n,
                      struct err *err)
{
    int64_t most = 0;
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(freep) char *dir = fsroot_attempt_dir(root, job, attempt, ATTEMPT_STACKS);
    int r = rootfile_mkdirs(root, dir, 0755, err);
    if (r == 0)
        r = each_name(root, dir, note_number, &most, err);
    if (r == 0 && most >= FSROOT_STACKS_MOST)
        r = message_refuse(
            err, -EMSGSIZE, "stacks_asked",
            MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_NUM("most", FSROOT_STACKS_MOST)));
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = xasprintf("%s/%d.ask", dir, (int)most + 1);
    r = rootfile_write(root, path, 0, text, strlen(text), 0644, 0, err);
    if (r == 0)
        *ret_n = (int)most + 1;
    return r;
}

/* "w1.json": the node */
static void stacks_note_node(const char *name, void *arg)
{
    struct strv *nodes = arg;
    if (!str_ends(name, END) || nodes->n == FSROOT_STACKS_NODES)
        return;
    _cleanup_(freep) char *node = xstrndup(name, strlen(name) - strlen(END));
    strv_add(nodes, node);
}

int fsroot_stacks_answers(const char *root,
                          const char *job,
                          int attempt,
                          int n,
                          struct strv *ret,
                          struct err *err)
{
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(freep) char *name = xasprintf(ATTEMPT_STACKS "/%d", n);
    _cleanup_(freep) char *at = fsroot_attempt_dir(root, job, attempt, name);
    return each_name(root, at, stacks_note_node, ret, err);
}

int fsroot_scouts_list(const char *root,
                       const char *job,
                       int attempt,
                       struct pairs *ret,
                       struct err *err)
{
    _cleanup_(strv_release) struct strv nodes = {0};
    struct stat st;
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(freep) char *dir = fsroot_attempt_dir(root, job, attempt, ATTEMPT_SCOUTS);
    int r = each_name(root, dir, stacks_note_node, &nodes, err);
    for (size_t i = 0; i < nodes.n && r == 0; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s" END, dir, nodes.v[i]);
        r = rootfile_look(root, path, &st);
        if (r < 0 && !file_is_absence(r))
            return message_refuse(
                err, r, "disk_no_look",
                MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-r))));
        if (r < 0) { /* it has just gone */
            r = 0;
            continue;
        }
        _cleanup_(freep) char *at =
            xasprintf("%lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        pairs_set(ret, nodes.v[i], at);
    }
    return r;
}

int fsroot_stacks_read(const char *root,
                       const char *job,
                       int attempt,
                       int n,
                       const char *node,
                       struct buf *out,
                       struct err *err)
{
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(freep) char *name = xasprintf(ATTEMPT_STACKS "/%d/%s" END, n, node);
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, name);
    return rootfile_read(root, path, out, err);
}
