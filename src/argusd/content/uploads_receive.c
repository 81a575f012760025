/* SPDX-License-Identifier: Apache-2.0 */
/* uploads_receive.c - bytes on their way from a peer to the shared root; see uploads.h.
 *
 * One piece at a time is on a worker thread: opened with the first, written, hashed, synced every
 * so many bytes and with the last. The file is the worker's while a piece is there, and nobody's
 * else. A peer that goes leaves what it sent. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/content/uploads.h"
#include "argusd/ground/work.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/content/upload.h"

static const usec_t STALLED = 5 * USEC_SEC;

struct receiving {
    struct uploads *us;
    struct upload *u;
    struct http_req *req; /* NULL: the peer is gone */
    uploads_answer_f answer;
    void *answer_arg;
    struct uploads_turn turn;
    bool working;    /* a piece is on a worker thread, or waits for its turn */
    struct buf rest; /* came with the end, while one was there */
    bool is_cut;
    usec_t moved_at; /* monotonic: the last piece came */

    /* of the worker while one is there */
    char *root, *id;
    struct upload_progress progress;
    uint64_t at, bytes;
    struct upload_file *file;
    struct buf piece;
    bool is_last;
    uint64_t offset, synced;
    char sha256[HASH_HEX];
    struct err err;
};

/* ---- on the worker thread ---- */

static int open_at(struct receiving *x)
{
    int r = upload_file_open(x->root, x->id, &x->progress, UPLOAD_FILE_NEW, &x->file, &x->err);
    if (r == 0 && upload_file_offset(x->file) != x->at)
        r = message_refuse(&x->err, ERR_CONFLICT, "upload_goes_on",
                           MESSAGE_ARGS(MESSAGE_NUM("bytes", upload_file_offset(x->file)),
                                        MESSAGE_NUM("at", x->at)));
    return r;
}

static int add_piece(struct receiving *x)
{
    uint64_t left = x->bytes - upload_file_offset(x->file);
    if (x->piece.len > left)
        return message_refuse(&x->err, ERR_TOO_LARGE, "upload_more_bytes",
                              MESSAGE_ARGS(MESSAGE_NUM("bytes", x->bytes)));
    return upload_file_add(x->file, buf_str(&x->piece), x->piece.len, &x->err);
}

static void uploads_receive_run(void *arg)
{
    struct receiving *x = arg;
    struct err also = {0};
    if (x->err.code) /* the root cannot be used: uploads_receive_start() */
        return;
    int r = x->file ? 0 : open_at(x);
    if (r == 0)
        r = add_piece(x);
    if (!x->file)
        return;
    uint64_t unsynced = upload_file_offset(x->file) - upload_file_synced(x->file);
    bool must_sync = unsynced && (r < 0 || x->is_last || unsynced >= UPLOAD_CHUNK_BYTES);
    if (must_sync && upload_file_sync(x->file, &also) < 0 && r == 0)
        r = (x->err = also).code;
    x->offset = upload_file_offset(x->file);
    x->synced = upload_file_synced(x->file);
    upload_file_progress(x->file, &x->progress);
    if (r < 0 || x->is_last) {
        upload_file_hash(x->file, x->sha256);
        upload_file_close(x->file);
        x->file = NULL;
    }
}

/* ---- on the loop ---- */

static void receiving_free(struct receiving *x)
{
    buf_release(&x->piece);
    buf_release(&x->rest);
    free(x->root);
    free(x->id);
    free(x);
}

/* All bytes are there: are they the ones that were meant. */
static void uploads_receive_complete(struct receiving *x)
{
    struct upload *u = x->u;
    bool differs = *u->wanted && strcmp(u->wanted, u->sha256) != 0;
    u->state = differs ? UPLOAD_FAILED : UPLOAD_COMPLETE;
    if (!differs) {
        set_str(&u->why, NULL);
        uploads_note(x->us, u, "upload_complete", "upload_all_there");
        return;
    }
    message_refuse(
        &x->err, ERR_REFUSED, "upload_bytes_differ",
        MESSAGE_ARGS(MESSAGE_STR("sha256", u->sha256), MESSAGE_STR("wanted", u->wanted)));
    uploads_note_failure(x->us, u, &x->err);
}

static void uploads_receive_keep(struct upload *u, const struct err *why)
{
    free(u->why);
    u->why = message_keep(why);
}

