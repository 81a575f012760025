/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - one step per version, applied in order, never edited once released.
 *
 * The row of a job is small, because lists and scans read many of them: what only
 * one job's page needs (spec, detail) stands in tables of its own, the immutable spec
 * apart from the detail that is rewritten. Every index ends in seq by itself (it is the
 * rowid), so that each filter can be read newest first without a sort. A job
 * whose name is its id has no name here, which keeps its second index entry away. */
#include "store/schema.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdint.h>

#include "base/message.h"
#include "store/conn.h"

#define SQL_VERSION "PRAGMA user_version"
#define SQL_APPLICATION "PRAGMA application_id"
/* Outside of any transaction; stays with the file. */
#define SQL_WAL "PRAGMA journal_mode=WAL"
#define SQL_IS_USED "SELECT count(*) FROM sqlite_schema"
/* "Argu", so that file(1) and we know our own. */
#define SQL_STAMP "PRAGMA application_id=1098016629"

/* The part of an object that begins with glob: from there to the next '/' or the end. */
#define PART(glob, from)                                                                           \
    " WHEN object GLOB '" glob "' THEN"                                                            \
    " substr(object," from ",instr(substr(object," from ")||'/','/')-1)"
#define EVERYBODYS(glob) " WHEN object GLOB '" glob "' THEN '*'"
/* An event of no job knew only its object. Whose that was can be read from it, of what was made by
 * then; what cannot, stays hidden. A data set's project is not among it. */
#define OLD_KIND                                                                                   \
    " thing=CASE WHEN object IS NULL THEN 'cluster'"                                               \
    " WHEN object GLOB 'user/*/snapshot/*' THEN 'snapshot'" PART("*", "1") " END,"
#define OLD_OWNER_1 PART("user/*", "6") PART("token/*", "7") PART("upload/*", "8")
#define OLD_OWNER_2 PART("secret/user/*", "13") PART("file/users/*", "12")
#define OLD_OWNER_3 PART("dataset/~*", "10") PART("model/~*", "8")
#define OLD_OWNER " owner=CASE" OLD_OWNER_1 OLD_OWNER_2 OLD_OWNER_3 " END,"
#define OLD_PROJECT_1 PART("project/*", "9") PART("secret/project/*", "16")
#define OLD_PROJECT_2 EVERYBODYS("file/common/*") EVERYBODYS("snapshot/*")
#define OLD_PROJECT_3 EVERYBODYS("dataset/common/*") EVERYBODYS("model/common/*")
#define OLD_PROJECT " project=CASE" OLD_PROJECT_1 OLD_PROJECT_2 OLD_PROJECT_3 " END"
#define OLD_EVENTS "UPDATE event SET" OLD_KIND OLD_OWNER OLD_PROJECT " WHERE job_seq=0"

enum { SCHEMA_APPLICATION = 1098016629 };

