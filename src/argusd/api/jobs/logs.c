/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - a job's log, the driver's or another of the attempt (fsroot/logs/loglist.h): a part of
 * it, or a stream that follows it (tails.h). Offsets count bytes of the log, whatever files it is
 * kept in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/jobs/search.h"
#include "argusd/kit/part.h"
#include "argusd/logs/logparts.h"
#include "argusd/logs/tailpages.h"
#include "argusd/logs/tails.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/loglist.h"

enum { PART_DEFAULT = 1 << 20, PART_MAX = 8 << 20 };

/* ---- one part of the file ---- */

struct once {
    struct http_req *req; /* NULL: gone */
    struct api *a;
    int64_t tail;
    uint64_t least; /* of the offsets that a tail may begin at */
    size_t limit;
    bool sized;
    bool must_be; /* it was named: that there is none is no empty log */
};

static void on_once_gone(struct http_req *req, void *arg)
{
    struct once *o = arg;
    (void)req;
    o->req = NULL;
}

static void answer_part(struct once *o, const struct logpart *p)
{
    struct buf out = BUF_INIT(PART_MAX);
    char text[32];
    (void)buf_add(&out, p->bytes, p->n); /* n <= PART_MAX */
    text_printf(text, "%llu", (unsigned long long)p->end);
    http_reply_header(o->req, "Argus-Log-Size", text);
    text_printf(text, "%llu", (unsigned long long)p->at);
    http_reply_header(o->req, "Argus-Log-Offset", text);
    http_reply(o->req, 200, "application/octet-stream", &out, 0);
    buf_release(&out);
}

/* ?tail=N lines: keep the last N lines of what was read. */
static void keep_lines(struct logpart *p, int64_t lines)
{
    size_t i = p->n;
    if (i && lines > 0 && p->bytes[i - 1] == '\n')
        i--;
    while (i && lines > 0)
        if (p->bytes[i - 1] == '\n' && --lines == 0)
            break;
        else
            i--;
    memmove(p->bytes, p->bytes + i, p->n - i);
    p->n -= i;
    p->at += i;
}

static void logs_on_part(struct logpart *p, void *arg);

static void read_part(struct once *o,
                      const char *job,
                      const char *name,
                      int k,
                      uint64_t offset,
                      usec_t since,
                      size_t want)
{
    struct logpart_ask ask = {.root = o->a->settings->shared_root,
                              .job = job,
                              .name = name,
                              .k = k,
                              .offset = offset,
                              .since = since,
                              .want = want,
                              .done = logs_on_part,
                              .arg = o};
    logpart_read(o->a->loop, &ask);
}

/* The driver's log is empty before there is one; a link or the like in the place of another is none
 * at all. */
static void judge_missing(const struct once *o, struct logpart *p)
{
    bool is_none = p->result == -ENOENT || p->result == -ELOOP || p->result == -EINVAL;
    if (p->result == -ENOENT && !o->must_be) {
        p->n = 0;
        p->end = 0;
        p->result = 0;
    } else if (is_none && o->must_be) {
        p->result =
            message_refuse(&p->err, ERR_NOT_FOUND, "no_log",
                           MESSAGE_ARGS(MESSAGE_NUM("attempt", p->k), MESSAGE_STR("job", p->job),
                                        MESSAGE_STR("file", p->name)));
    }
}

static void logs_on_part(struct logpart *p, void *arg)
{
    struct once *o = arg;
    if (!o->req) {
        free(o);
        return;
    }
    judge_missing(o, p);
    if (p->result == 0 && o->tail >= 0 && !o->sized) {
        /* The size is known now: read the end of the file. */
        uint64_t from = p->end > o->limit ? p->end - o->limit : 0;
        o->sized = true;
        o->least = p->since ? p->offset : 0;
        read_part(o, p->job, p->name, p->k, from > o->least ? from : o->least, 0, o->limit);
        return;
    }
    if (p->result == 0 && o->tail >= 0 && p->n && p->at + p->n < p->end && p->n < p->want) {
        /* A gap: the last lines are those behind it. */
        read_part(o, p->job, p->name, p->k, p->at + p->n, 0, o->limit);
        return;
    }
    http_req_on_close(o->req, NULL, NULL);
    if (p->result < 0) {
        api_fail(o->req, &p->err, 0);
    } else {
        if (o->tail >= 0) {
            p->end = p->at + p->n; /* the file may have grown since: one goes on from here */
            keep_lines(p, o->tail);
        }
        answer_part(o, p);
    }
    free(o);
}

/* ---- the request ---- */

