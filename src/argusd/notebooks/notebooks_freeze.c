/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_freeze.c - POST /v1/notebooks/{name}:freeze; see notebooks_freeze.h.
 *
 * The notebook may run meanwhile: a file that pip writes right then makes it a conflict, and
 * nothing is left. Only its owner freezes it, since what comes of it is a snapshot of his. */
#include "argusd/notebooks/notebooks_freeze.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/content/snapshots_view.h"
#include "argusd/content/uploads.h"
#include "argusd/ground/work.h"
#include "argusd/notebooks/notebooks.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/snapshot.h"
#include "fsroot/archive/overlaypack.h"
#include "fsroot/content/unpack.h"
#include "fsroot/content/upload.h"

enum { FREEZE_STAMP = 14, FREEZE_BODY_MAX = 64 << 10 };

struct freezing {
    struct freezing *next; /* of api.freezings */
    struct api *a;
    struct http_req *req; /* NULL: gone */
    char *root, *user, *notebook, *ref;
    char upload[UPLOAD_ID_MAX]; /* passing: the sweep of a start leaves it alone */
    uint64_t most;              /* bytes to pack */
    struct overlaypack_made made;
    struct err err;
};

static void freezing_free(struct freezing *f)
{
    struct freezing **p = &f->a->freezings;
    while (*p != f)
        p = &(*p)->next;
    *p = f->next;
    free(f->root);
    free(f->user);
    free(f->notebook);
    free(f->ref);
    free(f);
}

static void freeze_on_gone(struct http_req *req, void *arg)
{
    struct freezing *f = arg;
    (void)req;
    f->req = NULL; /* it goes on: the snapshot is what was asked for */
}

/* ---- the end ---- */

static void freeze_reply(struct freezing *f, const struct snapshot *s)
{
    struct buf out = BUF_INIT(FREEZE_BODY_MAX);
    struct snapshots_page page;
    snapshots_fill(s, &page);
    char *text = field_to_text(&snapshots_page_table, &page, FIELD_SHOWN, FIELD_PAGE);
    buf_adds(&out, text);
    free(text);
    http_reply_json(f->req, 201, &out, api_barrier(f->a));
}

/* s NULL: err says why there is none. */
static void freeze_end(struct freezing *f, const struct snapshot *s, const struct err *err)
{
    if (f->req) {
        http_req_on_close(f->req, NULL, NULL);
        if (s)
            freeze_reply(f, s);
        else
            api_fail(f->req, err, api_barrier(f->a));
        f->req = NULL;
    }
    uploads_used(f->a->uploads, f->upload);
    freezing_free(f);
}

static void freeze_on_row(struct snapshot *s, void *arg)
{
    const struct freezing *f = arg;
    snapshots_note(f->a->events, s, f->user, false);
}

static void freeze_on_made(struct snapshot *s,
                           bool existed,
                           bool taken,
                           const struct err *err,
                           void *arg)
{
    (void)existed;
    (void)taken;
    freeze_end(arg, s, err);
}

/* ---- packing ---- */

static void freeze_run(void *arg)
{
    struct freezing *f = arg;
    const struct overlaypack pack = {.root = f->root,
                                     .user = f->user,
                                     .notebook = f->notebook,
                                     .upload = f->upload,
                                     .limits = {.bytes = f->most, .entries = MANIFEST_ENTRIES_MAX}};
    int r = overlaypack_write(&pack, &f->made, &f->err);
    if (r < 0 && !f->err.code)
        f->err.code = r; /* never without a sentence, in truth */
}

static void freeze_packed(void *arg)
{
    struct freezing *f = arg;
    if (f->err.code) {
        freeze_end(f, NULL, &f->err);
        return;
    }
    _cleanup_(freep) char *path = upload_path(f->root, f->upload);
    const struct snapshots_wish wish = {
        .user = f->user, .ref = f->ref, .actor = f->user, .path = path, .bytes = f->made.bytes};
    snapshots_add(f->a->snapshots, &wish, freeze_on_row, freeze_on_made, f);
}

/* What is listed has pip and compiled files too, which do not go in: a lower limit of argus.yaml is
 * held where the snapshot is unpacked. */
