/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the shepherd's loop: output, children, signals, stop file, beat; see run.h.
 *
 * One poll over two descriptors, signals and output; all else is due at a time.
 * Whether processes are left is asked of wait(), not of /proc: orphans come to us,
 * so "no child" means "nobody". */
#define _GNU_SOURCE
#include "shepherd/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "fsroot/proof.h"
#include "shepherd/beat.h"
#include "shepherd/host.h"
#include "shepherd/tree.h"

enum { CHUNK = 256 << 10, REASON_MAX = 240 };

#define TICK USEC_SEC
#define BEAT_LEAST (USEC_SEC / 10)
#define STRAY_GRACE (5 * USEC_SEC)
#define KILL_AGAIN (USEC_SEC / 10)
#define KILL_GIVE_UP (30 * USEC_SEC) /* a process that hangs in the kernel dies for nobody */

enum phase { PHASE_RUNNING, PHASE_STOPPING, PHASE_STRAYS, PHASE_KILLING };

struct run {
    const struct run_spec *spec;
    struct outcome *o;
    char *beat_path;
    char node[HOST_NAME_MAX_BYTES];
    char ip[HOST_IP_MAX_BYTES];
    int signals, output; /* -1: closed */
    char *chunk;
    struct child child; /* pid 0: not started */
    uint64_t start_ticks, beats;
    bool has_ended;      /* the command */
    bool is_nobody_left; /* below us */
    bool is_beat_failing;
    enum phase phase;
    usec_t deadline; /* of the phase; not used while running */
    usec_t give_up;  /* of killing */
    usec_t next_tick, next_beat;
};

static void run_release(struct run *r)
{
    free(r->beat_path);
    free(r->chunk);
    closep(&r->signals);
    closep(&r->output);
    closep(&r->child.pidfd);
}

static void stop_signals(sigset_t *set)
{
    (void)sigemptyset(set); /* these cannot fail for numbers that exist */
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
}

void run_block_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    stop_signals(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL); /* Ray's end of our output may go away */
    (void)sigaction(SIGXFSZ, &ignore, NULL); /* a limit on the log must not end us */
}

/* ---- asking to stop ---- */

/* Opening the directory makes an NFS client ask its server what is in it now. */
static char *stop_in_file(const char *dir)
{
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_STOP, dir);
    _cleanup_(closep) int fresh = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fresh < 0 || !file_is_there(path))
        return NULL;
    _cleanup_(buf_release) struct buf text = BUF_INIT(64 << 10);
    int r = file_read(path, &text, NULL);
    if (r == -ENOENT || r == -ESTALE || r == -EIO) /* it was there: look again at the next tick */
        return NULL;
    const char *s = buf_str(&text);
    size_t n = strcspn(s, "\r\n");
    return n ? xstrndup(s, n < REASON_MAX ? n : REASON_MAX) : xstrdup("asked by the file 'stop'");
}

static char *stop_by_signal(int sig)
{
    char name[24];
    return xasprintf("asked by %s", signal_to_string(sig, name));
}

char *run_take_stop(const char *dir)
{
    struct timespec now = {0};
    sigset_t set;
    stop_signals(&set);
    int sig = sigtimedwait(&set, NULL, &now);
    return sig > 0 ? stop_by_signal(sig) : stop_in_file(dir);
}

static void signal_all(int sig)
{
    (void)tree_signal(getpid(), sig); /* how many does not matter: wait() tells the end */
    if (sig == SIGTERM)
        (void)tree_signal(getpid(), SIGCONT); /* one that stands still cannot obey */
}

static void begin_stopping(struct run *r, const char *reason, usec_t grace)
{
    tail_say(r->spec->tail, "stopping the command: %s", reason);
    r->phase = PHASE_STOPPING;
    r->deadline = clock_mono() + grace;
    r->next_beat = 0; /* tell it at once */
    signal_all(SIGTERM);
}

/* Takes reason, which may be NULL: nobody asks. */
static void ask_stop(struct run *r, char *reason)
{
    if (!reason || r->phase != PHASE_RUNNING || r->has_ended) {
        free(reason);
        return;
    }
    r->o->stop_reason = reason;
    begin_stopping(r, reason, r->spec->order->launch.stop_grace);
}

