/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - data sets and models: what there is, whose, and what is in it.
 *
 * In memory, behind it rows of the store. An entry begins when its import is submitted
 * (registry_import.c makes the job), is filled from the job's result file once the job has
 * SUCCEEDED, and is dropped, with whatever the job has left behind, when it ended in another way
 * (registry_settle.c). Where a job makes the files first (registry_export.h), the import follows
 * it. Removing one is the same in three steps: marked, its bytes swept, dropped;
 * so that kill -9 at any point leaves nothing that the next start does not finish. */
#pragma once
#include <jansson.h>
#include <uv.h>

#include "argusd/content/storage.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/people/people.h"
#include "base/field.h"
#include "base/strv.h"
#include "core/spec/dataref.h"
#include "store/store.h"

enum registry_kind { REGISTRY_DATASET, REGISTRY_MODEL, REGISTRY_KINDS };
const char *registry_kind_word(enum registry_kind kind); /* "dataset": of events and rows */
const char *registry_kind_name(enum registry_kind kind); /* "data set": in sentences */

#define REGISTRY_STATE_TABLE(X) X(importing) X(ready) X(removing)
#define X(word) REGISTRY_##word,
enum registry_state { REGISTRY_STATE_TABLE(X) REGISTRY_STATE_END };
#undef X

enum {
    REGISTRY_ENTRIES_MAX = 4096,
    REGISTRY_OF_USER_MAX = 1024, /* of a kind, likewise */
    REGISTRY_USED_MAX = 50,
    REGISTRY_SHARED_MAX = 100,
    REGISTRY_BODY_MAX = 96 << 10
};

struct registry;

struct registry_entry {
    enum registry_kind kind;
    enum registry_state state;
    char *name;
    int64_t version;
    char *owner, *project;          /* project: whose members see it too; "" = none */
    bool is_common;                 /* below common/: everybody sees it */
    struct strv shared;             /* "user/bob", "project/rl": who sees it beside these */
    char *path;                     /* where it is or will be */
    bool in_place;                  /* it was there before us: its bytes are not ours to remove */
    char *source, *revision, *hash; /* NULL = not known */
    char *job;                      /* the one that brings or brought it */
    bool is_made;                   /* importing: by now that job makes its files, at path */
    json_t *lineage;                /* object: what it was made of; NULL = nobody said */
    bool is_recorded;               /* argusd itself says so; else who imported it */
    json_t *about;                  /* object: what the job found in it; NULL = nothing yet */
    int64_t bytes, files;
    usec_t created_at;
    struct strv used; /* ids of jobs, the newest last, at most REGISTRY_USED_MAX */
    int64_t uses;

    /* Nothing of this is stored. */
    char *progress; /* JSON object; NULL = none yet */
    bool busy;      /* a worker call or a look into the store is under way */
    char *key;      /* in its table */
};

/* What is stored and shown of one, but for lineage and about. */
extern const struct field_table registry_entry_table;

struct registry_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct events *events;
    struct cluster *cluster;
    const struct storage *storage;
};
struct registry *registry_new(const struct registry_parts *parts);
void registry_free(struct registry *rg); /* NULL is fine; after close and a turn of the loop */

/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define REGISTRY_ENTRY_DATASET "dataset"
#define REGISTRY_ENTRY_MODEL "model"
#define REGISTRY_ENTRY_DATASET_LAST "dataset_last"
#define REGISTRY_ENTRY_MODEL_LAST "model_last"
void registry_restore(struct registry *rg, const struct store_entry *row);
/* All is there: from now on imports are watched. */
void registry_start(struct registry *rg, struct jobs *jobs);
void registry_close(struct registry *rg); /* NULL is fine */
/* What follows when the job of an entry that is made has SUCCEEDED: 0, and the entry has another
 * job and is made no more; else it goes, and an event says why. */
typedef int (*registry_made_f)(struct registry_entry *e, void *arg, struct err *err);
void registry_on_made(struct registry *rg, registry_made_f made, void *arg);
/* What keeps a model that is ready, beside jobs: a service that serves it, or may go back to it.
 * False: nothing. ret->service is borrowed, and "" where this user may not see it. */
struct registry_keeper {
    const char *service;
    int64_t version; /* of the service */
};
typedef bool (*registry_keeper_f)(const struct registry_entry *e,
                                  const struct access_who *who,
                                  struct registry_keeper *ret,
                                  void *arg);
void registry_on_keeper(struct registry *rg, registry_keeper_f keeper, void *arg);
/* It changed, and that is on disk. */
void registry_saw(struct registry *rg, const struct live *l);

/* ---- entries ---- */

