/* SPDX-License-Identifier: Apache-2.0 */
/* copier.c - copies the workers' logs to the shared root; see copier.h.
 *
 * Nothing stays open between turns: a node can have thousands of these logs. A chunk is written
 * at a place that follows from what was written before it, so after a failure the same chunk goes
 * to the same place again. One veil serves all files: what it keeps back of one is handed back and
 * read again at the next turn. */
#define _GNU_SOURCE
#include "shepherd/scout/copier.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "shepherd/host/peek.h"

enum { CHUNK = 256 << 10, HEAD = 4 << 10, LINE_SEARCH = 64 << 10, NAMES_MAX = 1 << 20 };
static const char NAMES[] = "ranks.json";
static const char DIGITS[] = "0123456789";

void copier_init(struct copier *c,
                 const char *from,
                 const char *to,
                 struct veil *veil,
                 struct peek *peek)
{
    *c = (struct copier){.from = xstrdup(from),
                         .to = xstrdup(to),
                         .veil = veil,
                         .peek = peek,
                         .first = COPIER_FIRST,
                         .next = COPIER_NEXT,
                         .room = COPIER_ROOM,
                         .is_named = true};
}

void copier_release(struct copier *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].name);
        free(c->v[i].actor);
        free(c->v[i].rank);
    }
    free(c->v);
    free(c->from);
    free(c->to);
    strv_release(&c->marks);
    strv_release(&c->jobs);
    *c = (struct copier){0};
}

void copier_mark(struct copier *c, const char *mark)
{
    size_t n = strspn(mark, "0123456789abcdef"), digits = strspn(mark + n + (mark[n] != 0), DIGITS);
    if (!n || mark[n] != '-' || !digits || mark[n + 1 + digits] || strv_has(&c->marks, mark))
        return;
    strv_add(&c->marks, mark);
    c->seen = 0; /* list the directory again */
}

/* "worker-….out.<offset>" of a log that is here. */
static bool is_own_segment(const struct copier *c, const char *name)
{
    const char *dot = strrchr(name, '.');
    struct copier_file f;
    if (!dot || !dot[1] || dot[1 + strspn(dot + 1, DIGITS)])
        return false;
    _cleanup_(freep) char *log = xstrndup(name, (size_t)(dot - name));
    _cleanup_(freep) char *path = xasprintf("%s/%s", c->from, log);
    return copier_parse(log, &f) && access(path, F_OK) == 0;
}

static bool remove_own(int dir, const char *name, void *arg)
{
    const struct copier *c = arg;
    if (is_own_segment(c, name))
        (void)unlinkat(dir, name, 0); /* one that stays is written over */
    return true;
}

void copier_start_over(struct copier *c)
{
    file_each_name(c->to, remove_own, c);
}

/* ---- finding the files ---- */

/* Hex digits up to a dash into text, and *s behind the dash. */
static bool take_hex(const char **s, char *text, size_t size)
{
    size_t n = strspn(*s, "0123456789abcdef");
    if (!n || n >= size || (*s)[n] != '-')
        return false;
    memcpy(text, *s, n);
    text[n] = 0;
    *s += n + 1;
    return true;
}

bool copier_parse(const char *name, struct copier_file *f)
{
    static const char prefix[] = "worker-";
    const char *s = name + sizeof(prefix) - 1;
    if (!str_starts(name, prefix) || !take_hex(&s, f->worker, sizeof(f->worker)) ||
        !take_hex(&s, f->job, sizeof(f->job)))
        return false;
    size_t n = strspn(s, DIGITS);
    if (!n || n > 9 || (strcmp(s + n, ".out") != 0 && strcmp(s + n, ".err") != 0))
        return false;
    f->pid = (pid_t)strtol(s, NULL, 10);
    return true;
}

static bool copier_is_known(const struct copier *c, const char *name, pid_t pid)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].pid == pid && str_eq(c->v[i].name, name))
            return true;
    return false;
}

static bool copier_is_ours(const struct copier *c, const struct copier_file *f)
{
    char mark[32];
    if (strv_has(&c->jobs, f->job))
        return true;
    text_printf(mark, "%s-%d", f->job, (int)f->pid);
    return strv_has(&c->marks, mark);
}

/* A process that does not answer is asked again at the next turn. */
static void find_rank(struct copier *c, struct copier_file *f)
{
    if (f->has_said_rank || !c->peek)
        return;
    f->has_said_rank = peek_env(c->peek, f->pid, "RANK", &f->rank) != -ETIME;
    if (f->rank)
        c->is_named = false;
}

