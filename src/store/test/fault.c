/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the store when the file system says no: SQLite's default file layer wrapped
 * in one that fails on command. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/test/bed.h"

#include <cmocka.h>

/* ---- the file layer ---- */

/* The database file itself is synced by checkpoints alone. */
enum op { OP_WRITE = 1 << 0, OP_SYNC = 1 << 1, OP_FOLD = 1 << 2 };

/* Written by the test, read by the store thread. */
struct faults {
    sqlite3_vfs vfs;
    sqlite3_io_methods methods;
    atomic_int ops;    /* which fail, as bits */
    atomic_int after;  /* so many of them succeed before */
    atomic_int times;  /* so many fail then */
    atomic_int code;   /* with this */
    atomic_int hits;   /* failed so far */
    atomic_int writes; /* of files other than the database, well or not */
};

struct file {
    sqlite3_file base;
    struct faults *faults;
    bool is_database;
    sqlite3_file *real; /* behind this struct */
};

static struct file *file_of(sqlite3_file *f)
{
    return (struct file *)(void *)f;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
    return file_of(f)->real;
}

static int trip(sqlite3_file *f, enum op op)
{
    struct faults *faults = file_of(f)->faults;
    if (!(faults->ops & (int)op) || faults->after-- > 0 || faults->times <= 0)
        return SQLITE_OK;
    faults->times--;
    faults->hits++;
    return faults->code;
}

static int f_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    int r = trip(f, OP_WRITE);
    file_of(f)->faults->writes += !file_of(f)->is_database;
    if (r == SQLITE_OK)
        return real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
    /* A failed write may have written a part. */
    if (real_of(f)->pMethods->xWrite(real_of(f), p, n / 2, at) != SQLITE_OK)
        return SQLITE_IOERR_WRITE;
    return r;
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), n);
}

static int f_sync(sqlite3_file *f, int flags)
{
    int r = trip(f, file_of(f)->is_database ? OP_FOLD : OP_SYNC);
    return r == SQLITE_OK ? real_of(f)->pMethods->xSync(real_of(f), flags) : r;
}

static int f_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), n);
}

static int f_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int f_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int f_is_locked(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int f_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int f_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void f_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int f_shm_unmap(sqlite3_file *f, int delete)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), delete);
}

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct faults *faults = (struct faults *)(void *)vfs;
    sqlite3_vfs *real = vfs->pAppData;
    file_of(f)->base.pMethods = NULL;
    file_of(f)->faults = faults;
    file_of(f)->real = (sqlite3_file *)(void *)(file_of(f) + 1);
    file_of(f)->is_database = flags & SQLITE_OPEN_MAIN_DB;
    int r = real->xOpen(real, name, real_of(f), flags, ret_flags);
    if (r == SQLITE_OK)
        file_of(f)->base.pMethods = &faults->methods;
    return r;
}

static void faults_init(struct faults *faults)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    memset(faults, 0, sizeof(*faults));
    faults->vfs = *real;
    faults->vfs.zName = "faults";
    faults->vfs.szOsFile = (int)sizeof(struct file) + real->szOsFile;
    faults->vfs.pAppData = real;
    faults->vfs.pNext = NULL;
    faults->vfs.xOpen = v_open;
    faults->methods = (sqlite3_io_methods){
        .iVersion = 2,
        .xClose = f_close,
        .xRead = f_read,
        .xWrite = f_write,
        .xTruncate = f_truncate,
        .xSync = f_sync,
        .xFileSize = f_size,
        .xLock = f_lock,
        .xUnlock = f_unlock,
        .xCheckReservedLock = f_is_locked,
        .xFileControl = f_control,
        .xSectorSize = f_sector,
        .xDeviceCharacteristics = f_traits,
        .xShmMap = f_shm_map,
        .xShmLock = f_shm_lock,
        .xShmBarrier = f_shm_barrier,
        .xShmUnmap = f_shm_unmap,
    };
    assert_int_equal(sqlite3_vfs_register(&faults->vfs, 0), SQLITE_OK);
}