static const char *const steps[SCHEMA_VERSION] = {
    SQL_STAMP
    ";"
    "CREATE TABLE job(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT, user TEXT,"
    " project TEXT, workload TEXT, cluster TEXT, pool TEXT, queued_at INTEGER NOT NULL,"
    " state TEXT NOT NULL, live INTEGER NOT NULL, flags TEXT, reason_code TEXT,"
    " reason_text TEXT, nnodes INTEGER NOT NULL, n_gpus_per_node REAL NOT NULL,"
    " priority INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, restarts INTEGER NOT NULL, step INTEGER NOT NULL,"
    " exit_code INTEGER) STRICT;"
    "CREATE UNIQUE INDEX job_id ON job(id);"
    "CREATE INDEX job_name ON job(name) WHERE name IS NOT NULL;"
    "CREATE INDEX job_live ON job(seq) WHERE live;"
    "CREATE INDEX job_state ON job(state);"
    "CREATE INDEX job_user ON job(user);"
    "CREATE INDEX job_project ON job(project);"
    "CREATE INDEX job_cluster ON job(cluster);"
    "CREATE INDEX job_pool ON job(pool);"
    "CREATE INDEX job_workload ON job(workload);"
    "CREATE TABLE job_spec(seq INTEGER PRIMARY KEY, spec TEXT NOT NULL) STRICT;"
    "CREATE TABLE job_detail(seq INTEGER PRIMARY KEY, detail TEXT NOT NULL) STRICT;"
    "CREATE TABLE attempt(job_seq INTEGER NOT NULL, k INTEGER NOT NULL, ray_id TEXT,"
    " state TEXT, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL, detail TEXT,"
    " PRIMARY KEY(job_seq, k)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE event(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, job_seq INTEGER NOT NULL,"
    " kind TEXT, actor TEXT, from_state TEXT, to_state TEXT, reason_code TEXT, text TEXT,"
    " data TEXT) STRICT;"
    "CREATE INDEX event_job ON event(job_seq) WHERE job_seq > 0;"
    "CREATE TABLE token(hash BLOB PRIMARY KEY, id TEXT, name TEXT, user TEXT, role TEXT,"
    " created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, last_use_at INTEGER NOT NULL,"
    " revoked_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE user(name TEXT PRIMARY KEY, role TEXT, created_at INTEGER NOT NULL,"
    " detail TEXT) STRICT, WITHOUT ROWID;"
    "CREATE TABLE idempotency(user TEXT NOT NULL, key TEXT NOT NULL, body_hash BLOB NOT NULL,"
    " job_id TEXT, at INTEGER NOT NULL, PRIMARY KEY(user, key)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX idempotency_at ON idempotency(at);"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;"
    "PRAGMA user_version=1",

    "ALTER TABLE event ADD COLUMN object TEXT;"
    "ALTER TABLE event ADD COLUMN hash BLOB;"
    "CREATE TABLE entry(kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,"
    " at INTEGER NOT NULL, PRIMARY KEY(kind, name)) STRICT, WITHOUT ROWID;"
    "PRAGMA user_version=2",

    "CREATE TABLE finding(job_seq INTEGER NOT NULL, k INTEGER NOT NULL, class TEXT NOT NULL,"
    " rule TEXT, node TEXT, rank TEXT, at INTEGER NOT NULL, confidence REAL NOT NULL,"
    " body TEXT NOT NULL, PRIMARY KEY(job_seq, k)) STRICT, WITHOUT ROWID;"
    "PRAGMA user_version=3",

    "ALTER TABLE event ADD COLUMN thing TEXT;"
    "ALTER TABLE event ADD COLUMN owner TEXT;"
    "ALTER TABLE event ADD COLUMN project TEXT;" OLD_EVENTS ";"
    "PRAGMA user_version=4",

    /* One row per interval and key; the texts of keys stand once. */
    "CREATE TABLE usage_key(id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, labels TEXT NOT NULL,"
    " project TEXT NOT NULL, user TEXT NOT NULL, workload TEXT NOT NULL,"
    " UNIQUE(cluster, labels, project, user, workload)) STRICT;"
    "CREATE TABLE usage(step INTEGER NOT NULL, at INTEGER NOT NULL, key INTEGER NOT NULL,"
    " s0 INTEGER NOT NULL, s1 INTEGER NOT NULL, s2 INTEGER NOT NULL, s3 INTEGER NOT NULL,"
    " s4 INTEGER NOT NULL, s5 INTEGER NOT NULL, s6 INTEGER NOT NULL, s7 INTEGER NOT NULL,"
    " s8 INTEGER NOT NULL, s9 INTEGER NOT NULL,"
    " PRIMARY KEY(step, at, key)) STRICT, WITHOUT ROWID;"
    "PRAGMA user_version=5",

    /* Each index is a page more in each commit. Of live jobs there are few: see list.c. */
    "DROP INDEX job_cluster; DROP INDEX job_pool; DROP INDEX job_workload;"
    "CREATE INDEX job_ended_cluster ON job(cluster) WHERE NOT live;"
    "CREATE INDEX job_ended_pool ON job(pool) WHERE NOT live;"
    "CREATE INDEX job_ended_workload ON job(workload) WHERE NOT live;"
    "PRAGMA user_version=6",

    /* What a job held was in its detail alone, and a list does not read that. */
    "ALTER TABLE job ADD COLUMN gpu_held INTEGER NOT NULL DEFAULT 0;"
    "UPDATE job SET gpu_held=d.held FROM (SELECT seq, json_extract(detail, '$.gpu_held') AS held"
    " FROM job_detail WHERE json_valid(detail)) AS d"
    " WHERE d.seq=job.seq AND typeof(d.held)='integer';"
    "PRAGMA user_version=7",

    /* Whose child a job is was in the detail of retries alone. */
    "CREATE TABLE origin(seq INTEGER PRIMARY KEY, parent TEXT, how TEXT, step INTEGER NOT NULL,"
    " note TEXT) STRICT;"
    "CREATE INDEX origin_parent ON origin(parent) WHERE parent IS NOT NULL;"
    "INSERT INTO origin(seq, parent, how, step) SELECT seq, parent, 'retry', 0 FROM (SELECT seq,"
    " CASE WHEN json_valid(detail) THEN json_extract(detail, '$.retry_of') END AS parent"
    " FROM job_detail WHERE instr(detail, '\"retry_of\"')>0) WHERE typeof(parent)='text';"
    "PRAGMA user_version=8",

    /* What held slots in a time is what lives and what ended since: see list.c. */
    "CREATE INDEX job_ended_at ON job(ended_at) WHERE NOT live;"
    "PRAGMA user_version=9",

    /* Steps that were run again: of the time before nobody knows, and it counts as none. */
    "ALTER TABLE usage ADD COLUMN s10 INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version=10",

    /* Where the events of a time lie: see query.c. */
    "CREATE INDEX event_at ON event(at);"
    "PRAGMA user_version=11",
};

/* The version there is, after a look at whose file this is. */
static int schema_look(sqlite3 *db, const char *path, int64_t *ret_version, struct err *err)
{
    int64_t version = 0, application = 0, used = 0;
    int r = conn_int(db, SQL_VERSION, &version, err);
    if (r == 0)
        r = conn_int(db, SQL_APPLICATION, &application, err);
    if (r == 0)
        r = conn_int(db, SQL_IS_USED, &used, err);
    if (r < 0)
        return r;
    if (used && application != SCHEMA_APPLICATION)
        return message_refuse(err, ERR_REFUSED, "store_foreign",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if (version > SCHEMA_VERSION)
        return message_refuse(err, ERR_REFUSED, "store_newer",
                              MESSAGE_ARGS(MESSAGE_STR("path", path),
                                           MESSAGE_NUM("version", version),
                                           MESSAGE_NUM("most", SCHEMA_VERSION)));
    *ret_version = version;
    return 0;
}

int schema_migrate(sqlite3 *db, const char *path, struct err *err)
{
    int64_t version = 0;
    int r = schema_look(db, path, &version, err);
    if (r == 0)
        r = conn_exec(db, SQL_WAL, err);
    if (r < 0 || version == SCHEMA_VERSION)
        return r;
    r = conn_exec(db, "BEGIN IMMEDIATE", err);
    for (int64_t i = version; r == 0 && i < SCHEMA_VERSION; i++)
        r = conn_exec(db, steps[i], err);
    if (r == 0)
        r = conn_exec(db, "COMMIT", err);
    if (r < 0)
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* SQLite may have done so itself */
    return r;
}
