/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - lines that match a pattern: in one job's logs, or in those of all jobs that one
 * may see, newest first; of their drivers, their workers or both.
 *
 * A page ends with its hits, or when it has taken a second or two: the cursor says where to go on,
 * so the first hits come at once and nothing is read that nobody waits for. The list of jobs comes
 * from the store page by page, within the scope of him who asks; the reading is done by the worker
 * pool, of which searches get two threads. The next pages wait for their turn (turns.h), each for
 * itself: between two pages of a long search others have theirs. */
#include "argusd/api/jobs/search.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logsearch.h"
#include "fsroot/logs/logtimes.h"

enum {
    JOBS_PAGE = 100,
    HITS_DEFAULT = 100,
    HITS_MAX = 1000,
    LINE_SHOWN = 8 << 10,
    OUT_MAX = 12 << 20,
    SEARCHES = 2,
};
#define PAGE_TIME (USEC_SEC * 3 / 2)
static const uint64_t PAGE_BYTES = 4ULL << 30;

struct search {
    struct http_req *req; /* NULL: gone, freed when the worker is back */
    struct api *a;
    struct turn turn;
    struct store_read *read;
    char *who; /* asks */
    char *root, *user, *project, *workload;
    char *pattern;
    int compiled;        /* of the pattern: what it came to */
    struct err err;      /* the same */
    usec_t since, until; /* until: mono, from its turn on */
    usec_t begins_at;    /* of one driver's log; 0: at its beginning, or where the cursor says */
    bool as_bytes;       /* lines go out as they are */
    bool one_log;        /* of one job: it is said how far its whole lines were searched */
    int64_t limit, hits, jobs;
    struct logsearch s;
    struct logindex_ask *ask;
    struct logsearch_target *targets;
    char *page, *next_page; /* cursors of the store; NULL: the first, and none */
    char *from;             /* id of the job to go on with, of this page or a later one */
    int from_k;
    char *from_file; /* NULL: its driver's */
    char *only_file; /* NULL: all */
    uint64_t from_offset;
    struct buf out;
    struct jout j;
};

static void search_free(struct search *s)
{
    for (size_t i = 0; i < s->s.n_targets; i++)
        free(s->targets[i].job);
    free(s->targets);
    char *texts[] = {s->who,  s->root,      s->user, s->project,   s->workload,  s->pattern,
                     s->page, s->next_page, s->from, s->from_file, s->only_file, s->s.file};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    loggrep_free(s->s.grep);
    logindex_ask_free(s->ask);
    buf_release(&s->out);
    free(s);
}

static void next_turn(struct api *a);

static void search_end(struct search *s)
{
    struct api *a = s->a;
    turns_leave(&a->searches, &s->turn);
    search_free(s);
    next_turn(a);
}

static void search_on_gone(struct http_req *req, void *arg)
{
    struct search *s = arg;
    (void)req;
    s->req = NULL;
    if (s->turn.goes_on && !s->read)
        return; /* the worker has it */
    if (s->read)
        store_read_cancel(s->read);
    search_end(s);
}

/* ---- in the worker ---- */

static bool is_late(void *arg)
{
    const struct search *s = arg;
    return clock_mono() >= s->until;
}

/* `text` is written from the log's own bytes, which may hold a NUL. */
struct hit_page {
    const char *job, *source, *file, *node, *text, *b64;
    int64_t rank; /* -1: not known */
    uint64_t offset;
    int attempt;
};
#define HIT(member, ftype, ...) FIELD_AT(hit_page, #member, ftype, member, __VA_ARGS__)
#define HIT_TEXT "text"
static const struct field hit_rows[] = {
    HIT(job, FIELD_STR, .flags = FIELD_ALWAYS),
    HIT(attempt, FIELD_INT32, .flags = 0),
    HIT(source, FIELD_STR, .flags = FIELD_ALWAYS),
    HIT(file, FIELD_STR, .flags = 0),
    HIT(node, FIELD_STR, .flags = 0),
    HIT(rank, FIELD_INT, .flags = FIELD_NO_LIMIT),
    HIT(offset, FIELD_COUNT, .flags = 0),
    HIT(b64, FIELD_STR, .flags = FIELD_OMIT),
    HIT(text, FIELD_STR, .flags = FIELD_OMIT),
};
static const struct field_table hit_table = FIELD_TABLE(NULL, hit_rows, hit_page);

