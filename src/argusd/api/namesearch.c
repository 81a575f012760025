/* SPDX-License-Identifier: Apache-2.0 */
/* namesearch.c - /v1/search: whatever has a name and a page, by what somebody types of it.
 *
 * Nothing is shown that the reader's own list of its kind would not show: jobs come from the store
 * in the reader's scope, and nouns are walked and asked as their lists are (kit/resource.h). What
 * fits how well is base/order/namerank.h's to say.
 *
 * The work of one request is bounded: OBJECTS_LOOKED of each kind in memory, and of the jobs in the
 * store the newest JOBS_LOOKED, an exact name or id (by its index), and ROWS_MAX of one user. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "base/message.h"
#include "base/order/namerank.h"
#include "base/str.h"
#include "base/text.h"

enum {
    TYPED_MAX = 100, /* bytes */
    HITS_DEFAULT = 20,
    HITS_MAX = 50,
    OBJECTS_LOOKED = 20000,
    JOBS_LOOKED = 50000,
    ROWS_MAX = 200,
    ANSWER_MAX = 1 << 20,
    ID_MAX = 512,
};

/* ---- the kinds ---- */

/* What an id is, where the name alone is not one. */
enum id_form {
    ID_IS_NAME,
    ID_OF_OWNER,   /* "alice/main"; of what is everybody's the name alone */
    ID_OF_PROJECT, /* "rl/baseline"; of what is shipped the name alone */
    ID_OF_ENTRY,   /* "alice:gsm8k@2", "common:gsm8k@2", as core/spec/dataref.h reads it */
};

/* X(enumerator, word, the list that is walked, its id) */
#define KIND_TABLE(X)                                                                              \
    X(JOB, "job", NULL, ID_IS_NAME)                                                                \
    X(NODE, "node", NULL, ID_IS_NAME)                                                              \
    X(USER, "user", "users", ID_IS_NAME)                                                           \
    X(PROJECT, "project", "projects", ID_IS_NAME)                                                  \
    X(DATASET, "dataset", "datasets", ID_OF_ENTRY)                                                 \
    X(MODEL, "model", "models", ID_OF_ENTRY)                                                       \
    X(SERVICE, "service", "services", ID_IS_NAME)                                                  \
    X(PIPELINE, "pipeline", "pipelines", ID_OF_OWNER)                                              \
    X(NOTEBOOK, "notebook", "notebooks", ID_OF_OWNER)                                              \
    X(SNAPSHOT, "snapshot", "snapshots", ID_OF_OWNER)                                              \
    X(PRESET, "preset", "presets", ID_OF_PROJECT)

enum kind {
#define X(e, word, collection, form) KIND_##e,
    KIND_TABLE(X)
#undef X
        KINDS
};
static const struct {
    const char *word, *collection;
    enum id_form form;
} kinds[KINDS] = {
#define X(e, w, c, f) [KIND_##e] = {.word = (w), .collection = (c), .form = (f)},
    KIND_TABLE(X)
#undef X
};

/* The noun of a list, as the route table has it: some stand in rooms above this one. */
static const struct resource *namesearch_noun(const char *collection)
{
    for (size_t i = 0; API_PARTS[i]; i++)
        for (size_t k = 0; k < API_PARTS[i]->n_rows; k++) {
            const struct http_route *row = &API_PARTS[i]->rows[k];
            const struct resource *of = row->arg;
            if (row->handle == resource_list && str_eq(of->collection, collection))
                return of;
        }
    return NULL;
}

/* ---- one search ---- */

struct namesearch;
struct namesearch_read {
    struct namesearch *of;
    struct store_read *read; /* NULL: it is over */
};
enum { READ_PART, READ_WHOLE, READ_OF_USER, READS };

struct namesearch {
    struct http_req *req;
    struct api *a;
    char typed[TYPED_MAX + 1];
    size_t most;
    struct namesearch_read reads[READS];
    struct err err; /* of a read */
    struct namerank_list found[KINDS];
};

static void namesearch_free(struct namesearch *s)
{
    for (size_t i = 0; i < READS; i++)
        if (s->reads[i].read)
            store_read_cancel(s->reads[i].read);
    for (size_t i = 0; i < KINDS; i++)
        namerank_release(&s->found[i]);
    free(s);
}

