/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - GET /v1/jobs/{id}/family: the jobs that came of one another, and in what the spec of
 * each differs from that of its parent; POST /v1/jobs/{id}:note: what is said on a job.
 *
 *   the job is found -> it waits for its turn -> rows from the store, in the reader's scope, copied
 *     on its worker -> specs are opened and compared on a worker -> the answer
 *
 * Each spec is read once, and compared with that of its parent alone: the time is that of the
 * texts. While an ask waits it holds nothing but the id; a few at once hold texts. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/jobs/record.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/kit/view.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/family.h"
#include "core/spec/respec.h"
#include "core/spec/specdiff.h"
#include "fsroot/attempt/mask.h"

/* The differences of a page: what is behind the ceiling is not told. COMPARED: bytes of differences
 * times the secrets that are looked for in them, a second or two. */
enum {
    FAMILY_PAGE_MAX = 16 << 20,
    FAMILY_CHANGES_MAX = 4 << 20,
    FAMILY_COMPARED_MAX = 1 << 27,
    NOTE_BODY_MAX = 4096
};
/* That go on at once: each holds STORE_FAMILY_BYTES_MAX of texts, and what is read from them. */
enum { FAMILIES_AT_ONCE = 4, FAMILIES_OF_ONE = 2 };

/* ---- the page ---- */

