/* SPDX-License-Identifier: Apache-2.0 */
/* What people ran into elsewhere, as findings: a class, and an advice that names what to do. */
#include <string.h>

#include "finding_world.h"

static void reports_judge(const char *log, const struct finding_facts *facts, struct finding *ret)
{
    struct finder *f = finder_new(rules);
    finder_source(f, "driver.log");
    finder_feed(f, log, strlen(log));
    finder_end(f, facts, ret);
    finder_free(f);
}

/* What people ran into elsewhere: whose fault it is, and an advice that names what to do. */
static void the_environment_and_the_data(void **state)
{
    static const struct {
        const char *log;
        enum finding_class class;
        const char *quote, *advice;
    } rows[] = {
        {"RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.51.1\n"
         "    Python: 3.10.13\nThis process on node 10.0.0.2 was started with:\n    Ray: 2.51.1\n"
         "    Python: 3.10.12\nnothing of it\n",
         FINDING_RUNTIME_ENV_FAILED,
         "The cluster was started with: Ray: 2.51.1 Python: 3.10.13 This process on node 10.0.0.2 "
         "was started with: Ray: 2.51.1 Python: 3.10.12",
         "not that of the cluster"},
        {"Traceback (most recent call last):\n  File \"/x/ray/client.py\", line 9, in connect\n"
         "    check()\nRuntimeError: Python minor versions differ between client and server: client is "
         "3.11.4, server is 3.10.13\n",
         FINDING_RUNTIME_ENV_FAILED, "3.11.4", "not that of the cluster"},
        {"OSError: [Errno 24] Too many open files: '/data/a.parquet'\n",
         FINDING_INSUFFICIENT_RESOURCES, "Errno 24", "ulimit -n"},
        {"RuntimeError: received 0 items of ancdata\n", FINDING_INSUFFICIENT_RESOURCES, "ancdata",
         "ulimit -n"},
        {"(W pid=3) RuntimeError: can't start new thread\nA worker died or was killed while executing"
         " a task\n",
         FINDING_INSUFFICIENT_RESOURCES, "new thread", "ulimit -u"},
        {"OpenBLAS blas_thread_init: pthread_create failed for thread 50 of 64: Resource temporarily "
         "unavailable\n",
         FINDING_INSUFFICIENT_RESOURCES, "pthread_create", "ulimit -u"},
        {"bash: fork: retry: Resource temporarily unavailable\n", FINDING_INSUFFICIENT_RESOURCES,
         "fork", "ulimit -u"},
        {"jinja2.exceptions.TemplateError: System role not supported\n", FINDING_DATA_ERROR,
         "System role", "chat template"},
        {"ValueError: Cannot use chat template functions because tokenizer.chat_template is not set\n",
         FINDING_DATA_ERROR, "chat_template", "chat_template.jinja"},
        {"bash: ./run.sh: /bin/bash^M: bad interpreter: No such file or directory\n",
         FINDING_PERMISSION_OR_PATH, "^M", "dos2unix"},
        {"bash: line 1: torchrunn: command not found\n", FINDING_PERMISSION_OR_PATH, "torchrunn",
         "PATH"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct finding f;
        reports_judge(rows[i].log, NULL, &f);
        assert_string_equal(finding_class_to_string(f.class),
                            finding_class_to_string(rows[i].class));
        assert_non_null(strstr(f.evidence[0].text, rows[i].quote));
        if (strstr(f.evidence[0].text, "nothing of it"))
            fail_msg("%s: %s", rows[i].log, f.evidence[0].text);
        assert_non_null(strstr(f.advice, rows[i].advice));
        assert_int_equal(f.n_patch, 0);
        finding_release(&f);
    }
}

/* What the shepherd says of a command that it could not start. */
static void a_command_that_does_not_start(void **state)
{
    static const struct {
        const char *says;
        enum finding_class class;
        const char *quote, *advice;
    } rows[] = {
        {"command_crlf{\"name\": \"./run.sh\"}", FINDING_PERMISSION_OR_PATH, "ends in CR LF",
         "dos2unix"},
        {"child_not_in_path{\"name\": \"torchrunn\"}", FINDING_PERMISSION_OR_PATH,
         "'torchrunn' is not in PATH", "PATH"},
        {"child_no_program{}", FINDING_CONFIG_ERROR, "no program", "empty"},
        {"child_no_cwd{\"path\": \"/x\", \"why\": \"gone\"}", FINDING_PERMISSION_OR_PATH,
         "'/x': gone", "working directory"},
        {"child_no_fork{\"name\": \"x\", \"why\": \"no memory\"}", FINDING_PLATFORM, "no memory",
         "operator"},
        {NULL, FINDING_PLATFORM, "could not be started", "operator"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct finding f;
        struct finding_facts facts = {.not_started = true, .start_says = rows[i].says};
        reports_judge("", &facts, &f);
        assert_string_equal(finding_class_to_string(f.class),
                            finding_class_to_string(rows[i].class));
        assert_non_null(strstr(f.evidence[0].text, rows[i].quote));
        assert_non_null(strstr(f.advice, rows[i].advice));
        assert_int_equal(finding_class_is(f.class, FINDING_BLAMES_NODE),
                         rows[i].class == FINDING_PLATFORM);
        finding_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_and_the_data),
        cmocka_unit_test(a_command_that_does_not_start),
    };
    return cmocka_run_group_tests(tests, finding_set_up, finding_tear_down);
}
