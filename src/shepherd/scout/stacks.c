/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - the stacks of the job's processes; see stacks.h.
 *
 * No process is halted for it. One that was stopped by a signal must stay as it is, and a py-spy
 * that is killed while it holds a process can leave it stopped for good. What is read meanwhile
 * may not fit together: then it is read again. */
#define _GNU_SOURCE
#include "shepherd/scout/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/launch.h"
#include "shepherd/host/peek.h"
#include "shepherd/host/process.h"
#include "shepherd/scout/tool.h"

enum {
    THREADS_MAX = 64,
    FRAMES_MAX = 128,
    TEXT_MAX = 64 << 10,
    SPY_MAX = 4 << 20,
    CMD_MAX = 200,
    WHY_MAX = 300,
    TRIES = 3,
    ABOVE_MAX = 16,
    ONE_MAX = 4 << 20 /* of one process */
};
#define SPY_LIMIT (5 * USEC_SEC)  /* of one process */
#define ALL_LIMIT (20 * USEC_SEC) /* of all; then the kernel is asked, which is quick */

struct telling {
    char *mark; /* of a process of the attempt: a variable of its environment */
    struct peek *peek;
    const struct copier *copier; /* NULL: see stacks_tell() */
    pid_t pids[STACKS_PROCESSES];
    size_t n, left_out;
};

/* ---- which ---- */

static bool is_python(pid_t pid)
{
    char path[64], target[512];
    text_printf(path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0)
        return false;
    target[n] = 0;
    const char *name = strrchr(target, '/');
    return name && str_starts(name + 1, "python");
}

/* Ray's own helpers do nothing that anybody waits for. */
static bool stacks_is_idle_worker(struct peek *peek, pid_t pid)
{
    _cleanup_(freep) char *line = peek_line(peek, pid, CMD_MAX);
    return str_starts(line, "ray::IDLE") || str_starts(line, "ray::JobSupervisor");
}

static const struct copier_file *worker_of(const struct copier *c, pid_t pid)
{
    for (size_t i = 0; c && i < c->n; i++)
        if (c->v[i].pid == pid)
            return &c->v[i];
    return NULL;
}

static bool stacks_is_ours(const struct telling *t, pid_t pid)
{
    int r = peek_has_env(t->peek, pid, t->mark);
    return r > 0 || (r == -ETIME && worker_of(t->copier, pid));
}

static bool note_process(pid_t pid, void *arg)
{
    struct telling *t = arg;
    if (!is_python(pid) || !stacks_is_ours(t, pid) || stacks_is_idle_worker(t->peek, pid))
        return true;
    if (t->n == STACKS_PROCESSES)
        t->left_out++;
    else
        t->pids[t->n++] = pid;
    return true;
}

/* ---- py-spy ---- */

static void add_frame(const json_t *frame, struct jout *j, struct buf *text)
{
    const char *function = json_get_str(frame, "name", "?");
    const char *file = json_get_str(frame, "filename", "?");
    int64_t line = json_get_int(frame, "line", 0);
    jout_open(j, NULL, '{');
    jout_str(j, "function", function);
    jout_str(j, "file", file);
    jout_int(j, "line", line);
    jout_close(j, '}');
    if (text)
        (void)buf_addf(text, "    %s (%s:%lld)\n", function, file, (long long)line); /* cut: fine */
}

static void add_frames(const json_t *thread, const char *key, struct jout *j, struct buf *text)
{
    const json_t *frames = json_get_array(thread, "frames");
    jout_open(j, key, '[');
    for (size_t i = 0; i < json_array_size(frames) && i < FRAMES_MAX; i++)
        add_frame(json_array_get(frames, i), j, text);
    jout_close(j, ']');
}

static void add_threads(const json_t *threads, struct jout *j, struct buf *text)
{
    const json_t *main_thread = json_array_get(threads, 0);
    jout_open(j, "threads", '[');
    for (size_t i = 0; i < json_array_size(threads) && i < THREADS_MAX; i++) {
        const json_t *thread = json_array_get(threads, i);
        const char *name = json_get_str(thread, "thread_name", "");
        bool active = json_get_bool(thread, "active", false);
        if (str_eq(name, "MainThread"))
            main_thread = thread;
        (void)buf_addf(text, "Thread %s (%s)\n", *name ? name : "?", active ? "active" : "idle");
        jout_open(j, NULL, '{');
        jout_str(j, "name", name);
        jout_int(j, "id", json_get_int(thread, "os_thread_id", 0));
        jout_bool(j, "active", active);
        add_frames(thread, "frames", j, text);
        jout_close(j, '}');
    }
    jout_close(j, ']');
    add_frames(main_thread, "frames", j, NULL);
}

