/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the shepherd's loop: output, children, signals, stop file, beat; see run.h.
 *
 * One poll over signals, output and what the scribe finds; all else is due at a time. Nothing
 * here touches the shared root, or asks a process that could: that is the scribe's and kin's, and
 * may hang.
 * Whether processes are left is asked of wait(), not of /proc: orphans come to us,
 * so "no child" means "nobody". */
#define _GNU_SOURCE
#include "shepherd/attempt/run.h"

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
#include "base/message.h"
#include "shepherd/attempt/finale.h"
#include "shepherd/attempt/misstart.h"
#include "shepherd/attempt/scribe.h"
#include "shepherd/attempt/tree.h"
#include "shepherd/host/host.h"
#include "shepherd/host/kernel.h"
#include "shepherd/host/kin.h"
#include "shepherd/scout/scene.h"

enum { CHUNK = 256 << 10 };

#define TICK USEC_SEC
#define KERNEL_LOOK (5 * USEC_SEC)
#define KIN_PATIENCE (500 * USEC_MS) /* the end of the attempt is not told later for it */
#define STRAY_GRACE (5 * USEC_SEC)
#define KILL_AGAIN (USEC_SEC / 10)
#define STAGE_AGAIN (USEC_SEC / 4)
#define SCENE_AGAIN (USEC_SEC / 20)
#define KILL_GIVE_UP                                                                               \
    (30 * USEC_SEC) /* a process that hangs in the kernel does not die from any signal */

enum phase { PHASE_RUNNING, PHASE_STOPPING, PHASE_STRAYS, PHASE_KILLING };

struct run {
    const struct run_spec *spec;
    struct outcome *o;
    struct scribe *scribe;
    char node[HOST_NAME_MAX_BYTES];
    char ip[HOST_IP_MAX_BYTES];
    int signals, output; /* -1: closed */
    char *chunk;
    struct finale *finale; /* of the output */
    struct child child;    /* pid 0: not started */
    uint64_t start_ticks;
    bool has_ended;      /* the command */
    bool is_nobody_left; /* below us */
    enum phase phase;
    usec_t deadline;             /* of the phase; not used while running */
    struct tree_readers readers; /* while stopping: who is left to the last */
    usec_t writers_gone;         /* mono: when nobody but these was left; 0: not yet */
    usec_t next_stage;
    usec_t give_up; /* of killing */
    usec_t next_tick;
    usec_t has_room_at; /* the command waits until then, for a root that is only slower; 0: no */
    struct scene_wait *scene; /* NULL: not asked for */
    bool is_scene_over;
    struct kin *kin; /* the processes that an OOM kill may concern */
    usec_t next_look;
    int kernel_fd;             /* of its log, from the start on; -1: not readable */
    struct kernel_log kernel;  /* what it said so far */
    struct host_memory memory; /* of the start */
    usec_t no_kill_until; /* mono: the last time at which the kernel was known to have killed no
                             process in our cgroup */
};

static void run_release(struct run *r)
{
    scene_wait_free(r->scene);
    kin_free(r->kin);
    tree_readers_release(&r->readers);
    free(r->chunk);
    free(r->finale);
    closep(&r->kernel_fd);
    kernel_log_release(&r->kernel);
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

static void run_beat(struct run *r, const char *state)
{
    scribe_beat(r->scribe, state, r->child.pid, r->start_ticks);
}

/* ---- asking to stop ---- */

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
    return sig > 0 ? stop_by_signal(sig) : scribe_stop_in_file(dir);
}

static void signal_all(int sig)
{
    (void)tree_signal(getpid(), sig); /* how many does not matter: wait() tells the end */
    if (sig == SIGTERM)
        (void)tree_signal(getpid(), SIGCONT); /* one that stands still cannot obey */
}

static usec_t short_grace(const struct run *r)
{
    usec_t grace = r->spec->order->launch.stop_grace;
    return grace < STRAY_GRACE ? grace : STRAY_GRACE;
}

/* Whoever writes is asked first, and who only reads that is left alone: "train | tee log" can say
 * what it says while it saves. */
