/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: every row in every language, names that are not heard, sentences of before. */
#include "base/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    expect(&all, "waiting_for_cpus",
           "{\"nnodes\":2,\"cpus\":4,\"place\":{\"code\":\"place\",\"args\":{\"before\":3}}}",
           "needs 2 x 4 CPUs beside its GPUs, and where those are free the CPUs are not; 3 before "
           "it in line");
    expect(&all, "held", "{}", "held until it is released");
    expect(&all, "held", "{\"holder\":\"ann\"}", "held by 'ann'; it waits until it is released");
}

static void test_what_is_no_message(void **state)
{
    (void)state;
    expect(&some, "hint_pool", "on pool 'h20', user 'j' holds", "on pool 'h20', user 'j' holds");
    expect(&some, "x", NULL, "");
    expect(&some, NULL, "", "");
    expect(&some, "x", "{broken", "{broken");
    expect(&some, "no_such_code", "{\"error\": \"of Ray\"}", "{\"error\": \"of Ray\"}");
    expect(&some, "hint_pool", "{}", "hint_pool");
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
    char *args = message_args("preempted", claim, &some);
    assert_string_equal(args, "{\"claim\":{\"code\":\"claim\",\"args\":{\"claim_project\":null,"
                              "\"needs\":8,\"guaranteed\":8,\"job\":null}}}");
    free(args);
    assert_null(message_args("preempted", "a sentence", &some));
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

/* The holes of a row, sorted by their order: "{a}{b|}". */
static void holes_of(const char *row, struct buf *ret)
{
    for (const char *p = row; (p = strchr(p, '{')); p++)
        (void)buf_addf(ret, "%.*s ", (int)strcspn(p + 1, "|}"), p + 1);
}

/* Each language says the arguments that the English row says, none is said twice by all rows. */
static void test_every_row_in_every_language(void **state)
{
    const char *code, *row;
    (void)state;
    for (size_t i = 0; (row = message_row(i, MESSAGE_ENGLISH, &code)); i++) {
        struct buf english = BUF_INIT(1024);
        const char *other = message_row(i, MESSAGE_CHINESE, &code);
        assert_true(*code && *row && other && *other);
        holes_of(row, &english);
        for (const char *p = other; (p = strchr(p, '{')); p++) {
            _cleanup_(freep) char *key = xasprintf("%.*s ", (int)strcspn(p + 1, "|}"), p + 1);
            if (!strstr(buf_str(&english), key))
                fail_msg("'%s' says {%s}, which its English row does not", other, key);
        }
        buf_release(&english);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_what_is_no_message),
        cmocka_unit_test(test_sentences_of_before),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_every_row_in_every_language),
    };
    return cmocka_run_group_tests_name("base/message", tests, NULL, NULL);
}
