/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - statements are kept by their text: the number of different ones is small
 * (which filters are given), and the least recently used gives way. */
#include "store/reader.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "store/conn.h"

#define SQL_BEGIN "BEGIN"
#define SQL_END "COMMIT"

enum { READER_STATEMENTS = 24, ANSWER_BLOCK_BYTES = 8192 };

struct kept {
    char *sql;
    sqlite3_stmt *st;
    uint64_t used; /* `clock` of the last use */
};

struct reader {
    const char *path, *vfs;
    _Atomic(sqlite3 *) db; /* set once by the using thread, read by reader_interrupt() */
    struct kept kept[READER_STATEMENTS];
    uint64_t clock;
};

struct reader *reader_new(const char *path, const char *vfs)
{
    struct reader *r = xcalloc(1, sizeof *r);

    r->path = path;
    r->vfs = vfs;
    return r;
}

static void forget(struct kept *k)
{
    (void)sqlite3_finalize(k->st); /* repeats old errors */
    free(k->sql);
    *k = (struct kept){0};
}

void reader_free(struct reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < READER_STATEMENTS; i++)
        forget(&r->kept[i]);
    conn_close(r->db);
    free(r);
}

static int ensure_open(struct reader *r, struct err *err)
{
    sqlite3 *db = NULL;
    int rc;

    if (r->db)
        return 0;
    rc = conn_open(r->path, r->vfs, false, &db, err);
    if (rc == 0)
        r->db = db;
    return rc;
}

int reader_statement(struct reader *r, const char *sql, sqlite3_stmt **ret, struct err *err)
{
    struct kept *oldest = &r->kept[0];
    int rc = ensure_open(r, err);

    if (rc < 0)
        return rc;
    for (struct kept *k = r->kept; k < r->kept + READER_STATEMENTS; k++) {
        if (k->sql && strcmp(k->sql, sql) == 0) {
            k->used = ++r->clock;
            *ret = k->st;
            return 0;
        }
        if (k->used < oldest->used)
            oldest = k;
    }
    forget(oldest);
    rc = conn_prepare(r->db, sql, &oldest->st, err);
    if (rc < 0)
        return rc;
    oldest->sql = xstrdup(sql);
    oldest->used = ++r->clock;
    *ret = oldest->st;
    return 0;
}

void reader_reset(sqlite3_stmt *st)
{
    (void)sqlite3_reset(st); /* repeats the error of step */
    (void)sqlite3_clear_bindings(st);
}

int reader_step(struct reader *r, sqlite3_stmt *st, struct err *err)
{
    int rc = sqlite3_step(st);

    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : conn_err(r->db, err);
}

int reader_begin(struct reader *r, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = reader_statement(r, SQL_BEGIN, &st, err);

    if (rc < 0)
        return rc;
    rc = reader_step(r, st, err);
    reader_reset(st);
    return rc;
}

void reader_end(struct reader *r)
{
    sqlite3_stmt *st = NULL;

    if (reader_statement(r, SQL_END, &st, NULL) < 0)
        return;
    (void)sqlite3_step(st); /* nothing was written: nothing can be lost */
    reader_reset(st);
}

void reader_interrupt(struct reader *r)
{
    sqlite3 *db = r->db;

    if (db)
        sqlite3_interrupt(db);
}

/* ---- answers ---- */

struct answer_block {
    struct answer_block *next;
    size_t used, size;
    char bytes[];
};

void answer_release(struct answer *a)
{
    struct answer_block *next;

    for (struct answer_block *b = a->blocks; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a->jobs);
    free(a->attempts);
    free(a->events);
    free(a->findings);
    *a = (struct answer){0};
}

static char *keep_bytes(struct answer *a, const void *p, size_t n)
{
    struct answer_block *b = a->blocks;

    if (!b || b->size - b->used < n) {
        size_t size = n > ANSWER_BLOCK_BYTES ? n : ANSWER_BLOCK_BYTES;

        b = xmalloc(sizeof *b + size);
        *b = (struct answer_block){.next = a->blocks, .size = size};
        a->blocks = b;
    }
    memcpy(b->bytes + b->used, p, n);
    b->used += n;
    return b->bytes + b->used - n;
}

static const char *keep(struct answer *a, const char *s)
{
    return s ? keep_bytes(a, s, strlen(s) + 1) : NULL;
}

/* Room for one more of n rows. */
static void *more(void *rows, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return rows;
    *cap = *cap ? *cap * 2 : 16;
    return xrealloc(rows, *cap, size);
}

void answer_add_job(struct answer *a, const struct store_job *job)
{
    struct store_job *to;

    a->jobs = more(a->jobs, a->result.njobs, &a->jobs_cap, sizeof *a->jobs);
    a->result.jobs = a->jobs;
    to = &a->jobs[a->result.njobs++];
    *to = *job;
    to->id = keep(a, job->id);
    to->name = keep(a, job->name);
    to->user = keep(a, job->user);
    to->project = keep(a, job->project);
    to->workload = keep(a, job->workload);
    to->cluster = keep(a, job->cluster);
    to->pool = keep(a, job->pool);
    to->spec = keep(a, job->spec);
    to->state = keep(a, job->state);
    to->flags = keep(a, job->flags);
    to->reason_code = keep(a, job->reason_code);
    to->reason_text = keep(a, job->reason_text);
    to->detail = keep(a, job->detail);
}

void answer_add_attempt(struct answer *a, const struct store_attempt *attempt)
{
    struct store_attempt *to;

    a->attempts = more(a->attempts, a->result.nattempts, &a->attempts_cap, sizeof *a->attempts);
    a->result.attempts = a->attempts;
    to = &a->attempts[a->result.nattempts++];
    *to = *attempt;
    to->ray_id = keep(a, attempt->ray_id);
    to->state = keep(a, attempt->state);
    to->detail = keep(a, attempt->detail);
}

void answer_add_event(struct answer *a, const struct store_event *event)
{
    struct store_event *to;

    a->events = more(a->events, a->result.nevents, &a->events_cap, sizeof *a->events);
    a->result.events = a->events;
    to = &a->events[a->result.nevents++];
    *to = *event;
    to->job = keep(a, event->job);
    to->kind = keep(a, event->kind);
    to->actor = keep(a, event->actor);
    to->from_state = keep(a, event->from_state);
    to->to_state = keep(a, event->to_state);
    to->reason_code = keep(a, event->reason_code);
    to->text = keep(a, event->text);
    to->data = keep(a, event->data);
    to->object = keep(a, event->object);
    if (event->hash)
        to->hash = (const unsigned char *)keep_bytes(a, event->hash, STORE_HASH_BYTES);
}

void answer_add_finding(struct answer *a, const struct store_finding *finding)
{
    struct store_finding *to;

    a->findings = more(a->findings, a->result.nfindings, &a->findings_cap, sizeof *a->findings);
    a->result.findings = a->findings;
    to = &a->findings[a->result.nfindings++];
    *to = *finding;
    to->class = keep(a, finding->class);
    to->body = keep(a, finding->body);
    to->rule = keep(a, finding->rule);
    to->node = keep(a, finding->node);
    to->rank = keep(a, finding->rank);
}