static void copier_add_file(struct copier *c, const struct copier_file *f, const char *name)
{
    if (c->n == COPIER_FILES_MAX) {
        c->left_out++;
        return;
    }
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 64;
        c->v = xrealloc(c->v, c->cap, sizeof(*c->v));
    }
    struct copier_file *add = &c->v[c->n++];
    *add = *f;
    add->name = xstrdup(name);
    c->is_named = false;
}

/* The directory's time of change, or 0 while it is too recent to be trusted: a file that is
 * created in the same moment as the listing does not change it again. */
static uint64_t changed_at(int dir)
{
    struct stat st;
    if (fstat(dir, &st) < 0)
        return 0;
    uint64_t at = (uint64_t)st.st_mtim.tv_sec * USEC_SEC + (uint64_t)st.st_mtim.tv_nsec / 1000;
    return at + 2 * USEC_SEC < clock_wall() ? at : 0;
}

static void find_files(struct copier *c)
{
    DIR *dir = c->marks.n ? opendir(c->from) : NULL;
    if (!dir)
        return;
    uint64_t at = changed_at(dirfd(dir));
    if (!at || at != c->seen) {
        c->left_out = 0;
        for (struct dirent *e; (e = readdir(dir));) {
            struct copier_file f = {0};
            if (copier_parse(e->d_name, &f) && copier_is_ours(c, &f) &&
                !copier_is_known(c, e->d_name, f.pid))
                copier_add_file(c, &f, e->d_name);
        }
        c->seen = at;
    }
    (void)closedir(dir); /* it was only read */
}

/* ---- what is known of the workers ---- */

/* Ray begins the log of an actor with ":actor_name:<class>" lines. */
static void find_actor(struct copier *c, struct copier_file *f, int fd)
{
    static const char mark[] = ":actor_name:";
    char head[HEAD + 1];
    if (f->actor)
        return;
    ssize_t n = pread(fd, head, HEAD, 0);
    head[n > 0 ? n : 0] = 0;
    const char *s = strstr(head, mark);
    size_t len = s ? strcspn(s + sizeof(mark) - 1, "\r\n") : 0;
    if (!s || !s[sizeof(mark) - 1 + len] || !len)
        return;
    f->actor = xstrndup(s + sizeof(mark) - 1, len < 200 ? len : 200);
    c->is_named = false;
}

static void write_names(struct copier *c)
{
    int64_t rank;
    _cleanup_(freep) char *path = xasprintf("%s/%s", c->to, NAMES);
    _cleanup_(buf_release) struct buf out = BUF_INIT(NAMES_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < c->n; i++) {
        const struct copier_file *f = &c->v[i];
        if (!f->is_begun)
            continue;
        jout_open(&j, f->name, '{');
        jout_int(&j, "pid", f->pid);
        jout_str(&j, "worker", f->worker);
        jout_str(&j, "job", f->job);
        jout_str(&j, "actor", f->actor);
        if (f->rank && str_to_int(f->rank, 0, INT32_MAX, &rank, NULL) == 0)
            jout_int(&j, "rank", rank);
        jout_close(&j, '}');
    }
    jout_close(&j, '}');
    c->is_named = out.failed || file_write(path, buf_str(&out), out.len, 0644, 0, NULL) == 0;
}

/* ---- one file ---- */

static char *copier_segment_path(const struct copier *c,
                                 const struct copier_file *f,
                                 uint64_t begin)
{
    return begin ? xasprintf("%s/%s.%" PRIu64, c->to, f->name, begin)
                 : xasprintf("%s/%s", c->to, f->name);
}

static bool is_room_used_up(const struct copier *c)
{
    return c->stored >= c->room;
}

static uint64_t ceiling(const struct copier *c, const struct copier_file *f)
{
    uint64_t max = f->begin ? c->next : c->first;
    return is_room_used_up(c) && max > COPIER_SMALL ? COPIER_SMALL : max;
}

/* At the place where it belongs, in the segment of now. */
static int copier_put(struct copier *c, struct copier_file *f, const char *p, size_t n)
{
    _cleanup_(freep) char *path = copier_segment_path(c, f, f->begin);
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (f->at == f->begin ? O_TRUNC : 0);
    _cleanup_(closep) int fd = open(path, flags, 0644);
    if (fd < 0 && errno == ENOENT && file_mkdirs(c->to, 0755, NULL) == 0)
        fd = open(path, flags, 0644);
    if (fd < 0)
        return -errno;
    int r = file_write_at(fd, f->at - f->begin, p, n);
    if (r < 0)
        return r;
    int end = dup(fd); /* what a remote root refuses late it says at the close */
    if (end >= 0 && close(end) < 0)
        return -errno;
    f->at += n;
    f->stored += n;
    return 0;
}