static void uploads_receive_finish(struct receiving *x)
{
    struct uploads *us = x->us;
    struct upload *u = x->u;
    u->coming = NULL;
    u->touched_at = clock_wall();
    bool was_written = *x->sha256 && x->synced == x->offset;
    u->is_known = was_written;
    if (was_written)
        memcpy(u->sha256, x->sha256, sizeof(u->sha256));
    if (was_written && x->err.code == 0 && u->offset == u->bytes)
        uploads_receive_complete(x);
    if (x->err.code && x->err.code != ERR_CONFLICT)
        uploads_receive_keep(u, &x->err);
    if (u->doomed && x->err.code == 0)
        message_refuse(&x->err, ERR_NOT_FOUND, "upload_removed",
                       MESSAGE_ARGS(MESSAGE_STR("id", u->id)));
    if (!u->doomed)
        uploads_save(us, u);
    if (x->req)
        x->answer(x->req, us, u, x->err.code ? &x->err : NULL, x->answer_arg);
    receiving_free(x);
    uploads_let_go(us, u);
}

static void uploads_receive_start(void *arg);

static void write_piece(struct receiving *x, struct buf *taken, bool is_last)
{
    x->working = true;
    buf_release(&x->piece);
    x->piece = *taken;
    *taken = BUF_INIT(0);
    x->is_last = is_last;
    x->turn = (struct uploads_turn){
        .turn = {.user = x->u->user}, .start = uploads_receive_start, .arg = x};
    uploads_wait_turn(x->us, &x->turn);
}

/* The row follows each sync: what comes after it would be sent again after a kill. */
static void uploads_receive_progress(struct receiving *x)
{
    struct upload *u = x->u;
    bool is_news = u->progress.synced != x->progress.synced;
    u->progress = x->progress;
    u->offset = x->synced;
    if (is_news && !x->is_last && !u->doomed)
        uploads_save(x->us, u);
}

static void uploads_receive_done(void *arg)
{
    struct receiving *x = arg;
    x->working = false;
    uploads_end_turn(x->us, &x->turn);
    uploads_receive_progress(x);
    buf_release(&x->piece);
    if (x->u->doomed && !x->is_last && x->err.code == 0)
        message_refuse(&x->err, ERR_NOT_FOUND, "upload_removed",
                       MESSAGE_ARGS(MESSAGE_STR("id", x->u->id)));
    if (x->err.code || x->is_last) {
        upload_file_close(x->file); /* of a doomed one: nothing of it is kept */
        x->file = NULL;
        uploads_receive_finish(x);
    } else if (x->is_cut) {
        write_piece(x, &x->rest, true);
    } else {
        http_body_next(x->req);
    }
}

static void uploads_receive_start(void *arg)
{
    struct receiving *x = arg;
    if (!x->file) /* else the worker tells what its next write meets */
        (void)!uploads_ask_root(x->us, &x->err);
    work_start(uploads_loop(x->us), uploads_receive_run, uploads_receive_done, x);
}

static void uploads_receive_on_gone(struct http_req *req, void *arg)
{
    struct receiving *x = arg;
    (void)req;
    x->req = NULL;
}

static void uploads_receive_on_piece(struct http_req *req,
                                     struct buf *piece,
                                     enum http_body_how how,
                                     void *arg)
{
    struct receiving *x = arg;
    x->moved_at = clock_mono();
    if (how == HTTP_BODY_WHOLE)
        http_req_on_close(req, uploads_receive_on_gone, x);
    if (how == HTTP_BODY_CUT) {
        x->req = NULL;
        x->is_cut = true;
    }
    if (!x->working) {
        write_piece(x, piece, how != HTTP_BODY_MORE);
        return;
    }
    x->rest = *piece; /* only a cut comes while one is there */
    *piece = BUF_INIT(0);
}

/* A peer whose network is gone is not seen to go: who comes again for the same upload is it. */
static void cut_stalled(struct receiving *x)
{
    if (x->req && !x->working && clock_mono() - x->moved_at > STALLED)
        http_req_cut(x->req);
}

