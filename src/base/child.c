/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - fork and exec with an error pipe; see child.h.
 *
 * Everything the child needs (argv, environment, the paths to try) is made before
 * the fork, because between fork and exec of a program with threads only
 * async-signal-safe calls are allowed. What fails there comes back through a pipe
 * that the exec closes: no bytes means that the program runs. */
#define _GNU_SOURCE
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/message.h"

enum stage { STAGE_LIMITS, STAGE_FILES, STAGE_SESSION, STAGE_CWD, STAGE_EXEC };

/* What the child reports when it cannot become the program. */
struct report {
    enum stage stage;
    int error;
};

/* All that the child uses between fork and exec. */
struct plan {
    const struct child_spec *spec;
    struct strv candidates; /* paths to try, in order */
    struct strv envp;
    pid_t parent;
    int report;
};

static void child_plan_release(struct plan *p)
{
    strv_release(&p->candidates);
    strv_release(&p->envp);
}

static void plan_candidates(struct plan *p)
{
    const struct child_spec *spec = p->spec;
    const char *name = spec->argv[0];
    const char *path = spec->env ? pairs_find(spec->env, "PATH") : getenv("PATH");
    if (strchr(name, '/')) {
        strv_add(&p->candidates, name);
        return;
    }
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; path;) {
        size_t n = strcspn(path, ":");
        if (n)
            strv_addf(&p->candidates, "%.*s/%s", (int)n, path, name);
        else /* an empty entry of PATH is the current directory */
            strv_addf(&p->candidates, "./%s", name);
        path = path[n] ? path + n + 1 : NULL;
    }
}

static void plan_env(struct plan *p)
{
    for (size_t i = 0; p->spec->env && i < p->spec->env->n; i++)
        strv_addf(&p->envp, "%s=%s", p->spec->env->v[i].key, p->spec->env->v[i].value);
}

/* ---- in the child: async-signal-safe calls only ---- */

_Noreturn static void child_fail(int report, enum stage stage, int error)
{
    struct report r = {.stage = stage, .error = error};
    (void)!write(report, &r, sizeof(r)); /* if the parent is gone, the report is not needed */
    _exit(127);
}

/* A copy above 2, so that placing 0, 1 and 2 cannot overwrite a source. */
static int raised(const struct plan *p, int fd, int null_flags)
{
    int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : open("/dev/null", null_flags | O_CLOEXEC);
    if (copy >= 0 && copy < 3) { /* /dev/null, when ours were closed */
        int up = fcntl(copy, F_DUPFD_CLOEXEC, 3);
        close(copy);
        copy = up;
    }
    if (copy < 0)
        child_fail(p->report, STAGE_FILES, errno);
    return copy;
}

static void place_files(const struct plan *p)
{
    int from[3] = {raised(p, p->spec->in, O_RDONLY), raised(p, p->spec->out, O_WRONLY),
                   raised(p, p->spec->err, O_WRONLY)};
    for (int i = 0; i < 3; i++)
        if (dup2(from[i], i) < 0)
            child_fail(p->report, STAGE_FILES, errno);
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    struct rlimit lim; /* kernels before 5.11 */
    int end =
        getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < 65536 ? (int)lim.rlim_cur : 65536;
    for (int fd = 3; fd < end; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* most of them are not open */
}

static void set_limits(const struct plan *p)
{
    const struct child_limits *l = p->spec->limits;
    if (!l)
        return;
    const struct {
        int what;
        uint64_t most;
    } all[] = {
        {RLIMIT_AS, l->memory_bytes}, {RLIMIT_FSIZE, l->file_bytes}, {RLIMIT_CPU, l->cpu_seconds}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct rlimit now;
        if (!all[i].most || getrlimit((__rlimit_resource_t)all[i].what, &now) < 0)
            continue;
        if (now.rlim_max != RLIM_INFINITY && now.rlim_max <= all[i].most)
            continue; /* ours is lower already */
        now.rlim_cur = now.rlim_max = (rlim_t)all[i].most;
        if (setrlimit((__rlimit_resource_t)all[i].what, &now) < 0)
            child_fail(p->report, STAGE_LIMITS, errno);
    }
}

/* Handlers go by exec, but "ignored" and the mask would be inherited. */
static void reset_signals(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &dfl, NULL); /* SIGKILL, SIGSTOP and libc's own refuse */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void become(const struct plan *p)
{
    const struct child_spec *spec = p->spec;
    if (spec->flags & CHILD_DIE_WITH_PARENT) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
            child_fail(p->report, STAGE_SESSION, errno);
        if (getppid() != p->parent) /* it died before the line above */
            _exit(127);
    }
    if ((spec->flags & CHILD_NEW_SESSION) && setsid() < 0)
        child_fail(p->report, STAGE_SESSION, errno);
    place_files(p);
    if (spec->cwd && chdir(spec->cwd) < 0)
        child_fail(p->report, STAGE_CWD, errno);
    reset_signals();
    set_limits(p);
    char *empty[] = {NULL};
    char *const *envp = spec->env ? (p->envp.v ? p->envp.v : empty) : environ;
    int error = ENOENT;
    for (size_t i = 0; i < p->candidates.n; i++) {
        execve(p->candidates.v[i], (char *const *)(uintptr_t)spec->argv, envp);
        if (errno == EACCES)
            error = EACCES; /* found but not executable: say that unless another works */
        else if (errno != ENOENT && errno != ENOTDIR)
            child_fail(p->report, STAGE_EXEC, errno);
    }
    child_fail(p->report, STAGE_EXEC, error);
}