/* The oldest of them goes when there are too many. */
static void keep_newest(struct copier *c, struct copier_file *f)
{
    size_t kept = is_room_used_up(c) ? 1 : COPIER_KEPT;
    for (size_t i = kept - 1; i < COPIER_KEPT; i++) {
        struct stat st;
        _cleanup_(freep) char *path = copier_segment_path(c, f, f->left[i]);
        if (f->left[i] && stat(path, &st) == 0 && unlink(path) == 0) {
            uint64_t n = (uint64_t)st.st_size < f->stored ? (uint64_t)st.st_size : f->stored;
            f->stored -= n;
            f->removed += n;
        }
        f->left[i] = 0;
    }
}

/* dropped: 0 when that is not known. */
static int copier_tell_gap(struct copier *c, struct copier_file *f, uint64_t dropped)
{
    char line[160];
    int n = dropped ? snprintf(line, sizeof(line),
                               "[argus] %" PRIu64 " bytes of output dropped here: it came faster "
                               "than it could be copied\n",
                               dropped)
                    : snprintf(line, sizeof(line),
                               "[argus] this log is long: its beginning and its newest parts are "
                               "kept, the bytes of output dropped here are those between\n");
    f->is_cut = false;
    return copier_put(c, f, line, (size_t)n);
}

static int begin_segment(struct copier *c, struct copier_file *f, uint64_t dropped)
{
    for (size_t i = COPIER_KEPT - 1; i > 0; i--)
        f->left[i] = f->left[i - 1];
    f->left[0] = f->begin;
    keep_newest(c, f);
    f->at += dropped;
    bool is_second = !f->begin && !dropped;
    f->begin = f->at;
    /* Nothing is ever dropped in front of the second while it is there. */
    return is_second ? 0 : copier_tell_gap(c, f, dropped);
}

