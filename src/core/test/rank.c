/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of rank.h: what ranks tell, and which of them is slow. */
#include "core/training/rank.h"

#include <math.h>
#include <string.h>

#include "base/message.h"
#include "base/unit.h"

static const usec_t NOW = 1796000000 * USEC_SEC;

static struct rank_told told(int64_t rank, int64_t world, double work)
{
    struct rank_told t = {.rank = rank,
                          .world = world,
                          .at = NOW - 5 * USEC_SEC,
                          .n = RANK_WINDOWS,
                          .work = work,
                          .wait = 1 - work,
                          .cpu = 0.9 * work,
                          .throttled = 0,
                          .faults = 0,
                          .disk = 0,
                          .rtt = 0.2};
    for (size_t k = 0; k < RANK_WINDOWS; k++)
        t.w[k] = (struct rank_window){.work = work, .wait = 1 - work};
    (void)snprintf(t.node, sizeof(t.node), "w%d", (int)rank);
    return t;
}

enum { WORLD = 8 };

static void world_of(struct rank_told *v, double work)
{
    for (int64_t i = 0; i < WORLD; i++)
        v[i] = told(i, WORLD, work + 0.01 * (double)(i % 3));
}

static void assert_slow(const struct rank_told *v, size_t n, int64_t rank, enum rank_cause cause)
{
    struct rank_verdict got;
    rank_judge(v, n, NOW, &got);
    assert_int_equal(got.ranks, n);
    assert_int_equal(got.is_slow, rank >= 0);
    if (rank < 0)
        return;
    assert_int_equal(got.rank, rank);
    assert_string_equal(rank_cause_to_string(got.cause), rank_cause_to_string(cause));
    assert_true(got.factor > 1);
}

static void one_that_works_longer(void **state)
{
    struct rank_told v[WORLD];
    (void)state;
    world_of(v, 0.5);
    assert_slow(v, WORLD, -1, 0);
    v[3] = told(3, WORLD, 0.95);
    assert_slow(v, WORLD, 3, RANK_COMPUTES);
    v[3].w[2].work = 0.5; /* not for long enough */
    assert_slow(v, WORLD, -1, 0);
    v[3] = told(3, WORLD, 0.55); /* not by much */
    assert_slow(v, WORLD, -1, 0);
    /* Many are uneven work, and no slow ones. */
    for (size_t i = 0; i < 3; i++)
        v[i] = told((int64_t)i, WORLD, 0.95);
    assert_slow(v, WORLD, -1, 0);
    /* What is uneven anyhow hides it. */
    for (int64_t i = 0; i < WORLD; i++)
        v[i] = told(i, WORLD, 0.2 + 0.09 * (double)i);
    assert_slow(v, WORLD, -1, 0);
    /* Two are held against each other. */
    v[0] = told(0, 2, 0.9);
    v[1] = told(1, 2, 0.6);
    assert_slow(v, 2, 0, RANK_COMPUTES);
}

static void why_it_may_be(void **state)
{
    struct rank_told v[WORLD];
    (void)state;
    world_of(v, 0.5);
    v[6] = told(6, WORLD, 0.95);
    v[6].throttled = 0.4;
    assert_slow(v, WORLD, 6, RANK_CPU_CAP);
    v[6].throttled = NAN; /* its system does not tell */
    v[6].cpu = 0.3;
    assert_slow(v, WORLD, 6, RANK_BLOCKED);
    v[6].disk = 5e7;
    assert_slow(v, WORLD, 6, RANK_DISK);
    v[6].faults = 300;
    assert_slow(v, WORLD, 6, RANK_MEMORY);
}

static void a_slow_connection(void **state)
{
    struct rank_told v[WORLD];
    struct rank_verdict got;
    (void)state;
    world_of(v, 0.3);
    v[5].rtt = 40;
    assert_slow(v, WORLD, 5, RANK_NETWORK);
    rank_judge(v, WORLD, NOW, &got);
    assert_true(got.factor > 99 && got.lost > 0.6);
    for (size_t i = 0; i < WORLD; i++)
        v[i].wait = 0.05; /* nobody waits: it costs nothing */
    assert_slow(v, WORLD, -1, 0);
    for (size_t i = 0; i < WORLD; i++)
        v[i].rtt = NAN;
    assert_slow(v, WORLD, -1, 0);
}

/* A rank that tells nothing of now may be the slow one. */
static void ranks_that_say_nothing(void **state)
{
    struct rank_told v[WORLD];
    struct rank_verdict got;
    (void)state;
    world_of(v, 0.5);
    v[3] = told(3, WORLD, 0.95);
    v[7].at = NOW - RANK_FRESH - USEC_SEC;
    rank_judge(v, WORLD, NOW, &got);
    assert_false(got.is_slow || got.is_judged);
    v[7] = told(7, WORLD, 0.5);
    v[7].n = 2;
    rank_judge(v, WORLD, NOW, &got);
    assert_false(got.is_slow || got.is_judged);
    v[7] = v[6]; /* twice the same */
    rank_judge(v, WORLD, NOW, &got);
    assert_false(got.is_slow || got.is_judged);
    rank_judge(v, 0, NOW, &got);
    assert_false(got.is_slow || got.is_judged);
}

