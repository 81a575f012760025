/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.h - the registry of snapshots: which name is which content, and whose.
 *
 * In memory, behind it entries of the store; the bytes are fsroot/content/snapshot.h's, on worker
 * threads. Content comes first, then the row, and when that is on disk the link of its name;
 * removing goes the other way. A start makes again what a kill cut off. The quota of bytes
 * (storage.h) is looked at before they are written, which ends where it does, and again before the
 * row is made. */
#pragma once
#include <uv.h>

#include "argusd/content/storage.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "base/digest/hash.h"
#include "base/field.h"
#include "base/json.h"
#include "store/store.h"

struct snapshots;

struct snapshot {
    char *user; /* whose; NULL: common */
    char *ref;  /* "verl@0.9.1" */
    char *path; /* the link that is its name on the shared root */
    char hash[HASH_HEX];
    uint64_t bytes, files;
    char *verl;        /* the version of verl in it; NULL: none */
    struct strv needs; /* what it asks of a machine, see core/job/needs.h */
    char *needs_by;    /* who said so; NULL: its setup files */
    char *actor;       /* who added it */
    usec_t created_at;
    bool leaving; /* it is being removed: nobody finds it any more */
    bool passing; /* came with a submit that has not become a job: it goes when nobody holds it */
    int holders;
};

/* What is stored and shown of one. */
extern const struct field_table snapshot_table;

struct snapshots_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct cluster *cluster;
    const struct storage *storage;
};
struct snapshots *snapshots_new(const struct snapshots_parts *parts);
/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define SNAPSHOTS_ENTRY "snapshot"
void snapshots_restore(struct snapshots *sn, const struct store_entry *entry);
void snapshots_start(struct snapshots *sn); /* the shared root may have work from before */
void snapshots_free(struct snapshots *sn);  /* when the loop has run dry; NULL is fine */
void snapshots_durable(struct snapshots *sn, uint64_t batch);

/* ---- finding: borrowed until the loop turns ---- */

/* user NULL: a common one. NULL: there is none. */
struct snapshot *snapshots_find(const struct snapshots *sn, const char *user, const char *ref);
/* His own, else the common one. */
struct snapshot *snapshots_find_for(const struct snapshots *sn, const char *user, const char *ref);
/* The one whose name's path or content is this path or above it. */
struct snapshot *snapshots_find_path(const struct snapshots *sn, const char *path);
struct snapshot *snapshots_next(const struct snapshots *sn, size_t *pos);
/* The directory with its files; yours. */
char *snapshots_tree(const struct snapshots *sn, const struct snapshot *s);

/* ---- changing ---- */

struct snapshots_wish { /* copied */
    const char *user;   /* NULL: common */
    const char *ref, *actor;
    const char *want; /* the hash that it must have; NULL: any */
    const char *path; /* the archive; NULL: there is none */
    uint64_t bytes;   /* that it may have: as many as came */
    bool is_known;    /* the content of that hash is there already, unless it was damaged */
    bool passing;     /* ref is a name alone, its version becomes a part of the hash; held once for
                         you when it is made */
};
/* On the loop, once. s: it is on disk, named, and its row is too; NULL: err says why not, and
 * nothing is left. taken: the archive is of no use any more. */
typedef void (*snapshots_made_f)(struct snapshot *s,
                                 bool existed,
                                 bool taken,
                                 const struct err *err,
                                 void *arg);
/* The row is there, not yet on disk: the place for the event of it. */
typedef void (*snapshots_row_f)(struct snapshot *s, void *arg);
void snapshots_add(struct snapshots *sn,
                   const struct snapshots_wish *wish,
                   snapshots_row_f row,
                   snapshots_made_f made,
                   void *arg);
/* One holder less: what is passing goes with its last one. */
void snapshots_let_go(struct snapshots *sn, struct snapshot *s);
/* It is a job's now: no more passing. */
void snapshots_keep(struct snapshots *sn, struct snapshot *s);
/* Nothing else of one ever changes. needs: as needs_check() takes them; copied. */
void snapshots_set_needs(struct snapshots *sn,
                         struct snapshot *s,
                         const struct strv *needs,
                         const char *actor);
/* Nobody uses it. From now on nobody finds it; name, content and row go once that is on disk. */
void snapshots_remove(struct snapshots *sn, struct snapshot *s);
