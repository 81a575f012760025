/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: names, the look before a start, removal, git bundles. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/str.h"
#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/content/snapshot.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/root.h"

static int setup(void **state)
{
    return root_setup(state) || fsroot_prepare(*state, NULL) ||
           fsroot_user_prepare(*state, "alice", NULL);
}

static int teardown(void **state)
{
    int r = dirtree_remove(*state, NULL);
    free(*state);
    return r;
}

static int run(const char *cwd, const char *const *argv)
{
    struct child_spec spec = {.argv = argv, .cwd = cwd, .in = -1, .out = -1, .err = -1};
    struct child c;
    int status = -1;
    if (child_start(&spec, &c, NULL) < 0)
        return -1;
    (void)close(c.pidfd);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    return status;
}

/* "a/one.py", "b.sh" (a program) and a link, as a tar. */
static int make_tar(const char *root, const char *text)
{
    _cleanup_(freep) char *dir = xasprintf("%s/work", root);
    _cleanup_(freep) char *script = xasprintf("%s/work/b.sh", root);
    _cleanup_(freep) char *link = xasprintf("%s/work/l", root);
    _cleanup_(freep) char *tar = xasprintf("%s/work.tar", root);
    const char *const argv[] = {"tar", "cf", tar, "-C", dir, ".", NULL};
    put(root, "work/a/one.py", text);
    put(root, "work/b.sh", "#!/bin/sh\n");
    assert_int_equal(chmod(script, 0755), 0);
    if (symlink("a/one.py", link) < 0)
        assert_int_equal(errno, EEXIST);
    assert_int_equal(run(root, argv), 0);
    int fd = open(tar, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void add(const char *root, const char *text, struct snapshot_made *made)
{
    struct err err = {0};
    struct snapshot_source s = {.root = root, .archive = make_tar(root, text)};
    if (snapshot_make(&s, made, &err) < 0 || err.code)
        fail_msg("%s", err.text);
    (void)close(s.archive);
}

static void test_names(void **state)
{
    const char *root = *state;
    struct snapshot_made one = {0}, two = {0};
    struct err err;
    add(root, "one", &one);
    add(root, "two", &two);
    assert_int_equal(snapshot_link(root, NULL, "verl@1", one.hash, NULL), 0);
    assert_int_equal(snapshot_link(root, "alice", "verl@1", two.hash, NULL), 0);
    assert_text(root, "common/code/verl/1/a/one.py", "one");
    assert_text(root, "users/alice/code/verl/1/a/one.py", "two");
    assert_int_equal(snapshot_link(root, NULL, "verl@1", one.hash, NULL), 0); /* again */
    put(root, "common/code/verl/mine/x", "");
    assert_int_equal(snapshot_link(root, NULL, "verl@mine", one.hash, &err), -EEXIST);
    assert_non_null(strstr(err.text, "is not a snapshot"));
    assert_int_equal(snapshot_unlink(root, NULL, "verl@mine", NULL), 0); /* not ours: stays */
    assert_text(root, "common/code/verl/mine/x", "");
    assert_int_equal(snapshot_unlink(root, NULL, "verl@1", NULL), 0);
    assert_null(get(root, "common/code/verl/1/a/one.py"));
    assert_int_equal(snapshot_unlink(root, "alice", "verl@1", NULL), 0);
    _cleanup_(freep) char *dir = xasprintf("%s/users/alice/code/verl", root);
    assert_false(file_is_there(dir));
    assert_int_equal(snapshot_remove(root, one.hash, NULL), 0);
    assert_int_equal(snapshot_remove(root, one.hash, NULL), 0); /* it is gone */
    assert_int_equal(snapshot_verify(root, one.hash, NULL), -ENOENT);
    assert_int_equal(snapshot_verify(root, two.hash, NULL), 0);
    assert_int_equal(snapshot_remove(root, "../../common", NULL), -EINVAL);
    snapshot_made_release(&one);
    snapshot_made_release(&two);
}

static void refuse(const char *root, const char *hash, const char *why)
{
    struct err err = {0};
    int r = snapshot_verify(root, hash, &err);
    if (r != ERR_REFUSED || !strstr(err.text, why))
        fail_msg("%d: '%s' does not say '%s'", r, err.text, why);
}

static char *in_tree(const char *root, const char *hash, const char *name)
{
    _cleanup_(freep) char *tree = snapshot_tree(root, hash);
    return xasprintf("%s/%s", tree, name);
}

static void unlock(const char *root, const char *hash)
{
    _cleanup_(freep) char *tree = snapshot_tree(root, hash);
    _cleanup_(freep) char *a = in_tree(root, hash, "a");
    _cleanup_(freep) char *one = in_tree(root, hash, "a/one.py");
    assert_int_equal(chmod(tree, 0755) + chmod(a, 0755), 0);
    (void)chmod(one, 0644); /* it may be gone */
}

static void test_verify(void **state)
{
    const char *root = *state;
    struct snapshot_made made = {0};
    add(root, "one", &made);
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    _cleanup_(freep) char *one = in_tree(root, made.hash, "a/one.py");
    _cleanup_(freep) char *tree = snapshot_tree(root, made.hash);

    unlock(root, made.hash); /* touched and the same: read as a whole, and fine */
    assert_int_equal(utimes(one, NULL), 0);
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    put(tree, "__pycache__/x.pyc", "python writes there");
    put(tree, "a/__pycache__/one.pyc", "and there");
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    put(tree, "torch.py", "a shadow");
    refuse(root, made.hash, "'torch.py' was added");
    struct snapshot_made again = {0};
    add(root, "one", &again); /* adding it again heals it */
    assert_string_equal(again.hash, made.hash);
    assert_false(again.existed);
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);

    unlock(root, made.hash);
    put(tree, "a/one.py", "on3"); /* of the same size */
    refuse(root, made.hash, "'a/one.py' is not what it was");
    add(root, "one", &again);
    unlock(root, made.hash);
    assert_int_equal(unlink(one), 0);
    refuse(root, made.hash, "'a/one.py' is gone");
    assert_int_equal(mkfifo(one, 0644), 0);
    refuse(root, made.hash, "is not a plain file any more");
    add(root, "one", &again);
    unlock(root, made.hash);
    _cleanup_(freep) char *link = in_tree(root, made.hash, "l");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    refuse(root, made.hash, "'l' is not the link that it was");
    add(root, "one", &again);
    _cleanup_(freep) char *manifest = xasprintf("%s/../manifest", tree);
    assert_int_equal(file_write(manifest, "argus-snapshot 1\n", 17, 0644, 0, NULL), 0);
    refuse(root, made.hash, "manifest of the snapshot was changed");
    assert_int_equal(unlink(manifest), 0);
    assert_int_equal(snapshot_verify(root, made.hash, NULL), -ENOENT);
    snapshot_made_release(&made);
    snapshot_made_release(&again);
}

/* Bytecode that was in what was added: Python writes it anew, since the time of its source is
 * another one now. */
static void test_bytecode_is_of_no_account(void **state)
{
    const char *root = *state;
    struct snapshot_made made = {0};
    put(root, "work/a/__pycache__/one.pyc", "of the time before");
    put(root, "work/__pycache__/top.pyc", "of the time before");
    add(root, "one", &made);
    _cleanup_(freep) char *tree = snapshot_tree(root, made.hash);
    _cleanup_(freep) char *top = in_tree(root, made.hash, "__pycache__/top.pyc");
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    unlock(root, made.hash);
    put(tree, "a/__pycache__/one.pyc", "written anew, as root");
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    assert_int_equal(unlink(top), 0);
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    put(tree, "a/one.py", "on3");
    refuse(root, made.hash, "'a/one.py' is not what it was");
    snapshot_made_release(&made);
}

/* Damages a file and keeps its size and time, so that a sample cannot tell it. */
static void damage(const char *root, const char *hash)
{
    _cleanup_(freep) char *one = in_tree(root, hash, "a/one.py");
    const struct timeval times[2] = {{.tv_sec = DIRTREE_MTIME}, {.tv_sec = DIRTREE_MTIME}};
    unlock(root, hash);
    assert_int_equal(file_write(one, "on3", 3, 0444, 0, NULL), 0);
    assert_int_equal(utimes(one, times), 0);
}

struct adding {
    struct snapshot_source source;
    struct snapshot_made made;
    int result;
};

static void *add_beside(void *arg)
{
    struct adding *a = arg;
    a->result = snapshot_make(&a->source, &a->made, NULL);
    return NULL;
}

static size_t count_names(const char *root)
{
    _cleanup_(freep) char *store = xasprintf("%s/argus/snapshots", root);
    DIR *dir = opendir(store);
    size_t n = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    assert_int_equal(closedir(dir), 0);
    return n;
}

/* Only one of them puts it there: the other may have been acknowledged, and used, by then. */
static void test_two_heal(void **state)
{
    const char *root = *state;
    struct snapshot_made made = {0};
    struct adding two[2];
    pthread_t threads[2];
    pthread_mutex_t healing = PTHREAD_MUTEX_INITIALIZER;
    add(root, "one", &made);
    _cleanup_(freep) char *tree = snapshot_tree(root, made.hash);
    unlock(root, made.hash);
    put(tree, "torch.py", "a shadow");
    for (int i = 0; i < 2; i++)
        two[i] = (struct adding){
            .source = {.root = root, .archive = make_tar(root, "one"), .healing = &healing}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_beside, &two[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(two[i].result, 0);
        assert_string_equal(two[i].made.hash, made.hash);
        snapshot_made_release(&two[i].made);
        (void)close(two[i].source.archive);
    }
    assert_true(two[0].made.existed != two[1].made.existed);
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    assert_int_equal(count_names(root), 1); /* nothing of the damaged one is left */
    snapshot_made_release(&made);
}

static void test_settle(void **state)
{
    const char *root = *state;
    struct snapshot_made made = {0};
    struct err err;
    add(root, "one", &made);
    _cleanup_(freep) char *mark = in_tree(root, made.hash, "../" SNAPSHOT_SETTLED);
    assert_false(file_is_there(mark));
    damage(root, made.hash); /* as a power cut may leave it: looked at as a whole */
    refuse(root, made.hash, "'a/one.py' is not what it was");
    assert_int_equal(snapshot_settle(root, made.hash, true, &err), ERR_REFUSED);
    assert_false(file_is_there(mark));
    add(root, "one", &made);
    assert_false(made.existed);
    assert_int_equal(snapshot_settle(root, made.hash, true, &err), 0);
    assert_true(file_is_there(mark));
    assert_int_equal(snapshot_settle(root, made.hash, false, &err), 0); /* again */
    damage(root, made.hash); /* settled: by sizes and times */
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    assert_int_equal(snapshot_remove(root, made.hash, NULL), 0);
    assert_int_equal(snapshot_settle(root, made.hash, false, &err), -ENOENT);
    snapshot_made_release(&made);
}

static void test_sweep(void **state)
{
    const char *root = *state;
    struct snapshot_made made = {0};
    add(root, "one", &made);
    put(root, "argus/snapshots/.new-0123/tree/half", "x");
    put(root, "argus/snapshots/.new-gone-abc/tree/half", "x");
    snapshot_sweep(root);
    assert_null(get(root, "argus/snapshots/.new-0123/tree/half"));
    assert_null(get(root, "argus/snapshots/.new-gone-abc/tree/half"));
    assert_int_equal(snapshot_verify(root, made.hash, NULL), 0);
    snapshot_made_release(&made);
}

static void git(const char *dir, const char *a, const char *b, const char *c, const char *d)
{
    const char *const argv[] = {"git", "-c", "user.name=t", "-c", "user.email=t@example.org", a, b,
                                c,     d,    NULL};
    assert_int_equal(run(dir, argv), 0);
}

static void test_bundle(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *dir = xasprintf("%s/repo", root);
    _cleanup_(freep) char *file = xasprintf("%s/b.bundle", root);
    put(dir, "verl/version/version", "0.5.0\n");
    put(dir, "left.txt", "not left out");
    put(dir, ".gitattributes", "left.txt export-ignore\n");
    git(dir, "init", "-q", "-b", "main");
    git(dir, "add", "-A", NULL, NULL);
    git(dir, "commit", "-q", "-m", "one");
    git(dir, "tag", "v1", NULL, NULL);
    put(dir, "verl/version/version", "0.9.1\n");
    git(dir, "commit", "-q", "-a", "-mtwo");
    git(dir, "bundle", "create", "../b.bundle", "--all");
    struct snapshot_source s = {
        .root = root, .work = root, .archive = open(file, O_RDONLY | O_CLOEXEC)};
    struct snapshot_made made = {0};
    struct err err = {0};
    if (snapshot_make(&s, &made, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(made.verl, "0.9.1"); /* HEAD */
    assert_int_equal(made.files, 3);
    snapshot_made_release(&made);
    s.version = "v1";
    assert_int_equal(snapshot_make(&s, &made, &err), 0);
    assert_string_equal(made.verl, "0.5.0"); /* the tag */
    _cleanup_(freep) char *left = in_tree(root, made.hash, "left.txt");
    assert_true(file_is_there(left));
    _cleanup_(freep) char *beside = in_tree(root, made.hash, "../repo");
    assert_false(file_is_there(beside));
    snapshot_made_release(&made);
    assert_int_equal(ftruncate(s.archive, 0), -1);
    (void)close(s.archive);
    assert_int_equal(truncate(file, 200), 0); /* cut off */
    s.archive = open(file, O_RDONLY | O_CLOEXEC);
    assert_int_equal(snapshot_make(&s, &made, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "git cannot read the bundle"));
    (void)close(s.archive);
}

static void test_a_failed_look_replaces_nothing(void **state)
{
    static const int unseen[] = {ESTALE, EIO, EMFILE};
    const char *root = *state;
    struct snapshot_made one = {0};
    _cleanup_(strv_release) struct strv needs = {0};
    struct err err;
    add(root, "one", &one);
    put(root, "users/alice/code/mine/v1", "hers");
    assert_int_equal(snapshot_link(root, "alice", "verl@s1", one.hash, NULL), 0);
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"v1", look_errors[i], 0, false};
        assert_int_equal(snapshot_link(root, "alice", "mine@v1", one.hash, &err), -look_errors[i]);
        look_broken.name = "s1";
        assert_int_equal(snapshot_unlink(root, "alice", "verl@s1", &err), -look_errors[i]);
        assert_non_null(strstr(err.text, strerror(look_errors[i])));
        look_broken = (struct look_broken){"l", look_errors[i], 0, true}; /* in its tree */
        assert_int_equal(snapshot_verify(root, one.hash, &err), -look_errors[i]);
    }
    for (size_t i = 0; i < array_len(unseen); i++) {
        look_broken = (struct look_broken){"requirements.txt", unseen[i], 0, false};
        assert_int_equal(snapshot_read_needs(root, one.hash, &needs, &err), -unseen[i]);
    }
    look_broken = (struct look_broken){"l", ENOENT, 0, true};
    refuse(root, one.hash, "'l' is not the link that it was");
    look_broken = (struct look_broken){0};
    assert_text(root, "users/alice/code/mine/v1", "hers");
    assert_text(root, "users/alice/code/verl/s1/a/one.py", "one");
    assert_int_equal(snapshot_link(root, "alice", "mine@v1", one.hash, &err), -EEXIST);
    assert_int_equal(snapshot_verify(root, one.hash, &err), 0);
    assert_int_equal(snapshot_read_needs(root, one.hash, &needs, &err), 0);
    snapshot_made_release(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_replaces_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytecode_is_of_no_account, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_heal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bundle, setup, teardown),
    };
    hash_init();
    return cmocka_run_group_tests_name("fsroot/snapshot", tests, NULL, NULL);
}
