/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - GET /v1/jobs/{id}/samples: what a training wrote, by step, prompt, score and words.
 *
 * All reading is done in the worker pool. A request first brings the job's index up to what its
 * dumps hold now, as far as that takes no time that anybody notices; what is left is said, and done
 * by the sampler. A page ends with its samples, or when it has taken a second or two. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/kit/hiding.h"
#include "argusd/kit/part.h"
#include "argusd/samples/sampler.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/samples/samplequery.h"

enum {
    SAMPLES_DEFAULT = 20,
    SAMPLES_MAX = 100,
    SAMPLES_TEXT_DEFAULT = 16 << 10,
    SAMPLES_TEXT_MAX = 256 << 10,
    SAMPLES_PAGE_MAX = 8 << 20, /* bytes: a page ends before it */
    SAMPLES_STEPS_MAX = 200,    /* newest ones that are listed */
    SAMPLES_PART_MAX = 4 << 10, /* bytes of a part of the reward */
    SAMPLES_BUDGET = 32 << 20,  /* bytes of dumps that a request indexes */
};
#define SAMPLES_TIME (USEC_SEC * 3 / 2)

/* ---- the form of the answer ---- */

struct sample_step_page {
    int64_t step;
    uint64_t samples, unread, bytes, scored, groups, flat;
    double mean, least, most;
};
#define STEP(key, ftype, member, ...) FIELD_AT(sample_step_page, key, ftype, member, __VA_ARGS__)
static const struct field sample_step_rows[] = {
    STEP("step", FIELD_INT, step),
    STEP("samples", FIELD_COUNT, samples),
    STEP("scored", FIELD_COUNT, scored),
    STEP("score_mean", FIELD_REAL, mean, .flags = FIELD_MAYBE),
    STEP("score_least", FIELD_REAL, least, .flags = FIELD_MAYBE),
    STEP("score_most", FIELD_REAL, most, .flags = FIELD_MAYBE),
    STEP("groups", FIELD_COUNT, groups),
    STEP("flat_groups", FIELD_COUNT, flat),
    STEP("unread", FIELD_COUNT, unread),
    STEP("bytes", FIELD_COUNT, bytes),
};
static const struct field_table sample_step_table =
    FIELD_TABLE("SampleStep", sample_step_rows, sample_step_page);

struct sample_page {
    int64_t step;
    uint64_t rank;
    char prompt[17], group[17];
    double score, change, repeats;
    char *input, *output, *gts, *uid, *request_id, *parts; /* owned */
    bool is_cut;
};
#define SAMPLE(key, ftype, member, ...) FIELD_AT(sample_page, key, ftype, member, __VA_ARGS__)
static const struct field sample_rows[] = {
    SAMPLE("step", FIELD_INT, step),
    SAMPLE("rank", FIELD_COUNT, rank),
    SAMPLE("prompt", FIELD_TEXT, prompt, .size = 17, .flags = FIELD_ALWAYS),
    SAMPLE("group", FIELD_TEXT, group, .size = 17, .flags = FIELD_ALWAYS),
    SAMPLE("score", FIELD_REAL, score, .flags = FIELD_MAYBE),
    SAMPLE("change", FIELD_REAL, change, .flags = FIELD_MAYBE),
    SAMPLE("repeats", FIELD_REAL, repeats),
    SAMPLE("input", FIELD_STR, input),
    SAMPLE("output", FIELD_STR, output),
    SAMPLE("gts", FIELD_STR, gts),
    SAMPLE("uid", FIELD_STR, uid),
    SAMPLE("request_id", FIELD_STR, request_id),
    SAMPLE("parts", FIELD_JSON, parts, .schema = MAP(AS_IT_CAME("a part of the reward"))),
    SAMPLE("cut", FIELD_BOOL, is_cut),
};
static const struct field_table sample_table = FIELD_TABLE("Sample", sample_rows, sample_page);

