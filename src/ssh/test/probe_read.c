/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of probe_read.c: each finding from the answer that tells it, none from a fit
 * machine's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "base/unit_message.h"
#include "ssh/probe.h"

static const char fit[] =
    "CLOCK=1000000.500000000\n"
    "STEP=host\nHOSTNAME=h2\nCPUS=128\nCPU_MAX=max 100000\nMEMORY_KB=1048576\nMEMORY_MAX=max\n"
    "IMAGE=verl-0.5\n"
    "STEP=disk\nDISK_KB=104857600 52428800\nDISK_AT=/tmp\nSHM_KB=16777216 8388608\n"
    "STEP=ports\nSTEP=raylets\n"
    "STEP=ray\nRAY_BIN=/venv/bin/ray\nRAY_THERE=1\nPYTHON_BIN=/venv/bin/python\nPYTHON=3.11.2\n"
    "LIB=ray 2.51.1\nLIB=torch 2.8.0\nLIB=cuda 12.8\nLIB=vllm \nLIB=numpy 1.26.4\nANY_PYTHON=1\n"
    "STEP=gpus\nNVIDIA=1\nGPU=NVIDIA H200, 550.54.15, 0\nGPU=NVIDIA H200, 550.54.15, [N/A]\n"
    "STEP=root\nROOT=ok\nSTEP=end\n";
static const usec_t began = 1000000 * USEC_SEC;

static struct probe_want wanted(void)
{
    return (struct probe_want){
        .ray_version = "2.51.1",
        .python_version = "3.11",
        .shared_root = "/shared",
        .root_mark = "argus/root-1",
        .min_disk_bytes = 1 << 30,
        .min_shm_bytes = 1 << 30,
        .max_skew = USEC_MIN,
        .owner = "o1",
        .node = "n1",
    };
}

static void judge(const char *text, const struct probe_want *want, struct probe_result *ret)
{
    char *exact = malloc(strlen(text)); /* so that reading past its end is seen */
    assert_non_null(exact);
    memcpy(exact, text, strlen(text));
    probe_read(exact, strlen(text), want, began, ret);
    free(exact);
}

/* The fit answer with one line changed: exactly this finding, with these words. */
static void expect(const char *line,
                   const char *instead,
                   const char *code,
                   const char *in_text,
                   const char *in_fix)
{
    struct probe_want want = wanted();
    struct probe_result r;
    const char *at = strstr(fit, line);
    assert_non_null(at);
    _cleanup_(freep) char *text =
        xasprintf("%.*s%s%s", (int)(at - fit), fit, instead, at + strlen(line));
    judge(text, &want, &r);
    if (r.n_findings != 1)
        fail_msg("%zu findings for '%s', the first %s", r.n_findings, instead,
                 r.n_findings ? unit_said(r.findings[0].code, r.findings[0].text) : "");
    assert_string_equal(r.findings[0].code, code);
    if (!strstr(unit_said(r.findings[0].code, r.findings[0].text), in_text))
        fail_msg("no '%s' in: %s", in_text, unit_said(r.findings[0].code, r.findings[0].text));
    if (!strstr(unit_fix(r.findings[0].code, r.findings[0].text), in_fix))
        fail_msg("no '%s' in: %s", in_fix, unit_fix(r.findings[0].code, r.findings[0].text));
}

/* The network members of an answer that has these lines in its step. */
static void judge_network(const char *lines, const char *node_ip, struct probe_result *ret)
{
    struct probe_want want = wanted();
    want.node_ip = node_ip;
    const char *at = strstr(fit, "STEP=ray\n");
    _cleanup_(freep) char *text =
        xasprintf("%.*sSTEP=network\n%s%s", (int)(at - fit), fit, lines, at);
    judge(text, &want, ret);
    assert_int_equal(ret->n_findings, 0);
}

