/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: every row in every language, names that are not heard, sentences of before. */
#include "base/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue/message_rows.h"
#include "base/doc/problem.h"
#include "base/str.h"
#include "base/unit.h"

static enum message_hearing hears(enum message_name kind, const char *name, void *arg)
{
    (void)arg;
    if (kind == MESSAGE_JOB && str_eq(name, "gone"))
        return MESSAGE_OVER;
    return str_starts(name, "my") ? MESSAGE_NAMED : MESSAGE_ANOTHERS;
}

static void expect(const struct message_listener *to,
                   const char *code,
                   const char *text,
                   const char *said)
{
    struct buf out = {0};
    assert_string_equal(message_say(code, text, to, &out), said);
    buf_release(&out);
}

static const struct message_listener all = {.language = MESSAGE_ENGLISH};
static const struct message_listener some = {.language = MESSAGE_ENGLISH, .hears = hears};
static const struct message_listener chinese = {.language = MESSAGE_CHINESE, .hears = hears};

static void test_sentences(void **state)
{
    (void)state;
    expect(&all, "queued_behind", "{\"first\":\"j1\"}", "behind 'j1', which is first in line");
    expect(&all, "queued_behind", "{}", "it fits and starts in the next pass");
    expect(&all, "pool_too_small",
           "{\"pool\":\"h20\",\"gpus\":8,\"nodes\":1,\"has\":8,\"needs\":12.5}",
           "pool_too_small (has 8, needs 12.5): the pool 'h20' has 8 GPUs on 1 node; it starts "
           "when enough nodes join");
    expect(&all, "pool_too_small",
           "{\"pool\":\"\",\"gpus\":1,\"nodes\":2,\"nnodes\":3,\"each\":0.5,\"cpus\":4,"
           "\"shared\":1}",
           "pool_too_small: the cluster has 1 GPU on 2 nodes, but no 3 with 0.5 GPUs and 4 CPUs "
           "each, even when empty, or share their GPUs; ask for another shape or fewer CPUs");
    expect(&all, "pool_too_small", "{\"empty_pool\":\"nope\"}",
           "pool 'nope' is unknown: no machine is in it now; 'argus pool ls' shows the pools");
    expect(&all, "pool_too_small", "{\"needs\":4,\"empty_pool\":\"nope\"}",
           "pool_too_small (has 0, needs 4): no machine is in pool 'nope' now; 'argus pool ls' "
           "shows the pools");
    expect(&all, "pool_too_small",
           "{\"has\":8,\"needs\":12,\"few_gpus\":1,\"fit_nodes\":2,\"fit_gpus\":4}",
           "pool_too_small (has 8, needs 12): the pool does not have the GPUs; at most nnodes: 2 "
           "with n_gpus_per_node: 4 fits it");
    expect(
        &all, "pool_too_small",
        "{\"has\":8,\"needs\":8,\"few_gpus\":2,\"node_gpus\":8,\"node_cpus\":8}",
        "pool_too_small (has 8, needs 8): the pool does not have the CPUs or memory beside them, or GPUs "
        "on one node; not even one node with 8 GPUs and 8 CPUs fits it");
    expect(&all, "waiting_for_cpus",
           "{\"nnodes\":2,\"cpus\":4,\"place\":{\"code\":\"place\",\"args\":{\"before\":3}}}",
           "needs 2 x 4 CPUs beside its GPUs, and where those are free the CPUs are not; 3 before "
           "it in line");
    expect(&all, "held", "{}", "held until it is released");
    expect(&all, "held", "{\"holder\":\"ann\"}", "held by 'ann'; it waits until it is released");
}

/* A code that only classes a message, and messages one after the other. */
static void test_a_message_that_is_classed(void **state)
{
    (void)state;
    static const char end[] = "{\"message\":{\"code\":\"attempt_end\",\"args\":{\"parts\":["
                              "{\"code\":\"attempt_killed\",\"args\":{\"signal\":\"SIGKILL\"}},"
                              "{\"code\":\"attempt_strays\",\"args\":{\"processes\":2}}]}}}";
    expect(&all, "unknown", end,
           "the command was killed by SIGKILL; 2 processes it left behind were ended");
    expect(&chinese, "no_such_code", end, "命令被 SIGKILL 杀死；它留下的 2 个进程已结束");
    expect(&all, "unknown", "{\"message\":\"as its shepherd says\"}", "as its shepherd says");
    static const char named[] =
        "{\"message\":{\"code\":\"hint_job_end\",\"args\":{\"job\":\"x\"}}}";
    expect(&some, "user_code_error", named, "starts when another's job ends");
    struct message_page page;
    message_page("user_code_error", named, &some, &page);
    assert_true(page.is_whole);
    assert_null(strstr(page.args, "\"x\""));
    message_page_release(&page);
    struct err err = {.text = "cut"};
    char text[200];
    message_write(text, sizeof(text), MESSAGE_SAYS(err.message, err.text));
    expect(&all, "infra", text, "cut");
}

