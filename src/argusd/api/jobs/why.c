/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - GET /v1/jobs/{id}/why: what a job waits for, and what would start it.
 *
 * While it waits the scheduler answers: one code, the evidence, the smallest change that
 * helps. In any other state the answer says so and names what it waits for now. */
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "base/said.h"
#include "base/str.h"
#include "base/text.h"

enum {
    WHY_MAX_BYTES = 512 << 10,
    UNFIT_SHOWN = 100,
    LOOKS_SHOWN = 200,
    ALSO_SHOWN = 5,
    ENDS_SHOWN = 50
};

/* Texts are borrowed for one answer. */
struct hint_page {
    const char *kind, *pool, *node, *job;
    usec_t at;
    int nnodes, priority;
    double n_gpus_per_node, timeout;
};

/* Beside its word a hint has the rows of its kind. */
#define HINT(key, ftype, member, of_kind, ...)                                                     \
    FIELD_AT(hint_page, key, ftype, member, .flags = FIELD_OWN(of_kind) | __VA_ARGS__)
static const struct field hint_rows[] = {
    FIELD_AT(hint_page, "kind", FIELD_STR, kind, .flags = FIELD_REQUIRED),
    HINT("pool", FIELD_STR, pool, SCHED_HINT_POOL, FIELD_ALWAYS),
    HINT("nnodes", FIELD_INT32, nnodes, SCHED_HINT_SHAPE, 0),
    HINT("n_gpus_per_node", FIELD_REAL, n_gpus_per_node, SCHED_HINT_SHAPE, 0),
    HINT("job", FIELD_STR, job, SCHED_HINT_JOB_END, 0, .doc = "null: one that you may not see"),
    HINT("at", FIELD_TIME, at, SCHED_HINT_JOB_END, 0),
    HINT("node", FIELD_STR, node, SCHED_HINT_NODE, FIELD_ALWAYS),
    HINT("timeout", FIELD_REAL, timeout, SCHED_HINT_TIMEOUT, 0),
    HINT("priority", FIELD_INT32, priority, SCHED_HINT_PRIORITY, 0),
};
#undef HINT
static const struct field_table why_hint_table = FIELD_TABLE("Hint", hint_rows, hint_page);

/* NULL where there is no hint. Heap. */
static char *hint_text(const struct api_eyes *eyes, const struct sched_hint *h)
{
    struct api_eyes who = *eyes;
    if (h->kind == SCHED_HINT_NONE)
        return NULL;
    const struct hint_page page = {
        .kind = sched_hint_to_string(h->kind),
        .pool = h->pool,
        .node = h->node,
        .job = h->kind == SCHED_HINT_JOB_END && api_sees_job(h->job, &who) ? h->job : NULL,
        .at = h->kind == SCHED_HINT_JOB_END ? jobs_to_wall(eyes->a->jobs, h->at) : 0,
        .nnodes = h->nnodes,
        .n_gpus_per_node = h->n_gpus_per_node,
        .timeout = (double)h->limit / USEC_SEC,
        .priority = h->priority};
    return field_to_text(&why_hint_table, &page, FIELD_REQUIRED | FIELD_OWN(h->kind), FIELD_PAGE);
}

