/* SPDX-License-Identifier: Apache-2.0 */
/* Logs to findings: order, wrappers, regions, facts, cuts, patches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"
#include "base/unit_message.h"
#include "core/spec/spec.h"
#include "finding_world.h"

static void judge_cut(const char *log,
                      size_t n,
                      size_t step,
                      const struct finding_facts *facts,
                      struct finding *ret)
{
    struct finder *f = finder_new(rules);
    finder_source(f, "driver.log");
    for (size_t i = 0; i < n; i += step)
        finder_feed(f, log + i, n - i < step ? n - i : step);
    finder_end(f, facts, ret);
    finder_free(f);
}

static void judge(const char *log, const struct finding_facts *facts, struct finding *ret)
{
    judge_cut(log, strlen(log), strlen(log) + 1, facts, ret);
}

static void expect(const char *log, enum finding_class class, const char *line)
{
    struct finding f;
    judge(log, NULL, &f);
    assert_string_equal(finding_class_to_string(f.class), finding_class_to_string(class));
    if (line) {
        assert_true(f.n_evidence > 0);
        assert_non_null(strstr(f.evidence[0].text, line));
    } else {
        assert_int_equal(f.n_evidence, 0);
    }
    finding_release(&f);
}

#define OOM "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
#define WATCHDOG                                                                                   \
    "[rank1]:[E1 ProcessGroupNCCL.cpp:6] [Rank 1] Watchdog caught collective operation timeout: "  \
    "WorkNCCL(SeqNum=9) ran for 600011 milliseconds before timing out.\n"

/* What a neighbour said, or a line that names a place, takes nothing from what happened. */
static void the_programs_own_fault_stays(void **state)
{
    static const char raised[] = "Traceback (most recent call last):\n"
                                 "  File \"t.py\", line 3, in <module>\n    f()\nValueError: bad\n";
    static const char *const before[] = {
        "ERROR server.py:97 -- Handle POST /api/run_code failed: bad request\n",
        "Unable to connect to the server: dial tcp\n",
        "squeue: error: fetch_config: DNS SRV lookup failed\n",
        "n1:12:34 [0] NCCL INFO misc/socket.cc:752 -> 6\n",
        "{'loss': 0.6, 'logits/chosen': nan}\n{'loss': 0.5, 'logits/chosen': nan}\n",
    };
    (void)state;
    for (size_t i = 0; i < array_len(before); i++) {
        _cleanup_(freep) char *log = xasprintf("%s%s", before[i], raised);
        expect(log, FINDING_USER_CODE_ERROR, "ValueError: bad");
    }
    expect("torch.OutOfMemoryError: CUDA out of memory (at \"/x/t.py\", line 3)\n", FINDING_GPU_OOM,
           "out of memory");
    expect("Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
           "    o = cfg[\"optimizer\"]\nKeyError: 'optimizer'\n",
           FINDING_USER_CODE_ERROR, "KeyError");
}

static void classes_have_words(void **state)
{
    (void)state;
    for (int i = 0; i < FINDING_CLASS_COUNT; i++)
        assert_int_equal(finding_class_from_string(finding_class_to_string((enum finding_class)i)),
                         i);
    assert_int_equal(finding_class_from_string("nothing"), -1);
    assert_int_equal(finding_class_from_string(NULL), -1);
}

static void samples_hold(void **state)
{
    struct problems ps = {0};
    (void)state;
    finding_rules_try(rules, &ps);
    for (size_t i = 0; i < ps.n; i++)
        print_error("%s: %s\n", ps.v[i].field, unit_problem(&ps.v[i]));
    assert_int_equal(ps.n, 0);
    problems_release(&ps);
}

static void nothing_is_none(void **state)
{
    (void)state;
    expect("", FINDING_NONE, NULL);
    expect("all is well\n", FINDING_NONE, NULL);
    expect("step:1 - a:1\nstep:2 - a:1\n", FINDING_NONE, NULL);
}

static void first_error_wins(void **state)
{
    (void)state;
    expect("[rank2]: ValueError: parts must not be none\n" WATCHDOG, FINDING_USER_CODE_ERROR,
           "parts");
    expect(WATCHDOG "[rank2]: ValueError: parts must not be none\n", FINDING_NCCL_TIMEOUT,
           "Watchdog");
}

static void roots_beat_symptoms(void **state)
{
    (void)state;
    expect(
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=11.batch.\n",
        FINDING_HOST_OOM, "oom-kill");
    expect(WATCHDOG OOM, FINDING_GPU_OOM, "CUDA out of memory");
}

static void wrappers_are_unknown(void **state)
{
    (void)state;
    expect("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n", FINDING_UNKNOWN,
           "ChildFailed");
    expect("srun: error: n1: task 0: Exited with exit code 1\n", FINDING_UNKNOWN, "srun");
}