/* The hits go out as they come, what ends the page after them. */
enum { PAGE_END = FIELD_SHOWN };
struct hits_page {
    struct field_list hits;
    int64_t attempt, offset; /* of one log; -1: of many */
    int64_t jobs;
    uint64_t bytes, skipped_bytes;
    char *next_cursor; /* owned */
};
#define HITS(member, ftype, ...) FIELD_AT(hits_page, #member, ftype, member, __VA_ARGS__)
#define OF_ONE (PAGE_END | FIELD_OMIT | FIELD_NO_LIMIT)
static const struct field hits_rows[] = {
    HITS(hits, FIELD_LIST, .of = &hit_table),
    HITS(attempt, FIELD_INT, .flags = OF_ONE),
    HITS(offset, FIELD_INT, .flags = OF_ONE),
    HITS(jobs, FIELD_INT, .flags = PAGE_END),
    HITS(bytes, FIELD_COUNT, .flags = PAGE_END),
    HITS(skipped_bytes, FIELD_COUNT, .flags = PAGE_END),
    HITS(next_cursor, FIELD_STR, .flags = PAGE_END),
};
static const struct field_table log_hits_table = FIELD_TABLE(NULL, hits_rows, hits_page);

/* Heap; NULL: it goes out as text. */
static char *line_b64(const struct search *s, const struct logsearch_hit *hit)
{
    if (!s->as_bytes)
        return NULL;
    size_t len = sodium_base64_ENCODED_LEN(hit->n, sodium_base64_VARIANT_ORIGINAL);
    char *b64 = xmalloc(len);
    (void)sodium_bin2base64(b64, len, (const unsigned char *)hit->line, hit->n,
                            sodium_base64_VARIANT_ORIGINAL); /* it fits by len */
    return b64;
}

static bool on_hit(const struct logsearch_hit *hit, void *arg)
{
    struct search *s = arg;
    const struct loglist_file *f = hit->file;
    _cleanup_(freep) char *file = f ? loglist_name(f) : NULL;
    _cleanup_(freep) char *b64 = line_b64(s, hit);
    const struct hit_page page = {.job = hit->job,
                                  .attempt = hit->k,
                                  .source = f ? loglist_source_to_string(f->source) : "driver",
                                  .file = file,
                                  .node = f ? f->node : NULL,
                                  .rank = f ? f->rank : -1,
                                  .offset = hit->offset,
                                  .b64 = b64};
    jout_open(&s->j, NULL, '{');
    field_put_members(&hit_table, &page, FIELD_ALL, FIELD_PAGE, &s->j);
    if (!b64)
        jout_strn(&s->j, HIT_TEXT, hit->line, hit->n < LINE_SHOWN ? hit->n : LINE_SHOWN);
    jout_close(&s->j, '}');
    return ++s->hits < s->limit && s->out.len < OUT_MAX / 2;
}

/* A pattern of a few hundred bytes may take some tens of milliseconds: not on the loop. */
static void search_run_compile(void *arg)
{
    struct search *s = arg;
    struct grepneeds needs;
    s->compiled = loggrep_new(s->pattern, &s->s.grep, &s->err);
    if (s->compiled < 0)
        return;
    grepneeds_read(s->pattern, &needs);
    s->s.ask = s->ask = logindex_ask_new(&needs);
    grepneeds_release(&needs);
}

static void search_run(void *arg)
{
    struct search *s = arg;
    size_t before = s->s.at;
    if (s->begins_at) {
        const struct logsearch_target *t = &s->s.targets[0];
        s->s.k = t->k;
        s->s.offset = logtimes_find(s->root, t->job, t->k, ATTEMPT_LOG, s->begins_at);
    }
    logsearch_run(&s->s);
    s->jobs += (int64_t)(s->s.at - before);
}

/* ---- the answer ---- */

/* "<page of the store>~<job>~<attempt>~<offset>", and "~<file>" in a worker's log. Heap; NULL: that
 * was all. */
