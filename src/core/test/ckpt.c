/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ckpt.h: names, what is whole, what stays. */
#include "core/metric/ckpt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#include "base/unit.h"

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t step;
    } cases[] = {{"global_step_1", 1},
                 {"global_step_2147483647", INT32_MAX},
                 {"global_step_2147483648", 0},
                 {"global_step_0", 0},
                 {"global_step_-1", 0},
                 {"global_step_+1", 0},
                 {"global_step_01", 0},
                 {"global_step_1e9", 0},
                 {"global_step_ 1", 0},
                 {"global_step_10.tmp", 0},
                 {"global_step_", 0},
                 {".argus-gone-10.1", 0},
                 {"step_1", 0}};
    for (size_t i = 0; i < array_len(cases); i++)
        assert_int_equal(ckpt_step_of_name(cases[i].name), cases[i].step);
}

static void who_is_meant(void **state)
{
    (void)state;
    assert_true(ckpt_is_meant("resume: grpo-7@20\n", "grpo-7", 20));
    assert_false(ckpt_is_meant("resume: grpo-7@200\n", "grpo-7", 20));
    assert_false(ckpt_is_meant("resume: my-grpo-7@20\n", "grpo-7", 20));
    assert_false(ckpt_is_meant("name: grpo-7\nx: a@20\n", "grpo-7", 20));
    assert_false(ckpt_is_meant("resume: grpo-70@20\n", "grpo-7", 20));
    assert_true(ckpt_is_meant("/s/jobs/grpo-7/checkpoints/global_step_20/actor", "grpo-7", 20));
    assert_false(ckpt_is_meant("/s/jobs/grpo-7/checkpoints/global_step_2/actor", "grpo-7", 20));
    assert_true(ckpt_is_meant("a grpo-7, /s/jobs/grpo-7/checkpoints", "grpo-7", 20));
    assert_false(ckpt_is_meant("/s/jobs/grpo-7/logs", "grpo-7", 20));
    assert_false(ckpt_is_meant("resume: grpo-7@0\n", "grpo-7", 20)); /* not all of them */
    assert_true(ckpt_is_meant("a: grpo-7@x\nb: grpo-7@10\nc: grpo-7@20\n", "grpo-7", 20));
}

static void check_marks(const char *text, const char *want)
{
    struct ckpt_list l = {0};
    bool marks[3] = {false};
    char got[4] = "";
    for (int64_t step = 10; step <= 30; step += 10)
        (void)ckpt_list_add(&l, step); /* it is there now */
    assert_int_equal(ckpt_mark_meant(text, "grpo-7", &l, marks), strchr(want, 'x') != NULL);
    for (size_t i = 0; i < array_len(marks); i++)
        got[i] = marks[i] ? 'x' : '.';
    assert_string_equal(got, want);
    ckpt_list_release(&l);
}

static void which_are_meant(void **state)
{
    (void)state;
    check_marks("resume: grpo-7@20\n", ".x.");
    check_marks("a: grpo-7@30\nb: /s/jobs/grpo-7/checkpoints/global_step_10/actor\n", "x.x");
    check_marks("a: grpo-7@10\nb: /s/jobs/grpo-7/checkpoints\n", "xxx");
    check_marks("a: grpo-7@40 my-grpo-7@10 grpo-7@ grpo-7@-1 grpo-7", "...");
}

/* ---- whole ---- */

static void add_shards(struct ckpt_listing *l, const char *dir, int world, int ranks)
{
    static const char *const kinds[] = {"model", "optim", "extra_state"};
    char path[200];
    for (int rank = 0; rank < ranks; rank++)
        for (size_t k = 0; k < array_len(kinds); k++) {
            (void)snprintf(path, sizeof(path), "%s%s%s_world_size_%d_rank_%d.pt", dir,
                           *dir ? "/" : "", kinds[k], world, rank); /* fits */
            ckpt_listing_add(l, path, 100);
        }
}

static void check_whole(struct ckpt_listing *l, bool whole, const char *says)
{
    char why[CKPT_WHY_MAX];
    assert_int_equal(ckpt_listing_is_whole(l, why), whole);
    assert_string_equal(why, says);
    ckpt_listing_free(l);
}

