/* SPDX-License-Identifier: Apache-2.0 */
/* A job's directory to an archive and back, with a kill at each step, hostile names and links, and
 * writers that do not wait. */
#define _GNU_SOURCE
#include "fsroot/archive/jobarchive.h"
#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/archive/packtar.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

static char *path_of(const char *root, const char *name)
{
    return xasprintf("%s/%s", root, name);
}

static void touch_at(const char *root, const char *name, int64_t s, long ns)
{
    _cleanup_(freep) char *path = path_of(root, name);
    struct timespec times[2] = {{s, ns}, {s, ns}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void make_sparse(const char *root, const char *name)
{
    _cleanup_(freep) char *path = path_of(root, name);
    _cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT, 0640);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "middle", 6, 5 << 20), 6);
    assert_int_equal(ftruncate(fd, 9 << 20), 0);
}

/* jobs/j1 with one of everything that an archive keeps. */
static int jobarchive_setup(void **state)
{
    if (root_setup(state) < 0)
        return -1;
    const char *root = *state;
    put(root, "outside/secret", "key");
    put(root, "jobs/j1/meta.json", "{\"id\":\"j1\"}\n");
    put(root, "jobs/j1/attempts/1/logs/driver.log", "step:1 - loss:2\n");
    put(root, "jobs/j1/odd/new\nline \xff\xfe %41 'q'", "bytes");
    put(root, "jobs/j1/odd/program", "#!/bin/sh\n");
    put(root, "jobs/j1/odd/empty", "");
    make_sparse(root, "jobs/j1/sparse");
    _cleanup_(freep) char *program = path_of(root, "jobs/j1/odd/program");
    _cleanup_(freep) char *second = path_of(root, "jobs/j1/zz second");
    _cleanup_(freep) char *out = path_of(root, "jobs/j1/odd/out");
    _cleanup_(freep) char *etc = path_of(root, "jobs/j1/odd/etc");
    _cleanup_(freep) char *bare = path_of(root, "jobs/j1/bare");
    assert_int_equal(chmod(program, 04751), 0);
    assert_int_equal(link(program, second), 0);
    assert_int_equal(symlink("../../../outside", out), 0);
    assert_int_equal(symlink("/etc/passwd", etc), 0);
    assert_int_equal(mkdir(bare, 0710), 0);
    touch_at(root, "jobs/j1/odd/out", 1000, 5000);
    touch_at(root, "jobs/j1/odd/program", 2000, 123456000);
    touch_at(root, "jobs/j1/odd", 3000, 7000);
    return 0;
}

static const struct jobarchive *order(void **state, void (*step)(const char *name))
{
    static struct jobarchive a;
    static char dir[512];
    (void)snprintf(dir, sizeof(dir), "%s/argus/archive", (const char *)*state);
    a = (struct jobarchive){.root = *state,
                            .dir = dir,
                            .id = "j1",
                            .token = "0123456789abcdef",
                            .limits = {.bytes = 1 << 30, .entries = 1000},
                            .step = step};
    return &a;
}

/* The text of all that lies there, with hashes: written to nowhere for them. */
static char *text_of_tree(const char *root, const char *below)
{
    _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
    _cleanup_(packlist_release) struct packlist l = {0};
    _cleanup_(closep) int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct packlist_limits limits = {.bytes = 1 << 30, .entries = 1000};
    struct buf out = BUF_INIT(1 << 20);
    struct err err = {0};
    assert_int_equal(rootdir_open(root, below, 0, &d, &err), 0);
    assert_int_equal(packlist_gather(&d, &limits, &l, &err), 0);
    assert_int_equal(packtar_write(&d, &l, "x", fd, NULL, &err), 0);
    packlist_write(&l, &out);
    return buf_take(&out);
}

