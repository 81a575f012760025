/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.c - unpacks a git bundle; see bundle.h. The bundle's objects are outside bytes: git
 * checks each of them (index-pack --strict; 'bundle unbundle' checks none), sees no configuration
 * but ours, runs no hook, and has a deadline and ceilings of memory, time and bytes: a few objects
 * can unfold into any number of files, and a delta of 16 KiB into gigabytes. The repository is
 * where no job can write: its configuration may name programs, and git runs them. */
#define _GNU_SOURCE
#include "fsroot/content/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/content/bundle_head.h"
#include "fsroot/tree/dirtree.h"

enum {
    COPY_BYTES = 256 << 10,
    HEADERS_BYTES = 2048,
    NAMES_SHOWN = 5,
    MINUTES = 10,
    CPU_SECONDS = 300,
    MEMORY_MIB = 1024,
};
static const uint64_t HEADROOM = 512ULL << 20; /* of the disk that the store is on */

#define WORK_PREFIX "git-"

bool bundle_is(int fd)
{
    char head[16];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    return n == sizeof(head) &&
           (!memcmp(head, "# v2 git bundle\n", 16) || !memcmp(head, "# v3 git bundle\n", 16));
}

struct git {
    const char *dir; /* cwd of it */
    struct pairs env;
    int timer; /* readable when all of it has taken too long */
    struct child_limits limits;
};

/* What a child writes goes to a file, or into a buffer, up to a ceiling. */
struct sink {
    int fd; /* -1: text */
    struct buf *text;
    uint64_t left;
};

static int bundle_take(struct sink *s, const char *p, size_t n)
{
    if (n > s->left)
        return -EFBIG;
    s->left -= n;
    return s->fd >= 0 ? file_write_all(s->fd, p, n) : buf_add(s->text, p, n);
}

/* Until the other end closes. -ETIME: the deadline. */
static int bundle_drain(const struct git *g, int from, struct sink *to)
{
    _cleanup_(freep) char *bytes = xmalloc(COPY_BYTES);
    for (;;) {
        struct pollfd p[] = {{.fd = from, .events = POLLIN}, {.fd = g->timer, .events = POLLIN}};
        if (poll(p, array_len(p), -1) > 0 && p[1].revents)
            return -ETIME;
        ssize_t n = read(from, bytes, COPY_BYTES);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        int r = n > 0 ? bundle_take(to, bytes, (size_t)n) : 0;
        if (r < 0)
            return r;
    }
}

static int bundle_wait_for(const struct child *c, bool kill_it)
{
    int status = 0;
    if (kill_it)
        (void)kill(c->pid, SIGKILL); /* it may be over */
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (c->pidfd >= 0)
        (void)close(c->pidfd); /* only a handle */
    return status;
}

/* ERR_REFUSED with what git wrote to this file. */
static int bundle_tell_failure(int said, struct err *err)
{
    char why[200] = "it failed";
    ssize_t n = pread(said, why, sizeof(why) - 1, 0);
    if (n > 0)
        why[n] = 0;
    for (char *s = why; *s; s++)
        if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
            *s = ' ';
    for (size_t len = strlen(why); len && why[len - 1] == ' ';)
        why[--len] = 0;
    if (strstr(why, "ut of memory") || strstr(why, "mmap failed"))
        return message_refuse(err, ERR_REFUSED, "bundle_bomb",
                              MESSAGE_ARGS(MESSAGE_NUM("most", MEMORY_MIB)));
    return message_refuse(err, ERR_REFUSED, "bundle_unreadable",
                          MESSAGE_ARGS(MESSAGE_STR("why", why)));
}

static int tell_drain(int r, struct err *err)
{
    if (r == -EFBIG || r == -EMSGSIZE)
        return message_refuse(err, ERR_REFUSED, "bundle_too_large", MESSAGE_NO_ARGS);
    if (r == -ETIME)
        return message_refuse(err, ERR_REFUSED, "bundle_too_slow",
                              MESSAGE_ARGS(MESSAGE_NUM("minutes", MINUTES)));
    return message_refuse(err, r, "bundle_no_unpack",
                          MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))));
}

