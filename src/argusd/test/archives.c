/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of archives.c: how many jobs may wait, of one who asks and of all. Nothing is packed: the
 * root was never looked at. */
#include "argusd/archive/archives.h"

#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "store/test/bed.h"

enum { OF_ONE = 750, SHARE = 250, OF_ALL = 1000 }; /* as they are told */

struct archives_world {
    struct bed b;
    struct settings settings;
    struct events *ev;
    struct cluster *cluster;
    struct archives *as;
    int asked;
};

static int archives_nobody_needs(const char *job, void *arg, struct err *err)
{
    (void)job;
    (void)arg;
    (void)err;
    return 0;
}

static void archives_world_init(struct archives_world *w)
{
    static char root[] = "/nowhere";
    *w = (struct archives_world){.settings = {.shared_root = root}};
    bed_init(&w->b, NULL);
    w->ev = events_new(w->b.s, &(struct store_last){0});
    w->cluster = cluster_new(&w->b.loop, &w->settings, NULL, "i", w->ev, &(struct cluster_ops){0});
    struct archives_parts parts = {.loop = &w->b.loop,
                                   .settings = &w->settings,
                                   .store = w->b.s,
                                   .events = w->ev,
                                   .cluster = w->cluster,
                                   .check_unused = archives_nobody_needs};
    w->as = archives_new(&parts);
}

static void archives_world_release(struct archives_world *w)
{
    archives_close(w->as);
    cluster_free(w->cluster);
    events_free(w->ev);
    bed_release(&w->b);
    archives_free(w->as);
}

/* One more job of its own; the code. */
static int archives_ask(struct archives_world *w, const char *actor, struct err *err)
{
    char id[32], user[] = "alice", project[] = "rl";
    (void)snprintf(id, sizeof(id), "job-%d", ++w->asked);
    struct job job = {.seq = w->asked, .id = id, .user = user, .project = project};
    return archives_pack(w->as, &job, 0, actor, err);
}

static void one_who_asks_leaves_places_to_others(void **state)
{
    struct archives_world w;
    struct err err = {0};
    (void)state;
    archives_world_init(&w);
    for (int i = 0; i < OF_ONE; i++)
        assert_int_equal(archives_ask(&w, "alice", NULL), 0);
    assert_int_equal(archives_ask(&w, "alice", &err), ERR_BUSY);
    assert_string_equal(err.message, "archives_of_one_busy");
    for (int i = 0; i < SHARE; i++)
        assert_int_equal(archives_ask(&w, "bob", NULL), 0);
    assert_int_equal(archives_waiting(w.as, "alice"), OF_ONE);
    assert_int_equal(archives_waiting(w.as, "bob"), SHARE);
    assert_int_equal(archives_waiting(w.as, NULL), OF_ALL);
    assert_int_equal(archives_ask(&w, "carol", NULL), ERR_BUSY);
    archives_world_release(&w);
}

static void all_together_have_a_bound(void **state)
{
    struct archives_world w;
    struct err err = {0};
    char who[16];
    (void)state;
    archives_world_init(&w);
    for (int i = 0; i < OF_ALL; i++) {
        (void)snprintf(who, sizeof(who), "u%d", i % 10);
        assert_int_equal(archives_ask(&w, who, NULL), 0);
    }
    assert_int_equal(archives_ask(&w, "bob", &err), ERR_BUSY);
    assert_string_equal(err.message, "archives_busy");
    archives_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_who_asks_leaves_places_to_others),
        cmocka_unit_test(all_together_have_a_bound),
    };
    return cmocka_run_group_tests_name("argusd/archives", tests, NULL, NULL);
}
