/* SPDX-License-Identifier: Apache-2.0 */
/* download.c - see download.h. An answer has no length and no version that one could go on with
 * after a cut, as files of the shared root have (filecall.c): it comes whole, or it is asked for
 * again. */
#include "argus/transfer/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"

struct download {
    int fd, write_error;
};

static int download_on_bytes(const char *p, size_t n, void *arg)
{
    struct download *d = arg;
    int r = file_write_all(d->fd, p, n);
    if (r < 0)
        d->write_error = -r;
    return r;
}

static int download_run(struct cli *cli, const struct download_ask *ask, int fd, struct err *err)
{
    struct download d = {.fd = fd};
    const struct request request = {.path = ask->path, .accept = ask->accept};
    _cleanup_(transfer_freep) struct transfer *t =
        transfer_start(cli->client, &request, download_on_bytes, &d);
    int r = transfer_wait(cli->client, t, err);
    if (r < 0)
        return r;
    if (d.write_error)
        return message_refuse(err, ERR_INTERNAL, "cli_no_write",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(d.write_error))));
    r = transfer_result(t, err);
    if (r == 0)
        r = response_error(transfer_response(t), err);
    /* Not an answer of argusd: a proxy may send elsewhere. */
    return r == 0 && transfer_status(t) != 200
               ? message_refuse(err, ERR_INTERNAL, "cli_no_argusd",
                                MESSAGE_ARGS(MESSAGE_STR("server", cli->settings.server)))
               : r;
}

int download_check_name(const char *to, bool replace, struct err *err)
{
    struct stat st;
    bool is_there = false;
    int r = file_look_for(to, &is_there, err);
    if (r < 0 || !is_there)
        return r;
    if (lstat(to, &st) == 0 && S_ISDIR(st.st_mode))
        return message_refuse(err, ERR_USAGE, "cli_name_there",
                              MESSAGE_ARGS(MESSAGE_STR("path", to)));
    return replace ? 0
                   : message_refuse(err, ERR_REFUSED, "cli_is_there",
                                    MESSAGE_ARGS(MESSAGE_STR("path", to)));
}

int download_keep(int fd, const char *part, const char *to, struct err *err)
{
    if (fsync(fd) < 0)
        return message_refuse(
            err, ERR_INTERNAL, "disk_no_write",
            MESSAGE_ARGS(MESSAGE_STR("path", part), MESSAGE_STR("why", strerror(errno))));
    if (rename(part, to) < 0)
        return message_refuse(err, ERR_INTERNAL, "cli_no_name",
                              MESSAGE_ARGS(MESSAGE_STR("path", part), MESSAGE_STR("to", to),
                                           MESSAGE_STR("why", strerror(errno))));
    return 0;
}

static int download_to_name(struct cli *cli, const struct download_ask *ask, struct err *err)
{
    const char *slash = strrchr(ask->to, '/'), *name = slash ? slash + 1 : ask->to;
    _cleanup_(freep) char *part =
        xasprintf("%.*s.%.200s.%d.part", (int)(name - ask->to), ask->to, name, (int)getpid());
    int r = download_check_name(ask->to, ask->replace, err);
    if (r < 0)
        return r;
    _cleanup_(closep) int fd =
        open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return message_refuse(
            err, ERR_USAGE, "disk_no_write",
            MESSAGE_ARGS(MESSAGE_STR("path", ask->to), MESSAGE_STR("why", strerror(errno))));
    r = download_run(cli, ask, fd, err);
    if (r == 0)
        r = download_check_name(ask->to, ask->replace, err); /* it may have come meanwhile */
    if (r == 0)
        r = download_keep(fd, part, ask->to, err);
    if (r < 0)
        (void)unlink(part);
    return r;
}

int download_file(struct cli *cli, const struct download_ask *ask, struct err *err)
{
    if (str_eq(ask->to, "-")) {
        (void)fflush(cli->out); /* nothing was written */
        return download_run(cli, ask, STDOUT_FILENO, err);
    }
    return download_to_name(cli, ask, err);
}