static void begin_stage(struct run *r)
{
    tree_find_readers(getpid(), &r->readers);
    r->writers_gone = 0;
    if (!r->readers.n) {
        signal_all(SIGTERM);
        return;
    }
    (void)tree_signal_but(getpid(), &r->readers, SIGTERM); /* as in signal_all() */
    (void)tree_signal_but(getpid(), &r->readers, SIGCONT);
}

static void begin_stopping(struct run *r, const char *reason, usec_t grace)
{
    tail_say(r->spec->tail, "stopping the command: %s", reason);
    r->phase = PHASE_STOPPING;
    r->deadline = clock_mono() + grace;
    run_beat(r, "stopping");
    begin_stage(r);
}

/* Takes ownership of reason, which may be NULL when no reason was given. */
static void ask_stop(struct run *r, char *reason)
{
    if (!reason || r->phase != PHASE_RUNNING || r->has_ended) {
        r->is_scene_over = r->is_scene_over || (reason && r->has_ended); /* no time for it */
        free(reason);
        return;
    }
    r->o->stop_reason = reason;
    begin_stopping(r, reason, r->spec->order->launch.stop_grace);
}

/* Readers end by themselves when they have read all; those that do not are asked, too. */
static void advance_stage(struct run *r, usec_t now)
{
    if (r->phase != PHASE_STOPPING || !r->readers.n || now < r->next_stage)
        return;
    r->next_stage = now + STAGE_AGAIN;
    if (!r->writers_gone && tree_signal_but(getpid(), &r->readers, 0) == 0)
        r->writers_gone = now;
    if (r->writers_gone && now - r->writers_gone >= short_grace(r))
        begin_stage(r);
}

/* What runs is not the job's code: there is nothing that would be worth a grace. Takes what,
 * which may be NULL: all is well. */
static void end_mismatch(struct run *r, char *what)
{
    if (!what || r->o->mismatch) {
        free(what);
        return;
    }
    static const struct message_listener english = {.language = MESSAGE_ENGLISH};
    _cleanup_(freep) char *said = message_kept_say(what, &english);
    r->o->mismatch = what;
    if (r->phase == PHASE_RUNNING && !r->has_ended)
        begin_stopping(r, said, short_grace(r));
}

/* ---- what is due ---- */

static void run_take_news(struct run *r, usec_t now)
{
    char line[SCRIBE_NEWS];
    while (scribe_take_news(r->scribe, now, line))
        tail_say(r->spec->tail, "%s", line);
}

static void begin_killing(struct run *r, usec_t now)
{
    r->phase = PHASE_KILLING;
    r->give_up = now + KILL_GIVE_UP;
    r->deadline = now;
}

/* True if the command failed and its scene should be gathered before anything is cleaned up. */
static bool has_scene_to_wait_for(struct run *r)
{
    char sig[24];
    const struct outcome *o = r->o;
    if (!r->spec->has_scout || !r->has_ended || r->phase != PHASE_RUNNING || r->is_scene_over)
        return false;
    if (!r->scene && (o->signal || o->code))
        r->scene =
            scene_ask(r->spec->dir, o->signal ? signal_to_string(o->signal, sig) : "exit code");
    r->is_scene_over = !r->scene || scene_is_over(r->scene);
    return !r->is_scene_over;
}

