/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of raylet.c and raylet.sh: on this machine, with a `ray` that is a script of the test.
 */
#include "ssh/raylet.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/unit_dir.h"
#include "base/unit_message.h"
#include "ssh/probe.h"

struct world {
    uv_loop_t loop;
    char *root, *bin, *owner;
    struct raylet_spec spec;
    struct raylet_started started;
    struct raylet_stopped stopped;
    struct raylet_look look;
    int calls;
};

static const struct ssh_target here = {.name = "n1", .local = true};

static void on_started(const struct raylet_started *r, void *arg)
{
    struct world *w = arg;
    w->started = *r;
    w->calls++;
}

static void on_stopped(const struct raylet_stopped *r, void *arg)
{
    struct world *w = arg;
    w->stopped = *r;
    w->calls++;
}

static void on_look(const struct raylet_look *r, void *arg)
{
    struct world *w = arg;
    w->look = *r;
    w->calls++;
}

static void finish(struct world *w, int calls)
{
    assert_int_equal(w->calls, 0);
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(w->calls, calls);
    w->calls = 0;
}

static void start(struct world *w)
{
    (void)raylet_start(&w->loop, &here, &w->spec, USEC_MIN, on_started, w); /* it ends by itself */
    finish(w, 1);
}

static void stop(struct world *w)
{
    (void)raylet_stop(&w->loop, &here, w->owner, "n1", 5 * USEC_SEC, on_stopped, w);
    finish(w, 1);
}

static void look(struct world *w)
{
    struct raylet_want want = {.owner = w->owner, .node = "n1"};
    (void)raylet_look(&w->loop, &here, &want, USEC_MIN, on_look, w);
    finish(w, 1);
}

/* As Ray's own start, it ends when its raylet runs: until the exec it has another name. */
#define STARTS_RAYLET                                                                              \
    "\"${0%/*}/raylet\" 600 &\n"                                                                   \
    "while read c </proc/$!/comm && [ \"$c\" != raylet ]; do :; done\n"

/* A program called `raylet` that does nothing, for the kernel gives a process its file's name. */
static void make_programs(struct world *w, const char *ray)
{
    _cleanup_(freep) char *raylet = xasprintf("%s/bin/raylet", w->root);
    put(w->root, "bin/ray", ray);
    if (!file_is_there(raylet))
        assert_int_equal(symlink("/bin/sleep", raylet), 0);
    assert_int_equal(chmod(w->bin, 0755), 0);
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    if (root_setup((void **)&w->root) < 0)
        return -1;
    w->bin = xasprintf("%s/bin/ray", w->root);
    w->owner = xasprintf("unit-%d", getpid());
    make_programs(w, "#!/bin/sh\n" STARTS_RAYLET);
    w->spec = (struct raylet_spec){.owner = w->owner,
                                   .node = "n1",
                                   .ray_bin = w->bin,
                                   .address = "10.0.0.1:6379",
                                   .node_ip = "10.0.0.2"};
    *state = w;
    return uv_loop_init(&w->loop);
}

static int teardown(void **state)
{
    struct world *w = *state;
    stop(w);
    int r = uv_loop_close(&w->loop);
    r |= root_teardown((void **)&w->root);
    _cleanup_(freep) char *node = xasprintf("/tmp/argus-%u/%s/n1", getuid(), w->owner);
    _cleanup_(freep) char *log = xasprintf("%s/start.log", node);
    (void)unlink(log); /* of a test that made one */
    r |= rmdir(node);
    *strrchr(node, '/') = 0;
    r |= rmdir(node);
    free(w->bin);
    free(w->owner);
    free(w);
    return r;
}

static void record_path(struct world *w, char *ret, size_t size)
{
    (void)snprintf(ret, size, "/tmp/argus-%u/%s/n1", getuid(), w->owner);
}

/* A zombie that nobody waits for is not there. */
static bool is_there(int64_t pid)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(4096);
    _cleanup_(freep) char *path = xasprintf("/proc/%d/stat", (int)pid);
    if (file_read(path, &text, NULL) < 0)
        return false;
    const char *end = strrchr(buf_str(&text), ')');
    return end && end[2] != 'Z';
}

