/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of notebook.h: names, the lease's JobSpec, and records that a hostile job may write. */
#include "core/notebook/notebook.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"
#include "core/spec/restart.h"

static const struct ports_range ports = {8700, 8799};

static void test_names(void **state)
{
    static const char *const bad[] = {
        "", "-a", "A", "a/b", "..", "a b", "a.b", "abcdefghijklmnopqrstuvwxyz0123456789abcde"};
    struct notebook n = {.name = (char[]){"main-2"}};
    (void)state;
    assert_int_equal(notebook_check(&n, NULL), 0);
    n.python = (char[]){"python3"};
    assert_int_equal(notebook_check(&n, NULL), ERR_BAD_SPEC);
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err = {0};
        _cleanup_(freep) char *name = xstrdup(bad[i]);
        const struct notebook x = {.name = name};
        assert_int_equal(notebook_check(&x, &err), ERR_BAD_SPEC);
        assert_string_equal(err.message, "notebook_name");
    }
}

static void test_the_lease(void **state)
{
    struct notebook_place at = {
        .tool = "/s/lib/argus_notebook.py", .home = "/s/users/alice", .ports = &ports};
    const struct notebook n = {.name = (char[]){"main"},
                               .owner = (char[]){"alice"},
                               .project = (char[]){"rlhf"},
                               .snapshot = (char[]){"code@1"},
                               .gpus = 0.5,
                               .cpus = 2};
    struct buf out = BUF_INIT(1 << 16);
    (void)state;
    notebook_write_job(&n, &at, &out);
    _cleanup_(json_unrefp) json_t *o = json_loads(buf_str(&out), 0, NULL);
    assert_string_equal(json_get_str(o, "workload", ""), "notebook");
    assert_string_equal(json_get_str(o, "working_dir", ""), "code@1");
    assert_true(json_get_real(o, "n_gpus_per_node", 0) == 0.5);
    const json_t *argv = json_get_array(o, "entrypoint");
    assert_string_equal(json_string_value(json_array_get(argv, 0)), "python3");
    assert_string_equal(json_string_value(json_array_get(argv, 5)), "/n/alice/main");
    assert_string_equal(json_string_value(json_array_get(argv, 9)), "8700-8799");
    assert_int_equal(json_array_size(argv), 10);
    assert_null(json_object_get(o, "pool"));
    buf_reset(&out);
    at.pip_index_url = "https://mirror.example.org/simple";
    notebook_write_job(&n, &at, &out);
    _cleanup_(json_unrefp) json_t *mirrored = json_loads(buf_str(&out), 0, NULL);
    argv = json_get_array(mirrored, "entrypoint");
    assert_int_equal(json_array_size(argv), 12);
    assert_string_equal(json_string_value(json_array_get(argv, 10)), "--pip-index-url");
    assert_string_equal(json_string_value(json_array_get(argv, 11)), at.pip_index_url);
    buf_release(&out);
}

static void test_records(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"port\":22}",
        "{\"port\":8800}",
        "{\"port\":22,\"phase\":\"ready\"}",
        "{\"port\":8700,\"phase\":\"queued\"}",
        "{\"port\":8700,\"phase\":\"\"}",
    };
    static const char good[] =
        "{\"attempt\":2,\"port\":8700,\"seq\":9,\"quiet_s\":1.5,\"kernels\":1,"
        "\"terminals\":2,\"busy\":true,\"host\":\"10.0.0.1\"}";
    struct notebook_report r = {.port = 7};
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++)
        if (notebook_read_report(bad[i], strlen(bad[i]), &ports, &r, NULL) != -EBADMSG)
            fail_msg("'%s' was read", bad[i]);
    assert_int_equal(r.port, 7);
    assert_int_equal(notebook_read_report(good, strlen(good), &ports, &r, NULL), 0);
    assert_true(r.attempt == 2 && r.port == 8700 && r.seq == 9 && r.is_busy);
    assert_int_equal(r.phase, NOTEBOOK_PHASE_READY);
    assert_int_equal(r.quiet, 1500 * USEC_MS);
    static const char odd[] = "{\"port\":8700,\"quiet_s\":-5}";
    assert_int_equal(notebook_read_report(odd, strlen(odd), &ports, &r, NULL), 0);
    assert_int_equal(r.quiet, 0);
}

static void test_a_start_that_is_under_way(void **state)
{
    static const char *const phases[] = {"environment", "server"};
    (void)state;
    for (size_t i = 0; i < array_len(phases); i++) {
        struct notebook_report r = {0};
        _cleanup_(freep) char *text =
            xasprintf("{\"attempt\":3,\"port\":22,\"phase\":\"%s\"}", phases[i]);
        assert_int_equal(notebook_read_report(text, strlen(text), &ports, &r, NULL), 0);
        assert_int_equal(r.attempt, 3);
        assert_int_equal(r.port, 0); /* there is none before it is ready */
        assert_string_equal(notebook_phase_words[r.phase], phases[i]);
    }
}

/* Nobody has to say it: a notebook comes back after its machine was lost, and on another one. */
static void test_it_comes_back(void **state)
{
    const struct notebook_place at = {.tool = "/t", .home = "/h", .ports = &ports};
    const struct notebook n = {.name = (char[]){"main"}, .owner = (char[]){"alice"}, .cpus = 1};
    struct buf out = BUF_INIT(1 << 16);
    struct problems ps = {0};
    struct doc *d = NULL;
    struct spec spec = {0};
    struct restart again;
    (void)state;
    notebook_write_job(&n, &at, &out);
    assert_int_equal(doc_parse(buf_str(&out), out.len, false, &d, &ps), 0);
    assert_int_equal(spec_read(doc_root(d), NULL, &spec, &ps), 0);
    restart_from_spec(&spec, &again);
    assert_true(restart_is_due(&again, FINDING_NODE_LOST, false));
    assert_true(restart_is_due(&again, FINDING_PLATFORM, true)); /* Ray's head was lost */
    assert_true(again.avoid && again.preemptible);
    assert_false(restart_is_due(&again, FINDING_USER_CODE_ERROR, false));
    restart_release(&again);
    spec_release(&spec);
    problems_release(&ps);
    doc_free(d);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_the_lease),
        cmocka_unit_test(test_records),       cmocka_unit_test(test_a_start_that_is_under_way),
        cmocka_unit_test(test_it_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
