/* SPDX-License-Identifier: Apache-2.0 */
/* Whose word sends argusd to an address: the registry's and that of argus.yaml, never Ray's alone.
 */
#include "argusd/ground/inventory.h"

#include "base/unit.h"

static void test_a_registered_node_is_where_the_registry_has_it(void **state)
{
    struct strv none = {0};
    struct inventory iv = {
        .networks = &none, .ray_address = "http://127.0.0.1:8265", .addresses = &none};
    (void)state;
    assert_true(inventory_has(&iv, "10.0.0.5", false, "10.0.0.5"));
    assert_false(inventory_has(&iv, "10.0.0.5", false, "10.0.0.6"));
    assert_false(inventory_has(&iv, "10.0.0.5", true, "127.0.0.1")); /* whatever it says it is */
    assert_false(inventory_has(&iv, "", false, "10.0.0.5"));
    assert_false(inventory_has(&iv, "gpu5.example", false, "10.0.0.5"));
}

static void test_a_node_that_nobody_registered_is_in_a_listed_network(void **state)
{
    struct strv none = {0}, listed = {0};
    struct inventory iv = {
        .networks = &none, .ray_address = "http://10.0.0.1:8265", .addresses = &none};
    (void)state;
    assert_false(inventory_has(&iv, NULL, false, "10.0.0.5"));
    assert_false(inventory_has(&iv, NULL, false, "10.0.0.1")); /* it is not the head */
    strv_add(&listed, "10.0.0.0/24");
    iv.networks = &listed;
    assert_true(inventory_has(&iv, NULL, false, "10.0.0.5"));
    assert_false(inventory_has(&iv, NULL, false, "10.0.1.5"));
    assert_false(inventory_has(&iv, NULL, false, "10.0.0.5/x"));
    strv_release(&listed);
}

static void test_the_head_is_where_argus_yaml_has_it(void **state)
{
    struct strv none = {0}, own = {0};
    struct inventory iv = {
        .networks = &none, .ray_address = "http://10.0.0.1:8265/ray", .addresses = &own};
    (void)state;
    strv_add(&own, "127.0.0.1");
    strv_add(&own, "10.0.0.9");
    assert_true(inventory_has(&iv, NULL, true, "10.0.0.1"));
    assert_false(inventory_has(&iv, NULL, true, "10.0.0.9")); /* Ray is not on this machine */
    assert_false(inventory_has(&iv, NULL, true, "10.0.0.10"));
    iv.head_host = "10.0.0.2";
    assert_true(inventory_has(&iv, NULL, true, "10.0.0.2"));
    iv.ray_address = "http://[fd00::1]:8265";
    assert_true(inventory_has(&iv, NULL, true, "fd00:0::1"));
    static const char *const here[] = {"http://127.0.0.1:8265", "http://localhost:8265",
                                       "http://[::1]:8265"};
    for (size_t i = 0; i < array_len(here); i++) {
        iv.ray_address = here[i];
        assert_true(inventory_is_here(here[i]));
        assert_true(inventory_has(&iv, NULL, true, "10.0.0.9"));
        assert_false(inventory_has(&iv, NULL, true, "10.0.0.10"));
    }
    assert_false(inventory_is_here("http://localhost.example:8265"));
    assert_false(inventory_is_here("http://10.0.0.1:8265"));
    strv_release(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_registered_node_is_where_the_registry_has_it),
        cmocka_unit_test(test_a_node_that_nobody_registered_is_in_a_listed_network),
        cmocka_unit_test(test_the_head_is_where_argus_yaml_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
