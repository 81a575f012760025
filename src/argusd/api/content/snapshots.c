/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.c - /v1/snapshots: add, list, look, compare, remove.
 *
 * Adding asks by hash first: content that he who asks may see anyway is not sent again. What
 * others hold privately is not there for him, so that a hash tells nothing about them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/content/code.h"
#include "argusd/content/snapshots_view.h"
#include "argusd/content/uploads.h"
#include "argusd/ground/work.h"
#include "argusd/kit/part.h"
#include "argusd/kit/resource.h"
#include "base/message.h"
#include "base/str.h"
#include "core/job/needs.h"
#include "core/spec/snapshot.h"
#include "fsroot/content/snapshot.h"

enum { LIST_MAX = 32 << 20, DIFF_SHOWN = 1000 };

static void snapshot_fill(struct resource_ask *q, const void *x, void *page)
{
    (void)q;
    snapshots_fill(x, page);
}

/* ---- finding ---- */

static void snapshot_thing(struct resource_ask *q,
                           const void *x,
                           const void *asked,
                           struct access_thing *ret)
{
    (void)q;
    (void)asked;
    *ret = snapshots_thing(x);
}

static bool snapshot_is_seen(const struct resource_ask *q, const struct snapshot *s)
{
    struct access_thing thing = snapshots_thing(s);
    return access_check(&q->who, ACCESS_SNAPSHOT_SEE, "see", &thing, NULL) == 0;
}

/* By name: one's own, else the common one; ?common and ?user choose. NULL: q->err is set. */
static const struct snapshot *snapshot_look_up(struct resource_ask *q, const char *ref)
{
    const struct snapshots *all = q->a->snapshots;
    const char *user = http_req_query(q->req, "user");
    const struct snapshot *s = http_req_query_bool(q->req, "common", false)
                                   ? snapshots_find(all, NULL, ref)
                               : user ? snapshots_find(all, user, ref)
                                      : snapshots_find_for(all, q->who.user, ref);
    if (s && snapshot_is_seen(q, s))
        return s;
    char shown[SNAPSHOT_SHOWN];
    (void)message_refuse(
        &q->err, ERR_NOT_FOUND, "not_found",
        MESSAGE_ARGS(MESSAGE_STR("noun", "snapshot"),
                     MESSAGE_STR("name", snapshot_show(ref, shown)))); /* only fills err */
    return NULL;
}

static const void *snapshot_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return snapshot_look_up(q, q->name);
}

static const void *snapshot_next(struct resource_ask *q, size_t *pos)
{
    return snapshots_next(q->a->snapshots, pos);
}

/* ---- adding ---- */

struct adding {
    struct api *a;
    struct http_req *req; /* NULL: gone */
    char *upload;         /* its id; NULL: none was sent */
    char *actor;
    struct upload_given given;
};

static void adding_free(struct adding *x)
{
    upload_given_release(&x->given);
    free(x->upload);
    free(x->actor);
    free(x);
}

static void on_add_gone(struct http_req *req, void *arg)
{
    struct adding *x = arg;
    (void)req;
    x->req = NULL; /* it goes on: the bytes are here */
}

static void api_snapshots_on_row(struct snapshot *s, void *arg)
{
    const struct adding *x = arg;
    snapshots_note(x->a->events, s, x->actor, false);
}

static void snapshot_answer(struct http_req *req,
                            struct api *a,
                            const struct snapshot *s,
                            int status)
{
    struct resource_ask q;
    resource_begin(&q, req, a);
    resource_reply(&q, s, status, api_barrier(a));
    resource_end(&q);
}

static void on_made(struct snapshot *s, bool existed, bool taken, const struct err *err, void *arg)
{
    struct adding *x = arg;
    if (x->upload && (s || taken))
        uploads_used(x->a->uploads, x->upload);
    else if (x->upload)
        uploads_give_back(x->a->uploads, x->upload);
    if (x->req) {
        http_req_on_close(x->req, NULL, NULL);
        if (s)
            snapshot_answer(x->req, x->a, s, existed ? 200 : 201);
        else
            api_fail(x->req, err, api_barrier(x->a));
    }
    adding_free(x);
}

struct form {
    const char *name, *upload, *hash;
    bool common;
};

