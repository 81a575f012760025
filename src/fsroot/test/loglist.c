/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of loglist.h: what is a log of a worker or of the scene, what is known of it, and what a
 * job cannot smuggle in. */
#include "fsroot/logs/loglist.h"

#include <errno.h>
#include <fcntl.h>

#include "base/unit_dir.h"

#define WORKERS "jobs/j/attempts/1/logs/workers/"
#define SCENE "jobs/j/attempts/1/scene/"

/* "w1/worker-a.out 0 Actor 5, …" */
static char *listed(const char *root, enum loglist_source source, const char *node)
{
    struct loglist l = {0};
    struct buf out = BUF_INIT(1 << 20);
    assert_int_equal(loglist_read(root, "j", 1, source, node, &l, NULL), 0);
    for (size_t i = 0; i < l.n; i++) {
        const struct loglist_file *f = &l.v[i];
        assert_int_equal(f->source, source);
        assert_int_equal(buf_addf(&out, "%s%s/%s %d %s %d", i ? ", " : "", f->node, f->name,
                                  (int)f->rank, f->actor ? f->actor : "-", (int)f->bytes),
                         0);
    }
    assert_false(l.is_cut);
    loglist_release(&l);
    return buf_take(&out);
}

static void assert_listed(const char *root,
                          enum loglist_source source,
                          const char *node,
                          const char *want)
{
    _cleanup_(freep) char *got = listed(root, source, node);
    assert_string_equal(got, want);
}

static void test_workers(void **state)
{
    assert_listed(*state, LOGLIST_WORKER, NULL, ""); /* not even a job */
    put(*state, WORKERS "w2/worker-c.out", "123");
    put(*state, WORKERS "w1/worker-a.err", "");
    put(*state, WORKERS "w1/worker-b.out", "12345");
    put(*state, WORKERS "w1/worker-b.out.5", "1234");
    put(*state, WORKERS "w1/worker-b.out.20", "12");
    put(*state, WORKERS "w1/worker-z.out", "1");
    put(*state, WORKERS "w1/ranks.json",
        "{\"worker-b.out\":{\"pid\":7,\"actor\":\"Two\",\"rank\":10},"
        "\"worker-z.out\":{\"pid\":8,\"rank\":2},\"worker-a.err\":{\"actor\":3,\"rank\":-4}}");
    put(*state, WORKERS "w1/other-a.out", "x");
    put(*state, WORKERS "w1/worker-a.log", "x");
    put(*state, WORKERS "w1/worker-\x1b[2J.out", "x");
    put(*state, WORKERS "worker-a.out", "x");
    assert_listed(*state, LOGLIST_WORKER, NULL,
                  "w1/worker-z.out 2 - 1, w1/worker-b.out 10 Two 22, w1/worker-a.err -1 - 0, "
                  "w2/worker-c.out -1 - 3");
    assert_listed(*state, LOGLIST_WORKER, "w2", "w2/worker-c.out -1 - 3");
    assert_listed(*state, LOGLIST_WORKER, "w3", "");
    assert_listed(*state, LOGLIST_WORKER, "../workers/w2", "");
    assert_listed(*state, LOGLIST_SCENE, NULL, "");
    put(*state, WORKERS "w2/ranks.json", "{\"worker-c.out\":");
    assert_listed(*state, LOGLIST_WORKER, "w2", "w2/worker-c.out -1 - 3");
}

static void test_scene(void **state)
{
    put(*state, SCENE "ask", "why");
    put(*state, SCENE "ray_nodes.json", "{}");
    put(*state, SCENE "ray_actors.json", "[1]");
    put(*state, SCENE "other.json", "{}");
    put(*state, SCENE "w1/scene.json", "{}");
    put(*state, SCENE "w1/kernel.txt", "abc");
    put(*state, SCENE "w1/core", "x");
    put(*state, SCENE "w1/logs/python-core-worker-a_7.log", "12");
    put(*state, SCENE "w1/logs/logs/deep.log", "12");
    assert_listed(*state, LOGLIST_SCENE, "w1",
                  "w1/kernel.txt -1 - 3, w1/scene.json -1 - 2, "
                  "w1/logs/python-core-worker-a_7.log -1 - 2");
    assert_listed(*state, LOGLIST_SCENE, NULL,
                  "/ray_nodes.json -1 - 2, /ray_actors.json -1 - 3, "
                  "w1/kernel.txt -1 - 3, w1/scene.json -1 - 2, "
                  "w1/logs/python-core-worker-a_7.log -1 - 2");
}

