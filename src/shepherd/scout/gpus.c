/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - see gpus.h. The program lies beside the shepherd on the shared root. A scout that comes
 * again goes on with the book that it finds. */
#define _GNU_SOURCE
#include "shepherd/scout/gpus.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "shepherd/scout/gpubook.h"
#include "shepherd/scout/gpuheld.h"
#include "shepherd/scout/tool.h"

#define GPUS_AGAIN USEC_MIN

struct gpus {
    char *program, *dir, *file;
    struct kin *kin;
    struct peek *peek;
    double leased; /* GPUs of the attempt here; below 0: not known */
    pid_t pid;     /* 0: no child */
    int fd;
    usec_t again; /* mono: not before; USEC_MAX: there are no GPUs here */
    usec_t heard; /* mono: the sample before; 0: none */
    struct buf text;
    struct gpu_sample now, book;
};

static const usec_t NEVER = UINT64_MAX;

static char *gpus_program(const char *attempt)
{
    struct utsname host;
    const char *jobs = strstr(attempt, "/jobs/");
    if (!jobs || uname(&host) < 0)
        return NULL;
    return xasprintf("%.*s/argus/bin/%s/argus-gpus", (int)(jobs - attempt), attempt, host.machine);
}

struct gpus *gpus_new(const char *attempt, const char *node, struct kin *kin, struct peek *peek)
{
    struct gpus *g = xcalloc(1, sizeof(*g));
    struct buf text = BUF_INIT(GPU_BOOK_MAX_BYTES);
    *g = (struct gpus){.program = gpus_program(attempt),
                       .dir = xasprintf("%s/" ATTEMPT_GPUS, attempt),
                       .file = xasprintf("%s.json", node),
                       .kin = kin,
                       .peek = peek,
                       .leased = gpuheld_leased(getenv("ARGUS_LEASE"), node),
                       .fd = -1,
                       .text = BUF_INIT(GPU_BOOK_MAX_BYTES)};
    _cleanup_(freep) char *path = xasprintf("%s/%s", g->dir, g->file);
    if (file_read(path, &text, NULL) == 0)
        (void)gpu_sample_read(buf_str(&text), text.len, &g->book); /* else it begins anew */
    buf_release(&text);
    if (!g->program || access(g->program, X_OK) < 0)
        g->again = NEVER;
    return g;
}

/* ---- the child ---- */

static void gpus_start(struct gpus *g, usec_t now)
{
    int pipes[2];
    struct child child = {.pidfd = -1};
    const char *argv[] = {g->program, "--watch", NULL};
    g->again = now + GPUS_AGAIN;
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    struct child_spec spec = {.argv = argv,
                              .in = -1,
                              .out = pipes[1],
                              .err = -1,
                              .flags = CHILD_NEW_SESSION | CHILD_DIE_WITH_PARENT};
    int r = child_start(&spec, &child, NULL);
    (void)close(pipes[1]);
    if (r < 0) {
        (void)close(pipes[0]);
        return;
    }
    closep(&child.pidfd);
    g->pid = child.pid;
    g->fd = pipes[0];
}

/* The program itself waits for no driver: it ends at once when it is killed. */
static int gpus_stop(struct gpus *g)
{
    int status = 0;
    closep(&g->fd);
    g->fd = -1;
    if (!g->pid)
        return 0;
    (void)kill(g->pid, SIGTERM); /* gone already is fine */
    while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
        ;
    g->pid = 0;
    buf_reset(&g->text);
    return status;
}

void gpus_free(struct gpus *g)
{
    if (!g)
        return;
    (void)gpus_stop(g); /* however it ended */
    buf_release(&g->text);
    free(g->program);
    free(g->dir);
    free(g->file);
    free(g);
}

/* ---- what it says ---- */

static enum gpubook_is gpus_is(int pid, void *arg)
{
    const struct gpus *g = arg;
    enum kin_is is = kin_ask(g->kin, pid);
    if (kin_is_anothers(g->kin, pid))
        return GPUBOOK_ANOTHERS;
    return is == KIN_OURS ? GPUBOOK_OURS : is == KIN_STRANGER ? GPUBOOK_STRANGER : GPUBOOK_UNKNOWN;
}

static double gpus_rank(int pid, void *arg)
{
    struct gpus *g = arg;
    _cleanup_(freep) char *text = NULL;
    int64_t rank;
    if (peek_env(g->peek, pid, "RANK", &text) < 0 || str_to_int(text, 0, 1 << 20, &rank, NULL) < 0)
        return -1;
    return (double)rank;
}

static void gpus_take(struct gpus *g, const char *line, size_t n, usec_t now)
{
    const struct gpubook_who who = {gpus_is, gpus_rank, g};
    if (!gpu_sample_read(line, n, &g->now))
        return;
    gpubook_add(&g->book, &g->now, g->heard ? now - g->heard : 0, &who);
    g->heard = now;
    struct buf out = BUF_INIT(GPU_BOOK_MAX_BYTES);
    gpu_sample_put(&g->book, &out, true);
    if (!out.failed)
        (void)!tool_note(g->dir, g->file, NULL, &out, NULL); /* again with the next sample */
    buf_release(&out);
}

/* True: there may be more. */
static bool gpus_read(struct gpus *g, usec_t now)
{
    char piece[16 << 10];
    ssize_t n = read(g->fd, piece, sizeof(piece));
    if (n < 0)
        return errno == EINTR;
    if (n == 0 || buf_add(&g->text, piece, (size_t)n) < 0) {
        int status = gpus_stop(g);
        if (n == 0 && WIFEXITED(status) && WEXITSTATUS(status) == GPU_STATUS_NONE)
            g->again = NEVER;
        return false;
    }
    for (const char *end; (end = memchr(buf_str(&g->text), '\n', g->text.len));) {
        size_t len = (size_t)(end - buf_str(&g->text));
        gpus_take(g, buf_str(&g->text), len, now);
        buf_consume(&g->text, len + 1);
    }
    return true;
}

void gpus_turn(struct gpus *g, usec_t now)
{
    if (g->fd < 0 && now >= g->again)
        gpus_start(g, now);
    while (g->fd >= 0 && gpus_read(g, now))
        ;
}

int gpus_held(const struct gpus *g, uint64_t *ret, size_t room)
{
    return gpuheld_find(&g->book, g->leased, ret, room);
}
