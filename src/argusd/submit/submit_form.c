/* SPDX-License-Identifier: Apache-2.0 */
/* submit_form.c - POST /v1/jobs as a form: the archive becomes a snapshot, then all is as ever.
 *
 *   form (form.h) -> its spec is read once, for what is wrong with it -> the archive is unpacked
 *     -> the spec names the snapshot -> submit_named()
 *
 * The snapshot is held by the submit and goes with it, unless it became a job's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/content/snapshots.h"
#include "argusd/jobs/jobs_rules.h"
#include "argusd/submit/form.h"
#include "argusd/submit/submit.h"
#include "argusd/submit/submit_answer.h"
#include "argusd/submit/submitted.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/respec.h"
#include "core/spec/snapshot.h"

/* What the spec is looked at with before the archive was: a name, as good as the one to come. */
#define PLACEHOLDER "code@0"

struct formed {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    struct form *f;
    const char *key; /* of the spec: what the archive is */
    char *asked;
};

static void formed_free(struct formed *x)
{
    form_free(x->f);
    free(x->asked);
    free(x);
}

static void submit_form_refuse(struct formed *x, const struct err *err, const char *field)
{
    http_problem(x->req, err->code, err, field, NULL, 0);
    formed_free(x);
}

/* ---- what the archive is ---- */

static const char *scalar_of(const struct node *root, const char *key)
{
    const struct node *n = root ? node_find(root, key) : NULL;
    return n && !node_is_null(n) ? str_or(n->text, "") : NULL;
}

/* The code, if the spec says so, else the working_dir. *ret_open: nothing stands there. */
static int choose_key(struct formed *x, bool *ret_open, struct err *err)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    if (doc_parse(buf_str(&x->f->spec), x->f->spec.len, false, &d, &ps) < 0)
        d = NULL; /* whoever reads it says why */
    const struct node *root = d ? doc_root(d) : NULL;
    const char *code = scalar_of(root, "code"), *dir = scalar_of(root, "working_dir");
    int r = 0;
    x->key = str_eq(code, ".") ? "code" : "working_dir";
    *ret_open = !str_eq(code, ".") && !dir;
    if (!str_eq(code, ".") && dir && strcmp(dir, ".") != 0)
        r = message_refuse(err, ERR_BAD_SPEC, "archive_and_dir",
                           MESSAGE_ARGS(MESSAGE_STR("dir", dir)));
    else if (str_eq(code, ".") && str_eq(dir, "."))
        r = message_refuse(err, ERR_BAD_SPEC, "archive_both", MESSAGE_NO_ARGS);
    doc_free(d);
    problems_release(&ps);
    return r;
}

/* The spec with the name in its place; yours. NULL: err says why not. */
static char *named(const struct formed *x, const char *ref, struct err *err)
{
    _cleanup_(json_unrefp) json_t *patch = json_pack("{s:s}", x->key, ref);
    _cleanup_(buf_release) struct buf changes = BUF_INIT(RESPEC_CHANGES_MAX);
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    struct respec how = {.patch = patch, .keeps_id = true};
    int r = respec_text(buf_str(&x->f->spec), &how, &out, &changes, err);
    if (r >= 0 && (out.failed || changes.failed))
        r = message_refuse(err, ERR_TOO_LARGE, "spec_too_large", MESSAGE_NO_ARGS);
    char *text = r < 0 ? NULL : buf_take(&out);
    buf_release(&out);
    return text;
}

/* False: it was answered. */
static bool is_readable(struct formed *x, const char *text)
{
    struct access_who who;
    struct spec spec = {0};
    struct problems ps = {0};
    _cleanup_(freep) char *made = NULL;
    people_who(x->a->people, http_req_principal(x->req), &who);
    struct submitted in = {.settings = x->a->settings,
                           .presets = x->a->presets,
                           .who = &who,
                           .text = text,
                           .len = strlen(text),
                           .smoke = http_req_query_bool(x->req, "smoke", false)};
    bool ok = submitted_read(&in, &spec, &made, &ps) == 0;
    if (!ok)
        api_answer_problems(x->req, &ps);
    spec_release(&spec);
    problems_release(&ps);
    return ok;
}

/* False: it was answered. A spec that has a place for the archive is looked at as it is, so that
 * what is told has its lines. */
