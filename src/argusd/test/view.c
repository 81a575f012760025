/* SPDX-License-Identifier: Apache-2.0 */
/* A shown spec holds no secret, however it was written. */
#include "argusd/kit/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static void check(const char *spec, const char *shown)
{
    char *text = view_mask_spec(spec);
    assert_string_equal(text, shown);
    free(text);
}

static void test_masking(void **state)
{
    (void)state;
    check("name: a\nenv: {HF_TOKEN: hunter2, A: b}\n", "name: a\nenv: {HF_TOKEN: ***, A: b}\n");
    check("{\"runtime_env\": {\"env_vars\": {\"API_KEY\": \"k-1\"}}}",
          "{\"runtime_env\": {\"env_vars\": {\"API_KEY\": \"***\"}}}");
    check("name: a\n", "name: a\n");
}

static void test_one_secret_begins_like_another(void **state)
{
    (void)state;
    check("env: {A_TOKEN: abc, B_TOKEN: abcdef}\n", "env: {A_TOKEN: ***, B_TOKEN: ***}\n");
}

static void test_secrets_written_with_escapes(void **state)
{
    (void)state;
    const char *const specs[] = {
        "env: {A_TOKEN: \"hun\\x74er2\"}\n",
        "env:\n  A_TOKEN: 'hun''ter2'\n",
        "env:\n  A_TOKEN: >-\n    hunter2\n    and more\n",
    };
    for (size_t i = 0; i < array_len(specs); i++) {
        char *text = view_mask_spec(specs[i]);
        assert_null(strstr(text, "hun"));
        assert_non_null(strstr(text, "***"));
        free(text);
    }
}

static void test_what_cannot_be_read_is_not_shown(void **state)
{
    (void)state;
    char *text = view_mask_spec("env: {A_TOKEN: hunter2\n");
    assert_null(strstr(text, "hunter2"));
    free(text);
}

/* Every member of an item, in the words of the API, and those of a job that is not there yet. */
static void test_an_item(void **state)
{
    const struct store_job row = {.id = "j1",
                                  .name = "",
                                  .user = "alice",
                                  .project = "default",
                                  .workload = "ray",
                                  .cluster = "c",
                                  .state = "SUCCEEDED",
                                  .flags = "HELD,HUNG",
                                  .reason_code = "queued_behind",
                                  .reason_text = "{\"first\":\"another\"}",
                                  .nnodes = 2,
                                  .n_gpus_per_node = 0.5,
                                  .queued_at = USEC_SEC,
                                  .gpu_held = 5400000LL * SLOTBOOK_GPU};
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    (void)state;
    view_item(&j, &row, NULL, NULL);
    assert_string_equal(
        buf_str(&out),
        "{\"id\":\"j1\",\"name\":null,\"user\":\"alice\",\"project\":\"default\",\"workload\":\"ray\","
        "\"cluster\":\"c\",\"state\":\"SUCCEEDED\",\"flags\":[\"HELD\",\"HUNG\"],\"reason\":{\"code\":"
        "\"queued_behind\",\"text\":\"behind another's job, which is first in line\",\"args\":"
        "{\"first\":null}},\"eta\":null,\"pool\":null,\"priority\":0,\"nnodes\":2,"
        "\"n_gpus_per_node\":0.5,\"gpus\":1,\"queued_at\":\"1970-01-01T00:00:01.000Z\","
        "\"started_at\":null,\"ended_at\":null,\"attempt\":0,\"restarts\":0,\"step\":null,"
        "\"total_steps\":null,\"reward\":null,\"ends\":null,\"nodes\":[],\"gpu_util\":null,\"gpu_hours\":1.5}");
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_item),
        cmocka_unit_test(test_masking),
        cmocka_unit_test(test_one_secret_begins_like_another),
        cmocka_unit_test(test_secrets_written_with_escapes),
        cmocka_unit_test(test_what_cannot_be_read_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
