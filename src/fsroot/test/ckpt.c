/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ckpt.h: what is read of checkpoints, and how they go. */
#define _GNU_SOURCE
#include "fsroot/ckpt/ckpt.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>

#include "base/str.h"
#include "fsroot/ckpt/checkpoint.h"
#include "fsroot/test/ckpt_make.h"

static struct ckpt_list look(const char *root, const struct ckpt_list *known, unsigned flags)
{
    struct ckpt_list l = {0};
    struct err err = {0};
    int r = ckpt_look(root, "j", known, 2, flags, &l, &err);
    if (r < 0)
        print_error("%s\n", err.text);
    assert_int_equal(r, 0);
    return l;
}

static void check_one(const char *root, int64_t step, enum ckpt_state state, const char *why)
{
    struct ckpt_list l = look(root, NULL, 0);
    const struct ckpt *c = ckpt_list_find(&l, step);
    assert_non_null(c);
    assert_string_equal(ckpt_state_to_string(c->state), ckpt_state_to_string(state));
    if (!strstr(c->why, why))
        print_error("%s\n", c->why);
    assert_non_null(strstr(c->why, why));
    ckpt_list_release(&l);
}

static char *in(const char *root, const char *rest)
{
    return xasprintf("%s/jobs/j/checkpoints/%s", root, rest);
}

static void test_looks(void **state)
{
    const char *root = *state;
    put(root, "jobs/j/meta.json", "{}");
    struct ckpt_list l = look(root, NULL, 0);
    assert_int_equal(l.n, 0); /* no directory */
    put_checkpoint(root, "j", 10, 2);
    put_checkpoint(root, "j", 20, 2);
    check_one(root, 10, CKPT_PARTIAL, "ckpt_not_named");
    put_tracker(root, "j", "10");
    check_one(root, 10, CKPT_VERIFIED, "");
    check_one(root, 20, CKPT_PARTIAL, "ckpt_not_named");
    put_tracker(root, "j", "20\n");
    l = look(root, NULL, 0);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.tracker, 20);
    assert_int_equal(l.v[1].attempt, 2);
    assert_true(l.v[1].bytes > 600000 && l.v[1].at);
    ckpt_list_release(&l);
    put_tracker(root, "j", ""); /* the end came while it was written */
    check_one(root, 20, CKPT_VERIFIED, "");
}

static void cut(const char *path, off_t by)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - by), 0);
}

static void test_torn_shards(void **state)
{
    const char *root = *state;
    put_checkpoint(root, "j", 10, 1);
    put_tracker(root, "j", "10");
    _cleanup_(freep) char *shard = in(root, "global_step_10/actor/optim_world_size_1_rank_0.pt");
    cut(shard, 1);
    check_one(root, 10, CKPT_BROKEN, "zip_no_end");
    assert_int_equal(truncate(shard, 0), 0);
    check_one(root, 10, CKPT_PARTIAL, "ckpt_empty_file");
    assert_int_equal(truncate(shard, 1 << 30), 0); /* all hole */
    check_one(root, 10, CKPT_BROKEN, "zip_no_end");
    assert_int_equal(unlink(shard), 0);
    assert_int_equal(symlink("model_world_size_1_rank_0.pt", shard), 0);
    check_one(root, 10, CKPT_VERIFIED, ""); /* without optim: save_contents may say so */
    _cleanup_(freep) char *model = in(root, "global_step_10/actor/model_world_size_1_rank_0.pt");
    assert_int_equal(unlink(model), 0);
    assert_int_equal(symlink("/dev/zero", model), 0);
    check_one(root, 10, CKPT_PARTIAL, "shards_missing");
}

static void spoil(const char *path, off_t at, const char *byte)
{
    _cleanup_(closep) int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, byte, 1, at), 1);
}

