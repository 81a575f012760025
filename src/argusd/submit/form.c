/* SPDX-License-Identifier: Apache-2.0 */
/* form.c - see form.h. A piece is taken apart on the loop, and what it has of the archive is
 * written on a worker before the next one is asked for. Bytes are not synced: whoever needs them
 * later unpacks them, and after a crash nobody does. */
#include "argusd/submit/form.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/doc/doc.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/content/upload.h"
#include "http/multipart.h"

enum { CODE_MAX = 4 << 20 }; /* of one piece: larger than any */

enum part { PART_NONE, PART_SPEC, PART_CODE };

struct reading {
    struct http_req *req; /* NULL: the peer is gone */
    struct form *f;
    form_f done;
    void *arg;
    struct multipart *m;
    enum part part;
    bool has_spec, is_last;
    uint64_t code_bytes; /* that came of the archive */
    struct uploads_turn turn;
    bool working;

    /* of the worker while one is there */
    char *root, *user;
    struct upload_file *file;
    struct buf code;
    struct err err;
};

void form_free(struct form *f)
{
    if (!f)
        return;
    if (*f->upload)
        uploads_used(f->us, f->upload);
    buf_release(&f->spec);
    free(f->path);
    free(f->file);
    free(f);
}

static void reading_free(struct reading *x)
{
    upload_file_close(x->file);
    form_free(x->f);
    multipart_free(x->m);
    buf_release(&x->code);
    free(x->root);
    free(x->user);
    free(x);
}

static void form_fail(struct reading *x, const struct err *err)
{
    x->done(x->req, NULL, err, x->arg);
    reading_free(x);
}

static void form_drop(struct reading *x)
{
    x->req = NULL;
    form_fail(x, &x->err);
}

static void form_finish(struct reading *x)
{
    struct form *f = x->f;
    x->f = NULL;
    if (x->file)
        upload_file_hash(x->file, f->sha256);
    f->bytes = x->code_bytes;
    x->done(x->req, f, NULL, x->arg);
    reading_free(x);
}

/* ---- the archive, on a worker ---- */

static void form_run(void *arg)
{
    struct reading *x = arg;
    struct upload_progress none;
    upload_progress_init(&none);
    int r = x->file ? 0
                    : upload_file_open(x->root, x->f->upload, &none, UPLOAD_FILE_NEW, &x->file,
                                       &x->err);
    if (r == 0 && x->code.len &&
        upload_file_add(x->file, buf_str(&x->code), x->code.len, &x->err) < 0 && !x->err.code)
        x->err.code = ERR_INTERNAL; /* never without a sentence, in truth */
    buf_reset(&x->code);
}

static void form_go_on(struct reading *x)
{
    if (!x->req)
        form_drop(x);
    else if (x->err.code)
        form_fail(x, &x->err);
    else if (x->is_last)
        form_finish(x);
    else
        http_body_next(x->req);
}

static void written(void *arg)
{
    struct reading *x = arg;
    x->working = false;
    uploads_end_turn(x->f->us, &x->turn);
    if (x->is_last && x->req)
        http_req_on_close(x->req, NULL, NULL);
    form_go_on(x);
}

static void form_start(void *arg)
{
    struct reading *x = arg;
    work_start(uploads_loop(x->f->us), form_run, written, x);
}

static void form_on_gone(struct http_req *req, void *arg)
{
    struct reading *x = arg;
    (void)req;
    x->req = NULL;
}

static void write_code(struct reading *x)
{
    x->working = true;
    if (x->is_last)
        http_req_on_close(x->req, form_on_gone, x);
    x->turn = (struct uploads_turn){.turn = {.user = x->user}, .start = form_start, .arg = x};
    uploads_wait_turn(x->f->us, &x->turn);
}

/* ---- the parts ---- */

static int begin_spec(struct reading *x, struct err *err)
{
    if (x->has_spec)
        return message_refuse(err, ERR_BAD_REQUEST, "form_part_twice",
                              MESSAGE_ARGS(MESSAGE_STR("part", "spec")));
    x->has_spec = true;
    x->part = PART_SPEC;
    return 0;
}

