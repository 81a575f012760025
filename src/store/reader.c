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
    struct reader *reader = xcalloc(1, sizeof(*reader));
    reader->path = path;
    reader->vfs = vfs;
    return reader;
}

static void reader_forget(struct kept *k)
{
    (void)sqlite3_finalize(k->st); /* repeats old errors */
    free(k->sql);
    *k = (struct kept){0};
}

void reader_free(struct reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < READER_STATEMENTS; i++)
        reader_forget(&reader->kept[i]);
    conn_close(reader->db);
    free(reader);
}

static int ensure_open(struct reader *reader, struct err *err)
{
    sqlite3 *db = NULL;
    if (reader->db)
        return 0;
    int r = conn_open(reader->path, reader->vfs, false, &db, err);
    if (r == 0)
        reader->db = db;
    return r;
}

int reader_statement(struct reader *reader, const char *sql, sqlite3_stmt **ret, struct err *err)
{
    struct kept *oldest = &reader->kept[0];
    int r = ensure_open(reader, err);
    if (r < 0)
        return r;
    for (struct kept *k = reader->kept; k < reader->kept + READER_STATEMENTS; k++) {
        if (k->sql && strcmp(k->sql, sql) == 0) {
            k->used = ++reader->clock;
            *ret = k->st;
            return 0;
        }
        if (k->used < oldest->used)
            oldest = k;
    }
    reader_forget(oldest);
    r = conn_prepare(reader->db, sql, &oldest->st, err);
    if (r < 0)
        return r;
    oldest->sql = xstrdup(sql);
    oldest->used = ++reader->clock;
    *ret = oldest->st;
    return 0;
}

void reader_reset(sqlite3_stmt *st)
{
    (void)sqlite3_reset(st); /* repeats the error of step */
    (void)sqlite3_clear_bindings(st);
}

int reader_step(struct reader *reader, sqlite3_stmt *st, struct err *err)
{
    int r = sqlite3_step(st);
    if (r == SQLITE_ROW)
        return 1;
    return r == SQLITE_DONE ? 0 : conn_err(reader->db, err);
}

int reader_begin(struct reader *reader, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int r = reader_statement(reader, SQL_BEGIN, &st, err);
    if (r < 0)
        return r;
    r = reader_step(reader, st, err);
    reader_reset(st);
    return r;
}

void reader_end(struct reader *reader)
{
    sqlite3_stmt *st = NULL;
    if (reader_statement(reader, SQL_END, &st, NULL) < 0)
        return;
    (void)sqlite3_step(st); /* nothing was written: nothing can be lost */
    reader_reset(st);
}

void reader_interrupt(struct reader *reader)
{
    sqlite3 *db = reader->db;
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
    free(a->usage);
    *a = (struct answer){0};
}

static char *keep_bytes(struct answer *a, const void *p, size_t n)
{
    struct answer_block *b = a->blocks;
    if (!b || b->size - b->used < n) {
        size_t size = n > ANSWER_BLOCK_BYTES ? n : ANSWER_BLOCK_BYTES;
        b = xmalloc(sizeof(*b) + size);
        *b = (struct answer_block){.next = a->blocks, .size = size};
        a->blocks = b;
    }
    memcpy(b->bytes + b->used, p, n);
    b->used += n;
    return b->bytes + b->used - n;
}

static const char *reader_keep(struct answer *a, const char *s)
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
    a->jobs = more(a->jobs, a->result.njobs, &a->jobs_cap, sizeof(*a->jobs));
    a->result.jobs = a->jobs;
    struct store_job *to = &a->jobs[a->result.njobs++];
    *to = *job;
    to->id = reader_keep(a, job->id);
    to->name = reader_keep(a, job->name);
    to->user = reader_keep(a, job->user);
    to->project = reader_keep(a, job->project);
    to->workload = reader_keep(a, job->workload);
    to->cluster = reader_keep(a, job->cluster);
    to->pool = reader_keep(a, job->pool);
    to->spec = reader_keep(a, job->spec);
    to->state = reader_keep(a, job->state);
    to->flags = reader_keep(a, job->flags);
    to->reason_code = reader_keep(a, job->reason_code);
    to->reason_text = reader_keep(a, job->reason_text);
    to->detail = reader_keep(a, job->detail);
    to->origin.parent = reader_keep(a, job->origin.parent);
    to->origin.how = reader_keep(a, job->origin.how);
    to->origin.note = reader_keep(a, job->origin.note);
}

void answer_add_attempt(struct answer *a, const struct store_attempt *attempt)
{
    a->attempts = more(a->attempts, a->result.nattempts, &a->attempts_cap, sizeof(*a->attempts));
    a->result.attempts = a->attempts;
    struct store_attempt *to = &a->attempts[a->result.nattempts++];
    *to = *attempt;
    to->ray_id = reader_keep(a, attempt->ray_id);
    to->state = reader_keep(a, attempt->state);
    to->detail = reader_keep(a, attempt->detail);
}

void answer_add_event(struct answer *a, const struct store_event *event)
{
    a->events = more(a->events, a->result.nevents, &a->events_cap, sizeof(*a->events));
    a->result.events = a->events;
    struct store_event *to = &a->events[a->result.nevents++];
    *to = *event;
    to->job = reader_keep(a, event->job);
    to->kind = reader_keep(a, event->kind);
    to->actor = reader_keep(a, event->actor);
    to->from_state = reader_keep(a, event->from_state);
    to->to_state = reader_keep(a, event->to_state);
    to->reason_code = reader_keep(a, event->reason_code);
    to->text = reader_keep(a, event->text);
    to->data = reader_keep(a, event->data);
    to->object = reader_keep(a, event->object);
    if (event->hash)
        to->hash = (const unsigned char *)keep_bytes(a, event->hash, STORE_HASH_BYTES);
}

void answer_add_finding(struct answer *a, const struct store_finding *finding)
{
    a->findings = more(a->findings, a->result.nfindings, &a->findings_cap, sizeof(*a->findings));
    a->result.findings = a->findings;
    struct store_finding *to = &a->findings[a->result.nfindings++];
    *to = *finding;
    to->class = reader_keep(a, finding->class);
    to->body = reader_keep(a, finding->body);
    to->rule = reader_keep(a, finding->rule);
    to->node = reader_keep(a, finding->node);
    to->rank = reader_keep(a, finding->rank);
}

/* Rows come by name: a name is kept once for all of its points. */
void answer_add_usage(struct answer *a, const struct store_usage_sum *sum)
{
    a->usage = more(a->usage, a->result.nusage, &a->usage_cap, sizeof(*a->usage));
    a->result.usage = a->usage;
    const char *last = a->result.nusage ? a->usage[a->result.nusage - 1].name : NULL;
    struct store_usage_sum *to = &a->usage[a->result.nusage++];
    *to = *sum;
    to->name = last && !strcmp(last, sum->name) ? last : reader_keep(a, sum->name);
}