struct family_metric {
    const char *key;
    double value;
    int64_t step;
};
static const struct field family_metric_rows[] = {
    FIELD_AT(family_metric, "key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    FIELD_AT(family_metric, "value", FIELD_REAL, value, .flags = FIELD_MAYBE),
    FIELD_AT(family_metric, "step", FIELD_INT, step),
};
static const struct field_table family_metric_table =
    FIELD_TABLE("FamilyMetric", family_metric_rows, family_metric);

/* Texts are borrowed for one answer. */
struct family_page {
    const char *id, *name, *user, *project, *workload, *state, *parent, *note, *changes;
    usec_t queued_at, ended_at;
    int depth, how;
    int64_t step;
    const struct family_metric *validation;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(family_page, key, ftype, member, __VA_ARGS__)
static const struct field family_rows[] = {
    PAGE("id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    PAGE("name", FIELD_STR, name),
    PAGE("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    PAGE("project", FIELD_STR, project, .flags = FIELD_ALWAYS),
    PAGE("workload", FIELD_STR, workload, .flags = FIELD_ALWAYS),
    PAGE("state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    PAGE("queued_at", FIELD_TIME, queued_at, .flags = FIELD_ALWAYS),
    PAGE("ended_at", FIELD_TIME, ended_at),
    PAGE("parent", FIELD_STR, parent, .doc = "null: the tree begins here, for who asks"),
    PAGE("depth", FIELD_INT32, depth),
    PAGE("how",
         FIELD_ENUM,
         how,
         .names = family_how_words,
         .doc = "what it is to its parent: once more, a fork of its spec, or of its checkpoint"),
    PAGE("step",
         FIELD_INT,
         step,
         .flags = FIELD_NO_LIMIT,
         .doc = "of the parent's checkpoint that it began with"),
    PAGE("note", FIELD_STR, note, .doc = "why it was made, as somebody said"),
    PAGE("changes",
         FIELD_JSON,
         changes,
         .schema = "{\"type\":[\"array\",\"null\"],\"items\":{\"$ref\":\"#/components/schemas/"
                   "SpecEdit\"}}",
         .doc = "its spec, from its parent's; null: it has none, or there is too much to tell"),
    PAGE("validation", FIELD_PART, validation, .of = &family_metric_table),
};
#undef PAGE
static const struct field_table family_table =
    FIELD_TABLE("FamilyMember", family_rows, family_page);

/* ---- the family, while it is asked for ---- */

struct family_row {
    struct store_job job; /* its texts are ours */
    struct speckeys *keys;
    struct mask mask; /* what of its spec is hidden */
};

struct family_list {
    struct family_row *v;
    size_t n;
    bool is_cut;
};

struct family_ask {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    struct turn turn;
    struct store_read *read;  /* NULL: it waits for its turn, or the worker has it */
    struct family_list *list; /* not NULL: the worker has it */
    struct secrets_key key;   /* for the worker, until the specs are open */
    char *id, *user;
    atomic_bool is_gone; /* the client: for the worker */
    size_t told;         /* bytes of differences */
    uint64_t compared;   /* see FAMILY_COMPARED_MAX */
    struct buf out;
};

static void family_list_free(void *arg)
{
    struct family_list *l = arg;
    for (size_t i = 0; l && i < l->n; i++) {
        const struct store_job *j = &l->v[i].job;
        const char *const texts[] = {j->id,    j->name,     j->user,          j->project,
                                     j->state, j->detail,   j->origin.parent, j->origin.how,
                                     j->spec,  j->workload, j->origin.note};
        for (size_t k = 0; k < array_len(texts); k++)
            free((char *)(uintptr_t)texts[k]); /* copied by family_copy() */
        speckeys_free(l->v[i].keys);
        mask_release(&l->v[i].mask);
    }
    if (l)
        free(l->v);
    free(l);
}

static void family_ask_free(struct family_ask *f)
{
    family_list_free(f->list);
    buf_release(&f->out);
    secrets_forget_key(&f->key);
    free(f->id);
    free(f->user);
    free(f);
}

static void family_copy(const struct store_job *from, struct family_row *to)
{
    to->job = (struct store_job){.seq = from->seq,
                                 .id = xstrdup(from->id),
                                 .name = xstrdup(from->name),
                                 .user = xstrdup(from->user),
                                 .project = xstrdup(from->project),
                                 .workload = xstrdup(from->workload),
                                 .state = xstrdup(from->state),
                                 .spec = xstrdup(from->spec),
                                 .detail = xstrdup(from->detail),
                                 .queued_at = from->queued_at,
                                 .ended_at = from->ended_at,
                                 .origin = {.parent = xstrdup(from->origin.parent),
                                            .how = xstrdup(from->origin.how),
                                            .note = xstrdup(from->origin.note),
                                            .step = from->origin.step}};
}

static int family_compare_rows(const void *a, const void *b)
{
    const struct family_row *x = a, *y = b;
    return (x->job.seq > y->job.seq) - (x->job.seq < y->job.seq);
}

/* On the store's worker. By age: whichever of them is asked about, the order is the same. */
static void *family_gather(const struct store_result *r, void *arg)
{
    struct family_list *l = xcalloc(1, sizeof(*l));
    (void)arg;
    l->v = xcalloc(r->njobs + 1, sizeof(*l->v));
    l->is_cut = r->is_cut;
    for (; l->n < r->njobs; l->n++)
        family_copy(&r->jobs[l->n], &l->v[l->n]);
    qsort(l->v, l->n, sizeof(*l->v), family_compare_rows);
    return l;
}

/* ---- what differs ---- */

/* Without the secrets of either spec: one that the child has may stand open in the parent's. */
static bool family_hide(struct family_ask *f,
                        const struct mask *old,
                        const struct mask *new,
                        const struct buf *open,
                        struct buf *ret)
{
    f->compared += (uint64_t)open->len * (old->values.n + new->values.n);
    if (open->failed || f->compared > FAMILY_COMPARED_MAX)
        return false;
    mask_json_of_two(old, new, buf_str(open), ret);
    return !ret->failed && f->told + ret->len <= FAMILY_CHANGES_MAX;
}

/* The difference to the parent's spec, JSON; NULL: it is not told. Heap. */
static char *family_changes(struct family_ask *f,
                            const struct family_row *parent,
                            const struct family_row *child)
{
    struct buf open = BUF_INIT(RESPEC_CHANGES_MAX), shown = BUF_INIT(RESPEC_CHANGES_MAX);
    char *text = NULL;
    if (!parent || !parent->keys || !child->keys)
        return NULL;
    (void)speckeys_diff(parent->keys, child->keys, &open);
    if (family_hide(f, &parent->mask, &child->mask, &open, &shown)) {
        f->told += shown.len;
        text = buf_take(&shown);
    } else {
        f->list->is_cut = true;
    }
    buf_release(&open);
    buf_release(&shown);
    return text;
}

static bool family_validation(const json_t *detail, struct family_metric *ret)
{
    const json_t *v = json_get_object(json_get_object(detail, "metrics"), "validation");
    *ret = (struct family_metric){.key = json_get_str(v, "key", NULL),
                                  .value = json_get_real(v, "value", NAN),
                                  .step = json_get_int(v, "step", 0)};
    return ret->key != NULL;
}

static void family_put(struct family_ask *f, const struct family_place *place, struct jout *j)
{
    const struct family_row *row = &f->list->v[place->member];
    const struct family_row *up =
        place->parent == FAMILY_NOBODY ? NULL : &f->list->v[place->parent];
    const struct store_job *job = &row->job;
    _cleanup_(json_unrefp) json_t *detail = job->detail ? json_loads(job->detail, 0, NULL) : NULL;
    _cleanup_(freep) char *changes = family_changes(f, up, row);
    struct family_metric validation;
    bool has_validation = family_validation(detail, &validation);
    const struct family_page page = {
        .id = job->id,
        .name = job->name,
        .user = job->user,
        .project = job->project,
        .workload = job->workload,
        .state = job->state,
        .queued_at = job->queued_at,
        .ended_at = job->ended_at,
        .parent = up ? up->job.id : NULL,
        .depth = place->depth,
        .how = up ? (int)family_how_from_string(job->origin.how) : FAMILY_NONE,
        .step = up && job->origin.step > 0 ? job->origin.step : -1,
        .note = job->origin.note,
        .changes = changes,
        .validation = has_validation ? &validation : NULL,
    };
    field_to_json(&family_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

static void family_read_spec(const struct secrets_key *key, struct family_row *row)
{
    char *spec = (char *)(uintptr_t)row->job.spec; /* ours */
    if (!spec)
        return;
    row->job.spec = NULL; /* from here on its keys are asked */
    secrets_key_open_spec(key, row->job.id, &spec);
    row->keys = speckeys_new(spec);
    view_mask_values(spec, &row->mask);
    free(spec);
}

static void family_read_specs(struct family_ask *f)
{
    for (size_t i = 0; i < f->list->n && !atomic_load(&f->is_gone); i++)
        family_read_spec(&f->key, &f->list->v[i]);
    secrets_forget_key(&f->key);
}

/* On a worker. */
static void family_run(void *arg)
{
    struct family_ask *f = arg;
    struct family_list *l = f->list;
    struct family_member *members = xcalloc(l->n + 1, sizeof(*members));
    struct family_place *places = xcalloc(l->n + 1, sizeof(*places));
    family_read_specs(f);
    for (size_t i = 0; i < l->n; i++)
        members[i] = (struct family_member){l->v[i].job.id, l->v[i].job.origin.parent};
    family_order(members, l->n, places);
    struct jout j = jout_begin(&f->out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "job", f->id);
    jout_open(&j, "jobs", '[');
    for (size_t i = 0; i < l->n && !atomic_load(&f->is_gone); i++)
        family_put(f, &places[i], &j);
    jout_close(&j, ']');
    jout_bool(&j, "more", l->is_cut);
    jout_close(&j, '}');
    free(members);
    free(places);
}

/* ---- the request ---- */

static void family_next_turn(struct api *a);

static void family_end(struct family_ask *f)
{
    struct api *a = f->a;
    turns_leave(&a->families, &f->turn);
    family_ask_free(f);
    family_next_turn(a);
}

static void family_on_gone(struct http_req *req, void *arg)
{
    struct family_ask *f = arg;
    (void)req;
    f->req = NULL;
    if (f->list) {
        atomic_store(&f->is_gone, true); /* freed when the worker is done */
        return;
    }
    if (f->read)
        store_read_cancel(f->read);
    family_end(f);
}

static void family_done(void *arg)
{
    struct family_ask *f = arg;
    if (f->req) {
        http_req_on_close(f->req, NULL, NULL);
        api_mark_stale(f->req, f->a);
        http_reply_json(f->req, 200, &f->out, api_reader_barrier(f->a));
    }
    family_end(f);
}

static void family_on_rows(const struct store_result *r, void *arg)
{
    struct family_ask *f = arg;
    f->read = NULL;
    if (r->err.code) {
        http_req_on_close(f->req, NULL, NULL);
        api_fail(f->req, &r->err, 0);
        family_end(f);
        return;
    }
    f->list = r->rendered;
    secrets_copy_key(f->a->secrets, &f->key);
    work_start_for(f->a->loop, f->user, family_run, family_done, f);
}

static void family_begin(struct family_ask *f)
{
    struct store_then then = {
        .render = family_gather, .done = family_on_rows, .drop = family_list_free, .arg = f};
    struct people_view view;
    people_view(f->a->people, http_req_principal(f->req), PEOPLE_WISH_ALL, &view);
    f->read = store_list_family(
        f->a->store, &(struct store_family_query){.id = f->id, .scope = view.scope}, &then);
    people_view_release(&view);
}

static void family_next_turn(struct api *a)
{
    struct turn *turn;
    while ((turn = turns_next(&a->families, FAMILIES_AT_ONCE)) != NULL)
        family_begin(container_of(turn, struct family_ask, turn));
}

static void family_of_job(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct record_extra *extra,
                          struct live *l)
{
    struct family_ask *f = xcalloc(1, sizeof(*f));
    struct err err = {0};
    (void)extra, (void)l;
    *f = (struct family_ask){.req = req,
                             .a = a,
                             .id = xstrdup(job->id),
                             .user = xstrdup(http_req_principal(req)->user),
                             .out = BUF_INIT(FAMILY_PAGE_MAX)};
    f->turn.user = f->user;
    a->families.most_of_one = FAMILIES_OF_ONE;
    if (!turns_join(&a->families, &f->turn)) {
        (void)message_refuse(&err, ERR_BUSY, "too_many_families",
                             MESSAGE_ARGS(MESSAGE_NUM("all", TURNS_WAITING_MAX),
                                          MESSAGE_NUM("yours", TURNS_WAITING_OF_ONE_MAX)));
        api_fail(req, &err, 0);
        family_ask_free(f);
        return;
    }
    http_req_on_close(req, family_on_gone, f);
    family_next_turn(a);
}

static void api_jobs_family(struct http_req *req, void *app)
{
    api_find_job(req, app, family_of_job);
}

/* ---- the note ---- */

static const struct field note_form_rows[] = {OPT_AS("note", TEXT_OR_NULL)};
static const struct field_table note_form = ACTION_FORM(note_form_rows);

struct note_page {
    const char *id, *note;
};
static const struct field note_rows[] = {
    FIELD_AT(note_page, "id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    FIELD_AT(note_page, "note", FIELD_STR, note),
};
static const struct field_table note_table = FIELD_TABLE("JobNote", note_rows, note_page);

static void note_tell(struct api *a, const struct job *job, const char *actor, const char *note)
{
    char text[2 * FAMILY_NOTE_MAX + 64];
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("note", str_or(note, ""))));
    const struct events_note event = {.kind = "change",
                                      .actor = actor,
                                      .job_seq = job->seq,
                                      .job = job->id,
                                      .code = "job_noted",
                                      .text = text};
    events_add(a->events, &event, clock_wall());
}

static void note_answer(struct http_req *req, const struct api *a, const struct note_page *page)
{
    struct buf out = BUF_INIT(NOTE_BODY_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(&note_table, page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

static int note_check(const struct http_req *req,
                      const struct api *a,
                      const struct job *job,
                      const json_t *given,
                      const char **ret,
                      struct err *err)
{
    int r = api_may_change(a, http_req_principal(req), "change", job, err);
    if (r == 0)
        r = store_check(a->store, err);
    return r == 0 ? family_read_note(given, ret, err) : r;
}

static void note_job(struct http_req *req,
                     struct api *a,
                     const struct job *job,
                     const struct record_extra *extra,
                     struct live *l)
{
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &note_form);
    struct err err = {0};
    (void)extra, (void)l;
    if (!body)
        return;
    struct note_page page = {.id = job->id};
    if (note_check(req, a, job, json_object_get(body, "note"), &page.note, &err) < 0) {
        api_fail(req, &err, 0);
        return;
    }
    store_put_note(a->store, job->seq, page.note);
    note_tell(a, job, http_req_principal(req)->user, page.note);
    note_answer(req, a, &page);
}

static void api_jobs_note(struct http_req *req, void *app)
{
    api_find_job(req, app, note_job);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/family",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_family,
     .summary = "the jobs that came of one another: retries, forks, resumes, and what each changed",
     .reply_schema = "Family"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:note",
     .least = HTTP_ROLE_USER,
     .max_body = NOTE_BODY_MAX,
     .handle = api_jobs_note,
     .summary = "say in one line why a job was made; null takes the line away",
     .request_schema = "JobNoteOrder",
     .reply_schema = "JobNote"},
};
static const struct http_schema schemas[] = {
    {.name = "Family",
     .json = OBJECT(
         "\"job\",\"jobs\",\"more\"",
         KEY("job", TEXT) "," KEY("jobs", LIST(REF("FamilyMember"))) "," KEY("more", BOOLEAN))},
    {.name = "FamilyMember", .table = &family_table},
    {.name = "FamilyMetric", .table = &family_metric_table},
    {.name = "JobNote", .table = &note_table},
    {.name = "JobNoteOrder", .table = &note_form, .is_form = true},
};
const struct api_part part_family = {rows, array_len(rows), schemas, array_len(schemas)};