static void test_network_of_a_machine(void **state)
{
    (void)state;
    struct probe_result r;
    judge_network("LINK=lo 65536 0\nLINK=eth0 1500 10000\nLINK=bond0 9000 50000 ens1 ens2\n"
                  "ADDRESS=eth0 10.0.0.7\nADDRESS=bond0 10.1.0.7\n"
                  "HCA=mlx5_0 1 InfiniBand 4 400 1\nHCA=mlx5_1 1 InfiniBand 1 400 1\n"
                  "HCA=mlx5_2 1 InfiniBand 4 100 1\nHCA=mlx5_3 1 InfiniBand 4 400 1\n"
                  "HCA=mlx5_4 1 Ethernet 4 800 1\n",
                  "10.1.0.7", &r);
    assert_string_equal(r.facts.interface, "bond0");
    assert_string_equal(r.facts.bond_of, "ens1,ens2");
    assert_int_equal(r.facts.mtu, 9000);
    assert_int_equal(r.facts.interface_mbps, 50000);
    assert_string_equal(r.facts.link_layer, "infiniband");
    assert_string_equal(r.facts.hca, "mlx5_0:1,mlx5_3:1");
    assert_int_equal(r.facts.rdma_gbps, 400);
    assert_string_equal(r.facts.gid_index, "");
}

static void test_gid_index_only_where_ports_agree(void **state)
{
    (void)state;
    static const char ports[] = "LINK=eth0 1500 10000\nROUTE=eth0 0x00000000 0x00000000\n"
                                "HCA=a 1 Ethernet 4 200 1\nHCA=b 1 Ethernet 4 200 1\n"
                                "GID=a 1 0 1 fe80:0000:0000:0000:0000:0000:0000:0001\n"
                                "GID=a 1 1 2 fe80:0000:0000:0000:0000:0000:0000:0001\n"
                                "GID=a 1 3 2 0000:0000:0000:0000:0000:ffff:0a00:0007\n";
    struct probe_result r;
    _cleanup_(freep) char *same =
        xasprintf("%sGID=b 1 3 2 0000:0000:0000:0000:0000:ffff:0a00:0107\n", ports);
    judge_network(same, NULL, &r);
    assert_string_equal(r.facts.interface, "eth0"); /* the way to everywhere */
    assert_string_equal(r.facts.link_layer, "roce");
    assert_string_equal(r.facts.roce, "v2");
    assert_string_equal(r.facts.gid_index, "3");
    _cleanup_(freep) char *other =
        xasprintf("%sGID=b 1 5 2 0000:0000:0000:0000:0000:ffff:0a00:0107\n", ports);
    judge_network(other, NULL, &r);
    assert_string_equal(r.facts.roce, "v2");
    assert_string_equal(r.facts.gid_index, "");
}

/* What stands here becomes variables of jobs: odd names, numbers and floods are left out. */
static void test_network_of_a_liar(void **state)
{
    (void)state;
    struct probe_result r;
    struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(buf_addf(&text,
                                  "LINK=e%d 1500 1\nADDRESS=e%d 10.0.0.9\nHCA=d%d 1 "
                                  "InfiniBand 4 400 1\nGID=d%d 1 1 2 f\n"
                                  "ROUTE=e%d 0x00000000 0x00000000\n",
                                  i, i, i, i, i),
                         0);
    judge_network(buf_str(&text), "10.0.0.9", &r);
    assert_string_equal(r.facts.interface, "e0");
    assert_true(strlen(r.facts.hca) < sizeof(r.facts.hca));
    buf_release(&text);
    judge_network("LINK=eth0;rm 1500 1\nLINK=-x 1 1\nLINK=\x1b[31mx 1 1\nLINK=eth0 -1 99999999999\n"
                  "ADDRESS=$(id) 10.0.0.9\nHCA=m\xc3\x28 1 InfiniBand 4 400 1\n"
                  "HCA=m 1 InfiniBand 4 400 0\nHCA=m 0 InfiniBand 4 400 1\nHCA=\nGID=\n"
                  "ROUTE=eth0 zz 0x00000000\n",
                  "10.0.0.9", &r);
    assert_string_equal(r.facts.interface, "");
    assert_string_equal(r.facts.link_layer, "ethernet");
    assert_string_equal(r.facts.hca, "");
    assert_int_equal(r.facts.mtu, 0);
}