static char *search_cursor(const struct search *s)
{
    bool whole = s->s.at == s->s.n_targets;
    if (whole && !s->next_page)
        return NULL;
    return xasprintf("%s~%s~%d~%" PRIu64 "%s%s", str_or(whole ? s->next_page : s->page, ""),
                     whole ? "" : s->targets[s->s.at].job, whole ? 0 : s->s.k,
                     whole ? 0 : s->s.offset, whole || !s->s.file ? "" : "~",
                     whole ? "" : str_or(s->s.file, ""));
}

static void search_answer(struct search *s)
{
    const struct hits_page page = {.attempt = s->one_log ? s->targets[0].k : -1,
                                   .offset = s->one_log ? (int64_t)s->s.whole : -1,
                                   .jobs = s->jobs,
                                   .bytes = s->s.bytes,
                                   .skipped_bytes = s->s.skipped,
                                   .next_cursor = search_cursor(s)};
    http_req_on_close(s->req, NULL, NULL);
    jout_close(&s->j, ']');
    field_put_members(&log_hits_table, &page, PAGE_END, FIELD_PAGE, &s->j);
    jout_close(&s->j, '}');
    free(page.next_cursor);
    http_reply_json(s->req, 200, &s->out, api_reader_barrier(s->a));
    search_end(s);
}

static void next_page(struct search *s);

static void on_searched(void *arg)
{
    struct search *s = arg;
    if (!s->req) {
        search_end(s);
    } else if (s->s.at < s->s.n_targets || !s->next_page || is_late(s)) {
        search_answer(s);
    } else {
        free(s->page);
        s->page = s->next_page;
        s->next_page = NULL;
        next_page(s);
    }
}

/* ---- the list ---- */

static void add_target(struct search *s, const char *id, int k, int last_k)
{
    size_t n = s->s.n_targets;
    s->targets = xrealloc(s->targets, n + 1, sizeof(*s->targets));
    s->targets[n] = (struct logsearch_target){.job = xstrdup(id), .k = k, .last_k = last_k};
    s->s.n_targets = n + 1;
    s->s.targets = s->targets;
}

static void clear_targets(struct search *s)
{
    while (s->s.n_targets)
        free(s->targets[--s->s.n_targets].job);
    s->s.at = 0;
    s->s.k = 0;
    s->s.offset = 0;
    freep(&s->s.file);
}

/* Where the cursor says that it goes on, once its job is there. */
static void search_go_on(struct search *s)
{
    s->s.k = s->from_k;
    s->s.offset = s->from_offset;
    s->s.file = s->from_file;
    s->from_file = NULL;
    freep(&s->from);
}

static void search_start(struct search *s)
{
    s->read = NULL;
    work_start(s->a->loop, search_run, on_searched, s);
}

/* From the job where the page before ended; those before it were searched. */
static void search_on_listed(const struct store_result *r, void *arg)
{
    struct search *s = arg;
    if (r->err.code) {
        http_req_on_close(s->req, NULL, NULL);
        api_fail(s->req, &r->err, 0);
        search_end(s);
        return;
    }
    clear_targets(s);
    for (size_t i = 0; i < r->njobs; i++) {
        if (s->from && strcmp(r->jobs[i].id, s->from) != 0)
            continue;
        if (s->from)
            search_go_on(s);
        add_target(s, r->jobs[i].id, (int)r->jobs[i].attempt, 1);
    }
    s->next_page = r->next ? xstrdup(r->next) : NULL;
    search_start(s);
}

static void next_page(struct search *s)
{
    struct store_job_query q = {.user = s->user,
                                .project = s->project,
                                .workload = s->workload,
                                .since = s->since,
                                .cursor = s->page,
                                .limit = JOBS_PAGE};
    struct store_then then = {.done = search_on_listed, .arg = s};
    struct people_view view;
    people_view(s->a->people, http_req_principal(s->req), PEOPLE_WISH_ALL, &view);
    q.scope = view.scope;
    q.no_live = !jobs_may_have(s->a->jobs, NULL, NULL, q.workload);
    s->read = store_list_jobs(s->a->store, &q, &then);
    people_view_release(&view);
}

/* A search in one job has no list of jobs: its only target was put when it was asked for. */
static void search_on_compiled(void *arg)
{
    struct search *s = arg;
    if (!s->req) {
        search_end(s);
    } else if (s->compiled < 0) {
        http_req_on_close(s->req, NULL, NULL);
        api_fail(s->req, &s->err, 0);
        search_end(s);
    } else if (s->s.n_targets) {
        search_start(s);
    } else {
        next_page(s);
    }
}