/* How well the id or the name fits, else whether it belongs to what was typed. */
static enum namerank namesearch_rank(const struct namesearch *s,
                                     const char *id,
                                     const char *name,
                                     const char *owner,
                                     const char *project)
{
    enum namerank by_id = namerank_of(id, s->typed), by_name = namerank_of(name, s->typed);
    enum namerank best = by_id > by_name ? by_id : by_name;
    bool is_beside = namerank_of(owner, s->typed) == NAMERANK_WHOLE ||
                     namerank_of(project, s->typed) == NAMERANK_WHOLE;
    return best == NAMERANK_NONE && is_beside ? NAMERANK_BESIDE : best;
}

/* ---- what is in memory ---- */

/* A name without its scope: the key of a data set or model is "<scope>/<name>@<version>". */
static const char *namesearch_name(enum kind k, const struct access_thing *t)
{
    const char *slash = kinds[k].form == ID_OF_ENTRY ? strrchr(t->name, '/') : NULL;
    return slash ? slash + 1 : t->name;
}

static void namesearch_id(enum kind k, const struct access_thing *t, char ret[static ID_MAX])
{
    const char *name = namesearch_name(k, t);
    const char *owner = kinds[k].form == ID_OF_PROJECT ? t->project
                        : t->is_common                 ? NULL
                                                       : t->owner;
    if (kinds[k].form == ID_OF_ENTRY)
        text_printf_to(ret, ID_MAX, "%s:%s", str_or(owner, "common"), name);
    else if (kinds[k].form != ID_IS_NAME && owner)
        text_printf_to(ret, ID_MAX, "%s/%s", owner, name);
    else
        text_copy_to(ret, ID_MAX, name);
}

/* x is the object of the list's noun. */
static const char *namesearch_about(enum kind k, const struct access_thing *t, const void *x)
{
    switch (k) {
    case KIND_USER:
        return http_role_to_string((enum http_role)((const struct person *)x)->role);
    case KIND_PROJECT:
        return NULL;
    case KIND_PRESET:
        return t->project;
    case KIND_SNAPSHOT: /* who added one that is everybody's is not its owner */
        return t->is_common ? NULL : t->owner;
    default:
        return t->owner;
    }
}

static void namesearch_look(struct namesearch *s,
                            enum kind k,
                            struct resource_ask *q,
                            const void *x)
{
    char id[ID_MAX];
    struct access_thing t = resource_thing(q, x);
    struct namerank_hit hit = {
        .kind = k, .name = namesearch_name(k, &t), .about = namesearch_about(k, &t, x)};
    const char *owner = k == KIND_PRESET || k == KIND_USER ? NULL : hit.about;
    hit.rank = namesearch_rank(s, NULL, hit.name, owner, k == KIND_PROJECT ? NULL : t.project);
    if (hit.rank == NAMERANK_NONE || !resource_sees(q, x))
        return;
    namesearch_id(k, &t, id);
    hit.id = id;
    namerank_add(&s->found[k], s->most, &hit);
}

static void namesearch_walk(struct namesearch *s, enum kind k)
{
    const struct resource *of = namesearch_noun(kinds[k].collection);
    struct resource_ask q;
    const void *x;
    size_t pos = 0;
    assert(of);
    resource_begin_of(&q, of, s->req, s->a);
    for (size_t n = 0; n < OBJECTS_LOOKED && (x = of->next(&q, &pos)); n++)
        namesearch_look(s, k, &q, x);
    resource_end(&q);
}

static void namesearch_walk_nodes(struct namesearch *s)
{
    struct nodes_name node;
    size_t pos = 0;
    struct access_who who;
    const struct access_thing thing = {.kind = ACCESS_KIND_NODE, .name = "new"};
    people_who(s->a->people, http_req_principal(s->req), &who);
    if (access_check(&who, ACCESS_MACHINE_SEE, "see", &thing, NULL) < 0)
        return;
    for (size_t n = 0; n < OBJECTS_LOOKED && nodes_next_name(s->a->nodes, &pos, &node); n++) {
        const struct namerank_hit hit = {.rank = namerank_of(node.name, s->typed),
                                         .kind = KIND_NODE,
                                         .id = node.name,
                                         .name = node.name,
                                         .about = node.state};
        namerank_add(&s->found[KIND_NODE], s->most, &hit);
    }
}

