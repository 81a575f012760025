/* SPDX-License-Identifier: Apache-2.0 */
/* api_snapshots.c - /v1/snapshots: add, list, look, compare, remove.
 *
 * Adding asks by hash first: content that he who asks may see anyway is not sent again. What
 * others hold privately is not there for him, so that a hash tells nothing about them. */
#include "argusd/api_snapshots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api_people.h"
#include "argusd/snapshots.h"
#include "argusd/uploads.h"
#include "argusd/work.h"
#include "base/str.h"
#include "core/snapshot.h"
#include "fsroot/snapshot.h"

enum { SNAPSHOT_MAX_BYTES = 64 << 10, LIST_MAX = 32 << 20, DIFF_SHOWN = 1000 };

/* ---- answers ---- */

static void put_snapshot(struct jout *j, const struct snapshot *s)
{
    jout_open(j, NULL, '{');
    jout_str(j, "name", s->ref);
    jout_bool(j, "common", s->user == NULL);
    jout_str(j, "user", s->actor);
    jout_str(j, "hash", s->hash);
    jout_str(j, "verl", s->verl);
    jout_int(j, "files", (int64_t)s->files);
    jout_int(j, "bytes", (int64_t)s->bytes);
    jout_str(j, "path", s->path);
    jout_time(j, "created_at", s->created_at);
    jout_close(j, '}');
}

