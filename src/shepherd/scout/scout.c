/* SPDX-License-Identifier: Apache-2.0 */
/* scout.c - the loop of our process on each node; see scout.h.
 *
 * One loop that looks each second; a change in the attempt's directory that was made on this
 * machine wakes it at once. All files it reads from the job are small or read in pieces. What a
 * process has in its memory is asked for by peek.h alone, since that can hang. */
#define _GNU_SOURCE
#include "shepherd/scout/scout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/mask.h"
#include "shepherd/host/host.h"
#include "shepherd/host/kin.h"
#include "shepherd/host/peek.h"
#include "shepherd/host/process.h"
#include "shepherd/scout/gpus.h"
#include "shepherd/scout/hostbook.h"
#include "shepherd/scout/scene.h"
#include "shepherd/scout/stacks.h"
#include "shepherd/scout/tool.h"

enum { TICK_MS = 1000, MARKS_MAX = 100000, WATCHED_MAX = 16, NODE_MAX = 128 };
enum { LIVES = 4, LIFE_PAUSE_MS = 1000, LOCK_TRIES = 50, LOCK_WAIT_MS = 20 };
#define BEAT (5 * USEC_SEC)
#define GONE (30 * USEC_SEC)        /* a directory that is away so long was removed */
#define LAST_LIMIT (20 * USEC_SEC)  /* of the last copying */
#define RAYLET_GRACE (2 * USEC_SEC) /* what its workers still write when it has gone */

struct scout {
    char *attempt, *place, *node;
    pid_t raylet;
    uint64_t raylet_ticks; /* 0: it was gone before we looked */
    struct veil *veil;
    struct copier copier;
    struct scene_watch watch;
    struct gpus *gpus;
    struct hostbook *hosts;
    int inotify, signals; /* -1: none */
    bool is_asked_to_end;
    size_t watched; /* processes whose environment was noted */
    bool can_copy;  /* the secrets are known, so that they can be hidden */
    char why_not[256];
    usec_t next_beat;    /* mono, as all below */
    usec_t silent_since; /* beat or directory stay as they are; 0: not */
    usec_t missing_since;
    struct timespec heard; /* time of change of the beat */
    bool has_exit, has_ask, is_gone;
};

/* ---- the start ---- */

char *scout_place(const char *job, int attempt, int raylet)
{
    char host[HOST_NAME_MAX_BYTES];
    host_name(host);
    return xasprintf("/tmp/argus-%u-%s-a%d-%s-%d", (unsigned)getuid(), job, attempt, host, raylet);
}

static void end_signals(sigset_t *set)
{
    (void)sigemptyset(set); /* these cannot fail for numbers that exist */
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
}

/* Detaches from the process that started us: session, files, signals, priority, and the mark by
 * which the kernel kills Ray's workers first when memory is short. */
static void step_aside(void)
{
    struct sigaction act = {.sa_handler = SIG_DFL};
    sigset_t terms;
    (void)setsid(); /* fails only for one that leads a group, which a new child does not */
    (void)close_range(3, ~0U, 0);
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &act, NULL); /* SIGKILL, SIGSTOP and libc's own refuse */
    act.sa_handler = SIG_IGN;
    (void)sigaction(SIGHUP, &act, NULL);
    (void)sigaction(SIGPIPE, &act, NULL);
    end_signals(&terms);
    (void)sigprocmask(SIG_SETMASK, &terms, NULL);
    (void)prctl(PR_SET_NAME, "argus-scout");
    (void)setpriority(PRIO_PROCESS, 0, 10);
    (void)!chdir("/");
    _cleanup_(closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "0", 1); /* refused to some: then it is as it was */
}

/* py-spy of the job's own environment comes first, ours last. */
static void extend_path(const char *attempt)
{
    const char *own = getenv("PATH"), *jobs = strstr(attempt, "/jobs/");
    if (!jobs)
        return;
    _cleanup_(freep) char *path =
        xasprintf("%s:%.*s/argus/bin", own ? own : "/usr/bin:/bin", (int)(jobs - attempt), attempt);
    (void)setenv("PATH", path, 1); /* fails only for lack of memory */
}