/* The samples go out as they come, the rest after them. */
enum { SAMPLES_END = FIELD_SHOWN };
struct samples_page {
    const char *id, *kind, *order;
    struct field_list samples, steps;
    char *next_cursor; /* owned */
    uint64_t pending_bytes, changed;
    bool is_cut, is_pending;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(samples_page, key, ftype, member, __VA_ARGS__)
static const struct field samples_rows[] = {
    PAGE("samples", FIELD_LIST, samples, .of = &sample_table),
    PAGE("id", FIELD_STR, id, .flags = SAMPLES_END | FIELD_ALWAYS),
    PAGE("kind", FIELD_STR, kind, .flags = SAMPLES_END | FIELD_ALWAYS),
    PAGE("order", FIELD_STR, order, .flags = SAMPLES_END | FIELD_ALWAYS),
    PAGE("steps", FIELD_LIST, steps, .of = &sample_step_table, .flags = SAMPLES_END),
    PAGE("next_cursor", FIELD_STR, next_cursor, .flags = SAMPLES_END),
    PAGE("pending", FIELD_BOOL, is_pending, .flags = SAMPLES_END),
    PAGE("pending_bytes", FIELD_COUNT, pending_bytes, .flags = SAMPLES_END),
    PAGE("changed_dumps", FIELD_COUNT, changed, .flags = SAMPLES_END),
    PAGE("cut", FIELD_BOOL, is_cut, .flags = SAMPLES_END),
};
static const struct field_table samples_table = FIELD_TABLE("Samples", samples_rows, samples_page);

/* ---- in the worker ---- */

struct sampling {
    struct http_req *req; /* NULL: gone */
    struct api *a;
    char *root, *id, *user, *path, *pattern;
    struct mask mask;
    struct samplequery q;
    struct sampleindex_update update;
    int64_t limit, text_max;
    usec_t until;
    int64_t told;
    struct buf out, text;
    struct jout j;
    int result;
    struct err err;
};

static void sampling_free(struct sampling *s)
{
    char *texts[] = {s->root, s->id, s->user, s->path, s->pattern};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    mask_release(&s->mask);
    loggrep_free(s->q.grep);
    buf_release(&s->out);
    buf_release(&s->text);
    free(s);
}

static bool sampling_is_late(void *arg)
{
    const struct sampling *s = arg;
    return clock_mono() >= s->until;
}

/* The value as text, at most `most` bytes; NULL: there is none. */
static char *sampling_text(struct sampling *s, struct sample_value v, size_t most, bool *cut)
{
    if (!v.n || (v.n == 4 && !memcmp(v.p, "null", 4)))
        return NULL;
    buf_reset(&s->text);
    sample_text(v, &s->text); /* no longer than its line */
    const char *text = buf_str(&s->text);
    *cut |= s->text.len > most;
    return xstrndup(text, str_cut(text, most));
}

/* Numbers as numbers; all else as text, since what stands there may be no JSON. */
static char *sampling_parts(struct sampling *s, const struct sample *x, bool *cut)
{
    struct buf out = BUF_INIT(SAMPLE_PARTS_MAX * (6 * 2 * SAMPLES_PART_MAX + 16));
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < x->n_parts; i++) {
        _cleanup_(freep) char *key = sampling_text(s, x->parts[i].key, SAMPLES_PART_MAX, cut);
        double number;
        if (sample_number(x->parts[i].value, &number)) {
            jout_real(&j, key, number);
            continue;
        }
        _cleanup_(freep) char *text = sampling_text(s, x->parts[i].value, SAMPLES_PART_MAX, cut);
        jout_str(&j, key, text);
    }
    jout_close(&j, '}');
    *cut |= x->n_more > 0;
    return buf_take(&out);
}