static usec_t short_grace(const struct run *r)
{
    usec_t grace = r->spec->order->launch.stop_grace;
    return grace < STRAY_GRACE ? grace : STRAY_GRACE;
}

/* What runs is not the job's code: there is nothing that would be worth a grace. */
static void check_imports(struct run *r)
{
    if (r->phase != PHASE_RUNNING || r->has_ended)
        return;
    r->o->mismatch = proof_mismatch(r->spec->dir);
    if (r->o->mismatch)
        begin_stopping(r, r->o->mismatch, short_grace(r));
}

/* ---- what is due ---- */

static void beat(struct run *r)
{
    struct err err;
    const struct launch *l = &r->spec->order->launch;
    struct beat b = {
        .job = l->job,
        .attempt = l->attempt,
        .seq = r->beats++,
        .at = clock_wall(),
        .state = !r->child.pid               ? "starting"
                 : r->phase == PHASE_RUNNING ? "running"
                                             : "stopping",
        .pid = r->child.pid,
        .start_ticks = r->start_ticks,
        .node = r->node,
        .ip = r->ip,
        .log_bytes = sink_bytes(r->spec->sink),
        .dropped_bytes = sink_dropped(r->spec->sink),
    };
    bool failed = beat_write(r->beat_path, &b, &err) < 0;
    if (failed && !r->is_beat_failing)
        tail_say(r->spec->tail, "%s; trying again at each beat", err.text);
    r->is_beat_failing = failed;
    r->next_beat = clock_mono() + (l->beat > BEAT_LEAST ? l->beat : BEAT_LEAST);
}

static void begin_killing(struct run *r, usec_t now)
{
    r->phase = PHASE_KILLING;
    r->give_up = now + KILL_GIVE_UP;
    r->deadline = now;
}

static void advance_phase(struct run *r, usec_t now)
{
    if (r->phase == PHASE_RUNNING && r->has_ended) {
        r->o->strays = tree_signal(getpid(), SIGTERM);
        (void)tree_signal(getpid(), SIGCONT); /* as in signal_all() */
        r->phase = PHASE_STRAYS;
        r->deadline = now + short_grace(r);
    }
    if (r->phase == PHASE_RUNNING || now < r->deadline)
        return;
    if (r->phase != PHASE_KILLING)
        begin_killing(r, now);
    signal_all(SIGKILL);
    r->deadline = now + KILL_AGAIN;
    if (now >= r->give_up) {
        tail_say(r->spec->tail, "some processes could not be killed; leaving them");
        r->is_nobody_left = true;
    }
}

static void do_what_is_due(struct run *r)
{
    usec_t now = clock_mono();
    if (now >= r->next_tick) {
        r->next_tick = now + TICK;
        ask_stop(r, stop_in_file(r->spec->dir));
        check_imports(r);
        sink_flush(r->spec->sink);
        tail_tick(r->spec->tail, now);
    }
    if (now >= r->next_beat)
        beat(r);
    if (!r->is_nobody_left)
        advance_phase(r, now);
}

static int time_left(const struct run *r)
{
    usec_t now = clock_mono(), next = r->next_tick < r->next_beat ? r->next_tick : r->next_beat;
    if (r->phase != PHASE_RUNNING && r->deadline < next)
        next = r->deadline;
    return next > now ? (int)((next - now) / USEC_MS + 1) : 0;
}

/* ---- output and children ---- */

static void keep(struct run *r, const char *p, size_t n)
{
    if (!n)
        return;
    if (sink_add(r->spec->sink, p, n, clock_mono()))
        tail_say(r->spec->tail, "cannot write '%s': %s; the command goes on, output is dropped",
                 sink_path(r->spec->sink), sink_trouble(r->spec->sink));
    tail_add(r->spec->tail, p, n);
}

/* One chunk at most, so that a flood does not keep us from the rest. 0 at the end or when
 * there is nothing now. */
static size_t pump(struct run *r)
{
    ssize_t n = read(r->output, r->chunk, CHUNK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        closep(&r->output); /* sets -1: the command has closed its output */
        return 0;
    }
    const char *p = r->chunk;
    size_t shown = (size_t)n;
    if (r->spec->veil)
        shown = veil_pass(r->spec->veil, r->chunk, (size_t)n, &p);
    keep(r, p, shown);
    return (size_t)n;
}