static void whole_ones(void **state)
{
    (void)state;
    struct ckpt_listing *l = ckpt_listing_new();
    add_shards(l, "actor", 2, 2);
    add_shards(l, "critic", 2, 2);
    ckpt_listing_add(l, "data.pt", 10);
    ckpt_listing_add(l, "actor/huggingface/config.json", 0); /* nothing is resumed from it */
    check_whole(l, true, "");
    l = ckpt_listing_new(); /* SFT */
    add_shards(l, "", 4, 4);
    ckpt_listing_add(l, "data_0.pt", 10);
    check_whole(l, true, "");
    l = ckpt_listing_new(); /* Megatron */
    ckpt_listing_add(l, "actor/dist_ckpt/__0_0.distcp", 10);
    ckpt_listing_add(l, "actor/dist_ckpt/.metadata", 10);
    ckpt_listing_add(l, "data.pt", 10);
    check_whole(l, true, "");
    l = ckpt_listing_new(); /* save_contents=[model] */
    ckpt_listing_add(l, "actor/model_world_size_1_rank_0.pt", 10);
    ckpt_listing_add(l, "data.pt", 10);
    check_whole(l, true, "");
}

static void torn_ones(void **state)
{
    (void)state;
    check_whole(ckpt_listing_new(), false, "no_shards{}");
    struct ckpt_listing *l = ckpt_listing_new();
    add_shards(l, "actor", 2, 1);
    ckpt_listing_add(l, "data.pt", 10);
    check_whole(l, false,
                "shards_missing{\"group\":\"actor\",\"there\":1,\"world\":2,\"what\":\"model\"}");
    l = ckpt_listing_new();
    add_shards(l, "actor", 2, 2);
    check_whole(l, false, "no_data_pt{}");
    l = ckpt_listing_new();
    add_shards(l, "actor", 2, 2);
    ckpt_listing_add(l, "critic/model_world_size_2_rank_0.pt", 1);
    ckpt_listing_add(l, "critic/model_world_size_2_rank_0.pt", 1); /* twice is once */
    ckpt_listing_add(l, "data.pt", 10);
    check_whole(l, false,
                "shards_missing{\"group\":\"critic\",\"there\":1,\"world\":2,\"what\":\"model\"}");
    l = ckpt_listing_new();
    add_shards(l, "actor", 2, 2);
    add_shards(l, "actor", 1, 1);
    check_whole(l, false, "shards_mixed{\"group\":\"actor\"}");
    l = ckpt_listing_new();
    add_shards(l, "", 1, 1);
    ckpt_listing_add(l, "data.pt", 0);
    check_whole(l, false, "ckpt_empty_file{\"path\":\"data.pt\"}");
    l = ckpt_listing_new();
    ckpt_listing_add(l, "actor/dist_ckpt/__0_0.distcp", 10);
    check_whole(l, false, "dist_no_metadata{\"group\":\"actor\"}");
    l = ckpt_listing_new();
    ckpt_listing_add(l, "model-00001-of-00002.safetensors", 10);
    check_whole(l, false, "weights_missing{}");
    l = ckpt_listing_new();
    ckpt_listing_add(l, "actor/optimizer/dist_ckpt/__0_0.distcp", 10);
    check_whole(l, false, "dist_no_metadata{\"group\":\"actor\"}");
}

static void known_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool is_known;
    } t[] = {{"actor/model/dist_ckpt/__0_0.distcp", true},
             {"actor/extra/dist_ckpt/.metadata", true},
             {"critic/dist_ckpt/.metadata", true},
             {"actor/model_world_size_2_rank_0.pt", true},
             {"data.pt", false},
             {"actor/huggingface/config.json", false},
             {"actor/other/dist_ckpt/.metadata", false},
             {"weights/rank0.bin", false}};
    for (size_t i = 0; i < array_len(t); i++) {
        struct ckpt_listing *l = ckpt_listing_new();
        ckpt_listing_add(l, t[i].path, 1);
        assert_int_equal(ckpt_listing_is_known(l), t[i].is_known);
        ckpt_listing_free(l);
    }
}

