/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.c - /v1/snapshots: add, list, look, compare, remove.
 *
 * Adding asks by hash first: content that he who asks may see anyway is not sent again. What
 * others hold privately is not there for him, so that a hash tells nothing about them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/content/code.h"
#include "argusd/content/snapshots_view.h"
#include "argusd/content/uploads.h"
#include "argusd/ground/work.h"
#include "argusd/kit/resource.h"
#include "base/str.h"
#include "core/spec/snapshot.h"
#include "fsroot/snapshot.h"

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
    (void)err_set(&q->err, ERR_NOT_FOUND, "no snapshot '%s'",
                  snapshot_show(ref, shown)); /* only fills err */
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
        return err_set(err, ERR_BAD_REQUEST, "a snapshot has a 'name': name@version");
    if (common && !json_is_boolean(common) && !json_is_null(common))
        return err_set(err, ERR_BAD_REQUEST, "'common' is true or false");
    if (f->hash &&
        (strlen(f->hash) != HASH_HEX - 1 || strspn(f->hash, "0123456789abcdef") != HASH_HEX - 1))
        return err_set(err, ERR_BAD_REQUEST, "'hash' is no SHA-256 in 64 lower-case digits");
    if (!f->upload && !f->hash)
        return err_set(err, ERR_BAD_REQUEST,
                       "say what is in it: the id of an 'upload', or the 'hash' of content that "
                       "is here");
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
    return err_set(err, ERR_CONFLICT,
                   "'%s' is another snapshot already, and one never changes: choose another "
                   "version",
                   f->name);
}

static int api_snapshots_check_root(const struct api *a, struct err *err)
{
    return cluster_root_is_ok(a->cluster) && !cluster_root_hangs(a->cluster)
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "snapshots wait for the shared root: %s",
                         cluster_root_why(a->cluster));
}

static void adding_begin(struct resource_ask *q, const struct form *f)
{
    struct api *a = q->a;
    const char *me = q->who.user, *user = f->common ? NULL : me;
    struct adding *x = xcalloc(1, sizeof(*x));
    *x = (struct adding){.a = a, .req = q->req, .actor = xstrdup(me)};
    int r = api_snapshots_check_root(a, &q->err);
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
        r = err_set(&q.err, ERR_NOT_FOUND, "content '%.12s' is not here yet: upload it", f.hash);
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
        return err_set(&q->err, ERR_CONFLICT, "'%s' is just being submitted", s->ref);
    if (!n)
        return 0;
    if (!api_sees_job(l->job->id, &eyes))
        return err_set(&q->err, ERR_CONFLICT, "'%s' is used by %zu job%s that %s not over", s->ref,
                       n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
    return err_set(&q->err, ERR_CONFLICT, "'%s' is used by job '%s'%s: stop it first, or wait",
                   s->ref, l->job->id, n > 1 ? " and more" : "");
}

static bool snapshot_take_away(struct resource_ask *q, const void *x)
{
    const struct snapshot *s = x;
    snapshots_note(q->a->events, s, q->who.user, true);
    snapshots_remove(q->a->snapshots, snapshots_find(q->a->snapshots, s->user, s->ref));
    return true;
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

struct comparing {
    struct api *a;
    struct http_req *req; /* NULL: gone */
    char *root, *names[2], hashes[2][HASH_HEX];
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

static void snapshot_compare(struct resource_ask *q,
                             const struct snapshot *s,
                             const struct snapshot *other)
{
    struct comparing *c = xcalloc(1, sizeof(*c));
    *c = (struct comparing){.a = q->a,
                            .req = q->req,
                            .root = xstrdup(q->a->settings->shared_root),
                            .names = {xstrdup(s->ref), xstrdup(other->ref)},
                            .out = BUF_INIT(LIST_MAX)};
    memcpy(c->hashes[0], s->hash, HASH_HEX);
    memcpy(c->hashes[1], other->hash, HASH_HEX);
    http_req_on_close(q->req, on_compare_gone, c);
    work_start(q->a->loop, run_compare, done_compare, c);
}

static void snapshot_diff(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct snapshot *s = resource_find(&q, RESOURCE_TO_SEE, "see"), *other = NULL;
    const char *with = http_req_query(req, "with");
    if (s) {
        q.field = "with";
        int r = with ? 0 : err_set(&q.err, ERR_BAD_REQUEST, "say with which: ?with=name@version");
        other = r == 0 ? snapshot_look_up(&q, with) : NULL;
    }
    if (other && api_snapshots_check_root(q.a, &q.err) == 0)
        snapshot_compare(&q, s, other);
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
    .may_change = ACCESS_SNAPSHOT_REMOVE,
    .remove = {.verb = "remove"}, /* the event is snapshots_note()'s */
    .next = snapshot_next,
    .find = snapshot_find,
    .thing = snapshot_thing,
    .fill = snapshot_fill,
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
                 .reply_schema = "Snapshot"),
    RESOURCE_ROUTE("GET",
                   snapshot_diff,
                   &snapshot_noun,
                   "/v1/snapshots/{name}:diff",
                   VIEWER,
                   "what another one adds, leaves out and changes",
                   .params = diff_params,
                   .reply_schema = "SnapshotDiff"),
    RESOURCE_REMOVE(&snapshot_noun,
                    "/v1/snapshots/{name}",
                    USER,
                    "remove one that no job uses",
                    .params = find_params,
                    .reply_schema = "Snapshot"),
};
static const struct http_schema schemas[] = {
    {.name = "SnapshotForm", .table = &snapshot_form, .is_form = true},
    {.name = "Snapshot", .table = &snapshots_page_table, .which = FIELD_SHOWN},
    LIST_OF("SnapshotList", "snapshots", "Snapshot"),
    {.name = "SnapshotDiff", .table = &diff_table},
};
const struct api_part part_snapshots = {rows, array_len(rows), schemas, array_len(schemas)};