static int api_snapshots_read_form(const json_t *v, struct form *f, struct err *err)
{
    const json_t *common = json_object_get(v, "common");
    f->name = json_get_str(v, "name", NULL);
    f->upload = json_get_str(v, "upload", NULL);
    f->hash = json_get_str(v, "hash", NULL);
    f->common = json_is_true(common);
    if (!f->name)
        return message_refuse(err, ERR_BAD_REQUEST, "snapshot_no_name", MESSAGE_NO_ARGS);
    if (common && !json_is_boolean(common) && !json_is_null(common))
        return message_refuse(err, ERR_BAD_REQUEST, "no_bool",
                              MESSAGE_ARGS(MESSAGE_STR("key", "common")));
    if (f->hash && !hash_is_hex(f->hash))
        return message_refuse(err, ERR_BAD_REQUEST, "snapshot_bad_hash", MESSAGE_NO_ARGS);
    if (!f->upload && !f->hash)
        return message_refuse(err, ERR_BAD_REQUEST, "snapshot_no_content", MESSAGE_NO_ARGS);
    return snapshot_check_ref(f->name, err);
}

/* Content of this hash that may be seen. */
static bool has_content(const struct resource_ask *q, const char *hash)
{
    const struct snapshot *s;
    for (size_t pos = 0; (s = snapshots_next(q->a->snapshots, &pos));)
        if (!strcmp(s->hash, hash) && snapshot_is_seen(q, s))
            return true;
    return false;
}

static int api_snapshots_check_name(const struct api *a,
                                    const char *user,
                                    const struct form *f,
                                    struct err *err)
{
    const struct snapshot *s = snapshots_find(a->snapshots, user, f->name);
    if (!s || (f->hash && !strcmp(s->hash, f->hash)) || (!f->hash && f->upload))
        return 0; /* without a hash the content will tell */
    return message_refuse(err, ERR_CONFLICT, "snapshot_other",
                          MESSAGE_ARGS(MESSAGE_STR("ref", f->name)));
}

static void adding_begin(struct resource_ask *q, const struct form *f)
{
    struct api *a = q->a;
    const char *me = q->who.user, *user = f->common ? NULL : me;
    struct adding *x = xcalloc(1, sizeof(*x));
    *x = (struct adding){.a = a, .req = q->req, .actor = xstrdup(me)};
    int r = cluster_check_root(a->cluster, &q->err);
    if (r == 0 && f->upload)
        r = uploads_take(a->uploads, f->upload, me, &x->given, &q->err);
    if (r < 0) {
        adding_free(x);
        resource_refuse(q);
        return;
    }
    x->upload = xstrdup(f->upload);
    http_req_on_close(q->req, on_add_gone, x);
    struct snapshots_wish wish = {.user = user,
                                  .ref = f->name,
                                  .actor = me,
                                  .want = f->hash,
                                  .path = x->given.path,
                                  .bytes = x->given.bytes,
                                  .is_known = f->hash && has_content(q, f->hash)};
    snapshots_add(a->snapshots, &wish, api_snapshots_on_row, on_made, x);
}

static const struct field snapshot_form_rows[] = {MUST_TEXT("name"), OPT_AS("upload", TEXT_OR_NULL),
                                                  OPT_AS("hash", TEXT_OR_NULL),
                                                  OPT_BOOLEAN("common")};
static const struct field_table snapshot_form = ACTION_FORM(snapshot_form_rows);

static void snapshot_add(struct http_req *req, void *app)
{
    struct api *a = app;
    struct form f;
    struct resource_ask q;
    resource_begin(&q, req, app);
    struct access_thing thing = {.kind = ACCESS_KIND_SNAPSHOT, .name = "new", .owner = q.who.user};
    if (api_people_may(req, a, ACCESS_SNAPSHOT_ADD, "add", &thing, true) < 0)
        return;
    _cleanup_(json_unrefp) json_t *v = api_read_action(req, &snapshot_form);
    if (!v)
        return;
    int r = api_snapshots_read_form(v, &f, &q.err);
    if (r == 0)
        r = api_snapshots_check_name(a, f.common ? NULL : q.who.user, &f, &q.err);
    if (r == 0 && !f.upload && !has_content(&q, f.hash))
        r = message_refuse(&q.err, ERR_NOT_FOUND, "content_not_here",
                           MESSAGE_ARGS(MESSAGE_STR("hash", f.hash)));
    if (r < 0)
        resource_refuse(&q);
    else
        adding_begin(&q, &f);
    resource_end(&q);
}