static void test_what_is_no_message(void **state)
{
    (void)state;
    expect(&some, "hint_pool", "on pool 'h20', user 'j' holds", "on pool 'h20', user 'j' holds");
    expect(&some, "x", NULL, "");
    expect(&some, NULL, "", "");
    expect(&some, "x", "{broken", "{broken");
    expect(&some, "no_such_code", "{\"error\": \"of Ray\"}", "{\"error\": \"of Ray\"}");
    expect(&some, "not_number", "{}", "'' is not a number"); /* an empty text is left out */
}

/* Their texts are part of a chain of hashes, and stay as they were written. */
static void test_sentences_of_before(void **state)
{
    static const char claim[] = "project 'p' needs 8 of its 8 guaranteed GPUs for job 'j1'";
    (void)state;
    expect(&some, "queued_behind", "behind 'j1', which is first",
           "behind another's job, which is first");
    expect(&some, NULL, "submitted again as job 'j1'", "submitted again as another's job");
    expect(&some, "", "it is job 'gone' again", "it is a job that is over again");
    expect(&some, "", "it is job 'my-job' again", "it is job 'my-job' again");
    expect(&some, "preempted", claim,
           "another project needs 8 of its 8 guaranteed GPUs for another's job");
    expect(&some, "preempted", "user 'u' needs 8 for job 'gone",
           "another user needs 8 for another's job");
    expect(&all, "preempted", claim, claim);
}

static void test_names(void **state)
{
    static const char claim[] = "{\"claim\":{\"code\":\"claim\",\"args\":{\"claim_project\":\"p\","
                                "\"needs\":8,\"guaranteed\":8,\"job\":\"secret-job\"}}}";
    char text[256];
    (void)state;
    expect(&some, "queued_behind", "{\"first\":\"j1\"}",
           "behind another's job, which is first in line");
    expect(&some, "hint_job_end", "{\"job\":\"my-job\"}", "starts when job 'my-job' ends");
    expect(&some, "hint_job_end", "{\"job\":\"gone\"}", "starts when a job that is over ends");
    expect(&some, "hint_job_end", "{\"job\":\"j\",\"at\":\"soon\"}",
           "starts when another's job ends, expected soon");
    expect(&some, "preempted", claim,
           "another project needs 8 of its 8 guaranteed GPUs for another's job");
    expect(&all, "preempted", claim,
           "project 'p' needs 8 of its 8 guaranteed GPUs for job 'secret-job'");
    expect(&chinese, "hint_job_end", "{\"job\":\"j\"}", "别人的作业结束后启动");
    message_to_string("preempted", claim, false, text, sizeof(text));
    assert_string_equal(text, "another project needs 8 of its 8 guaranteed GPUs for another's job");
    struct message_page page;
    message_page("preempted", claim, &some, &page);
    assert_string_equal(page.args,
                        "{\"claim\":{\"code\":\"claim\",\"args\":{\"claim_project\":null,"
                        "\"needs\":8,\"guaranteed\":8,\"job\":null}}}");
    expect(&chinese, "preempted", page.args, "其他项目需要其保证的 8 块 GPU 中的 8 块给别人的作业");
    message_page_release(&page);
    message_page("preempted", "a sentence", &some, &page);
    assert_null(page.args);
    message_page_release(&page);
}

static void test_writing(void **state)
{
    struct message m;
    char text[64], small[8];
    (void)state;
    message_begin(&m);
    jout_str(&m.j, "within", "1h");
    message_add(&m, "{\"holder\":\"a\"}");
    message_add(&m, "{}");
    message_end(&m, text, sizeof(text));
    assert_string_equal(text, "{\"within\":\"1h\",\"holder\":\"a\"}");
    message_begin(&m);
    message_add(&m, text);
    message_end(&m, small, sizeof(small));
    assert_string_equal(small, "{}");
}

/* Each hole of `from` is one of `to`, too. */
static bool has_holes_of(const char *from, const char *to)
{
    for (const char *p = from; (p = strchr(p, '{')); p++) {
        size_t n = strcspn(p + 1, "|}");
        const char *at = to;
        while ((at = strchr(at, '{')) &&
               (strncmp(at + 1, p + 1, n) != 0 || !strchr("|}", at[1 + n])))
            at++;
        if (!at)
            return false;
    }
    return true;
}

static void expect_same_holes(const char *one, const char *other)
{
    assert_true(*one && other && *other);
    if (!has_holes_of(one, other) || !has_holes_of(other, one))
        fail_msg("other arguments: '%s' and '%s'", one, other);
}

