/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - the kernel's log: which processes it killed for memory, and errors of GPUs; see
 * kernel.h.
 * /dev/kmsg gives one record for each read: "level,number,time,flags;text"
 * and more lines that begin with a blank. A kill for memory is two records that belong together:
 *   oom-kill:constraint=CONSTRAINT_MEMCG,…,task_memcg=/a/b,task=python3,pid=17,uid=0
 *   Memory cgroup out of memory: Killed process 17 (python3) total-vm:…
 * The first is only there since Linux 5.0, and tells the cgroup. */
#define _GNU_SOURCE
#include "shepherd/host/kernel.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "shepherd/host/host.h"
#include "shepherd/host/kin.h"

enum { RECORD_MAX = 8192, BYTES_MAX = 64 << 20, ASK_AGAIN = 12 };
static const char OUTERMOST_PIDS[] = "pid:[4026531836]"; /* the kernel's own number of it */

static const char XID[] = "NVRM: Xid (";

bool kernel_line_matters(const char *line, int *ret_xid)
{
    static const char *const words[] = {"Out of memory",     "oom-kill",      "oom_kill",
                                        "Memory cgroup out", "NVRM:",         "I/O error",
                                        "EXT4-fs error",     "XFS (",         "nfs: server",
                                        "segfault at",       "soft lockup",   "hung_task",
                                        "blocked for more",  "Machine check", "mce: ",
                                        "No space left",     "link down",     "mlx5_core"};
    const char *xid = strstr(line, XID);
    const char *number = xid ? strstr(xid, "): ") : NULL;
    *ret_xid = number ? (int)strtol(number + 3, NULL, 10) : 0;
    for (size_t i = 0; i < array_len(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

void kernel_concern_init(struct kernel_concern *c, struct kin *kin)
{
    char space[64];
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    space[n > 0 ? n : 0] = 0;
    *c = (struct kernel_concern){.kin = str_eq(space, OUTERMOST_PIDS) ? kin : NULL,
                                 .group = host_memory_group(0)};
}

void kernel_concern_release(struct kernel_concern *c)
{
    freep(&c->group);
}

/* What one reading knows. */
struct reading {
    struct kernel_log *log;
    const struct kernel_concern *concern;
};

/* The number behind a word, or 0. */
static long number_after(const char *line, const char *word)
{
    const char *s = strstr(line, word);
    return s ? strtol(s + strlen(word), NULL, 10) : 0;
}

static char *cut_line(const char *line)
{
    return xstrndup(line, strnlen(line, KERNEL_LINE_MAX));
}

static void kernel_is_ours(struct kernel_log *k, const char *line)
{
    k->oom_kills++;
    if (!k->oom_line)
        k->oom_line = cut_line(line);
}

static void suspect(struct kernel_log *k, long pid, const char *line)
{
    if (k->n_suspects < KERNEL_SUSPECTS)
        k->suspects[k->n_suspects] = (struct kernel_suspect){.pid = pid, .line = cut_line(line)};
    k->n_suspects++;
}

static int suspects_left(const struct kernel_log *k)
{
    return k->n_suspects < KERNEL_SUSPECTS ? k->n_suspects : KERNEL_SUSPECTS;
}

static void acquit(struct kernel_log *k, int i)
{
    int last = suspects_left(k) - 1;
    free(k->suspects[i].line);
    memmove(&k->suspects[i], &k->suspects[i + 1], (size_t)(last - i) * sizeof(k->suspects[0]));
    k->suspects[last] = (struct kernel_suspect){0};
    k->n_suspects--; /* beyond the ceiling one that has no place goes on to be counted */
}

/* The owner of a process is often known only after its end: its shepherd reaps it, or it was
 * seen while it died. Later its pid may belong to a process of another job. */
static void ask_again(struct kernel_log *k, struct kin *kin)
{
    for (int i = 0; i < suspects_left(k); i++) {
        struct kernel_suspect *s = &k->suspects[i];
        enum kin_is is = kin && s->asked++ < ASK_AGAIN ? kin_ask(kin, (pid_t)s->pid) : KIN_UNKNOWN;
        if (is == KIN_UNKNOWN)
            continue;
        if (is == KIN_OURS)
            kernel_is_ours(k, s->line);
        acquit(k, i--);
    }
}

/* The jobs of a node can share one cgroup, so the cgroup counts only for a pid whose owner is
 * unknown. */
static void take_oom(struct reading *r, const char *line)
{
    struct kernel_log *k = r->log;
    const struct kernel_concern *c = r->concern;
    const char *group = strstr(line, ",task_memcg=");
    if (str_starts(line, "oom-kill:")) {
        k->told_pid = number_after(line, ",pid=");
        k->is_told_ours = group && host_is_in_group(c->group, group + strlen(",task_memcg="));
        return;
    }
    long pid = number_after(line, "Killed process ");
    if (pid <= 0)
        return;
    enum kin_is is = c->kin ? kin_ask(c->kin, (pid_t)pid) : KIN_UNKNOWN;
    bool is_in_ours = pid == k->told_pid && k->is_told_ours;
    k->oom_in_group += is_in_ours;
    if (is == KIN_OURS)
        kernel_is_ours(k, line);
    else if (is == KIN_UNKNOWN && is_in_ours)
        suspect(k, pid, line);
}

struct kernel_oom kernel_oom(const struct kernel_log *k,
                             bool can_read,
                             int64_t in_group,
                             bool has_neighbours)
{
    int64_t others = can_read ? k->n_suspects : 0, untold = in_group - k->oom_in_group;
    if (in_group >= 0 && (!can_read || untold > 0)) /* the log has lost them, or is not to be had */
        others += can_read ? untold : in_group;
    bool is_known = can_read || in_group >= 0;
    int ours = can_read ? k->oom_kills : 0;
    const char *line = k->oom_line ? k->oom_line : k->suspects[0].line;
    if (ours > 0 && has_neighbours)
        others = 0; /* enough is certain */
    int64_t all = ours + others;
    return (struct kernel_oom){.kills = !is_known         ? -1
                                        : all < INT32_MAX ? (int)all
                                                          : INT32_MAX,
                               .is_unsure = others > 0 && has_neighbours,
                               .line = all > 0 && can_read ? line : NULL};
}

uint64_t kernel_gpu_at(const char *text)
{
    static const unsigned long most[] = {UINT32_MAX, 0xff, 0x1f}; /* domain, bus, device */
    uint64_t at = 0;
    if (str_starts(text, "PCI:"))
        text += strlen("PCI:");
    for (size_t i = 0; i < array_len(most); i++) {
        char *end = NULL;
        unsigned long n = isxdigit((unsigned char)*text) ? strtoul(text, &end, 16) : ULONG_MAX;
        bool is_last = i + 1 == array_len(most);
        if (n > most[i] || (!is_last && *end != ':'))
            return 0;
        at = at << 8 | n;
        text = is_last ? end : end + 1;
    }
    return at;
}

/* Whose GPU it is may be known only later, so the first of each is kept. The line's pid decides
 * nothing: it is often that of a program that looks at all GPUs. */
static void kernel_take_xid(struct kernel_log *k, int number, const char *line)
{
    uint64_t gpu = kernel_gpu_at(strstr(line, XID) + strlen(XID));
    for (int i = 0; i < k->n_xids; i++)
        if (k->xids[i].gpu == gpu)
            return;
    if (k->n_xids < KERNEL_XIDS)
        k->xids[k->n_xids++] =
            (struct kernel_xid){.number = number, .gpu = gpu, .line = cut_line(line)};
}

const struct kernel_xid *kernel_xid_among(const struct kernel_log *k, const uint64_t *gpus, int n)
{
    for (int i = 0; i < k->n_xids; i++) {
        bool counts = n < 0 || !k->xids[i].gpu;
        for (int g = 0; g < n && !counts; g++)
            counts = gpus[g] == k->xids[i].gpu;
        if (counts)
            return &k->xids[i];
    }
    return NULL;
}

/* Reads one line of a record, without its newline. */
static void kernel_take_line(struct reading *r, const char *record)
{
    struct kernel_log *k = r->log;
    int xid;
    const char *comma = strchr(record, ','), *second = comma ? strchr(comma + 1, ',') : NULL;
    const char *text = strchr(record, ';');
    usec_t at = second ? strtoull(second + 1, NULL, 10) : 0;
    if (*record == ' ' || !second || !text || second > text ||
        strtoull(comma + 1, NULL, 10) < k->first)
        return;
    text++;
    if (!kernel_line_matters(text, &xid))
        return;
    if (xid)
        kernel_take_xid(k, xid, text);
    if (r->concern)
        take_oom(r, text);
    (void)buf_addf(&k->text, "[%llu.%06llu] %s\n", (unsigned long long)(at / USEC_SEC),
                   (unsigned long long)(at % USEC_SEC), text); /* what is too much is left out */
}

/* The number that follows the last existing record's. */
static uint64_t next_number(int fd)
{
    char text[RECORD_MAX];
    uint64_t next = 0;
    for (size_t bytes = 0; bytes < BYTES_MAX;) {
        ssize_t n = read(fd, text, sizeof(text) - 1);
        if (n < 0 && (errno == EPIPE || errno == EINTR)) /* written over meanwhile: the next one */
            continue;
        if (n <= 0)
            break;
        text[n] = 0;
        bytes += (size_t)n;
        const char *comma = strchr(text, ',');
        next = comma ? strtoull(comma + 1, NULL, 10) + 1 : next;
    }
    return next;
}

int kernel_log_open(uint64_t *ret_first)
{
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (ret_first)
        *ret_first = fd >= 0 ? next_number(fd) : 0;
    else if (fd >= 0)
        (void)lseek(fd, 0, SEEK_END); /* cannot fail for what was opened */
    return fd;
}

void kernel_log_again(int fd)
{
    (void)lseek(fd, 0, SEEK_SET); /* as above; -1 has nothing to read */
}

/* The lines in text[n]; what is behind the last of them is moved to the front. Returns how much. */
static size_t kernel_take_lines(struct reading *r, char *text, size_t n)
{
    char *line = text, *end;
    while ((end = memchr(line, '\n', (size_t)(text + n - line)))) {
        *end = 0;
        kernel_take_line(r, line);
        line = end + 1;
    }
    size_t left = (size_t)(text + n - line);
    memmove(text, line, left);
    return left < RECORD_MAX ? left : 0; /* no record is that long */
}

void kernel_log_read(struct kernel_log *k, int fd, const struct kernel_concern *concern)
{
    char text[2 * RECORD_MAX];
    struct reading r = {.log = k, .concern = concern};
    ask_again(k, concern ? concern->kin : NULL);
    for (size_t left = 0, bytes = 0; fd >= 0 && bytes < BYTES_MAX;) {
        ssize_t n = read(fd, text + left, RECORD_MAX);
        if (n < 0 && (errno == EPIPE || errno == EINTR)) /* written over meanwhile: the next one */
            continue;
        if (n <= 0)
            return;
        bytes += (size_t)n;
        left = kernel_take_lines(&r, text, left + (size_t)n);
    }
}

void kernel_log_release(struct kernel_log *k)
{
    buf_release(&k->text);
    for (int i = 0; i < k->n_xids; i++)
        free(k->xids[i].line);
    free(k->oom_line);
    for (int i = 0; i < suspects_left(k); i++)
        free(k->suspects[i].line);
}
