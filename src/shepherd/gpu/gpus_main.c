/* SPDX-License-Identifier: Apache-2.0 */
/* gpus_main.c - the program argus-gpus: what the GPUs of this machine do, as lines of JSON.
 *
 *   argus-gpus --once    one sample (core/figure/gpu_card.h: gpu_sample_put()), for a look over ssh
 *   argus-gpus --watch   one each 15 s until its output is closed, for the scout of an attempt
 *   argus-gpus --keep FILE   one each 15 s into this file, which has the newest alone, for the
 * looks of argusd (ssh/raylet.sh); until its directory is gone
 *
 * A program of its own because argus-shepherd is static, and a static program cannot open a
 * library. It links nothing but the C library. All that touches the driver is done by a child; the
 * parent only waits: when the child says nothing for a while, because a driver hangs, or dies, that
 * is the sample ("trouble"), and the child is killed and left. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "shepherd/gpu/nvml.h"

#define HANGS (5 * USEC_SEC)  /* so long may one sample take */
#define AGAIN (60 * USEC_SEC) /* after trouble, of a watch */

/* ---- the child ---- */

static bool gpus_say(int fd, const struct gpu_sample *s)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(GPU_BOOK_MAX_BYTES);
    gpu_sample_put(s, &out, false);
    (void)buf_addc(&out, '\n'); /* out.failed tells */
    return !out.failed && file_write_all(fd, out.data, out.len) == 0;
}

static void gpus_trouble(struct gpu_sample *s, const char *text)
{
    memset(s, 0, sizeof(*s));
    s->at = clock_wall();
    text_copy(s->trouble, text);
}

/* Where this program lies: a library that lies beside it comes first. */
static char *gpus_place(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return NULL;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    return xstrdup(self);
}

static int gpus_child(int fd, bool is_watch)
{
    struct err err = {0};
    struct nvml *n = NULL;
    _cleanup_(freep) char *place = gpus_place();
    struct gpu_sample *s = xcalloc(1, sizeof(*s));
    int r = nvml_open(place, &n, &err), status = r == -ENOENT ? GPU_STATUS_NONE : 0;
    if (r < 0) {
        gpus_trouble(s, err.text);
        (void)gpus_say(fd, s); /* nobody may hear it any more */
        free(s);
        return status;
    }
    bool goes_on = true;
    while (goes_on) {
        nvml_read(n, s);
        goes_on = gpus_say(fd, s) && is_watch;
        if (goes_on)
            nvml_wait(n, GPU_EVERY);
    }
    nvml_close(n);
    free(s);
    return 0;
}

/* ---- the parent ---- */

static pid_t gpus_begin(bool is_watch, int *ret_fd)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a comfort */
        (void)close(STDOUT_FILENO); /* one that hangs must not keep our reader waiting */
        (void)close(STDERR_FILENO);
        (void)close(pipes[0]);
        _exit(gpus_child(pipes[1], is_watch));
    }
    (void)close(pipes[1]);
    if (pid < 0)
        (void)close(pipes[0]);
    *ret_fd = pipes[0];
    return pid;
}

/* Where samples go: to our output, or the newest of them to a file. */
struct gpus_sink {
    const char *file; /* NULL: our output */
    struct buf text;  /* of a line that is not whole yet */
};

/* False: nobody hears us any more. */
static bool gpus_pass_on(struct gpus_sink *s, const char *text, size_t n)
{
    if (!s->file)
        return file_write_all(STDOUT_FILENO, text, n) == 0;
    if (buf_add(&s->text, text, n) < 0) {
        buf_reset(&s->text); /* no sample is that long */
        return true;
    }
    bool goes_on = true;
    for (const char *end; (end = memchr(buf_str(&s->text), '\n', s->text.len));) {
        size_t len = (size_t)(end - buf_str(&s->text)) + 1;
        goes_on = file_write(s->file, buf_str(&s->text), len, 0600, 0, NULL) == 0;
        buf_consume(&s->text, len);
    }
    return goes_on;
}