static void odd_names(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "actor/model_world_size_99999_rank_0.pt",  "actor/model_world_size_2_rank_2.pt",
        "actor/model_world_size_0_rank_0.pt",      "actor/model_world_size_2_rank_-1.pt",
        "actor/model_world_size_2_rank_1.pt.tmp",  "actor/model_world_size_9999999999_rank_1.pt",
        "actor/old/model_world_size_2_rank_1.pt",  "other/model_world_size_2_rank_1.pt",
        "actor/huggingface/model.safetensors.tmp", "data_.pt"};
    for (size_t i = 0; i < array_len(paths); i++)
        assert_false(ckpt_is_shard(paths[i]));
    assert_true(ckpt_is_shard("data_17.pt"));
    assert_true(ckpt_is_shard("actor/extra_state_world_size_65536_rank_65535.pt"));
}

/* ---- what stays ---- */

/* "v" verified, "c" complete, "p" partial, "b" broken, "V" held; steps 10, 20, … */
static struct ckpt_list make(const char *states, int64_t tracker)
{
    struct ckpt_list l = {.tracker = tracker};
    for (size_t i = 0; states[i]; i++) {
        struct ckpt *c = ckpt_list_add(&l, (int64_t)(i + 1) * 10);
        c->state = strchr("vV", states[i]) ? CKPT_VERIFIED
                   : states[i] == 'c'      ? CKPT_COMPLETE
                   : states[i] == 'p'      ? CKPT_PARTIAL
                                           : CKPT_BROKEN;
        c->held = states[i] == 'V';
        c->bytes = 100;
    }
    return l;
}

/* One letter for each: - goes, l last, b best, o only, p pinned, h held, u unfinished */
static void check_plan(const struct ckpt_list *l, const struct ckpt_policy *p, const char *want)
{
    enum ckpt_keep plan[32];
    char got[33] = "";
    ckpt_plan(l, p, plan);
    for (size_t i = 0; i < l->n; i++)
        got[i] = "-lbophu"[plan[i]];
    assert_string_equal(got, want);
}

static void check_states(const char *states,
                         int64_t tracker,
                         int64_t keep_last,
                         bool is_over,
                         const char *want)
{
    struct ckpt_list l = make(states, tracker);
    struct ckpt_policy p = {.keep_last = keep_last, .is_over = is_over};
    check_plan(&l, &p, want);
    ckpt_list_release(&l);
}

static void plans(void **state)
{
    (void)state;
    check_states("vvvv", 40, 2, false, "--lo");
    check_states("vvvv", 40, 9, false, "lllo");
    check_states("", 0, 2, false, "");
    check_states("ppp", 0, 1, true, "uuu");     /* nothing that could be gone on from */
    check_states("vvvc", 40, 1, false, "--ou"); /* not read yet: it makes none go */
    check_states("vvvb", 40, 1, false, "--ou"); /* the tracker names a broken one */
    check_states("vvvb", 40, 2, true, "-lou");  /* it is the tracker's all the same */
    check_states("vvvp", 30, 1, false, "--ou"); /* being written */
    check_states("vvvp", 30, 1, true, "--o-");  /* torn, and nobody writes there any more */
    check_states("pbvv", 40, 3, false, "--lo"); /* leavings */
    check_states("VVvv", 40, 1, false, "hh-o"); /* in use */
    check_states("vvv", 20, 1, false, "-uo");   /* what the tracker names stays */
    check_states("vvv", CKPT_TRACKER_TORN, 1, false, "--o");
}

static void the_best_stays(void **state)
{
    (void)state;
    struct ckpt_list l = make("vvvvv", 50);
    static const double values[] = {0.1, 0.9, 0.9, NAN, 0.5};
    for (size_t i = 0; i < l.n; i++) {
        l.v[i].has_value = true;
        l.v[i].value = values[i];
    }
    check_plan(&l, &(struct ckpt_policy){.keep_last = 1, .best = true}, "--b-o");
    check_plan(&l, &(struct ckpt_policy){.keep_last = 1, .best = true, .best_is_min = true},
               "b---o");
    l.v[2].state = CKPT_BROKEN;
    check_plan(&l, &(struct ckpt_policy){.keep_last = 1, .best = true}, "-b--o");
    ckpt_list_release(&l);
}