/* "gsm8k@2": valid until the next call with the same buffer. */
enum { REGISTRY_REF_MAX = DATAREF_NAME_MAX + 32 };
const char *registry_ref(const struct registry_entry *e, char ret[static REGISTRY_REF_MAX]);
/* In no order; NULL at the end. *pos begins at 0. */
struct registry_entry *registry_next(const struct registry *rg,
                                     enum registry_kind kind,
                                     size_t *pos);
size_t registry_count(const struct registry *rg, enum registry_kind kind);
/* What this names for him who asks: of several versions the newest that is ready (else the newest),
 * his own before the common one before those of his projects. ERR_NOT_FOUND, ERR_CONFLICT. */
must_check int registry_find(const struct registry *rg,
                             enum registry_kind kind,
                             const struct access_who *who,
                             const struct dataref *ref,
                             struct registry_entry **ret,
                             struct err *err);
/* What access_check() is asked about, and what its events are about. Borrows from e. */
struct access_thing registry_thing(const struct registry_entry *e);
/* 0, ERR_FORBIDDEN, or ERR_NOT_FOUND. */
must_check int registry_check(const struct registry_entry *e,
                              const struct access_who *who,
                              enum access_action action,
                              const char *verb,
                              struct err *err);

/* These users and projects see it from now on, or (off) not any more; with none of them off is
 * everybody it was shared with. ERR_REFUSED: more than REGISTRY_SHARED_MAX. */
must_check int registry_share(struct registry *rg,
                              struct registry_entry *e,
                              const struct strv *users,
                              const struct strv *projects,
                              bool off,
                              struct err *err);
/* May the files at this path below the shared root be changed, as far as an entry of the registry
 * lies there, in it or above it? ERR_FORBIDDEN. */
must_check int registry_check_files(const struct registry *rg,
                                    const struct access_who *who,
                                    const char *path,
                                    struct err *err);

/* The directory that holds versions of such entries: "<root>/users/alice/datasets". */
char *registry_home(const struct settings *s,
                    enum registry_kind kind,
                    const char *owner,
                    bool is_common);
/* Where its import works: <home>/.import-<job>, and <root>/jobs/<job>/import. */
char *registry_staging(const struct settings *s, const struct registry_entry *e);
char *registry_report(const struct settings *s, const char *job);

/* A new one that is being imported: *taken with kind, name, owner, project, is_common, job and what
 * is known; it gets its version and, unless in_place, its path. ERR_REFUSED: too many. */
must_check int registry_add(struct registry *rg,
                            struct registry_entry *taken,
                            struct registry_entry **ret,
                            struct err *err);
void registry_save(struct registry *rg, struct registry_entry *e);
void registry_drop(struct registry *rg, struct registry_entry *e); /* e is gone */
void registry_entry_free(struct registry_entry *e);

/* A job that has it among its inputs was accepted. */
void registry_note_use(struct registry *rg, struct registry_entry *e, const char *job);
/* The id of a job that is not over and uses it; NULL = none. Borrowed. */
const char *registry_user_of(const struct registry *rg, const struct registry_entry *e);
/* 0, or ERR_CONFLICT: a service keeps it, see registry_on_keeper(). */
must_check int registry_check_kept(const struct registry *rg,
                                   const struct registry_entry *e,
                                   const struct access_who *who,
                                   struct err *err);
/* Nobody uses it: mark it, sweep its bytes once that is on disk, drop it. */
void registry_remove(struct registry *rg, struct registry_entry *e);

/* ---- inside: registry.c, registry_record.c and registry_settle.c ---- */

struct registry {
    struct registry_parts p;
    struct jobs *jobs; /* NULL before the start */
    struct map *tables[REGISTRY_KINDS];
    struct map
        *lasts; /* "dataset ~alice/gsm8k" -> struct registry_last: numbers are not given twice */
    uv_timer_t timer;
    bool has_timer, closed;
    registry_made_f made;
    void *made_arg;
    registry_keeper_f keeper; /* NULL: no service is there */
    void *keeper_arg;
};

struct registry_last {
    int64_t version;
};

/* A row's text, and back. ERR_STORE: it is none of ours. */
void registry_record_write(const struct registry_entry *e, struct buf *out);
must_check int registry_record_read(enum registry_kind kind,
                                    const char *text,
                                    struct registry_entry **ret,
                                    struct err *err);

/* What the tool said at its end: outside bytes. */
struct registry_result {
    bool ok;
    char error[512]; /* when not ok */
    char hash[80], revision[80];
    int64_t bytes, files;
    json_t *about; /* an object, small enough for a row */
};
enum { REGISTRY_RESULT_MAX = 1 << 20 };
must_check int registry_result_read(const char *text,
                                    size_t n,
                                    struct registry_result *ret,
                                    struct err *err);
void registry_result_release(struct registry_result *r);

/* registry_settle.c: one turn over all entries under way. */
void registry_turn(struct registry *rg);