/* A node that its code may not run on, or that may not have what it needs. Borrowed. */
struct unfit_page {
    const char *node, *has;
    char need[NEEDS_TEXT_MAX], version[NEEDS_VERSION_MAX];
};
#define UNFIT(key, ftype, member, ...) FIELD_AT(unfit_page, key, ftype, member, __VA_ARGS__)
static const struct field unfit_rows[] = {
    UNFIT("node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    UNFIT("need", FIELD_TEXT, need, .size = NEEDS_TEXT_MAX, .flags = FIELD_ALWAYS),
    UNFIT("has", FIELD_STR, has, .doc = "null: no probe has seen it, and the job may go there"),
};
#undef UNFIT
static const struct field_table unfit_table = FIELD_TABLE(NULL, unfit_rows, unfit_page);

/* A node that was looked at; what is said is released, and is made of args. */
struct look_page {
    const char *name;
    struct said said;
    char args[256];
    double free, needs;
    usec_t until;
    bool planned;
};
#define LOOK(key, ftype, member, ...) FIELD_AT(look_page, key, ftype, member, __VA_ARGS__)
static const struct field look_rows[] = {
    LOOK("name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    LOOK("", FIELD_INLINE, said, .of = &said_table),
    LOOK("free", FIELD_REAL, free),
    LOOK("needs", FIELD_REAL, needs),
    LOOK("until", FIELD_TIME, until, .doc = "null: not known"),
    LOOK("planned", FIELD_BOOL, planned, .doc = "it is promised to this job"),
};
#undef LOOK
static const struct field_table look_table = FIELD_TABLE(NULL, look_rows, look_page);

/* A job that has to end before. Borrowed. */
struct end_page {
    const char *job, *user;
    double gpus;
    usec_t at;
    bool leaves;
};
#define END(key, ftype, member, ...) FIELD_AT(end_page, key, ftype, member, __VA_ARGS__)
static const struct field end_rows[] = {
    END("job", FIELD_STR, job, .doc = "null: one that you may not see"),
    END("user", FIELD_STR, user),
    END("gpus", FIELD_REAL, gpus, .doc = "that come free where this job would run"),
    END("at", FIELD_TIME, at, .doc = "by its timeout; null: it has none"),
    END("leaves", FIELD_BOOL, leaves, .doc = "it was told to go"),
};
#undef END
static const struct field_table end_table = FIELD_TABLE(NULL, end_rows, end_page);

/* Texts are borrowed for one answer. */
struct why_page {
    const char *id, *state, *hint, *hint_text, *finding, *verdict, *slow_rank;
    struct said reason;
    struct field_list also, unfit, looks, ends;
    usec_t promise;
    int position; /* -1: it does not wait */
    const struct view_eta *eta;
};
#define WHY(key, ftype, member, ...) FIELD_AT(why_page, key, ftype, member, __VA_ARGS__)
static const struct field why_rows[] = {
    WHY("id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    WHY("state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    WHY("", FIELD_INLINE, reason, .of = &said_table),
    WHY("also",
        FIELD_LIST,
        also,
        .of = &said_table,
        .doc = "what else would keep it waiting if that reason went"),
    WHY("position", FIELD_INT32, position, .flags = FIELD_NO_LIMIT),
    WHY("hint", FIELD_JSON, hint, .schema = "Hint"),
    WHY("hint_text", FIELD_STR, hint_text, .flags = FIELD_ALWAYS),
    WHY("unfit",
        FIELD_LIST,
        unfit,
        .of = &unfit_table,
        .doc = "nodes of its pool that do not have, or may not have, what its snapshots need"),
    WHY("nodes",
        FIELD_LIST,
        looks,
        .of = &look_table,
        .doc = "of its pool, each looked at alone: has it room, and if not why not"),
    WHY("frees",
        FIELD_LIST,
        ends,
        .of = &end_table,
        .doc = "what has to end where it is promised to start, or would start if it stood first"),
    WHY("promise", FIELD_TIME, promise, .doc = "it starts by then"),
    WHY("eta", FIELD_PART, eta, .of = &view_eta_table),
    WHY("finding", FIELD_STR, finding),
    WHY("verdict", FIELD_JSON, verdict, .schema = "Verdict", .doc = "of its training"),
    WHY("slow_rank", FIELD_JSON, slow_rank, .schema = "SlowRank", .doc = "as of GET /v1/jobs/{id}"),
};
#undef WHY
static const struct field_table why_table = FIELD_TABLE("Why", why_rows, why_page);

/* The reason of a job that runs or did gets a sentence where it has none. */
static void say_state(const struct job *job, struct reason *r)
{
    char at[CLOCK_TEXT_MAX], text[JOB_REASON_TEXT_MAX];
    if (job->flags & JOB_FLAG_UNKNOWN) {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("since", clock_to_string(job->unknown_since, at))));
        reason_set(r, "unknown", "job_unseen", text);
    } else if (job->state == JOB_RUNNING && !*r->code) {
        _cleanup_(freep) char *names = gang_names(&job->gang);
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("since", clock_to_string(job->started_at, at)),
                                   MESSAGE_STR("nodes", str_or(names, ""))));
        reason_set(r, "running", "job_running", text);
    } else if (job->state == JOB_SUCCEEDED && !*r->code) {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("at", clock_to_string(job->ended_at, at))));
        reason_set(r, "succeeded", "job_succeeded", text);
    }
}