static void test_bad_bytes(void **state)
{
    const char *root = *state;
    struct err err = {0};
    int stop = 0;
    put_checkpoint(root, "j", 10, 1);
    put_tracker(root, "j", "10");
    _cleanup_(freep) char *shard = in(root, "global_step_10/actor/model_world_size_1_rank_0.pt");
    struct ckpt_list l = look(root, NULL, 0);
    assert_int_equal(ckpt_verify(root, "j", &l.v[0], &stop, &err), 0);
    assert_int_equal(l.v[0].state, CKPT_VERIFIED);
    spoil(shard, 50000, "x"); /* within the tensor: only deep reading tells */
    check_one(root, 10, CKPT_VERIFIED, "");
    assert_int_equal(ckpt_verify(root, "j", &l.v[0], &stop, &err), 0);
    assert_int_equal(l.v[0].state, CKPT_BROKEN);
    assert_non_null(strstr(l.v[0].why, "shard_other_bytes"));
    stop = 1;
    assert_int_equal(ckpt_verify(root, "j", &l.v[0], &stop, &err), -ECANCELED);
    ckpt_list_release(&l);
    put_torch(root, "jobs/j/checkpoints/global_step_10/actor/model_world_size_1_rank_0.pt", 10);
    spoil(shard, 46, "x"); /* the pickle is small */
    check_one(root, 10, CKPT_BROKEN, "shard_other_bytes");
    assert_int_equal(unlink(shard), 0);
    put(root, "jobs/j/checkpoints/global_step_10/actor/model_world_size_1_rank_0.pt", "PK");
    check_one(root, 10, CKPT_BROKEN, "zip_no_end");
}

static void test_known_ones(void **state)
{
    const char *root = *state;
    put_checkpoint(root, "j", 10, 1);
    put_tracker(root, "j", "10");
    struct ckpt_list l = look(root, NULL, 0);
    l.v[0].state = CKPT_BROKEN; /* as a deep reading would say */
    l.v[0].attempt = 1;
    struct ckpt_list again = look(root, &l, 0);
    assert_int_equal(again.v[0].state, CKPT_BROKEN);
    assert_int_equal(again.v[0].attempt, 1);
    struct ckpt_list fresh = look(root, &l, CKPT_LOOK_FRESH);
    assert_int_equal(fresh.v[0].state, CKPT_BROKEN);
    ckpt_list_release(&fresh);
    fresh = look(root, NULL, CKPT_LOOK_FRESH);
    assert_int_equal(fresh.v[0].state, CKPT_VERIFIED);
    _cleanup_(freep) char *shard = in(root, "global_step_10/data.pt");
    cut(shard, 1);
    struct ckpt_list trust = look(root, &fresh, CKPT_LOOK_TRUST);
    assert_int_equal(trust.v[0].state, CKPT_VERIFIED);
    struct ckpt_list changed = look(root, &fresh, 0);
    assert_int_equal(changed.v[0].state, CKPT_BROKEN);
    struct ckpt_list *all[] = {&l, &again, &fresh, &trust, &changed};
    for (size_t i = 0; i < array_len(all); i++)
        ckpt_list_release(all[i]);
}

static void test_hostile_names(void **state)
{
    const char *root = *state;
    static const char *const names[] = {"global_step_-1", "global_step_1e9", "global_step_0",
                                        "global_step_99999999999", "global_step_7x"};
    for (size_t i = 0; i < array_len(names); i++) {
        _cleanup_(freep) char *dir = in(root, names[i]);
        assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    }
    _cleanup_(freep) char *out = xasprintf("%s/elsewhere/actor", root);
    _cleanup_(freep) char *link = in(root, "global_step_5");
    assert_int_equal(file_mkdirs(out, 0755, NULL), 0);
    assert_int_equal(symlink("../../../elsewhere", link), 0);
    put(root, "jobs/j/checkpoints/global_step_6", "a file");
    struct ckpt_list l = look(root, NULL, 0);
    assert_int_equal(l.n, 0);
    struct err err = {0};
    assert_int_equal(ckpt_look(root, "../j", NULL, 1, 0, &l, &err), -EINVAL);
    assert_int_equal(ckpt_remove(root, "j", 5, &err), 0); /* the link itself, not what it names */
    assert_int_equal(access(out, F_OK), 0);
}

static void test_many(void **state)
{
    const char *root = *state;
    for (int step = 1; step <= CKPT_LIST_MAX + 50; step++) {
        char name[40];
        (void)snprintf(name, sizeof(name), "global_step_%d", step); /* fits */
        _cleanup_(freep) char *dir = in(root, name);
        assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    }
    struct ckpt_list l = look(root, NULL, 0);
    assert_int_equal(l.n, CKPT_LIST_MAX);
    assert_int_equal(l.v[0].step, 51);
    ckpt_list_release(&l);
}

