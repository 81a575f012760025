/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pins: what training takes away has its names again. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/str.h"
#include "base/test/unit_look.h"
#include "fsroot/ckpt/ckpt.h"
#include "fsroot/test/ckpt_make.h"
#include "fsroot/tree/dirtree.h"

static char *in(const char *root, const char *rest)
{
    return xasprintf("%s/jobs/j/checkpoints/%s", root, rest);
}

static bool is_there(const char *root, const char *rest)
{
    _cleanup_(freep) char *path = in(root, rest);
    return access(path, F_OK) == 0;
}

static struct ckpt look_at(const char *root, const struct ckpt_list *known, int64_t step)
{
    struct ckpt_list l = {0};
    assert_int_equal(ckpt_look(root, "j", known, 1, 0, &l, NULL), 0);
    const struct ckpt *c = ckpt_list_find(&l, step);
    struct ckpt found = c ? *c : (struct ckpt){0};
    ckpt_list_release(&l);
    return found;
}

/* As verl does: the actor's part, and no more. */
static void take_away(const char *root, const char *rest)
{
    _cleanup_(freep) char *path = in(root, rest);
    assert_int_equal(dirtree_remove(path, NULL), 0);
}

/* Steps, 0: none. As ckpt_pin() says: 1: pins that are not needed stay. */
static int pin_and_drop(const char *root, int attempt, int64_t needed, int64_t spare)
{
    struct err err = {0};
    const struct ckpt_pins pins = {&needed, needed ? 1 : 0, &spare, spare ? 1 : 0};
    return ckpt_pin(root, "j", attempt, &pins, &err);
}

static void pin(const char *root, int attempt, int64_t step)
{
    assert_int_equal(pin_and_drop(root, attempt, step, 0), 0);
}

static void put_two(const char *root)
{
    put_checkpoint(root, "j", 10, 2);
    put_checkpoint(root, "j", 20, 1);
    put_tracker(root, "j", "20");
}

static void test_what_is_pinned_comes_back(void **state)
{
    const char *root = *state;
    struct err err = {0};
    put_two(root);
    struct ckpt before = look_at(root, NULL, 10);
    pin(root, 1, 10);
    pin(root, 1, 10); /* once more is once */
    take_away(root, "global_step_10/actor");
    assert_int_equal(look_at(root, NULL, 10).state, CKPT_PARTIAL);
    assert_int_equal(ckpt_put_back(root, "j", 2, &err), 0); /* of another attempt */
    assert_int_equal(look_at(root, NULL, 10).state, CKPT_PARTIAL);
    assert_int_equal(ckpt_put_back(root, "j", 1, &err), 0);
    struct ckpt after = look_at(root, NULL, 10);
    assert_int_equal(after.state, CKPT_VERIFIED);
    assert_true(after.mark == before.mark && after.bytes == before.bytes);
    take_away(root, "global_step_10");
    assert_int_equal(ckpt_put_back(root, "j", 1, &err), 0);
    assert_true(look_at(root, NULL, 10).mark == before.mark);
}

static void test_pins_go(void **state)
{
    const char *root = *state;
    struct err err = {0};
    const struct ckpt_pins none = {0};
    put_two(root);
    pin(root, 1, 10);
    assert_true(is_there(root, ".argus-pin-1-10/actor"));
    assert_int_equal(pin_and_drop(root, 1, 20, 10), 0);
    assert_false(is_there(root, ".argus-pin-1-10"));
    assert_true(is_there(root, ".argus-pin-1-20"));
    assert_int_equal(pin_and_drop(root, 2, 20, 0), 0); /* the next attempt's */
    assert_false(is_there(root, ".argus-pin-1-20"));
    assert_true(is_there(root, ".argus-pin-2-20"));
    assert_int_equal(pin_and_drop(root, 1, 0, 20), 0); /* of a look that came late */
    assert_true(is_there(root, ".argus-pin-2-20"));
    assert_int_equal(pin_and_drop(root, 2, 0, 20), 0);
    assert_false(is_there(root, ".argus-pin-2-20"));
    assert_int_equal(look_at(root, NULL, 20).state, CKPT_VERIFIED);
    pin(root, 2, 10);
    assert_int_equal(ckpt_remove(root, "j", 10, &err), 0); /* ours: it does not come back */
    assert_int_equal(ckpt_put_back(root, "j", 2, &err), 0);
    assert_false(is_there(root, "global_step_10"));
    assert_false(is_there(root, ".argus-pin-2-10"));
    assert_int_equal(ckpt_pin(root, "none", 1, &none, &err), 0);
    assert_int_equal(ckpt_put_back(root, "none", 1, &err), 0);
}