static int bundle_start(const struct git *g,
                        const char *const *argv,
                        int in,
                        int out,
                        int said,
                        struct child *ret,
                        struct err *err)
{
    struct child_spec spec = {.argv = argv,
                              .env = &g->env,
                              .cwd = g->dir,
                              .in = in,
                              .limits = &g->limits,
                              .out = out,
                              .err = said,
                              .flags = CHILD_DIE_WITH_PARENT};
    int r = child_start(&spec, ret, err);
    return r == -ENOENT ? message_refuse(err, ERR_REFUSED, "bundle_no_git", MESSAGE_NO_ARGS) : r;
}

/* Runs git; ERR_REFUSED with what it says when it fails. stdout goes to the sink. */
static int bundle_run(const struct git *g,
                      const char *const *argv,
                      int in,
                      struct sink *out,
                      struct err *err)
{
    int ends[2];
    struct child c;
    _cleanup_(freep) char *path = xasprintf("%s/git.err", g->dir);
    _cleanup_(closep) int said = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (said < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return message_refuse(err, -errno, "git_no_start",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    _cleanup_(closep) int from = ends[0];
    int r = bundle_start(g, argv, in, ends[1], said, &c, err);
    (void)close(ends[1]); /* the child has it */
    if (r < 0)
        return r;
    r = bundle_drain(g, from, out);
    int status = bundle_wait_for(&c, r < 0);
    if (r < 0)
        return tell_drain(r, err);
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGXFSZ))
        return message_refuse(
            err, ERR_REFUSED, "bundle_over",
            MESSAGE_ARGS(MESSAGE_STR("limit", WTERMSIG(status) == SIGXCPU ? "CPU time" : "bytes")));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : bundle_tell_failure(said, err);
}

/* ---- which commit ---- */

/* The commit of `name` in "<hash> <ref>\n" lines. */
static char *find_ref(const char *refs, const char *name)
{
    static const char *const prefixes[] = {"", "refs/tags/", "refs/heads/"};
    for (size_t i = 0; i < array_len(prefixes); i++) {
        _cleanup_(freep) char *want = xasprintf(" %s%s\n", prefixes[i], name);
        const char *at = strstr(refs, want);
        if (at) {
            const char *start = at;
            while (start > refs && start[-1] != '\n')
                start--;
            return xstrndup(start, (size_t)(at - start));
        }
    }
    return NULL;
}

static bool is_abbreviation(const char *s)
{
    size_t n = strlen(s);
    return n >= 7 && n <= 64 && strspn(s, "0123456789abcdef") == n;
}

static int refuse_several(const char *refs, struct err *err)
{
    struct buf names = BUF_INIT(200);
    int n = 0;
    for (const char *s = refs; *s && n < NAMES_SHOWN; n++) {
        const char *name = s + strcspn(s, " \n");
        size_t len = strcspn(name, "\n");
        (void)buf_addf(&names, "%s%.*s", n ? "," : "", (int)len, name); /* cut: fine */
        s = name + len + (name[len] == '\n');
    }
    int r = message_refuse(err, ERR_REFUSED, "bundle_branches",
                           MESSAGE_ARGS(MESSAGE_STR("branches", buf_str(&names))));
    buf_release(&names);
    return r;
}

