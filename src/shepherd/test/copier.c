/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that grow, in segments, behind a veil; whose they are; and a target that cannot be written.
 */
#define _GNU_SOURCE
#include "shepherd/scout/copier.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/unit.h"
#include "base/unit_dir.h"
#include "shepherd/test/full.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef01234567"
#define OUT "worker-" ID "-02000000-17.out"
#define HEAD ":job_id:02000000\n:actor_name:Actor\n"

static char *path_of(const char *dir, const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void write_to(const char *dir, const char *name, const char *text, const char *mode)
{
    _cleanup_(freep) char *path = path_of(dir, name);
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static char *text_of(const char *dir, const char *name)
{
    _cleanup_(freep) char *path = path_of(dir, name);
    struct buf b = BUF_INIT(1 << 20);
    int r = file_read(path, &b, NULL);
    return r < 0 ? NULL : buf_take(&b);
}

static void assert_copy(const struct copier *c, const char *name, const char *expected)
{
    _cleanup_(freep) char *got = text_of(c->to, name);
    if (!expected) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_string_equal(got, expected);
}

static void begin(struct copier *c, const char *dir, struct veil *veil)
{
    _cleanup_(freep) char *from = path_of(dir, "from"), *to = path_of(dir, "to/w1");
    assert_int_equal(mkdir(from, 0755), 0);
    copier_init(c, from, to, veil, NULL);
}

static void turn(struct copier *c, bool last)
{
    while (copier_turn(c, last))
        ;
}

static void test_names(void **state)
{
    (void)state;
    static const char *const others[] = {"worker-" ID "-02000000-17.log",
                                         "worker-" ID "-17.out",
                                         "worker-x-02000000-17.out",
                                         "worker-" ID "-02000000-.out",
                                         "worker-" ID "-02000000-17.out.1",
                                         "io_worker-" ID "-02000000-17.out",
                                         "worker-" ID ID "-02000000-17.out",
                                         "worker-" ID "-02000000-12345678901.out",
                                         "raylet.out",
                                         ""};
    struct copier_file f = {0};
    assert_true(copier_parse(OUT, &f));
    assert_string_equal(f.worker, ID);
    assert_string_equal(f.job, "02000000");
    assert_int_equal(f.pid, 17);
    assert_true(copier_parse("worker-" ID "-ffffffff-1.err", &f));
    for (size_t i = 0; i < array_len(others); i++)
        assert_false(copier_parse(others[i], &f));
}

static void test_it_grows(void **state)
{
    struct copier c;
    begin(&c, *state, NULL);
    copier_mark(&c, "02000000-17");
    turn(&c, false); /* nothing is there */
    write_to(c.from, OUT, ":job_id:02000000\n", "w");
    turn(&c, false);
    assert_copy(&c, OUT, NULL); /* it is not known yet what it is */
    write_to(c.from, OUT, ":actor_name:Actor\none", "a");
    turn(&c, false);
    assert_copy(&c, OUT, HEAD "one");
    write_to(c.from, OUT, " two\n", "a");
    turn(&c, false);
    turn(&c, true);
    assert_copy(&c, OUT, HEAD "one two\n");
    assert_copy(&c, "ranks.json",
                "{\"" OUT "\":{\"pid\":17,\"worker\":\"" ID
                "\",\"job\":\"02000000\",\"actor\":\"Actor\"}}");
    copier_release(&c);
}

/* Ray's supervisors of all jobs share one id: of theirs nothing is ours. */
static void test_whose(void **state)
{
    struct copier c;
    begin(&c, *state, NULL);
    copier_mark(&c, "01000000-5");
    copier_mark(&c, "02000000-17");
    copier_mark(&c, "nonsense");
    copier_mark(&c, "02000000-");
    write_to(c.from, "worker-" ID "-01000000-5.out",
             ":job_id:01000000\n:actor_name:JobSupervisor\n", "w");
    write_to(c.from, "worker-" ID "-01000000-6.out",
             ":job_id:01000000\n:actor_name:JobSupervisor\n", "w");
    write_to(c.from, OUT, HEAD, "w");
    write_to(c.from, "worker-" ID "-02000000-18.err", HEAD "unmarked\n", "w");
    write_to(c.from, "worker-" ID "-03000000-19.err", HEAD "another job's\n", "w");
    turn(&c, false);
    turn(&c, true);
    assert_copy(&c, OUT, HEAD);
    assert_copy(&c, "worker-" ID "-02000000-18.err", HEAD "unmarked\n");
    assert_copy(&c, "worker-" ID "-03000000-19.err", NULL);
    assert_copy(&c, "worker-" ID "-01000000-5.out", NULL);
    assert_copy(&c, "worker-" ID "-01000000-6.out", NULL);
    assert_int_equal(c.marks.n, 2);
    copier_release(&c);
}

static void test_secrets(void **state)
{
    struct copier c;
    _cleanup_(strv_release) struct strv values = {0};
    strv_add(&values, "canary-0123456789");
    struct veil *veil = veil_new(&values);
    begin(&c, *state, veil);
    copier_mark(&c, "02000000-17");
    copier_mark(&c, "02000000-18");
    write_to(c.from, OUT, HEAD "a canary-01234", "w");
    write_to(c.from, "worker-" ID "-02000000-18.out", HEAD "b canary-0123456789 ", "w");
    turn(&c, false);
    assert_copy(&c, OUT, HEAD "a ");
    assert_copy(&c, "worker-" ID "-02000000-18.out", HEAD "b *** ");
    write_to(c.from, OUT, "56789 c\n", "a"); /* the rest of it comes much later */
    turn(&c, false);
    assert_copy(&c, OUT, HEAD "a *** c\n");
    write_to(c.from, OUT, "canary-01234", "a");
    turn(&c, true);
    assert_copy(&c, OUT, HEAD "a *** c\n***");
    copier_release(&c);
    veil_free(veil);
}

static void add_lines(struct copier *c, int from, int to)
{
    struct buf b = BUF_INIT(1 << 20);
    for (int i = from; i < to; i++)
        assert_int_equal(buf_addf(&b, "line %04d\n", i), 0); /* ten bytes */
    write_to(c->from, OUT, buf_str(&b), "a");
    buf_release(&b);
}

/* The beginning and the newest segments stay; each is whole lines, at its place in all of it. */
static void test_segments(void **state)
{
    struct copier c;
    begin(&c, *state, NULL);
    c.first = 1000;
    c.next = 500;
    copier_mark(&c, "02000000-17");
    for (int i = 0; i < 400; i += 20) {
        add_lines(&c, i, i + 20);
        turn(&c, false);
    }
    turn(&c, true);
    const struct copier_file *f = &c.v[0];
    _cleanup_(freep) char *first = text_of(c.to, OUT);
    assert_int_equal(strlen(first), 1000);
    assert_memory_equal(first, "line 0000\n", 10);
    uint64_t at[] = {f->left[0], f->begin};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_(freep) char *name = xasprintf(OUT ".%llu", (unsigned long long)at[i]);
        _cleanup_(freep) char *text = text_of(c.to, name);
        assert_non_null(text);
        assert_true(strlen(text) <= 500);
        assert_memory_equal(text, "[argus] ", 8);
        if (i == 0)
            assert_int_equal(at[0] + strlen(text), at[1]); /* nothing is missing between */
        else
            assert_string_equal(text + strlen(text) - 10, "line 0399\n");
    }
    _cleanup_(freep) char *gone = xasprintf(OUT ".%d", 1000);
    assert_copy(&c, gone, NULL);
    assert_true(f->stored <= 2000);
    assert_int_equal(f->read, 4000);
    copier_release(&c);
}

static void test_a_flood(void **state)
{
    struct copier c;
    begin(&c, *state, NULL);
    c.first = 1000;
    c.next = 500;
    copier_mark(&c, "02000000-17");
    add_lines(&c, 0, 150);
    turn(&c, false);
    add_lines(&c, 150, 1000); /* at once: more than would be kept */
    turn(&c, false);
    _cleanup_(freep) char *name = xasprintf(OUT ".%llu", (unsigned long long)c.v[0].begin);
    _cleanup_(freep) char *text = text_of(c.to, name);
    assert_non_null(strstr(text, "line 0999\n"));
    bool is_told = false;
    for (size_t i = 0; i < COPIER_KEPT; i++) {
        _cleanup_(freep) char *part =
            xasprintf(OUT ".%llu", (unsigned long long)(i ? c.v[0].left[0] : c.v[0].begin));
        _cleanup_(freep) char *got = text_of(c.to, part);
        is_told = is_told || (got && strstr(got, "bytes of output dropped here"));
    }
    assert_true(is_told);
    assert_int_equal(c.v[0].read, 10000);
    copier_release(&c);
}

static size_t count_in(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += str_starts(e->d_name, OUT);
    assert_int_equal(closedir(d), 0);
    return n;
}

/* A segment that could not be filled and then begins elsewhere leaves nothing behind. */
static void test_a_flood_and_a_full_disk(void **state)
{
    struct copier c;
    begin(&c, *state, NULL);
    c.first = 1000;
    c.next = 500;
    copier_mark(&c, "02000000-17");
    for (int i = 0; i < 400; i += 20) {
        add_lines(&c, i, i + 20);
        turn(&c, false);
    }
    uint64_t stored = c.stored;
    for (int i = 400; i < 1100; i += 350) {
        add_lines(&c, i, i + 350);
        limit_files(200); /* the first line of a segment goes in, what follows does not */
        assert_false(copier_turn(&c, false));
        limit_files(RLIM_INFINITY);
        assert_true(c.trouble[0]);
        assert_true(c.stored < stored); /* older ones made room */
    }
    turn(&c, true);
    assert_int_equal(c.v[0].read, 11000);
    assert_int_equal(count_in(c.to), 1 + 1 + (c.v[0].left[0] != 0)); /* first, left, of now */
    assert_true(c.stored == c.v[0].stored && c.stored <= 2000);
    copier_release(&c);
}

/* There is room for one segment, which went for another that could not be filled. */
static void test_a_full_node_and_a_full_disk(void **state)
{
    struct copier c;
    struct stat st;
    begin(&c, *state, NULL);
    c.room = 0;
    c.first = 1000;
    c.next = 500;
    copier_mark(&c, "02000000-17");
    for (int i = 0; i < 120; i += 20) {
        add_lines(&c, i, i + 20);
        turn(&c, false);
    }
    const struct copier_file *f = &c.v[0];
    assert_true(f->begin && f->at > f->begin);
    c.next = f->at - f->begin; /* it is full */
    add_lines(&c, 120, 140);
    limit_files(150);
    assert_false(copier_turn(&c, false));
    limit_files(RLIM_INFINITY);
    assert_true(c.trouble[0]);
    c.next = 500;
    turn(&c, true);
    assert_int_equal(f->read, 1400);
    _cleanup_(freep) char *name = xasprintf(OUT ".%llu", (unsigned long long)f->begin);
    _cleanup_(freep) char *path = path_of(c.to, name), *text = text_of(c.to, name);
    assert_non_null(text);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(strlen(text), st.st_size); /* no hole */
    assert_memory_equal(text, "[argus] ", 8);
    assert_non_null(strstr(text, "line 0139\n"));
    assert_int_equal(count_in(c.to), 2);
    copier_release(&c);
}

static void test_a_full_node(void **state)
{
    struct copier c;
    begin(&c, *state, NULL);
    c.room = 0;
    copier_mark(&c, "02000000-17");
    for (int i = 0; i < 20; i++)
        add_lines(&c, 0, 2000); /* 20 kB each */
    turn(&c, true);
    assert_true(c.stored <= 3 * COPIER_SMALL);
    assert_int_equal(c.v[0].read, 400000);
    copier_release(&c);
}

/* The shared root is away for a while: what was written meanwhile is not lost. */
static void test_a_root_that_is_away(void **state)
{
    struct copier c;
    begin(&c, *state, NULL);
    _cleanup_(freep) char *top = path_of(*state, "to"), *other = path_of(*state, "elsewhere");
    copier_mark(&c, "02000000-17");
    write_to(c.from, OUT, HEAD, "w");
    turn(&c, false);
    assert_int_equal(rename(top, other), 0);
    write_to(*state, "to", "in the way", "w");
    write_to(c.from, OUT, "while it was away\n", "a");
    assert_false(copier_turn(&c, false));
    assert_true(c.trouble[0]);
    assert_int_equal(unlink(top), 0);
    assert_int_equal(rename(other, top), 0);
    turn(&c, false);
    assert_false(c.trouble[0]);
    assert_copy(&c, OUT, HEAD "while it was away\n");
    copier_release(&c);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        WITH_DIR(test_it_grows),
        WITH_DIR(test_whose),
        WITH_DIR(test_secrets),
        WITH_DIR(test_segments),
        WITH_DIR(test_a_flood),
        WITH_DIR(test_a_full_node),
        WITH_DIR(test_a_root_that_is_away),
        WITH_DIR(test_a_flood_and_a_full_disk),
        WITH_DIR(test_a_full_node_and_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
