/* SPDX-License-Identifier: Apache-2.0 */
/* misstart.c - see misstart.h. The codes said here are rows of core/finding/finding_start.c, which
 * makes a class and an advice of each. */
#define _GNU_SOURCE
#include "shepherd/attempt/misstart.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"

/* The kernel reads no more of a first line. */
enum { HEAD_MAX = 256 };

struct program {
    const char *name; /* as the order has it */
    char *path;
    struct stat st;
    char head[HEAD_MAX + 1];
    size_t n;
    char *interpreter; /* of its first line; NULL: it has none */
    bool ends_in_cr;   /* that line does */
};

static void program_release(struct program *p)
{
    free(p->path);
    free(p->interpreter);
}

/* A path as the command would see it. */
static char *misstart_path(const struct order *order, const char *dir, size_t n, const char *name)
{
    const char *cwd = order->launch.cwd;
    _cleanup_(freep) char *path = n ? xasprintf("%.*s/%s", (int)n, dir, name) : xstrdup(name);
    return *path == '/' || !cwd ? xstrdup(path) : xasprintf("%s/%s", cwd, path);
}

/* The first file of this name in the PATH of the order; a name with a slash is a path itself. */
static char *misstart_find(const struct order *order, const char *name)
{
    const char *path = strchr(name, '/') ? NULL : pairs_find(&order->env, "PATH");
    for (size_t n; path; path = path[n] ? path + n + 1 : NULL) {
        n = strcspn(path, ":");
        char *found = misstart_path(order, path, n, name);
        if (access(found, F_OK) == 0)
            return found;
        free(found);
    }
    return misstart_path(order, "", 0, name);
}

/* "#!/bin/sh -e": "/bin/sh". */
static void misstart_read_interpreter(struct program *p)
{
    const char *line = p->head + 2;
    size_t n = strcspn(line, "\n");
    if (p->n < 3 || p->head[0] != '#' || p->head[1] != '!')
        return;
    p->ends_in_cr = n && line[n - 1] == '\r';
    n -= p->ends_in_cr;
    while (n && (*line == ' ' || *line == '\t')) {
        line++;
        n--;
    }
    size_t word = strcspn(line, " \t");
    p->interpreter = xstrndup(line, word < n ? word : n);
}

static void misstart_look(const struct order *order, struct program *p)
{
    p->name = order->launch.argv.v[0];
    p->path = misstart_find(order, p->name);
    _cleanup_(closep) int fd = -1;
    if (stat(p->path, &p->st) < 0 || !S_ISREG(p->st.st_mode))
        return; /* no file to read: what stat() said of it is all */
    fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : pread(fd, p->head, HEAD_MAX, 0);
    p->n = n > 0 ? (size_t)n : 0;
    misstart_read_interpreter(p);
}

static void misstart_say(struct err *err, int error, const char *code, const struct program *p)
{
    (void)message_refuse(err, -error, code, /* err is what it returns */
                         MESSAGE_ARGS(MESSAGE_STR("name", p->name),
                                      MESSAGE_STR("interpreter", p->interpreter),
                                      MESSAGE_STR("why", strerror(error))));
}

/* ENOENT of a file that is there. */
static const char *misstart_no_interpreter(const struct program *p)
{
    return p->ends_in_cr ? "command_crlf" : p->interpreter ? "command_no_interpreter" : NULL;
}

/* ENOEXEC. */
static const char *misstart_no_format(const struct program *p)
{
    static const char bom[] = "\xef\xbb\xbf";
    bool is_binary =
        memchr(p->head, '\0', p->n) || (p->n >= 4 && !memcmp(p->head, "\x7f\x45LF", 4));
    return is_binary                               ? "command_foreign"
           : p->n >= 3 && !memcmp(p->head, bom, 3) ? "command_bom"
           : p->interpreter && *p->interpreter     ? NULL
                                                   : "command_no_shebang";
}

static const char *misstart_code(const struct program *p, int error)
{
    switch (error) {
    case ENOENT:
        return p->st.st_mode ? misstart_no_interpreter(p) : "command_missing";
    case EACCES:
        return S_ISDIR(p->st.st_mode) ? "command_is_directory" : "command_not_executable";
    case EPERM:
        return "command_not_executable";
    case ENOEXEC:
    case EINVAL:
    case ELIBBAD:
        return misstart_no_format(p);
    case E2BIG:
        return "command_too_long";
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return "command_bad_path";
    default:
        return NULL;
    }
}

void misstart_tell(const struct order *order, struct err *err)
{
    _cleanup_(program_release) struct program p = {0};
    bool is_unfound = str_eq(err->message, "child_not_in_path");
    if (!is_unfound && !str_eq(err->message, "child_no_run") &&
        !str_eq(err->message, "child_no_interpreter"))
        return;
    misstart_look(order, &p);
    if (is_unfound && !p.st.st_mode)
        return; /* there is none of this name: that was said */
    const char *code = misstart_code(&p, -err->code);
    if (code)
        misstart_say(err, -err->code, code, &p);
}