/* "1234", or "2:1234" where the stream went over several attempts: attempt 2. */
static int read_event_id(const char *id, struct tails_place *place, struct err *err)
{
    const char *colon = strchr(id, ':');
    _cleanup_(freep) char *attempt = colon ? xstrndup(id, (size_t)(colon - id)) : NULL;
    int64_t k = 1, offset = 0;
    if ((attempt && str_to_int(attempt, 1, 1 << 20, &k, NULL) < 0) ||
        str_to_int(colon ? colon + 1 : id, 0, INT64_MAX, &offset, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "bad_offset_id",
                              MESSAGE_ARGS(MESSAGE_STR("id", id)));
    if (!place->named && place->k)
        place->k = (int)k;
    place->offset = (uint64_t)offset;
    return 0;
}

/* Which log of the attempt: its name there, which is yours. */
static int read_name(struct http_req *req, char **ret, struct err *err)
{
    enum loglist_source s = LOGLIST_WORKER;
    const char *source = http_req_query(req, "source"), *file = http_req_query(req, "file");
    if (http_req_query(req, "grep")) { /* the search reads source and file itself */
        *ret = xstrdup(ATTEMPT_LOG);
        return 0;
    }
    if (!source || str_eq(source, "driver")) {
        if (file)
            return message_refuse(err, ERR_BAD_REQUEST, "log_file_source", MESSAGE_NO_ARGS);
        *ret = xstrdup(ATTEMPT_LOG);
        return 0;
    }
    if (loglist_source_from_string(source, &s) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "log_no_source",
                              MESSAGE_ARGS(MESSAGE_STR("source", source)));
    if (!file)
        return message_refuse(err, ERR_BAD_REQUEST, "log_wants_file",
                              MESSAGE_ARGS(MESSAGE_STR("source", source)));
    *ret = loglist_path(s, file);
    return *ret ? 0
                : message_refuse(
                      err, ERR_BAD_REQUEST, "log_bad_file",
                      MESSAGE_ARGS(MESSAGE_STR("file", file), MESSAGE_STR("source", source)));
}

/* ret borrows *ret_name, which is yours. */
static int read_place(struct http_req *req,
                      const struct job *job,
                      struct tails_place *ret,
                      char **ret_name,
                      struct err *err)
{
    const char *last = http_req_last_event_id(req);
    int64_t k = 0, offset = 0;
    int r = http_req_query_int(req, "attempt", 1, 1 << 20, job->n_attempts, &k, err);
    if (r == 0)
        r = http_req_query_int(req, "offset", 0, INT64_MAX, 0, &offset, err);
    if (r == 0)
        r = read_name(req, ret_name, err);
    if (r < 0)
        return err->code = ERR_BAD_REQUEST;
    /* Other files have other names in the next attempt: a stream of one stays in its own. */
    *ret =
        (struct tails_place){.k = (int)k,
                             .named = http_req_query(req, "attempt") || http_req_query(req, "file"),
                             .name = *ret_name,
                             .offset = (uint64_t)offset};
    r = last ? read_event_id(last, ret, err) : 0;
    return r == 0 ? api_check_attempt(job, ret->k, err) : r;
}

/* Reads ?since=, which only the driver's log has; who goes on with a stream has his place
 * already. */
static int read_since(struct http_req *req,
                      const struct tails_place *place,
                      usec_t *ret,
                      struct err *err)
{
    bool is_driver = str_eq(str_or(http_req_query(req, "source"), "driver"), "driver");
    if (http_req_query(req, "since") && !is_driver)
        return message_refuse(err, ERR_BAD_REQUEST, "log_since_driver", MESSAGE_NO_ARGS);
    int r = api_read_time(req, "since", clock_wall(), ret, err);
    if (r == 0 && (http_req_last_event_id(req) || !place->k))
        *ret = 0;
    return r;
}

/* ---- a stream that begins at a time ---- */

struct later {
    struct http_req *req; /* NULL: gone */
    struct api *a;
    char *user, *project;
    bool named;
};

static void on_later_gone(struct http_req *req, void *arg)
{
    struct later *l = arg;
    (void)req;
    l->req = NULL;
}

/* The begin is known, or the reader gave up; in both cases every line written since the request
 * lies behind p->offset. */
static void on_begin_known(struct logpart *p, void *arg)
{
    struct later *l = arg;
    struct job job = {.id = p->job, .user = l->user, .project = l->project};
    struct tails_place place = {.k = p->k,
                                .named = l->named,
                                .name = p->name,
                                .offset = p->offset,
                                .barrier = api_reader_barrier(l->a)};
    if (l->req) {
        http_req_on_close(l->req, NULL, NULL);
        tails_follow(l->a->tails, l->req, &job, &place);
    }
    free(l->user);
    free(l->project);
    free(l);
}

static void follow_since(struct http_req *req,
                         struct api *a,
                         const struct job *job,
                         const struct tails_place *place,
                         usec_t since)
{
    struct later *l = xcalloc(1, sizeof(*l));
    *l = (struct later){.req = req,
                        .a = a,
                        .user = xstrdup(job->user),
                        .project = xstrdup(job->project),
                        .named = place->named};
    struct logpart_ask ask = {.root = a->settings->shared_root,
                              .job = job->id,
                              .name = place->name,
                              .k = place->k,
                              .offset = place->offset,
                              .since = since,
                              .want = 1,
                              .done = on_begin_known,
                              .arg = l};
    http_req_on_close(req, on_later_gone, l);
    logpart_read(a->loop, &ask);
}

/* What of a log is asked for beside its place. */
struct log_wish {
    int64_t limit, tail; /* bytes, lines; tail -1: not told */
    usec_t since;
    bool greps, follows, reads; /* reads: the file itself, here */
};

static int read_wish(struct http_req *req,
                     struct tails_place *place,
                     struct log_wish *ret,
                     struct err *err)
{
    int r = http_req_query_int(req, "limit", 1, PART_MAX, PART_DEFAULT, &ret->limit, err);
    if (r == 0)
        r = http_req_query_int(req, "tail", 0, 1000000, -1, &ret->tail, err);
    if (r < 0 && err)
        err->code = ERR_BAD_REQUEST;
    ret->greps = http_req_query(req, "grep") != NULL;
    ret->follows = http_req_query_bool(req, "follow", false);
    if (r < 0)
        return ERR_BAD_REQUEST;
    r = read_since(req, place, &ret->since, err);
    ret->reads = !ret->greps && (!ret->follows || ret->since);
    return r;
}

static void job_logs(struct http_req *req,
                     struct api *a,
                     const struct job *job,
                     const struct record_extra *extra,
                     struct live *l)
{
    struct tails_place place = {0};
    _cleanup_(freep) char *name = NULL;
    struct log_wish wish = {0};
    struct err err = {0};
    (void)extra;
    (void)l;
    if (!api_has_files(req, a, job))
        return;
    int r = read_place(req, job, &place, &name, &err);
    if (r == 0)
        r = read_wish(req, &place, &wish, &err);
    if (r == 0 && name && wish.reads)
        r = cluster_check_root_answers(a->cluster, &err);
    if (r < 0 || !name) {
        api_fail(req, &err, 0);
    } else if (wish.greps) {
        search_job(req, a, job, place.k);
    } else if (wish.follows && !wish.since) {
        place.barrier = api_reader_barrier(a);
        tails_follow(a->tails, req, job, &place);
    } else if (wish.follows) {
        follow_since(req, a, job, &place, wish.since);
    } else {
        struct once *o = xcalloc(1, sizeof(*o));
        *o = (struct once){.req = req,
                           .a = a,
                           .tail = wish.tail,
                           .limit = (size_t)wish.limit,
                           .must_be = http_req_query(req, "file") != NULL};
        http_req_on_close(req, on_once_gone, o);
        read_part(o, job->id, name, place.k ? place.k : 1, place.offset, wish.since,
                  wish.tail >= 0 ? 1 : (size_t)wish.limit);
    }
}

static void api_jobs_logs(struct http_req *req, void *app)
{
    api_find_job(req, app, job_logs);
}

static const struct http_param log_params[] = {
    {"follow", HTTP_PARAM_BOOLEAN, "an event stream: log events with offset and b64, then end"},
    {"attempt", HTTP_PARAM_INTEGER, "which attempt; the newest if not given"},
    {"offset", HTTP_PARAM_INTEGER, "byte to begin at"},
    {"since", HTTP_PARAM_STRING,
     "leave out what the driver's log had before this, as far as known (in steps of some "
     "seconds): a time, or a span before now (10m)"},
    {"limit", HTTP_PARAM_INTEGER, "bytes at most, up to 8 MiB; 1 MiB if not given"},
    {"tail", HTTP_PARAM_INTEGER, "the last so many lines of the last limit bytes"},
    {"grep", HTTP_PARAM_STRING,
     "a regular expression (PCRE2): the lines that match, as GET /v1/logs has them"},
    {"bytes", HTTP_PARAM_BOOLEAN, "with grep: b64 in place of text, the whole line as it is"},
    {"cursor", HTTP_PARAM_STRING, "with grep: next_cursor of the page before"},
    {"source", HTTP_PARAM_STRING,
     "driver, worker or scene, with grep also all; driver if not given"},
    {"file", HTTP_PARAM_STRING,
     "with source worker or scene: which log, as GET /v1/jobs/{id}/logs/files names it"},
    {"last_event_id", HTTP_PARAM_STRING, "as the Last-Event-ID header: go on at this byte"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/logs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_logs,
     .summary = "the driver's log or another, or a stream of it",
     .params = log_params,
     .reply_type = "application/octet-stream",
     .stream_schema = "LogMessage"},
};
static const struct http_schema schemas[] = {
    {.name = "LogMessage",
     .json = "{\"anyOf\":[" REF("LogPiece") "," REF("LogReplaced") "," REF("LogEnd") "]}"},
    {.name = "LogPiece", .table = &tails_piece_table},
    {.name = "LogReplaced", .table = &tails_replaced_table},
    {.name = "LogEnd", .table = &tails_end_table},
};
const struct api_part part_logs = {rows, array_len(rows), schemas, array_len(schemas)};