static int bundle_choose(const struct git *g,
                         const char *refs,
                         const char *version,
                         char **ret,
                         struct err *err)
{
    if (!refs || !*refs)
        return message_refuse(err, ERR_REFUSED, "bundle_empty", MESSAGE_NO_ARGS);
    char *commit = version ? find_ref(refs, version) : NULL;
    if (!commit && version && is_abbreviation(version)) {
        struct buf text = BUF_INIT(200);
        _cleanup_(freep) char *what = xasprintf("%s^{commit}", version);
        const char *const argv[] = {
            "git", "-C", "repo", "rev-parse", "--verify", "--end-of-options", what, NULL};
        struct sink out = {.fd = -1, .text = &text, .left = 200};
        if (bundle_run(g, argv, -1, &out, NULL) == 0) {
            commit = xstrdup(buf_str(&text));
            commit[strcspn(commit, "\n")] = 0;
        }
        buf_release(&text);
    }
    if (!commit)
        commit = find_ref(refs, "HEAD");
    const char *end = strchr(refs, '\n');
    if (!commit && end && !end[1])
        commit = xstrndup(refs, strcspn(refs, " "));
    if (!commit)
        return refuse_several(refs, err);
    *ret = commit;
    return 0;
}

/* ---- all ---- */

static void set_env(struct git *g)
{
    static const char *const kept[] = {"PATH", "LD_LIBRARY_PATH", "TMPDIR"};
    for (size_t i = 0; i < array_len(kept); i++)
        if (getenv(kept[i]))
            pairs_set(&g->env, kept[i], getenv(kept[i]));
    pairs_set(&g->env, "HOME", g->dir);
    pairs_set(&g->env, "LC_ALL", "C");
    pairs_set(&g->env, "GIT_CONFIG_NOSYSTEM", "1");
    pairs_set(&g->env, "GIT_CONFIG_GLOBAL", "/dev/null");
    pairs_set(&g->env, "GIT_TERMINAL_PROMPT", "0");
}

/* In the repository nothing of the tree may say what git leaves out of it or puts into it. */
static int set_attributes(const struct git *g, struct err *err)
{
    static const char text[] = "* -export-ignore -export-subst\n";
    _cleanup_(freep) char *dir = xasprintf("%s/repo/info", g->dir);
    _cleanup_(freep) char *path = xasprintf("%s/attributes", dir);
    int r = file_mkdirs(dir, 0700, err);
    return r < 0 ? r : file_write(path, text, sizeof(text) - 1, 0600, 0, err);
}

static int read_head(int bundle, struct bundle_head *ret, struct err *err)
{
    _cleanup_(freep) char *text = xmalloc(BUNDLE_HEAD_MAX);
    size_t n = 0;
    int r = file_read_at(bundle, 0, text, BUNDLE_HEAD_MAX, &n);
    return r < 0 ? message_refuse(err, r, "bundle_no_read",
                                  MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))))
                 : bundle_head_read(text, n, ret, err);
}

/* The pack and its index take some more than the bundle, on the disk of the store. */
static int check_size(const struct git *g,
                      int bundle,
                      const struct unpack_limits *limits,
                      struct err *err)
{
    struct stat st;
    struct statvfs vfs;
    if (fstat(bundle, &st) < 0 || statvfs(g->dir, &vfs) < 0)
        return message_refuse(err, -errno, "bundle_no_look",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    uint64_t size = (uint64_t)st.st_size, room = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    if (size > limits->bytes)
        return limits->over
                   ? message_refuse_kept(err, ERR_REFUSED, limits->over)
                   : message_refuse(err, ERR_REFUSED, "bundle_itself_large", MESSAGE_NO_ARGS);
    if (room < HEADROOM || room - HEADROOM < size + size / 2)
        return message_refuse(err, ERR_NO_SPACE, "bundle_no_room", MESSAGE_NO_ARGS);
    return 0;
}

/* Takes the objects in, each of them looked at. */
static int take_pack(const struct git *g,
                     int bundle,
                     const struct bundle_head *h,
                     const struct unpack_limits *limits,
                     struct err *err)
{
    char most[64];
    struct buf text = BUF_INIT(HEADERS_BYTES);
    struct sink out = {.fd = -1, .text = &text, .left = HEADERS_BYTES};
    text_printf(most, "--max-input-size=%llu", (unsigned long long)limits->bytes);
    /* Faults of old programs that harm nobody are let pass. */
    const char *const argv[] = {
        "git",
        "-C",
        "repo",
        "-c",
        "core.deltaBaseCacheLimit=64m",
        "index-pack",
        "--strict=zeroPaddedFilemode=ignore,badTimezone=ignore,missingEmail=ignore",
        "--threads=1",
        most,
        "--stdin",
        NULL};
    int r = lseek(bundle, (off_t)h->size, SEEK_SET) < 0
                ? message_refuse(err, -errno, "bundle_no_read",
                                 MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))))
                : bundle_run(g, argv, bundle, &out, err);
    buf_release(&text);
    return r;
}

