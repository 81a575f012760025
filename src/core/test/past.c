/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of past.h: which runs are alike, and what may be concluded of them. */
#include "core/past/past.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/strv.h"
#include "base/unit.h"

#define ACTOR "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu="
#define CRITIC "critic.ppo_micro_batch_size_per_gpu="
#define ROLLOUT "actor_rollout_ref.rollout.gpu_memory_utilization="
#define TOKENS "actor_rollout_ref.actor.ppo_max_token_len_per_gpu="

/* Words of a command line, apart by blanks, after those of every one. */
static json_t *argv_of(const char *words)
{
    static const char *const all[] = {"python3",
                                      "-m",
                                      "verl.trainer.main_ppo",
                                      "actor_rollout_ref.model.path=/m/qwen",
                                      "data.max_response_length=1024",
                                      "data.train_batch_size=256",
                                      "data.train_files=/d/train.parquet"};
    json_t *argv = json_array();
    for (size_t i = 0; i < array_len(all); i++)
        assert_int_equal(json_array_append_new(argv, json_string(all[i])), 0);
    while (*words) {
        size_t n = strcspn(words, " ");
        assert_int_equal(json_array_append_new(argv, json_stringn(words, n)), 0);
        words += n + (words[n] == ' ');
    }
    return argv;
}

static void line(const char *words, struct past_line *ret)
{
    json_t *argv = argv_of(words);
    past_line_read(argv, ret);
    json_decref(argv);
}

struct told {
    const char *id, *words, *verl, *project;
    enum job_state state; /* zeroed: SUCCEEDED */
    enum finding_class finding;
    double gpus;
    int steps, saves, failures;
    double step_s, ran_s;
};

static void add(struct past *p, const struct told *t)
{
    json_t *metrics =
        json_pack("{s:f, s:[{s:i, s:i, s:i, s:f, s:f, s:i, s:f}]}", "step_seconds", t->step_s,
                  "attempts", "k", 1, "steps", t->steps, "lost", 0, "good_s", t->steps * t->step_s,
                  "lost_s", 0.0, "saves", t->saves, "save_s", t->saves * 40.0);
    json_t *argv = argv_of(t->words);
    assert_non_null(metrics);
    struct past_row row = {.id = t->id,
                           .project = str_or(t->project, "math"),
                           .verl = t->verl,
                           .state = t->state ? t->state : JOB_SUCCEEDED,
                           .nnodes = 1,
                           .gpus_per_node = t->gpus > 0 ? t->gpus : 8,
                           .argv = argv,
                           .metrics = metrics,
                           .ran = (usec_t)(t->ran_s * 1e6),
                           .finding = t->finding,
                           .failures = t->failures};
    past_add(p, &row);
    json_decref(metrics);
    json_decref(argv);
}

/* The objects that are put for a job with these words. */
static char *advice_for(struct past *p, const char *words, bool saving)
{
    struct buf out = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&out);
    struct past_line asked;
    line(words, &asked);
    struct past_kind kind = {.line = &asked, .verl = "0.7.1", .nnodes = 1, .gpus_per_node = 8};
    past_keep(p, &kind);
    jout_open(&j, NULL, '[');
    if (saving)
        (void)past_advise_save(p, &asked, "math", false, &j);
    else
        past_advise_sizes(p, &asked, &j);
    jout_close(&j, ']');
    past_line_release(&asked);
    past_release(p);
    return buf_take(&out);
}

/* words: of the advice, apart by '|'; "" = none is given. */
static void check(char *taken, const char *words)
{
    if (!*words)
        assert_string_equal(taken, "[]");
    while (*words) {
        size_t n = strcspn(words, "|");
        char *part = xstrndup(words, n);
        if (!strstr(taken, part))
            fail_msg("'%s' is not in %s", part, taken);
        free(part);
        words += n + (words[n] == '|');
    }
    free(taken);
}

static void sizes_of(const struct told *runs, const char *asked, const char *words)
{
    struct past p = {0};
    for (size_t i = 0; runs[i].id; i++)
        add(&p, &runs[i]);
    check(advice_for(&p, asked, false), words);
}

