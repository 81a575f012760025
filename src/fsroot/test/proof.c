/* SPDX-License-Identifier: Apache-2.0 */
/* Records of what was imported: read with care, told in one sentence, summed up. */
#define _GNU_SOURCE
#include "fsroot/attempt/proof.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/unit_dir.h"

#define DRIVER                                                                                     \
    "{\"kind\":\"driver\",\"node\":\"w1\",\"pid\":7,\"python\":\"3.11.2\",\"torch\":\"2.1\","      \
    "\"ray\":null,\"snapshot\":\"verl@a\",\"hash\":\"ab\",\"reward\":{\"file\":\"/r.py\"},"        \
    "\"verl\":{\"version\":\"0.5.0\",\"file\":\"/code/verl/__init__.py\"}}"
#define WORKER "{\"kind\":\"worker\",\"node\":\"w2\",\"pid\":8,\"ray\":\"2.51.1\",\"verl\":null}"
#define BAD(what, found)                                                                           \
    "{\"kind\":\"worker\",\"node\":\"w2\",\"pid\":9,\"mismatch\":{\"what\":\"" what                \
    "\",\"expected\":\"/code\",\"found\":" found "}}"

static void test_record(void **state)
{
    (void)state;
    _cleanup_(proof_record_release) struct proof_record r = {0};
    assert_int_equal(proof_record_from_json(DRIVER, sizeof(DRIVER) - 1, &r, NULL), 0);
    assert_string_equal(r.kind, "driver");
    assert_string_equal(r.node, "w1");
    assert_int_equal(r.pid, 7);
    assert_string_equal(r.verl, "0.5.0");
    assert_string_equal(r.file, "/code/verl/__init__.py");
    assert_string_equal(r.reward, "/r.py");
    assert_string_equal(r.hash, "ab");
    assert_null(r.ray);
    assert_null(r.what);
}

static void test_what_is_no_record(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"kind\":\"driver\"}",
        "{\"kind\":1,\"node\":\"w\"}",
        "{\"kind\":\"worker\",\"node\":\"w\",\"mismatch\":{}}",
        "{\"kind\":\"worker\",\"node\":\"w\",\"mismatch\":{\"what\":\"verl\"}}",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct proof_record r = {.pid = 42};
        struct err err;
        assert_true(proof_record_from_json(bad[i], strlen(bad[i]), &r, &err) < 0);
        assert_true(err.text[0]);
        assert_int_equal(r.pid, 42);
    }
    for (size_t cut = 0; cut < sizeof(DRIVER) - 1; cut++) { /* torn anywhere */
        struct proof_record r = {0};
        assert_true(proof_record_from_json(DRIVER, cut, &r, NULL) < 0);
    }
}

static void test_texts_are_harmless(void **state)
{
    (void)state;
    char text[4096] = "{\"kind\":\"a\\u001b[31m\\n\",\"node\":\"";
    size_t n = strlen(text);
    for (int i = 0; i < 900; i++, n += 2)
        memcpy(text + n, "\xc3\xa9", 2); /* é, over the ceiling, cut between two of them */
    memcpy(text + n, "x\"}", 4);
    _cleanup_(proof_record_release) struct proof_record r = {0};
    assert_int_equal(proof_record_from_json(text, strlen(text), &r, NULL), 0);
    assert_string_equal(r.kind, "a [31m ");
    assert_int_equal(strlen(r.node), 1024);
}

static void assert_sentence(const char *json, const char *want)
{
    _cleanup_(proof_record_release) struct proof_record r = {0};
    assert_int_equal(proof_record_from_json(json, strlen(json), &r, NULL), 0);
    static const struct message_listener english = {.language = MESSAGE_ENGLISH};
    _cleanup_(freep) char *kept = proof_says(&r), *text = message_kept_say(kept, &english);
    assert_non_null(message_kept_code(kept));
    assert_string_equal(text, want);
}

static void test_sentences(void **state)
{
    (void)state;
    assert_sentence(BAD("verl", "\"/site/verl/__init__.py\""),
                    "verl was imported from '/site/verl/__init__.py' and not from '/code' (worker "
                    "process 9 on w2)");
    assert_sentence(
        BAD("verl", "null"),
        "verl was not found, neither in '/code' nor elsewhere (worker process 9 on w2)");
    assert_sentence(BAD("code", "null"),
                    "the job's code_path '/code' is not there (worker process 9 on w2): is the "
                    "shared root mounted whole?");
    assert_sentence(BAD("working_dir", "null"),
                    "the job's working_dir '/code' is not there (worker process 9 on w2): is the "
                    "shared root mounted whole?");
}