/* ---- jobs ---- */

static bool namesearch_has_job(const struct namesearch *s, const char *id)
{
    const struct namerank_list *jobs = &s->found[KIND_JOB];
    for (size_t i = 0; i < jobs->n; i++) /* at most HITS_MAX */
        if (str_eq(jobs->v[i].id, id))
            return true;
    return false;
}

/* The newest goes first among jobs that fit alike. */
static void namesearch_add_job(struct namesearch *s, const struct store_job *job)
{
    const struct namerank_hit hit = {
        .rank = namesearch_rank(s, job->id, job->name, job->user, job->project),
        .kind = KIND_JOB,
        .behind = UINT64_MAX - job->queued_at,
        .id = job->id,
        .name = str_or(job->name, job->id),
        .about = job->state};
    if (!namesearch_has_job(s, job->id))
        namerank_add(&s->found[KIND_JOB], s->most, &hit);
}

/* Those that are not over, as they are now: the store has all of them, but not all are looked at
 * there. While it fails only the disk is believed. */
static void namesearch_walk_jobs(struct namesearch *s)
{
    const struct http_principal *p = http_req_principal(s->req);
    const struct live *l;
    size_t pos = 0;
    if (store_is_failing(s->a->store))
        return;
    for (size_t n = 0; n < OBJECTS_LOOKED && (l = jobs_next(s->a->jobs, &pos)); n++) {
        const struct job *job = l->job;
        const struct store_job row = {.id = job->id,
                                      .name = job->name,
                                      .user = job->user,
                                      .project = job->project,
                                      .queued_at = job->queued_at,
                                      .state = job_state_to_string(job->state)};
        if (namesearch_rank(s, row.id, row.name, row.user, row.project) != NAMERANK_NONE &&
            people_check_job(s->a->people, p, ACCESS_JOB_SEE, "see", job, NULL) == 0)
            namesearch_add_job(s, &row);
    }
}

/* A row is as old as the disk: of a job in memory the state of now is told. */
static void namesearch_add_row(struct namesearch *s, const struct store_job *on_disk)
{
    struct store_job row = *on_disk;
    const struct live *l = store_is_failing(s->a->store) ? NULL : jobs_find_any(s->a->jobs, row.id);
    if (l)
        row.state = job_state_to_string(l->job->state);
    namesearch_add_job(s, &row);
}

/* ---- the answer ---- */

struct search_hit {
    const char *kind, *id, *name, *about; /* borrowed */
};
#define HIT(key, ...) FIELD_AT(search_hit, #key, FIELD_STR, key, __VA_ARGS__)
static const struct field hit_rows[] = {
    HIT(kind,
        .flags = FIELD_ALWAYS,
        .schema = WORDS("\"job\",\"node\",\"user\",\"project\",\"dataset\",\"model\",\"service\","
                        "\"pipeline\",\"notebook\",\"snapshot\",\"preset\"")),
    HIT(id, .flags = FIELD_ALWAYS, .doc = "names one thing among all of its kind"),
    HIT(name, .flags = FIELD_ALWAYS, .doc = "as people call it"),
    HIT(about, .doc = "state of a job or node, role of a user, project of a preset, else owner"),
};
static const struct field_table hit_table = FIELD_TABLE("SearchHit", hit_rows, search_hit);

static void namesearch_put(const struct namerank_list *all, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "results", '[');
    for (size_t i = 0; i < all->n; i++) {
        const struct namerank_hit *h = &all->v[i];
        const struct search_hit hit = {
            .kind = kinds[h->kind].word, .id = h->id, .name = h->name, .about = h->about};
        field_to_json(&hit_table, &hit, FIELD_ALL, FIELD_PAGE, &j, NULL);
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
}

static void namesearch_answer(struct namesearch *s)
{
    struct namerank_list all = {0};
    struct buf out = BUF_INIT(ANSWER_MAX);
    namesearch_walk_jobs(s);
    namesearch_walk_nodes(s);
    for (enum kind k = 0; k < KINDS; k++)
        if (kinds[k].collection)
            namesearch_walk(s, k);
    namerank_join(s->found, KINDS, s->most, &all);
    namesearch_put(&all, &out);
    api_mark_stale(s->req, s->a);
    http_reply_json(s->req, 200, &out, api_reader_barrier(s->a));
    namerank_release(&all);
    buf_release(&out);
}