static void a_wrapper_that_names_the_cause_is_better_than_nothing(void **state)
{
    (void)state;
    expect("ray.exceptions.RayTaskError(ModuleNotFoundError): ray::T.run() (pid=1)\n",
           FINDING_IMPORT_ERROR, "RayTask");
    expect("ray.exceptions.RayTaskError(ModuleNotFoundError): ray::T.run() (pid=1)\n"
           "ModuleNotFoundError: No module named 'nothing'\n",
           FINDING_IMPORT_ERROR, "No module named");
}

static void steps_excuse_what_came_before(void **state)
{
    (void)state;
    expect("RuntimeError: the board is away\nstep:1 - a:1\nstep:2 - a:1\n", FINDING_NONE, NULL);
    expect("step:1 - a:1\nstep:2 - a:1\nRuntimeError: the board is away\n", FINDING_USER_CODE_ERROR,
           "board");
    expect("step:1 - actor/pg_loss:nan - b:1\nstep:2 - actor/pg_loss:nan - b:1\nstep:3 - "
           "actor/pg_loss:nan - b:1\n",
           FINDING_NAN_LOSS, "step:1");
}

static void frames_give_the_class(void **state)
{
    (void)state;
    expect("Traceback (most recent call last):\n  File \"/x/t.py\", line 3, in load_checkpoint\n"
           "    f()\nKeyError: 'epoch'\n",
           FINDING_CHECKPOINT_ERROR, "KeyError");
    expect("Traceback (most recent call last):\n  File \"/x/t.py\", line 3, in load_checkpoint\n   "
           " f()\n",
           FINDING_CHECKPOINT_ERROR, "load_checkpoint");
    expect("Traceback (most recent call last):\n  File \"/x/t.py\", line 3, in main\nKeyError: "
           "'epoch'\n",
           FINDING_USER_CODE_ERROR, "KeyError");
}

/* A library that refuses a value: the settings, unless the last place is the user's own code or
 * the exception is one of a slip. */
static void the_last_place_gives_the_class(void **state)
{
    static const char library[] =
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n"
        "  File \"/v/site-packages/trl/trainer/x.py\", line 3, in g\n    h()\n";
    char log[1000];
    (void)state;
    text_printf(log, "%sValueError: the board has no wheels\n", library);
    expect(log, FINDING_CONFIG_ERROR, "no wheels");
    text_printf(log, "%sKeyError: 'board'\n", library);
    expect(log, FINDING_USER_CODE_ERROR, "KeyError");
    text_printf(log,
                "%s  File \"b.py\", line 3, in h\n    i()\nValueError: the board has no wheels\n",
                library);
    expect(log, FINDING_USER_CODE_ERROR, "no wheels");
    text_printf(log, "%s    assert x > 0\nAssertionError\n", library);
    expect(log, FINDING_USER_CODE_ERROR, "assert x > 0");
}

/* What it is else: another candidate, what the exception is by itself, what the rule says. */
static void the_second_where_it_is_close(void **state)
{
    struct finding f;
    (void)state;
    judge("Traceback (most recent call last):\n  File \"/x/t.py\", line 3, in load_checkpoint\n"
          "    f()\nKeyError: 'epoch'\n",
          NULL, &f);
    assert_true(f.has_second && f.second.class == FINDING_USER_CODE_ERROR);
    assert_null(f.second.quote.text);
    assert_true(f.confidence + f.second.confidence <= 1.0);
    finding_release(&f);

    judge("KeyError: 'epoch'\nModuleNotFoundError: No module named 'x'\nthe node is dead\n"
          "RuntimeError: Numpy is not available\n",
          NULL, &f);
    assert_true(!f.has_second || f.second.class != f.class);
    finding_release(&f);

    judge("A worker died or was killed while executing a task\n"
          "RuntimeError: Rendezvous of the ranks timed out after 300 s\n",
          NULL, &f);
    assert_true(f.class == FINDING_ACTOR_DIED && f.has_second);
    assert_int_equal(f.second.class, FINDING_TIMEOUT_OR_HANG);
    assert_non_null(strstr(f.second.quote.text, "Rendezvous"));
    assert_int_equal(f.second.quote.line, 2);
    finding_release(&f);

    judge("A worker died or was killed while executing a task\n", NULL, &f);
    assert_true(f.has_second && f.second.class == FINDING_HOST_OOM && !f.second.rule);
    finding_release(&f);
}

/* What is sure, what is unknown and what is healthy have none. */
static void no_second_where_it_is_sure(void **state)
{
    static const char *const logs[] = {OOM "RuntimeError: the board is away\n", "Job 'a' failed\n",
                                       "step:1 - a:1\nstep:2 - a:1\n"};
    struct finding f;
    (void)state;
    for (size_t i = 0; i < array_len(logs); i++) {
        judge(logs[i], NULL, &f);
        assert_false(f.has_second);
        finding_release(&f);
    }
}

