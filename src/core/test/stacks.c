/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of stacks.h. */
#include "core/metric/stacks.h"

#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/unit.h"

#define SITE "/venv/lib/python3.11/site-packages/"
#define FRAME(fn, file, line) "{\"function\":\"" fn "\",\"file\":\"" file "\",\"line\":" #line "}"
#define ALL_REDUCE                                                                                 \
    FRAME("wait", "/usr/lib/python3.11/threading.py", 320)                                         \
    "," FRAME("all_reduce", SITE "torch/distributed/distributed_c10d.py",                          \
              2806) "," FRAME("train_step", "/job/src/train.py", 40)
#define LOADER                                                                                     \
    FRAME("wait", "/usr/lib/python3.11/multiprocessing/connection.py", 947)                        \
    "," FRAME("_try_get_data", SITE "torch/utils/data/dataloader.py",                              \
              1251) "," FRAME("train_step", "/job/src/train.py", 31)
#define IDLE                                                                                       \
    FRAME("main_loop", SITE "ray/_private/worker.py", 950)                                         \
    "," FRAME("<module>", SITE "ray/_private/workers/default_worker.py", 330)
#define COMPUTE FRAME("step", "/job/src/optim.py", 12)

struct seen {
    const char *node, *rank, *actor, *state, *frames;
    int pid;
    double cpu_s;
    int parent;
};

/* What each node says of its processes: those of a node stand side by side. */
static struct stacks *sample(const struct seen *v, size_t n)
{
    struct stacks *s = stacks_new();
    _cleanup_(buf_release) struct buf array = BUF_INIT(1 << 20);
    size_t taken = 0;
    for (size_t i = 0; i < n; i++) {
        json_t *o = NULL;
        _cleanup_(freep) char *rank = v[i].rank ? xasprintf("\"%s\"", v[i].rank) : xstrdup("null");
        _cleanup_(freep) char *text = xasprintf(
            "%s{\"pid\":%d,\"rank\":%s,\"actor\":\"%s\",\"worker\":null,\"cmd\":\"%s\","
            "\"state\":\"%s\",\"cpu_s\":%g,\"parent\":%d,\"by\":\"py-spy\",\"error\":null,"
            "\"threads\":[{\"name\":\"MainThread\",\"id\":%d,\"active\":true,\"frames\":[%s]}]}",
            array.len ? "," : "[", v[i].pid, rank, str_or(v[i].actor, "WorkerDict"),
            v[i].parent ? "python -c loader" : "ray::WorkerDict.update", str_or(v[i].state, "S"),
            v[i].cpu_s, v[i].parent, v[i].pid, v[i].frames);
        assert_int_equal(buf_adds(&array, text), 0);
        taken++;
        if (i + 1 < n && !strcmp(v[i].node, v[i + 1].node))
            continue;
        assert_int_equal(buf_adds(&array, "]"), 0);
        assert_int_equal(json_parse(array.data, array.len, 1 << 20, &o, NULL), 0);
        assert_int_equal(stacks_add(s, v[i].node, o), taken);
        json_decref(o);
        buf_reset(&array);
        taken = 0;
    }
    return s;
}

static struct stacks_verdict judge(const struct seen *a, const struct seen *b, size_t n)
{
    struct stacks_verdict v;
    struct stacks *first = sample(a, n), *second = sample(b, n);
    stacks_judge(first, second, &v);
    stacks_free(first);
    stacks_free(second);
    return v;
}

static const char *told(const struct stacks_verdict *v, char said[static STACKS_TEXT_MAX])
{
    message_to_string("stacks", v->text, true, said, STACKS_TEXT_MAX);
    return said;
}

static void the_one_in_the_loader(void **state)
{
    (void)state;
    const struct seen s[] = {{"w1", "0", .pid = 10, .frames = ALL_REDUCE},
                             {"w1", "1", .pid = 11, .frames = ALL_REDUCE},
                             {"w2", "2", .pid = 12, .frames = LOADER},
                             {"w2", "3", .pid = 13, .frames = ALL_REDUCE}};
    char said[STACKS_TEXT_MAX];
    struct stacks_verdict v = judge(s, s, 4);
    assert_int_equal(v.processes, 4);
    assert_int_equal(v.moved, 0);
    assert_true(v.has_odd && !v.is_stopped);
    assert_string_equal(v.rank, "2");
    assert_string_equal(v.node, "w2");
    assert_int_equal(v.pid, 12);
    assert_string_equal(told(&v, said),
                        "rank 2 (WorkerDict, pid 12 on w2) stands in _try_get_data "
                        "(torch/utils/data/dataloader.py); 3 of 4 ranks stand in all_reduce "
                        "(torch/distributed/distributed_c10d.py)");
}