/* Behind what else it may say. */
static const char *find_array(const char *s)
{
    while ((s = strchr(s, '[')) && !strchr("\n{]", s[1]))
        s++;
    return s;
}

/* The threads as py-spy tells them; NULL and why: it does not. */
static json_t *ask_spy(pid_t pid, usec_t limit, char why[static WHY_MAX])
{
    char number[16];
    json_t *threads = NULL;
    struct err err = {0};
    _cleanup_(buf_release) struct buf out = BUF_INIT(SPY_MAX);
    text_printf(number, "%d", (int)pid);
    const char *argv[] = {"py-spy", "dump", "--json", "--nonblocking", "--pid", number, NULL};
    usec_t until = clock_mono() + limit, now;
    int r = -EIO;
    for (int i = 0; i < TRIES && r == -EIO && (now = clock_mono()) < until; i++) {
        buf_reset(&out);
        r = tool_run(argv, true, until - now, &out, &err);
    }
    const char *begin = find_array(buf_str(&out));
    if (r == 0 && (!begin || json_parse(begin, strlen(begin), SPY_MAX, &threads, &err) < 0))
        r = -EIO;
    if (r == 0 && json_is_array(threads))
        return threads;
    json_decref(threads);
    char *said = out.data;
    if (said)
        said[strcspn(said, "\r\n")] = 0;
    if (r == -EIO && said && *said)
        text_printf_to(why, WHY_MAX, "py-spy: %.*s", WHY_MAX - 20, said);
    else
        text_printf_to(why, WHY_MAX, "%.250s", err.text);
    return NULL;
}

/* ---- the kernel ---- */

static void add_proc_file(pid_t pid, long task, const char *file, struct buf *text)
{
    char name[48];
    _cleanup_(buf_release) struct buf got = BUF_INIT(4096);
    text_printf(name, "task/%ld/%s", task, file);
    if (!process_read(pid, name, &got) || !got.len)
        return;
    (void)buf_addf(text, "    %s: ", file); /* a text that is full is cut, as below */
    for (size_t i = 0; i < got.len; i++)
        (void)buf_addc(text, got.data[i] == '\n' && i + 1 < got.len ? ' ' : got.data[i]);
    if (buf_str(text)[text->len - 1] != '\n')
        (void)buf_addc(text, '\n');
}

struct threads {
    pid_t pid;
    int n;
    struct buf *text;
};

static bool add_thread(int dir, const char *name, void *arg)
{
    static const char *const files[] = {"comm", "stat", "wchan", "syscall", "stack"};
    struct threads *t = arg;
    (void)dir;
    long task = strtol(name, NULL, 10);
    if (task <= 0)
        return true;
    (void)buf_addf(t->text, "Thread %ld\n", task);
    for (size_t i = 0; i < array_len(files); i++)
        add_proc_file(t->pid, task, files[i], t->text);
    return ++t->n < THREADS_MAX;
}

static void ask_kernel(pid_t pid, struct buf *text)
{
    char path[64];
    struct threads t = {.pid = pid, .text = text};
    text_printf(path, "/proc/%d/task", (int)pid);
    file_each_name(path, add_thread, &t);
}

/* ---- the answer ---- */

static bool is_told(const struct telling *t, pid_t pid)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->pids[i] == pid)
            return true;
    return false;
}

/* The nearest process above it that is told as well; else its parent. */
static pid_t above(const struct telling *t, pid_t parent)
{
    struct process_stat st = {0};
    pid_t pid = parent;
    for (int i = 0; i < ABOVE_MAX && pid > 1 && !is_told(t, pid); i++)
        pid = process_stat(pid, &st) ? st.parent : 0;
    return is_told(t, pid) ? pid : parent;
}

