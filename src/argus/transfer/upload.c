/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - see upload.h.
 *
 * The hash runs along as bytes are read the first time; bytes that are sent again after a cut are
 * not hashed again. An upload of an earlier run is gone on with only when the hash of what the
 * server has is that of our first bytes. */
#define _GNU_SOURCE
#include "argus/transfer/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argus/transfer/progress.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum {
    BLOCK = 1 << 20,
    TRIES = 9, /* without one byte of progress: two minutes and more */
    PAUSE_MOST_MS = 30000,
    PATH_BYTES = 512,
};

struct sending {
    struct cli *cli;
    int fd;
    const char *name;
    uint64_t bytes;
    char id[64];
    uint64_t chunk;
    uint64_t offset;    /* the server has it */
    uint64_t at, until; /* of the part under way */
    uint64_t hashed;
    char theirs[HASH_HEX]; /* the server's hash of the whole, once it has it */
    struct hash_running hash;
    struct progress progress;
    int read_error;
};

/* ---- reading ---- */

static void hash_new(struct sending *s, const char *p, size_t n)
{
    uint64_t end = s->at + n;
    if (end <= s->hashed)
        return;
    size_t old = (size_t)(s->hashed - s->at);
    hash_add(&s->hash, p + old, n - old);
    s->hashed = end;
}

static int64_t upload_on_read(char *to, size_t max, void *arg)
{
    struct sending *s = arg;
    uint64_t left = s->until - s->at;
    ssize_t n = pread(s->fd, to, max < left ? max : (size_t)left, (off_t)s->at);
    if (n < 0 || (n == 0 && left)) {
        s->read_error = n < 0 ? errno : ENODATA;
        return -1;
    }
    hash_new(s, to, (size_t)n);
    s->at += (uint64_t)n;
    progress_at(&s->progress, s->at);
    return n;
}

/* The hash of our first `to` bytes. */
static int hash_up_to(struct sending *s, uint64_t to, struct err *err)
{
    _cleanup_(freep) char *block = xmalloc(BLOCK);
    s->at = s->hashed;
    s->until = to;
    while (s->at < to)
        if (upload_on_read(block, BLOCK, s) < 0)
            return message_refuse(err, -s->read_error, "disk_no_read",
                                  MESSAGE_ARGS(MESSAGE_STR("path", s->name),
                                               MESSAGE_STR("why", strerror(s->read_error))));
    return 0;
}

/* ---- what the server has ---- */

static int take_view(struct sending *s, const json_t *v, struct err *err)
{
    int64_t offset = json_get_int(v, "offset", -1);
    const char *id = json_get_str(v, "id", "");
    if (offset < 0 || (uint64_t)offset > s->bytes || !*id || strlen(id) >= sizeof(s->id))
        return message_refuse(err, ERR_INTERNAL, "cli_no_offset", MESSAGE_NO_ARGS);
    text_copy(s->id, id);
    s->offset = (uint64_t)offset;
    int64_t chunk = json_get_int(v, "chunk", 64 << 20);
    s->chunk = chunk > 0 ? (uint64_t)chunk : 64U << 20;
    if (str_eq(json_get_str(v, "state", ""), "complete"))
        text_copy_to(s->theirs, HASH_HEX, json_get_str(v, "sha256", "?"));
    if (str_eq(json_get_str(v, "state", ""), "failed"))
        return message_refuse(err, ERR_REFUSED, "cli_upload_failed",
                              MESSAGE_ARGS(MESSAGE_STR("why", json_get_str(v, "why", ""))));
    return 0;
}

static char *upload_path_of(const char *id, const char *rest)
{
    struct buf out = BUF_INIT(PATH_BYTES);
    (void)buf_adds(&out, "/v1/uploads/"); /* ids are short */
    buf_add_url(&out, id);
    (void)buf_adds(&out, rest);
    return buf_take(&out);
}

/* True if it is an upload of the same bytes that was cut; its hash is ours then. */
static bool upload_is_same(struct sending *s, const json_t *v)
{
    int64_t offset = json_get_int(v, "offset", 0);
    char hex[HASH_HEX];
    if (!str_eq(json_get_str(v, "state", ""), "open") || json_get_bool(v, "receiving", false) ||
        !str_eq(json_get_str(v, "name", ""), s->name) || offset <= 0 ||
        (uint64_t)json_get_int(v, "bytes", -1) != s->bytes || (uint64_t)offset < s->hashed ||
        (uint64_t)offset > s->bytes || hash_up_to(s, (uint64_t)offset, NULL) < 0)
        return false;
    return str_eq(json_get_str(v, "sha256", ""), hash_so_far_hex(&s->hash, hex));
}