static int64_t blocks_of(const char *root, const char *name)
{
    struct stat st;
    _cleanup_(freep) char *path = path_of(root, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_blocks;
}

static void test_there_and_back(void **state)
{
    const struct jobarchive *a = order(state, NULL);
    struct jobarchive_made made = {0};
    struct err err = {0};
    _cleanup_(freep) char *before = text_of_tree(*state, "jobs/j1");
    _cleanup_(freep) char *path = jobarchive_path(a);
    if (jobarchive_pack(a, &made, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(jobarchive_finish(a, &err), 0);
    assert_int_equal(made.files, 6);
    assert_true(file_is_there(path));
    assert_text(*state, "jobs/j1/meta.json", "{\"id\":\"j1\"}\n");
    _cleanup_(freep) char *pointer = get(*state, "jobs/j1/archived.json");
    assert_non_null(strstr(pointer, made.hash));
    assert_non_null(strstr(pointer, "argus unarchive j1"));
    assert_null(get(*state, "jobs/j1/attempts/1/logs/driver.log"));
    if (jobarchive_unpack(a, made.hash, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(jobarchive_swap(a, &err), 0);
    _cleanup_(freep) char *after = text_of_tree(*state, "jobs/j1");
    assert_string_equal(before, after);
    assert_false(file_is_there(path));
    assert_true(blocks_of(*state, "jobs/j1/sparse") < (1 << 20) / 512);
    assert_text(*state, "outside/secret", "key");
}

/* The hollow directory comes back alone, without what lay in it; a file that has a name elsewhere
 * too is kept there. */
static void test_hollow(void **state)
{
    struct jobarchive a = *order(state, NULL);
    struct jobarchive_made made = {0};
    struct err err = {0};
    struct stat st;
    a.limits.hollow = "odd";
    assert_int_equal(jobarchive_pack(&a, &made, &err), 0);
    assert_text(*state, "jobs/.argus-old-0123456789abcdef/odd/empty", "");
    assert_int_equal(jobarchive_undo(&a, &err), 0);
    assert_text(*state, "jobs/j1/odd/empty", "");
    assert_int_equal(jobarchive_pack(&a, &made, &err), 0);
    assert_int_equal(jobarchive_finish(&a, &err), 0);
    assert_int_equal(made.files, 4);
    _cleanup_(freep) char *pointer = get(*state, "jobs/j1/archived.json");
    assert_non_null(strstr(pointer, "\"without\":\"odd\""));
    a.limits.hollow = NULL; /* what it is called then does not matter any more */
    assert_int_equal(jobarchive_unpack(&a, made.hash, &err), 0);
    assert_int_equal(jobarchive_swap(&a, &err), 0);
    _cleanup_(freep) char *second = path_of(*state, "jobs/j1/zz second");
    assert_text(*state, "jobs/j1/zz second", "#!/bin/sh\n");
    assert_int_equal(stat(second, &st), 0);
    assert_int_equal(st.st_nlink, 1);
    _cleanup_(freep) char *odd = path_of(*state, "jobs/j1/odd");
    assert_int_equal(stat(odd, &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 3000);
    assert_int_equal(rmdir(odd), 0); /* it is empty */
}

/* ---- killed at each step ---- */

static const char *kill_at;

static void die_there(const char *name)
{
    if (!strcmp(name, kill_at))
        _exit(77);
}

typedef int (*jobarchive_call_f)(const struct jobarchive *a, struct err *err);

static int call_pack(const struct jobarchive *a, struct err *err)
{
    struct jobarchive_made made;
    return jobarchive_pack(a, &made, err);
}

static char known_hash[HASH_HEX];

static int call_unpack(const struct jobarchive *a, struct err *err)
{
    return jobarchive_unpack(a, known_hash, err);
}

/* In a process of its own, which ends at the step. */
static void killed_in(void **state, jobarchive_call_f call, const char *step)
{
    int status = 0;
    kill_at = step;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int r = call(order(state, die_there), NULL);
        _exit(r < 0 ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 77);
}

static int count_names(const char *root, const char *below)
{
    _cleanup_(freep) char *path = path_of(root, below);
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void test_killed_while_it_packs(void **state)
{
    static const char *const steps[] = {"written", "verified", "stub", "away", "placed"};
    _cleanup_(freep) char *before = text_of_tree(*state, "jobs/j1");
    struct err err = {0};
    for (size_t i = 0; i < array_len(steps); i++) {
        killed_in(state, call_pack, steps[i]);
        killed_in(state, jobarchive_undo, "back"); /* and while it is undone */
        if (jobarchive_undo(order(state, NULL), &err) < 0)
            fail_msg("%s: %s", steps[i], err.text);
        _cleanup_(freep) char *after = text_of_tree(*state, "jobs/j1");
        assert_string_equal(before, after);
        assert_int_equal(count_names(*state, "jobs"), 1);
        assert_int_equal(count_names(*state, "argus/archive"), 0);
    }
}

static void test_killed_while_it_comes_back(void **state)
{
    static const char *const steps[] = {"unstubbed", "swapped"};
    _cleanup_(freep) char *before = text_of_tree(*state, "jobs/j1");
    struct jobarchive_made made = {0};
    struct err err = {0};
    for (size_t i = 0; i < array_len(steps); i++) {
        const struct jobarchive *a = order(state, NULL);
        assert_int_equal(jobarchive_pack(a, &made, &err), 0);
        killed_in(state, jobarchive_finish, "removing");
        assert_int_equal(jobarchive_finish(order(state, NULL), &err), 0);
        memcpy(known_hash, made.hash, sizeof(known_hash));
        killed_in(state, call_unpack, "unpacked");
        assert_int_equal(jobarchive_drop(order(state, NULL), &err), 0);
        assert_int_equal(count_names(*state, "jobs"), 1);
        assert_int_equal(count_names(*state, "argus/archive"), 1);
        killed_in(state, call_unpack, "unpacked"); /* and over what that left */
        assert_int_equal(jobarchive_unpack(order(state, NULL), made.hash, &err), 0);
        killed_in(state, jobarchive_swap, steps[i]);
        if (jobarchive_swap(order(state, NULL), &err) < 0)
            fail_msg("%s: %s", steps[i], err.text);
        assert_int_equal(jobarchive_swap(order(state, NULL), &err), 0); /* twice is once */
        _cleanup_(freep) char *after = text_of_tree(*state, "jobs/j1");
        assert_string_equal(before, after);
        assert_int_equal(count_names(*state, "jobs"), 1);
        assert_int_equal(count_names(*state, "argus/archive"), 0);
    }
}

/* ---- others in the directory ---- */

static void **writer_state;

static void write_meanwhile(const char *name)
{
    if (!strcmp(name, kill_at))
        put(*writer_state, "jobs/j1/attempts/1/logs/driver.log", "one line more\n");
}

static void write_late(const char *name)
{
    if (!strcmp(name, kill_at))
        put(*writer_state, "jobs/.argus-old-0123456789abcdef/late", "by an open descriptor\n");
}

static void test_written_meanwhile(void **state)
{
    struct jobarchive_made made;
    struct err err = {0};
    writer_state = state;
    kill_at = "stub";
    assert_int_equal(jobarchive_pack(order(state, write_meanwhile), &made, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.text, "meanwhile"));
    assert_int_equal(jobarchive_undo(order(state, NULL), &err), 0);
    assert_text(*state, "jobs/j1/attempts/1/logs/driver.log", "one line more\n");
    kill_at = "placed";
    assert_int_equal(jobarchive_pack(order(state, write_late), &made, &err), ERR_CONFLICT);
    assert_int_equal(jobarchive_undo(order(state, NULL), &err), 0);
    assert_text(*state, "jobs/j1/late", "by an open descriptor\n");
    assert_int_equal(count_names(*state, "argus/archive"), 0);
}

static void expect_refused(void **state, const char *part)
{
    struct jobarchive_made made;
    struct err err = {0};
    assert_int_equal(jobarchive_pack(order(state, NULL), &made, &err), ERR_REFUSED);
    if (!strstr(err.text, part))
        fail_msg("%s", err.text);
    assert_int_equal(jobarchive_undo(order(state, NULL), &err), 0);
    assert_int_equal(count_names(*state, "jobs"), 1);
}

static void test_what_no_archive_keeps(void **state)
{
    _cleanup_(freep) char *path = path_of(*state, "jobs/j1/odd/pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(state, "'odd/pipe' is a pipe");
    assert_int_equal(unlink(path), 0);
    struct jobarchive a = *order(state, NULL);
    struct jobarchive_made made;
    struct err err = {0};
    a.limits.entries = 5;
    assert_int_equal(jobarchive_pack(&a, &made, &err), ERR_REFUSED);
    a.limits = (struct packlist_limits){.bytes = 1000, .entries = 1000};
    assert_int_equal(jobarchive_pack(&a, &made, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "1000 bytes"));
}

static int names_read;

/* Counted; under its other name, too, which it has where files are large. */
struct dirent *readdir(DIR *dir)
{
    struct dirent *(*real)(DIR *) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "readdir64");
    names_read++;
    return real(dir);
}

/* A directory may have more names than an archive: no more are gathered than that. */
static void test_a_directory_of_many_names(void **state)
{
    enum { NAMES = 3000, ENTRIES = 1000 };
    _cleanup_(freep) char *many = path_of(*state, "jobs/j1/many");
    assert_int_equal(mkdir(many, 0755), 0);
    for (int i = 0; i < NAMES; i++) {
        _cleanup_(freep) char *name = xasprintf("%s/%d", many, i);
        assert_int_equal(symlink("x", name), 0);
    }
    names_read = 0;
    expect_refused(state, "more than 1000 files");
    assert_in_range(names_read, 1, ENTRIES + 100);
}

/* A file of nothing but holes would be hashed for hours. */
static void test_a_file_of_holes(void **state)
{
    struct jobarchive a = *order(state, NULL);
    struct jobarchive_made made;
    struct err err = {0};
    _cleanup_(freep) char *path = path_of(*state, "jobs/j1/sparse");
    assert_int_equal(truncate(path, 9LL << 40), 0);
    a.limits = (struct packlist_limits){.bytes = 10ULL << 40, .entries = 1000};
    assert_int_equal(jobarchive_pack(&a, &made, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "holes"));
}

/* The directory of archives on the root, as a link to elsewhere: nothing is written there. */
static void test_a_link_in_place_of_the_archives(void **state)
{
    struct jobarchive_made made;
    struct err err = {0};
    _cleanup_(freep) char *argus = path_of(*state, "argus");
    _cleanup_(freep) char *link = path_of(*state, "argus/archive");
    assert_int_equal(mkdir(argus, 0755), 0);
    assert_int_equal(symlink("../outside", link), 0);
    assert_int_equal(jobarchive_pack(order(state, NULL), &made, &err), -ELOOP);
    assert_int_equal(count_names(*state, "outside"), 1);
    assert_int_equal(count_names(*state, "jobs/j1"), 6);
}

/* ---- an archive that somebody wrote into ---- */

static void test_a_changed_archive(void **state)
{
    const struct jobarchive *a = order(state, NULL);
    struct jobarchive_made made = {0};
    struct err err = {0};
    assert_int_equal(jobarchive_pack(a, &made, &err), 0);
    assert_int_equal(jobarchive_finish(a, &err), 0);
    _cleanup_(freep) char *path = jobarchive_path(a);
    _cleanup_(closep) int fd = open(path, O_RDWR | O_CLOEXEC);
    char other[HASH_HEX];
    memcpy(other, made.hash, sizeof(other));
    other[0] = other[0] == '0' ? '1' : '0';
    assert_int_equal(jobarchive_unpack(a, other, &err), ERR_REFUSED);
    assert_int_equal(jobarchive_drop(a, &err), 0);
    off_t size = lseek(fd, 0, SEEK_END);
    for (off_t at = 0; at < size; at += 131) {
        unsigned char was, is;
        assert_int_equal(pread(fd, &was, 1, at), 1);
        is = was ^ 0xff;
        assert_int_equal(pwrite(fd, &is, 1, at), 1);
        if (jobarchive_unpack(a, made.hash, &err) == 0)
            fail_msg("a change of byte %ld of %ld was not seen", (long)at, (long)size);
        assert_int_equal(jobarchive_drop(a, &err), 0);
        assert_int_equal(pwrite(fd, &was, 1, at), 1);
    }
    assert_int_equal(ftruncate(fd, size - 40), 0);
    assert_true(jobarchive_unpack(a, made.hash, &err) < 0);
    assert_int_equal(jobarchive_drop(a, &err), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(jobarchive_unpack(a, made.hash, &err), ERR_NOT_FOUND);
    assert_true(file_is_there(path) == false);
    assert_int_equal(count_names(*state, "jobs"), 1);
}

static void run_tar(const char *jobs, const char *path)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execlp("tar", "tar", "--zstd", "--no-recursion", "-P", "-C", jobs, "-cf", path, "j1",
                     "j1/odd", "j1/odd/../../../outside/secret", NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A tar of somebody else, with a path that leads out of the directory. */
static void test_a_foreign_archive(void **state)
{
    const struct jobarchive *a = order(state, NULL);
    struct err err = {0};
    _cleanup_(freep) char *path = jobarchive_path(a);
    _cleanup_(freep) char *dir = path_of(*state, "argus/archive");
    assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    _cleanup_(freep) char *jobs = path_of(*state, "jobs");
    run_tar(jobs, path);
    assert_int_equal(jobarchive_unpack(a, "", &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "leads elsewhere"));
    assert_int_equal(jobarchive_drop(a, &err), 0);
    assert_text(*state, "outside/secret", "key");
}

/* While it is not certain where the job lies, neither the archive nor the directory goes. */
static void test_a_failed_look_moves_nothing(void **state)
{
    static const char old[] = ".argus-old-0123456789abcdef",
                      fresh[] = ".argus-new-0123456789abcdef";
    _cleanup_(freep) char *before = text_of_tree(*state, "jobs/j1");
    struct jobarchive_made made = {0};
    struct err err = {0};
    assert_int_equal(jobarchive_pack(order(state, NULL), &made, &err), 0);
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){old, look_errors[i], 0, false};
        assert_int_equal(jobarchive_undo(order(state, NULL), &err), -look_errors[i]);
        look_broken.name = "j1"; /* the stub */
        assert_int_equal(jobarchive_undo(order(state, NULL), &err), -look_errors[i]);
    }
    look_broken = (struct look_broken){0};
    assert_int_equal(count_names(*state, "argus/archive"), 1);
    assert_int_equal(jobarchive_finish(order(state, NULL), &err), 0);
    assert_int_equal(jobarchive_unpack(order(state, NULL), made.hash, &err), 0);
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){fresh, look_errors[i], 0, false};
        assert_int_equal(jobarchive_swap(order(state, NULL), &err), -look_errors[i]);
        look_broken.name = "j1";
        assert_int_equal(jobarchive_swap(order(state, NULL), &err), -look_errors[i]);
    }
    look_broken = (struct look_broken){0};
    assert_int_equal(count_names(*state, "argus/archive"), 1);
    assert_int_equal(jobarchive_swap(order(state, NULL), &err), 0);
    _cleanup_(freep) char *after = text_of_tree(*state, "jobs/j1");
    assert_string_equal(before, after);
}

int main(void)
{
#define WITH(f) cmocka_unit_test_setup_teardown(f, jobarchive_setup, root_teardown)
    const struct CMUnitTest tests[] = {
        WITH(test_a_failed_look_moves_nothing),
        WITH(test_there_and_back),
        WITH(test_hollow),
        WITH(test_killed_while_it_packs),
        WITH(test_killed_while_it_comes_back),
        WITH(test_written_meanwhile),
        WITH(test_what_no_archive_keeps),
        WITH(test_a_directory_of_many_names),
        WITH(test_a_file_of_holes),
        WITH(test_a_link_in_place_of_the_archives),
        WITH(test_a_changed_archive),
        WITH(test_a_foreign_archive),
    };
    hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