static bool sampling_on_hit(const struct samplequery_hit *hit, void *arg)
{
    struct sampling *s = arg;
    const struct sample *x = hit->sample;
    const size_t most = (size_t)s->text_max;
    struct sample_page page = {.step = hit->step,
                               .rank = hit->rank,
                               .score = hit->place->score,
                               .change = hit->place->change,
                               .repeats = (double)hit->place->repeats / 1000};
    text_printf(page.prompt, "%016" PRIx64, hit->place->prompt);
    text_printf(page.group, "%016" PRIx64, hit->place->group);
    page.input = sampling_text(s, x->input, most, &page.is_cut);
    page.output = sampling_text(s, x->output, most, &page.is_cut);
    page.gts = sampling_text(s, x->gts, SAMPLES_PART_MAX, &page.is_cut);
    page.uid = sampling_text(s, x->uid, SAMPLES_PART_MAX, &page.is_cut);
    page.request_id = sampling_text(s, x->request_id, SAMPLES_PART_MAX, &page.is_cut);
    page.parts = sampling_parts(s, x, &page.is_cut);
    field_to_json(&sample_table, &page, FIELD_ALL, FIELD_PAGE, &s->j, NULL);
    field_release(&sample_table, &page);
    return ++s->told < s->limit && s->out.len < SAMPLES_PAGE_MAX / 2;
}

static void sampling_put_end(struct sampling *s, const struct sampleindex *x)
{
    struct sample_step_page steps[SAMPLES_STEPS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < x->n && n < array_len(steps); i++) {
        const struct sampleindex_dump *d = &x->v[i];
        if (d->file.kind == (int)s->q.kind)
            steps[n++] = (struct sample_step_page){.step = d->file.step,
                                                   .samples = d->n,
                                                   .unread = d->unread,
                                                   .bytes = d->file.bytes,
                                                   .scored = d->sum.scored,
                                                   .groups = d->sum.groups,
                                                   .flat = d->sum.flat,
                                                   .mean = d->sum.mean,
                                                   .least = d->sum.least,
                                                   .most = d->sum.most};
    }
    struct samples_page page = {.id = s->id,
                                .kind = sample_kind_names[s->q.kind],
                                .order = sample_order_names[s->q.order],
                                .steps = {.v = steps, .n = n},
                                .is_pending = s->update.pending > 0 || s->update.is_busy,
                                .pending_bytes = s->update.pending,
                                .changed = s->q.changed,
                                .is_cut = s->update.is_cut};
    if (s->q.has_more)
        page.next_cursor = xasprintf("%" PRId64 ":%" PRIu64, s->q.at_step, s->q.at);
    field_put_members(&samples_table, &page, SAMPLES_END, FIELD_PAGE, &s->j);
    free(page.next_cursor);
}

/* Whether the steps that were named are there. */
static int sampling_check_steps(struct sampling *s, const struct sampleindex *x)
{
    const int64_t steps[] = {s->q.step, s->q.since};
    for (size_t i = 0; i < array_len(steps); i++)
        if (steps[i] >= 0 && !sampleindex_find(x, s->q.kind, steps[i]))
            return message_refuse(&s->err, ERR_NOT_FOUND, "samples_no_step",
                                  MESSAGE_ARGS(MESSAGE_STR("job", s->id),
                                               MESSAGE_NUM("step", (double)steps[i]),
                                               MESSAGE_STR("kind", sample_kind_names[s->q.kind])));
    return 0;
}

static void sampling_run(void *arg)
{
    struct sampling *s = arg;
    struct sampleindex x = SAMPLEINDEX_NONE;
    s->until = clock_mono() + SAMPLES_TIME;
    if (s->pattern)
        s->result = loggrep_new(s->pattern, &s->q.grep, &s->err);
    if (s->result < 0)
        return;
    s->update = (struct sampleindex_update){
        .root = s->root, .job = s->id, .path = s->path, .budget = SAMPLES_BUDGET};
    s->result = sampleindex_run_update(&s->update, &s->err);
    if (s->result == 0)
        s->result = sampleindex_open(s->path, &x, &s->err);
    if (s->result < 0) {
        s->err.code = ERR_UNAVAILABLE;
        return;
    }
    s->q.index = &x;
    s->result = sampling_check_steps(s, &x);
    if (s->result == 0) {
        jout_open(&s->j, NULL, '{');
        jout_open(&s->j, "samples", '[');
        samplequery_run(&s->q);
        jout_close(&s->j, ']');
        sampling_put_end(s, &x);
        jout_close(&s->j, '}');
    }
    sampleindex_release(&x);
}

