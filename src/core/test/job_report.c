/* SPDX-License-Identifier: Apache-2.0 */
/* job_report.c - the report of a job that failed, in both languages, and of one that waits. */
#include "core/job/job_report.h"

#include <string.h>

#include "base/json.h"
#include "base/unit.h"

static const char FAILED[] =
    "{\"id\":\"grpo-1\",\"name\":\"<b>mine\",\"user\":\"ann\",\"project\":\"rlhf\","
    "\"workload\":\"grpo\",\"state\":\"FAILED\",\"nnodes\":2,\"n_gpus_per_node\":8,"
    "\"reason\":{\"text\":\"the command ended with exit code 1\"},"
    "\"exit\":{\"cause\":\"exited\",\"code\":1,\"signal\":null},"
    "\"attempts\":[{\"k\":1,\"state\":\"ENDED\",\"started_at\":\"2026-01-01T00:00:00Z\","
    "\"ended_at\":\"2026-01-01T01:00:00Z\",\"end\":\"exit code 1\"}],"
    "\"finding\":{\"class\":\"gpu_oom\",\"sentence\":\"The memory of a GPU was full.\","
    "\"confidence\":0.95,\"advice\":\"Use less.\",\"patch\":[{\"key\":\"a.b\",\"scale\":\"0.5\"}],"
    "\"evidence\":[{\"source\":\"logs/driver.log\",\"line\":5,\"text\":\"OutOfMemoryError <x>\"}],"
    "\"after\":[]},"
    "\"gpu_hours\":16,\"goodput\":{\"ratio\":0.5,\"steps_lost\":3},"
    "\"metrics\":{\"step\":7,\"total_steps\":30,\"reward\":{\"key\":\"critic/score/mean\","
    "\"value\":0.25}},"
    "\"checkpoints\":[{\"step\":5,\"state\":\"verified\",\"why\":null}],"
    "\"spec\":\"workload: grpo\\nname: x\\n\"}";

static void told(const char *page, bool is_html, enum message_language in, struct buf *out)
{
    json_t *v = NULL;
    assert_int_equal(json_parse(page, strlen(page), 1 << 20, &v, NULL), 0);
    *out = BUF_INIT(1 << 20);
    job_report(v, is_html, in, out);
    assert_false(out->failed);
    json_decref(v);
}

static void has(struct buf *out, const char *part)
{
    if (!strstr(buf_str(out), part))
        fail_msg("no '%s' in:\n%s", part, buf_str(out));
}

static void test_a_failed_job(void **state)
{
    static const char *const parts[] = {
        "# \\<b\\>mine (grpo-1)\n",
        "the command ended with exit code 1\n",
        "- State: FAILED\n",
        "- User and project: ann, rlhf\n",
        "- Nodes × GPUs: 2 × 8 (grpo)\n",
        "- Exit: exited 1\n",
        "## First cause\n",
        "The memory of a GPU was full.\n",
        "- gpu\\_oom (95 %)\n",
        "- What to do: Use less.\n",
        "- Fix: a.b × 0.5\n",
        "    logs/driver.log:5: OutOfMemoryError <x>\n",
        "- 1: ENDED, 2026-01-01T00:00:00Z - 2026-01-01T01:00:00Z: exit code 1\n",
        "- GPU-hours held: 16\n",
        "- Goodput: 50 %\n",
        "- Steps run again: 3\n",
        "- Step: 7 / 30\n",
        "- Reward: critic/score/mean 0.25\n",
        "- 5: verified\n",
        "    workload: grpo\n    name: x\n",
    };
    struct buf out;
    (void)state;
    told(FAILED, false, MESSAGE_ENGLISH, &out);
    for (size_t i = 0; i < array_len(parts); i++)
        has(&out, parts[i]);
    buf_release(&out);
}

static void test_in_chinese_as_html(void **state)
{
    struct buf out;
    (void)state;
    told(FAILED, true, MESSAGE_CHINESE, &out);
    has(&out, "<h1>&lt;b&gt;mine (grpo-1)</h1>");
    has(&out, "<h2>首要原因</h2>");
    has(&out, "OutOfMemoryError &lt;x&gt;");
    assert_null(strstr(buf_str(&out), "First cause"));
    buf_release(&out);
}

/* A job that only waits has neither a cause nor a training. */
static void test_what_is_missing_is_left_out(void **state)
{
    struct buf out;
    (void)state;
    told("{\"id\":\"ray-1\",\"state\":\"QUEUED\",\"finding\":null,\"attempts\":[],"
         "\"checkpoints\":null,\"metrics\":null,\"exit\":null}",
         false, MESSAGE_ENGLISH, &out);
    has(&out, "# ray-1\n");
    has(&out, "- State: QUEUED\n");
    assert_null(strstr(buf_str(&out), "First cause"));
    assert_null(strstr(buf_str(&out), "Training"));
    assert_null(strstr(buf_str(&out), "Attempts"));
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_failed_job),
                                       cmocka_unit_test(test_in_chinese_as_html),
                                       cmocka_unit_test(test_what_is_missing_is_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
