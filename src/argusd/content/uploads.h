/* SPDX-License-Identifier: Apache-2.0 */
/* uploads.h - bytes that users send: begun, received piece by piece, and given to who asked.
 *
 * An upload is a row of the store and a directory on the shared root (fsroot/content/upload.h). The
 * row says how much of it is safe and keeps the running hash: nothing on the root is believed. It
 * belongs to one user. It goes on at its offset after any cut and after a restart of argusd, and is
 * forgotten, with its bytes, when nothing was sent for settings.uploads_keep. Who has use for a
 * complete one takes it, renames its bytes on a worker thread, and says that it is done. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"
#include "argusd/ground/turns.h"
#include "base/digest/hash.h"
#include "fsroot/content/upload.h"
#include "http/http.h"
#include "store/store.h"

enum {
    UPLOAD_ID_MAX = 32,
    UPLOADS_OF_USER_MAX = 100,
    UPLOADS_MAX = 10000,
    UPLOAD_NAME_MAX = 200,
    UPLOAD_CHUNK_BYTES = 64 << 20 /* what a client should send at once: synced by then */
};

enum upload_state { UPLOAD_OPEN, UPLOAD_COMPLETE, UPLOAD_FAILED };
const char *upload_state_to_string(enum upload_state s);

struct uploads;
struct receiving;

struct upload {
    char id[UPLOAD_ID_MAX];
    char *user, *name; /* name: of a file, for people */
    uint64_t bytes;
    char wanted[HASH_HEX]; /* as was said at the beginning; "" = nothing */
    enum upload_state state;
    char sha256[HASH_HEX]; /* of the first `offset` bytes, when it is known; else "" */
    char *why;             /* what went wrong last; NULL = nothing */
    usec_t created_at, touched_at;
    uint64_t offset;                 /* safe on the disk; as far as is known */
    bool is_known;                   /* the bytes were seen to be there in this life */
    struct upload_progress progress; /* of an open one: up to the last sync */
    char *running;                   /* progress.hash as the row has it */
    bool taken;
    bool passing;             /* of a request that uses it at once: it has no row */
    bool doomed;              /* to be removed when nobody uses it any more */
    int users;                /* worker calls that read it */
    struct receiving *coming; /* what comes in right now; NULL = nothing */
};

/* What is stored and shown of one. */
extern const struct field_table upload_table;

struct uploads_parts {
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    struct cluster *cluster; /* all borrowed */
};
struct uploads *uploads_new(const struct uploads_parts *parts);
/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define UPLOADS_ENTRY "upload"
void uploads_restore(struct uploads *us, const struct store_entry *entry);
void uploads_start(struct uploads *us);
/* Stops its clock; what waits for news of the root tries without. NULL is fine. */
void uploads_close(struct uploads *us);
void uploads_free(struct uploads *us); /* when the loop has run dry; NULL is fine */

/* What is known of the shared root has changed: bytes that came before its first check are written
 * now, or refused. */
void uploads_root_news(struct uploads *us);

/* ---- one upload; borrowed until the loop turns ---- */

struct upload_wish {
    const char *user, *name;
    uint64_t bytes;
    const char *sha256; /* NULL = not known yet */
    bool passing;       /* nobody else finds it, and it is taken from the beginning */
};
/* ERR_BAD_REQUEST, ERR_TOO_LARGE, ERR_BUSY, ERR_NO_SPACE, ERR_UNAVAILABLE. */
must_check int uploads_add(struct uploads *us,
                           const struct upload_wish *wish,
                           struct upload **ret,
                           struct err *err);
/* An upload whose size was not declared has at least `bytes` bytes now. The ceilings and errors
 * are those of uploads_add(). */
must_check int uploads_grow(struct uploads *us, const char *id, uint64_t bytes, struct err *err);
/* The upload `id` of the user (NULL: of any user); ERR_NOT_FOUND. */
must_check int uploads_find(const struct uploads *us,
                            const char *id,
                            const char *user,
                            struct upload **ret,
                            struct err *err);
/* In no order; NULL at the end. *pos begins at 0. user NULL = everybody's. */
struct upload *uploads_next(const struct uploads *us, const char *user, size_t *pos);
/* It and its bytes, at once or when what uses it has ended. */
void uploads_remove(struct uploads *us, struct upload *u);
usec_t uploads_expires_at(const struct uploads *us, const struct upload *u);

/* Its offset is read from the disk if it is not known. done: on the loop, once, maybe before this
 * returns; err NULL = fine. The upload may have gone meanwhile. */
typedef void (*uploads_f)(const struct err *err, void *arg);
void uploads_look(struct uploads *us, struct upload *u, uploads_f done, void *arg);

/* Read the body of req to the end of the upload, beginning at `at`, and answer it by answer(),
 * with err, or with NULL when all is on disk. u may have changed; it is there. */
typedef void (*uploads_answer_f)(struct http_req *req,
                                 struct uploads *us,
                                 struct upload *u,
                                 const struct err *err,
                                 void *arg);
void uploads_receive(struct uploads *us,
                     struct upload *u,
                     uint64_t at,
                     struct http_req *req,
                     uploads_answer_f answer,
                     void *arg);

/* ---- for who has use for one ---- */

struct upload_given {
    char *path; /* of the bytes: rename it away, on a worker thread */
    char *name;
    uint64_t bytes;
    char sha256[HASH_HEX];
};
void upload_given_release(struct upload_given *g);
/* A complete one of this user, which nobody else can take now. ERR_NOT_FOUND; ERR_CONFLICT: it is
 * not complete, or taken. Then exactly one of the two below, on the loop. */
must_check int uploads_take(struct uploads *us,
                            const char *id,
                            const char *user,
                            struct upload_given *ret,
                            struct err *err);
void uploads_give_back(struct uploads *us, const char *id); /* it was not used: it stays */
void uploads_used(struct uploads *us, const char *id);      /* its bytes are elsewhere: it goes */

/* ---- uploads_receive.c to uploads.c ---- */

uv_loop_t *uploads_loop(const struct uploads *us);
const char *uploads_root(const struct uploads *us);
/* ERR_UNAVAILABLE: it was looked at and cannot be used, or hangs. 0 too before the first look, for
 * which turns wait. */
must_check int uploads_ask_root(const struct uploads *us, struct err *err);
/* What access_check() is asked about, and what its events are about. Borrows from u. */
struct access_thing uploads_thing(const struct upload *u);
/* Memory and store; note: the event of it. */
void uploads_save(struct uploads *us, struct upload *u);
void uploads_note(struct uploads *us, const struct upload *u, const char *kind, const char *code);
void uploads_note_failure(struct uploads *us, const struct upload *u, const struct err *why);
/* Nothing uses it any more: if it is doomed, it goes. */
void uploads_let_go(struct uploads *us, struct upload *u);
/* A place among those who write to the shared root at once; start(arg) is called when there is.
 * Those of one user leave places to others. */
struct uploads_turn {
    struct turn turn;
    void (*start)(void *arg);
    void *arg;
};
void uploads_wait_turn(struct uploads *us, struct uploads_turn *t);
void uploads_end_turn(struct uploads *us, struct uploads_turn *t);