static void room(void **state)
{
    (void)state;
    struct ckpt_list l = make("vvvvv", 50);
    enum ckpt_keep plan[5];
    struct ckpt_policy p = {.keep_last = 4};
    ckpt_plan(&l, &p, plan);
    assert_int_equal(ckpt_plan_room(&l, 100, plan), 100); /* the one that goes anyhow */
    assert_int_equal(plan[1], CKPT_KEEP_LAST);
    assert_int_equal(ckpt_plan_room(&l, 10000, plan), 100); /* it would not be enough: none */
    assert_int_equal(plan[1], CKPT_KEEP_LAST);
    assert_int_equal(ckpt_plan_room(&l, 101, plan), 200);
    assert_int_equal(plan[1], CKPT_GOES);
    assert_int_equal(ckpt_plan_room(&l, 400, plan), 400);
    assert_int_equal(plan[4], CKPT_KEEP_ONLY);
    ckpt_list_release(&l);
}

static void there_and_back(void **state)
{
    (void)state;
    struct ckpt c = {.step = 20,
                     .state = CKPT_BROKEN,
                     .bytes = 1ULL << 41,
                     .at = 1700000000 * USEC_SEC,
                     .attempt = 2,
                     .has_value = true,
                     .value = 0.5,
                     .told = 5,
                     .values = {0.25, 0, -1},
                     .why = "'x': it is cut off"};
    struct buf text = BUF_INIT(1000);
    struct jout j = jout_begin(&text);
    struct ckpt back = {0};
    struct ckpt_list l = {0}, other = {0};
    _cleanup_(json_unrefp) json_t *o = NULL;
    assert_int_equal(ckpt_list_name(&l, "val-core/\"a\""), 0);
    assert_int_equal(ckpt_list_name(&l, "val-core/b"), 1);
    assert_int_equal(ckpt_list_name(&l, "val/loss"), 2);
    ckpt_to_json(&c, &l, NULL, &j, NULL);
    assert_int_equal(json_parse(buf_str(&text), text.len, 1000, &o, NULL), 0);
    assert_int_equal(ckpt_from_json(o, &l, &back), 0);
    assert_memory_equal(&back, &c, sizeof(c));
    assert_int_equal(ckpt_from_json(o, &other, &back), 0); /* what nobody told has no place */
    assert_int_equal(back.told, 3);
    assert_string_equal(other.names[1], "val/loss");
    assert_true(back.values[1] < 0);
    (void)json_object_set_new(o, "state", json_string("new"));
    assert_int_equal(ckpt_from_json(o, &l, &back), -EINVAL);
    buf_release(&text);
    ckpt_list_release(&l);
    ckpt_list_release(&other);
}

static size_t take(struct ckpt_list *l, int64_t step, const char *latest, const char *pattern)
{
    json_t *o = json_loads(latest, 0, NULL);
    size_t kept, told = ckpt_take_eval(l, ckpt_list_find(l, step), o, pattern, &kept);
    json_decref(o);
    assert_true(kept <= told);
    return kept;
}