/* Every row has both languages, its fix too, with the same arguments in each; a row whose arguments
 * an earlier one of its code asks for in full, too, could never be said. */
static void test_every_row_in_every_language(void **state)
{
    const struct message_row *row, *before;
    (void)state;
    for (size_t i = 0; (row = message_row(i)); i++) {
        assert_true(*row->code);
        expect_same_holes(row->said[MESSAGE_ENGLISH], row->said[MESSAGE_CHINESE]);
        assert_true(!row->fix[MESSAGE_ENGLISH] == !row->fix[MESSAGE_CHINESE]);
        if (row->fix[MESSAGE_ENGLISH])
            expect_same_holes(row->fix[MESSAGE_ENGLISH], row->fix[MESSAGE_CHINESE]);
        for (size_t k = 0; k < i && (before = message_row(k)); k++)
            if (str_eq(before->code, row->code) &&
                has_holes_of(before->said[MESSAGE_ENGLISH], row->said[MESSAGE_ENGLISH]))
                fail_msg("'%s' is never said: '%s' comes first", row->said[MESSAGE_ENGLISH],
                         before->said[MESSAGE_ENGLISH]);
    }
}

static void expect_fix(const struct message_listener *to, const char *text, const char *fix)
{
    struct message_page page;
    message_page("root_not_mounted", text, to, &page);
    assert_true(str_eq(page.fix, fix));
    message_page_release(&page);
}

static void test_fixes(void **state)
{
    (void)state;
    expect_fix(&all, "{\"root\":\"/r\"}", "mount it there at the same path: '/r'");
    expect_fix(&chinese, "{\"root\":\"/r\"}", "在那里以相同路径挂载：'/r'");
    expect_fix(&all, "a sentence", NULL);
}

static void test_languages(void **state)
{
    (void)state;
    assert_int_equal(message_language(NULL), MESSAGE_ENGLISH);
    assert_int_equal(message_language("zh-CN,zh;q=0.9,en;q=0.8"), MESSAGE_CHINESE);
    assert_int_equal(message_language("en-US, zh;q=0.5"), MESSAGE_ENGLISH);
    assert_int_equal(message_language("fr, en;q=0.2, zh;q=0.3"), MESSAGE_CHINESE);
    assert_int_equal(message_language("zh;q=0, *"), MESSAGE_ENGLISH);
    assert_int_equal(message_language(",,;q=,zh;q"), MESSAGE_CHINESE);
}