static void advance_phase(struct run *r, usec_t now)
{
    if (has_scene_to_wait_for(r))
        return;
    if (r->phase == PHASE_RUNNING && r->has_ended) {
        r->o->strays = tree_signal(getpid(), SIGTERM);
        (void)tree_signal(getpid(), SIGCONT); /* as in signal_all() */
        r->phase = PHASE_STRAYS;
        run_beat(r, "stopping");
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

/* Soon after it was said, since pids come again. Neighbours that were gone before the first kill
 * have nothing to do with it. */
static void run_read_kernel_log(struct run *r)
{
    struct kernel_concern concern;
    struct host_memory memory;
    usec_t now = clock_mono();
    host_memory_read(&memory);
    kernel_concern_init(&concern, r->kin);
    kernel_log_read(&r->kernel, r->kernel_fd, &concern);
    kernel_concern_release(&concern);
    if (memory.oom_kills == r->memory.oom_kills && !r->kernel.n_suspects)
        r->no_kill_until = now;
}

static void do_what_is_due(struct run *r)
{
    usec_t now = clock_mono();
    if (now >= r->next_tick) {
        r->next_tick = now + TICK;
        run_take_news(r, now);
        tail_tick(r->spec->tail, now);
    }
    if (now >= r->next_look) {
        r->next_look = now + KERNEL_LOOK;
        run_read_kernel_log(r);
    }
    if (!r->is_nobody_left) {
        advance_stage(r, now);
        advance_phase(r, now);
    }
}

static int time_left(const struct run *r)
{
    usec_t now = clock_mono(), next = r->next_tick;
    if (r->phase != PHASE_RUNNING && r->deadline < next)
        next = r->deadline;
    if (r->phase == PHASE_STOPPING && r->readers.n && r->next_stage < next)
        next = r->next_stage;
    if (r->has_room_at && r->has_room_at < next)
        next = r->has_room_at;
    if (r->scene && !r->is_scene_over && now + SCENE_AGAIN < next)
        next = now + SCENE_AGAIN;
    return next > now ? (int)((next - now) / USEC_MS + 1) : 0;
}

/* ---- output and children ---- */

static void run_keep(struct run *r, const char *p, size_t n)
{
    if (!n)
        return;
    scribe_add(r->scribe, p, n, clock_mono());
    tail_add(r->spec->tail, p, n);
    finale_add(r->finale, p, n);
}

/* Reads at most one chunk of output, so that a flood does not delay the other duties. Returns 0
 * at the end, or when no output waits now. */
static size_t run_pump(struct run *r)
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
    run_keep(r, p, shown);
    return (size_t)n;
}

static void reap(struct run *r)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        kin_add(r->kin, pid);
        if (pid == r->child.pid) {
            r->has_ended = true;
            outcome_set_status(r->o, status);
        }
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

/* Negative while the command has to wait a moment: poll() then leaves it out. */
static int output_to_read(struct run *r)
{
    usec_t again;
    r->has_room_at = 0;
    if (r->output < 0 || scribe_has_room(r->scribe, clock_mono(), &again))
        return r->output;
    r->has_room_at = again;
    return -1;
}

static void loop(struct run *r)
{
    while (!r->is_nobody_left || has_scene_to_wait_for(r)) {
        struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
                               {.fd = output_to_read(r), .events = POLLIN},
                               {.fd = scribe_fd(r->scribe), .events = POLLIN}};
        if (poll(fds, array_len(fds), time_left(r)) < 0 && errno != EINTR)
            break; /* no memory in the kernel: finish with what is known */
        if (fds[1].revents)
            (void)run_pump(r); /* the next turn takes the next chunk */
        if (fds[0].revents)
            take_signals(r);
        if (fds[2].revents) {
            ask_stop(r, scribe_take_stop(r->scribe));
            end_mismatch(r, scribe_take_mismatch(r->scribe));
        }
        do_what_is_due(r);
    }
    /* What is still in the pipe; one that could not be killed may write to it for ever. */
    int held = fcntl(r->output, F_GETPIPE_SZ);
    size_t most = held > CHUNK ? (size_t)held : CHUNK;
    for (size_t got = 0, n; r->output >= 0 && got < most && (n = run_pump(r)); got += n)
        ;
    if (r->spec->veil) {
        const char *p;
        size_t n = veil_finish(r->spec->veil, &p);
        run_keep(r, p, n);
    }
}

/* ---- start and end ---- */

static int run_begin(struct run *r, struct err *err)
{
    const struct order *order = r->spec->order;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return message_refuse(err, -errno, "shepherd_no_pipe",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
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
    if (rc < 0)
        misstart_tell(order, err);
    else
        r->start_ticks = tree_start_ticks(r->child.pid);
    return rc;
}

static int open_signals(struct err *err)
{
    sigset_t set;
    stop_signals(&set);
    (void)sigaddset(&set, SIGCHLD);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? message_refuse(err, -errno, "shepherd_no_signals",
                                   MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))))
                  : fd;
}