static void test_removal(void **state)
{
    const char *root = *state;
    struct err err = {0};
    put_checkpoint(root, "j", 10, 1);
    put_checkpoint(root, "j", 20, 1);
    put_tracker(root, "j", "20");
    _cleanup_(freep) char *ten = in(root, "global_step_10"), *gone = in(root, ".argus-gone-7.1/x");
    assert_int_equal(file_mkdirs(gone, 0755, NULL), 0); /* a kill left it */
    assert_int_equal(ckpt_remove(root, "j", 20, &err), -EBUSY);
    assert_int_equal(ckpt_remove(root, "j", 10, &err), 0);
    assert_int_equal(access(ten, F_OK), -1);
    assert_int_equal(access(gone, F_OK), -1);
    assert_int_equal(ckpt_remove(root, "j", 10, &err), 0);
    assert_int_equal(ckpt_remove(root, "none", 10, &err), 0);
    _cleanup_(freep) char *torn = in(root, ".argus-torn-8.1/x");
    assert_int_equal(file_mkdirs(gone, 0755, NULL), 0);
    assert_int_equal(file_mkdirs(torn, 0755, NULL), 0);
    assert_int_equal(ckpt_sweep(root, "j", false, &err), 0);
    assert_int_equal(access(gone, F_OK), -1);
    assert_int_equal(access(torn, F_OK), 0);
    assert_int_equal(ckpt_sweep(root, "j", true, &err), 0);
    assert_int_equal(access(torn, F_OK), -1);
    check_one(root, 20, CKPT_VERIFIED, "");
}

static void check_settle(const char *root, int64_t want, const char *says, const char *tracker)
{
    struct ckpt_torn torn;
    int64_t step = -1;
    struct err err = {0};
    assert_int_equal(ckpt_settle(root, "j", NULL, &step, &torn, &err), 0);
    assert_int_equal(step, want);
    assert_non_null(strstr(torn.why, says));
    assert_int_equal(!torn.step, !*says);
    _cleanup_(freep) char *text = get(root, "jobs/j/checkpoints/latest_checkpointed_iteration.txt");
    assert_string_equal(str_or(text, "none"), tracker);
}

static void test_settle(void **state)
{
    const char *root = *state;
    put(root, "jobs/j/meta.json", "{}");
    check_settle(root, 0, "", "none");
    put_checkpoint(root, "j", 10, 1);
    put_tracker(root, "j", "10");
    check_settle(root, 10, "", "10");
    put_checkpoint(root, "j", 20, 1);
    put_checkpoint(root, "j", 30, 1);
    put_tracker(root, "j", "30");
    _cleanup_(freep) char *shard = in(root, "global_step_30/actor/model_world_size_1_rank_0.pt");
    _cleanup_(freep) char *thirty = in(root, "global_step_30");
    cut(shard, 100);
    check_settle(root, 20, "actor/model_world_size_1_rank_0.pt", "20");
    assert_int_equal(access(thirty, F_OK), -1);
    check_settle(root, 20, "", "20");
    for (int step = 10; step <= 20; step += 10) {
        _cleanup_(freep) char *name = xasprintf("global_step_%d/data.pt", step);
        _cleanup_(freep) char *path = in(root, name);
        cut(path, 1);
    }
    check_settle(root, 0, "{", "none");
    _cleanup_(freep) char *aside = in(root, ".argus-torn-20.1/data.pt"); /* nothing was deleted */
    assert_int_equal(access(aside, F_OK), 0);
}

/* By itself each of them could have been saved so; beside an older whole one it has lost them. */
static void test_a_kind_of_shards_that_an_older_one_has(void **state)
{
    const char *root = *state;
    struct err err = {0};
    int64_t step = -1;
    for (int at = 10; at <= 40; at += 10)
        put_checkpoint(root, "j", at, 2);
    put_tracker(root, "j", "40");
    for (int at = 20; at <= 30; at += 10)
        for (int rank = 0; rank < 2; rank++) {
            _cleanup_(freep) char *name =
                xasprintf("global_step_%d/actor/%s_world_size_2_rank_%d.pt", at,
                          at == 20 ? "optim" : "extra_state", rank);
            _cleanup_(freep) char *path = in(root, name);
            assert_int_equal(unlink(path), 0);
        }
    check_one(root, 10, CKPT_VERIFIED, "");
    check_one(root, 20, CKPT_PARTIAL, "ckpt_lost_kind");
    check_one(root, 30, CKPT_PARTIAL, "actor/extra_state");
    check_one(root, 40, CKPT_VERIFIED, "");
    _cleanup_(freep) char *forty = in(root, "global_step_40/actor/optim_world_size_2_rank_0.pt");
    _cleanup_(freep) char *other = in(root, "global_step_40/actor/optim_world_size_2_rank_1.pt");
    assert_int_equal(unlink(forty), 0);
    check_one(root, 40, CKPT_PARTIAL, "shards_missing");
    assert_int_equal(unlink(other), 0);
    struct ckpt_list l = look(root, NULL, 0);
    struct ckpt_list trust =
        look(root, &l, CKPT_LOOK_TRUST); /* the older one is not walked again */
    assert_int_equal(trust.v[3].state, CKPT_PARTIAL);
    ckpt_list_release(&trust);
    ckpt_list_release(&l);
    assert_int_equal(fsroot_checkpoint_find(root, "j", NULL, 0, &step, &err), 0);
    assert_int_equal(step, 10);                     /* `resume:` of another job */
    check_settle(root, 10, "ckpt_lost_kind", "10"); /* and of this one */
}