static void next_turn(struct api *a)
{
    struct turn *turn;
    while ((turn = turns_next(&a->searches, SEARCHES)) != NULL) {
        struct search *s = container_of(turn, struct search, turn);
        s->until = clock_mono() + PAGE_TIME;
        work_start(a->loop, search_run_compile, search_on_compiled, s);
    }
}

/* ---- the request ---- */

/* The texts between the first of `most` parts, which are apart by '~', yours; how many. */
static size_t search_split(const char *text, char **ret, size_t most)
{
    size_t n = 0;
    for (const char *p = text; p && n < most; n++) {
        const char *end = n + 1 < most ? strchr(p, '~') : NULL;
        ret[n] = end ? xstrndup(p, (size_t)(end - p)) : xstrdup(p);
        p = end ? end + 1 : NULL;
    }
    return n;
}

/* Takes what it needs of the parts. */
static int read_parts(struct search *s, char **part, size_t n)
{
    int64_t attempt = 0, at = 0;
    if (n < 4 || str_to_int(part[2], 0, 1 << 20, &attempt, NULL) < 0 ||
        str_to_int(part[3], 0, INT64_MAX, &at, NULL) < 0)
        return -EINVAL;
    _cleanup_(freep) char *path =
        n > 4 ? loglist_path(logsearch_listed(s->s.sources), part[4]) : NULL;
    if (n > 4 && (!path || !(s->s.sources & (LOGSEARCH_WORKERS | LOGSEARCH_SCENE))))
        return -EINVAL;
    s->page = *part[0] ? xstrdup(part[0]) : NULL;
    s->from = *part[1] ? xstrdup(part[1]) : NULL;
    s->from_file = n > 4 ? xstrdup(part[4]) : NULL;
    s->from_k = (int)attempt;
    s->from_offset = (uint64_t)at;
    return 0;
}

static int search_read_cursor(struct search *s, const char *text, struct err *err)
{
    char *part[5] = {0};
    int r = read_parts(s, part, search_split(text, part, array_len(part)));
    for (size_t i = 0; i < array_len(part); i++)
        free(part[i]);
    return r < 0 ? message_refuse(err, ERR_BAD_REQUEST, "bad_search_cursor",
                                  MESSAGE_ARGS(MESSAGE_STR("cursor", text)))
                 : 0;
}

static int search_read_source(struct search *s, const char *source, struct err *err)
{
    static const struct {
        const char *name;
        unsigned sources;
    } all[] = {{"driver", LOGSEARCH_DRIVER},
               {"worker", LOGSEARCH_WORKERS},
               {"scene", LOGSEARCH_SCENE},
               {"all", LOGSEARCH_DRIVER | LOGSEARCH_WORKERS}};
    for (size_t i = 0; i < array_len(all); i++)
        if (str_eq(str_or(source, "driver"), all[i].name)) {
            s->s.sources = all[i].sources;
            return 0;
        }
    return message_refuse(err, ERR_BAD_REQUEST, "log_not_searched",
                          MESSAGE_ARGS(MESSAGE_STR("source", source)));
}

static char *copy_query(const struct http_req *req, const char *name)
{
    const char *text = http_req_query(req, name);
    return text ? xstrdup(text) : NULL;
}

/* A search in one job may name one of the logs beside the driver's. */
static int search_read_file(struct search *s, struct err *err)
{
    const char *file = http_req_query(s->req, "file");
    bool beside = s->s.sources == LOGSEARCH_WORKERS || s->s.sources == LOGSEARCH_SCENE;
    if (!file)
        return 0;
    if (!beside)
        return message_refuse(err, ERR_BAD_REQUEST, "log_file_source", MESSAGE_NO_ARGS);
    _cleanup_(freep) char *path = loglist_path(logsearch_listed(s->s.sources), file);
    if (!path)
        return message_refuse(
            err, ERR_BAD_REQUEST, "log_bad_file",
            MESSAGE_ARGS(
                MESSAGE_STR("file", file),
                MESSAGE_STR("source", loglist_source_to_string(logsearch_listed(s->s.sources)))));
    s->s.only = s->only_file = xstrdup(file);
    return 0;
}