/* What was asserted says more than that it did not hold; a notebook names an exception first. */
static void what_says_more(void **state)
{
    (void)state;
    expect("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
           "    assert args.batch_size % n == 0\nAssertionError\n",
           FINDING_CONFIG_ERROR, "assert args.batch_size % n == 0");
    expect("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
           "    assert x\nAssertionError: no x\n",
           FINDING_USER_CODE_ERROR, "AssertionError: no x");
    expect("ArrowInvalid                Traceback (most recent call last)\n9 frames\n"
           "ArrowInvalid: Parquet magic bytes not found in footer.\n",
           FINDING_DATA_ERROR, "ArrowInvalid: Parquet");
    expect("ray.exceptions.RayTaskError(TimeoutError): ray::f() (pid=7)\n", FINDING_TIMEOUT_OR_HANG,
           "RayTaskError(TimeoutError)");
}

/* A vague word counts where nothing else does. */
static void vague_words(void **state)
{
    (void)state;
    expect("the request timed out\nKeyError: 'x'\n", FINDING_USER_CODE_ERROR, "KeyError");
    expect("the request timed out\n", FINDING_TIMEOUT_OR_HANG, "timed out");
    expect("INFO the request timed out\n", FINDING_NONE, NULL);
    expect("Job 'a' succeeded\nthe request timed out\n", FINDING_NONE, NULL);
    expect("Job 'a' succeeded\nKeyError: 'x'\n", FINDING_USER_CODE_ERROR, "KeyError");
}

static void code_is_no_message(void **state)
{
    (void)state;
    expect("Traceback (most recent call last):\n  File \"/x/t.py\", line 3, in main\n"
           "    raise RuntimeError(\"CUDA out of memory\")\nValueError: other\n",
           FINDING_USER_CODE_ERROR, "ValueError");
}

/* Pasted or passed on by a logger a traceback has other indents, or none. */
static void tracebacks_of_any_indent(void **state)
{
    (void)state;
    expect("ERROR:      File \"/x/t.py\", line 3, in main\nERROR:        mkdir(name, mode)\n"
           "ERROR:    PermissionError: [Errno 13] Permission denied: '/app/a'\n",
           FINDING_PERMISSION_OR_PATH, "PermissionError");
    expect("Traceback (most recent call last):\nFile \"/x/t.py\", line 3, in main\n"
           "log(\"CUDA out of memory\")\nValueError: other\n",
           FINDING_USER_CODE_ERROR, "ValueError");
    expect("ain/data/dataset.py\", line 3, in rows\n    return row[key]\nKeyError: 'problem'\n",
           FINDING_DATA_ERROR, "KeyError");
    expect("  Traceback (most recent call last):\n   File \"t.py\", line 3, in main\n    f()\n"
           "    MemoryError\n",
           FINDING_HOST_OOM, "MemoryError");
    expect("     >   File \"t.py\", line 3, in main\n     >     f()\n"
           "     > OSError: [Errno 28] No space left on device\n",
           FINDING_DISK_FULL, "Errno 28");
}

static void ignored_tracebacks(void **state)
{
    (void)state;
    expect("Exception ignored in: <function A.__del__>\nTraceback (most recent call last):\n"
           "  File \"/x/t.py\", line 3, in main\nOSError: [Errno 9] Bad file descriptor\n",
           FINDING_NONE, NULL);
}

static void numbers_heal(void **state)
{
    (void)state;
    expect("{'loss': 1.2, 'grad_norm': nan}\n{'loss': 1.1, 'grad_norm': 2.0}\n"
           "{'loss': 1.0, 'grad_norm': 2.0}\n",
           FINDING_NONE, NULL);
    expect("{'loss': 1.2, 'grad_norm': 2.0}\n{'loss': nan, 'grad_norm': 2.0}\n"
           "{'loss': nan, 'grad_norm': 2.0}\n{'loss': nan, 'grad_norm': 2.0}\n",
           FINDING_NAN_LOSS, "nan");
    /* one step that went wrong is made good by the next, more of them are not */
    expect("{'loss': 1.2, 'grad_norm': nan}\n{'loss': 1.1, 'grad_norm': 2.0}\n", FINDING_NONE,
           NULL);
    expect("{'loss': 1.2, 'grad_norm': nan}\n{'loss': 1.1, 'grad_norm': nan}\n"
           "{'loss': 1.0, 'grad_norm': 2.0}\n",
           FINDING_NAN_LOSS, "nan");
    expect("WARN: grad_norm is not finite: nan\n{'loss': 1.1, 'grad_norm': 2.0}\n",
           FINDING_NAN_LOSS, "not finite");
}

static void a_scale_that_vanishes(void **state)
{
    (void)state;
    expect("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0\n"
           "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 8192.0\n",
           FINDING_NONE, NULL);
    expect("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1.9e-61\n"
           "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 9.5e-62\n",
           FINDING_NAN_LOSS, "1.9e-61");
}

static void guesses_do_not_count(void **state)
{
    (void)state;
    expect("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this "
           "task.\nThe actor is dead because its worker process has died. Worker exit type: "
           "SYSTEM_ERROR Worker exit detail: End of file. Some common causes include: (1) the "
           "process was killed by the OOM killer, (3) the worker crashed due to SIGSEGV.\n",
           FINDING_ACTOR_DIED, "ActorDiedError");
}