#define SIZES(asked, words, ...)                                                                   \
    sizes_of((const struct told[]){__VA_ARGS__, {.id = NULL}}, asked, words)
#define DIED .state = JOB_FAILED, .finding = FINDING_GPU_OOM

static void lines_that_are_alike(void **state)
{
    static const struct {
        const char *a, *b;
        bool alike;
    } all[] = {
        {ACTOR "8", ACTOR "16", true},
        {"trainer.save_freq=5 actor_rollout_ref.actor.optim.lr=1e-6", "trainer.experiment_name=x",
         true},
        {"+ray_kwargs.x=1", "++ray_kwargs.x=1", true},
        {"a.b=1 a.b=2", "a.b=2", true},
        {"data.max_prompt_length=512", "data.max_prompt_length=1024", false},
        {"actor_rollout_ref.rollout.name=vllm", "actor_rollout_ref.rollout.name=sglang", false},
        {"actor_rollout_ref.rollout.n=8", "actor_rollout_ref.rollout.n=16", true},
        {"~critic.x", "", false},
        {"--config-name=mine", "", false},
        {"trainer.device=cpu", "", false},
        {"actor_rollout_ref.model.path=/m/other", "", false},
        {ACTOR "${oc.env:N}", ACTOR "8", false},
    };
    (void)state;
    for (size_t i = 0; i < array_len(all); i++) {
        struct past_line a, b;
        line(all[i].a, &a);
        line(all[i].b, &b);
        if (str_eq(a.alike, b.alike) != all[i].alike)
            fail_msg("'%s' and '%s'", all[i].a, all[i].b);
        past_line_release(&a);
        past_line_release(&b);
    }
}