/* ---- removing ---- */

/* One job that is not over and uses it, and how many there are. */
static size_t count_users(const struct api *a, const struct snapshot *s, const struct live **ret)
{
    size_t n = 0;
    struct live *l;
    for (size_t pos = 0; (l = jobs_next(a->jobs, &pos));) {
        if (l->over || !code_has(l->extra.snapshots, s->hash))
            continue;
        *ret = l;
        n++;
    }
    return n;
}

static int snapshot_check_remove(struct resource_ask *q, const void *x)
{
    const struct snapshot *s = x;
    const struct live *l = NULL;
    size_t n = count_users(q->a, s, &l);
    struct api_eyes eyes = {q->a, http_req_principal(q->req)};
    if (s->holders)
        return message_refuse(&q->err, ERR_CONFLICT, "snapshot_submitted",
                              MESSAGE_ARGS(MESSAGE_STR("ref", s->ref)));
    if (!n)
        return 0;
    if (!api_sees_job(l->job->id, &eyes))
        return message_refuse(&q->err, ERR_CONFLICT, "snapshot_used",
                              MESSAGE_ARGS(MESSAGE_STR("ref", s->ref), MESSAGE_NUM("jobs", n)));
    return message_refuse(&q->err, ERR_CONFLICT, "snapshot_used_by",
                          MESSAGE_ARGS(MESSAGE_STR("ref", s->ref), MESSAGE_STR("job", l->job->id),
                                       MESSAGE_NUM("jobs", n)));
}

static bool snapshot_take_away(struct resource_ask *q, const void *x)
{
    const struct snapshot *s = x;
    snapshots_note(q->a->events, s, q->who.user, true);
    snapshots_remove(q->a->snapshots, snapshots_find(q->a->snapshots, s->user, s->ref));
    return true;
}

/* ---- what it asks of a machine ---- */

static const struct field snapshot_needs_rows[] = {
    {.name = "needs",
     .type = FIELD_STRV,
     .offset = offsetof(struct snapshot, needs),
     .flags = FIELD_STORED | FIELD_ASKED,
     .doc = "needs that replace those that there are: torch>=2.4"},
};
static const struct field_table snapshot_needs_form = {.name = "SnapshotNeeds",
                                                       .rows = snapshot_needs_rows,
                                                       .n = array_len(snapshot_needs_rows),
                                                       .size = sizeof(struct snapshot)};

static int snapshot_check(struct resource_ask *q, const void *old, void *asked)
{
    const struct snapshot *s = asked;
    (void)old;
    q->field = "needs";
    if (s->needs.n > NEEDS_MAX)
        return message_refuse(&q->err, ERR_BAD_SPEC, "too_many_needs",
                              MESSAGE_ARGS(MESSAGE_NUM("most", NEEDS_MAX)));
    for (size_t i = 0; i < s->needs.n; i++)
        if (needs_check(s->needs.v[i], &q->err) < 0)
            return q->err.code;
    return 0;
}

static const void *snapshot_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct snapshot *was = old, *wanted = asked;
    struct snapshot *s = snapshots_find(q->a->snapshots, was->user, was->ref);
    snapshots_set_needs(q->a->snapshots, s, &wanted->needs, q->who.user);
    return s;
}

/* Jobs that wait with it may start elsewhere now, or not where they would have. */
static void snapshot_after(struct resource_ask *q, const void *x)
{
    const struct snapshot *s = x;
    struct live *l;
    for (size_t pos = 0; (l = jobs_next(q->a->jobs, &pos));)
        if (code_has(l->extra.snapshots, s->hash))
            jobs_ask_needs(l);
    jobs_admit(q->a->jobs, clock_wall());
}

static char *snapshot_object(const void *x)
{
    return snapshots_object(x);
}

/* ---- comparing ---- */

struct difference_page {
    const char *path, *how;
};
static const struct field difference_rows[] = {
    FIELD_AT(difference_page, "path", FIELD_STR, path, .flags = FIELD_ALWAYS),
    FIELD_AT(difference_page,
             "how",
             FIELD_STR,
             how,
             .flags = FIELD_ALWAYS,
             .schema = WORDS("\"added\",\"removed\",\"changed\"")),
};
static const struct field_table difference_table =
    FIELD_TABLE(NULL, difference_rows, difference_page);

