/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - what /proc says of a process; see process.h. */
#define _GNU_SOURCE
#include "shepherd/host/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

enum { ABOVE_MAX = 64 };

bool process_read(pid_t pid, const char *file, struct buf *out)
{
    char path[96], piece[8192];
    text_printf(path, "/proc/%d/%s", (int)pid, file);
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        size_t room = out->max - out->len, take = (size_t)n < room ? (size_t)n : room;
        if (buf_add(out, piece, take) < 0 || take < (size_t)n)
            return true;
    }
}

/* The fields after the name, which is in brackets and may hold anything; numbered as in proc(5). */
bool process_stat(pid_t pid, struct process_stat *ret)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(4096);
    struct process_stat p = {0};
    if (!process_read(pid, "stat", &text))
        return false;
    const char *open = strchr(buf_str(&text), '('), *s = strrchr(buf_str(&text), ')');
    if (!open || !s || s < open || s[1] != ' ')
        return false;
    text_printf(p.name, "%.*s", (int)(s - open - 1), open + 1);
    s += 2;
    p.state = *s;
    for (int field = 3; field <= 22; field++) {
        if (field == 4)
            p.parent = (pid_t)strtol(s, NULL, 10);
        if (field == 14 || field == 15)
            p.cpu_ticks += strtoull(s, NULL, 10);
        if (field == 22)
            p.start_ticks = strtoull(s, NULL, 10);
        s = field < 22 ? strchr(s, ' ') : s;
        if (!s)
            return false;
        s++;
    }
    *ret = p;
    return true;
}

pid_t process_above(pid_t pid, const char *name)
{
    struct process_stat p;
    for (int i = 0; i < ABOVE_MAX && pid > 0 && process_stat(pid, &p); i++) {
        pid = p.parent;
        if (process_stat(pid, &p) && !strcmp(p.name, name))
            return pid;
    }
    return 0;
}

struct visit {
    bool (*f)(pid_t pid, void *arg);
    void *arg;
};

static bool visit_pid(int dir, const char *name, void *arg)
{
    const struct visit *v = arg;
    (void)dir;
    long pid = strtol(name, NULL, 10);
    return pid <= 0 || v->f((pid_t)pid, v->arg);
}

void process_each(bool (*f)(pid_t pid, void *arg), void *arg)
{
    struct visit v = {.f = f, .arg = arg};
    file_each_name("/proc", visit_pid, &v);
}