static void a_wait_counts_at_the_end(void **state)
{
    static const char wait[] =
        "[INFO] - Waiting in store based barrier for rank: 0 (world_size=2)\n";
    (void)state;
    char *log = xasprintf("%s%s%s", wait, wait, wait);
    expect(log, FINDING_TIMEOUT_OR_HANG, "Waiting in store");
    free(log);
    expect(wait, FINDING_NONE, NULL);
    log = xasprintf("%s%s%2200s\n", wait, wait, "all is well");
    expect(log, FINDING_NONE, NULL);
    free(log);
}

static void the_level_of_a_line_is_a_sign(void **state)
{
    static const char told[] = "2025-01-01 12:00:00 ERROR x.py:7 -- the thing went wrong\n";
    static const char step[] = "step:1 - actor/pg_loss:0.1\nstep:2 - actor/pg_loss:0.1\n";
    char log[256];
    (void)state;
    expect(told, FINDING_UNKNOWN, "the thing went wrong");
    expect("2025-01-01 12:00:00 INFO x.py:7 -- the error went away\n", FINDING_NONE, NULL);
    (void)snprintf(log, sizeof(log), "%s%s", step, told);
    expect(log, FINDING_NONE, NULL); /* steps were made: a level alone is not enough */
    (void)snprintf(log, sizeof(log), "%sJob 'raysubmit_ab' succeeded\n", told);
    expect(log, FINDING_NONE, NULL);
    expect("ERROR:Failed to decode tool call: 'name'\n", FINDING_NONE, NULL);
}

static void what_is_vague_comes_before_what_needs_a_sign(void **state)
{
    (void)state;
    expect("[W socket.cpp:6] [c10d] The client socket has failed to connect to [::1]:4 (errno: 111 "
           "- Connection refused).\n"
           "[E socket.cpp:7] [c10d] The client socket has failed to connect to n7:4.\n",
           FINDING_NCCL_NETWORK, "n7:4");
}

static void a_head_gives_way(void **state)
{
    (void)state;
    expect("[2025-01-01 00:00:00 TP0] Scheduler hit an exception: Traceback (most recent call "
           "last):\n  File \"/x/sglang/srt/scheduler.py\", line 9, in run\n"
           "RuntimeError: it is all too much\n",
           FINDING_INFERENCE_ENGINE_FAILED, "all too much");
    expect("[2025-01-01 00:00:00 TP0] Scheduler hit an exception: Traceback (most recent call "
           "last):\n  File \"/x/sglang/srt/scheduler.py\", line 9, in run\n",
           FINDING_INFERENCE_ENGINE_FAILED, "hit an exception");
    expect("(raylet) worker_pool.cc:9: Fails to create or get runtime env Traceback (most recent "
           "call last):\n"
           "(raylet)   File \"/x/ray/_private/runtime_env/agent/a.py\", line 9, in _create\n"
           "(raylet) ValueError: no directory for this URI\n",
           FINDING_RUNTIME_ENV_FAILED, "no directory for this URI");
}

static void a_message_goes_on(void **state)
{
    static const char head[] = "RuntimeError: Error(s) in loading state_dict for Net:\n";
    struct finding f;
    (void)state;
    char *log = xasprintf("%s\n\tsize mismatch for a.weight\n", head);
    expect(log, FINDING_MODEL_LOAD_ERROR, "for Net: size mismatch for a.weight");
    free(log);
    log = xasprintf("[rank1]: %s[rank0]: all well\n", head);
    judge(log, NULL, &f);
    assert_string_equal(f.evidence[0].text,
                        "[rank1]: RuntimeError: Error(s) in loading state_dict for Net:");
    finding_release(&f);
    free(log);
}

static void ranks_interleave(void **state)
{
    struct finding f;
    (void)state;
    judge("[rank0]: Traceback (most recent call last):\n[rank1]: all well\n"
          "[rank0]:   File \"/x/my_reward.py\", line 3, in compute_score\n"
          "[rank1]: Traceback (most recent call last):\n[rank0]: KeyError: 'a'\n",
          NULL, &f);
    assert_int_equal(f.class, FINDING_USER_CODE_ERROR);
    assert_string_equal(f.rank, "0");
    assert_int_equal(f.evidence[0].line, 5);
    finding_release(&f);
}

static void who_and_where(void **state)
{
    struct finding f;
    (void)state;
    judge("x\n(WorkerDict pid=42, ip=10.0.0.7) " OOM, NULL, &f);
    assert_string_equal(f.actor, "WorkerDict");
    assert_string_equal(f.pid, "42");
    assert_string_equal(f.node, "10.0.0.7");
    assert_int_equal(f.evidence[0].offset, 2);
    assert_int_equal(f.evidence[0].line, 2);
    assert_string_equal(f.evidence[0].source, "driver.log");
    assert_true(f.n_patch > 0);
    finding_release(&f);
}