/* The odd one of two ranks is the one that does not wait; where the others are in a minority too.
 */
static void who_waits_is_not_odd(void **state)
{
    (void)state;
    const struct seen two[] = {{"w1", "0", .pid = 10, .frames = LOADER},
                               {"w1", "1", .pid = 11, .frames = ALL_REDUCE}};
    struct stacks_verdict v = judge(two, two, 2);
    assert_true(v.has_odd);
    assert_string_equal(v.rank, "0");
}

static void a_stopped_one_is_named_without_its_stack(void **state)
{
    (void)state;
    const struct seen s[] = {{"w1", "0", .pid = 10, .frames = ALL_REDUCE, .cpu_s = 1},
                             {"w1", "1", .pid = 11, .state = "T", .frames = ""},
                             {"w2", "2", .pid = 12, .frames = ALL_REDUCE, .cpu_s = 1}};
    struct seen later[3];
    memcpy(later, s, sizeof(s));
    later[0].cpu_s = later[2].cpu_s = 7; /* they spin */
    char said[STACKS_TEXT_MAX];
    struct stacks_verdict v = judge(s, later, 3);
    assert_true(v.has_odd && v.is_stopped);
    assert_int_equal(v.moved, 0);
    assert_string_equal(v.rank, "1");
    assert_true(str_starts(told(&v, said),
                           "rank 1 (WorkerDict, pid 11 on w1) is stopped (state T); "
                           "2 of 3 ranks stand in all_reduce"));
}

/* One that answered nothing and waits for its next call while others wait for it. */
static void an_idle_one_is_odd_among_those_at_work(void **state)
{
    (void)state;
    const struct seen s[] = {{"w1", "0", .pid = 10, .frames = ALL_REDUCE},
                             {"w1", "1", .pid = 11, .frames = ALL_REDUCE},
                             {"w2", "2", .pid = 12, .frames = IDLE},
                             {"w2", "0", "Critic", .pid = 20, .frames = IDLE},
                             {"w2", "1", "Critic", .pid = 21, .frames = IDLE}};
    char said[STACKS_TEXT_MAX];
    struct stacks_verdict v = judge(s, s, 5);
    assert_true(v.has_odd);
    assert_int_equal(v.pid, 12);
    assert_non_null(strstr(told(&v, said), "waits for its next call; 2 of 3 ranks"));
}

/* As Python 3.11 and later name them. Of two that step together one has done its part. */
static void the_only_one_at_work_is_odd(void **state)
{
    (void)state;
    static const char idle[] = FRAME("Worker.main_loop", SITE "ray/_private/worker.py", 1057);
    static const char busy[] = FRAME("Trainer.step", "/job/src/train.py", 13) "," FRAME(
        "Worker.main_loop", SITE "ray/_private/worker.py", 1057);
    static const char waits[] = FRAME("NCCLGroup.allreduce", SITE "ray/util/collective/nccl.py",
                                      7) "," FRAME("Trainer.step", "/job/src/train.py", 13);
    struct seen s[] = {{"w1", "0", .pid = 10, .frames = idle},
                       {"w2", "1", .pid = 11, .frames = busy}};
    char said[STACKS_TEXT_MAX];
    struct stacks_verdict v = judge(s, s, 2);
    assert_true(v.has_odd && !v.moved);
    assert_string_equal(v.rank, "1");
    assert_non_null(
        strstr(told(&v, said), "rank 1 (WorkerDict, pid 11 on w2) stands in Trainer.step"));
    s[1].frames = waits; /* for the other */
    assert_string_equal(judge(s, s, 2).rank, "0");
}

static void what_moves_is_counted(void **state)
{
    (void)state;
    const struct seen a[] = {{"w1", "0", .pid = 10, .frames = COMPUTE, .cpu_s = 0.05},
                             {"w1", "1", .pid = 11, .frames = ALL_REDUCE, .cpu_s = 0.05},
                             {"w1", "0", .pid = 12, .frames = LOADER, .cpu_s = 0.05, .parent = 10}};
    struct seen b[3];
    memcpy(b, a, sizeof(a));
    assert_int_equal(judge(a, b, 3).moved, 0);
    b[0].cpu_s = 4; /* the same line, and it computes */
    assert_int_equal(judge(a, b, 3).moved, 1);
    b[0].cpu_s = 0.05;
    b[0].frames = LOADER;
    assert_int_equal(judge(a, b, 3).moved, 1);
    b[0].frames = COMPUTE;
    b[2].frames = COMPUTE; /* its engine is at work */
    assert_int_equal(judge(a, b, 3).moved, 1);
}

