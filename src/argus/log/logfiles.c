/* SPDX-License-Identifier: Apache-2.0 */
/* logfiles.c - see logfiles.h. The server lists them; what is asked for is chosen here. */
#include "argus/log/logfiles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argus/log/follow.h"
#include "argus/log/logout.h"
#include "argus/log/logread.h"
#include "argus/log/searchcall.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { QUERY_MAX = 8 << 10, HEAD_MAX = 4 << 10, LOOK_BACK = 8 };

/* ---- which ---- */

static int get_list(struct cli *cli,
                    const char *id,
                    const struct logfiles_ask *ask,
                    json_t **ret,
                    struct err *err)
{
    _cleanup_(freep) char *path = cli_job_path(id, "/logs/files");
    _cleanup_(buf_release) struct buf whole = BUF_INIT(QUERY_MAX);
    (void)buf_adds(&whole, path); /* too long shows below */
    url_query(&whole, "source", ask->source);
    url_query(&whole, "node", ask->node);
    if (ask->attempt)
        (void)buf_addf(&whole, "&attempt=%" PRId64, ask->attempt);
    if (whole.failed)
        return message_refuse(err, ERR_USAGE, "cli_node_name_long", MESSAGE_NO_ARGS);
    return client_get(cli->client, buf_str(&whole), ret, err);
}

static bool logfiles_fits(const json_t *f, const char *pattern, int64_t rank)
{
    if (rank >= 0 && json_get_int(f, "rank", -1) != rank)
        return false;
    return !pattern || str_glob(pattern, json_get_str(f, "name", "")) ||
           str_glob(pattern, json_get_str(f, "file", ""));
}

static void keep_fitting(const json_t *list, const char *pattern, int64_t rank, json_t *ret)
{
    size_t i;
    json_t *f;
    json_array_foreach (json_get_array(list, "files"), i, f)
        if (logfiles_fits(f, pattern, rank))
            (void)json_array_append(ret, f); /* fails only for lack of memory */
}

/* The newest attempt before this one that has what is asked for; 0: none of the last few. */
static int64_t earlier(struct cli *cli,
                       const char *id,
                       const struct logfiles_ask *ask,
                       int64_t rank,
                       int64_t attempt)
{
    struct logfiles_ask other = *ask;
    for (int64_t k = attempt - 1; k > 0 && k + LOOK_BACK >= attempt; k--) {
        _cleanup_(json_unrefp) json_t *list = NULL, *found = json_array();
        struct err err = {0};
        other.attempt = k;
        if (get_list(cli, id, &other, &list, &err) < 0)
            return 0;
        keep_fitting(list, ask->file, rank, found);
        if (json_array_size(found))
            return k;
    }
    return 0;
}

static int fail_none(struct cli *cli,
                     const char *id,
                     const struct logfiles_ask *ask,
                     int64_t rank,
                     int64_t attempt,
                     bool has_others,
                     struct err *err)
{
    int64_t k = ask->attempt ? 0 : earlier(cli, id, ask, rank, attempt);
    struct message_arg args[] = {MESSAGE_NUM("attempt", attempt),
                                 MESSAGE_STR("id", id),
                                 MESSAGE_STR("source", ask->source),
                                 MESSAGE_STR("node", str_or(ask->node, "")),
                                 {.key = k ? "other" : NULL, .number = (double)k},
                                 {.key = NULL}};
    bool is_scene = !k && !has_others && str_eq(ask->source, "scene");
    return message_refuse(err, ERR_NOT_FOUND,
                          has_others ? "cli_no_such_log"
                          : is_scene ? "cli_no_scene"
                                     : "cli_no_log",
                          args);
}

/* Those that fit, as a new array. */
static int logfiles_choose(struct cli *cli,
                           const char *id,
                           const struct logfiles_ask *ask,
                           json_t **ret,
                           int64_t *ret_attempt,
                           struct err *err)
{
    _cleanup_(json_unrefp) json_t *list = NULL;
    int64_t rank = -1;
    if (ask->rank && str_to_int(ask->rank, 0, INT32_MAX, &rank, NULL) < 0)
        return message_refuse(err, ERR_USAGE, "cli_no_rank",
                              MESSAGE_ARGS(MESSAGE_STR("text", ask->rank)));
    int r = get_list(cli, id, ask, &list, err);
    if (r < 0)
        return r;
    *ret = json_array();
    size_t n = json_array_size(json_get_array(list, "files"));
    keep_fitting(list, ask->file, rank, *ret);
    *ret_attempt = json_get_int(list, "attempt", 1);
    if (json_get_bool(list, "cut", false))
        cli_talk(cli,
                 "argus: warning: there are more logs than the %zu that were listed: name a "
                 "node with --node",
                 n);
    if (json_array_size(*ret))
        return 0;
    return fail_none(cli, id, ask, rank, *ret_attempt, n > 0, err);
}

