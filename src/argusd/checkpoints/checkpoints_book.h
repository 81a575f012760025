/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_book.h - what the files of the catalogue share: what is kept of one job, its row in
 * the store, its passes through the worker pool, what is told of them. */
#pragma once
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/userlines.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/metric/ckpt.h"

enum {
    PASSES_MAX = 3, /* at once: a slow root must not take all workers */
    PASSES_OF_USER_MAX = 2,
    PINNED_MAX = 64, /* of a job, by hand */
};

struct checkpoints_ask {
    struct checkpoints_ask *next;
    struct book *b;
    bool dry_run, began;
    char *actor;
    checkpoints_f done;
    void *arg;
};

struct checkpoints {
    struct checkpoints_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct book *first;
    struct checkpoints_use *uses;
    struct userlines lines; /* passes that wait or go on */
    bool closing, reading;
};

struct book {
    struct book *next;
    struct checkpoints *cs;
    char *id, *project, *user;
    int64_t seq; /* of the job */
    struct ckpt_list list;
    struct ckpt_policy policy;
    char *metric;        /* of keep_best; NULL: none */
    char *eval;          /* evalspec_template() of its spec; NULL: no checkpoint is judged */
    bool eval_is_secret; /* its spec has secrets, so it is not written down */
    bool has_spec;       /* what follows from its spec was read in this life */
    int k;               /* the attempt that writes */

    struct userlines_place place; /* its pass waits, or goes on: it is with a worker now and then */
    bool wanted;                  /* a pass is owed that has not begun */
    bool followed; /* an attempt runs, or did when argusd ended: a last look is owed */
    bool failing, room_told, quota_told, pin_told, trouble_told;
    bool owes_look; /* the last one failed, or could not put back what is pinned */
    bool owes_end;  /* an attempt ended, and no look that worked began since then: stored */
    bool has_pins;  /* or may have, from before a restart */
    usec_t seen_at, looked_at, walked_at; /* monotonic */
    int64_t step;                         /* of the training when it was looked at */
    int64_t going;                        /* step that is being removed now; 0: none */
    int64_t pinned[PINNED_MAX];           /* steps that people pinned; ckpt.pinned follows */
    size_t n_pinned;
    uint64_t values_seen; /* see ckpt_find_values() */
    char *stored;         /* the row's text; NULL: there is none */
    struct checkpoints_ask *asks;
};

/* ---- checkpoints_book.c: the row ---- */

void book_release(struct book *b); /* what it owns but the asks */
/* The book as the text of its row; NULL when there is nothing to keep. A long list keeps its
 * newest entries. */
char *book_text(const struct book *b);
/* Reads the text of a row into the book; an entry that cannot be read is left out. */
void book_read(struct book *b, const char *text);
/* The first of its list that is in the row: a long list keeps its newest ones there. */
size_t book_first_kept(const struct book *b);
/* Writes the book to its row when the row differs from it. */
void book_keep(struct book *b);

/* ---- checkpoints_use.c: who needs it ---- */

/* By hand: checkpoints_pin(). Not the hard links that has_pins is about. */
bool book_is_pinned(const struct book *b, int64_t step);
/* The list is another one: what was pinned is so there. is_seen: it is what a look has seen, so
 * that pins of what is there no more go. */
void book_mark_pinned(struct book *b, bool is_seen);

/* May this user see the job whose book it is? */
bool book_is_seen_by(const struct book *b, const char *user);
/* Is it pinned, or does another job that is not over, a submit under way, or a model of the
 * registry that lies there name it? All specs are searched; only what those may see who name it
 * counts. */
bool book_is_used(const struct book *b, int64_t step);
/* The next data set or model of the registry that stays where it was, so that it may lie among the
 * checkpoints of a job; NULL: no more. *kind and *pos begin at 0. */
struct registry_entry;
const struct registry_entry *checkpoints_next_in_place(const struct checkpoints *cs,
                                                       int *kind,
                                                       size_t *pos);
/* Is its job named at all? One search for all of its checkpoints. */
bool book_is_named(const struct book *b);

/* ---- checkpoints_users.c ---- */

/* Fills in who needs each of the book's that are shown, and that it is held, see
 * checkpoints_show_used(). */
void book_find_users(const struct book *b,
                     const struct http_principal *p,
                     struct checkpoints_shown *s);

/* ---- checkpoints_pass.c ---- */

/* A pass: it looks, plans and removes, and its asks of one kind are answered at its end. It waits
 * in its user's line; one that goes on already is followed by another one. */
void book_want_pass(struct book *b);
/* Those whose turn it is, as many as may go on at once. */
void checkpoints_start_wanted(struct checkpoints *cs);

/* ---- checkpoints_news.c ---- */

void book_tell_one(const struct book *b, const struct ckpt *c);
/* What was found and is not in the list yet. */
void book_tell_found(const struct book *b, const struct ckpt_list *found);
/* p->plan: those that went. */
void book_tell_removed(const struct book *b,
                       const char *actor,
                       const char *steps,
                       int64_t last,
                       uint64_t bytes);
/* Somebody pinned it, or took that back. */
void book_tell_pinned(const struct book *b, const struct ckpt *c, const char *actor);
/* What became of the job that judges it. is_full: not all that it told is kept. why: it was
 * refused; else NULL. */
void book_tell_eval(const struct book *b,
                    const struct ckpt *c,
                    bool is_full,
                    const struct err *why);
/* What the next save takes, what is free for it, what is removed for it. */
struct book_room {
    uint64_t next;
    uint64_t lacks; /* 0: there is room */
    uint64_t goes;
};
void book_tell_room(struct book *b, const struct book_room *r, uint64_t free_bytes);
/* Over the quota of its project or user? Said once. */
bool book_is_over_quota(struct book *b);
