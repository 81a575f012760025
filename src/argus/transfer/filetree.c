/* SPDX-License-Identifier: Apache-2.0 */
/* filetree.c - see filetree.h. A file that came down gets the time that it has on the server: one
 * of the same size and time is the same. What went up is noted in a log (filetree_log.h). The
 * server's names are outside bytes: none of them leads out of the directory that is filled. */
#define _GNU_SOURCE
#include "argus/transfer/filetree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argus/cli/cli.h"
#include "argus/show/member.h"
#include "argus/transfer/filetree_log.h"
#include "argus/transfer/progress.h"
#include "base/message.h"
#include "base/str.h"

enum { DEPTH_MAX = 64, ENTRIES_MAX = 200000, FILES_MAX = 1000000 };

struct tree {
    struct cli *cli;
    unsigned flags;
    struct filetree_done *done;
    struct err *err;
};

static char *below(const char *dir, const char *name)
{
    return xasprintf("%s%s%s", dir, *dir && !str_ends(dir, "/") ? "/" : "", name);
}

static void leave_out(struct tree *t, const char *path, const char *why)
{
    t->done->left_out++;
    cli_talk(t->cli, "'%s' is left out: %s", path, why);
}

/* ---- get ---- */

static bool is_name(const char *name)
{
    bool good = *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    for (const char *s = name; *s && good; s++)
        good = (unsigned char)*s >= 0x20 && *s != 0x7f;
    return good;
}

static struct timespec to_timespec(usec_t at)
{
    return (struct timespec){.tv_sec = (time_t)(at / USEC_SEC),
                             .tv_nsec = (long)(at % USEC_SEC) * 1000};
}

static bool filetree_is_same(const char *to, int64_t bytes, usec_t changed_at)
{
    struct stat st;
    struct timespec then = to_timespec(changed_at);
    return changed_at && lstat(to, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == bytes &&
           st.st_mtim.tv_sec == then.tv_sec && st.st_mtim.tv_nsec == then.tv_nsec;
}

static int get_file(struct tree *t, const json_t *e, const char *path, const char *to)
{
    int64_t bytes = json_get_int(e, "bytes", 0);
    usec_t changed_at = when_get(e, "changed_at");
    if (filetree_is_same(to, bytes, changed_at)) {
        t->done->before++;
        return 0;
    }
    int r = filecall_get(t->cli, path, to, t->flags, t->err);
    if (r < 0)
        return r;
    struct timespec times[2] = {to_timespec(changed_at), to_timespec(changed_at)};
    if (changed_at)
        (void)utimensat(AT_FDCWD, to, times, AT_SYMLINK_NOFOLLOW); /* else it comes again */
    t->done->files++;
    t->done->bytes += (uint64_t)bytes;
    return 0;
}

static int get_dir(struct tree *t, const char *path, const char *to, int depth);

static int get_entry(struct tree *t, const json_t *e, const char *path, const char *to, int depth)
{
    const char *name = json_get_str(e, "name", ""), *kind = json_get_str(e, "kind", "");
    _cleanup_(freep) char *there = below(path, name);
    _cleanup_(freep) char *here = below(to, name);
    if (!is_name(name) || json_get_bool(e, "odd", false)) {
        leave_out(t, path, "a name in it cannot be written here");
        return 0;
    }
    if (str_eq(kind, "directory"))
        return get_dir(t, there, here, depth + 1);
    if (str_eq(kind, "file"))
        return get_file(t, e, there, here);
    leave_out(t, there, str_eq(kind, "link") ? "it is a link" : "it is not a file");
    return 0;
}

/* A link that stands in the way leads to where the user wants it: only at the top. */
static int make_dir(struct tree *t, const char *to, int depth)
{
    struct stat st;
    if (mkdir(to, 0755) == 0)
        return 0;
    int error = errno;
    int r = depth ? lstat(to, &st) : stat(to, &st);
    if (error == EEXIST && r == 0 && S_ISDIR(st.st_mode))
        return 0;
    return message_refuse(
        t->err, ERR_USAGE, "cli_no_mkdir",
        MESSAGE_ARGS(MESSAGE_STR("path", to), MESSAGE_STR("why", strerror(error))));
}

static int get_dir(struct tree *t, const char *path, const char *to, int depth)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    size_t i;
    json_t *e;
    if (depth > DEPTH_MAX)
        return message_refuse(
            t->err, ERR_REFUSED, "cli_deep",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_NUM("most", DEPTH_MAX)));
    int r = filecall_look(t->cli, path, ENTRIES_MAX, &v, t->err);
    if (r == 0 && !str_eq(json_get_str(v, "kind", ""), "directory"))
        r = message_refuse(t->err, ERR_USAGE, "cli_no_directory",
                           MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if (r == 0)
        r = make_dir(t, to, depth);
    if (r < 0)
        return r;
    json_array_foreach (json_get_array(v, "entries"), i, e) {
        r = get_entry(t, e, path, to, depth);
        if (r < 0)
            return r;
    }
    return 0;
}

