/* SPDX-License-Identifier: Apache-2.0 */
/* filecall.c - see filecall.h.
 *
 * What comes down is written beside its goal under a name that holds the file's ETag, and renamed
 * when it is whole: nobody sees half of it, and another version is never glued to it. */
#define _GNU_SOURCE
#include "argus/transfer/filecall.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argus/transfer/download.h"
#include "argus/transfer/progress.h"
#include "argus/transfer/upload.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { URL_MAX = 16384, PAGE = 1000, TRIES = 9, PAUSE_MOST_MS = 30000 };

const char *filecall_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "/v1/files…?path=…"; failed when it is too long. */
static int make_url(struct buf *out, const char *what, const char *path, struct err *err)
{
    (void)buf_addf(out, "/v1/files%s", what); /* failed is looked at below */
    url_query(out, "path", path);
    return out->failed ? message_refuse(err, ERR_USAGE, "cli_path_long",
                                        MESSAGE_ARGS(MESSAGE_STR("path", path)))
                       : 0;
}

/* ---- look ---- */

static int look_page(struct cli *cli,
                     const char *path,
                     int64_t limit,
                     const char *cursor,
                     json_t **ret,
                     struct err *err)
{
    _cleanup_(buf_release) struct buf url = BUF_INIT(URL_MAX);
    char text[32];
    int r = make_url(&url, "", path, err);
    if (r < 0)
        return r;
    text_printf(text, "%" PRId64, limit < PAGE ? limit : PAGE);
    url_query(&url, "limit", text);
    url_query(&url, "cursor", cursor);
    return client_get(cli->client, buf_str(&url), ret, err);
}

int filecall_look(struct cli *cli, const char *path, int64_t limit, json_t **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    int r = look_page(cli, path, limit, NULL, &all, err);
    json_t *entries = json_object_get(all, "entries");
    _cleanup_(freep) char *cursor = NULL;
    set_str(&cursor, json_get_str(all, "next_cursor", NULL));
    while (r == 0 && cursor && (int64_t)json_array_size(entries) < limit) {
        _cleanup_(json_unrefp) json_t *page = NULL;
        r = look_page(cli, path, limit - (int64_t)json_array_size(entries), cursor, &page, err);
        if (r == 0)
            (void)json_array_extend(entries,
                                    json_object_get(page, "entries")); /* for memory only */
        set_str(&cursor, r == 0 ? json_get_str(page, "next_cursor", NULL) : NULL);
        (void)json_object_set_new(all, "next_cursor",
                                  cursor ? json_string(cursor) : json_null()); /* as above */
    }
    if (r < 0)
        return r;
    *ret = all;
    all = NULL;
    return 0;
}

/* ---- get ---- */

struct getting {
    struct cli *cli;
    const char *path;
    char *etag; /* with its quotes */
    uint64_t bytes, at;
    int fd;
    struct transfer *t;
    struct progress progress;
    int status, write_error;
};

static int filecall_on_bytes(const char *p, size_t n, void *arg)
{
    struct getting *g = arg;
    g->status = transfer_status(g->t);
    if (g->status != 206 || n > g->bytes - g->at)
        return -EPROTO; /* another version: nothing of it is written */
    int r = file_write_all(g->fd, p, n);
    if (r < 0) {
        g->write_error = -r;
        return r;
    }
    g->at += n;
    progress_at(&g->progress, g->at);
    return 0;
}

/* One try from `at` on. */
static int get_part(struct getting *g, struct err *err)
{
    char range[64];
    _cleanup_(buf_release) struct buf url = BUF_INIT(URL_MAX);
    int r = make_url(&url, "/content", g->path, err);
    if (r < 0)
        return r;
    text_printf(range, "bytes=%" PRIu64 "-", g->at);
    struct request request = {.path = buf_str(&url),
                              .accept = "application/octet-stream, application/problem+json",
                              .range = range,
                              .if_range = g->etag};
    _cleanup_(transfer_freep) struct transfer *t =
        transfer_start(g->cli->client, &request, filecall_on_bytes, g);
    g->t = t;
    g->status = g->write_error = 0;
    r = transfer_wait(g->cli->client, t, err);
    if (r < 0)
        return r;
    if (g->write_error)
        return message_refuse(err, ERR_INTERNAL, "cli_no_write",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(g->write_error))));
    if (g->status && g->status != 206)
        return message_refuse(err, ERR_CONFLICT, "cli_changed",
                              MESSAGE_ARGS(MESSAGE_STR("path", g->path)));
    r = transfer_result(t, err);
    return r < 0 ? r : response_error(transfer_response(t), err);
}

static bool filecall_may_pass(int code)
{
    return code == ERR_UNREACHABLE || code == ERR_UNAVAILABLE || code == ERR_BUSY ||
           code == ERR_TIMEOUT;
}

static int get_all(struct getting *g, struct err *err)
{
    for (int tries = 0; g->at < g->bytes;) {
        uint64_t before = g->at;
        int r = get_part(g, err);
        if (r < 0 && !filecall_may_pass(r))
            return r;
        if (g->at == g->bytes)
            return 0;
        tries = g->at > before ? 0 : tries + 1;
        if (tries > TRIES)
            return r < 0 ? r
                         : message_refuse(err, ERR_UNREACHABLE, "cli_no_more",
                                          MESSAGE_ARGS(MESSAGE_STR("path", g->path)));
        progress_end(&g->progress);
        cli_talk(g->cli, "cut at %" PRIu64 " of %" PRIu64 " bytes; going on in a moment", g->at,
                 g->bytes);
        int ms = 250 << tries;
        if (client_pause(g->cli->client, ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS) < 0)
            return message_refuse(err, -EINTR, "cli_interrupted", MESSAGE_NO_ARGS);
    }
    return 0;
}

