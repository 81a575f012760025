/* SPDX-License-Identifier: Apache-2.0 */
/* pack_list.c - see pack_list.h. git says what belongs to its work tree; without git, and in what
 * git does not look into (another work tree inside), we read the .gitignore files ourselves. */
#define _GNU_SOURCE
#include "argus/transfer/pack_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "core/check/gitignore.h"
#include "core/check/manifest.h"
#include "core/spec/snapshot.h"

enum { LIST_BYTES = 256 << 20, IGNORE_BYTES = 1 << 20 };

/* ---- our own walk ---- */

struct walk {
    int top;
    struct gitignore *rules;
    struct strv *out;
    struct err *err;
};

/* Without the rules that cannot be read, what they keep back would be sent. A link or a directory
 * of that name has none, as git sees it. */
static int read_rules(struct walk *w, int dir, const char *rel)
{
    struct buf text = BUF_INIT(IGNORE_BYTES);
    _cleanup_(closep) int fd = openat(dir, ".gitignore", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char bytes[4096], shown[SNAPSHOT_SHOWN];
    ssize_t n = fd < 0 ? -1 : 0;
    while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
        (void)buf_add(&text, bytes, (size_t)n); /* a giant one counts as far as it was read */
    int error = n < 0 ? errno : 0;
    if (text.len && !error)
        gitignore_add(w->rules, rel, buf_str(&text), text.len);
    buf_release(&text);
    if (!error || file_is_absence(-error) || error == ELOOP || error == EISDIR)
        return 0;
    return message_refuse(w->err, -error, "disk_no_read_in",
                          MESSAGE_ARGS(MESSAGE_STR("dir", snapshot_show(*rel ? rel : ".", shown)),
                                       MESSAGE_STR("name", ".gitignore"),
                                       MESSAGE_STR("why", strerror(error))));
}

static int walk(struct walk *w, const char *rel, int depth);

/* type: of struct dirent; some file systems do not tell it. */
static int meet(struct walk *w, const char *rel, unsigned char type, int depth)
{
    struct stat st;
    char shown[SNAPSHOT_SHOWN];
    if (type == DT_UNKNOWN && fstatat(w->top, rel, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT
                   ? 0
                   : message_refuse(w->err, -errno, "disk_no_read",
                                    MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(rel, shown)),
                                                 MESSAGE_STR("why", strerror(errno))));
    bool is_dir = type == DT_UNKNOWN ? S_ISDIR(st.st_mode) : type == DT_DIR;
    if (gitignore_skips(w->rules, rel, is_dir))
        return 0;
    if (is_dir)
        return walk(w, rel, depth + 1);
    if (w->out->n >= MANIFEST_ENTRIES_MAX)
        return message_refuse(w->err, ERR_REFUSED, "cli_tree_many",
                              MESSAGE_ARGS(MESSAGE_NUM("most", MANIFEST_ENTRIES_MAX)));
    strv_add(w->out, rel);
    return 0;
}

static int walk(struct walk *w, const char *rel, int depth)
{
    char shown[SNAPSHOT_SHOWN];
    size_t before = gitignore_count(w->rules);
    int fd = openat(w->top, *rel ? rel : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d || depth > SNAPSHOT_DEPTH_MAX) {
        int r = d ? message_refuse(w->err, ERR_REFUSED, "cli_deep",
                                   MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(rel, shown)),
                                                MESSAGE_NUM("most", SNAPSHOT_DEPTH_MAX)))
                  : message_refuse(w->err, -errno, "disk_no_read",
                                   MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(rel, shown)),
                                                MESSAGE_STR("why", strerror(errno))));
        if (d)
            (void)closedir(d); /* it was only read */
        return r;
    }
    int r = read_rules(w, fd, rel);
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, ".git"))
            continue;
        _cleanup_(freep) char *path = xasprintf("%s%s%s", rel, *rel ? "/" : "", e->d_name);
        r = meet(w, path, e->d_type, depth);
    }
    (void)closedir(d); /* it was only read */
    gitignore_cut(w->rules, before);
    return r;
}

static int walk_from(int fd, const char *rel, struct strv *ret, struct err *err)
{
    struct walk w = {.top = fd, .rules = gitignore_new(), .out = ret, .err = err};
    int r = walk(&w, rel, 0);
    gitignore_free(w.rules);
    return r;
}

/* ---- git's list ---- */

/* What it writes; false: there is no git, or this is no work tree. */
static bool ask_git(const char *dir, struct buf *out)
{
    static const char *const argv[] = {"git", "ls-files",           "-z", "-c",
                                       "-o",  "--exclude-standard", NULL};
    int ends[2], status = -1;
    struct child c;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    struct child_spec spec = {.argv = argv, .cwd = dir, .in = -1, .out = ends[1], .err = -1};
    int r = child_start(&spec, &c, NULL);
    (void)close(ends[1]); /* the child has it */
    char bytes[64 << 10];
    for (ssize_t n; r == 0 && (n = read(ends[0], bytes, sizeof(bytes))) != 0;)
        if (n > 0)
            (void)buf_add(out, bytes, (size_t)n); /* failed is looked at below */
        else if (errno != EINTR)
            break;
    (void)close(ends[0]); /* it was only read */
    if (r < 0)
        return false;
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
        ;
    closep(&c.pidfd);
    return !out->failed && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A file that is gone is no file; a directory is another work tree. */
static int add_listed(int fd,
                      const char *path,
                      const struct pack_tell *tell,
                      struct strv *ret,
                      struct err *err)
{
    struct stat st;
    struct err empty = {0};
    _cleanup_(freep) char *rel = xstrdup(path);
    size_t n = strlen(rel);
    if (n && rel[n - 1] == '/')
        rel[n - 1] = 0;
    if (fstatat(fd, rel, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        char shown[SNAPSHOT_SHOWN];
        return file_is_absence(-errno)
                   ? 0
                   : message_refuse(err, -errno, "disk_no_read",
                                    MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(rel, shown)),
                                                 MESSAGE_STR("why", strerror(errno))));
    }
    if (!S_ISDIR(st.st_mode)) {
        strv_add(ret, rel);
        return 0;
    }
    size_t before = ret->n;
    int r = walk_from(fd, rel, ret, err);
    if (r == 0 && ret->n == before) {
        (void)message_refuse(&empty, ERR_REFUSED, "cli_pack_submodule",
                             MESSAGE_ARGS(MESSAGE_STR("path", rel))); /* fills it */
        tell->say(&empty, tell->arg);
    }
    return r;
}

int pack_list(const char *dir,
              int fd,
              const struct pack_tell *tell,
              struct strv *ret,
              struct err *err)
{
    struct buf listed = BUF_INIT(LIST_BYTES);
    int r = 0;
    if (!ask_git(dir, &listed)) {
        r = walk_from(fd, "", ret, err);
    } else {
        const char *s = buf_str(&listed), *end = s + listed.len;
        for (; r == 0 && s < end; s += strlen(s) + 1)
            r = add_listed(fd, s, tell, ret, err);
    }
    buf_release(&listed);
    return r;
}
