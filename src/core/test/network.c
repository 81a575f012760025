/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables the nodes of a gang get: who is heard before whom, what must not differ. */
#include "core/job/network.h"

#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "base/unit.h"
#include "base/unit_message.h"

enum { GANG = 2 };

struct gang_of_test {
    struct node_facts facts[GANG];
    struct pairs own[GANG], cluster, job;
    struct network_node v[GANG];
    struct pairs got[GANG];
    struct strv moved;
    char *warning;
    struct err err;
};

static void fill_facts(struct node_facts *f, const char *layer)
{
    text_copy(f->interface, "bond0");
    text_copy(f->link_layer, layer);
    if (strcmp(layer, "ethernet") != 0)
        text_copy(f->hca, "mlx5_0:1,mlx5_1:1");
    if (!strcmp(layer, "roce"))
        text_copy(f->gid_index, "3");
}

static void begin_gang(struct gang_of_test *g, const char *a, const char *b)
{
    *g = (struct gang_of_test){0};
    fill_facts(&g->facts[0], a);
    fill_facts(&g->facts[1], b);
    g->v[0] = (struct network_node){.name = "n1", .facts = &g->facts[0], .own = &g->own[0]};
    g->v[1] = (struct network_node){.name = "n2", .facts = &g->facts[1], .own = &g->own[1]};
}

static int plan_gang(struct gang_of_test *g)
{
    return network_plan(g->v, GANG, &g->cluster, &g->job, g->got, &g->moved, &g->warning, &g->err);
}

static void end_gang(struct gang_of_test *g)
{
    struct pairs *all[] = {&g->own[0], &g->own[1], &g->got[0], &g->got[1], &g->cluster, &g->job};
    for (size_t i = 0; i < array_len(all); i++)
        pairs_release(all[i]);
    strv_release(&g->moved);
    set_str(&g->warning, NULL);
}

static void network_expect(const struct pairs *p, const char *name, const char *value)
{
    const char *got = pairs_find(p, name);
    if (!value && got)
        fail_msg("%s is %s", name, got);
    if (value)
        assert_string_equal(str_or(got, "(none)"), value);
}

static void test_what_was_seen(void **state)
{
    (void)state;
    struct gang_of_test g;
    begin_gang(&g, "roce", "roce");
    assert_int_equal(plan_gang(&g), 0);
    network_expect(&g.got[1], "NCCL_SOCKET_IFNAME", "=bond0");
    network_expect(&g.got[1], "GLOO_SOCKET_IFNAME", "bond0");
    network_expect(&g.got[1], "NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1");
    network_expect(&g.got[1], "NCCL_IB_GID_INDEX", "3");
    network_expect(&g.got[1], "NCCL_IB_DISABLE", NULL);
    assert_null(g.warning);
    end_gang(&g);
    begin_gang(&g, "infiniband", "infiniband");
    assert_int_equal(plan_gang(&g), 0);
    network_expect(&g.got[0], "NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1");
    network_expect(&g.got[0], "NCCL_IB_GID_INDEX", NULL);
    end_gang(&g);
    begin_gang(&g, "ethernet", "ethernet");
    assert_int_equal(plan_gang(&g), 0);
    network_expect(&g.got[0], "NCCL_IB_DISABLE", "1");
    network_expect(&g.got[0], "NCCL_IB_HCA", NULL);
    end_gang(&g);
    begin_gang(&g, "", ""); /* never probed */
    assert_int_equal(plan_gang(&g), 0);
    assert_int_equal(g.got[0].n + g.got[1].n, 0);
    end_gang(&g);
}

/* job > node > argus.yaml > seen */
static void test_who_is_heard_first(void **state)
{
    (void)state;
    struct gang_of_test g;
    begin_gang(&g, "roce", "roce");
    pairs_set(&g.cluster, "NCCL_IB_HCA", "mlx5_cluster");
    pairs_set(&g.cluster, "NCCL_IB_GID_INDEX", "7");
    pairs_set(&g.cluster, "NCCL_DEBUG", "WARN");
    pairs_set(&g.cluster, "HF_HOME", "/hf");
    pairs_set(&g.own[0], "NCCL_IB_GID_INDEX", "5");
    pairs_set(&g.own[0], "NCCL_SOCKET_IFNAME", "eth9");
    pairs_set(&g.own[0], "GLOO_SOCKET_IFNAME", "eth9");
    pairs_set(&g.own[0], "HF_HOME", "/local/hf");
    pairs_set(&g.job, "GLOO_SOCKET_IFNAME", "eth1");
    assert_int_equal(plan_gang(&g), 0);
    network_expect(&g.got[0], "NCCL_IB_GID_INDEX", "5"); /* the node's, before argus.yaml's */
    network_expect(&g.got[1], "NCCL_IB_GID_INDEX", "7"); /* which this node then gets by itself */
    assert_int_equal(g.moved.n, 1);
    assert_true(strv_has(&g.moved, "NCCL_IB_GID_INDEX"));
    network_expect(&g.got[0], "NCCL_SOCKET_IFNAME", "eth9");
    network_expect(&g.got[1], "NCCL_SOCKET_IFNAME", "=bond0");
    for (int i = 0; i < GANG; i++) {
        network_expect(&g.got[i], "GLOO_SOCKET_IFNAME", NULL); /* the job's own */
        network_expect(&g.got[i], "NCCL_IB_HCA", NULL);        /* argus.yaml's, for all */
        network_expect(&g.got[i], "NCCL_DEBUG", NULL);
        network_expect(&g.got[i], "HF_HOME", NULL);
    }
    end_gang(&g);
}

static void test_links_that_differ(void **state)
{
    (void)state;
    struct gang_of_test g;
    begin_gang(&g, "infiniband", "ethernet");
    assert_int_equal(plan_gang(&g), 0);
    assert_non_null(g.warning);
    assert_string_equal(
        unit_said("network_differs", g.warning),
        "the nodes' links differ: 'n1' has infiniband, 'n2' has ethernet; NCCL uses "
        "plain sockets between them");
    for (int i = 0; i < GANG; i++) {
        network_expect(&g.got[i], "NCCL_IB_DISABLE", "1");
        network_expect(&g.got[i], "NCCL_IB_HCA", NULL);
    }
    end_gang(&g);
}

static void test_what_must_be_equal(void **state)
{
    (void)state;
    struct gang_of_test g;
    begin_gang(&g, "roce", "roce");
    pairs_set(&g.own[1], "NCCL_IB_DISABLE", "1");
    assert_int_equal(plan_gang(&g), ERR_BAD_SPEC);
    assert_non_null(strstr(g.err.text, "NCCL_IB_DISABLE"));
    assert_non_null(strstr(g.err.text, "'1' on 'n2'"));
    assert_int_equal(g.got[0].n + g.got[1].n + g.moved.n, 0);
    pairs_set(&g.job, "NCCL_IB_DISABLE", "0"); /* the job says it for all */
    assert_int_equal(plan_gang(&g), 0);
    network_expect(&g.got[1], "NCCL_IB_DISABLE", NULL);
    end_gang(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_seen),
        cmocka_unit_test(test_who_is_heard_first),
        cmocka_unit_test(test_links_that_differ),
        cmocka_unit_test(test_what_must_be_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