/* 1: there is one to go on with. */
static int find_old(struct sending *s, struct err *err)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    size_t i;
    json_t *v;
    int r = client_get(s->cli->client, "/v1/uploads", &all, err);
    if (r < 0)
        return r;
    json_array_foreach (json_get_array(all, "uploads"), i, v) {
        _cleanup_(freep) char *path = upload_path_of(json_get_str(v, "id", ""), "");
        _cleanup_(json_unrefp) json_t *now = NULL;
        if (!str_eq(json_get_str(v, "name", ""), s->name) ||
            client_get(s->cli->client, path, &now, NULL) < 0) /* after a restart the list is old */
            continue;
        if (upload_is_same(s, now) && take_view(s, now, err) == 0)
            return 1;
    }
    return 0;
}

static int upload_begin(struct sending *s, struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    json_t *body = json_pack("{s:s,s:I}", "name", s->name, "bytes", (json_int_t)s->bytes);
    if (!body)
        return message_refuse(err, ERR_USAGE, "cli_file_utf8",
                              MESSAGE_ARGS(MESSAGE_STR("text", s->name)));
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    struct request request = {.method = "POST",
                              .path = "/v1/uploads",
                              .content_type = "application/json",
                              .body = text,
                              .body_len = strlen(text),
                              .tries = 5};
    int r = client_json(s->cli->client, &request, &v, err);
    free(text);
    return r < 0 ? r : take_view(s, v, err);
}

static int upload_look(struct sending *s, struct err *err)
{
    _cleanup_(freep) char *path = upload_path_of(s->id, "");
    _cleanup_(json_unrefp) json_t *v = NULL;
    int r = client_get(s->cli->client, path, &v, err);
    return r < 0 ? r : take_view(s, v, err);
}

/* ---- sending ---- */

static int send_part(struct sending *s, struct err *err)
{
    char query[64];
    text_printf(query, "?offset=%" PRIu64, s->offset);
    _cleanup_(freep) char *path = upload_path_of(s->id, query);
    _cleanup_(json_unrefp) json_t *v = NULL;
    uint64_t left = s->bytes - s->offset;
    s->at = s->offset;
    s->until = s->offset + (left < s->chunk ? left : s->chunk);
    s->read_error = 0;
    struct request request = {.method = "PUT",
                              .path = path,
                              .content_type = "application/octet-stream",
                              .read = upload_on_read,
                              .read_arg = s,
                              .read_bytes = s->until - s->offset};
    int r = client_json(s->cli->client, &request, &v, err);
    if (s->read_error)
        return message_refuse(err, -s->read_error,
                              s->read_error == ENODATA ? "cli_got_shorter" : "cli_no_read",
                              MESSAGE_ARGS(MESSAGE_STR("path", s->name)));
    return r == 0 ? take_view(s, v, err) : r;
}

static bool upload_may_pass(int code)
{
    return code == ERR_UNREACHABLE || code == ERR_UNAVAILABLE || code == ERR_STORE ||
           code == ERR_BUSY || code == ERR_TIMEOUT || code == ERR_CONFLICT;
}

/* Wait, then ask where to go on; *tries counts on while no byte arrives. */
static int recover(struct sending *s, int *tries, struct err *err)
{
    uint64_t before = s->offset;
    for (;; ++*tries) {
        struct err why = {0};
        if (*tries >= TRIES)
            return message_refuse(err, err->code, "cli_given_up",
                                  MESSAGE_ARGS(MESSAGE_NUM("offset", s->offset),
                                               MESSAGE_NUM("bytes", s->bytes),
                                               MESSAGE_ERR("why", err)));
        progress_end(&s->progress);
        cli_talk(s->cli, "%s; going on in a moment (%d of %d)", err->text, *tries + 1, TRIES);
        int ms = 250 << *tries;
        if (client_pause(s->cli->client, ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS) < 0)
            return message_refuse(err, -EINTR, "cli_interrupted", MESSAGE_NO_ARGS);
        int r = upload_look(s, &why);
        if (r == 0)
            break;
        *err = why;
        if (!upload_may_pass(r))
            return r;
    }
    *tries = s->offset > before ? 0 : *tries + 1;
    return 0;
}