static void test_settle_leaves_what_it_does_not_know(void **state)
{
    const char *root = *state;
    put(root, "jobs/j/checkpoints/global_step_10/weights/of_another_engine.bin", "x");
    put_tracker(root, "j", "10");
    check_settle(root, 0, "", "10");
    _cleanup_(freep) char *ten = in(root, "global_step_10/weights/of_another_engine.bin");
    assert_int_equal(access(ten, F_OK), 0);
    put_checkpoint(root, "j", 5, 1); /* one that is known, but older than what training finished */
    check_settle(root, 0, "", "10");
    assert_int_equal(access(ten, F_OK), 0);
    put(root, "jobs/j/checkpoints/global_step_20/nothing_yet", ""); /* not named: it is torn */
    check_settle(root, 0, "", "10");
}

/* What was told of it after all its bytes were read is worth more than the look before a restart.
 */
static void test_settle_knows_what_is_broken(void **state)
{
    const char *root = *state;
    struct ckpt_torn torn;
    struct err err = {0};
    int64_t step = -1;
    put_checkpoint(root, "j", 10, 1);
    put_checkpoint(root, "j", 20, 1);
    put_tracker(root, "j", "20");
    struct ckpt_list known = look(root, NULL, 0);
    known.v[1].state = CKPT_BROKEN;
    (void)snprintf(known.v[1].why, sizeof(known.v[1].why), "its bytes are others"); /* fits */
    assert_int_equal(fsroot_checkpoint_find(root, "j", &known, 0, &step, &err), 0);
    assert_int_equal(step, 10);
    assert_int_equal(ckpt_settle(root, "j", &known, &step, &torn, &err), 0);
    assert_int_equal(step, 10);
    assert_int_equal(torn.step, 20);
    assert_string_equal(torn.why, "its bytes are others");
    put_checkpoint(root, "j", 20, 1); /* another one of that step: nothing is known of it */
    put_tracker(root, "j", "20");
    assert_int_equal(ckpt_settle(root, "j", &known, &step, &torn, &err), 0);
    assert_int_equal(step, 20);
    ckpt_list_release(&known);
}

/* -1 where it has none. */
static double value_of(const struct ckpt_list *l, int64_t step)
{
    const struct ckpt *c = ckpt_list_find(l, step);
    assert_non_null(c);
    return c->has_value ? c->value : -1;
}

static struct ckpt_list three_verified(void)
{
    struct ckpt_list l = {0};
    for (int64_t step = 10; step <= 30; step += 10)
        ckpt_list_add(&l, step)->state = CKPT_VERIFIED;
    return l;
}

static void test_values(void **state)
{
    const char *root = *state;
    uint64_t seen = 0;
    struct ckpt_list l = three_verified(), other = three_verified();
    l.v[2].state = CKPT_PARTIAL;
    ckpt_find_values(root, "j", "val-core/*", &l, &seen);
    assert_true(value_of(&l, 10) < 0);
    put(root, "jobs/j/metrics/metrics.jsonl",
        "{\"step\":1,\"data\":{\"val-core/a\":0.25}}\nbroken \"step\":10, line\n"
        "{\"step\":10,\"data\":{\"val-core/a\":0.5,\"val-core/b\":0.7,\"x\":9}}\n"
        "{\"step\":30,\"data\":{\"val-core/a\":0.5}}\n"
        "{\"step\":10,\"data\":{\"x\":3}}\n");
    ckpt_find_values(root, "j", "val-core/*", &l, &seen);
    assert_true(value_of(&l, 10) > 0.599 && value_of(&l, 10) < 0.601);
    assert_true(value_of(&l, 20) < 0 && value_of(&l, 30) < 0);
    seen = 0;
    ckpt_find_values(root, "j", "x", &other, &seen);
    assert_true(value_of(&other, 10) > 2.9 && value_of(&other, 10) < 3.1);
    ckpt_list_release(&l);
    ckpt_list_release(&other);
}