/* An actor's and a critic's ranks are not held against each other. */
static void worlds_of_one_job(void **state)
{
    struct rank_told v[2 * WORLD];
    struct rank_verdict got;
    (void)state;
    world_of(v, 0.3);
    world_of(v + WORLD, 0.9);
    for (size_t i = 0; i < WORLD; i++) {
        (void)snprintf(v[i].id, sizeof(v[i].id), "a");
        (void)snprintf(v[WORLD + i].id, sizeof(v[i].id), "b");
    }
    rank_judge(v, 2 * WORLD, NOW, &got);
    assert_true(got.is_judged && !got.is_slow);
    assert_int_equal(got.ranks, WORLD);
    struct rank_told slow = told(2, WORLD, 0.6);
    (void)snprintf(slow.id, sizeof(slow.id), "a");
    v[2] = slow;
    rank_judge(v, 2 * WORLD, NOW, &got);
    assert_true(got.is_slow && got.rank == 2);
}

static bool reads(const char *text, struct rank_told *ret)
{
    return rank_read(text, strlen(text), ret);
}

#define WINDOW(at, work, wait)                                                                     \
    "{\"at\":" #at ",\"seconds\":10,\"work\":" #work ",\"wait\":" #wait                            \
    ",\"calls\":4,\"cpu\":3,\"faults\":20,\"disk_bytes\":1000,\"rtt_ms\":0.5}"

static void what_a_rank_tells(void **state)
{
    struct rank_told t;
    (void)state;
    assert_true(reads("{\"rank\":1,\"world\":2,\"node\":\"w1\",\"pid\":7,\"windows\":["
                      "{\"at\":0,\"seconds\":0.1}," WINDOW(100, 4, 6) "," WINDOW(110, 5, 5) "]}",
                      &t));
    assert_true(t.rank == 1 && t.world == 2 && t.pid == 7 && t.n == 2);
    assert_string_equal(t.node, "w1");
    assert_true(t.at == 110 * USEC_SEC);
    assert_true(fabs(t.w[0].work - 0.5) < 1e-9 && fabs(t.w[1].work - 0.4) < 1e-9);
    assert_true(fabs(t.work - 0.45) < 1e-9 && fabs(t.cpu - 0.3) < 1e-9);
    assert_true(fabs(t.faults - 2) < 1e-9 && fabs(t.rtt - 0.5) < 1e-9);
    assert_true(isnan(t.throttled)); /* not told */
}

static void what_is_none(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"rank\":0,\"world\":2,\"windows\":[]}",
        "{\"rank\":2,\"world\":2,\"windows\":[" WINDOW(1, 1, 1) "]}",
        "{\"rank\":-1,\"world\":2,\"windows\":[" WINDOW(1, 1, 1) "]}",
        "{\"rank\":0,\"world\":2,\"windows\":[" WINDOW(1e300, 1, 1) "]}",
        "{\"rank\":0,\"world\":2,\"windows\":[{\"at\":1,\"seconds\":10,\"work\":1,\"wait\":1,\"calls\":0}]}",
        "{\"rank\":0,\"world\":2,\"windows\":[{\"at\":1,\"seconds\":-1,\"work\":1,\"wait\":1,\"calls\":1}]}",
        "{\"rank\":0,\"world\":2,\"windows\":[{\"at\":1,\"seconds\":10,\"work\":\"x\",\"wait\":1,\"calls\":1}]}",
        "{\"rank\":0,\"world\":2,\"windows\":{\"a\":1}}",
        "{\"rank\":0,\"world\":2,\"windows\":[" WINDOW(1, 1e300, 1) "]}",
        "{\"rank\":0,\"world\":2,\"windows\":[" WINDOW(1, 9, 9) "]}",
    };
    struct rank_told t;
    (void)state;
    for (size_t i = 0; i < array_len(texts); i++)
        if (reads(texts[i], &t))
            fail_msg("%s", texts[i]);
}

static void says_each_cause_in_both_languages(void **state)
{
    (void)state;
    for (int c = 0; c < RANK_CAUSES; c++) {
        struct rank_verdict v = {
            .is_slow = true, .rank = 3, .cause = (enum rank_cause)c, .factor = 1.84, .lost = 0.4};
        struct buf out = BUF_INIT(1 << 14);
        struct jout j = jout_begin(&out);
        char args[512];
        (void)snprintf(v.node, sizeof(v.node), "w7");
        const char *code = rank_message(&v, args, sizeof(args));
        for (int l = 0; l < MESSAGE_LANGUAGES; l++) {
            const struct message_listener to = {.language = (enum message_language)l};
            struct message_page page;
            message_page(code, args, &to, &page);
            assert_true(page.is_whole);
            assert_non_null(page.fix);
            assert_non_null(strstr(page.text, "w7"));
            message_page_release(&page);
        }
        _cleanup_(freep) char *says = rank_to_json(&v, NOW, &j);
        assert_non_null(strstr(says, "rank 3 on w7"));
        assert_non_null(strstr(buf_str(&out), "\"cause\""));
        buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_works_longer),
        cmocka_unit_test(why_it_may_be),
        cmocka_unit_test(a_slow_connection),
        cmocka_unit_test(ranks_that_say_nothing),
        cmocka_unit_test(worlds_of_one_job),
        cmocka_unit_test(what_a_rank_tells),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(says_each_cause_in_both_languages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