static void test_start_look_stop(void **state)
{
    struct world *w = *state;
    start(w);
    if (w->started.end.outcome != RAYLET_OK)
        fail_msg("%s",
                 unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text));
    assert_true(w->started.facts.alive && !w->started.adopted && is_there(w->started.facts.pid));
    struct raylet_facts first = w->started.facts;
    look(w);
    assert_int_equal(w->look.end.outcome, RAYLET_OK);
    assert_true(w->look.facts.alive && w->look.facts.pid == first.pid);
    start(w);
    assert_true(w->started.adopted && w->started.facts.pid == first.pid);
    assert_string_equal(w->started.facts.token, first.token);
    stop(w);
    assert_int_equal(w->stopped.end.outcome, RAYLET_OK);
    assert_int_equal(w->stopped.ended, 1);
    look(w);
    assert_true(!w->look.facts.alive && !w->look.facts.starting);
    stop(w);
    assert_int_equal(w->stopped.ended, 0);
}

static void test_words_reach_ray_exactly(void **state)
{
    struct world *w = *state;
    make_programs(w, "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >\"${0%/*}/words\"\n"
                     "env | grep -e '^X=' -e ^SSH_ -e ^ARGUS_NODE >\"${0%/*}/env\"; umask "
                     ">>\"${0%/*}/env\"\n" STARTS_RAYLET);
    struct pairs env = {0}, ports = {0};
    pairs_set(&env, "X", "a 'b' \"c\" $d");
    pairs_set(&ports, "node-manager-port", "6380");
    w->spec.env = &env;
    w->spec.ports = &ports;
    w->spec.cpus = 7.9;
    w->spec.gpus = 4;
    w->spec.resources_json = "{\"worker_node\": 100}";
    w->spec.labels = "argus.node=n1";
    w->spec.object_store_bytes = 1000;
    w->spec.temp_dir = "/tmp/r";
    assert_int_equal(setenv("SSH_CLIENT", "x", 1), 0);
    mode_t old = umask(0027);
    start(w);
    (void)umask(old);
    assert_int_equal(unsetenv("SSH_CLIENT"), 0);
    pairs_release(&env);
    pairs_release(&ports);
    assert_int_equal(w->started.end.outcome, RAYLET_OK);
    assert_text(
        w->root, "bin/words",
        "start\n--address=10.0.0.1:6379\n--node-ip-address=10.0.0.2\n--num-cpus=7\n--num-gpus=4\n"
        "--resources={\"worker_node\": 100}\n--labels=argus.node=n1\n--temp-dir=/tmp/r\n"
        "--object-store-memory=1000\n--disable-usage-stats\n--node-manager-port=6380\n");
    _cleanup_(freep) char *got = get(w->root, "bin/env");
    assert_non_null(strstr(got, "X=a 'b' \"c\" $d\n"));
    assert_non_null(strstr(got, "ARGUS_NODE=n1\n"));
    assert_non_null(
        strstr(got, "0027\n")); /* what jobs write is as open as the login's umask says */
    assert_null(strstr(got, "SSH_"));
}

/* Without an address of its own a worker takes that by which it reaches its head. */
static void test_own_address(void **state)
{
    struct world *w = *state;
    make_programs(w, "#!/bin/sh\nfor word; do last=$word; done; echo \"$last\" "
                     ">\"${0%/*}/last\"\n" STARTS_RAYLET);
    put(w->root, "bin/python3", "#!/bin/sh\nexec /usr/bin/env python3 \"$@\"\n");
    _cleanup_(freep) char *python = xasprintf("%s/bin/python3", w->root);
    assert_int_equal(chmod(python, 0755), 0);
    w->spec.node_ip = NULL;
    w->spec.address = "127.0.0.9:6379";
    start(w);
    assert_int_equal(w->started.end.outcome, RAYLET_OK);
    assert_string_equal(w->started.facts.node_ip, "127.0.0.1");
    assert_text(w->root, "bin/last", "--node-ip-address=127.0.0.1\n");
}

static void test_start_that_fails_leaves_nothing(void **state)
{
    struct world *w = *state;
    make_programs(w, "#!/bin/sh\n" STARTS_RAYLET "echo $! >\"${0%/*}/pid\"\necho "
                     "'ValueError: no' >&2\nexit 3\n");
    start(w);
    assert_int_equal(w->started.end.outcome, RAYLET_START_FAILED);
    assert_non_null(
        strstr(unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text),
               "(status 3): ValueError: no"));
    _cleanup_(freep) char *pid = get(w->root, "bin/pid");
    int64_t n = strtol(pid, NULL, 10);
    assert_true(n > 1 && !is_there(n));
    make_programs(w, "#!/bin/sh\nexit 0\n");
    start(w);
    assert_int_equal(w->started.end.outcome, RAYLET_START_FAILED);
    assert_non_null(
        strstr(unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text),
               "gone at once"));
}