static void reap(struct run *r)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == r->child.pid) {
            r->has_ended = true;
            outcome_set_status(r->o, status);
        }
    if (pid < 0 && errno == ECHILD)
        r->is_nobody_left = true;
}

static void take_signals(struct run *r)
{
    struct signalfd_siginfo si;
    while (read(r->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        int sig = (int)si.ssi_signo;
        if (sig != SIGCHLD)
            ask_stop(r, stop_by_signal(sig));
    }
    reap(r);
}

static void loop(struct run *r)
{
    while (!r->is_nobody_left) {
        struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
                               {.fd = r->output, .events = POLLIN}};
        if (poll(fds, array_len(fds), time_left(r)) < 0 && errno != EINTR)
            break; /* no memory in the kernel: finish with what is known */
        if (fds[1].revents)
            (void)pump(r); /* the next turn takes the next chunk */
        if (fds[0].revents)
            take_signals(r);
        do_what_is_due(r);
    }
    while (r->output >= 0 && pump(r)) /* what is still in the pipe */
        ;
    if (r->spec->veil) {
        const char *p;
        size_t n = veil_finish(r->spec->veil, &p);
        keep(r, p, n);
    }
}

/* ---- start and end ---- */

static int start(struct run *r, struct err *err)
{
    const struct order *order = r->spec->order;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    r->output = pipes[0];
    _cleanup_(closep) int theirs = pipes[1];
    (void)fcntl(r->output, F_SETPIPE_SZ, CHUNK); /* smaller is slower, not wrong */
    (void)fcntl(r->output, F_SETFL, O_NONBLOCK); /* cannot fail for a pipe of ours */
    struct child_spec spec = {
        .argv = (const char *const *)order->launch.argv.v,
        .env = &order->env,
        .cwd = order->launch.cwd,
        .in = -1,
        .out = theirs,
        .err = theirs,
        .flags = CHILD_NEW_SESSION | CHILD_DIE_WITH_PARENT,
    };
    int rc = child_start(&spec, &r->child, err);
    if (rc == 0)
        r->start_ticks = tree_start_ticks(r->child.pid);
    return rc;
}

static int open_signals(struct err *err)
{
    sigset_t set;
    stop_signals(&set);
    (void)sigaddset(&set, SIGCHLD);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? err_set(err, -errno, "cannot watch signals: %s", strerror(errno)) : fd;
}

static double seconds(struct timeval tv)
{
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static void tell_end(struct run *r, int64_t oom_before)
{
    struct outcome *o = r->o;
    struct rusage use;
    int64_t oom_after = host_oom_kills();
    o->ended = clock_wall();
    if (!o->stop_reason && !o->mismatch) /* it may have ended before the tick that would see it */
        o->mismatch = proof_mismatch(r->spec->dir);
    o->cause = o->stop_reason ? CAUSE_STOPPED
               : o->mismatch  ? CAUSE_MISMATCH
               : o->signal    ? CAUSE_SIGNAL
                              : CAUSE_EXIT;
    o->pid = r->child.pid;
    o->oom_kills = oom_before >= 0 && oom_after >= oom_before ? oom_after - oom_before : -1;
    if (getrusage(RUSAGE_CHILDREN, &use) == 0) {
        o->max_rss_bytes = (uint64_t)use.ru_maxrss * 1024;
        o->user_s = seconds(use.ru_utime);
        o->sys_s = seconds(use.ru_stime);
    }
}

int run_command(const struct run_spec *spec, struct outcome *o, struct err *err)
{
    _cleanup_(run_release) struct run r = {
        .spec = spec,
        .o = o,
        .beat_path = xasprintf("%s/" ATTEMPT_BEAT, spec->dir),
        .signals = -1,
        .output = -1,
        .child = {.pidfd = -1},
        .chunk = xmalloc(CHUNK),
    };
    int rc = tree_adopt(err);
    if (rc == 0)
        rc = r.signals = open_signals(err);
    if (rc < 0)
        return rc;
    host_name(r.node);
    host_ip(pairs_find(&spec->order->env, "RAY_ADDRESS"), r.ip);
    int64_t oom_before = host_oom_kills();
    beat(&r);
    o->started = clock_wall();
    rc = start(&r, err);
    if (rc < 0)
        return rc;
    beat(&r);
    loop(&r);
    tell_end(&r, oom_before);
    return 0;
}