/* NULL: the refusal was sent. */
static struct search *search_begin(struct http_req *req, struct api *a)
{
    struct err err = {0};
    const char *cursor = http_req_query(req, "cursor");
    struct search *s = xcalloc(1, sizeof(*s));
    *s = (struct search){.req = req,
                         .a = a,
                         .root = xstrdup(a->settings->shared_root),
                         .user = copy_query(req, "user"),
                         .who = xstrdup(http_req_principal(req)->user),
                         .project = copy_query(req, "project"),
                         .workload = copy_query(req, "workload"),
                         .pattern = xstrdup(str_or(http_req_query(req, "grep"), "")),
                         .out = BUF_INIT(OUT_MAX)};
    s->s = (struct logsearch){
        .root = s->root, .most_bytes = PAGE_BYTES, .is_late = is_late, .on_hit = on_hit, .arg = s};
    int r = http_req_query_int(req, "limit", 1, HITS_MAX, HITS_DEFAULT, &s->limit, &err);
    if (r < 0)
        err.code = r = ERR_BAD_REQUEST;
    if (r == 0)
        r = api_read_time(req, "since", clock_wall(), &s->since, &err);
    if (r == 0)
        r = search_read_source(s, http_req_query(req, "source"), &err);
    if (r == 0)
        r = search_read_file(s, &err);
    if (r == 0 && cursor)
        r = search_read_cursor(s, cursor, &err);
    if (r == 0)
        r = cluster_check_root_answers(a->cluster, &err);
    s->turn.user = s->who;
    if (r == 0 && !turns_join(&a->searches, &s->turn))
        r = message_refuse(&err, ERR_BUSY, "too_many_searches",
                           MESSAGE_ARGS(MESSAGE_NUM("all", TURNS_WAITING_MAX),
                                        MESSAGE_NUM("yours", TURNS_WAITING_OF_ONE_MAX)));
    if (r < 0) {
        api_fail(req, &err, 0);
        search_free(s);
        return NULL;
    }
    s->as_bytes = http_req_query_bool(req, "bytes", false);
    s->j = jout_begin(&s->out);
    jout_open(&s->j, NULL, '{');
    jout_open(&s->j, "hits", '[');
    http_req_on_close(req, search_on_gone, s);
    return s;
}

static void api_logs_search(struct http_req *req, void *app)
{
    struct api *a = app;
    struct search *s = search_begin(req, a);
    if (!s)
        return;
    next_turn(a);
}

void search_job(struct http_req *req, struct api *a, const struct job *job, int k)
{
    struct search *s = search_begin(req, a);
    if (!s)
        return;
    bool goes_on = s->from && s->from_k && !strcmp(s->from, job->id);
    k = goes_on ? s->from_k : k; /* that of the page before, though there may be a newer one */
    add_target(s, job->id, k, k ? k : 1);
    s->one_log = s->only_file || s->s.sources == LOGSEARCH_DRIVER;
    if (goes_on)
        search_go_on(s);
    else if (k)
        s->begins_at = s->since;
    next_turn(a);
}

static const struct http_param search_params[] = {
    {"grep", HTTP_PARAM_STRING, "a regular expression (PCRE2) that a line must match"},
    {"source", HTTP_PARAM_STRING,
     "in the logs of drivers, of workers, of scenes, or of drivers and workers: driver, worker, "
     "scene "
     "or all; driver if not given"},
    {"user", HTTP_PARAM_STRING, "only in this user's jobs"},
    {"project", HTTP_PARAM_STRING, "only in jobs of this project"},
    {"workload", HTTP_PARAM_STRING, "only in jobs of this workload"},
    {"since", HTTP_PARAM_STRING,
     "only in jobs submitted at or after: a time, or a span before now (2h)"},
    {"limit", HTTP_PARAM_INTEGER, "hits of a page, 1 to 1000; 100 if not given"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/logs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_logs_search,
     .summary = "lines that match, in the logs of all jobs that you may see, newest first; a page "
                "ends with its hits or after two seconds",
     .params = search_params,
     .reply_schema = "LogHits"},
};
static const struct http_schema schemas[] = {
    {.name = "LogHits", .table = &log_hits_table},
};
const struct api_part part_search = {rows, array_len(rows), schemas, array_len(schemas)};