static void values_of_an_eval(void **state)
{
    struct ckpt_list l = {0}, again = {0};
    (void)state;
    (void)ckpt_list_add(&l, 10);
    (void)ckpt_list_add(&l, 20);
    assert_int_equal(take(&l, 10, "{\"score\":0.5,\"n\":4,\"bad\":null}", "eval/sc*"), 2);
    assert_string_equal(ckpt_list_main(&l), "eval/n");
    assert_true(l.v[0].has_value && l.v[0].value == 0.5);
    assert_int_equal(take(&l, 20, "{\"val/a\":1,\"score\":0.5}", NULL),
                     1); /* the others are no news */
    assert_int_equal(take(&l, 20, "{\"val/a\":2}", NULL), 1);
    assert_false(l.v[1].has_value);
    ckpt_list_show(&l, "val/a");
    assert_true(l.v[1].value == 1); /* what was told first stays */
    assert_int_equal(take(&l, 20, "{}", NULL), 0);
    l.v[0].eval = CKPT_EVAL_DONE;
    memcpy(l.v[0].eval_job, "j-eval-10", sizeof("j-eval-10"));

    (void)ckpt_list_add(&again, 10);
    ckpt_list_carry_evals(&again, &l); /* a look that began before it was known */
    assert_int_equal(again.v[0].eval, CKPT_EVAL_DONE);
    assert_string_equal(again.v[0].eval_job, "j-eval-10");
    ckpt_list_show(&again, "eval/score");
    assert_true(again.v[0].has_value && again.v[0].value == 0.5);
    ckpt_list_release(&again);
    ckpt_list_release(&l);
}

static void names_of_values(void **state)
{
    static const char *const told[] = {"val/loss",   "val/a",      "val-core/b", "val-core/a",
                                       "val-core/c", "val-core/d", "val-core/e", "val-core/f"};
    struct ckpt_list l = {0}, copy = {0};
    (void)state;
    assert_null(ckpt_list_main(&l));
    for (int i = 0; i < CKPT_VALUES_MAX; i++) {
        assert_int_equal(ckpt_list_name(&l, told[i]), i);
        assert_string_equal(ckpt_list_main(&l), i < 1   ? "val/loss"
                                                : i < 2 ? "val/a"
                                                : i < 3 ? "val-core/b"
                                                        : "val-core/a");
    }
    assert_int_equal(ckpt_list_name(&l, "val-core/g"), -1); /* there is no room */
    assert_int_equal(ckpt_list_name(&l, "val-core/b"), 2);
    ckpt_list_copy(&copy, &l);
    assert_string_equal(copy.names[7], "val-core/f");
    assert_ptr_not_equal(copy.names[7], l.names[7]);
    assert_true(ckpt_is_validation("val-core/x") && ckpt_is_validation("val/x"));
    assert_false(ckpt_is_validation("val-aux/x") || ckpt_is_validation("value/x"));
    assert_false(ckpt_is_validation("val/\x01"));
    char name[CKPT_NAME_MAX + 2] = "val/";
    memset(name + 4, 'x', CKPT_NAME_MAX - 4);
    assert_true(ckpt_is_validation(name));
    name[CKPT_NAME_MAX] = 'x';
    assert_false(ckpt_is_validation(name));
    assert_true(ckpt_metric_is_min("val/loss"));
    assert_false(ckpt_metric_is_min("val-core/toy/acc/mean@1"));
    ckpt_list_release(&l);
    ckpt_list_release(&copy);
}

static int64_t best_step(const struct ckpt_list *l, bool is_min)
{
    const struct ckpt *best = ckpt_list_best(l, is_min);
    return best ? best->step : 0;
}

static void the_best_is_shown(void **state)
{
    struct ckpt_list l = make("vvpv", 40);
    (void)state;
    assert_int_equal(ckpt_list_name(&l, "val/x"), 0);
    assert_int_equal(ckpt_list_name(&l, "val/y"), 1);
    static const double x[] = {0.5, 0.9, 2, 0.5};
    for (size_t i = 0; i < l.n; i++) {
        l.v[i].told = i == 3 ? 1 : 3;
        l.v[i].values[0] = x[i];
        l.v[i].values[1] = i ? (double)NAN : 7;
    }
    assert_int_equal(best_step(&l, false), 0); /* no value is shown yet */
    ckpt_list_show(&l, "val/x");
    assert_int_equal(best_step(&l, false), 20); /* not the partial one */
    assert_int_equal(best_step(&l, true), 40);  /* of equals the newest */
    ckpt_list_show(&l, "val/y");
    assert_int_equal(best_step(&l, false), 10);
    assert_false(l.v[3].has_value);
    ckpt_list_release(&l);
}