static int send_all(struct sending *s, struct upload_sent *ret, struct err *err)
{
    char ours[HASH_HEX];
    int tries = 0;
    while (!*s->theirs) {
        uint64_t before = s->offset;
        int r = send_part(s, err);
        if (r == 0 && s->offset > before)
            tries = 0;
        else if (r < 0 && (!upload_may_pass(r) || (r = recover(s, &tries, err)) < 0))
            return r;
        else if (r == 0 && !*s->theirs && ++tries > TRIES)
            return message_refuse(err, ERR_INTERNAL, "cli_takes_no_bytes",
                                  MESSAGE_ARGS(MESSAGE_STR("path", s->name)));
    }
    if (!str_eq(s->theirs, hash_so_far_hex(&s->hash, ours)))
        return message_refuse(err, ERR_REFUSED, "cli_other_bytes",
                              MESSAGE_ARGS(MESSAGE_STR("path", s->name),
                                           MESSAGE_STR("theirs", s->theirs),
                                           MESSAGE_STR("ours", ours)));
    *ret = (struct upload_sent){.bytes = s->bytes};
    text_copy(ret->id, s->id);
    memcpy(ret->sha256, ours, sizeof(ours));
    return 0;
}

int upload_send_fd(struct cli *cli,
                   int fd,
                   const char *name,
                   const char *display,
                   struct upload_sent *ret,
                   struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return message_refuse(err, ERR_USAGE, "file_not_regular",
                              MESSAGE_ARGS(MESSAGE_STR("path", display)));
    struct sending s = {.cli = cli, .fd = fd, .name = name, .bytes = (uint64_t)st.st_size};
    hash_begin(&s.hash);
    progress_begin(&s.progress, cli, display, 0, s.bytes);
    int r = find_old(&s, err);
    if (r == 1) {
        progress_end(&s.progress);
        cli_talk(cli, "going on at %" PRIu64 " of %" PRIu64 " bytes", s.offset, s.bytes);
    } else if (r == 0) {
        hash_begin(&s.hash);
        s.hashed = 0;
        r = upload_begin(&s, err);
    }
    if (r < 0)
        return r;
    progress_begin(&s.progress, cli, display, s.offset, s.bytes);
    r = send_all(&s, ret, err);
    progress_end(&s.progress);
    if (r == ERR_REFUSED)
        upload_forget(cli, s.id);
    return r;
}

/* ---- files ---- */

int upload_spool(struct err *err)
{
    const char *dir = getenv("TMPDIR");
    dir = dir && *dir ? dir : "/tmp";
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    _cleanup_(freep) char *path = xasprintf("%s/argus-XXXXXX", dir);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return message_refuse(
            err, -errno, "cli_no_temporary",
            MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_STR("why", strerror(errno))));
    (void)unlink(path); /* else it is left behind, no more */
    return fd;
}

int upload_spool_input(int from, const char *head, size_t n, struct err *err)
{
    int fd = upload_spool(err), r = fd < 0 ? fd : file_write_all(fd, head, n);
    _cleanup_(freep) char *block = xmalloc(BLOCK);
    ssize_t k = 1;
    if (fd < 0)
        return r;
    while (r >= 0 && k != 0) {
        k = read(from, block, BLOCK);
        if (k < 0 && errno != EINTR)
            r = -errno;
        else if (k > 0)
            r = file_write_all(fd, block, (size_t)k);
    }
    if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    if (r >= 0)
        return fd;
    closep(&fd);
    return message_refuse(err, r, "cli_no_keep", MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))));
}

int upload_send(struct cli *cli,
                const char *path,
                const char *name,
                struct upload_sent *ret,
                struct err *err)
{
    bool is_input = str_eq(path, "-");
    const char *slash = strrchr(path, '/');
    struct stat st;
    _cleanup_(closep) int fd = is_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return message_refuse(
            err, ERR_USAGE, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    if (S_ISDIR(st.st_mode))
        return message_refuse(err, ERR_USAGE, "cli_a_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if (!S_ISREG(st.st_mode) || is_input) {
        int copy = upload_spool_input(fd, "", 0, err);
        if (copy < 0)
            return copy;
        closep(&fd);
        fd = copy;
    }
    const char *last = slash ? slash + 1 : path;
    return upload_send_fd(cli, fd, name ? name : is_input ? "stdin" : last, last, ret, err);
}

void upload_forget(struct cli *cli, const char *id)
{
    _cleanup_(freep) char *path = upload_path_of(id, "");
    _cleanup_(response_release) struct response answer = {0};
    struct request request = {.method = "DELETE", .path = path};
    (void)!client_call(cli->client, &request, &answer, NULL); /* else it expires */
}