/* What can be said before the body. */
static int uploads_receive_check(const struct upload *u,
                                 uint64_t at,
                                 const struct http_req *req,
                                 struct err *err)
{
    int64_t n = http_req_body_length(req);
    if (u->state == UPLOAD_COMPLETE || u->taken)
        return message_refuse(err, ERR_CONFLICT, "upload_complete",
                              MESSAGE_ARGS(MESSAGE_STR("id", u->id)));
    if (u->state == UPLOAD_FAILED)
        return message_refuse(
            err, ERR_CONFLICT, "upload_failed",
            MESSAGE_ARGS(MESSAGE_STR("id", u->id), MESSAGE_KEPT("why", str_or(u->why, ""))));
    if (u->coming)
        cut_stalled(u->coming);
    if (u->coming || u->users)
        return message_refuse(err, ERR_BUSY, "upload_written",
                              MESSAGE_ARGS(MESSAGE_STR("id", u->id)));
    if (u->is_known && u->offset != at)
        return message_refuse(err, ERR_CONFLICT, "upload_goes_on",
                              MESSAGE_ARGS(MESSAGE_NUM("bytes", u->offset), MESSAGE_NUM("at", at)));
    if (at > u->bytes || (n > 0 && (uint64_t)n > u->bytes - at))
        return message_refuse(err, ERR_TOO_LARGE, "upload_beyond",
                              MESSAGE_ARGS(MESSAGE_NUM("bytes", u->bytes)));
    return 0;
}

void uploads_receive(struct uploads *us,
                     struct upload *u,
                     uint64_t at,
                     struct http_req *req,
                     uploads_answer_f answer,
                     void *arg)
{
    struct err err = {0};
    if (uploads_receive_check(u, at, req, &err) < 0) {
        answer(req, us, u, &err, arg);
        return;
    }
    struct receiving *x = xcalloc(1, sizeof(*x));
    *x = (struct receiving){.us = us,
                            .u = u,
                            .req = req,
                            .answer = answer,
                            .answer_arg = arg,
                            .root = xstrdup(uploads_root(us)),
                            .id = xstrdup(u->id),
                            .progress = u->progress,
                            .at = at,
                            .bytes = u->bytes,
                            .moved_at = clock_mono(),
                            .offset = u->offset,
                            .synced = u->offset};
    if (!http_body_read(req, uploads_receive_on_piece, x)) {
        receiving_free(x);
        return;
    }
    u->coming = x;
    u->touched_at = clock_wall();
}

/* ---- how far is it ---- */

struct look {
    struct uploads *us;
    struct upload *u;
    uploads_f done;
    void *arg;
    char *root, *id;
    struct upload_progress progress;
    char sha256[HASH_HEX];
    struct err err;
};

static void uploads_receive_run_look(void *arg)
{
    struct look *k = arg;
    struct upload_file *f = NULL;
    int r = upload_file_open(k->root, k->id, &k->progress, 0, &f, &k->err);
    if (r == ERR_NOT_FOUND) {
        k->err = (struct err){0}; /* nothing came yet, or it is lost: it begins anew */
        upload_progress_init(&k->progress);
        (void)hash_sha256_hex("", 0, k->sha256);
        return;
    }
    if (r == 0) {
        upload_file_progress(f, &k->progress);
        upload_file_hash(f, k->sha256);
    }
    upload_file_close(f);
}

static void uploads_receive_done_look(void *arg)
{
    struct look *k = arg;
    struct upload *u = k->u;
    u->users--;
    if (k->err.code == 0) {
        u->is_known = true;
        u->progress = k->progress;
        u->offset = k->progress.synced;
        memcpy(u->sha256, k->sha256, sizeof(u->sha256));
    }
    k->done(k->err.code ? &k->err : NULL, k->arg);
    uploads_let_go(k->us, u);
    free(k->root);
    free(k->id);
    free(k);
}

void uploads_look(struct uploads *us, struct upload *u, uploads_f done_f, void *arg)
{
    if (u->is_known || u->coming) {
        done_f(NULL, arg);
        return;
    }
    struct look *k = xcalloc(1, sizeof(*k));
    *k = (struct look){.us = us,
                       .u = u,
                       .done = done_f,
                       .arg = arg,
                       .root = xstrdup(uploads_root(us)),
                       .id = xstrdup(u->id),
                       .progress = u->progress};
    u->users++;
    work_start_for(uploads_loop(us), u->user, uploads_receive_run_look, uploads_receive_done_look,
                   k);
}