/* ---- the answer ---- */

static void sampling_on_gone(struct http_req *req, void *arg)
{
    struct sampling *s = arg;
    (void)req;
    s->req = NULL; /* freed when the worker is done */
}

static void sampling_done(void *arg)
{
    struct sampling *s = arg;
    if (s->req)
        http_req_on_close(s->req, NULL, NULL);
    if (s->result == 0 && s->update.pending)
        sampler_want(s->a->sampler, s->id, s->user);
    if (s->req && s->result < 0)
        api_fail(s->req, &s->err, 0);
    else if (s->req)
        http_reply_json(s->req, 200, &s->out, api_reader_barrier(s->a));
    sampling_free(s);
}

/* ---- the request ---- */

/* The index of the word of ?name=; the first one if it is absent. */
static int sampling_read_word(const struct http_req *req,
                              const char *name,
                              const char *const *words,
                              int *ret,
                              struct err *err)
{
    const char *text = http_req_query(req, name);
    for (int i = 0; words[i]; i++)
        if (str_eq(str_or(text, words[0]), words[i])) {
            *ret = i;
            return 0;
        }
    return message_refuse(err, ERR_BAD_REQUEST, "samples_no_such",
                          MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("value", text)));
}

static int sampling_read_score(const struct http_req *req,
                               const char *name,
                               double *ret,
                               struct err *err)
{
    const char *text = http_req_query(req, name);
    *ret = NAN;
    if (!text)
        return 0;
    return str_to_real(text, ret, NULL) == 0 && isfinite(*ret)
               ? 0
               : message_refuse(
                     err, ERR_BAD_REQUEST, "samples_no_such",
                     MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("value", text)));
}

static bool sampling_read_prompt(const char *text, uint64_t *ret)
{
    char *end = NULL;
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *ret = strtoull(text, &end, 16);
    return true;
}

/* "<step>:<rank>" */
static bool sampling_read_cursor(const char *text, struct samplequery *q)
{
    const char *colon = strchr(text, ':');
    _cleanup_(freep) char *step = colon ? xstrndup(text, (size_t)(colon - text)) : NULL;
    int64_t at = 0;
    bool is = step && str_to_int(step, 0, INT64_MAX, &q->at_step, NULL) == 0 &&
              str_to_int(colon + 1, 0, INT64_MAX, &at, NULL) == 0;
    q->at = (uint64_t)at;
    return is;
}

/* Which samples, and in which order. */
static int sampling_read(const struct http_req *req, struct samplequery *q, struct err *err)
{
    int kind = 0, order = 0;
    const char *prompt = http_req_query(req, "prompt"), *cursor = http_req_query(req, "cursor");
    int r = sampling_read_word(req, "kind", sample_kind_names, &kind, err);
    if (r == 0)
        r = sampling_read_word(req, "order", sample_order_names, &order, err);
    if (r == 0)
        r = http_req_query_int(req, "step", 0, INT64_MAX, -1, &q->step, err);
    if (r == 0)
        r = http_req_query_int(req, "since", 0, INT64_MAX, -1, &q->since, err);
    if (r == 0)
        r = sampling_read_score(req, "min", &q->least, err);
    if (r == 0)
        r = sampling_read_score(req, "max", &q->most, err);
    if (r < 0)
        return err->code = ERR_BAD_REQUEST;
    q->kind = (enum sample_kind)kind;
    q->order = (enum sample_order)order;
    q->has_prompt = prompt != NULL;
    q->all_steps =
        q->step < 0 && q->order == SAMPLE_AS_DUMPED && (prompt || http_req_query(req, "grep"));
    if ((q->order == SAMPLE_CHANGED) != (q->since >= 0))
        return message_refuse(err, ERR_BAD_REQUEST, "samples_since", MESSAGE_NO_ARGS);
    if (prompt && !sampling_read_prompt(prompt, &q->prompt))
        return message_refuse(
            err, ERR_BAD_REQUEST, "samples_no_such",
            MESSAGE_ARGS(MESSAGE_STR("name", "prompt"), MESSAGE_STR("value", prompt)));
    if (cursor && !sampling_read_cursor(cursor, q))
        return message_refuse(err, ERR_BAD_REQUEST, "bad_search_cursor",
                              MESSAGE_ARGS(MESSAGE_STR("cursor", cursor)));
    return 0;
}