static void test_facts_of_a_fit_machine(void **state)
{
    (void)state;
    struct probe_want want = wanted();
    struct probe_result r;
    judge(fit, &want, &r);
    assert_int_equal(r.n_findings, 0);
    assert_string_equal(r.facts.hostname, "h2");
    assert_string_equal(r.facts.image, "verl-0.5");
    assert_string_equal(r.facts.ray, "2.51.1");
    assert_string_equal(r.facts.python, "3.11.2");
    assert_string_equal(r.facts.cuda, "12.8");
    assert_string_equal(r.facts.vllm, "");
    assert_string_equal(r.facts.gpu_type, "NVIDIA H200");
    assert_string_equal(r.facts.driver, "550.54.15");
    assert_int_equal(r.facts.gpus, 2);
    assert_true(r.facts.cpus == 128 && r.has_nvidia && r.has_skew);
    assert_int_equal(r.facts.memory_bytes, 1 << 30);
    assert_int_equal(r.facts.disk_free_bytes, 50ULL << 30);
    assert_int_equal(r.shm_bytes, 16ULL << 30);
    assert_int_equal(r.facts.shm_free_bytes, 8ULL << 30);
    assert_int_equal(r.facts.skew, 500000);
}

static void test_limits_of_a_container(void **state)
{
    (void)state;
    struct probe_want want = {0};
    struct probe_result r;
    judge("CPUS=128\nCPU_MAX=850000 100000\nMEMORY_KB=1048576\nMEMORY_MAX=1000\nSTEP=end\n", &want,
          &r);
    assert_true(r.facts.cpus == 8.5);
    assert_int_equal(r.facts.memory_bytes, 1000);
    judge("CPUS=2\nCPU_MAX=850000 100000\nMEMORY_KB=1\nMEMORY_MAX=9223372036854771712\nSTEP=end\n",
          &want, &r);
    assert_true(r.facts.cpus == 2);
    assert_int_equal(r.facts.memory_bytes, 1024);
}

static void test_ray_and_python(void **state)
{
    (void)state;
    expect("LIB=ray 2.51.1", "LIB=ray 2.60.0", "ray_version", "Ray is 2.60.0 at '/venv/bin/ray'",
           "ray[default]==2.51.1");
    expect("PYTHON=3.11.2", "PYTHON=3.1.2", "python_version", "Python is 3.1.2", "Python 3.11");
    expect("PYTHON=3.11.2", "PYTHON_SAYS=sh: /venv/bin/python: not found", "no_python", "not found",
           "ray_bin");
    expect("LIB=ray 2.51.1", "LIB=ray ", "no_ray", "no package 'ray'", "pip install");
    expect("RAY_THERE=1\nPYTHON_BIN=/venv/bin/python\nPYTHON=3.11.2\n", "", "no_ray",
           "no 'ray' on PATH", "ray_bin");
}

static void test_neither_ray_nor_python(void **state)
{
    (void)state;
    struct probe_want want = {0};
    struct probe_result r;
    judge("STEP=ray\nRAY_BIN=\nSTEP=end\n", &want, &r);
    assert_int_equal(r.n_findings, 1);
    assert_string_equal(r.findings[0].code, "no_python");
    want.ray_bin = "/venv/bin/ray";
    judge("STEP=ray\nRAY_BIN=/venv/bin/ray\nANY_PYTHON=1\nSTEP=end\n", &want, &r);
    assert_string_equal(r.findings[0].code, "no_ray");
    assert_non_null(strstr(unit_said(r.findings[0].code, r.findings[0].text), "'/venv/bin/ray'"));
}

static void test_root(void **state)
{
    (void)state;
    expect("ROOT=ok", "ROOT=missing", "root_not_mounted", "'/shared' is not there", "mount");
    expect("ROOT=ok", "ROOT=other\nROOT_MOUNT=/ of /dev/vda\nROOT_EMPTY=1", "root_not_mounted",
           "not mounted at '/shared'", "empty directory");
    expect("ROOT=ok", "ROOT=other\nROOT_MOUNT=/shared of nas2:/x", "root_other",
           "another file system", "nas2:/x");
    expect("ROOT=ok",
           "ROOT=unwritable\nROOT_SAYS=sh: 3: cannot create /shared/x: Read-only file system",
           "root_read_only", "Read-only file system", "remount");
}

