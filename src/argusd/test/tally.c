/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tally.c: whose GPUs are where, from Ray's two lists. */
#include "argusd/jobs/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static const struct tally_place *tally_place_on(const struct tally_owner *o, const char *node)
{
    for (size_t i = 0; i < o->n; i++)
        if (!strcmp(o->places[i].node, node))
            return &o->places[i];
    return NULL;
}

static const char *name_of(const char *node_id, void *arg)
{
    (void)arg;
    return !strcmp(node_id, "id-h2") ? "h2" : NULL;
}

static char worker[] = "Worker", an_id[] = "a";

static struct ray_actor actor(char *job, char *node_id, double gpus)
{
    struct ray_actor a = {.actor_id = an_id,
                          .class_name = worker,
                          .state = RAY_ACTOR_ALIVE,
                          .job_id = job,
                          .node_id = node_id,
                          .pid = 7};
    if (gpus > 0)
        ray_amounts_set(&a.resources, "GPU", gpus);
    return a;
}

static const struct tally_owner *find(const struct tally *t, const char *job)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->v[i].job_id, job))
            return &t->v[i];
    return NULL;
}

static void actors(void **state)
{
    (void)state;
    char one[] = "01", two[] = "02", h2[] = "id-h2", other[] = "id-x", group[] = "g";
    struct ray_actor v[] = {actor(one, h2, 1), actor(one, h2, 0),   actor(one, other, 2),
                            actor(one, h2, 4), actor(one, NULL, 3), actor(two, h2, 0.5)};
    v[3].group_id = group; /* its group holds them */
    struct ray_actors list = {.v = v, .n = array_len(v)};
    struct ray_groups none = {0};
    struct tally t = {0};
    tally_add(&t, &list, &none, name_of, NULL);
    assert_int_equal(t.n, 2);
    const struct tally_owner *o = find(&t, "01");
    assert_int_equal(o->n, 2);
    assert_true(o->waiting_gpus > 2.9 && o->waiting_gpus < 3.1);
    const struct tally_place *p = tally_place_on(o, "h2");
    assert_true(p->gpus > 0.9 && p->gpus < 1.1);
    assert_int_equal(p->actors, 3);
    assert_string_equal(p->what, "actor Worker (pid 7)");
    assert_true(tally_place_on(o, "id-x")->gpus > 1.9); /* a node that we do not know */
    assert_null(tally_place_on(o, "h3"));
    assert_true(tally_place_on(find(&t, "02"), "h2")->gpus < 0.6);
    struct tally_owner sum = {0};
    tally_merge(&sum, o);
    tally_merge(&sum, find(&t, "02"));
    assert_true(tally_place_on(&sum, "h2")->gpus > 1.4 && tally_place_on(&sum, "h2")->gpus < 1.6);
    tally_owner_release(&sum);
    tally_release(&t);
    for (size_t i = 0; i < array_len(v); i++)
        ray_amounts_release(&v[i].resources);
}

static void groups(void **state)
{
    (void)state;
    char one[] = "01", h2[] = "id-h2", empty[] = "", id[] = "g1", name[] = "pool";
    struct ray_bundle b[] = {{.node_id = h2}, {.node_id = h2}, {.node_id = empty}, {.node_id = h2}};
    for (size_t i = 0; i < 3; i++)
        ray_amounts_set(&b[i].resources, "GPU", 1);
    ray_amounts_set(&b[3].resources, "CPU", 1);
    struct ray_group g = {
        .group_id = id, .name = name, .job_id = one, .bundles = b, .n_bundles = array_len(b)};
    struct ray_groups list = {.v = &g, .n = 1};
    struct ray_actors none = {0};
    struct tally t = {0};
    tally_add(&t, &none, &list, name_of, NULL);
    const struct tally_place *p = tally_place_on(&t.v[0], "h2");
    assert_true(p->gpus > 1.9 && p->gpus < 2.1);
    assert_int_equal(p->bundles, 2); /* without GPUs: free */
    assert_true(t.v[0].waiting_gpus > 0.9 && t.v[0].waiting_gpus < 1.1);
    assert_string_equal(p->what, "placement group g1 pool");
    tally_release(&t);
    for (size_t i = 0; i < array_len(b); i++)
        ray_amounts_release(&b[i].resources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(actors), cmocka_unit_test(groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