/* *ret_argv: it says what the stars of the command line hide. */
static int scout_add_secrets(const char *path, struct strv *values, bool *ret_argv, struct err *err)
{
    size_t i;
    const char *name;
    json_t *value, *item;
    _cleanup_(json_unrefp) json_t *o = NULL;
    _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
    int r = file_read(path, &text, err);
    if (r == 0)
        r = json_parse(buf_str(&text), text.len, LAUNCH_MAX_BYTES, &o, err);
    if (text.data)
        explicit_bzero(text.data, text.len);
    if (r < 0)
        return r;
    json_object_foreach (o, name, value)
        if (json_is_string(value))
            strv_add(values, json_string_value(value));
    value = json_object_get(o, "");
    json_array_foreach (value, i, item) {
        if (!json_is_string(item))
            return err_set(err, -EACCES, "the command line has secrets that are not text");
        strv_add(values, json_string_value(item));
    }
    *ret_argv = json_is_array(value);
    return 0;
}

static bool has_stars(const struct strv *argv)
{
    for (size_t i = 0; i < argv->n; i++)
        if (strstr(argv->v[i], MASK_STARS))
            return true;
    return false;
}

/* Reads the values that must not be shown. A scout that cannot read them shows no text at all. */
static int scout_read_secrets(struct scout *s, struct err *err)
{
    _cleanup_(launch_release) struct launch l = {0};
    _cleanup_(strv_release) struct strv values = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_LAUNCH, s->attempt);
    int r = file_read(path, &text, err);
    if (r == 0)
        r = launch_from_json(buf_str(&text), text.len, &l, err);
    bool knows_argv = false;
    if (r == 0 && l.worker_secrets)
        r = scout_add_secrets(l.worker_secrets, &values, &knows_argv, err);
    if (r == 0 && l.worker_secrets && !knows_argv && has_stars(&l.argv))
        r = err_set(err, -EACCES, "the command line has secrets, which are not known here");
    if (r == 0)
        s->veil = veil_new(&values);
    return r;
}

static char *safe_node(const char *name)
{
    char host[HOST_NAME_MAX_BYTES];
    host_name(host);
    char *node = xstrndup(*name ? name : host, NODE_MAX);
    for (char *p = node; *p; p++)
        if (*p == '/' || (unsigned char)*p <= ' ' || (p == node && *p == '.'))
            *p = '_';
    return node;
}