static void facts_decide(void **state)
{
    static const struct {
        struct finding_facts facts;
        const char *log;
        enum finding_class class;
    } rows[] = {
        {{.ended_well = true}, OOM, FINDING_NONE},
        {{.exit_known = true}, OOM, FINDING_NONE},
        {{.exit_known = true, .exit_code = 1}, "", FINDING_UNKNOWN},
        {{.exit_known = true, .exit_code = 137, .signal = 9}, "", FINDING_ACTOR_DIED},
        {{.exit_known = true, .exit_code = 137}, "", FINDING_ACTOR_DIED},
        {{.exit_known = true, .exit_code = 143}, "", FINDING_PREEMPTED_OR_STOPPED},
        {{.exit_known = true, .exit_code = 255}, "", FINDING_UNKNOWN},
        {{.exit_known = true, .signal = 9, .oom_kills = 1}, "", FINDING_HOST_OOM},
        {{.exit_known = true, .signal = 9, .oom_kills = 1, .oom_unsure = true},
         "",
         FINDING_HOST_OOM},
        {{.stopped = true}, OOM, FINDING_PREEMPTED_OR_STOPPED},
        {{.preempted = true}, "", FINDING_PREEMPTED_OR_STOPPED},
        {{.lost_node = "n7"}, WATCHDOG, FINDING_NODE_LOST},
        {{.xid = 79}, "RuntimeError: CUDA error: unknown error\n", FINDING_GPU_HARDWARE},
        {{.xid = 31}, "RuntimeError: CUDA error: unknown error\n", FINDING_CUDA_ERROR},
        {{.timed_out = true}, "", FINDING_TIMEOUT_OR_HANG},
        {{.hung = true}, "", FINDING_TIMEOUT_OR_HANG},
        {{.not_started = true}, "", FINDING_PLATFORM},
        {{.head_lost = true}, "", FINDING_NODE_LOST},
        {{.shepherd_killed = true}, "", FINDING_PLATFORM},
        {{.shepherd_killed = true}, OOM, FINDING_GPU_OOM},
        {{.import_mismatch = true}, OOM, FINDING_IMPORT_ERROR},
        {{.disk_full = true}, "", FINDING_DISK_FULL},
        {{.shm_full = true}, "", FINDING_SHM_EXHAUSTED},
        {{.metrics_nan = true}, "", FINDING_NAN_LOSS},
        {{.oom_kills = 2}, OOM, FINDING_GPU_OOM},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct finding f;
        judge(rows[i].log, &rows[i].facts, &f);
        if (f.class != rows[i].class)
            print_error("row %zu: %s\n", i, finding_class_to_string(f.class));
        assert_int_equal(f.class, rows[i].class);
        finding_release(&f);
    }
}