static void test_what_cannot_be_pinned(void **state)
{
    const char *root = *state;
    struct err err = {0};
    int64_t step = 30;
    const struct ckpt_pins pins = {.needed = &step, .n_needed = 1};
    put_two(root);
    assert_int_equal(ckpt_pin(root, "j", 1, &pins, &err), -ENOENT);
    assert_non_null(strstr(err.text, "of step 30 cannot be pinned"));
    assert_false(is_there(root, ".argus-pin-1-30"));
    assert_false(is_there(root, ".argus-gone-pin-1-30"));
}

/* The last good one was taken away by verl, which counts torn ones: a restart has it. */
static void test_settle_puts_back(void **state)
{
    const char *root = *state;
    struct ckpt_torn torn;
    struct err err = {0};
    int64_t step = -1;
    put_two(root);
    pin(root, 1, 10);
    take_away(root, "global_step_10/actor");
    take_away(root, "global_step_20/actor/optim_world_size_1_rank_0.pt");
    put(root, "jobs/j/checkpoints/global_step_20/actor/model_world_size_1_rank_0.pt", "PK");
    assert_int_equal(ckpt_settle(root, "j", NULL, &step, &torn, &err), 0);
    assert_int_equal(step, 10);
    assert_false(is_there(root, "global_step_20"));
    assert_false(is_there(root, ".argus-pin-1-10"));
    assert_int_equal(look_at(root, NULL, 10).state, CKPT_VERIFIED);
}

/* The last names of a checkpoint do not go because a look did not see the others. */
static void test_a_pin_that_is_the_last_copy_stays(void **state)
{
    const char *root = *state;
    struct err err = {0};
    put_two(root);
    pin(root, 1, 10);
    take_away(root, "global_step_10");
    assert_int_equal(pin_and_drop(root, 1, 20, 0), 1);
    assert_true(is_there(root, ".argus-pin-1-10/actor"));
    assert_int_equal(ckpt_put_back(root, "j", 1, &err), 0);
    assert_int_equal(look_at(root, NULL, 10).state, CKPT_VERIFIED);
    /* A pin of an older attempt goes only once the step is there again, and nothing is mixed with
     * what is. */
    take_away(root, "global_step_10/actor");
    assert_int_equal(pin_and_drop(root, 2, 20, 20), 1);
    assert_true(is_there(root, ".argus-pin-1-10/actor"));
    assert_int_equal(look_at(root, NULL, 10).state, CKPT_PARTIAL);
    take_away(root, "global_step_10");
    assert_int_equal(pin_and_drop(root, 2, 20, 0), 0);
    assert_false(is_there(root, ".argus-pin-1-10"));
    assert_int_equal(look_at(root, NULL, 10).state, CKPT_VERIFIED);
}

/* In the place of a checkpoint: nothing can be put back there. */
static void block(const char *root, const char *name)
{
    _cleanup_(freep) char *path = in(root, name);
    take_away(root, name);
    assert_int_equal(file_write(path, "x", 1, 0644, 0, NULL), 0);
}