static void faults_release(struct faults *faults)
{
    assert_int_equal(sqlite3_vfs_unregister(&faults->vfs), SQLITE_OK);
}

static void make_fail(struct faults *faults, int ops, int after, int times, int code)
{
    faults->ops = 0;
    faults->after = after;
    faults->times = times;
    faults->code = code;
    faults->hits = 0;
    faults->ops = ops;
}

/* ---- the tests ---- */

static void put_job(struct bed *b, int64_t seq)
{
    struct bed_text t;
    struct store_job job = bed_job(seq, &t);
    store_put_job(b->s, &job);
}

/* All jobs from 1 to n are there, and no other. */
static void expect_jobs(struct bed *b, size_t n)
{
    struct bed_answer a;
    bed_list(b, &(struct store_job_query){.limit = STORE_PAGE_MAX}, &a);
    assert_int_equal(a.err.code, 0);
    assert_int_equal(a.njobs, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(a.job_seqs[i], n - i);
    bed_answer_release(&a);
}

/* The n-th operation of a commit fails, for every n that it has, and nothing is lost. */
static void sweep(int ops, int code)
{
    struct faults faults;
    int total = 0, hits;
    int64_t seq = 0;
    struct bed b;
    faults_init(&faults);
    bed_init(&b, "faults");
    do {
        make_fail(&faults, ops, (int)seq, 1, code);
        put_job(&b, ++seq);
        bed_settle(&b);
        hits = faults.hits;
        total += hits;
        assert_int_equal(b.troubles, total);
        assert_int_equal(b.recoveries, total);
    } while (hits);
    make_fail(&faults, 0, 0, 0, 0);
    assert_true(total > 0);
    expect_jobs(&b, (size_t)seq);
    bed_close(&b);
    bed_open(&b, NULL);
    expect_jobs(&b, (size_t)seq);
    bed_release(&b);
    faults_release(&faults);
}

static void test_every_write_on_a_full_disk(void **state)
{
    (void)state;
    sweep(OP_WRITE, SQLITE_FULL);
}

static void test_every_write_error(void **state)
{
    (void)state;
    sweep(OP_WRITE, SQLITE_IOERR_WRITE);
}

static void test_every_sync_error(void **state)
{
    (void)state;
    sweep(OP_SYNC, SQLITE_IOERR_FSYNC);
}

static void test_a_disk_that_stays_full(void **state)
{
    struct faults faults;
    struct bed_answer a;
    struct bed b;
    (void)state;
    faults_init(&faults);
    bed_init(&b, "faults");
    put_job(&b, 1);
    bed_settle(&b);
    make_fail(&faults, OP_WRITE, 0, INT32_MAX, SQLITE_FULL);
    put_job(&b, 2);
    while (!store_is_failing(b.s))
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(b.troubles, 1);
    assert_non_null(strstr(b.why, "the store cannot write: database or disk is full"));
    for (int64_t seq = 3; seq <= 50; seq++) { /* the loop goes on, turn by turn */
        put_job(&b, seq);
        store_flush(b.s);
    }
    expect_jobs(&b, 1); /* readers go on with what is on disk */
    bed_find(&b, "job-000001", &a);
    assert_int_equal(a.njobs, 1);
    bed_answer_release(&a);
    assert_int_equal(b.durable, 1);
    make_fail(&faults, 0, 0, 0, 0);
    bed_settle(&b);
    assert_int_equal(b.troubles, 1);
    assert_int_equal(b.recoveries, 1);
    assert_false(store_is_failing(b.s));
    expect_jobs(&b, 50);
    bed_release(&b);
    faults_release(&faults);
}

static void test_close_on_a_full_disk(void **state)
{
    struct faults faults;
    struct err err = {0};
    struct bed b;
    (void)state;
    faults_init(&faults);
    bed_init(&b, "faults");
    put_job(&b, 1);
    bed_settle(&b);
    make_fail(&faults, OP_WRITE, 0, INT32_MAX, SQLITE_FULL);
    put_job(&b, 2);
    assert_int_equal(store_close(b.s, &err), ERR_STORE);
    assert_non_null(strstr(err.text, "the newest changes are lost"));
    assert_int_equal(b.durable, 1);
    (void)uv_run(&b.loop, UV_RUN_NOWAIT);
    make_fail(&faults, 0, 0, 0, 0);
    bed_open(&b, NULL);
    expect_jobs(&b, 1);
    bed_release(&b);
    faults_release(&faults);
}

/* The pages of a commit go to the WAL in one call; those of a large one in a few, and each of these
 * may fail. */
static void test_one_write_for_a_commit(void **state)
{
    enum { LARGE = 2000 };
    struct faults faults;
    struct bed b;
    (void)state;
    faults_init(&faults);
    bed_init(&b, "faults");
    put_job(&b, 1);
    bed_settle(&b);
    faults.writes = 0;
    put_job(&b, 2);
    bed_settle(&b);
    assert_int_equal(faults.writes, 1);
    faults.writes = 0;
    make_fail(&faults, OP_WRITE, 2, 1, SQLITE_IOERR_WRITE);
    for (int64_t seq = 3; seq <= LARGE; seq++)
        put_job(&b, seq);
    bed_settle(&b);
    assert_int_equal(faults.hits, 1);
    assert_int_equal(b.recoveries, 1);
    assert_in_range(faults.writes, 4, LARGE / 10);
    bed_close(&b);
    bed_open(&b, NULL);
    struct bed_answer a;
    bed_find(&b, "job-002000", &a);
    assert_int_equal(a.njobs, 1);
    bed_answer_release(&a);
    bed_release(&b);
    faults_release(&faults);
}

/* Folding back the WAL fails: nobody notices, and nothing is lost. */
static void test_checkpoints_that_fail(void **state)
{
    struct faults faults;
    struct bed b;
    int64_t seq = 0;
    (void)state;
    faults_init(&faults);
    bed_init(&b, "faults");
    make_fail(&faults, OP_FOLD, 0, 3, SQLITE_IOERR_FSYNC);
    while (faults.times > 0) {
        put_job(&b, ++seq);
        bed_settle(&b);
    }
    assert_int_equal(b.troubles, 0);
    bed_close(&b);
    bed_open(&b, NULL);
    expect_jobs(&b, (size_t)seq);
    bed_release(&b);
    faults_release(&faults);
}

static void test_no_room_to_open(void **state)
{
    struct faults faults;
    struct store *s = NULL;
    struct err err = {0};
    struct bed b;
    (void)state;
    faults_init(&faults);
    bed_init(&b, BED_CLOSED);
    struct store_options opt =
        (struct store_options){.path = b.path, .loop = &b.loop, .vfs = "faults"};
    make_fail(&faults, OP_WRITE, 0, INT32_MAX, SQLITE_FULL);
    assert_int_equal(store_open(&opt, &s, &err), ERR_STORE);
    assert_null(s);
    assert_non_null(strstr(err.text, "full"));
    make_fail(&faults, 0, 0, 0, 0);
    bed_open(&b, "faults"); /* nothing half-made is left */
    put_job(&b, 1);
    bed_settle(&b);
    expect_jobs(&b, 1);
    bed_release(&b);
    faults_release(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_write_on_a_full_disk),
        cmocka_unit_test(test_every_write_error),
        cmocka_unit_test(test_every_sync_error),
        cmocka_unit_test(test_a_disk_that_stays_full),
        cmocka_unit_test(test_close_on_a_full_disk),
        cmocka_unit_test(test_one_write_for_a_commit),
        cmocka_unit_test(test_checkpoints_that_fail),
        cmocka_unit_test(test_no_room_to_open),
    };

    return cmocka_run_group_tests_name("store/fault", tests, NULL, NULL);
}