static void answer(struct http_req *req, struct api *a, const struct snapshot *s, int status)
{
    struct buf out = BUF_INIT(SNAPSHOT_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_snapshot(&j, s);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

static char *text_of(const struct snapshot *s)
{
    struct buf out = BUF_INIT(SNAPSHOT_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_snapshot(&j, s);
    return buf_take(&out);
}

void api_snapshot_note(struct api *a, const struct snapshot *s, const char *actor, bool removed)
{
    _cleanup_(freep) char *object = s->user ? xasprintf("user/%s/snapshot/%s", s->user, s->ref)
                                            : xasprintf("snapshot/%s", s->ref);
    _cleanup_(freep) char *text = text_of(s);
    struct events_note n = {.kind = removed ? "snapshot_removed" : "snapshot_added",
                            .actor = actor,
                            .object = object,
                            .text = removed ? "snapshot removed" : "snapshot added",
                            .before = removed ? text : NULL,
                            .after = removed ? NULL : text};
    events_add(a->events, &n, clock_wall());
}

/* ---- finding ---- */

static int may(const struct api *a,
               const struct http_req *req,
               enum access_action action,
               const char *verb,
               const struct snapshot *s,
               struct err *err)
{
    struct access_who who;
    people_who(a->people, http_req_principal(req), &who);
    struct access_thing thing = {
        .kind = "snapshot", .name = s->ref, .owner = s->user ? s->user : s->actor};
    return access_check_snapshot(&who, action, verb, &thing, s->user == NULL, err);
}

/* By name: his own, else the common one; ?common and ?user choose. NULL: err is set. */
static struct snapshot *find(const struct http_req *req,
                             const struct api *a,
                             const char *ref,
                             struct err *err)
{
    const char *user = http_req_query(req, "user"), *me = http_req_principal(req)->user;
    struct snapshot *s = http_req_query_bool(req, "common", false)
                             ? snapshots_find(a->snapshots, NULL, ref)
                         : user ? snapshots_find(a->snapshots, user, ref)
                                : snapshots_find_for(a->snapshots, me, ref);
    if (s && may(a, req, ACCESS_SNAPSHOT_SEE, "see", s, NULL) == 0)
        return s;
    char shown[SNAPSHOT_SHOWN];
    (void)err_set(err, ERR_NOT_FOUND, "no snapshot '%s'",
                  snapshot_show(ref, shown)); /* only fills err */
    return NULL;
}

/* NULL: it was answered. */
static struct snapshot *find_named(struct http_req *req, struct api *a)
{
    struct err err = {0};
    struct snapshot *s = find(req, a, http_req_param(req, "name"), &err);
    if (!s)
        api_fail(req, &err, api_barrier(a));
    return s;
}

void api_snapshots(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(LIST_MAX);
    struct jout j = jout_begin(&out);
    const struct snapshot *s;
    jout_open(&j, NULL, '{');
    jout_open(&j, "snapshots", '[');
    for (size_t pos = 0; (s = snapshots_next(a->snapshots, &pos));)
        if (may(a, req, ACCESS_SNAPSHOT_SEE, "see", s, NULL) == 0)
            put_snapshot(&j, s);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

void api_snapshot_get(struct http_req *req, void *app)
{
    const struct snapshot *s = find_named(req, app);
    if (s)
        answer(req, app, s, 200);
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

static void on_row(struct snapshot *s, void *arg)
{
    const struct adding *x = arg;
    api_snapshot_note(x->a, s, x->actor, false);
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
            answer(x->req, x->a, s, existed ? 200 : 201);
        else
            api_fail(x->req, err, api_barrier(x->a));
    }
    adding_free(x);
}

struct form {
    const char *name, *upload, *hash;
    bool common;
};

static int read_form(const json_t *v, struct form *f, struct err *err)
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

/* Content of this hash that he may see. */
static bool has_content(const struct api *a, const struct http_req *req, const char *hash)
{
    const struct snapshot *s;
    for (size_t pos = 0; (s = snapshots_next(a->snapshots, &pos));)
        if (!strcmp(s->hash, hash) && may(a, req, ACCESS_SNAPSHOT_SEE, "see", s, NULL) == 0)
            return true;
    return false;
}

static int check_name(const struct api *a, const char *user, const struct form *f, struct err *err)
{
    const struct snapshot *s = snapshots_find(a->snapshots, user, f->name);
    if (!s || (f->hash && !strcmp(s->hash, f->hash)) || (!f->hash && f->upload))
        return 0; /* without a hash the content will tell */
    return err_set(err, ERR_CONFLICT,
                   "'%s' is another snapshot already, and one never changes: choose another "
                   "version",
                   f->name);
}

static int check_root(const struct api *a, struct err *err)
{
    return cluster_root_is_ok(a->cluster) && !cluster_root_hangs(a->cluster)
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "snapshots wait for the shared root: %s",
                         cluster_root_why(a->cluster));
}

static void begin(struct http_req *req, struct api *a, const struct form *f, struct err *err)
{
    const char *me = http_req_principal(req)->user, *user = f->common ? NULL : me;
    struct adding *x = xcalloc(1, sizeof(*x));
    *x = (struct adding){.a = a, .req = req, .actor = xstrdup(me)};
    int r = check_root(a, err);
    if (r == 0 && f->upload)
        r = uploads_take(a->uploads, f->upload, me, &x->given, err);
    if (r < 0) {
        adding_free(x);
        api_fail(req, err, api_barrier(a));
        return;
    }
    x->upload = xstrdup(f->upload);
    http_req_on_close(req, on_add_gone, x);
    struct snapshots_wish wish = {.user = user,
                                  .ref = f->name,
                                  .actor = me,
                                  .want = f->hash,
                                  .path = x->given.path,
                                  .is_known = f->hash && has_content(a, req, f->hash)};
    snapshots_add(a->snapshots, &wish, on_row, on_made, x);
}

void api_snapshot_add(struct http_req *req, void *app)
{
    static const char *const keys[] = {"name", "upload", "hash", "common", NULL};
    struct api *a = app;
    struct form f;
    struct err err = {0};
    const char *me = http_req_principal(req)->user;
    struct access_thing thing = {.kind = "snapshot", .name = "new", .owner = me};
    if (api_people_may(req, a, ACCESS_SNAPSHOT_ADD, "add", &thing, true) < 0)
        return;
    _cleanup_(json_unrefp) json_t *v = api_read_action(req, keys);
    if (!v)
        return;
    int r = read_form(v, &f, &err);
    if (r == 0)
        r = check_name(a, f.common ? NULL : me, &f, &err);
    if (r == 0 && !f.upload && !has_content(a, req, f.hash))
        r = err_set(&err, ERR_NOT_FOUND, "content '%.12s' is not here yet: upload it", f.hash);
    if (r < 0)
        api_fail(req, &err, api_barrier(a));
    else
        begin(req, a, &f, &err);
}

/* ---- removing ---- */

/* One job that is not over and uses it, and how many there are. */
static size_t count_users(const struct api *a, const struct snapshot *s, const struct live **ret)
{
    size_t n = 0;
    struct live *l;
    for (size_t pos = 0; (l = jobs_next(a->jobs, &pos));) {
        if (l->over || !l->extra.snapshots || !strstr(l->extra.snapshots, s->hash))
            continue;
        *ret = l;
        n++;
    }
    return n;
}

static int check_unused(const struct api *a,
                        const struct http_req *req,
                        const struct snapshot *s,
                        struct err *err)
{
    const struct live *l = NULL;
    size_t n = count_users(a, s, &l);
    struct api_eyes eyes = {a, http_req_principal(req)};
    if (s->holders)
        return err_set(err, ERR_CONFLICT, "'%s' is just being submitted", s->ref);
    if (!n)
        return 0;
    if (!api_sees_job(l->job->id, &eyes))
        return err_set(err, ERR_CONFLICT, "'%s' is used by %zu job%s that %s not over", s->ref, n,
                       n == 1 ? "" : "s", n == 1 ? "is" : "are");
    return err_set(err, ERR_CONFLICT, "'%s' is used by job '%s'%s: stop it first, or wait", s->ref,
                   l->job->id, n > 1 ? " and more" : "");
}

void api_snapshot_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct snapshot *s = find_named(req, a);
    if (!s)
        return;
    int r = may(a, req, ACCESS_SNAPSHOT_REMOVE, "remove", s, &err);
    if (r == 0 && store_is_failing(a->store))
        r = err_set(&err, ERR_STORE, "the store cannot write now: nothing can be changed");
    if (r == 0)
        r = check_unused(a, req, s, &err);
    if (r < 0) {
        api_fail(req, &err, api_barrier(a));
        return;
    }
    api_snapshot_note(a, s, http_req_principal(req)->user, true);
    snapshots_remove(a->snapshots, s);
    answer(req, a, s, 200);
}

/* ---- comparing ---- */

struct comparing {
    struct api *a;
    struct http_req *req; /* NULL: gone */
    char *root, *names[2], hashes[2][HASH_HEX];
    struct buf out;
    struct jout j;
    size_t counts[3], shown;
    struct err err;
};

static void comparing_free(struct comparing *c)
{
    free(c->root);
    free(c->names[0]);
    free(c->names[1]);
    buf_release(&c->out);
    free(c);
}

static void put_difference(const struct manifest_entry *x,
                           const struct manifest_entry *y,
                           void *arg)
{
    struct comparing *c = arg;
    static const char *const words[] = {"added", "removed", "changed"};
    size_t how = !x ? 0 : !y ? 1 : 2;
    c->counts[how]++;
    if (++c->shown > DIFF_SHOWN)
        return;
    jout_open(&c->j, NULL, '{');
    jout_str(&c->j, "path", x ? x->path : y->path);
    jout_str(&c->j, "how", words[how]);
    jout_close(&c->j, '}');
}

static void run_compare(void *arg)
{
    struct comparing *c = arg;
    struct manifest m[2] = {{0}, {0}};
    c->j = jout_begin(&c->out);
    if (snapshot_read(c->root, c->hashes[0], &m[0], &c->err) == 0 &&
        snapshot_read(c->root, c->hashes[1], &m[1], &c->err) == 0) {
        jout_open(&c->j, NULL, '{');
        jout_str(&c->j, "a", c->names[0]);
        jout_str(&c->j, "b", c->names[1]);
        jout_open(&c->j, "differences", '[');
        manifest_diff(&m[0], &m[1], put_difference, c);
        jout_close(&c->j, ']');
        jout_int(&c->j, "added", (int64_t)c->counts[0]);
        jout_int(&c->j, "removed", (int64_t)c->counts[1]);
        jout_int(&c->j, "changed", (int64_t)c->counts[2]);
        jout_bool(&c->j, "more", c->shown > DIFF_SHOWN);
        jout_close(&c->j, '}');
    }
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

void api_snapshot_diff(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    const struct snapshot *s = find_named(req, a), *other = NULL;
    const char *with = http_req_query(req, "with");
    if (!s)
        return;
    int r = with ? 0 : err_set(&err, ERR_BAD_REQUEST, "say with which: ?with=name@version");
    if (r == 0) {
        other = find(req, a, with, &err);
        r = other ? check_root(a, &err) : ERR_NOT_FOUND;
    }
    if (r < 0 || !other) {
        http_problem(req, err.code, &err, "with", NULL, NULL, api_barrier(a));
        return;
    }
    struct comparing *c = xcalloc(1, sizeof(*c));
    *c = (struct comparing){.a = a,
                            .req = req,
                            .root = xstrdup(a->settings->shared_root),
                            .names = {xstrdup(s->ref), xstrdup(other->ref)},
                            .out = BUF_INIT(LIST_MAX)};
    memcpy(c->hashes[0], s->hash, HASH_HEX);
    memcpy(c->hashes[1], other->hash, HASH_HEX);
    http_req_on_close(req, on_compare_gone, c);
    work_start(a->loop, run_compare, done_compare, c);
}