int filetree_get(struct cli *cli,
                 const char *path,
                 const char *to,
                 unsigned flags,
                 struct filetree_done *ret,
                 struct err *err)
{
    struct tree t = {.cli = cli, .flags = flags, .done = ret, .err = err};
    return get_dir(&t, path, to, 0);
}

/* ---- put ---- */

static int filetree_list(struct tree *t,
                         const char *dir,
                         const char *rel,
                         int depth,
                         struct strv *ret);

static int list_entry(struct tree *t, const char *dir, const char *rel, int depth, struct strv *ret)
{
    struct stat st;
    _cleanup_(freep) char *path = below(dir, rel);
    if (lstat(path, &st) < 0)
        return message_refuse(
            t->err, ERR_USAGE, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    if (S_ISDIR(st.st_mode))
        return filetree_list(t, dir, rel, depth + 1, ret);
    if (!S_ISREG(st.st_mode)) {
        leave_out(t, path, S_ISLNK(st.st_mode) ? "it is a link" : "it is not a file");
        return 0;
    }
    if (ret->n >= FILES_MAX)
        return message_refuse(
            t->err, ERR_REFUSED, "cli_many_files",
            MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_NUM("most", FILES_MAX)));
    strv_add(ret, rel);
    return 0;
}

static int filetree_list(struct tree *t,
                         const char *dir,
                         const char *rel,
                         int depth,
                         struct strv *ret)
{
    _cleanup_(freep) char *path = below(dir, rel);
    if (depth > DEPTH_MAX)
        return message_refuse(
            t->err, ERR_REFUSED, "cli_deep",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_NUM("most", DEPTH_MAX)));
    DIR *d = opendir(path);
    int r = 0;
    if (!d)
        return message_refuse(
            t->err, ERR_USAGE, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        _cleanup_(freep) char *name = below(rel, e->d_name);
        r = list_entry(t, dir, name, depth, ret);
    }
    (void)closedir(d); /* it was only read */
    return r;
}

static int filetree_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An earlier call brought it, and it is there still. */
static bool was_put(struct tree *t,
                    const struct filetree_log *log,
                    const char *rel,
                    const struct stat *st,
                    const char *goal)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    return filetree_log_has(log, rel, st) && filecall_look(t->cli, goal, 1, &v, NULL) == 0 &&
           str_eq(json_get_str(v, "kind", ""), "file") &&
           json_get_int(v, "bytes", -1) == st->st_size;
}

static int filetree_put_file(struct tree *t,
                             struct filetree_log *log,
                             const char *from,
                             const char *to,
                             const char *rel)
{
    struct stat st;
    _cleanup_(freep) char *path = below(from, rel);
    _cleanup_(freep) char *goal = below(to, rel);
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (lstat(path, &st) < 0)
        return message_refuse(
            t->err, ERR_USAGE, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    if (was_put(t, log, rel, &st, goal)) {
        t->done->before++;
        return 0;
    }
    int r = filecall_put(t->cli, path, goal, t->flags | FILECALL_PARENTS, &v, t->err);
    if (r < 0)
        return r;
    filetree_log_add(log, rel, &st);
    t->done->files++;
    t->done->bytes += (uint64_t)st.st_size;
    (void)fprintf(t->cli->out, "%s\n", member_str(v, "path"));
    return 0;
}

int filetree_put(struct cli *cli,
                 const char *from,
                 const char *path,
                 unsigned flags,
                 struct filetree_done *ret,
                 struct err *err)
{
    struct tree t = {.cli = cli, .flags = flags, .done = ret, .err = err};
    _cleanup_(strv_release) struct strv files = {0};
    int r = filetree_list(&t, from, "", 0, &files);
    if (r == 0 && !files.n)
        r = message_refuse(err, ERR_REFUSED, "cli_no_file_in",
                           MESSAGE_ARGS(MESSAGE_STR("path", from)));
    if (r < 0)
        return r;
    xsort(files.v, files.n, sizeof(char *), filetree_by_name);
    struct filetree_log *log = filetree_log_open(str_or(cli->settings.server, ""), from, path);
    for (size_t i = 0; i < files.n && r == 0; i++)
        r = filetree_put_file(&t, log, from, path, files.v[i]);
    filetree_log_close(log, r == 0);
    return r;
}

/* ---- both ---- */

void filetree_tell(struct cli *cli, const struct filetree_done *done)
{
    char size[PROGRESS_SIZE_MAX];
    cli_talk(cli, "%" PRIu64 " file%s, %s", done->files, done->files == 1 ? "" : "s",
             progress_size((double)done->bytes, size));
    if (done->before)
        cli_talk(cli, "%" PRIu64 " more %s there already, from an earlier call", done->before,
                 done->before == 1 ? "was" : "were");
    if (done->left_out)
        cli_talk(cli, "%" PRIu64 " left out", done->left_out);
}