#define STARTS_HEAD                                                                                \
    STARTS_RAYLET "\"${0%/*}/gcs_server\" 600 &\n"                                                 \
                  "while read c </proc/$!/comm && [ \"$c\" != gcs_server ]; do :; done\n"

static int listen_somewhere(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* A start has failed when the dashboard never listens; a head that runs already is adopted whatever
 * its dashboard does. */
static void test_head_and_its_dashboard(void **state)
{
    struct world *w = *state;
    struct pairs ports = {0};
    char text[16];
    int port, fd = listen_somewhere(&port);
    _cleanup_(freep) char *gcs = xasprintf("%s/bin/gcs_server", w->root);
    assert_int_equal(symlink("/bin/sleep", gcs), 0);
    make_programs(w, "#!/bin/sh\n" STARTS_HEAD);
    (void)snprintf(text, sizeof(text), "%d", port); /* fits */
    pairs_set(&ports, "dashboard-port", text);
    w->spec.head = true;
    w->spec.ports = &ports;
    w->spec.dashboard_wait = USEC_SEC;
    start(w);
    if (w->started.end.outcome != RAYLET_OK)
        fail_msg("%s",
                 unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text));
    int64_t first = w->started.facts.pid;
    w->spec.spare = true;
    assert_int_equal(kill((pid_t)first, SIGKILL), 0);
    start(w);
    assert_int_equal(w->started.end.outcome, RAYLET_GCS_ALONE);
    look(w);
    assert_true(!w->look.facts.alive && w->look.facts.has_gcs);
    w->spec.spare = false; /* nothing runs by it any more */
    start(w);
    assert_true(w->started.end.outcome == RAYLET_OK && !w->started.adopted);
    first = w->started.facts.pid;
    assert_int_equal(close(fd), 0);
    start(w);
    assert_true(w->started.end.outcome == RAYLET_OK && w->started.adopted);
    assert_int_equal(w->started.facts.pid, first);
    stop(w);
    start(w);
    assert_int_equal(w->started.end.outcome, RAYLET_START_FAILED);
    if (!strstr(unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text),
                "its dashboard did not listen"))
        fail_msg("%s",
                 unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text));
    look(w);
    assert_true(!w->look.facts.alive && !w->look.facts.starting && !w->look.facts.has_gcs);
    stop(w);
    assert_int_equal(w->stopped.ended, 0);
    pairs_release(&ports);
}

/* Two at once, from two argusd as it were: one raylet, and both hear of it. */
static void test_two_starts_at_once(void **state)
{
    struct world *w = *state;
    struct world other = {.loop = w->loop};
    (void)raylet_start(&w->loop, &here, &w->spec, USEC_MIN, on_started, w);
    (void)raylet_start(&w->loop, &here, &w->spec, USEC_MIN, on_started, &other);
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    assert_true(w->calls == 1 && other.calls == 1);
    w->calls = 0;
    assert_int_equal(w->started.end.outcome, RAYLET_OK);
    assert_int_equal(other.started.end.outcome, RAYLET_OK);
    assert_int_equal(w->started.facts.pid, other.started.facts.pid);
    assert_int_equal(w->started.adopted + other.started.adopted, 1);
}

/* The lock of a holder that is gone: its pid may be somebody else's by now. */
static void test_lock_of_the_dead(void **state)
{
    struct world *w = *state;
    char dir[200], lock[220], holder[200];
    start(w); /* makes the directory */
    record_path(w, dir, sizeof(dir));
    (void)snprintf(lock, sizeof(lock), "%s/lock", dir);
    (void)snprintf(holder, sizeof(holder), "%d.1.%s", getpid(),
                   w->started.facts.boot_id); /* our pid, another start */
    assert_int_equal(symlink(holder, lock), 0);
    start(w);
    assert_true(w->started.end.outcome == RAYLET_OK && w->started.adopted);
    assert_false(file_is_there(lock));
}

