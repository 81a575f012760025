/* SPDX-License-Identifier: Apache-2.0 */
/* making.c - see making.h. Its two outputs are files without a name, so that neither can fill a
 * pipe that nobody reads. */
#include "argus/setup/making.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"

enum { MAKING_SAID_MAX = 64 << 10 };

/* Without the white space at its end: yours to free(). */
static char *making_read(int fd)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(MAKING_SAID_MAX);
    if (lseek(fd, 0, SEEK_SET) < 0 || file_read_open(fd, "argusd init", &out, NULL) < 0)
        return xstrdup("");
    size_t n = out.len;
    while (n && strchr(" \r\n", out.data[n - 1]))
        n--;
    return xstrndup(buf_str(&out), n);
}

static int making_end(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int making_run(const struct making *m, char **ret_token, struct err *err)
{
    const char *argv[] = {
        m->argusd,     "init",       "--config", m->config, "--shared-root",         m->shared_root,
        "--state-dir", m->state_dir, "--listen", m->listen, m->ray ? "--ray" : NULL, m->ray,
        NULL};
    _cleanup_(closep) int out = memfd_create("token", MFD_CLOEXEC);
    _cleanup_(closep) int said = memfd_create("said", MFD_CLOEXEC);
    struct child_spec spec = {.argv = argv, .in = -1, .out = out, .err = said};
    struct child c;
    int r = child_start(&spec, &c, err);
    if (r < 0)
        return r;
    closep(&c.pidfd);
    r = making_end(c.pid);
    _cleanup_(freep) char *token = making_read(out);
    _cleanup_(freep) char *why = making_read(said);
    if (r < 0 || !*token)
        return message_refuse(err, ERR_REFUSED, "cli_init_argusd",
                              MESSAGE_ARGS(MESSAGE_STR("why", why)));
    *ret_token = xstrdup(token);
    return 0;
}