static bool namesearch_is_reading(const struct namesearch *s)
{
    for (size_t i = 0; i < READS; i++)
        if (s->reads[i].read)
            return true;
    return false;
}

/* That no job, or more than one, has the whole name is no failure. */
static void namesearch_on_jobs(const struct store_result *r, void *arg)
{
    struct namesearch_read *one = arg;
    struct namesearch *s = one->of;
    bool is_whole = one == &s->reads[READ_WHOLE];
    one->read = NULL;
    for (size_t i = 0; !r->err.code && i < r->njobs; i++)
        namesearch_add_row(s, &r->jobs[i]);
    if (r->err.code && !(is_whole && (r->err.code == ERR_NOT_FOUND || r->err.code == ERR_CONFLICT)))
        s->err = r->err;
    if (namesearch_is_reading(s))
        return;
    http_req_on_close(s->req, NULL, NULL);
    if (s->err.code)
        api_fail(s->req, &s->err, 0);
    else
        namesearch_answer(s);
    namesearch_free(s);
}

static void namesearch_on_gone(struct http_req *req, void *arg)
{
    (void)req;
    namesearch_free(arg);
}

static void namesearch_read(struct namesearch *s)
{
    const struct http_principal *p = http_req_principal(s->req);
    struct store_then then[READS];
    struct people_view view;
    for (size_t i = 0; i < READS; i++) {
        s->reads[i].of = s;
        then[i] = (struct store_then){.done = namesearch_on_jobs, .arg = &s->reads[i]};
    }
    people_view(s->a->people, p, PEOPLE_WISH_ALL, &view);
    const struct store_job_query part = {
        .q = s->typed, .scope = view.scope, .newest = JOBS_LOOKED, .limit = ROWS_MAX};
    const struct store_job_query of_user = {
        .user = s->typed, .scope = view.scope, .newest = JOBS_LOOKED, .limit = ROWS_MAX};
    const struct store_job_ref whole = {.ref = s->typed, .user = p->user, .scope = view.scope};
    s->reads[READ_PART].read = store_list_jobs(s->a->store, &part, &then[READ_PART]);
    s->reads[READ_WHOLE].read = store_find_job(s->a->store, &whole, &then[READ_WHOLE]);
    s->reads[READ_OF_USER].read = store_list_jobs(s->a->store, &of_user, &then[READ_OF_USER]);
    people_view_release(&view);
}

static void api_search(struct http_req *req, void *app)
{
    struct err err = {0};
    int64_t most = HITS_DEFAULT;
    const char *typed = str_or(http_req_query(req, "q"), "");
    int r = http_req_query_int(req, "limit", 1, HITS_MAX, HITS_DEFAULT, &most, &err);
    if (r == 0 && (!*typed || strlen(typed) > TYPED_MAX))
        r = message_refuse(&err, ERR_BAD_REQUEST, "search_text_size",
                           MESSAGE_ARGS(MESSAGE_NUM("most", TYPED_MAX)));
    if (r < 0) {
        err.code = ERR_BAD_REQUEST;
        api_fail(req, &err, 0);
        return;
    }
    struct namesearch *s = xcalloc(1, sizeof(*s));
    *s = (struct namesearch){.req = req, .a = app, .most = (size_t)most};
    text_copy(s->typed, typed);
    http_req_on_close(req, namesearch_on_gone, s);
    namesearch_read(s);
}

/* ---- routes ---- */

static const struct http_param search_params[] = {
    {"q", HTTP_PARAM_STRING,
     "1 to 100 bytes of an id or a name; or the whole name of an owner or a project"},
    {"limit", HTTP_PARAM_INTEGER, "how many, 1 to 50; 20 if not given"},
    {0}};
static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/search",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_search,
     .summary = "what you may see that has this in its name: jobs, nodes, users, projects, data "
                "sets, models, services, pipelines, notebooks, snapshots and presets; what fits "
                "best first",
     .params = search_params,
     .reply_schema = "SearchResults"},
};
static const struct http_schema schemas[] = {
    {.name = "SearchHit", .table = &hit_table},
    LIST_OF("SearchResults", "results", "SearchHit"),
};
const struct api_part part_namesearch = {rows, array_len(rows), schemas, array_len(schemas)};