static void samples_answer(struct http_req *req,
                           struct api *a,
                           const struct job *job,
                           const struct record_extra *extra,
                           struct live *l)
{
    struct err err = {0};
    struct samplequery q = {.at_step = -1};
    int64_t limit = 0, text_max = 0;
    (void)extra;
    (void)l;
    if (!api_has_files(req, a, job))
        return;
    int r = http_req_query_int(req, "limit", 1, SAMPLES_MAX, SAMPLES_DEFAULT, &limit, &err);
    if (r == 0)
        r = http_req_query_int(req, "text", 1, SAMPLES_TEXT_MAX, SAMPLES_TEXT_DEFAULT, &text_max,
                               &err);
    if (r < 0)
        r = err.code = ERR_BAD_REQUEST;
    if (r == 0)
        r = sampling_read(req, &q, &err);
    if (r == 0)
        r = cluster_check_root_answers(a->cluster, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        return;
    }
    struct sampling *s = xcalloc(1, sizeof(*s));
    *s = (struct sampling){.req = req,
                           .a = a,
                           .root = xstrdup(a->settings->shared_root),
                           .id = xstrdup(job->id),
                           .user = xstrdup(job->user),
                           .path = sampler_path(a->settings, job->user, job->id),
                           .pattern = xstrdup(http_req_query(req, "grep")),
                           .q = q,
                           .limit = limit,
                           .text_max = text_max,
                           .out = BUF_INIT(2 * SAMPLES_PAGE_MAX),
                           .text = BUF_INIT(2 * SAMPLE_LINE_MAX)};
    s->j = jout_begin(&s->out);
    s->q.root = s->root;
    s->q.job = s->id;
    s->q.mask = &s->mask;
    s->q.each = sampling_on_hit;
    s->q.is_late = sampling_is_late;
    s->q.arg = s;
    hiding_add(a, job, &s->mask);
    http_req_on_close(req, sampling_on_gone, s);
    work_start_for(a->loop, http_req_principal(req)->user, sampling_run, sampling_done, s);
}

static void api_jobs_samples(struct http_req *req, void *app)
{
    api_find_job(req, app, samples_answer);
}

static const struct http_param sample_params[] = {
    {"kind", HTTP_PARAM_STRING, "rollout or validation; rollout if not given"},
    {"step", HTTP_PARAM_INTEGER,
     "of this step; the newest if not given, and the older ones too with prompt or grep"},
    {"prompt", HTTP_PARAM_STRING,
     "only answers to this prompt, or of this group, as a sample has it"},
    {"min", HTTP_PARAM_STRING, "only with this score or more"},
    {"max", HTTP_PARAM_STRING, "only with this score or less"},
    {"grep", HTTP_PARAM_STRING,
     "a regular expression (PCRE2) that a line of the answer or the prompt must match"},
    {"order", HTTP_PARAM_STRING,
     "dumped, worst, best, or changed (with since); dumped if not given"},
    {"since", HTTP_PARAM_INTEGER,
     "with order=changed: the step whose mean score of the same prompt is compared"},
    {"limit", HTTP_PARAM_INTEGER, "samples of a page, 1 to 100; 20 if not given"},
    {"text", HTTP_PARAM_INTEGER,
     "bytes of a prompt and an answer that are told, up to 256 KiB; 16 KiB if not given"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/samples",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_samples,
     .summary = "what a training of verl wrote: prompts, answers, scores; a page ends with its "
                "samples or after two seconds",
     .params = sample_params,
     .reply_schema = "Samples"},
};
static const struct http_schema schemas[] = {
    {.name = "Samples", .table = &samples_table},
    {.name = "Sample", .table = &sample_table},
    {.name = "SampleStep", .table = &sample_step_table},
};
const struct api_part part_samples = {rows, array_len(rows), schemas, array_len(schemas)};