static void test_mismatch_is_found(void **state)
{
    assert_null(proof_mismatch(*state)); /* no directory */
    put(*state, "proof/driver-w1-1.json", DRIVER);
    put(*state, "proof/.new-mismatch", BAD("code", "null"));
    put(*state, "proof/mismatch-worker-w2-1.json", "{\"kind\":");
    put(*state, "proof/mismatch-worker-w2-2.json", DRIVER); /* says that all is well */
    put(*state, "proof/mismatch-worker-w2-3.tmp", BAD("code", "null"));
    _cleanup_(freep) char *fifo = xasprintf("%s/proof/mismatch-a.json", (char *)*state);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_null(proof_mismatch(*state));
    put(*state, "proof/mismatch-worker-w2-4.json", BAD("code", "null"));
    _cleanup_(freep) char *text = proof_mismatch(*state);
    assert_true(str_starts(text, "proof_not_there{"));
    assert_non_null(strstr(text, "\"expected\":\"/code\""));
}

static size_t summary_of(const char *dir, int attempt, struct buf *out)
{
    _cleanup_(rootdir_release) struct rootdir proof = ROOTDIR_NONE;
    return rootdir_open(dir, ATTEMPT_PROOF, 0, &proof, NULL) < 0
               ? 0
               : proof_summary(&proof, attempt, out);
}

static void test_summary(void **state)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(64 << 10);
    assert_int_equal(summary_of(*state, 1, &out), 0);
    put(*state, "proof/worker-w2-1.json", WORKER);
    put(*state, "proof/driver-w1-1.json", DRIVER);
    put(*state, "proof/worker-w3-1.json", "torn");
    assert_int_equal(summary_of(*state, 3, &out), 2);
    _cleanup_(json_unrefp) json_t *o = NULL;
    assert_int_equal(json_parse(buf_str(&out), out.len, out.max, &o, NULL), 0);
    assert_int_equal(json_get_int(o, "attempt", 0), 3);
    assert_true(json_get_bool(o, "ok", false));
    assert_string_equal(json_get_str(o, "verl", ""), "0.5.0");
    assert_string_equal(json_get_str(o, "file", ""), "/code/verl/__init__.py");
    assert_string_equal(json_get_str(o, "ray", ""), "2.51.1");
    assert_string_equal(json_get_str(o, "reward", ""), "/r.py");
    assert_int_equal(json_array_size(json_get_array(o, "nodes")), 2);
    const json_t *first = json_array_get(json_get_array(o, "processes"), 0);
    assert_string_equal(json_get_str(first, "kind", ""), "driver");
    assert_true(json_get_bool(first, "ok", false));

    put(*state, "proof/mismatch-worker-w2-1.json", BAD("verl", "\"/site/verl\""));
    buf_reset(&out);
    assert_int_equal(summary_of(*state, 3, &out), 3);
    assert_non_null(strstr(buf_str(&out), "\"ok\":false"));
    _cleanup_(json_unrefp) json_t *bad = NULL;
    assert_int_equal(json_parse(buf_str(&out), out.len, out.max, &bad, NULL), 0);
    assert_true(str_starts(json_get_str(bad, "mismatch", ""), "proof_other_verl{"));
}

static void test_a_job_may_write_there_what_it_likes(void **state)
{
    for (int i = 0; i < 200; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "proof/child-w1-%d.json", i); /* fits */
        put(*state, name, WORKER);
    }
    _cleanup_(buf_release) struct buf out = BUF_INIT(64 << 10);
    assert_int_equal(summary_of(*state, 1, &out), 200);
    _cleanup_(json_unrefp) json_t *o = NULL;
    assert_int_equal(json_parse(buf_str(&out), out.len, out.max, &o, NULL), 0);
    assert_int_equal(json_array_size(json_get_array(o, "processes")), PROOF_SHOWN_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_what_is_no_record),
        cmocka_unit_test(test_texts_are_harmless),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test_setup_teardown(test_mismatch_is_found, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_summary, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_a_job_may_write_there_what_it_likes, root_setup,
                                        root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