/* Nobody may spin on it: who took it over may have died in the middle. */
static void test_lock_of_the_dead_that_somebody_takes_over(void **state)
{
    struct world *w = *state;
    char dir[200], lock[220], claim[420], holder[200];
    start(w);
    record_path(w, dir, sizeof(dir));
    (void)snprintf(lock, sizeof(lock), "%s/lock", dir);
    (void)snprintf(holder, sizeof(holder), "%d.1.%s", getpid(), w->started.facts.boot_id);
    (void)snprintf(claim, sizeof(claim), "%s/claim.%s", dir, holder);
    assert_int_equal(symlink(holder, lock), 0);
    assert_int_equal(mkdir(claim, 0700), 0);
    (void)raylet_start(&w->loop, &here, &w->spec, 8 * USEC_SEC, on_started,
                       w); /* 6 s of them for the lock */
    finish(w, 1);
    assert_int_equal(w->started.end.outcome, RAYLET_BUSY);
    assert_int_equal(rmdir(claim), 0);
    start(w); /* now it is nobody's */
    assert_true(w->started.end.outcome == RAYLET_OK && w->started.adopted);
}

static void test_lock_of_the_living(void **state)
{
    struct world *w = *state;
    char dir[200], lock[220], holder[200], line[1024];
    start(w);
    record_path(w, dir, sizeof(dir));
    (void)snprintf(lock, sizeof(lock), "%s/lock", dir);
    _cleanup_(buf_release) struct buf stat = BUF_INIT(sizeof(line));
    assert_int_equal(file_read("/proc/self/stat", &stat, NULL), 0);
    const char *p = strrchr(buf_str(&stat), ')') + 2;
    for (int i = 0; i < 19; i++)
        p = strchr(p, ' ') + 1;
    (void)snprintf(holder, sizeof(holder), "%d.%.*s.%s", getpid(), (int)strcspn(p, " "), p,
                   w->started.facts.boot_id);
    assert_int_equal(symlink(holder, lock), 0);
    (void)raylet_start(&w->loop, &here, &w->spec, 1400 * USEC_MS, on_started,
                       w); /* 1 s of them for the lock */
    finish(w, 1);
    assert_int_equal(w->started.end.outcome, RAYLET_BUSY);
    assert_int_equal(unlink(lock), 0);
}

/* A pid that was given to somebody else meanwhile: neither alive nor ended. */
static void test_recycled_pid_is_left_alone(void **state)
{
    struct world *w = *state;
    char dir[200];
    start(w);
    struct raylet_facts old = w->started.facts;
    stop(w);
    record_path(w, dir, sizeof(dir));
    _cleanup_(freep) char *record = xasprintf(
        "BOOT=%s\nTOKEN=%s\nSESSION=%d 1\nSTATE=up\nRAYLET=%d 1\nHEAD=0\nADDRESS=\nNODE_IP=\n"
        "PROC=%d 1\n",
        old.boot_id, old.token, getsid(0), getpid(), getpid());
    put(dir, "record", record);
    look(w);
    assert_false(w->look.facts.alive);
    stop(w); /* this process is in that session, has that pid, and goes on */
    assert_int_equal(w->stopped.end.outcome, RAYLET_OK);
    assert_int_equal(w->stopped.ended, 0);
}

static void on_probe(const struct probe_result *r, void *arg)
{
    bool *taken = arg;
    *taken = false;
    for (size_t i = 0; i < r->n_findings; i++)
        *taken |= !strcmp(r->findings[i].code, "port_taken");
}

static bool is_port_taken(struct world *w, int port)
{
    bool taken = false;
    struct probe_want want = {.owner = w->owner, .node = "n1", .ports = &port, .n_ports = 1};
    (void)probe_start(&w->loop, &here, &want, USEC_MIN, on_probe, &taken);
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    return taken;
}

/* Ray's agents outlive a raylet that was killed, without parent and environment, and hold their
 * ports: the next start ends them, so they are in nobody's way. */
static void test_port_of_who_was_written_down(void **state)
{
    struct world *w = *state;
    char dir[200], stat[600] = "";
    int port, fd = listen_somewhere(&port);
    start(w);
    stop(w);
    assert_true(is_port_taken(w, port));
    _cleanup_(freep) char *path = xasprintf("/proc/%d/stat", getpid());
    FILE *f = fopen(path, "re");
    assert_true(f && fgets(stat, sizeof(stat), f));
    assert_int_equal(fclose(f), 0);
    const char *word = strrchr(stat, ')') + 1;
    for (int i = 0; i < 20; i++)
        word = strchr(word, ' ') + 1;
    _cleanup_(freep) char *record =
        xasprintf("PROC=%d %.*s\n", getpid(), (int)strcspn(word, " "), word);
    record_path(w, dir, sizeof(dir));
    put(dir, "record", record);
    assert_false(is_port_taken(w, port));
    put(dir, "record", "PROC=1 1\n");
    assert_true(is_port_taken(w, port));
    assert_int_equal(close(fd), 0);
}

