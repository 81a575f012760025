/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and what is left of them. */
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "core/finding/read/finding_text.h"

static const struct {
    const char *line, *body, *rank, *node, *actor;
    enum text_level level;
} rows[] = {
    {"hello", "hello", "", "", "", LEVEL_NONE},
    {"\033[31mhello\033[0m  ", "hello", "", "", "", LEVEL_NONE},
    {"(WorkerDict pid=1, ip=10.0.0.7) hello", "hello", "", "10.0.0.7", "WorkerDict", LEVEL_NONE},
    {"(raylet) hello", "hello", "", "", "raylet", LEVEL_NONE},
    {"(autoscaler +1m2s) Error: x", "Error: x", "", "", "autoscaler", LEVEL_NONE},
    {"(pid=12) hello [repeated 3x across cluster]", "hello", "", "", "", LEVEL_NONE},
    {"it died. Possible reasons include: (1) x", "it died. P", "", "", "", LEVEL_NONE},
    {"[rank3]: hello", "hello", "3", "", "", LEVEL_NONE},
    {"[rank3]:[E429 13:55:49.38 ProcessGroupNCCL.cpp:1743] hello", "hello", "3", "", "",
     LEVEL_ERROR},
    {"[default7]:hello", "hello", "7", "", "", LEVEL_NONE},
    {"[1,5]<stderr>:hello", "hello", "5", "", "", LEVEL_NONE},
    {"12: hello", "hello", "12", "", "", LEVEL_NONE},
    {"[2025-04-02 15:02:00,117 E 135782 135782] (raylet) a.cc:30: hello", "hello", "", "", "raylet",
     LEVEL_ERROR},
    {"ERROR 06-30 13:53:19 [core.py:515] hello", "hello", "", "", "", LEVEL_ERROR},
    {"[2025-07-12 10:41:18,916] [INFO] [launch.py:315:f] hello", "hello", "", "", "", LEVEL_INFO},
    {"2025-01-01 10:00:00,123 - WARNING - hello", "hello", "", "", "", LEVEL_WARNING},
    {"WARNING:hello", "hello", "", "", "", LEVEL_WARNING},
    {"Oct 04 13:19:39 n7 prog[394]: hello", "hello", "", "n7", "", LEVEL_NONE},
    {"n7:12:34 [0] hello", "hello", "", "n7", "", LEVEL_NONE},
    {"\342\224\202 hello   \342\224\202", "hello", "", "", "", LEVEL_NONE},
    {"[E ProcessGroupNCCL.cpp:828] hello", "hello", "", "", "", LEVEL_ERROR},
    {"[  81.5] hello", "hello", "", "", "", LEVEL_NONE},
    {"2025-01-01 10:00:00,123 - tuner.loop - INFO - hello", "hello", "", "", "", LEVEL_INFO},
    {"2025-01-01 10:00:00,123 - tuner - INFO - [rank7]: hello", "hello", "7", "", "", LEVEL_NONE},
    {"INFO: error rate of 3", "error rate of 3", "", "", "", LEVEL_INFO},
    {"INFO 10:00:00 (Worker pid=7) hello", "hello", "", "", "Worker", LEVEL_NONE},
    {"2025-01-01 10:00:00,123 - this - is text", "this - is text", "", "", "", LEVEL_NONE},
    {"n7:12:34 [0] NCCL INFO hello", "NCCL INFO hello", "", "n7", "", LEVEL_INFO},
    {"stderr: hello", "hello", "", "", "", LEVEL_NONE},
    {"(a note) hello", "(a note) hello", "", "", "", LEVEL_NONE},
    {"[x] hello", "[x] hello", "", "", "", LEVEL_NONE},
    {"", "", "", "", "", LEVEL_NONE},
    {"(", "(", "", "", "", LEVEL_NONE},
    {"[", "[", "", "", "", LEVEL_NONE},
    {"[rank", "[rank", "", "", "", LEVEL_NONE},
    {"12:", "12:", "", "", "", LEVEL_NONE},
    {"\033", "", "", "", "", LEVEL_NONE},
    {"\033]0;title", "", "", "", "", LEVEL_NONE},
};

static void assert_part(struct text_part p, const char *text, const char *line)
{
    if (p.n != strlen(text) || (p.n && memcmp(p.s, text, p.n) != 0))
        print_error("'%s': '%.*s' instead of '%s'\n", line, (int)p.n, p.n ? p.s : "", text);
    assert_int_equal(p.n, strlen(text));
    assert_true(!p.n || !memcmp(p.s, text, p.n));
}

static void lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        char out[200];
        struct finding_text t;
        finding_text_read(rows[i].line, strlen(rows[i].line), out, &t);
        assert_part(t.body, rows[i].body, rows[i].line);
        assert_part(t.rank, rows[i].rank, rows[i].line);
        assert_part(t.node, rows[i].node, rows[i].line);
        assert_part(t.actor, rows[i].actor, rows[i].line);
        assert_int_equal(t.level, rows[i].level);
    }
}

static void streams(void **state)
{
    static const char a[] = "[rank1]: x", b[] = "[rank2]: x";
    char out[50];
    struct finding_text one, other, again;
    (void)state;
    finding_text_read(a, strlen(a), out, &one);
    finding_text_read(b, strlen(b), out, &other);
    finding_text_read(a, strlen(a), out, &again);
    assert_true(one.stream != other.stream);
    assert_true(one.stream == again.stream);
}

static void subject(void **state)
{
    static const char raylet[] = "(raylet, ip=10.0.0.2) A worker died. Worker IP address: 10.0.0.3 "
                                 "Worker port: 9 Worker PID: 1340 Worker exit type: SYSTEM_ERROR";
    static const char other[] = "(Actor pid=7) what it says of Worker PID: 1340 is its own";
    static const char bad[] = "(raylet) Worker PID: none";
    char out[200];
    struct finding_text t;
    (void)state;
    finding_text_read(raylet, strlen(raylet), out, &t);
    finding_text_subject(&t);
    assert_part(t.pid, "1340", raylet);
    assert_part(t.node, "10.0.0.3", raylet);
    assert_part(t.actor, "", raylet);
    finding_text_read(other, strlen(other), out, &t);
    finding_text_subject(&t);
    assert_part(t.pid, "7", other);
    assert_part(t.actor, "Actor", other);
    finding_text_read(bad, strlen(bad), out, &t);
    finding_text_subject(&t);
    assert_part(t.pid, "", bad);
    assert_part(t.actor, "raylet", bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(streams),
        cmocka_unit_test(subject),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
