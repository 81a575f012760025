/* SPDX-License-Identifier: Apache-2.0 */
/* A copy is the store of one moment, whole, while the store goes on; what is no such file is told.
 */
#include "store/copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "store/schema.h"
#include "store/test/bed.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void put_jobs(struct bed *b, int64_t from, int64_t to)
{
    struct bed_text text;
    for (int64_t seq = from; seq <= to; seq++) {
        struct store_job row = bed_job(seq, &text);
        store_put_job(b->s, &row);
    }
    bed_settle(b);
}

static void test_a_copy_of_one_moment(void **state)
{
    struct bed b;
    struct store_copied got;
    struct err err = {0};
    (void)state;
    bed_init(&b, NULL);
    _cleanup_(freep) char *to = xasprintf("%s/copy.db", b.dir);
    _cleanup_(freep) char *later = xasprintf("%s/later.db", b.dir);
    put_jobs(&b, 1, 40);
    assert_int_equal(store_copy(b.path, to, &err), 0);
    put_jobs(&b, 41, 50);
    assert_int_equal(store_copy(b.path, later, &err), 0);
    assert_int_equal(store_copy_check(to, &got, &err), 0);
    assert_int_equal(got.jobs, 40);
    assert_int_equal(got.schema, SCHEMA_VERSION);
    assert_int_equal(store_copy_check(later, &got, &err), 0);
    assert_int_equal(got.jobs, 50);
    assert_int_equal(store_copy(b.path, to, &err), ERR_STORE); /* there is one */
    /* It is a store: it opens where the other one was. */
    bed_close(&b);
    assert_int_equal(rename(to, b.path), 0);
    bed_open(&b, NULL);
    struct bed_answer a;
    bed_list(&b, &(struct store_job_query){.limit = 100}, &a);
    assert_int_equal(a.njobs, 40);
    bed_answer_release(&a);
    bed_release(&b);
}

static void write_at(const char *path, off_t at, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
    (void)close(fd);
}

static void test_what_is_no_copy(void **state)
{
    struct bed b;
    struct store_copied got;
    struct err err = {0};
    (void)state;
    bed_init(&b, NULL);
    _cleanup_(freep) char *to = xasprintf("%s/copy.db", b.dir);
    put_jobs(&b, 1, 400);
    assert_int_equal(store_copy(b.path, to, &err), 0);
    write_at(to, 60, "\x7f"); /* user_version, its first byte */
    assert_int_equal(store_copy_check(to, &got, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "start the newer argusd"));
    assert_int_equal(unlink(to), 0);
    assert_int_equal(store_copy(b.path, to, &err), 0);
    for (off_t at = 4096; at < 10 * 4096; at += 4096)
        write_at(to, at, "nothing of this is a page of a tree");
    assert_true(store_copy_check(to, &got, &err) < 0);
    assert_int_equal(truncate(to, 0), 0);
    assert_true(store_copy_check(to, &got, &err) < 0);
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_of_one_moment),
        cmocka_unit_test(test_what_is_no_copy),
    };
    return cmocka_run_group_tests_name("store/copy", tests, NULL, NULL);
}