/* Those of the job's pool, as many as a page shows. Heap. */
static struct unfit_page *unfit_of(const struct live *l, size_t *ret_n)
{
    const struct sched *sched = jobs_sched(l->jobs);
    struct unfit_page *v = xcalloc(UNFIT_SHOWN, sizeof(*v));
    struct sched_gap gap;
    size_t n = 0, pos = 0;
    while (l->needs && n < UNFIT_SHOWN &&
           sched_gap_next(sched, l->job->pool, l->needs, &pos, &gap)) {
        v[n].node = gap.node;
        text_copy(v[n].need, gap.lacks.need);
        text_copy(v[n].version, gap.lacks.has);
        v[n].has = *gap.lacks.has ? v[n].version : NULL;
        n++;
    }
    *ret_n = n;
    return v;
}

static struct look_page *why_looks(const struct api_eyes *eyes, struct live *l, size_t *ret_n)
{
    struct sched_look *v = xcalloc(LOOKS_SHOWN, sizeof(*v));
    struct look_page *pages = xcalloc(LOOKS_SHOWN, sizeof(*pages));
    *ret_n = jobs_look_nodes(l, LOOKS_SHOWN, v);
    for (size_t i = 0; i < *ret_n; i++) {
        char code[32], until[CLOCK_TEXT_MAX];
        struct message m;
        usec_t at = v[i].until ? jobs_to_wall(eyes->a->jobs, v[i].until) : 0;
        text_printf(code, "look_%s", sched_look_to_string(v[i].code));
        message_begin(&m);
        jout_real(&m.j, "free", v[i].free);
        jout_real(&m.j, "needs", v[i].needs);
        if (at)
            jout_str(&m.j, "until", clock_to_string(at, until));
        if (v[i].state)
            jout_strn(&m.j, "state", v[i].state, strnlen(v[i].state, 64));
        message_end(&m, pages[i].args, sizeof(pages[i].args));
        pages[i].name = v[i].node;
        pages[i].free = v[i].free;
        pages[i].needs = v[i].needs;
        pages[i].until = at;
        pages[i].planned = v[i].planned;
        saying_say(eyes, l->job->id, message_code(code), pages[i].args, &pages[i].said);
    }
    free(v);
    return pages;
}

static void looks_free(struct look_page *pages, size_t n)
{
    for (size_t i = 0; i < n; i++)
        said_release(&pages[i].said);
    free(pages);
}

/* Beside its reason. Heap. */
static struct said *why_also(const struct api_eyes *eyes,
                             const struct live *l,
                             const char *but,
                             size_t *ret_n)
{
    struct sched_why *v = xcalloc(ALSO_SHOWN, sizeof(*v));
    struct said *said = xcalloc(ALSO_SHOWN, sizeof(*said));
    *ret_n = jobs_why_more(l, but, ALSO_SHOWN, v);
    for (size_t i = 0; i < *ret_n; i++)
        saying_say(eyes, l->job->id, v[i].code, v[i].text, &said[i]);
    free(v);
    return said;
}

/* What has to end before it, by what limits say. Heap. */
static struct end_page *why_ends(const struct api_eyes *eyes,
                                 struct live *l,
                                 size_t *ret_n,
                                 usec_t *ret_promise)
{
    struct sched_end *v = xcalloc(ENDS_SHOWN, sizeof(*v));
    struct end_page *pages = xcalloc(ENDS_SHOWN, sizeof(*pages));
    usec_t at;
    *ret_n = jobs_ends_before(l, ENDS_SHOWN, v, &at);
    *ret_promise = at ? jobs_to_wall(eyes->a->jobs, at) : 0;
    for (size_t i = 0; i < *ret_n; i++) {
        const struct live *other = v[i].job;
        struct api_eyes who = *eyes;
        bool sees = api_sees_job(v[i].id, &who);
        pages[i] = (struct end_page){.job = sees ? other->job->id : NULL,
                                     .user = sees ? other->job->user : NULL,
                                     .gpus = v[i].gpus,
                                     .at = v[i].at ? jobs_to_wall(eyes->a->jobs, v[i].at) : 0,
                                     .leaves = v[i].leaves};
    }
    free(v);
    return pages;
}