/* ---- in the parent ---- */

/* Why the program does not run, or 0 when the exec closed the pipe. */
static int read_report(int fd, const struct child_spec *spec, struct err *err)
{
    struct report r;
    ssize_t n;
    do
        n = read(fd, &r, sizeof(r));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(r))
        return 0;
    const char *why = strerror(r.error);
    switch (r.stage) {
    case STAGE_LIMITS:
        return message_refuse(
            err, -r.error, "child_no_limit",
            MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0]), MESSAGE_STR("why", why)));
    case STAGE_FILES:
        return message_refuse(
            err, -r.error, "child_no_files",
            MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0]), MESSAGE_STR("why", why)));
    case STAGE_SESSION:
        return message_refuse(
            err, -r.error, "child_no_session",
            MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0]), MESSAGE_STR("why", why)));
    case STAGE_CWD:
        return message_refuse(
            err, -r.error, "child_no_cwd",
            MESSAGE_ARGS(MESSAGE_STR("path", spec->cwd), MESSAGE_STR("why", why)));
    case STAGE_EXEC:
        break;
    }
    if (r.error == ENOENT && !strchr(spec->argv[0], '/'))
        return message_refuse(err, -ENOENT, "child_not_in_path",
                              MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0])));
    if (r.error == ENOENT && access(spec->argv[0], F_OK) == 0)
        return message_refuse(err, -ENOENT, "child_no_interpreter",
                              MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0])));
    return message_refuse(
        err, -r.error, "child_no_run",
        MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0]), MESSAGE_STR("why", why)));
}

static int child_finish(pid_t pid,
                        int report,
                        const struct child_spec *spec,
                        struct child *ret,
                        struct err *err)
{
    int r = read_report(report, spec, err);
    if (r < 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return r;
    }
    /* -1 on kernels before 5.3; the caller still has the pid. */
    *ret = (struct child){.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0U)};
    return 0;
}

int child_start(const struct child_spec *spec, struct child *ret, struct err *err)
{
    if (!spec->argv || !spec->argv[0] || !spec->argv[0][0])
        return message_refuse(err, -EINVAL, "child_no_program", MESSAGE_NO_ARGS);
    _cleanup_(child_plan_release) struct plan p = {.spec = spec, .parent = getpid()};
    plan_candidates(&p);
    plan_env(&p);
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return message_refuse(
            err, -errno, "child_no_pipe",
            MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0]), MESSAGE_STR("why", strerror(errno))));
    _cleanup_(closep) int report = pipes[0];
    _cleanup_(closep) int report_end = fcntl(pipes[1], F_DUPFD_CLOEXEC, 3); /* not 0, 1 or 2 */
    close(pipes[1]);
    if (report_end < 0)
        return message_refuse(
            err, -errno, "child_no_pipe",
            MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0]), MESSAGE_STR("why", strerror(errno))));
    p.report = report_end;
    sigset_t all, old;
    (void)sigfillset(&all); /* no handler of ours may run in the child */
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0)
        become(&p);
    int error = errno;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid < 0)
        return message_refuse(
            err, -error, "child_no_fork",
            MESSAGE_ARGS(MESSAGE_STR("name", spec->argv[0]), MESSAGE_STR("why", strerror(error))));
    closep(&report_end); /* or reading would never end */
    return child_finish(pid, report, spec, ret, err);
}