/* Nobody could read the stack of one that may compute, or spin in a collective. */
static void what_is_not_seen_is_no_move(void **state)
{
    (void)state;
    const struct seen a[] = {{"w1", "0", .pid = 10, .frames = "", .cpu_s = 1},
                             {"w1", "1", .pid = 11, .frames = "", .cpu_s = 1}};
    struct seen b[2];
    memcpy(b, a, sizeof(a));
    struct stacks_verdict v = judge(a, b, 2);
    assert_true(v.processes == 2 && !v.moved && !v.unclear && !v.has_odd);
    b[0].cpu_s = 9;
    v = judge(a, b, 2);
    assert_true(v.processes == 2 && !v.moved && v.unclear == 1);
    b[0].state = "T";
    v = judge(a, b, 2);
    assert_true(v.is_stopped && !v.unclear);
}

static void nobody_is_named_without_a_reason(void **state)
{
    (void)state;
    const struct seen same[] = {{"w1", "0", .pid = 10, .frames = ALL_REDUCE},
                                {"w1", "1", .pid = 11, .frames = ALL_REDUCE}};
    const struct seen mixed[] = {{"w1", "0", .pid = 10, .frames = ALL_REDUCE},
                                 {"w1", "1", .pid = 11, .frames = LOADER},
                                 {"w1", "2", .pid = 12, .frames = COMPUTE},
                                 {"w1", "3", .pid = 13, .frames = ALL_REDUCE}};
    const struct seen disks[] = {{"w1", "0", .pid = 10, .frames = COMPUTE, .state = "D"},
                                 {"w1", "1", .pid = 11, .frames = COMPUTE, .state = "D"}};
    char said[STACKS_TEXT_MAX];
    struct stacks_verdict v = judge(same, same, 2);
    assert_false(v.has_odd);
    assert_true(str_starts(told(&v, said), "all 2 ranks stand in all_reduce"));
    assert_false(judge(mixed, mixed, 4).has_odd);
    assert_false(judge(disks, disks, 2).has_odd);
    assert_true(judge(disks, disks, 1).text[0]);
    struct stacks *none = stacks_new();
    stacks_judge(none, none, &v);
    assert_true(!v.has_odd && !v.processes && !*v.text);
    stacks_free(none);
}

static void without_ranks_actors_are_compared(void **state)
{
    (void)state;
    const struct seen s[] = {{"w1", .pid = 10, .frames = ALL_REDUCE},
                             {"w1", .pid = 11, .frames = ALL_REDUCE},
                             {"w2", .pid = 12, .frames = LOADER},
                             {"w2", .actor = "", .pid = 20, .frames = COMPUTE}};
    char said[STACKS_TEXT_MAX];
    struct stacks_verdict v = judge(s, s, 4);
    assert_true(v.has_odd);
    assert_true(str_starts(told(&v, said), "WorkerDict (pid 12 on w2) stands in _try_get_data"));
}

static void strange_answers_are_left_out(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "{\"processes\":[{\"pid\":4}]}",
                                        "[1,null,{}]",
                                        "[{\"pid\":\"x\"},{\"pid\":-4}]",
                                        "[{\"pid\":4,\"cmd\":\"ray::IDLE\"}]"};
    struct stacks *s = stacks_new();
    for (size_t i = 0; i < array_len(texts); i++) {
        json_t *o = NULL;
        assert_int_equal(json_parse(texts[i], strlen(texts[i]), 4096, &o, NULL), 0);
        assert_int_equal(stacks_add(s, "w1", o), 0);
        json_decref(o);
    }
    static const char odd[] = "[{\"pid\":4,\"parent\":4,\"rank\":[],\"cpu_s\":\"much\","
                              "\"threads\":[{\"frames\":[4,{\"function\":1}]},3]}]";
    json_t *o = NULL;
    assert_int_equal(json_parse(odd, strlen(odd), 4096, &o, NULL), 0);
    assert_int_equal(stacks_add(s, "a\033b", o), 1);
    json_decref(o);
    stacks_free(s);
    stacks_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_in_the_loader),
        cmocka_unit_test(who_waits_is_not_odd),
        cmocka_unit_test(a_stopped_one_is_named_without_its_stack),
        cmocka_unit_test(an_idle_one_is_odd_among_those_at_work),
        cmocka_unit_test(the_only_one_at_work_is_odd),
        cmocka_unit_test(what_moves_is_counted),
        cmocka_unit_test(what_is_not_seen_is_no_move),
        cmocka_unit_test(nobody_is_named_without_a_reason),
        cmocka_unit_test(without_ranks_actors_are_compared),
        cmocka_unit_test(strange_answers_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