/* A list that is shown says why each stays and for whom; one that is stored says neither. */
static void who_needs_it_is_said(void **state)
{
    struct ckpt_user users[] = {{"job", "eval-1"}, {"model", "alice:tiny@1"}};
    struct ckpt c = {.step = 20, .kept = CKPT_KEEP_HELD, .users = {users, array_len(users)}};
    struct buf text = BUF_INIT(1000);
    struct jout j = jout_begin(&text);
    (void)state;
    ckpt_to_json(&c, NULL, NULL, &j, NULL);
    assert_non_null(strstr(buf_str(&text), "\"kept\":\"in_use\",\"used_by\":[{\"kind\":\"job\","
                                           "\"name\":\"eval-1\"},{\"kind\":\"model\","
                                           "\"name\":\"alice:tiny@1\"}]"));
    buf_reset(&text);
    c.kept = CKPT_GOES;
    c.users = (struct field_list){0};
    j = jout_begin(&text);
    ckpt_to_json(&c, NULL, NULL, &j, NULL);
    assert_null(strstr(buf_str(&text), "kept"));
    assert_null(strstr(buf_str(&text), "used_by"));
    buf_release(&text);
}

/* A page says why in its reader's language, and a sentence that an older store kept as it is. */
static void why_is_said(void **state)
{
    static const struct message_listener zh = {.language = MESSAGE_CHINESE};
    const char *said[] = {"actor/：model 分片只有 1 个，应有 2 个", "'x': it is cut off"};
    struct ckpt c[2] = {{.step = 1}, {.step = 2, .why = "'x': it is cut off"}};
    (void)state;
    ckpt_write_why(c[0].why, "shards_missing",
                   MESSAGE_ARGS(MESSAGE_STR("group", "actor"), MESSAGE_NUM("there", 1),
                                MESSAGE_NUM("world", 2), MESSAGE_STR("what", "model")));
    for (int i = 0; i < 2; i++) {
        struct buf text = BUF_INIT(1000);
        struct jout j = jout_begin(&text);
        _cleanup_(json_unrefp) json_t *o = NULL;
        ckpt_to_json(&c[i], NULL, &zh, &j, NULL);
        assert_int_equal(json_parse(buf_str(&text), text.len, 1000, &o, NULL), 0);
        assert_string_equal(json_get_str(o, "why", ""), said[i]);
        buf_release(&text);
    }
}

static void what_is_pinned_stays(void **state)
{
    struct ckpt_list l = {0};
    const struct ckpt_policy p = {.keep_last = 1};
    enum ckpt_keep plan[4];
    (void)state;
    for (int i = 1; i <= 4; i++) {
        struct ckpt *c = ckpt_list_add(&l, i * 10);
        c->state = i == 3 ? CKPT_BROKEN : CKPT_VERIFIED;
        c->pinned = i == 1 || i == 3;
        c->held = i == 1;
        c->bytes = 100;
    }
    ckpt_plan(&l, &p, plan);
    assert_int_equal(plan[0], CKPT_KEEP_PINNED);
    assert_int_equal(plan[1], CKPT_GOES);
    assert_int_equal(plan[2], CKPT_KEEP_PINNED);
    assert_int_equal(plan[3], CKPT_KEEP_ONLY);
    assert_int_equal(ckpt_plan_room(&l, 1000, plan), 100); /* not even for the next save */
    assert_int_equal(plan[0], CKPT_KEEP_PINNED);
    ckpt_list_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(who_is_meant),
        cmocka_unit_test(which_are_meant),
        cmocka_unit_test(whole_ones),
        cmocka_unit_test(torn_ones),
        cmocka_unit_test(known_layouts),
        cmocka_unit_test(odd_names),
        cmocka_unit_test(plans),
        cmocka_unit_test(the_best_stays),
        cmocka_unit_test(room),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(who_needs_it_is_said),
        cmocka_unit_test(why_is_said),
        cmocka_unit_test(names_of_values),
        cmocka_unit_test(values_of_an_eval),
        cmocka_unit_test(the_best_is_shown),
        cmocka_unit_test(what_is_pinned_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