static void test_refusals(void **state)
{
    struct err err;
    char text[64];
    (void)state;
    assert_int_equal(
        message_refuse(&err, ERR_REFUSED, "quota_queued",
                       MESSAGE_ARGS(MESSAGE_STR("user", "ann"), MESSAGE_NUM("queued", 3),
                                    MESSAGE_NUM("limit", 3), MESSAGE_STR("none", ""))),
        ERR_REFUSED);
    assert_string_equal(err.message, "quota_queued");
    assert_string_equal(err.args, "{\"user\":\"ann\",\"queued\":3,\"limit\":3}");
    assert_non_null(strstr(err.text, "'ann' has 3 jobs waiting"));
    assert_int_equal(err_set(&err, ERR_REFUSED, "another"), ERR_REFUSED);
    assert_null(err.message);
    assert_int_equal(message_refuse(NULL, ERR_BUSY, "x", MESSAGE_NO_ARGS), ERR_BUSY);
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("long", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
    assert_string_equal(text, "{\"long\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}"); /* cut */
}

/* What failed below is an argument of what failed above, and words of the system are ours too. */
static void test_refusals_within_refusals(void **state)
{
    static const struct message_listener zh = {.language = MESSAGE_CHINESE};
    struct err err = {0}, again = {0};
    struct buf said = {0};
    (void)state;
    (void)message_refuse(
        &err, -EACCES, "disk_no_read",
        MESSAGE_ARGS(MESSAGE_STR("path", "a"), MESSAGE_STR("why", "Permission denied")));
    assert_int_equal(message_wrap(&err, "unpacked_other"), -EACCES);
    assert_string_equal(err.message, "unpacked_other");
    assert_non_null(strstr(err.text, "not what was packed: 'a' cannot be read: Permission denied"));
    assert_string_equal(message_say(err.message, err.args, &zh, &said),
                        "取回的内容与打包的不同：'a' 不能读取：权限不足");
    _cleanup_(freep) char *kept = message_keep(&err);
    _cleanup_(freep) char *said_kept = message_kept_say(kept, &zh);
    assert_string_equal(said_kept, buf_str(&said));
    assert_int_equal(message_refuse_kept(&again, ERR_REFUSED, kept), ERR_REFUSED);
    assert_string_equal(again.text, err.text);
    assert_string_equal(again.args, err.args);
    assert_int_equal(message_refuse_kept(&again, ERR_REFUSED, "a sentence of before"), ERR_REFUSED);
    assert_string_equal(again.text, "a sentence of before");
    assert_null(again.message);
    assert_int_equal(err_copy(&again, ERR_BUSY, &err), ERR_BUSY);
    assert_int_equal(again.code, ERR_BUSY);
    assert_string_equal(again.message, "unpacked_other");
    assert_int_equal(err_copy(NULL, ERR_BUSY, &err), ERR_BUSY);
    assert_null(message_kept_say(NULL, &zh));
    buf_release(&said);
}

/* Stored without sentences, and said to each reader; a store of before kept sentences alone. */
static void test_stored_problems(void **state)
{
    static const char before[] = "[{\"level\":\"warning\",\"field\":\"a\",\"line\":1,\"column\":2,"
                                 "\"detail\":\"it is odd\",\"hint\":\"mend it\"}]";
    struct problems ps = {0};
    (void)state;
    problems_add(&ps, PROBLEM_WARNING, "n", 3, 4, "not_number",
                 MESSAGE_ARGS(MESSAGE_STR("text", "x")));
    _cleanup_(freep) char *stored = problems_to_stored(&ps);
    assert_null(strstr(stored, "is not a number"));
    _cleanup_(freep) char *zh = problems_stored_say(stored, MESSAGE_CHINESE);
    assert_non_null(strstr(zh, "\"code\":\"not_number\",\"args\":{\"text\":\"x\"},"
                               "\"detail\":\"'x' 不是数字\""));
    _cleanup_(freep) char *old = problems_stored_say(before, MESSAGE_CHINESE);
    assert_non_null(strstr(old, "\"line\":1,\"column\":2,\"code\":null,\"args\":null,"
                                "\"detail\":\"it is odd\",\"hint\":\"mend it\""));
    _cleanup_(freep) char *none = problems_stored_say(NULL, MESSAGE_ENGLISH);
    assert_string_equal(none, "[]");
    problems_release(&ps);
}

/* An error inside another one is said in the reader's language, and in English where it is too long
 * to be an argument whole; so is one that was kept. */
static void test_an_error_inside_another(void **state)
{
    static const char in_chinese[] = "共享根目录不可用：没有用户 'eve'";
    char longest[600];
    struct err why = {0}, err = {0};
    struct buf said = {0};
    struct message_listener zh = {.language = MESSAGE_CHINESE};
    (void)state;
    message_refuse(&why, ERR_NOT_FOUND, "not_found",
                   MESSAGE_ARGS(MESSAGE_STR("noun", "user"), MESSAGE_STR("name", "eve")));
    message_refuse(&err, ERR_UNAVAILABLE, "shared_root_unavailable",
                   MESSAGE_ARGS(MESSAGE_ERR("why", &why)));
    assert_string_equal(err.text, "the shared root cannot be used: no user 'eve'");
    assert_string_equal(message_say(err.message, err.args, &zh, &said), in_chinese);
    buf_release(&said);

    _cleanup_(freep) char *kept = message_keep(&why);
    message_refuse(&err, ERR_UNAVAILABLE, "shared_root_unavailable",
                   MESSAGE_ARGS(MESSAGE_KEPT("why", kept)));
    assert_string_equal(message_say(err.message, err.args, &zh, &said), in_chinese);
    buf_release(&said);
    message_refuse(&err, ERR_UNAVAILABLE, "shared_root_unavailable",
                   MESSAGE_ARGS(MESSAGE_KEPT("why", "{it} has no code")));
    assert_string_equal(err.text, "the shared root cannot be used: {it} has no code");

    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = 0;
    message_refuse(&why, ERR_NOT_FOUND, "not_found",
                   MESSAGE_ARGS(MESSAGE_STR("noun", "user"), MESSAGE_STR("name", longest)));
    message_refuse(&err, ERR_UNAVAILABLE, "shared_root_unavailable",
                   MESSAGE_ARGS(MESSAGE_ERR("why", &why)));
    assert_int_equal(strncmp(err.text, "the shared root cannot be used: no user 'xxxx", 45), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_error_inside_another),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_a_message_that_is_classed),
        cmocka_unit_test(test_what_is_no_message),
        cmocka_unit_test(test_sentences_of_before),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_fixes),
        cmocka_unit_test(test_languages),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_refusals_within_refusals),
        cmocka_unit_test(test_stored_problems),
        cmocka_unit_test(test_every_row_in_every_language),
    };
    return cmocka_run_group_tests_name("base/message", tests, NULL, NULL);
}