/* Writes the stacks of one process into j. */
static void tell_process(const struct telling *t, pid_t pid, usec_t until, struct jout *j)
{
    struct process_stat st;
    char why[WHY_MAX] = "no time was left for py-spy";
    if (!process_stat(pid, &st))
        return;
    const struct copier_file *w = worker_of(t->copier, pid);
    const char state[] = {st.state, 0};
    _cleanup_(freep) char *cmd = peek_line(t->peek, pid, CMD_MAX), *rank = NULL;
    bool hangs = peek_env(t->peek, pid, "RANK", &rank) == -ETIME; /* and so would py-spy */
    if (hangs)
        text_copy(why, "its memory cannot be read, which hangs");
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    usec_t now = clock_mono(), limit = now < until && !hangs ? until - now : 0;
    _cleanup_(json_unrefp) json_t *threads =
        limit ? ask_spy(pid, limit < SPY_LIMIT ? limit : SPY_LIMIT, why) : NULL;
    jout_open(j, NULL, '{');
    jout_int(j, "pid", pid);
    jout_str(j, "rank", rank);
    jout_str(j, "actor", w ? w->actor : NULL);
    jout_str(j, "worker", w ? w->worker : NULL);
    jout_str(j, "cmd", t->copier && !hangs ? cmd : NULL);
    jout_str(j, "state", state);
    jout_real(j, "cpu_s", (double)st.cpu_ticks / (double)sysconf(_SC_CLK_TCK));
    jout_int(j, "parent", above(t, st.parent));
    jout_str(j, "by", threads ? "py-spy" : "proc");
    jout_str(j, "error", threads ? NULL : why);
    if (threads) {
        add_threads(threads, j, &text);
    } else {
        ask_kernel(pid, &text);
        jout_open(j, "threads", '[');
        jout_close(j, ']');
        jout_open(j, "frames", '[');
        jout_close(j, ']');
    }
    jout_str(j, "text", buf_str(&text));
    jout_close(j, '}');
}

size_t stacks_tell(const char *attempt,
                   const struct copier *copier,
                   struct peek *peek,
                   struct buf *out)
{
    struct telling *t = xcalloc(1, sizeof(*t));
    t->peek = peek;
    t->copier = copier;
    t->mark = xasprintf("ARGUS_ATTEMPT_DIR=%s", attempt);
    process_each(note_process, t);
    usec_t until = clock_mono() + ALL_LIMIT;
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < t->n; i++) {
        _cleanup_(buf_release) struct buf one = BUF_INIT(ONE_MAX);
        struct jout inner = jout_begin(&one);
        tell_process(t, t->pids[i], until, &inner);
        if (one.len && !one.failed && out->len + one.len + 2 < out->max) /* a comma, the end */
            jout_raw(&j, NULL, buf_str(&one));
    }
    jout_close(&j, ']');
    size_t n = t->n + t->left_out;
    free(t->mark);
    free(t);
    return n;
}

static bool has_answer(const char *attempt, long number, const char *node)
{
    _cleanup_(freep) char *path =
        xasprintf("%s/" ATTEMPT_STACKS "/%ld/%s.json", attempt, number, node);
    bool is_there = false;
    return file_look_for(path, &is_there, NULL) == 0 && is_there; /* else it is written again */
}

struct question {
    const char *attempt, *node;
    long newest;
};

static bool see_question(int dir, const char *name, void *arg)
{
    struct question *q = arg;
    (void)dir;
    size_t digits = strspn(name, "0123456789");
    if (!digits || digits > 9 || !str_eq(name + digits, ".ask"))
        return true;
    long n = strtol(name, NULL, 10);
    if (n > q->newest && !has_answer(q->attempt, n, q->node))
        q->newest = n;
    return true;
}

long stacks_question(const char *attempt, const char *node)
{
    struct question q = {.attempt = attempt, .node = node};
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_STACKS, attempt);
    file_each_name(path, see_question, &q);
    return q.newest;
}

void stacks_answer(const char *attempt,
                   const char *node,
                   long n,
                   const struct copier *copier,
                   struct peek *peek,
                   struct veil *veil)
{
    _cleanup_(freep) char *dir = xasprintf("%s/" ATTEMPT_STACKS "/%ld", attempt, n);
    _cleanup_(freep) char *name = xasprintf("%s.json", node);
    _cleanup_(buf_release) struct buf out = BUF_INIT(STACKS_MAX);
    (void)stacks_tell(attempt, copier, peek, &out);
    if (!out.failed)
        (void)!tool_note(dir, name, veil, &out, NULL); /* again at the next turn */
}