static void put_why(struct jout *j,
                    const struct api_eyes *eyes,
                    const struct job *job,
                    const struct record_extra *extra,
                    struct live *l)
{
    struct sched_why why = {0};
    struct reason reason = *job_state_reason(job);
    int position = 0;
    char kind[32];
    bool waits = l && jobs_why(l, true, &why);
    if (l)
        jobs_reason(l, &reason, &position);
    if (!waits)
        say_state(job, &reason);
    struct view_eta eta = {0};
    if (waits)
        jobs_eta(l, &eta.p50, &eta.p90);
    _cleanup_(freep) char *its_hint = hint_text(eyes, &why.hint);
    struct said hint;
    text_printf(kind, "hint_%s", sched_hint_to_string(why.hint.kind));
    saying_say(eyes, job->id, kind, why.hint_text, &hint);
    size_t n_unfit = 0;
    _cleanup_(freep) struct unfit_page *unfit = waits ? unfit_of(l, &n_unfit) : NULL;
    size_t n_looks = 0, n_ends = 0, n_also = 0;
    _cleanup_(freep) struct said *also = waits ? why_also(eyes, l, why.code, &n_also) : NULL;
    usec_t promise = 0;
    _cleanup_(freep) char *verdict = said_in_text(extra->verdict, eyes->p->language);
    bool runs = job->state == JOB_RUNNING;
    _cleanup_(freep) char *slow_rank =
        runs ? said_in_text(extra->slow_rank, eyes->p->language) : NULL;
    struct look_page *looks = waits ? why_looks(eyes, l, &n_looks) : NULL;
    _cleanup_(freep) struct end_page *ends = waits ? why_ends(eyes, l, &n_ends, &promise) : NULL;
    struct why_page page = {.id = job->id,
                            .state = job_state_to_string(job->state),
                            .position = waits ? why.position : -1,
                            .hint = its_hint,
                            .hint_text = hint.text,
                            .also = {.v = also, .n = n_also},
                            .unfit = {.v = unfit, .n = n_unfit},
                            .looks = {.v = looks, .n = n_looks},
                            .ends = {.v = ends, .n = n_ends},
                            .promise = promise,
                            .eta = view_eta_known(&eta),
                            .finding = record_finding_word(job, extra),
                            .verdict = verdict,
                            .slow_rank = slow_rank};
    saying_say(eyes, job->id, waits ? why.code : reason.code, waits ? why.text : reason.text,
               &page.reason);
    field_to_json(&why_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    said_release(&page.reason);
    said_release(&hint);
    looks_free(looks, n_looks);
    for (size_t i = 0; i < n_also; i++)
        said_release(&also[i]);
}

static void answer_why(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       const struct record_extra *extra,
                       struct live *l)
{
    struct buf out = BUF_INIT(WHY_MAX_BYTES);
    struct jout j = jout_begin(&out);
    struct api_eyes eyes = {.a = a, .p = http_req_principal(req)};
    put_why(&j, &eyes, job, extra, l);
    http_reply_json(req, 200, &out, l ? api_barrier(a) : api_reader_barrier(a));
    buf_release(&out);
}

static void api_jobs_why(struct http_req *req, void *app)
{
    api_find_job(req, app, answer_why);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/why",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_why,
     .summary = "what it waits for, and the smallest change that would start it",
     .reply_schema = "Why"},
};
static const struct http_schema schemas[] = {
    {.name = "Why", .table = &why_table},
    {.name = "Hint", .table = &why_hint_table},
};
const struct api_part part_why = {rows, array_len(rows), schemas, array_len(schemas)};