static void test_links_are_not_followed(void **state)
{
    _cleanup_(freep) char *file = xasprintf("%s/" WORKERS "w1/worker-a.out", (char *)*state);
    _cleanup_(freep) char *node = xasprintf("%s/" WORKERS "w2", (char *)*state);
    _cleanup_(freep) char *ranks = xasprintf("%s/" WORKERS "w1/ranks.json", (char *)*state);
    put(*state, "elsewhere/worker-s.out", "secret");
    put(*state, "elsewhere/ranks.json", "{\"worker-b.out\":{\"rank\":1}}");
    put(*state, WORKERS "w1/worker-b.out", "1");
    assert_int_equal(symlink("/etc/passwd", file), 0);
    assert_int_equal(symlink("../../../../../../elsewhere", node), 0);
    assert_int_equal(symlink("../../../../../../../elsewhere/ranks.json", ranks), 0);
    assert_listed(*state, LOGLIST_WORKER, NULL, "w1/worker-b.out -1 - 1");
    assert_listed(*state, LOGLIST_WORKER, "w2", "");
}

static void test_the_whole_place_is_a_link(void **state)
{
    _cleanup_(freep) char *place = xasprintf("%s/jobs/j/attempts/1/logs", (char *)*state);
    put(*state, "elsewhere/workers/w1/worker-s.out", "secret");
    put(*state, "jobs/j/attempts/1/beat", "");
    assert_int_equal(symlink("../../../../elsewhere", place), 0);
    assert_listed(*state, LOGLIST_WORKER, NULL, "");
}

static void test_ceiling(void **state)
{
    struct loglist l = {0};
    put(*state, WORKERS "w1/ranks.json", "{}");
    for (int i = 0; i <= LOGLIST_FILES_MAX; i++) {
        _cleanup_(freep) char *name =
            xasprintf("%s/" WORKERS "w1/worker-%05d.out", (char *)*state, i);
        _cleanup_(closep) int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
    }
    put(*state, SCENE "w1/kernel.txt", "abc");
    assert_int_equal(loglist_read(*state, "j", 1, LOGLIST_WORKER, NULL, &l, NULL), 0);
    assert_int_equal(l.n, LOGLIST_FILES_MAX);
    assert_true(l.is_cut);
    l.is_cut = false;
    assert_int_equal(loglist_read(*state, "j", 1, LOGLIST_SCENE, NULL, &l, NULL), 0);
    assert_int_equal(l.n, LOGLIST_FILES_MAX);
    assert_true(l.is_cut);
    loglist_release(&l);
}

static void test_path(void **state)
{
    (void)state;
    static const struct {
        enum loglist_source source;
        const char *file, *want;
    } rows[] = {
        {LOGLIST_WORKER, "w1/worker-a.out", "logs/workers/w1/worker-a.out"},
        {LOGLIST_WORKER, "w1/worker-a.err", "logs/workers/w1/worker-a.err"},
        {LOGLIST_WORKER, "w1/driver.log", NULL},
        {LOGLIST_WORKER, "w1/ranks.json", NULL},
        {LOGLIST_WORKER, "worker-a.out", NULL},
        {LOGLIST_WORKER, "/worker-a.out", NULL},
        {LOGLIST_WORKER, "../worker-a.out", NULL},
        {LOGLIST_WORKER, "./worker-a.out", NULL},
        {LOGLIST_WORKER, "w1/../worker-a.out", NULL},
        {LOGLIST_WORKER, "w1/worker-/../../../x.out", NULL},
        {LOGLIST_WORKER, "w1/logs/worker-a.out", NULL},
        {LOGLIST_WORKER, "w1/worker-a.out/", NULL},
        {LOGLIST_WORKER, "w1/", NULL},
        {LOGLIST_WORKER, "", NULL},
        {LOGLIST_WORKER, "w1/worker-\n.out", NULL},
        {LOGLIST_WORKER, "w1/.out", NULL},
        {LOGLIST_SCENE, "w1/kernel.txt", "scene/w1/kernel.txt"},
        {LOGLIST_SCENE, "ray_nodes.json", "scene/ray_nodes.json"},
        {LOGLIST_SCENE, "other.json", NULL},
        {LOGLIST_WORKER, "ray_nodes.json", NULL},
        {LOGLIST_SCENE, "w1/logs/a.log", "scene/w1/logs/a.log"},
        {LOGLIST_SCENE, "w1/logs/../scene.json", NULL},
        {LOGLIST_SCENE, "w1/logs/logs/a.log", NULL},
        {LOGLIST_SCENE, "../scene.json", NULL},
        {LOGLIST_SCENE, "w1/.txt", NULL},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        _cleanup_(freep) char *got = loglist_path(rows[i].source, rows[i].file);
        if (rows[i].want) {
            assert_non_null(got);
            assert_string_equal(got, rows[i].want);
        } else {
            assert_null(got);
        }
    }
}

static void test_sources(void **state)
{
    (void)state;
    enum loglist_source s;
    for (int i = 0; i < LOGLIST_SOURCES; i++) {
        assert_int_equal(
            loglist_source_from_string(loglist_source_to_string((enum loglist_source)i), &s), 0);
        assert_int_equal(s, i);
    }
    assert_int_equal(loglist_source_from_string("driver", &s), -EINVAL);
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_root(test_workers),
        with_root(test_scene),
        with_root(test_links_are_not_followed),
        with_root(test_the_whole_place_is_a_link),
        with_root(test_ceiling),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