struct diff_page {
    const char *a, *b;
    struct field_list differences;
    uint64_t added, removed, changed;
    bool more;
};
#define DIFF(member, ftype, ...) FIELD_AT(diff_page, #member, ftype, member, __VA_ARGS__)
static const struct field diff_rows[] = {
    DIFF(a, FIELD_STR, .flags = FIELD_ALWAYS),
    DIFF(b, FIELD_STR, .flags = FIELD_ALWAYS),
    DIFF(differences, FIELD_LIST, .of = &difference_table),
    DIFF(added, FIELD_COUNT, .flags = 0),
    DIFF(removed, FIELD_COUNT, .flags = 0),
    DIFF(changed, FIELD_COUNT, .flags = 0),
    DIFF(more, FIELD_BOOL, .flags = 0),
};
static const struct field_table diff_table = FIELD_TABLE(NULL, diff_rows, diff_page);

/* What is in a directory of one: its files, and its directories with all that is below them. */
struct content_page {
    char *name; /* owned */
    const char *kind;
    uint64_t files, bytes;
};
static const struct field content_rows[] = {
    FIELD_AT(content_page, "name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    FIELD_AT(content_page,
             "kind",
             FIELD_STR,
             kind,
             .flags = FIELD_ALWAYS,
             .schema = WORDS("\"file\",\"program\",\"link\",\"directory\"")),
    FIELD_AT(content_page, "files", FIELD_COUNT, files),
    FIELD_AT(content_page, "bytes", FIELD_COUNT, bytes),
};
static const struct field_table content_table = FIELD_TABLE(NULL, content_rows, content_page);

struct contents_page {
    const char *snapshot, *below;
    struct field_list entries;
    bool more;
};
static const struct field contents_rows[] = {
    FIELD_AT(contents_page, "snapshot", FIELD_STR, snapshot, .flags = FIELD_ALWAYS),
    FIELD_AT(contents_page, "below", FIELD_STR, below, .flags = FIELD_ALWAYS),
    FIELD_AT(contents_page, "entries", FIELD_LIST, entries, .of = &content_table),
    FIELD_AT(contents_page, "more", FIELD_BOOL, more),
};
static const struct field_table contents_table = FIELD_TABLE(NULL, contents_rows, contents_page);

struct comparing {
    struct api *a;
    struct http_req *req; /* NULL: gone */
    char *root, *names[2], hashes[2][HASH_HEX];
    char *below; /* NULL: two are compared; else one is looked into */
    struct buf out;
    struct difference_page *shown; /* owned; the paths are the manifests' */
    size_t n_shown, counts[3];
    struct err err;
};

static void comparing_free(struct comparing *c)
{
    free(c->root);
    free(c->names[0]);
    free(c->names[1]);
    free(c->below);
    free(c->shown);
    buf_release(&c->out);
    free(c);
}

static void add_difference(const struct manifest_entry *x,
                           const struct manifest_entry *y,
                           void *arg)
{
    struct comparing *c = arg;
    static const char *const words[] = {"added", "removed", "changed"};
    size_t how = !x ? 0 : !y ? 1 : 2;
    c->counts[how]++;
    if (c->n_shown++ < DIFF_SHOWN)
        c->shown[c->n_shown - 1] =
            (struct difference_page){.path = x ? x->path : y->path, .how = words[how]};
}

