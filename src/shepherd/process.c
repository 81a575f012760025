/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h.
 *
 * Ray's workers write their title over their command line and leave the environment alone, so a
 * process of a job is known by what it was started with. */
#define _GNU_SOURCE
#include "shepherd/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 2 << 20, ABOVE_MAX = 64 }; /* a kernel's own ceiling of an environment */

bool process_read(pid_t pid, const char *file, struct buf *out)
{
    char path[96], piece[8192];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file); /* our names are short */
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
    (void)snprintf(p.name, sizeof(p.name), "%.*s", (int)(s - open - 1), open + 1); /* cut: fine */
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

/* Words of a text in which each ends with a zero byte: the first that f takes. */
static const char *find_word(const struct buf *text, const char *prefix, size_t n)
{
    const char *end = buf_str(text) + text->len;
    for (const char *s = buf_str(text); s < end; s += strlen(s) + 1)
        if (!strncmp(s, prefix, n))
            return s;
    return NULL;
}

char *process_env(pid_t pid, const char *name)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    _cleanup_(freep) char *prefix = xasprintf("%s=", name);
    if (!process_read(pid, "environ", &text))
        return NULL;
    const char *found = find_word(&text, prefix, strlen(prefix));
    return found ? xstrdup(found + strlen(prefix)) : NULL;
}

int process_has_env(pid_t pid, const char *setting)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    if (!process_read(pid, "environ", &text) || !text.len)
        return -1;
    return find_word(&text, setting, strlen(setting) + 1) != NULL;
}

char *process_word(pid_t pid, const char *prefix)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    if (!process_read(pid, "cmdline", &text))
        return NULL;
    const char *found = find_word(&text, prefix, strlen(prefix));
    return found ? xstrdup(found + strlen(prefix)) : NULL;
}

char *process_line(pid_t pid, size_t max)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(max);
    (void)process_read(pid, "cmdline", &text); /* then it is empty */
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ')
            text.data[i] = ' ';
    while (text.len && text.data[text.len - 1] == ' ')
        text.data[--text.len] = 0;
    return buf_take(&text);
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

void process_each(bool (*f)(pid_t pid, void *arg), void *arg)
{
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid > 0 && !f((pid_t)pid, arg))
            break;
    }
    if (dir)
        (void)closedir(dir); /* it was only read */
}