/* What there is room for is taken, val-core/ first; what a later attempt ran again does not
 * count, and a list that is looked at anew keeps what it knew. */
static void test_what_validation_told(void **state)
{
    const char *root = *state;
    uint64_t seen = 0;
    struct ckpt_list l = three_verified();
    struct buf text = BUF_INIT(1 << 12);
    (void)buf_adds(&text, "{\"step\":10,\"data\":{\"loss\":1,\"val-aux/z\":1,\"val/a\":null");
    for (int i = 0; i < 7; i++)
        (void)buf_addf(&text, ",\"val-core/%d\":%d", i, i);
    (void)buf_adds(&text, ",\"val/b\":1}}\n{\"step\":20,\"data\":{\"loss\":1}}\n"
                          "{\"step\":20,\"data\":{\"val-core/6\":0.5}}\n");
    put(root, "jobs/j/metrics/metrics.jsonl", buf_str(&text));
    ckpt_find_values(root, "j", NULL, &l, &seen);
    assert_string_equal(l.names[0], "val-core/0");
    assert_string_equal(l.names[7], "val/a");
    assert_int_equal(l.v[0].told, 0xff);
    assert_true(isnan(l.v[0].values[7]) && l.v[0].values[3] > 2.9);
    assert_int_equal(l.v[1].told, 1 << 6);
    assert_true(l.v[1].values[6] > 0.4 && l.v[1].values[6] < 0.6);
    assert_int_equal(l.v[2].told, 0);
    assert_false(l.v[0].has_value);
    buf_release(&text);
    ckpt_list_release(&l);
}

static void check_refused(const char *root, struct ckpt_list *l, const char *name, const char *says)
{
    struct err err = {0};
    assert_int_equal(ckpt_find_metric(root, "j", name, l, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, says));
}

static void test_any_metric(void **state)
{
    const char *root = *state;
    struct ckpt_list l = three_verified();
    struct err err = {0};
    l.v[0].has_value = true; /* of another metric */
    l.v[0].value = 77;
    check_refused(root, &l, "actor/entropy", "has told no metric 'actor/entropy'");
    put(root, "jobs/j/metrics/metrics.jsonl",
        "{\"step\":10,\"data\":{\"actor/entropy\":0.5,\"x\":1}}\n"
        "{\"step\":15,\"data\":{\"actor/entropy\":0.1,\"rare\":1}}\n"
        "{\"step\":30,\"data\":{\"actor/entropy\":0.25}}\n");
    assert_int_equal(ckpt_find_metric(root, "j", "actor/entropy", &l, &err), 0);
    assert_true(value_of(&l, 10) > 0.4 && value_of(&l, 10) < 0.6);
    assert_true(value_of(&l, 20) < 0 && value_of(&l, 30) < 0.3);
    check_refused(root, &l, "actor/entrapy", "did you mean 'actor/entropy'?");
    check_refused(root, &l, "critic/*", "has told no metric 'critic/*'");
    assert_int_equal(ckpt_find_metric(root, "j", "rare", &l, &err), 0); /* at no checkpoint */
    assert_null(ckpt_list_best(&l, false));
    ckpt_list_release(&l);
}

/* A pattern that fits nothing costs a reading for each change of the file, and some day none. */
static void test_values_that_never_come(void **state)
{
    const char *root = *state;
    uint64_t seen = 0;
    struct ckpt_list l = three_verified();
    struct buf text = BUF_INIT(1 << 16);
    int changes = 0;
    for (; l.v[0].asked == changes && changes < 100; changes++) {
        (void)buf_addf(&text, "{\"step\":10,\"data\":{\"loss\":%d}}\n", changes);
        put(root, "jobs/j/metrics/metrics.jsonl", buf_str(&text));
        ckpt_find_values(root, "j", "val/*", &l, &seen);
        uint64_t before = seen;
        ckpt_find_values(root, "j", "val/*", &l, &seen); /* the same file: it is not read */
        assert_int_equal(seen, before);
    }
    assert_in_range(l.v[0].asked, 2, 50);
    assert_true(value_of(&l, 10) < 0);
    buf_release(&text);
    ckpt_list_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_looks, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_torn_shards, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_bad_bytes, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_known_ones, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_hostile_names, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_many, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_removal, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_settle, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_a_kind_of_shards_that_an_older_one_has, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_settle_leaves_what_it_does_not_know, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_settle_knows_what_is_broken, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_values, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_what_validation_told, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_any_metric, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_values_that_never_come, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