/* No more of it can come than the whole body has; where that is not said, it grows. */
static int begin_code(struct reading *x, const char *file, struct err *err)
{
    struct form *f = x->f;
    struct upload *u = NULL;
    int64_t bytes = http_req_body_length(x->req);
    if (*f->upload)
        return message_refuse(err, ERR_BAD_REQUEST, "form_part_twice",
                              MESSAGE_ARGS(MESSAGE_STR("part", "code")));
    struct upload_wish wish = {.user = http_req_principal(x->req)->user,
                               .name = "code",
                               .bytes = bytes < 0 ? 0 : (uint64_t)bytes,
                               .passing = true};
    int r = uploads_add(f->us, &wish, &u, err);
    if (r < 0 || !u)
        return r;
    text_copy(f->upload, u->id);
    f->path = upload_path(uploads_root(f->us), u->id);
    f->file = xstrdup(file);
    x->part = PART_CODE;
    return 0;
}

static int form_on_part(const char *name, const char *file, void *arg, struct err *err)
{
    struct reading *x = arg;
    if (!strcmp(name, "spec"))
        return begin_spec(x, err);
    if (!strcmp(name, "code"))
        return begin_code(x, file, err);
    return message_refuse(err, ERR_BAD_REQUEST, "form_part_unknown",
                          MESSAGE_ARGS(MESSAGE_STR("part", name)));
}

static int add_code(struct reading *x, const char *p, size_t n, struct err *err)
{
    x->code_bytes += n;
    int r = uploads_grow(x->f->us, x->f->upload, x->code_bytes, err);
    if (r == 0 && buf_add(&x->code, p, n) < 0)
        r = message_refuse(err, ERR_INTERNAL, "form_piece_large", MESSAGE_NO_ARGS);
    return r;
}

static int on_data(const char *p, size_t n, void *arg, struct err *err)
{
    struct reading *x = arg;
    if (x->part == PART_CODE)
        return add_code(x, p, n, err);
    return buf_add(&x->f->spec, p, n) < 0
               ? message_refuse(err, ERR_TOO_LARGE, "form_spec_large",
                                MESSAGE_ARGS(MESSAGE_NUM("most", (int)DOC_MAX_BYTES)))
               : 0;
}

static int take_apart(struct reading *x, const struct buf *piece, struct err *err)
{
    int r = multipart_add(x->m, buf_str(piece), piece->len, err);
    if (r == 0 && x->is_last)
        r = multipart_end(x->m, err);
    if (r == 0 && x->is_last && !x->has_spec)
        r = message_refuse(err, ERR_BAD_REQUEST, "form_no_spec", MESSAGE_NO_ARGS);
    return r;
}

static void form_on_piece(struct http_req *req,
                          struct buf *piece,
                          enum http_body_how how,
                          void *arg)
{
    struct reading *x = arg;
    (void)req;
    if (how == HTTP_BODY_CUT) {
        x->req = NULL;
        if (!x->working)
            form_drop(x);
        return;
    }
    x->is_last = how == HTTP_BODY_WHOLE;
    if (take_apart(x, piece, &x->err) < 0)
        form_fail(x, &x->err);
    else if (x->code.len || (x->is_last && *x->f->upload))
        write_code(x);
    else
        form_go_on(x);
}

void form_receive(struct uploads *us, struct http_req *req, form_f done, void *arg)
{
    struct err err = {0};
    struct reading *x = xcalloc(1, sizeof(*x));
    *x = (struct reading){.req = req,
                          .f = xcalloc(1, sizeof(*x->f)),
                          .done = done,
                          .arg = arg,
                          .root = xstrdup(uploads_root(us)),
                          .user = xstrdup(http_req_principal(req)->user),
                          .code = BUF_INIT(CODE_MAX)};
    x->f->us = us;
    x->f->spec = BUF_INIT(DOC_MAX_BYTES);
    struct multipart_to to = {.part = form_on_part, .data = on_data, .arg = x};
    if (multipart_new(str_or(http_req_header(req, "Content-Type"), ""), &to, &x->m, &err) < 0)
        form_fail(x, &err);
    else if (!http_body_read(req, form_on_piece, x))
        form_drop(x);
}