/* The part of an earlier call is gone on with. */
static int open_part(struct getting *g, const char *part, struct err *err)
{
    struct stat st;
    g->fd = open(part, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (g->fd < 0 || fstat(g->fd, &st) < 0)
        return message_refuse(
            err, ERR_USAGE, "disk_no_write",
            MESSAGE_ARGS(MESSAGE_STR("path", part), MESSAGE_STR("why", strerror(errno))));
    g->at = (uint64_t)st.st_size;
    if (g->at > g->bytes) {
        g->at = 0;
        if (ftruncate(g->fd, 0) < 0)
            return message_refuse(
                err, ERR_INTERNAL, "cli_no_cut",
                MESSAGE_ARGS(MESSAGE_STR("path", part), MESSAGE_STR("why", strerror(errno))));
    }
    if (g->at)
        cli_talk(g->cli, "going on at %" PRIu64 " of %" PRIu64 " bytes", g->at, g->bytes);
    return 0;
}

static int to_file(struct getting *g, const char *to, unsigned flags, struct err *err)
{
    const char *name = filecall_name(to);
    _cleanup_(freep) char *bare = xstrndup(g->etag + 1, strcspn(g->etag + 1, "\"/"));
    _cleanup_(freep) char *part =
        xasprintf("%.*s.%.120s.%.60s.part", (int)(name - to), to, name, bare);
    int r = download_check_name(to, flags & FILECALL_FORCE, err);
    if (r == 0)
        r = open_part(g, part, err);
    if (r == 0) {
        progress_begin(&g->progress, g->cli, name, g->at, g->bytes);
        r = get_all(g, err);
        progress_end(&g->progress);
    }
    if (r == 0)
        r = download_keep(g->fd, part, to, err);
    closep(&g->fd);
    if (r == ERR_CONFLICT || r == ERR_NOT_FOUND)
        (void)unlink(part); /* of another version: of no use any more */
    return r;
}

int filecall_get(struct cli *cli, const char *path, const char *to, unsigned flags, struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    int r = look_page(cli, path, 1, NULL, &v, err);
    if (r < 0)
        return r;
    const char *kind = json_get_str(v, "kind", "thing");
    if (str_eq(kind, "directory"))
        return message_refuse(err, ERR_USAGE, "cli_get_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if (!str_eq(kind, "file"))
        return message_refuse(err, ERR_USAGE, "cli_get_kind",
                              MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("kind", kind)));
    _cleanup_(freep) char *etag = xasprintf("\"%s\"", json_get_str(v, "etag", ""));
    struct getting g = {.cli = cli,
                        .path = path,
                        .etag = etag,
                        .bytes = (uint64_t)json_get_int(v, "bytes", 0),
                        .fd = -1};
    if (!str_eq(to, "-"))
        return to_file(&g, to, flags, err);
    g.fd = STDOUT_FILENO;
    (void)fflush(cli->out); /* nothing was written */
    progress_begin(&g.progress, cli, filecall_name(path), 0, g.bytes);
    r = get_all(&g, err);
    progress_end(&g.progress);
    return r;
}

/* ---- put and remove ---- */

/* Said before the bytes travel. */
static int check_goal(struct cli *cli, const char *path, unsigned flags, struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    struct err why = {0};
    int r = look_page(cli, path, 1, NULL, &v, &why);
    if (r == ERR_NOT_FOUND)
        return 0;
    if (r < 0)
        return err_copy(err, r, &why);
    if (str_eq(json_get_str(v, "kind", ""), "directory"))
        return message_refuse(err, ERR_REFUSED, "cli_put_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    return flags & FILECALL_FORCE ? 0
                                  : message_refuse(err, ERR_REFUSED, "cli_is_there",
                                                   MESSAGE_ARGS(MESSAGE_STR("path", path)));
}

int filecall_put(struct cli *cli,
                 const char *from,
                 const char *path,
                 unsigned flags,
                 json_t **ret,
                 struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    struct upload_sent sent;
    int r = check_goal(cli, path, flags, err);
    if (r == 0)
        r = upload_send(cli, from, filecall_name(path), &sent, err);
    if (r < 0)
        return r;
    json_t *body = json_pack("{s:s,s:s,s:s,s:b,s:b}", "path", path, "upload", sent.id, "sha256",
                             sent.sha256, "replace", (int)(flags & FILECALL_FORCE), "parents",
                             (int)(flags & FILECALL_PARENTS));
    if (!body)
        return message_refuse(err, ERR_USAGE, "cli_no_utf8",
                              MESSAGE_ARGS(MESSAGE_STR("text", path)));
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    struct request request = {.method = "POST",
                              .path = "/v1/files",
                              .content_type = "application/json",
                              .body = text,
                              .body_len = strlen(text),
                              .tries = 5};
    r = client_json(cli->client, &request, &v, err);
    free(text);
    if (r < 0) {
        if (!filecall_may_pass(r))
            upload_forget(cli, sent.id);
        return r;
    }
    if (ret) {
        *ret = v;
        v = NULL;
    }
    return 0;
}

int filecall_remove(struct cli *cli,
                    const char *path,
                    bool recursive,
                    int64_t *ret_removed,
                    struct err *err)
{
    _cleanup_(buf_release) struct buf url = BUF_INIT(URL_MAX);
    _cleanup_(json_unrefp) json_t *v = NULL;
    int r = make_url(&url, "", path, err);
    if (r < 0)
        return r;
    url_query(&url, "recursive", recursive ? "true" : NULL);
    struct request request = {.method = "DELETE", .path = buf_str(&url)};
    r = client_json(cli->client, &request, &v, err);
    if (r == 0)
        *ret_removed = json_get_int(v, "removed", 0);
    return r;
}