/* Passes on what comes, until it ends or nothing comes for too long. 0: it ended; -ETIME; -EPIPE:
 * nobody reads us any more. */
static int gpus_relay(int fd, bool is_watch, struct gpus_sink *sink)
{
    char piece[16 << 10];
    usec_t silent = clock_mono(), limit = HANGS + (is_watch ? GPU_EVERY : 0);
    for (;;) {
        struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = sink->file ? -1 : STDOUT_FILENO}};
        usec_t past = clock_mono() - silent;
        if (past >= limit)
            return -ETIME;
        int r = poll(p, array_len(p), (int)((limit - past) / USEC_MS) + 1);
        if (r > 0 && p[1].revents)
            return -EPIPE;
        if (r <= 0)
            continue; /* EINTR, or the time is over */
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n == 0)
            return 0;
        if (n > 0 && !gpus_pass_on(sink, piece, (size_t)n))
            return -EPIPE;
        silent = n > 0 ? clock_mono() : silent;
    }
}

/* One that hangs in the driver cannot be ended: then it is left, as init's. */
static int gpus_end(pid_t pid, int relayed)
{
    int status = 0;
    if (relayed < 0)
        (void)kill(pid, SIGKILL);
    for (int i = 0; i < 50; i++) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            return status;
        (void)poll(NULL, 0, 20);
    }
    return status;
}

static bool gpus_pause(const struct gpus_sink *sink, usec_t span)
{
    struct pollfd p = {.fd = sink->file ? -1 : STDOUT_FILENO};
    return poll(&p, 1, (int)(span / USEC_MS)) == 0;
}

static void gpus_say_trouble(struct gpus_sink *sink, const char *text)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(GPU_BOOK_MAX_BYTES);
    struct gpu_sample *s = xcalloc(1, sizeof(*s));
    gpus_trouble(s, text);
    gpu_sample_put(s, &out, false);
    buf_reset(&sink->text);
    if (buf_addc(&out, '\n') == 0)
        (void)gpus_pass_on(sink, out.data, out.len); /* nobody may hear it any more */
    free(s);
}

/* The status to end with, or -1: once more, after a pause. */
static int gpus_turn(bool is_watch, struct gpus_sink *sink)
{
    int fd;
    pid_t pid = gpus_begin(is_watch, &fd);
    if (pid < 0)
        return 1;
    int relayed = gpus_relay(fd, is_watch, sink);
    int status = gpus_end(pid, relayed);
    (void)close(fd);
    if (relayed == -EPIPE || (WIFEXITED(status) && WEXITSTATUS(status) == GPU_STATUS_NONE))
        return relayed == -EPIPE ? 0 : GPU_STATUS_NONE;
    bool is_dead = relayed == 0 && !WIFEXITED(status);
    if (relayed == -ETIME || is_dead)
        gpus_say_trouble(sink, is_dead ? "the NVIDIA driver's library crashes"
                                       : "the NVIDIA driver does not answer");
    return is_watch ? -1 : 0;
}

int main(int argc, char **argv)
{
    bool is_once = argc == 2 && str_eq(argv[1], "--once"),
         is_keep = argc == 3 && str_eq(argv[1], "--keep");
    struct gpus_sink sink = {.file = is_keep ? argv[2] : NULL,
                             .text = BUF_INIT(GPU_BOOK_MAX_BYTES)};
    if (argc == 2 && str_eq(argv[1], "--version")) {
        (void)puts("argus-gpus " ARGUS_VERSION); /* a closed output hears nothing */
        return 0;
    }
    if (!is_once && !is_keep && !(argc == 2 && str_eq(argv[1], "--watch"))) {
        (void)fputs("usage: argus-gpus --once | --watch | --keep FILE\n", stderr); /* the same */
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    int r = gpus_turn(!is_once, &sink);
    while (r < 0)
        r = gpus_pause(&sink, AGAIN) ? gpus_turn(true, &sink) : 0;
    if (is_keep)
        (void)unlink(sink.file); /* what it says is not so any more; it may never have been */
    buf_release(&sink.text);
    return r;
}