static void test_room(void **state)
{
    (void)state;
    expect("DISK_KB=104857600 52428800", "DISK_KB=104857600 1024", "disk_full", "0 GiB free",
           "'/tmp'");
    expect("DISK_AT=/tmp", "DISK_AT=/tmp\nDISK_CLOSED=ray", "disk_full", "'/tmp' cannot be written",
           "'ray'");
    expect("SHM_KB=16777216 8388608", "SHM_KB=65536 65536", "shm_too_small",
           "0.06 GiB free of 0.06", "--shm-size");
    expect("SHM_KB=16777216 8388608", "SHM_KB=16777216 10", "shm_too_small", "0 GiB free of 16",
           "dead processes");
    expect("SHM_KB=16777216 8388608", "", "shm_too_small", "no /dev/shm", "tmpfs");
}

static void test_clock(void **state)
{
    (void)state;
    expect("CLOCK=1000000.500000000", "CLOCK=1000061", "clock_off", "1m1s ahead of ours", "NTP");
    expect("CLOCK=1000000.500000000", "CLOCK=999938.%N", "clock_off", "1m2s behind ours", "NTP");
    struct probe_want want = wanted();
    struct probe_result r;
    probe_read("CLOCK=5\nSTEP=end\n", 17, &want, 0, &r); /* nobody says what time it is here */
    assert_false(r.has_skew);
}

static void test_ports(void **state)
{
    (void)state;
    expect("STEP=ports\n", "STEP=ports\nPORT=6379 00000000 77 0 python3 -m http.server\n",
           "port_taken", "port 6379 is taken by 'python3 -m http.server'", "process 77");
    expect("STEP=ports\n", "STEP=ports\nPORT=6379 00000000 0 0 \nPORT=6379 0100007F 0 0 \n",
           "port_taken", "a process of another user", "ss -ltnp");
    struct probe_want want = wanted();
    struct probe_result r;
    judge("STEP=ports\nPORT=6379 00000000 77 1 raylet\nSTEP=disk\n", &want, &r);
    for (size_t i = 0; i < r.n_findings; i++)
        assert_string_not_equal(r.findings[i].code, "port_taken"); /* it is our own */
}

static void test_ports_of_a_loopback_host(void **state)
{
    (void)state;
    static const struct {
        const char *at;
        bool counts;
    } rows[] = {
        {"0200007F", true},  {"00000000", true},  {"00000000000000000000000000000000", true},
        {"0100007F", false}, {"0300007F", false}, {"0000000000000000FFFF00000200007F", true},
    };
    struct probe_want want = {.node_ip = "127.0.0.2"};
    for (size_t i = 0; i < array_len(rows); i++) {
        struct probe_result r;
        char text[200];
        (void)snprintf(text, sizeof(text),
                       "PORT=6379 %s 7 0 x\nRAY_THERE=1\nPYTHON=3\nLIB=ray 1\nSTEP=end\n",
                       rows[i].at);
        judge(text, &want, &r);
        assert_int_equal(r.n_findings, rows[i].counts);
    }
}

static void test_raylets(void **state)
{
    (void)state;
    expect("STEP=raylets\n", "STEP=raylets\nRAYLET=554 - - 0 alice 10.0.0.2 10.9.9.9:6379\n",
           "raylet_foreign", "pid 554 of user 'alice', in the cluster of 10.9.9.9:6379",
           "kill 554");
    expect("STEP=raylets\n", "STEP=raylets\nRAYLET=554 o2 x 0 alice 10.0.0.2 10.9.9.9:6379\n",
           "raylet_foreign", "started by the argusd o2", "alice");
    expect("STEP=raylets\n", "STEP=raylets\nRAYLET=554 o1 other 0 root 10.0.0.2 10.9.9.9:6379\n",
           "raylet_foreign", "our node 'other' already", "argus node rm other");
    struct probe_want want = wanted();
    struct probe_result r;
    _cleanup_(freep) char *ours = xasprintf(
        "RAYLET=1 o1 n1 0 root 10.0.0.2 h:1\nRAYLET=2 o1 head 1 root 10.0.0.2 h:1\n%s", fit);
    judge(ours, &want, &r);
    assert_int_equal(r.n_findings, 0);
    want.node_ip = "127.0.0.2"; /* a host beside others on one machine */
    _cleanup_(freep) char *beside = xasprintf("RAYLET=1 - - 0 root 127.0.0.3 h:1\n%s", fit);
    judge(beside, &want, &r);
    assert_int_equal(r.n_findings, 0);
    _cleanup_(freep) char *same = xasprintf("RAYLET=1 - - 0 root 127.0.0.2 h:1\n%s", fit);
    judge(same, &want, &r);
    assert_int_equal(r.n_findings, 1);
}