/* watch: has watched the attempt since its beginning, perhaps in an earlier process; taken. */
static void scout_init(struct scout *s, char **argv, struct scene_watch *watch)
{
    struct err err;
    int64_t raylet = 0;
    struct process_stat st;
    sigset_t ends;
    (void)!str_to_int(argv[2], 0, INT32_MAX, &raylet, NULL); /* 0: none is known */
    *s = (struct scout){.attempt = xstrdup(argv[0]),
                        .place = xstrdup(argv[1]),
                        .node = safe_node(argv[3]),
                        .raylet = (pid_t)raylet,
                        .watch = *watch,
                        .inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    scene_watch_begin(&s->watch);
    end_signals(&ends);
    s->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    s->raylet_ticks = process_stat(s->raylet, &st) ? st.start_ticks : 0;
    if (s->inotify >= 0)
        (void)inotify_add_watch(s->inotify, s->attempt, IN_CREATE | IN_MOVED_TO);
    s->can_copy = scout_read_secrets(s, &err) == 0;
    if (!s->can_copy)
        text_printf(s->why_not, "workers' logs are not copied: %.200s", err.text);
    _cleanup_(freep) char *from = peek_word(s->watch.peek, s->raylet, "--log_dir=");
    _cleanup_(freep) char *to = xasprintf("%s/" ATTEMPT_WORKERS "/%s", s->attempt, s->node);
    copier_init(&s->copier, from ? from : "", to, s->veil, s->watch.peek);
    s->gpus = gpus_new(s->attempt, s->node, s->watch.kin, s->watch.peek);
    s->hosts = hostbook_new(s->attempt, s->node, s->watch.kin);
    if (s->can_copy) /* else what an earlier life left is all that is known */
        copier_start_over(&s->copier);
}

static void scout_release(struct scout *s)
{
    copier_release(&s->copier);
    gpus_free(s->gpus);
    hostbook_free(s->hosts);
    scene_watch_release(&s->watch);
    veil_free(s->veil);
    closep(&s->inotify);
    closep(&s->signals);
    free(s->attempt);
    free(s->place);
    free(s->node);
}

/* ---- what is to be seen ---- */

static void read_marks(struct scout *s)
{
    DIR *dir = opendir(s->place);
    for (struct dirent *e; dir && s->copier.marks.n < MARKS_MAX && (e = readdir(dir));) {
        size_t before = s->copier.marks.n;
        copier_mark(&s->copier, e->d_name);
        const char *dash = s->copier.marks.n > before ? strchr(e->d_name, '-') : NULL;
        if (dash)
            kin_add(s->watch.kin, (pid_t)strtol(dash + 1, NULL, 10));
        if (dash && s->watched < WATCHED_MAX) {
            s->watched++;
            scene_watch_process(&s->watch, (pid_t)strtol(dash + 1, NULL, 10));
        }
    }
    if (dir)
        (void)closedir(dir); /* it was only read */
}

/* A look that fails leaves it as it was: an attempt that is over stays so. */
static void scout_see(int dir, const char *name, bool *is_there)
{
    if (faccessat(dir, name, F_OK, 0) == 0)
        *is_there = true;
    else if (errno == ENOENT)
        *is_there = false;
}

/* Opening the directory makes an NFS client ask its server what is in it now. */
static void look_at_attempt(struct scout *s, usec_t now)
{
    struct stat st;
    _cleanup_(closep) int dir = open(s->attempt, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_heard = false;
    if (dir >= 0) {
        scout_see(dir, ATTEMPT_EXIT, &s->has_exit);
        scout_see(dir, ATTEMPT_SCENE_ASK, &s->has_ask);
        is_heard = fstatat(dir, ATTEMPT_BEAT, &st, 0) == 0 &&
                   memcmp(&st.st_mtim, &s->heard, sizeof(s->heard)) != 0;
    }
    if (is_heard)
        s->heard = st.st_mtim;
    s->silent_since = is_heard ? 0 : s->silent_since ? s->silent_since : now;
    bool is_missing = dir < 0 && errno == ENOENT;
    s->missing_since = !is_missing ? 0 : s->missing_since ? s->missing_since : now;
    s->is_gone = is_missing && now - s->missing_since > GONE;
}

static bool is_raylet_gone(const struct scout *s)
{
    struct process_stat st;
    return !process_stat(s->raylet, &st) || st.start_ticks != s->raylet_ticks || st.state == 'Z' ||
           st.state == 'X';
}

/* ---- what is done ---- */

/* Writes the file by which the shepherd knows that this scout lives and is worth waiting for. */
static void scout_beat(struct scout *s, usec_t now)
{
    _cleanup_(freep) char *dir = xasprintf("%s/" ATTEMPT_SCOUTS, s->attempt);
    _cleanup_(freep) char *name = xasprintf("%s.json", s->node);
    _cleanup_(buf_release) struct buf out = BUF_INIT(16 << 10);
    char host[HOST_NAME_MAX_BYTES];
    const char *trouble = s->can_copy ? s->copier.trouble : s->why_not;
    struct jout j = jout_begin(&out);
    host_name(host);
    jout_open(&j, NULL, '{');
    jout_str(&j, "node", s->node);
    jout_str(&j, "host", host);
    jout_int(&j, "pid", getpid());
    jout_int(&j, "raylet", s->raylet);
    jout_str(&j, "version", ARGUS_VERSION);
    jout_time(&j, "at", clock_wall());
    jout_int(&j, "logs", (int64_t)s->copier.n);
    jout_int(&j, "logs_left_out", (int64_t)s->copier.left_out);
    jout_str(&j, "trouble", *trouble ? trouble : NULL);
    jout_close(&j, '}');
    (void)!tool_note(dir, name, s->veil, &out, NULL); /* again at the next one */
    s->next_beat = now + BEAT;
}

/* last: nothing will follow, see copier_turn(). */
static void copy_all(struct scout *s, bool last)
{
    usec_t until = clock_mono() + LAST_LIMIT;
    while (s->can_copy && copier_turn(&s->copier, last) && clock_mono() < until)
        ;
}

/* Nothing may be shown: the shepherd has not to wait for more than the reason. */
static void decline(struct scout *s)
{
    _cleanup_(freep) char *dir = xasprintf("%s/" ATTEMPT_SCENE "/%s", s->attempt, s->node);
    _cleanup_(buf_release) struct buf out = BUF_INIT(16 << 10);
    char host[HOST_NAME_MAX_BYTES];
    struct jout j = jout_begin(&out);
    host_name(host);
    jout_open(&j, NULL, '{');
    jout_int(&j, "version", 1);
    jout_str(&j, "node", s->node);
    jout_str(&j, "host", host);
    jout_time(&j, "at", clock_wall());
    jout_str(&j, "trouble", s->why_not);
    jout_close(&j, '}');
    (void)!tool_note(dir, SCENE_FACTS, NULL, &out, NULL); /* again at the next turn */
}

static void scout_gather(struct scout *s)
{
    if (scene_is_gathered(s->attempt, s->node))
        return;
    if (!s->can_copy) {
        decline(s);
        return;
    }
    scout_beat(s, clock_mono()); /* the shepherd sees that this scout is at work */
    read_marks(s);
    copy_all(s, false);
    scene_gather(s->attempt, s->node, &s->copier, s->veil, s->gpus, &s->watch);
}

/* Answers a question for stacks. A file shows at once that an answer is under way, since it
 * takes a while. Where text could hold a secret, only frames and states are told. */
static void scout_answer(struct scout *s, usec_t now)
{
    long n = stacks_question(s->attempt, s->node);
    if (!n)
        return;
    scout_beat(s, now);
    stacks_answer(s->attempt, s->node, n, s->can_copy ? &s->copier : NULL, s->watch.peek, s->veil);
}

static void scout_work(struct scout *s, usec_t now)
{
    if (now >= s->next_beat && !s->has_exit) {
        scout_beat(s, now);
        scene_watch_look(&s->watch, s->copier.from);
    }
    while (s->can_copy && copier_turn(&s->copier, false) && clock_mono() - now < USEC_SEC)
        ;
    gpus_turn(s->gpus, now);
    hostbook_turn(s->hosts, now);
    scout_answer(s, now);
    if (s->has_ask)
        scout_gather(s);
}

/* False: this was the last turn. */
static bool scout_turn(struct scout *s)
{
    usec_t now = clock_mono();
    look_at_attempt(s, now);
    read_marks(s);
    if (s->is_gone)
        return false;
    scout_work(s, now);
    bool is_lost = is_raylet_gone(s);
    bool is_silent = s->silent_since && now - s->silent_since > SCOUT_SILENCE;
    if ((is_lost || is_silent) && !s->has_exit) {
        (void)poll(NULL, 0, (int)(RAYLET_GRACE / USEC_MS)); /* its workers say their last */
        scout_gather(s);
    }
    return !s->has_exit && !is_lost && !is_silent && !s->is_asked_to_end;
}

static void wait_for_change(struct scout *s)
{
    char events[4096];
    struct signalfd_siginfo si;
    struct pollfd p[] = {{.fd = s->inotify, .events = POLLIN},
                         {.fd = s->signals, .events = POLLIN}};
    (void)poll(p, array_len(p), TICK_MS);
    while (s->inotify >= 0 && read(s->inotify, events, sizeof(events)) > 0)
        ;
    s->is_asked_to_end = s->signals >= 0 && read(s->signals, &si, sizeof(si)) > 0;
}

static void remove_place(const char *place)
{
    DIR *dir = opendir(place);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), e->d_name, 0); /* what is not there any more is fine */
    if (dir)
        (void)closedir(dir); /* it was only read */
    (void)rmdir(place);
}