static bool submit_form_check_spec(struct formed *x)
{
    bool is_open = false;
    struct err err = {0};
    if (choose_key(x, &is_open, &err) < 0) {
        http_problem(x->req, err.code, &err, "working_dir", NULL, 0);
        return false;
    }
    _cleanup_(freep) char *text = is_open ? NULL : named(x, PLACEHOLDER, &err);
    return is_readable(x, str_or(text, buf_str(&x->f->spec)));
}

/* ---- the snapshot ---- */

static void submit_form_on_gone(struct http_req *req, void *arg)
{
    struct formed *x = arg;
    (void)req;
    x->req = NULL; /* freed when the archive is unpacked */
}

static void give(struct formed *x, struct snapshot *s)
{
    struct err err = {0};
    char *text = s ? named(x, s->ref, &err) : xstrdup(buf_str(&x->f->spec));
    if (!text) {
        err.code = ERR_BAD_SPEC;
        snapshots_let_go(x->a->snapshots, s);
        submit_form_refuse(x, &err, NULL);
        return;
    }
    struct submit_named what = {.text = text, .asked = x->asked, .held = s};
    x->asked = NULL;
    struct http_req *req = x->req;
    struct api *a = x->a;
    formed_free(x);
    submit_named(req, a, &what);
}

static void submit_form_on_made(struct snapshot *s,
                                bool existed,
                                bool taken,
                                const struct err *err,
                                void *arg)
{
    struct formed *x = arg;
    (void)existed, (void)taken;
    if (x->req)
        http_req_on_close(x->req, NULL, NULL);
    if (!x->req) {
        if (s)
            snapshots_let_go(x->a->snapshots, s);
        formed_free(x);
    } else if (!s) {
        submit_form_refuse(x, err, "code");
    } else {
        give(x, s);
    }
}

/* "code.tar.gz" is code. */
static void derive_name(const char *file, char ret[static SNAPSHOT_DERIVED_MAX + 1])
{
    static const char *const ends[] = {".zip", ".tgz", ".gz", ".bz2",   ".xz",
                                       ".zst", ".tar", ".7z", ".bundle"};
    _cleanup_(freep) char *name = xstrdup(str_or(file, "code"));
    for (size_t i = 0; i < array_len(ends); i++)
        if (str_ends(name, ends[i]) && strlen(name) > strlen(ends[i]))
            name[strlen(name) - strlen(ends[i])] = 0;
    (void)snapshot_derive_name(name, ret); /* is ret */
}

static void unpack(struct formed *x)
{
    char name[SNAPSHOT_DERIVED_MAX + 1];
    const char *me = http_req_principal(x->req)->user;
    derive_name(x->f->file, name);
    struct snapshots_wish wish = {.user = me,
                                  .ref = name,
                                  .actor = me,
                                  .path = x->f->path,
                                  .bytes = x->f->bytes,
                                  .passing = true};
    http_req_on_close(x->req, submit_form_on_gone, x);
    snapshots_add(x->a->snapshots, &wish, NULL, submit_form_on_made, x);
}

/* ---- the form ---- */

/* All that came is here. */
static void submit_form_go_on(struct formed *x)
{
    const struct form *f = x->f;
    x->asked = xasprintf("form with %s\n%s", f->sha256, buf_str(&f->spec));
    if (submit_was_here(x->req, x->a, x->asked) || (*f->upload && !submit_form_check_spec(x)))
        formed_free(x);
    else if (*f->upload)
        unpack(x);
    else
        give(x, NULL);
}

static void on_form(struct http_req *req, struct form *f, const struct err *err, void *arg)
{
    struct formed *x = arg;
    x->req = req;
    x->f = f;
    if (!req)
        formed_free(x);
    else if (err)
        submit_form_refuse(x, err, NULL);
    else
        submit_form_go_on(x);
}

void submit_form(struct http_req *req, struct api *a)
{
    struct err err = {0};
    const char *me = http_req_principal(req)->user;
    struct access_thing thing = {.kind = ACCESS_KIND_SNAPSHOT, .name = "new", .owner = me};
    if (api_people_may(req, a, ACCESS_SNAPSHOT_ADD, "add", &thing, true) < 0)
        return;
    if (jobs_check_room(a->jobs, a->store, a->cluster, a->settings, &err) < 0 ||
        cluster_check_root(a->cluster, &err) < 0) {
        api_fail(req, &err, 0);
        return;
    }
    struct formed *x = xcalloc(1, sizeof(*x));
    x->a = a;
    form_receive(a->uploads, req, on_form, x);
}