/* A fact is quoted with what is known of it, also where a line of the log decides. */
static void facts_are_quoted(void **state)
{
    (void)state;
    static const char line[] = "Memory cgroup out of memory: Killed process 17 (python3)";
    static const struct {
        struct finding_facts facts;
        const char *text;
    } rows[] = {
        {{.exit_known = true, .signal = 9}, "the driver was killed by a signal: 9"},
        {{.exit_known = true, .signal = 9, .oom_kills = 1, .oom_line = line}, line},
        {{.xid = 79}, "Xid that means hardware: 79"},
        {{.xid = 79, .xid_line = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus"},
         "hardware: NVRM: Xid (PCI"},
        {{.metrics_nan = true, .nan_text = "'actor/grad_norm' since step 7"}, "since step 7"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct finding f;
        judge("", &rows[i].facts, &f);
        assert_int_equal(f.n_evidence, 1);
        assert_non_null(strstr(f.evidence[0].text, rows[i].text));
        finding_release(&f);
    }
}

#define ANOTHER_DIED "ray.exceptions.ActorDiedError: The actor died unexpectedly\n"

static void a_kill_that_may_be_another_job_s_is_a_guess(void **state)
{
    (void)state;
    struct finding_facts facts = {.exit_known = true, .signal = 9, .oom_kills = 1};
    for (int unsure = 0; unsure < 2; unsure++) {
        struct finding f;
        facts.oom_unsure = unsure;
        judge("", &facts, &f);
        assert_int_equal(f.is_vague, unsure);
        assert_true((f.confidence < 0.5) == unsure);
        assert_true(!strstr(f.evidence[0].text, "not certain") == !unsure);
        finding_release(&f);
        judge(ANOTHER_DIED, &facts, &f);
        assert_int_equal(f.class, unsure ? FINDING_ACTOR_DIED : FINDING_HOST_OOM);
        finding_release(&f);
    }
}
#define ELSEWHERE                                                                                  \
    "(raylet, ip=10.0.0.9) node_manager.cc:3517: 1 Workers (tasks / actors) killed due to memory " \
    "pressure (OOM), 0 Workers crashed due to other reasons at node (ID: ab, IP: 10.0.0.9)\n"

static void what_befell_other_nodes_is_not_ours(void **state)
{
    (void)state;
    struct pairs nodes = {0};
    struct finding f;
    judge(ANOTHER_DIED ELSEWHERE, &(struct finding_facts){0}, &f);
    assert_int_equal(f.class, FINDING_HOST_OOM);
    finding_release(&f);
    pairs_set(&nodes, "10.0.0.1", "n1");
    judge(ANOTHER_DIED ELSEWHERE, &(struct finding_facts){.nodes = &nodes}, &f);
    assert_int_equal(f.class, FINDING_ACTOR_DIED);
    finding_release(&f);
    pairs_set(&nodes, "10.0.0.9", "n9");
    judge(ANOTHER_DIED ELSEWHERE, &(struct finding_facts){.nodes = &nodes}, &f);
    assert_int_equal(f.class, FINDING_HOST_OOM);
    finding_release(&f);
    pairs_release(&nodes);
}

static char *as_json(const struct finding *f)
{
    struct buf b = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&b);
    finding_to_json(f, &j, NULL);
    assert_false(b.failed);
    return buf_take(&b);
}

static void cuts_change_nothing(void **state)
{
    static const char log[] =
        "x\r\ny\rbar 10%\rbar 20%\r[rank0]: Traceback (most recent call last):\n"
        "[rank0]:   File \"/x/y.py\", line 1, in from_pretrained\n[rank0]: OSError: no\n\n\r" OOM
        "end";
    (void)state;
    struct finding f;
    judge(log, NULL, &f);
    char *whole = as_json(&f);
    finding_release(&f);
    for (size_t step = 1; step < 40; step++) {
        judge_cut(log, sizeof(log) - 1, step, NULL, &f);
        char *cut = as_json(&f);
        assert_true(!strcmp(whole, cut));
        free(cut);
        finding_release(&f);
    }
    free(whole);
}

/* Lines far beyond the ceiling, with an error before, at and behind each cut. */
static void long_lines(void **state)
{
    size_t n = 3 * FINDING_LINE_MAX;
    char *log = xmalloc(n);
    (void)state;
    for (size_t at = FINDING_LINE_MAX - 40; at < FINDING_LINE_MAX + 40; at += 10) {
        struct finding a, b;
        memset(log, 'x', n);
        memcpy(log + at, " MemoryError: CUDA out of memory ", 33);
        judge_cut(log, n, n, NULL, &a);
        judge_cut(log, n, 1000, NULL, &b);
        char *one = as_json(&a), *two = as_json(&b);
        assert_true(!strcmp(one, two));
        free(one);
        free(two);
        finding_release(&a);
        finding_release(&b);
    }
    free(log);
}

static void json_goes_round(const char *log)
{
    struct finding f, again;
    json_t *v = NULL;
    judge(log, NULL, &f);
    char *one = as_json(&f);
    assert_int_equal(json_parse(one, strlen(one), 1 << 20, &v, NULL), 0);
    assert_int_equal(finding_from_json(v, &again, NULL), 0);
    char *two = as_json(&again);
    assert_string_equal(one, two);
    assert_true(again.has_second);
    free(one);
    free(two);
    json_decref(v);
    finding_release(&f);
    finding_release(&again);
}

static void json_and_back(void **state)
{
    struct finding f, again;
    struct err err = {0};
    json_t *v = NULL;
    (void)state;
    json_goes_round("A worker died or was killed\nTimeoutError: no answer\n");
    json_goes_round("A worker died or was killed while executing a task\n");
    judge("(W pid=1, ip=h) " OOM WATCHDOG, NULL, &f);
    char *one = as_json(&f);
    assert_int_equal(json_parse(one, strlen(one), 1 << 20, &v, &err), 0);
    assert_int_equal(finding_from_json(v, &again, &err), 0);
    char *two = as_json(&again);
    assert_true(!strcmp(one, two));
    free(one);
    free(two);
    json_decref(v);
    finding_release(&f);
    finding_release(&again);
    v = json_object();
    assert_true(finding_from_json(v, &again, &err) < 0);
    finding_release(&again);
    json_decref(v);
}

static void one_line(void **state)
{
    struct finding f;
    char text[100];
    (void)state;
    judge("(W pid=1, ip=n7) " OOM, NULL, &f);
    assert_int_equal(strncmp(finding_line(&f, text, sizeof(text)), "gpu_oom on n7: (W pid", 21), 0);
    finding_release(&f);
}

/* The patch of a log for a spec, as text. */
static char *patch(const char *log, const char *yaml, int *ret_n)
{
    struct finding f;
    struct spec s;
    struct problems ps = {0};
    struct doc *d = NULL;
    struct buf b = BUF_INIT(1 << 16);
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, &ps), 0);
    assert_int_equal(spec_read(doc_root(d), NULL, &s, &ps), 0);
    judge(log, NULL, &f);
    struct jout j = jout_begin(&b);
    *ret_n = finding_patch_to_json(&f, &s, &j, NULL);
    finding_release(&f);
    spec_release(&s);
    doc_free(d);
    problems_release(&ps);
    return buf_take(&b);
}