static void scout_leave(struct scout *s)
{
    _cleanup_(freep) char *dir = xasprintf("%s/" ATTEMPT_SCOUTS, s->attempt);
    _cleanup_(freep) char *file = xasprintf("%s/%s.json", dir, s->node);
    copy_all(s, true);
    (void)unlink(file); /* what is not there any more is fine, here and below */
    (void)rmdir(dir);
    remove_place(s->place);
}

/* ---- its lives ---- */

/* What only one scout of the place can hold, for as long as it or its keeper lives: the hook asks
 * for it, so a try may be in vain. -1: there is another one. */
static int scout_take_place(const char *place)
{
    _cleanup_(freep) char *path = xasprintf("%s/lock", place);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        (void)poll(NULL, 0, LOCK_WAIT_MS);
    }
    closep(&fd);
    return -1;
}

static void live(char **argv, struct scene_watch *watch)
{
    struct scout s;
    scout_init(&s, argv, watch);
    while (scout_turn(&s))
        wait_for_change(&s);
    scout_leave(&s);
    scout_release(&s);
}

/* The scout is a child of its keeper, which does nothing but wait: one that was killed comes again,
 * and what the kernel said since the beginning is known to it. */
static int scout_keep(char **argv)
{
    int status = 0;
    struct scene_watch watch;
    scene_watch_init(&watch, argv[0]);
    for (int i = 0; i < LIVES; i++) {
        pid_t pid = fork();
        if (pid <= 0) { /* without a keeper, if need be */
            live(argv, &watch);
            return 0;
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (WIFEXITED(status))
            break;
        (void)poll(NULL, 0, LIFE_PAUSE_MS);
    }
    scene_watch_release(&watch);
    return 0;
}

/* A job's own Ray, below its shepherd: its workers are told by the scout of the node. */
static bool is_of_the_job(const char *attempt, const char *raylet)
{
    int64_t pid;
    if (str_to_int(raylet, 1, INT32_MAX, &pid, NULL) < 0)
        return false;
    pid_t shepherd = process_above((pid_t)pid, "argus-shepherd");
    _cleanup_(peek_freep) struct peek *peek = peek_new(NULL, PEEK_LIMIT);
    _cleanup_(freep) char *rest = shepherd ? peek_word(peek, shepherd, attempt) : NULL;
    return rest != NULL;
}

int scout_main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    if (is_of_the_job(argv[0], argv[2])) {
        remove_place(argv[1]);
        return 0;
    }
    pid_t pid = fork();
    if (pid != 0)
        return pid < 0 ? 1 : 0;
    step_aside();
    _cleanup_(closep) int lock = scout_take_place(argv[1]);
    if (lock < 0)
        return 0;
    extend_path(argv[0]);
    return scout_keep(argv);
}

/* ---- from the shepherd ---- */

/* /tmp is open to every user: an existing directory may belong to another one. */
static bool scout_is_ours(const char *place)
{
    struct stat st;
    return lstat(place, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid();
}

bool scout_begin(const char *attempt, const char *job, int k, const char *node)
{
    char number[16], self[4096];
    struct err err;
    struct child child = {.pidfd = -1};
    pid_t raylet = process_above(getpid(), "raylet");
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (!raylet || n <= 0)
        return false;
    self[n] = 0;
    _cleanup_(freep) char *place = scout_place(job, k, raylet);
    if (mkdir(place, 0700) < 0 && (errno != EEXIST || !scout_is_ours(place)))
        return false;
    text_printf(number, "%d", (int)raylet);
    const char *argv[] = {self, SCOUT_WORD, attempt, place, number, str_or(node, ""), NULL};
    struct child_spec spec = {.argv = argv, .in = -1, .out = -1, .err = -1};
    if (child_start(&spec, &child, &err) < 0) {
        (void)rmdir(place); /* unless Ray's own process that started us was quicker */
        return false;       /* an attempt without a scene is better than none */
    }
    closep(&child.pidfd);
    while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return true;
}
