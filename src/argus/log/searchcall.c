/* SPDX-License-Identifier: Apache-2.0 */
/* searchcall.c - see searchcall.h. The server answers each page within seconds, with what it has
 * found by then; a page is printed before the next is asked for. */
#include "argus/log/searchcall.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "argus/show/ansi.h"
#include "base/message.h"

enum {
    PAGE = 100,
    PAGE_OF_ONE = 1000,
    LINE_MAX_SHOWN = 64 << 10,
    BUSY_MS = 500,
    BUSY_TRIES = 120,
};

static void print_hit(struct cli *cli, const json_t *hit)
{
    struct ansi ansi = {0};
    const char *text = json_get_str(hit, "text", "");
    struct buf safe = BUF_INIT(LINE_MAX_SHOWN);
    if (cli->term.is_tty)
        ansi_filter(&ansi, text, strlen(text), true, &safe);
    const char *file = json_get_str(hit, "file", NULL);
    int64_t rank = json_get_int(hit, "rank", -1);
    (void)fprintf(cli->out, "%s/%" PRId64, json_get_str(hit, "job", "?"),
                  json_get_int(hit, "attempt", 0)); /* ferror(out) tells at the end */
    if (file)
        (void)fprintf(cli->out, "/%s", file); /* the same */
    if (file && rank >= 0)
        (void)fprintf(cli->out, "[%" PRId64 "]", rank); /* the same */
    (void)fprintf(cli->out, ":%" PRId64 ": %s\n", json_get_int(hit, "offset", 0),
                  cli->term.is_tty ? buf_str(&safe) : text); /* the same */
    buf_release(&safe);
}

static void add_filter(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    (void)buf_addf(path, "&%s=", name); /* too long a path is refused by the server */
    buf_add_url(path, value);
}

/* The server takes few searches at once, and each page of one ends within seconds. */
static int wait_for_page(struct cli *cli, const char *path, json_t **ret, struct err *err)
{
    struct request request = {.path = path, .tries = 10};
    for (int k = 0;; k++) {
        struct err e = {0};
        int r = client_json(cli->client, &request, ret, &e);
        if (r != ERR_BUSY || k == BUSY_TRIES)
            return r < 0 ? err_copy(err, r, &e) : r;
        if (client_pause(cli->client, BUSY_MS) < 0)
            return message_refuse(err, -EINTR, "cli_interrupted", MESSAGE_NO_ARGS);
    }
}

/* *cursor: of the page before, NULL = the first; then of the next one, NULL = it was the last. */
static int get_page(struct cli *cli, struct buf *path, char **cursor, json_t **ret, struct err *err)
{
    add_filter(path, "cursor", *cursor);
    int r = wait_for_page(cli, buf_str(path), ret, err);
    if (r < 0)
        return r;
    const char *next = json_get_str(*ret, "next_cursor", NULL);
    free(*cursor);
    *cursor = next ? xstrdup(next) : NULL;
    return 0;
}

int searchcall_run(struct cli *cli, const struct searchcall *call, struct err *err)
{
    _cleanup_(freep) char *cursor = NULL, *logs = call->job ? cli_job_path(call->job, "/logs")
                                                            : xstrdup("/v1/logs");
    int64_t left = call->most ? call->most : INT64_MAX;
    do {
        _cleanup_(json_unrefp) json_t *page = NULL;
        _cleanup_(buf_release) struct buf path = BUF_INIT(16 << 10);
        (void)buf_addf(&path, "%s?limit=%" PRId64, logs, left < PAGE ? left : PAGE); /* fits */
        if (call->attempt)
            (void)buf_addf(&path, "&attempt=%" PRId64, call->attempt); /* the same */
        add_filter(&path, "grep", call->grep);
        add_filter(&path, "source", call->source);
        add_filter(&path, "user", call->user);
        add_filter(&path, "project", call->project);
        add_filter(&path, "since", call->since);
        int r = get_page(cli, &path, &cursor, &page, err);
        if (r < 0)
            return r;
        const json_t *hits = json_get_array(page, "hits");
        for (size_t i = 0; i < json_array_size(hits); i++)
            print_hit(cli, json_array_get(hits, i));
        (void)fflush(cli->out); /* the same */
        left -= (int64_t)json_array_size(hits);
    } while (cursor && left > 0);
    return 0;
}

/* ---- one log ---- */

static int print_line(struct logout *logout, const json_t *hit, struct err *err)
{
    const char *b64 = json_get_str(hit, "b64", NULL), *text = json_get_str(hit, "text", "");
    if (!b64) { /* an older server */
        logout_line(logout, text, strlen(text));
        return 0;
    }
    size_t len = strlen(b64), most = len / 4 * 3 + 1, n = 0;
    _cleanup_(freep) char *bytes = xmalloc(most);
    if (sodium_base642bin((unsigned char *)bytes, most, b64, len, NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return message_refuse(err, ERR_INTERNAL, "cli_no_base64", MESSAGE_NO_ARGS);
    logout_line(logout, bytes, n);
    return 0;
}

/* *ret_all: no line of it was left. */
static int print_page(struct logout *logout,
                      const json_t *page,
                      uint64_t until,
                      bool *ret_all,
                      struct err *err)
{
    size_t i;
    json_t *hit;
    *ret_all = true;
    json_array_foreach (json_get_array(page, "hits"), i, hit) {
        *ret_all = (uint64_t)json_get_int(hit, "offset", 0) < until;
        int r = *ret_all ? print_line(logout, hit, err) : 0;
        if (r < 0 || !*ret_all)
            return r;
    }
    return 0;
}

int searchcall_log(struct cli *cli,
                   const struct searchlog *ask,
                   struct logout *logout,
                   struct searchlog_end *ret,
                   struct err *err)
{
    _cleanup_(freep) char *cursor = NULL, *log = cli_job_path(ask->job, "/logs");
    bool all = true;
    do {
        _cleanup_(json_unrefp) json_t *page = NULL;
        _cleanup_(buf_release) struct buf path = BUF_INIT(16 << 10);
        (void)buf_addf(&path, "%s?bytes=1&limit=%d%s", log, PAGE_OF_ONE,
                       ask->query); /* too long a path is refused by the server */
        add_filter(&path, "grep", ask->grep);
        add_filter(&path, "since", ask->since);
        int r = get_page(cli, &path, &cursor, &page, err);
        if (r < 0)
            return r;
        *ret = (struct searchlog_end){.attempt = json_get_int(page, "attempt", 0),
                                      .offset = (uint64_t)json_get_int(page, "offset", 0)};
        r = print_page(logout, page, ask->leave_rest ? ret->offset : UINT64_MAX, &all, err);
        if (r < 0)
            return r;
        (void)fflush(cli->out); /* ferror(out) tells at the end */
    } while (cursor && all);
    return 0;
}