static void show_diff(struct comparing *c, const struct manifest *a, const struct manifest *b)
{
    struct jout j = jout_begin(&c->out);
    c->shown = xcalloc(DIFF_SHOWN, sizeof(*c->shown));
    manifest_diff(a, b, add_difference, c);
    bool more = c->n_shown > DIFF_SHOWN;
    const struct diff_page page = {
        .a = c->names[0],
        .b = c->names[1],
        .differences = {.v = c->shown, .n = more ? DIFF_SHOWN : c->n_shown},
        .added = c->counts[0],
        .removed = c->counts[1],
        .changed = c->counts[2],
        .more = more};
    field_to_json(&diff_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
}

/* Entries are in the order of their paths: those of a directory stand together. */
static void content_add(struct content_page *rows,
                        size_t *n,
                        const struct manifest_entry *e,
                        size_t skip)
{
    static const char *const words[] = {"file", "program", "link"};
    const char *rest = e->path + skip, *slash = strchr(rest, '/');
    size_t len = slash ? (size_t)(slash - rest) : strlen(rest);
    struct content_page *last = *n ? &rows[*n - 1] : NULL;
    if (slash && last && strlen(last->name) == len && !strncmp(last->name, rest, len)) {
        last->files++;
        last->bytes += e->size;
        return;
    }
    if ((*n)++ < DIFF_SHOWN)
        rows[*n - 1] = (struct content_page){.name = xstrndup(rest, len),
                                             .kind = slash ? "directory" : words[e->kind],
                                             .files = 1,
                                             .bytes = e->size};
}

static void show_contents(struct comparing *c, const struct manifest *m)
{
    struct jout j = jout_begin(&c->out);
    struct content_page *rows = xcalloc(DIFF_SHOWN + 1, sizeof(*rows));
    _cleanup_(freep) char *prefix = *c->below ? xasprintf("%s/", c->below) : xstrdup("");
    size_t n = 0, skip = strlen(prefix);
    for (size_t i = manifest_place(m, prefix);
         n <= DIFF_SHOWN && i < m->n && str_starts(m->v[i].path, prefix); i++)
        content_add(rows, &n, &m->v[i], skip);
    bool more = n > DIFF_SHOWN;
    n = more ? DIFF_SHOWN : n;
    const struct contents_page page = {
        .snapshot = c->names[0], .below = c->below, .entries = {.v = rows, .n = n}, .more = more};
    field_to_json(&contents_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    for (size_t i = 0; i < n; i++)
        free(rows[i].name);
    free(rows);
}

static void run_contents(void *arg)
{
    struct comparing *c = arg;
    struct manifest m = {0};
    if (snapshot_read(c->root, c->hashes[0], &m, &c->err) == 0)
        show_contents(c, &m);
    manifest_release(&m);
}

static void run_compare(void *arg)
{
    struct comparing *c = arg;
    struct manifest m[2] = {{0}, {0}};
    if (snapshot_read(c->root, c->hashes[0], &m[0], &c->err) == 0 &&
        snapshot_read(c->root, c->hashes[1], &m[1], &c->err) == 0)
        show_diff(c, &m[0], &m[1]);
    manifest_release(&m[0]);
    manifest_release(&m[1]);
}

static void done_compare(void *arg)
{
    struct comparing *c = arg;
    if (c->req) {
        http_req_on_close(c->req, NULL, NULL);
        if (c->err.code)
            api_fail(c->req, &c->err, api_barrier(c->a));
        else
            http_reply_json(c->req, 200, &c->out, api_barrier(c->a));
    }
    comparing_free(c);
}

static void on_compare_gone(struct http_req *req, void *arg)
{
    struct comparing *c = arg;
    (void)req;
    c->req = NULL; /* freed when the worker is done */
}

/* other NULL: what is in s below a directory. */
static void snapshot_compare(struct resource_ask *q,
                             const struct snapshot *s,
                             const struct snapshot *other,
                             const char *below)
{
    struct comparing *c = xcalloc(1, sizeof(*c));
    *c = (struct comparing){.a = q->a,
                            .req = q->req,
                            .root = xstrdup(q->a->settings->shared_root),
                            .names = {xstrdup(s->ref), other ? xstrdup(other->ref) : NULL},
                            .below = other ? NULL : xstrdup(below),
                            .out = BUF_INIT(LIST_MAX)};
    memcpy(c->hashes[0], s->hash, HASH_HEX);
    if (other)
        memcpy(c->hashes[1], other->hash, HASH_HEX);
    http_req_on_close(q->req, on_compare_gone, c);
    work_start_for(q->a->loop, q->who.user, other ? run_compare : run_contents, done_compare, c);
}

static void snapshot_diff(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct snapshot *s = resource_find(&q, RESOURCE_TO_SEE, "see"), *other = NULL;
    const char *with = http_req_query(req, "with");
    if (s) {
        q.field = "with";
        int r = with
                    ? 0
                    : message_refuse(&q.err, ERR_BAD_REQUEST, "compare_with_what", MESSAGE_NO_ARGS);
        other = r == 0 ? snapshot_look_up(&q, with) : NULL;
    }
    if (other && cluster_check_root(q.a->cluster, &q.err) == 0)
        snapshot_compare(&q, s, other, NULL);
    else
        resource_refuse(&q);
    resource_end(&q);
}

static void snapshot_files(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct snapshot *s = resource_find(&q, RESOURCE_TO_SEE, "see");
    if (s && cluster_check_root(q.a->cluster, &q.err) == 0)
        snapshot_compare(&q, s, NULL, str_or(http_req_query(req, "below"), ""));
    else
        resource_refuse(&q);
    resource_end(&q);
}

/* ---- the noun ---- */

static const struct resource snapshot_noun = {
    .noun = "snapshot",
    .kind = ACCESS_KIND_SNAPSHOT,
    .collection = "snapshots",
    .param = "name",
    .page = &snapshots_page_table,
    .may_see = ACCESS_SNAPSHOT_SEE,
    .may_change = ACCESS_SNAPSHOT_CHANGE,
    .form = &snapshot_needs_form,
    .change = {"snapshot_needs", "change"},
    .remove = {.verb = "remove"}, /* the event is snapshots_note()'s */
    .next = snapshot_next,
    .find = snapshot_find,
    .thing = snapshot_thing,
    .fill = snapshot_fill,
    .object = snapshot_object,
    .check = snapshot_check,
    .write = snapshot_write,
    .after = snapshot_after,
    .check_remove = snapshot_check_remove,
    .take_away = snapshot_take_away,
};

#define WHOSE                                                                                      \
    {"common", HTTP_PARAM_BOOLEAN, "the common one, though there is one of yours"},                \
    {                                                                                              \
        "user", HTTP_PARAM_STRING, "this user's own (admins)"                                      \
    }
static const struct http_param find_params[] = {WHOSE, {0}};
static const struct http_param diff_params[] = {
    {"with", HTTP_PARAM_STRING, "the other one: name@version"},
    WHOSE,
    {0}};
static const struct http_param files_params[] = {
    {"below", HTTP_PARAM_STRING, "a directory of the snapshot; the whole snapshot if not given"},
    WHOSE,
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&snapshot_noun,
                  "/v1/snapshots",
                  VIEWER,
                  "snapshots: the common ones and your own",
                  .reply_schema = "SnapshotList"),
    RESOURCE_ROUTE("POST",
                   snapshot_add,
                   &snapshot_noun,
                   "/v1/snapshots",
                   USER,
                   "make one from an upload, or name content that is here by its hash (404: it is "
                   "not)",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "SnapshotForm",
                   .reply_schema = "Snapshot",
                   .reply_status = 201,
                   .other_schema = "Snapshot"),
    RESOURCE_GET(&snapshot_noun,
                 "/v1/snapshots/{name}",
                 VIEWER,
                 "one snapshot, by name@version",
                 .params = find_params,
                 .reply_schema = "Snapshot",
                 .example = "verl@0.9.1"),
    RESOURCE_CHANGE(&snapshot_noun,
                    "/v1/snapshots/{name}",
                    USER,
                    "set what it needs of a machine: jobs that wait with it go by that",
                    .params = find_params,
                    .max_body = RESOURCE_BODY_MAX,
                    .request_schema = "SnapshotNeeds",
                    .reply_schema = "Snapshot"),
    RESOURCE_ROUTE("GET",
                   snapshot_diff,
                   &snapshot_noun,
                   "/v1/snapshots/{name}:diff",
                   VIEWER,
                   "what another one adds, leaves out and changes",
                   .params = diff_params,
                   .reply_schema = "SnapshotDiff"),
    RESOURCE_ROUTE("GET",
                   snapshot_files,
                   &snapshot_noun,
                   "/v1/snapshots/{name}:files",
                   VIEWER,
                   "what is in a directory of a snapshot",
                   .params = files_params,
                   .reply_schema = "SnapshotFiles"),
    RESOURCE_REMOVE(&snapshot_noun,
                    "/v1/snapshots/{name}",
                    USER,
                    "remove one that no job uses",
                    .params = find_params,
                    .reply_schema = "Snapshot"),
};
static const struct http_schema schemas[] = {
    {.name = "SnapshotForm", .table = &snapshot_form, .is_form = true},
    {.name = "SnapshotNeeds", .table = &snapshot_needs_form, .which = FIELD_ASKED, .is_form = true},
    {.name = "Snapshot", .table = &snapshots_page_table, .which = FIELD_SHOWN},
    LIST_OF("SnapshotList", "snapshots", "Snapshot"),
    {.name = "SnapshotDiff", .table = &diff_table},
    {.name = "SnapshotFiles", .table = &contents_table},
};
const struct api_part part_snapshots = {rows, array_len(rows), schemas, array_len(schemas)};