static int to_tar(struct git *g,
                  int bundle,
                  const struct bundle_head *h,
                  const char *version,
                  const struct unpack_limits *limits,
                  int tar,
                  struct err *err)
{
    const char *const init[] = {
        "git",    "init",        "-q",
        "--bare", "--template=", h->is_sha256 ? "--object-format=sha256" : "--object-format=sha1",
        "repo",   NULL};
    struct buf said = BUF_INIT(HEADERS_BYTES);
    struct sink text = {.fd = -1, .text = &said, .left = HEADERS_BYTES};
    struct sink file = {.fd = tar,
                        .left = limits->bytes + (uint64_t)HEADERS_BYTES * limits->entries};
    _cleanup_(freep) char *commit = NULL;
    int r = bundle_run(g, init, -1, &text, err);
    buf_release(&said);
    if (r == 0)
        r = set_attributes(g, err);
    if (r == 0)
        r = take_pack(g, bundle, h, limits, err);
    if (r == 0)
        r = bundle_choose(g, h->refs, version, &commit, err);
    const char *const archive[] = {"git",
                                   "-C",
                                   "repo",
                                   "-c",
                                   "core.attributesFile=/dev/null",
                                   "-c",
                                   "core.packedGitWindowSize=32m",
                                   "-c",
                                   "core.packedGitLimit=256m",
                                   "archive",
                                   "--format=tar",
                                   commit,
                                   NULL};
    return r < 0 ? r : bundle_run(g, archive, -1, &file, err);
}

static int run_all(struct git *g,
                   int bundle,
                   const char *version,
                   const struct unpack_limits *limits,
                   int tar,
                   struct err *err)
{
    static const struct itimerspec after = {.it_value = {.tv_sec = MINUTES * 60}};
    _cleanup_(bundle_head_release) struct bundle_head head = {0};
    _cleanup_(closep) int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int r = timer < 0 || timerfd_settime(timer, 0, &after, NULL) < 0
                ? message_refuse(err, -errno, "git_no_deadline",
                                 MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))))
                : check_size(g, bundle, limits, err);
    g->timer = timer;
    if (r == 0)
        r = read_head(bundle, &head, err);
    return r < 0 ? r : to_tar(g, bundle, &head, version, limits, tar, err);
}

int bundle_to_tar(int bundle,
                  const char *work,
                  const char *version,
                  const struct unpack_limits *limits,
                  int tar,
                  struct err *err)
{
    _cleanup_(freep) char *dir = xasprintf("%s/" WORK_PREFIX "XXXXXX", work);
    if (!mkdtemp(dir)) /* 0700 */
        return message_refuse(
            err, -errno, "git_no_place",
            MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_STR("why", strerror(errno))));
    struct git g = {.dir = dir,
                    .timer = -1,
                    .limits = {.memory_bytes = (uint64_t)MEMORY_MIB << 20,
                               .file_bytes = limits->bytes + HEADROOM,
                               .cpu_seconds = CPU_SECONDS}};
    set_env(&g);
    int r = run_all(&g, bundle, version, limits, tar, err);
    pairs_release(&g.env);
    (void)dirtree_remove(dir, NULL); /* else the next start sweeps it */
    return r;
}

void bundle_sweep(const char *work)
{
    DIR *dir = opendir(work);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (str_starts(e->d_name, WORK_PREFIX))
            (void)dirtree_remove_at(dirfd(dir), e->d_name, NULL); /* the next start tries again */
    if (dir)
        (void)closedir(dir); /* it was only read */
}