static double run_seconds(struct timeval tv)
{
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

/* What the machine has to say about memory. */
static void run_tell_memory(struct run *r)
{
    struct outcome *o = r->o;
    struct host_memory now;
    host_memory_read(&now);
    bool is_known = r->memory.oom_kills >= 0 && now.oom_kills >= r->memory.oom_kills;
    o->oom_kills = is_known ? now.oom_kills - r->memory.oom_kills : -1;
    o->memory_max = now.max_bytes;
    o->memory_peak = now.peak_bytes;
    bool can_read = r->kernel_fd >= 0;
    if (can_read)
        run_read_kernel_log(r);
    if (r->kernel.n_suspects || o->oom_kills > 0)
        kin_look_within(r->kin, KIN_PATIENCE); /* see which other processes are here */
    struct kernel_oom oom = kernel_oom(&r->kernel, can_read, o->oom_kills,
                                       kin_has_neighbours(r->kin, r->no_kill_until));
    o->own_kills = oom.kills;
    o->is_unsure = oom.is_unsure;
    o->oom_line = xstrdup(oom.line);
}

static void run_tell_end(struct run *r)
{
    struct outcome *o = r->o;
    struct rusage use;
    o->ended = clock_wall();
    o->pid = r->child.pid;
    run_tell_memory(r);
    if (getrusage(RUSAGE_CHILDREN, &use) == 0) {
        o->max_rss_bytes = (uint64_t)use.ru_maxrss * 1024;
        o->user_s = run_seconds(use.ru_utime);
        o->sys_s = run_seconds(use.ru_stime);
    }
}

/* Until all of it is in the log, or the root was waited for long enough. */
static void finish_log(struct run *r)
{
    struct outcome *o = r->o;
    struct scribe_end end;
    scribe_close(r->scribe);
    for (usec_t now = clock_mono(); !scribe_is_done(r->scribe, now); now = clock_mono()) {
        struct pollfd fd = {.fd = scribe_fd(r->scribe), .events = POLLIN};
        (void)poll(&fd, 1, (int)(TICK / USEC_MS)); /* a signal only makes it look sooner */
        if (fd.revents)
            free(scribe_take_stop(r->scribe)); /* too late for that */
        run_take_news(r, now);
        tail_tick(r->spec->tail, now);
    }
    run_take_news(r, clock_mono());
    end_mismatch(r, scribe_take_mismatch(r->scribe)); /* it may have ended before anybody saw it */
    scribe_finish(r->scribe, &end);
    o->log_bytes = end.log_bytes;
    o->dropped_bytes = end.dropped;
    o->log_error = end.log_error;
    o->root_away = end.away;
    o->is_root_stuck = end.is_stuck;
    o->cause = o->stop_reason ? CAUSE_STOPPED
               : o->mismatch  ? CAUSE_MISMATCH
               : o->signal    ? CAUSE_SIGNAL
                              : CAUSE_EXIT;
    char line[FINALE_LINE_MAX];
    if (o->cause == CAUSE_EXIT && o->code == 0 && finale_says_failure(r->finale, line))
        o->last_error = xstrdup(line);
}

int run_command(const struct run_spec *spec, struct outcome *o, struct err *err)
{
    _cleanup_(run_release) struct run r = {
        .spec = spec,
        .o = o,
        .signals = -1,
        .output = -1,
        .child = {.pidfd = -1},
        .chunk = xmalloc(CHUNK),
        .finale = xcalloc(1, sizeof(struct finale)),
        .kin = kin_new(spec->dir),
        .kernel_fd = kernel_log_open(NULL),
        .kernel = KERNEL_LOG_INIT,
    };
    int rc = tree_adopt(err);
    if (rc == 0)
        rc = r.signals = open_signals(err);
    if (rc < 0)
        return rc;
    host_name(r.node);
    host_ip(pairs_find(&spec->order->env, "RAY_ADDRESS"), r.ip);
    struct scribe_spec writer = {.dir = spec->dir,
                                 .launch = &spec->order->launch,
                                 .node = r.node,
                                 .ip = r.ip,
                                 .sink = spec->sink};
    rc = scribe_start(&writer, &r.scribe, err);
    if (rc < 0)
        return rc;
    host_memory_read(&r.memory);
    o->started = clock_wall();
    rc = run_begin(&r, err);
    if (rc == 0) {
        kin_add(r.kin, getpid()); /* all that is below us */
        kin_watch(r.kin);
        run_beat(&r, "running");
        loop(&r);
        run_tell_end(&r);
    }
    finish_log(&r);
    return rc;
}