static void what_a_line_says(void **state)
{
    struct past_line l;
    (void)state;
    past_line_read(NULL, &l);
    assert_null(l.alike);
    line(ROLLOUT "0.6 " ACTOR "8 " TOKENS "9000 trainer.save_freq=20", &l);
    assert_int_equal(l.n, 2); /* rows are not packed: the number of tokens means nothing */
    assert_string_equal(l.sizes[0].key, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu");
    assert_true(fabs(l.sizes[1].value - 0.6) < 1e-9);
    assert_int_equal(l.save_freq, 20);
    past_line_release(&l);
    line("actor_rollout_ref.actor.use_dynamic_bsz=True " ACTOR "8 " TOKENS "9000", &l);
    assert_int_equal(l.n, 1);
    assert_true(str_ends(l.sizes[0].key, "ppo_max_token_len_per_gpu"));
    past_line_release(&l);
    line("actor_rollout_ref.actor.use_dynamic_bsz=True critic.use_dynamic_bsz=False " CRITIC "8",
         &l);
    assert_int_equal(l.n, 1);
    past_line_release(&l);
    struct buf many = BUF_INIT(1 << 16);
    for (int i = 0; i <= PAST_ARGS_MAX; i++)
        (void)buf_addf(&many, "%sa.k%d=1", i ? " " : "", i);
    line(buf_str(&many), &l);
    assert_null(l.alike);
    past_line_release(&l);
    buf_release(&many);
}

static void the_largest_that_worked(void **state)
{
    (void)state;
    SIZES(ACTOR "16", "", {.id = "a", .words = ACTOR "4"});
    SIZES(ACTOR "16", "", {.id = "a", .words = ACTOR "16", DIED}); /* nothing is known that works */
    SIZES(ACTOR "16",
          "\"key\":\"overrides.actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu\"|"
          "\"value\":\"8\"|with 16 job 'a' ran out of GPU memory, with 8 job 'c' succeeded",
          {.id = "a", .words = ACTOR "16", DIED}, {.id = "b", .words = ACTOR "4"},
          {.id = "c", .words = ACTOR "8"});
    SIZES(ACTOR "32", "\"value\":\"8\"|trained 29 steps", {.id = "a", .words = ACTOR "16", DIED},
          {.id = "b", .words = ACTOR "8", .state = JOB_STOPPED, .steps = 29, .step_s = 3});
    SIZES(ACTOR "32", "", {.id = "a", .words = ACTOR "16", DIED},
          {.id = "b", .words = ACTOR "8", .state = JOB_STOPPED, .steps = 2});
    SIZES(ACTOR "8", "", {.id = "a", .words = ACTOR "16", DIED},
          {.id = "b", .words = ACTOR "4"}); /* below what died */
    SIZES(ACTOR "16", "", {.id = "a", .words = ACTOR "16", DIED},
          {.id = "b", .words = ACTOR "16"}); /* once this way, once that */
    SIZES(ACTOR "16", "\"value\":\"4\"", {.id = "a", .words = ACTOR "16", DIED},
          {.id = "b", .words = ACTOR "8"}, {.id = "c", .words = ACTOR "4"},
          {.id = "d", .words = ACTOR "8", DIED});
    SIZES(ACTOR "16", "", {.id = "a", .words = ACTOR "16", DIED},
          {.id = "b", .words = ACTOR "8", .state = JOB_FAILED, .finding = FINDING_NCCL_TIMEOUT});
}

static void only_runs_like_it(void **state)
{
    (void)state;
#define OTHERS(...)                                                                                \
    SIZES(ACTOR "16", "", {.id = "a", .words = ACTOR "16", DIED}, {.id = "b", .words = __VA_ARGS__})
    OTHERS(ACTOR "8 actor_rollout_ref.model.path=/m/small");
    OTHERS(ACTOR "8 data.max_response_length=512");
    OTHERS(ACTOR "8", .gpus = 4);
    OTHERS(ACTOR "8", .verl = "0.5.0");
    OTHERS(ACTOR "6 data.train_batch_size=258"); /* may not divide here */
    SIZES(ACTOR "16", "\"value\":\"8\"", {.id = "a", .words = ACTOR "16", DIED, .verl = "0.7.0"},
          {.id = "b", .words = ACTOR "8 data.train_batch_size=512", .verl = "0.7.1"});
}

static void sizes_go_together(void **state)
{
    (void)state;
    SIZES(ACTOR "16 " CRITIC "16",
          "\"value\":\"8\"|critic.ppo_micro_batch_size_per_gpu\",\"value\":\"4\"|with 16 job 'a'",
          {.id = "a", .words = ACTOR "16 " CRITIC "16", DIED},
          {.id = "b", .words = ACTOR "8 " CRITIC "4"});
    SIZES(ACTOR "16 " CRITIC "16", "together with the others: job 'b'",
          {.id = "a", .words = ACTOR "16 " CRITIC "4", DIED},
          {.id = "b", .words = ACTOR "8 " CRITIC "8"});
    /* It had less of one and more of the other: who knows. */
    SIZES(ACTOR "16 " CRITIC "16", "", {.id = "a", .words = ACTOR "16 " CRITIC "32", DIED},
          {.id = "b", .words = ACTOR "8 " CRITIC "8"});
    SIZES(ACTOR "16 " CRITIC "16", "", {.id = "a", .words = ACTOR "16 " CRITIC "16", DIED},
          {.id = "b", .words = ACTOR "8"});
    SIZES(ACTOR "16 " ROLLOUT "0.9", "gpu_memory_utilization\",\"value\":\"0.6\"",
          {.id = "a", .words = ACTOR "16 " ROLLOUT "0.85", DIED},
          {.id = "b", .words = ACTOR "16 " ROLLOUT "0.6"});
}

static void a_larger_one_that_is_faster(void **state)
{
    (void)state;
#define RUN(name, line, s) {.id = (name), .words = (line), .steps = 50, .step_s = (s)}
    SIZES(ACTOR "4",
          "\"value\":\"16\"|with 16 a step of job 'b' took 42.5 s, with 4 one of job 'a' took 60 s",
          RUN("a", ACTOR "4", 60), RUN("b", ACTOR "16", 42.5), RUN("c", ACTOR "8", 50));
    SIZES(ACTOR "4", "", RUN("b", ACTOR "16", 40));                          /* than what? */
    SIZES(ACTOR "4", "", RUN("a", ACTOR "4", 60), RUN("b", ACTOR "16", 58)); /* hardly */
    SIZES(ACTOR "4", "", RUN("a", ACTOR "4", 60), RUN("a2", ACTOR "4", 40),
          RUN("b", ACTOR "16", 38));
    SIZES(ACTOR "4", "", RUN("a", ACTOR "4", 60), RUN("b", ACTOR "16", 40),
          {.id = "c", .words = ACTOR "16", DIED});
    SIZES(ACTOR "4", "", RUN("a", ACTOR "4", 60),
          RUN("b", ACTOR "16 data.train_batch_size=64", 20));
    SIZES(ACTOR "4", "", RUN("a", ACTOR "4", 60),
          {.id = "b", .words = ACTOR "16", .steps = 2, .step_s = 20});
}

static void saving_of(const struct told *runs, const char *asked, const char *words)
{
    struct past p = {0};
    for (size_t i = 0; runs[i].id; i++)
        add(&p, &runs[i]);
    check(advice_for(&p, asked, true), words);
}

#define SAVING(asked, words, ...)                                                                  \
    saving_of((const struct told[]){__VA_ARGS__, {.id = NULL}}, asked, words)
#define SAVED .steps = 1000, .step_s = 60, .saves = 100

static void how_often_to_save(void **state)
{
    (void)state;
    /* A save takes 40 s, failures are 70000 s apart: 40 times 60 s between two saves. */
    SAVING(
        "trainer.save_freq=5",
        "\"key\":\"save_freq\",\"value\":\"39\"|in 2 runs like it a step took 60 s, a save 40 s, "
        "and failures came 19h26m apart: saving every 39 steps loses the least time, it saves "
        "every 5",
        {.id = "a", .words = "", SAVED, .failures = 1, .ran_s = 70000},
        {.id = "b", .words = "", SAVED, .failures = 1, .ran_s = 70000});
    SAVING("trainer.save_freq=200", "\"value\":\"39\"",
           {.id = "a", .words = "", SAVED, .failures = 1, .ran_s = 70000});
    SAVING("trainer.save_freq=30", "",
           {.id = "a", .words = "", SAVED, .failures = 1, .ran_s = 70000}); /* as good */
    SAVING("trainer.save_freq=5", "", {.id = "a", .words = "", SAVED});     /* none failed */
    SAVING("trainer.save_freq=-1", "", {.id = "a", .words = "", SAVED, .failures = 1});
    SAVING("trainer.save_freq=5", "",
           {.id = "a", .words = "", .steps = 100, .step_s = 60, .failures = 1});
    SAVING("trainer.save_freq=5", "",
           {.id = "a", .words = "", SAVED, .failures = 1, .project = "other"});
    SAVING("trainer.save_freq=5", "",
           {.id = "a", .words = "data.train_batch_size=8", SAVED, .failures = 1});
    SAVING("trainer.save_freq=5 trainer.total_training_steps=20", "",
           {.id = "a", .words = "", SAVED, .failures = 1});
    /* What would fail again at once is no failure that saving helps against. */
    SAVING("trainer.save_freq=5", "", {.id = "a", .words = "", SAVED, DIED});
    SAVING("trainer.save_freq=5", "\"key\":\"save_freq\"",
           {.id = "a", .words = "", SAVED, .state = JOB_FAILED, .finding = FINDING_NODE_LOST});
}

static void no_more_runs_than_there_is_room(void **state)
{
    struct past p = {0};
    (void)state;
    for (int i = 0; i < PAST_RUNS_MAX + 10; i++)
        add(&p, &(struct told){.id = "a", .words = ACTOR "4"});
    assert_int_equal(p.n, PAST_RUNS_MAX);
    past_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_are_alike),
        cmocka_unit_test(what_a_line_says),
        cmocka_unit_test(the_largest_that_worked),
        cmocka_unit_test(only_runs_like_it),
        cmocka_unit_test(sizes_go_together),
        cmocka_unit_test(a_larger_one_that_is_faster),
        cmocka_unit_test(how_often_to_save),
        cmocka_unit_test(no_more_runs_than_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