static void test_one_that_cannot_be_put_back(void **state)
{
    const char *root = *state;
    struct ckpt_torn torn;
    struct err err = {0};
    int64_t step = -1;
    const int64_t both[] = {10, 20};
    const struct ckpt_pins pins = {.needed = both, .n_needed = 2};
    put_two(root);
    assert_int_equal(ckpt_pin(root, "j", 1, &pins, &err), 0);
    for (int i = 0; i < 2; i++) { /* whichever is listed first: the other one is put back */
        _cleanup_(freep) char *blocked = xasprintf("global_step_%d", i ? 10 : 20);
        _cleanup_(freep) char *other = xasprintf("global_step_%d", i ? 20 : 10);
        block(root, blocked);
        take_away(root, other);
        assert_true(ckpt_put_back(root, "j", 1, &err) < 0);
        assert_non_null(strstr(err.text, "cannot be put back"));
        assert_int_equal(look_at(root, NULL, i ? 20 : 10).state, CKPT_VERIFIED);
        take_away(root, blocked);
    }
    block(root, "global_step_10");
    assert_true(ckpt_settle(root, "j", NULL, &step, &torn, &err) < 0); /* tried again later */
    assert_true(is_there(root, ".argus-pin-1-10/actor"));
    take_away(root, "global_step_10");
    assert_int_equal(ckpt_settle(root, "j", NULL, &step, &torn, &err), 0);
    assert_int_equal(look_at(root, NULL, 10).state, CKPT_VERIFIED);
    assert_false(is_there(root, ".argus-pin-1-10"));
}

/* What verl removes while it is looked at: it stays known with its value, and is not removed. */
static void test_what_a_look_missed(void **state)
{
    const char *root = *state;
    struct err err = {0};
    struct ckpt_list known = {0}, now = {0}, unknown = {0};
    put_two(root);
    pin(root, 1, 10);
    assert_int_equal(ckpt_look(root, "j", NULL, 1, 0, &known, &err), 0);
    ckpt_list_find(&known, 10)->value = 0.5;
    take_away(root, "global_step_10/actor");
    assert_int_equal(ckpt_look(root, "j", &known, 1, 0, &now, &err), 0);
    assert_int_equal(ckpt_look(root, "j", NULL, 1, 0, &unknown, &err), 0);
    assert_int_equal(ckpt_list_find(&now, 10)->state, CKPT_PARTIAL);
    assert_int_equal(ckpt_add_pinned(root, "j", 1, &known, &now, &err), 0);
    assert_int_equal(ckpt_list_find(&now, 10)->state, CKPT_VERIFIED);
    assert_true(ckpt_list_find(&now, 10)->by_pin && ckpt_list_find(&now, 10)->value == 0.5);
    assert_false(ckpt_list_find(&now, 20)->by_pin);
    assert_int_equal(ckpt_add_pinned(root, "j", 1, NULL, &unknown, &err), 0);
    assert_null(ckpt_list_find(&unknown, 10));
    ckpt_list_remove(&now, 10); /* gone altogether */
    assert_int_equal(ckpt_add_pinned(root, "j", 1, &known, &now, &err), 0);
    assert_true(ckpt_list_find(&now, 10)->by_pin);
    ckpt_list_release(&known);
    ckpt_list_release(&now);
    ckpt_list_release(&unknown);
}

static void test_a_failed_look_pins_nothing(void **state)
{
    const char *root = *state;
    struct err err = {0};
    put_two(root);
    pin(root, 1, 10);
    struct ckpt c = look_at(root, NULL, 10);
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){".argus-pin-1-10", look_errors[i], 0, false};
        assert_int_equal(pin_and_drop(root, 1, 10, 0), -look_errors[i]);
        assert_int_equal(look_broken.n, 1); /* and nothing is made in its place */
        look_broken = (struct look_broken){"global_step_10", look_errors[i], 0, false};
        assert_int_equal(ckpt_verify(root, "j", &c, NULL, &err), -look_errors[i]);
        look_broken.name = "checkpoints";
        assert_int_equal(ckpt_verify(root, "j", &c, NULL, &err), -look_errors[i]);
    }
    look_broken = (struct look_broken){"global_step_10", ENOENT, 0, false};
    assert_int_equal(ckpt_verify(root, "j", &c, NULL, &err), ERR_NOT_FOUND);
    look_broken = (struct look_broken){0};
    assert_int_equal(ckpt_verify(root, "j", &c, NULL, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_pins_nothing, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_pinned_comes_back, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_pins_go, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_pinned, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_settle_puts_back, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_a_pin_that_is_the_last_copy_stays, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_cannot_be_put_back, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_look_missed, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