/* n bytes that may be shown. */
static int copier_add(struct copier *c, struct copier_file *f, const char *p, size_t n)
{
    int r = n && f->is_cut ? copier_tell_gap(c, f, 0) : 0;
    if (r < 0)
        return r;
    while (n) {
        uint64_t used = f->at - f->begin, max = ceiling(c, f);
        size_t room = used < max ? (size_t)(max - used) : 0, take = n < room ? n : room;
        const char *end = take < n && take ? memrchr(p, '\n', take) : NULL;
        if (end) /* the next segment begins with a line */
            take = (size_t)(end + 1 - p);
        r = take ? copier_put(c, f, p, take) : 0;
        p += take;
        n -= take;
        if (r == 0 && n)
            r = begin_segment(c, f, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The log grew faster than it was copied: its newest part is worth more than its middle. */
static int jump(struct copier *c, struct copier_file *f, int fd, uint64_t size)
{
    uint64_t keep = is_room_used_up(c) ? COPIER_SMALL : c->next;
    if (f->at < ceiling(c, f) || size - f->read <= (COPIER_KEPT + 1) * c->next)
        return 0;
    char text[LINE_SEARCH];
    uint64_t to = size - keep;
    ssize_t n = pread(fd, text, sizeof(text), (off_t)to);
    const char *end = n > 0 ? memchr(text, '\n', (size_t)n) : NULL;
    if (end)
        to += (uint64_t)(end + 1 - text);
    uint64_t dropped = to - f->read;
    f->read = to;
    return begin_segment(c, f, dropped);
}

/* Copies one chunk. Returns how many bytes of the source are done, or a negative errno. */
static ssize_t copy_chunk(struct copier *c, struct copier_file *f, int fd, bool last, char *chunk)
{
    const char *p = chunk;
    ssize_t n = pread(fd, chunk, CHUNK, (off_t)f->read);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    size_t shown = (size_t)n, back = 0;
    if (c->veil) {
        shown = veil_pass(c->veil, chunk, (size_t)n, &p);
        back = last && n < CHUNK ? 0 : veil_hand_back(c->veil);
    }
    int r = copier_add(c, f, p, shown);
    if (c->veil && last && n < CHUNK) {
        shown = veil_finish(c->veil, &p);
        r = r < 0 ? r : copier_add(c, f, p, shown);
        (void)veil_hand_back(c->veil); /* nothing is left after a finish */
    }
    if (r < 0)
        return r;
    f->read += (uint64_t)n - back;
    return n - (ssize_t)back;
}

static void note_trouble(struct copier *c, const struct copier_file *f, int error)
{
    text_printf(c->trouble, "cannot copy '%.160s': %s", f->name, strerror(-error));
}

static void remove_segment(const struct copier *c, const struct copier_file *f, uint64_t begin)
{
    _cleanup_(freep) char *path = copier_segment_path(c, f, begin);
    (void)unlink(path); /* it may never have been made */
}

static bool has_segment(const struct copier_file *f, uint64_t begin)
{
    for (size_t i = 0; i < COPIER_KEPT; i++)
        if (f->left[i] == begin)
            return true;
    return false;
}

/* Back to what it was before a try that failed, so that the same goes to the same place again. But
 * what was removed is gone, and segments that it began may get another place the next time. */
static void copier_take_back(struct copier *c,
                             struct copier_file *f,
                             const struct copier_file *before)
{
    uint64_t removed = f->removed - before->removed;
    struct copier_file back = *before;
    if (f->begin > before->begin)
        remove_segment(c, f, f->begin);
    for (size_t i = 0; i < COPIER_KEPT; i++) {
        if (f->left[i] > before->begin)
            remove_segment(c, f, f->left[i]);
        if (!has_segment(f, back.left[i]))
            back.left[i] = 0;
    }
    if (back.begin && f->begin != back.begin && !has_segment(f, back.begin)) {
        back.begin = back.at; /* to go on in the old one would leave a hole in front */
        back.is_cut = true;
    }
    removed = removed < back.stored ? removed : back.stored;
    back.stored -= removed;
    back.removed = f->removed;
    c->stored -= removed < c->stored ? removed : c->stored;
    *f = back;
}

static bool copy_some(struct copier *c, struct copier_file *f, int fd, bool last, char *chunk)
{
    const struct copier_file before = *f;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return false;
    if ((uint64_t)st.st_size < f->read) /* the file was truncated: its present content is new */
        f->read = 0;
    int r = jump(c, f, fd, (uint64_t)st.st_size);
    ssize_t n = r < 0 ? r : copy_chunk(c, f, fd, last, chunk);
    if (n < 0) {
        note_trouble(c, f, (int)n);
        copier_take_back(c, f, &before);
        return false;
    }
    c->trouble[0] = 0;
    c->stored += f->stored - before.stored; /* it may be less, and wraps back */
    return n > 0;
}

/* Ray begins a worker's log with its job id and what it is, the second only when it is something.
 * True: it is known, and no supervisor of Ray's. */
static bool may_begin(struct copier *c, struct copier_file *f, int fd, bool last)
{
    char head[HEAD + 1];
    ssize_t n = f->is_foreign ? 0 : pread(fd, head, HEAD, 0);
    if (n <= 0)
        return false;
    head[n] = 0;
    f->is_foreign = strstr(head, ":actor_name:JobSupervisor\n") != NULL;
    const char *line = strchr(head, '\n');
    bool is_plain = !str_starts(head, ":job_id:") || (line && strchr(line + 1, '\n')) || n == HEAD;
    if (f->is_foreign || !(is_plain || last))
        return false;
    f->is_begun = true;
    c->is_named = false;
    if (is_plain && !strv_has(&c->jobs, f->job)) { /* so are all others of this id */
        strv_add(&c->jobs, f->job);
        c->seen = 0;
    }
    return true;
}

/* Up to `most` bytes. Returns how many. */
static uint64_t copy_file(struct copier *c,
                          struct copier_file *f,
                          bool last,
                          uint64_t most,
                          char *chunk)
{
    struct stat st;
    _cleanup_(freep) char *path = xasprintf("%s/%s", c->from, f->name);
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size == f->read)
        return 0;
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    uint64_t from = f->read;
    if (fd < 0 || (!f->is_begun && !may_begin(c, f, fd, last)))
        return 0;
    while (f->read - from < most && copy_some(c, f, fd, last, chunk))
        ;
    find_actor(c, f, fd);
    return f->read > from ? f->read - from : 0;
}

bool copier_turn(struct copier *c, bool last)
{
    uint64_t left = COPIER_TURN_MAX;
    find_files(c);
    for (size_t i = 0; i < c->n; i++)
        find_rank(c, &c->v[i]);
    if (!c->n)
        return false;
    char *chunk = xmalloc(CHUNK);
    for (size_t i = 0; i < c->n && left; i++) {
        uint64_t share =
            COPIER_TURN_MAX / 4; /* per file, so that a log in flood does not starve the others */
        uint64_t done = copy_file(c, &c->v[i], last, share < left ? share : left, chunk);
        left -= done < left ? done : left;
    }
    free(chunk);
    if (!c->is_named)
        write_names(c);
    return left < COPIER_TURN_MAX && !c->trouble[0];
}