static void test_gpus(void **state)
{
    (void)state;
    expect("GPU=NVIDIA H200, 550.54.15, 0",
           "GPU=Unable to determine the device handle for GPU0: GPU is lost", "gpu_trouble",
           "GPU is lost", "reset");
    expect("GPU=NVIDIA H200, 550.54.15, 0", "GPU=NVIDIA H200, 550.54.15, 3", "gpu_trouble",
           "GPU 0 has 3 memory errors", "reset");
}

/* Where it stopped is what hangs; what it did not get to is not a finding. */
static void test_answers_that_stop(void **state)
{
    (void)state;
    static const struct {
        const char *last, *code, *text;
    } rows[] = {
        {"STEP=root\n", "root_hangs", "'/shared' hangs"},
        {"STEP=gpus\n", "gpu_trouble", "nvidia-smi hangs"},
        {"STEP=ray\n", "root_hangs", "'/shared' hangs"}, /* the environment lies on the root */
        {"STEP=ports\n", "probe_failed", "stopped at 'ports'"},
        {"CLOCK=1000000.500000000\n", "probe_failed", "stopped at 'the beginning'"},
    };
    struct probe_want want = wanted();
    want.ray_bin = "/shared/venv/bin/ray";
    for (size_t i = 0; i < array_len(rows); i++) {
        struct probe_result r;
        const char *at = strstr(fit, rows[i].last) + strlen(rows[i].last);
        _cleanup_(freep) char *text = xasprintf("%.*s", (int)(at - fit), fit);
        judge(text, &want, &r);
        assert_int_equal(r.n_findings, 1);
        assert_string_equal(r.findings[0].code, rows[i].code);
        assert_non_null(strstr(unit_said(r.findings[0].code, r.findings[0].text), rows[i].text));
    }
}

static void test_more_findings_than_there_is_room(void **state)
{
    (void)state;
    char text[4096] = "";
    size_t n = 0;
    for (int i = 1; i <= 70; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "PORT=%d 00000000 7 0 x\n", i);
    struct probe_want want = {0};
    struct probe_result r;
    judge(text, &want, &r);
    assert_int_equal(r.n_findings, PROBE_FINDINGS_MAX);
}

static void test_codes_are_unique(void **state)
{
    (void)state;
    for (int a = 0; a < PROBE_END; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(probe_code_to_string((enum probe_code)a),
                                    probe_code_to_string((enum probe_code)b));
    /* What ssh says and what the probe says of ssh are the same words. */
    for (int t = SSH_OK + 1; t < SSH_TROUBLE_END; t++) {
        bool is_code = false;
        for (int a = 0; a < PROBE_END; a++)
            is_code = is_code || !strcmp(ssh_trouble_to_string((enum ssh_trouble)t),
                                         probe_code_to_string((enum probe_code)a));
        assert_true(is_code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_of_a_fit_machine),
        cmocka_unit_test(test_network_of_a_machine),
        cmocka_unit_test(test_gid_index_only_where_ports_agree),
        cmocka_unit_test(test_network_of_a_liar),
        cmocka_unit_test(test_limits_of_a_container),
        cmocka_unit_test(test_ray_and_python),
        cmocka_unit_test(test_neither_ray_nor_python),
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_ports_of_a_loopback_host),
        cmocka_unit_test(test_raylets),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_answers_that_stop),
        cmocka_unit_test(test_more_findings_than_there_is_room),
        cmocka_unit_test(test_codes_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