static uint64_t freeze_most(const struct api *a)
{
    uint64_t most = a->settings->snapshot_bytes;
    return most > unpack_default_limits.bytes ? most : unpack_default_limits.bytes;
}

static int freeze_start(struct http_req *req,
                        struct api *a,
                        const char *user,
                        const char *notebook,
                        const char *ref,
                        struct err *err)
{
    const struct upload_wish wish = {.user = user, .name = "packages", .passing = true};
    struct upload *u = NULL;
    int r = uploads_add(a->uploads, &wish, &u, err);
    if (r < 0 || !u)
        return r;
    struct freezing *f = xcalloc(1, sizeof(*f));
    *f = (struct freezing){.next = a->freezings,
                           .a = a,
                           .req = req,
                           .root = xstrdup(a->settings->shared_root),
                           .user = xstrdup(user),
                           .notebook = xstrdup(notebook),
                           .ref = xstrdup(ref),
                           .most = freeze_most(a)};
    text_copy(f->upload, u->id);
    a->freezings = f;
    http_req_on_close(req, freeze_on_gone, f);
    work_start_for(a->loop, f->user, freeze_run, freeze_packed, f);
    return 0;
}

/* ---- the request ---- */

/* "main-packages@20261130105151": yours. */
static char *freeze_make_ref(const char *notebook, usec_t now)
{
    char text[CLOCK_TEXT_MAX], stamp[FREEZE_STAMP + 1] = "";
    size_t n = 0;
    for (const char *p = clock_to_string(now, text); *p && n < FREEZE_STAMP; p++)
        if (isdigit((unsigned char)*p))
            stamp[n++] = *p;
    return xasprintf("%s-packages@%s", notebook, stamp);
}

static int freeze_check(const struct api *a,
                        const char *user,
                        const char *notebook,
                        const char *ref,
                        struct err *err)
{
    if (!notebooks_find(a->notebooks, user, notebook))
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "notebook"), MESSAGE_STR("name", notebook)));
    int r = snapshot_check_ref(ref, err);
    if (r < 0)
        return r;
    if (snapshots_find(a->snapshots, user, ref))
        return message_refuse(err, ERR_CONFLICT, "snapshot_other",
                              MESSAGE_ARGS(MESSAGE_STR("ref", ref)));
    for (const struct freezing *f = a->freezings; f; f = f->next)
        if (!strcmp(f->user, user))
            return message_refuse(err, ERR_CONFLICT, "freeze_under_way",
                                  MESSAGE_ARGS(MESSAGE_STR("name", f->notebook)));
    return cluster_check_root(a->cluster, err);
}

static const struct field freeze_form_rows[] = {OPT_TEXT("snapshot")};
static const struct field_table freeze_form = ACTION_FORM(freeze_form_rows);

static void notebook_freeze(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    const char *user = http_req_principal(req)->user, *notebook = http_req_param(req, "name");
    const struct access_thing thing = {.kind = ACCESS_KIND_SNAPSHOT, .name = "new", .owner = user};
    if (api_people_may(req, a, ACCESS_SNAPSHOT_ADD, "add", &thing, true) < 0)
        return;
    _cleanup_(json_unrefp) json_t *body = api_read_action(req, &freeze_form);
    if (!body)
        return;
    const char *asked = json_get_str(body, "snapshot", NULL);
    _cleanup_(freep) char *ref = asked ? xstrdup(asked) : freeze_make_ref(notebook, clock_wall());
    int r = freeze_check(a, user, notebook, ref, &err);
    if (r == 0)
        r = freeze_start(req, a, user, notebook, ref, &err);
    if (r < 0)
        api_fail(req, &err, api_reader_barrier(a));
}

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/notebooks/{name}:freeze",
     .least = HTTP_ROLE_USER,
     .handle = notebook_freeze,
     .max_body = FREEZE_BODY_MAX,
     .summary = "its packages, with their exact versions, as a snapshot of yours",
     .request_schema = "NotebookFreezeForm",
     .reply_schema = "Snapshot",
     .reply_status = 201},
};
static const struct http_schema schemas[] = {
    {.name = "NotebookFreezeForm", .table = &freeze_form, .is_form = true},
};
const struct api_part part_notebooks_freeze = {rows, array_len(rows), schemas, array_len(schemas)};