#define GRPO "workload: grpo\nn_gpus_per_node: 1\nmodel_id: /m\ntrain_file: /a\nval_file: /b\n"

#define NODE_DEAD                                                                                  \
    "ray.exceptions.ActorDiedError: The actor died because its node has died. Node Id: ab12\n"
#define ACTOR_DEAD                                                                                 \
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"

static void patches(void **state)
{
    int n;
    (void)state;
    char *text = patch(
        OOM, GRPO "overrides: [+actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=5, a.b=1]\n",
        &n);
    assert_int_equal(n, 2);
    assert_non_null(
        strstr(text, "\"+actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1\",\"a.b=1\""));
    assert_non_null(strstr(text, "gpu_memory_utilization=0.4"));
    free(text);
    text = patch(OOM, GRPO "overrides: [data.max_prompt_length=9000]\n", &n);
    assert_int_equal(n, 2);
    assert_non_null(strstr(text, "\"actor_rollout_ref.actor.ppo_max_token_len_per_gpu=9512\""));
    free(text);
    text = patch("OSError: [Errno 28] No space left on device\n", GRPO, &n);
    assert_int_equal(n, 1);
    assert_string_equal(text, "{\"checkpoint\":{\"keep_last\":1}}");
    free(text);
    text = patch("OSError: [Errno 28] No space left on device\n",
                 GRPO "checkpoint: {keep_last: 1}\n", &n);
    assert_int_equal(n, 0);
    free(text);
    text = patch(NODE_DEAD, GRPO, &n);
    assert_int_equal(n, 0); /* it is so by itself */
    free(text);
    text = patch(NODE_DEAD, GRPO "restart: {avoid_failed_nodes: false, max: 2}\n", &n);
    assert_int_equal(n, 1);
    assert_string_equal(text, "{\"restart\":{\"avoid_failed_nodes\":true}}");
    free(text);
    text = patch(ACTOR_DEAD, GRPO, &n);
    assert_string_equal(text, "{\"restart\":{\"max\":1,\"on\":\"actor_died\"}}");
    free(text);
    text = patch(ACTOR_DEAD, GRPO "restart: {max: 1, on: [nccl_timeout]}\n", &n);
    assert_string_equal(text, "{\"restart\":{\"max\":2}}"); /* what the user set stays */
    free(text);
    text = patch(ACTOR_DEAD, GRPO "restart: {max: 3, on: [actor_died]}\n", &n);
    assert_int_equal(n, 0);
    free(text);
    text = patch(OOM, "workload: ray\nn_gpus_per_node: 1\nentrypoint: [a]\n", &n);
    assert_int_equal(n, 0);
    assert_string_equal(text, "{}");
    free(text);
    text = patch("MemoryError\n", GRPO "memory_per_node: 100GiB\n", &n);
    assert_int_equal(n, 1);
    assert_non_null(strstr(text, "\"memory_per_node\":\"161061273600\""));
    free(text);
}