static void test_adopted_without_a_record(void **state)
{
    struct world *w = *state;
    char dir[200], path[220];
    start(w);
    int64_t pid = w->started.facts.pid;
    _cleanup_(freep) char *token = xstrdup(w->started.facts.token);
    record_path(w, dir, sizeof(dir));
    (void)snprintf(path, sizeof(path), "%s/record", dir);
    assert_int_equal(unlink(path), 0);
    look(w);
    assert_int_equal(w->look.facts.pid, pid);
    start(w);
    assert_true(w->started.adopted && w->started.facts.pid == pid);
    assert_string_equal(w->started.facts.token, token);
    assert_true(file_is_there(path));
}

static void test_of_another_boot(void **state)
{
    struct world *w = *state;
    char dir[200];
    start(w);
    stop(w);
    record_path(w, dir, sizeof(dir));
    put(dir, "record",
        "BOOT=another\nTOKEN=t\nSESSION=1 1\nSTATE=up\nRAYLET=1 1\nHEAD=0\nPROC=1 1\n");
    look(w);
    assert_false(w->look.facts.alive);
    stop(w);
    assert_int_equal(w->stopped.ended, 0);
}

/* What a dead raylet leaves is ended by the next start; others' processes are not. */
static void test_leftovers_of_a_dead_raylet(void **state)
{
    struct world *w = *state;
    make_programs(w, "#!/bin/sh\nsleep 600 &\necho $! >\"${0%/*}/pid\"\n" STARTS_RAYLET);
    start(w);
    _cleanup_(freep) char *pid = get(w->root, "bin/pid");
    int64_t orphan = strtol(pid, NULL, 10);
    assert_int_equal(kill((pid_t)w->started.facts.pid, SIGKILL), 0);
    look(w);
    assert_false(w->look.facts.alive);
    assert_true(is_there(orphan));
    start(w);
    assert_true(w->started.end.outcome == RAYLET_OK && !w->started.adopted);
    assert_false(is_there(orphan));
}

static void test_jobs_are_found(void **state)
{
    struct world *w = *state;
    make_programs(w, "#!/bin/sh\nARGUS_JOB_ID=j-7 sleep 600 &\n" STARTS_RAYLET);
    start(w);
    look(w);
    assert_int_equal(w->look.n_jobs, 1);
    assert_string_equal(w->look.jobs[0].id, "j-7");
    assert_true(!w->look.jobs[0].is_live && w->look.strays == 1);
}

static void refused(struct world *w, const char *in_text)
{
    start(w);
    assert_int_equal(w->started.end.outcome, RAYLET_REFUSED);
    if (!strstr(unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text),
                in_text))
        fail_msg("no '%s' in: %s", in_text,
                 unit_said(raylet_outcome_to_string(w->started.end.outcome), w->started.end.text));
}

static void test_refused_specs(void **state)
{
    struct world *w = *state;
    struct raylet_spec good = w->spec;
    w->spec.node = "../x";
    refused(w, "'../x'");
    w->spec = good;
    w->spec.owner = "a/b";
    refused(w, "'a/b'");
    w->spec = good;
    w->spec.ray_bin = "ray";
    refused(w, "whole path");
    w->spec = good;
    w->spec.address = NULL;
    refused(w, "address");
    w->spec = good;
    struct pairs env = {0};
    pairs_set(&env, "A B", "x");
    w->spec.env = &env;
    refused(w, "'A B'");
    pairs_release(&env);
    w->spec = good;
    raylet_call_free(raylet_stop(&w->loop, &here, "a/b", "n1", 0, on_stopped, w));
    struct raylet_want want = {.owner = "o", .node = ""};
    raylet_call_free(raylet_look(&w->loop, &here, &want, 0, on_look, w));
    raylet_call_free(NULL);
    finish(w, 0);
    start(w); /* so that there is a directory to take away */
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        T(test_start_look_stop),
        T(test_words_reach_ray_exactly),
        T(test_own_address),
        T(test_start_that_fails_leaves_nothing),
        T(test_head_and_its_dashboard),
        T(test_two_starts_at_once),
        T(test_lock_of_the_dead),
        T(test_lock_of_the_dead_that_somebody_takes_over),
        T(test_lock_of_the_living),
        T(test_recycled_pid_is_left_alone),
        T(test_port_of_who_was_written_down),
        T(test_adopted_without_a_record),
        T(test_of_another_boot),
        T(test_leftovers_of_a_dead_raylet),
        T(test_jobs_are_found),
        T(test_refused_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