/* ---- one of them ---- */

/* "==> w1 rank 0 worker-….out (Actor) <==" */
static void logfiles_put_head(struct buf *out, const json_t *f, bool is_first)
{
    int64_t rank = json_get_int(f, "rank", -1);
    const char *actor = json_get_str(f, "actor", NULL);
    if (!is_first)
        (void)buf_addc(out, '\n'); /* a name that is too long is cut, here and below */
    (void)buf_adds(out, "==> ");
    text_clean(out, json_get_str(f, "node", "?"));
    if (rank >= 0)
        (void)buf_addf(out, " rank %" PRId64, rank);
    (void)buf_addc(out, ' ');
    text_clean(out, json_get_str(f, "name", "?"));
    if (actor) {
        (void)buf_adds(out, " (");
        text_clean(out, actor);
        (void)buf_addc(out, ')');
    }
    (void)buf_adds(out, " <==\n");
}

/* What goes with each request for this log. */
static int make_query(struct buf *out,
                      const struct logfiles_ask *ask,
                      const json_t *f,
                      int64_t attempt,
                      struct err *err)
{
    (void)buf_addf(out, "&attempt=%" PRId64 "&source=%s&file=", attempt, ask->source);
    buf_add_url(out, json_get_str(f, "file", "")); /* too long shows here */
    return out->failed ? message_refuse(err, ERR_INTERNAL, "cli_log_name_long", MESSAGE_NO_ARGS)
                       : 0;
}

/* *any: something was printed already. */
static int print_one(struct cli *cli,
                     const char *id,
                     const struct logfiles_ask *ask,
                     const json_t *f,
                     int64_t attempt,
                     const char *head,
                     bool *any,
                     struct err *err)
{
    struct searchlog_end end = {0};
    _cleanup_(buf_release) struct buf query = BUF_INIT(QUERY_MAX);
    _cleanup_(logout_release) struct logout logout = {0};
    int r = make_query(&query, ask, f, attempt, err);
    if (r >= 0)
        r = logout_init(&logout, cli->out, cli->term.is_tty, ask->grep, err);
    if (r < 0)
        return r;
    logout.head = head;
    if (ask->grep && !ask->tail) {
        struct searchlog search = {
            .job = id, .query = buf_str(&query), .grep = ask->grep, .leave_rest = ask->follow};
        r = searchcall_log(cli, &search, &logout, &end, err);
    } else if (!ask->follow || ask->tail) {
        r = logread_print(cli, id, buf_str(&query), ask->tail, NULL, &logout, &end.offset, err);
    }
    if (r >= 0 && ask->follow) {
        struct follow_opts o = {.offset = end.offset, .query = buf_str(&query), .logout = &logout};
        return follow_run(cli, id, &o, err);
    }
    logout_end(&logout);
    if (r >= 0 && logout.head && !ask->grep) /* it is empty */
        (void)fputs(logout.head, cli->out);  /* ferror(out) tells at the end */
    *any |= !ask->grep || !logout.head;
    return r;
}

int logfiles_run(struct cli *cli, const char *id, const struct logfiles_ask *ask, struct err *err)
{
    _cleanup_(json_unrefp) json_t *files = NULL;
    int64_t attempt = 0;
    bool any = false;
    int r = logfiles_choose(cli, id, ask, &files, &attempt, err);
    if (r < 0)
        return r;
    size_t n = json_array_size(files);
    if (ask->follow && n > 1)
        return message_refuse(
            err, ERR_USAGE, "cli_follow_one",
            MESSAGE_ARGS(
                MESSAGE_NUM("fit", n),
                MESSAGE_STR("first", json_get_str(json_array_get(files, 0), "file", "?"))));
    for (size_t i = 0; i < n && r >= 0; i++) {
        const json_t *f = json_array_get(files, i);
        _cleanup_(buf_release) struct buf head = BUF_INIT(HEAD_MAX);
        if (n > 1)
            logfiles_put_head(&head, f, !any);
        r = print_one(cli, id, ask, f, attempt, n > 1 ? buf_str(&head) : NULL, &any, err);
    }
    return r;
}