/* Alternatives that mean nothing, or another thing, by themselves. */
static void woven_rules(void **state)
{
    static const struct {
        const char *pattern, *line;
    } rows[] = {
        {"(hello) there|(world) and \\2", "world and world"},
        {"(hello) there|so \\1", "hello there"},
        {"^hello (?i)there|world", "WORLD"},
        {"hello|(?i)world|there", "THERE"},
        {"(?<x>hello)|(?&x) world", "hello world"},
        {"(zebra|hello) \\1|world", "zebra zebra"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        char *text = xasprintf("family: x\nrules: [{id: a, class: gpu_oom, advice: b, find: "
                               "[hello, world, there, zebra], pattern: '%s', samples: {match: "
                               "['%s'], miss: [b]}}]",
                               rows[i].pattern, rows[i].line);
        struct finding_rules *r = finding_rules_new(), *usual = rules;
        struct problems ps = {0};
        struct err err = {0};
        assert_int_equal(finding_rules_add(r, text, strlen(text), &ps), 0);
        assert_int_equal(finding_rules_compile(r, &err), 0);
        finding_rules_try(r, &ps);
        assert_int_equal(ps.n, 0);
        rules = r;
        expect(rows[i].line, FINDING_GPU_OOM, rows[i].line);
        rules = usual;
        finding_rules_free(r);
        free(text);
    }
}

/* A line that said nothing stands for those that differ in digits a rule does not care for. */
static void alike_lines(void **state)
{
    static const char *const rows[][2] = {
        {"job 7 is preempted\njob 8 is preempted\n", "job 9 has state PREEMPTED"},
        {"Error code: 200 - fine\nError code: 201 - fine\n", "Error code: 401 - no"},
        {"the job 7 has state preempted\n", "the job 7 has state PREEMPTED"},
        {"  x = torch.cuda.OutOfMemoryError\n", "torch.cuda.OutOfMemoryError: CUDA out of memory."},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        char *log = xasprintf("%s%s", rows[i][0], rows[i][1]);
        struct finding alone, both;
        judge(rows[i][1], NULL, &alone);
        judge(log, NULL, &both);
        assert_int_not_equal(alone.class, FINDING_NONE);
        assert_int_equal(alone.class, both.class);
        finding_release(&alone);
        finding_release(&both);
        free(log);
    }
}

static void bad_rules(void **state)
{
    static const char *const rows[] = {
        "- a",
        "family: x",
        "family: x\nrules: [{id: a}]",
        "family: x\nrules: [{id: A, pattern: hello, role: benign, samples: {match: [hello]}}]",
        "family: x\nrules: [{id: a, pattern: '(hello', role: benign, samples: {match: [hello]}}]",
        "family: x\nrules: [{id: a, pattern: 'h?.*', role: benign, samples: {match: [hello]}}]",
        "family: x\nrules: [{id: a, pattern: hello, role: cause, samples: {match: [hello]}}]",
        "family: x\nrules: [{id: a, pattern: hello, role: benign, nothing: 1, samples: {match: "
        "[hello]}}]",
        "family: x\nrules: [{id: a, pattern: hello, class: gpu_oom, advice: b, samples: {match: "
        "[hello], miss: [b]}, "
        "patch: [{key: nothing, set: 1}]}]",
        "family: x\nrules: [{id: a, pattern: hello, class: gpu_oom, advice: b, samples: {match: "
        "[hello], miss: [b]}, "
        "patch: [{key: priority, set: 1000}]}]",
        "family: x\nrules: [{id: a, pattern: hello, class: gpu_oom, advice: b, samples: {match: "
        "[hello], miss: [b]}, "
        "patch: [{key: env.PYTHONPATH, set: a}]}]",
        "family: x\nrules: [{id: a, pattern: '\\Qhello|\\Ex', role: benign, samples: {match: "
        "[hello]}}]",
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct finding_rules *r = finding_rules_new();
        struct problems ps = {0};
        assert_true(finding_rules_add(r, rows[i], strlen(rows[i]), &ps) < 0);
        assert_true(ps.n > 0);
        problems_release(&ps);
        finding_rules_free(r);
    }
}

static void sources(void **state)
{
    struct finding f;
    struct finder *d = finder_new(rules);
    (void)state;
    finder_source(d, "driver.log");
    finder_feed(d, "ray.exceptions.RayTaskError(X): ray::a() (pid=1)", 48);
    finder_source(d, "worker.log");
    finder_feed(d, "\n" OOM, strlen(OOM) + 1);
    finder_end(d, NULL, &f);
    assert_int_equal(f.class, FINDING_GPU_OOM);
    assert_string_equal(f.evidence[0].source, "worker.log");
    assert_int_equal(f.evidence[0].line, 2);
    assert_int_equal(f.evidence[0].offset, 1);
    finding_release(&f);
    finder_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_programs_own_fault_stays),
        cmocka_unit_test(classes_have_words),
        cmocka_unit_test(samples_hold),
        cmocka_unit_test(nothing_is_none),
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(roots_beat_symptoms),
        cmocka_unit_test(wrappers_are_unknown),
        cmocka_unit_test(a_wrapper_that_names_the_cause_is_better_than_nothing),
        cmocka_unit_test(steps_excuse_what_came_before),
        cmocka_unit_test(frames_give_the_class),
        cmocka_unit_test(the_last_place_gives_the_class),
        cmocka_unit_test(the_second_where_it_is_close),
        cmocka_unit_test(no_second_where_it_is_sure),
        cmocka_unit_test(what_says_more),
        cmocka_unit_test(vague_words),
        cmocka_unit_test(code_is_no_message),
        cmocka_unit_test(tracebacks_of_any_indent),
        cmocka_unit_test(ignored_tracebacks),
        cmocka_unit_test(numbers_heal),
        cmocka_unit_test(a_scale_that_vanishes),
        cmocka_unit_test(guesses_do_not_count),
        cmocka_unit_test(a_wait_counts_at_the_end),
        cmocka_unit_test(the_level_of_a_line_is_a_sign),
        cmocka_unit_test(what_is_vague_comes_before_what_needs_a_sign),
        cmocka_unit_test(a_head_gives_way),
        cmocka_unit_test(a_message_goes_on),
        cmocka_unit_test(ranks_interleave),
        cmocka_unit_test(who_and_where),
        cmocka_unit_test(facts_decide),
        cmocka_unit_test(facts_are_quoted),
        cmocka_unit_test(a_kill_that_may_be_another_job_s_is_a_guess),
        cmocka_unit_test(what_befell_other_nodes_is_not_ours),
        cmocka_unit_test(cuts_change_nothing),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(json_and_back),
        cmocka_unit_test(one_line),
        cmocka_unit_test(patches),
        cmocka_unit_test(bad_rules),
        cmocka_unit_test(woven_rules),
        cmocka_unit_test(alike_lines),
        cmocka_unit_test(sources),
    };
    return cmocka_run_group_tests(tests, finding_set_up, finding_tear_down);
}
