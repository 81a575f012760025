/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of raylet_read.c: what the answers of raylet.sh mean; and of the labels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"
#include "base/unit_message.h"
#include "ssh/raylet.h"

/* ---- answers ---- */

static const char facts[] =
    "RAYLET=290 397786 162\nBOOT=b-1\nTOKEN=t1\nHEAD=1\nADDRESS=10.0.0.1:6379\nNODE_IP=10.0.0.2\n";

static struct raylet_started started(const char *text)
{
    struct raylet_started r;
    raylet_read_start(text, strlen(text), &r);
    return r;
}

static void test_start_is_read(void **state)
{
    (void)state;
    _cleanup_(freep) char *text = xasprintf("noise\n%sTOOK_MS=2410\nEND=started\n", facts);
    struct raylet_started r = started(text);
    assert_int_equal(r.end.outcome, RAYLET_OK);
    assert_true(r.facts.alive && r.facts.is_head && !r.adopted);
    assert_int_equal(r.facts.pid, 290);
    assert_int_equal(r.facts.session, 162);
    assert_int_equal(r.facts.start_time, 397786);
    assert_string_equal(r.facts.boot_id, "b-1");
    assert_string_equal(r.facts.token, "t1");
    assert_string_equal(r.facts.address, "10.0.0.1:6379");
    assert_string_equal(r.facts.node_ip, "10.0.0.2");
    assert_int_equal(r.ray_took, 2410 * USEC_MS);
    _cleanup_(freep) char *again = xasprintf("%sEND=adopted\n", facts);
    r = started(again);
    assert_true(r.end.outcome == RAYLET_OK && r.adopted && r.ray_took == 0);
}

static void test_starts_that_fail(void **state)
{
    (void)state;
    static const struct {
        const char *text, *in_text;
        enum raylet_outcome outcome;
    } rows[] = {
        {"", "did not say how it ended", RAYLET_UNREADABLE},
        {"END=started\n", "does not name", RAYLET_UNREADABLE},
        {"END=busy\n", "another start or stop", RAYLET_BUSY},
        {"END=unwritable /tmp/x\n", "'/tmp/x'", RAYLET_UNWRITABLE},
        {"END=gcs_alone\n", "left alone until they are over", RAYLET_GCS_ALONE},
        {"END=failed 137\n", "did not end in time", RAYLET_START_FAILED},
        {"LOG=almost\nEND=failed 0\n", "gone at once: almost", RAYLET_START_FAILED},
        {"LOG=ray started\nLOG=no module aiohttp\nEND=failed dashboard\n",
         "did not listen; all its processes were ended again: no module", RAYLET_START_FAILED},
        {"LOG=ValueError: bad\nLOG=bye bye\nEND=failed 1\n", "(status 1): ValueError: bad",
         RAYLET_START_FAILED},
        {"LOG=Exception: No node info found for head node in GCS.\nEND=failed 1\n",
         "did not take it in", RAYLET_NO_HEAD},
        {"LOG=RuntimeError: Version mismatch: The cluster was started with:\nEND=failed 1\n",
         "mismatch", RAYLET_NO_HEAD},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct raylet_started r = started(rows[i].text);
        assert_int_equal(r.end.outcome, rows[i].outcome);
        if (!strstr(unit_said(raylet_outcome_to_string(r.end.outcome), r.end.text),
                    rows[i].in_text))
            fail_msg("no '%s' in: %s", rows[i].in_text,
                     unit_said(raylet_outcome_to_string(r.end.outcome), r.end.text));
        assert_true(unit_fix(raylet_outcome_to_string(r.end.outcome), r.end.text)[0]);
    }
}

static void test_stop_is_read(void **state)
{
    (void)state;
    static const char well[] = "KILLED=2\nEND=stopped 9\n",
                      left[] = "LEFT=12 python x\nLEFT=13 y\nKILLED=0\nEND=stopped 3\n";
    struct raylet_stopped r;
    raylet_read_stop(well, strlen(well), &r);
    assert_true(r.end.outcome == RAYLET_OK && r.ended == 9 && r.killed == 2);
    raylet_read_stop(left, strlen(left), &r);
    assert_int_equal(r.end.outcome, RAYLET_NOT_ENDED);
    assert_non_null(strstr(unit_said(raylet_outcome_to_string(r.end.outcome), r.end.text),
                           "process 12 python x"));
    raylet_read_stop("END=odd\n", 8, &r);
    assert_int_equal(r.end.outcome, RAYLET_UNREADABLE);
}

static struct raylet_look look_of(const char *text)
{
    static const char *const live[] = {"j-1"};
    struct raylet_want want = {.live_jobs = live,
                               .n_live_jobs = 1,
                               .shared_root = "/shared",
                               .max_skew = USEC_MIN,
                               .max_write = USEC_SEC,
                               .min_disk_bytes = 1 << 30,
                               .min_shm_bytes = 1 << 30,
                               .gpus = 2};
    struct raylet_look r;
    raylet_read_look(text, strlen(text), &want, 1000000 * USEC_SEC, &r);
    return r;
}

static void test_jobs_and_strays(void **state)
{
    (void)state;
    struct raylet_look r =
        look_of("JOB=12 j-1\nJOB=3 j-2\nJOB=1 j-3\nJOB=0 j-4\nGPU_USER=77 python x\nSTEP=end\n");
    assert_int_equal(r.end.outcome, RAYLET_OK);
    assert_false(r.facts.alive);
    assert_int_equal(r.n_jobs, 3);
    assert_true(r.jobs[0].is_live && !r.jobs[1].is_live && r.jobs[0].processes == 12);
    assert_int_equal(r.strays, 5);
    assert_string_equal(r.stray_text, "{\"strays\":5,\"job\":\"j-2\",\"user\":\"77 python x\"}");
    r = look_of("JOB=12 j-1\n"); /* cut off */
    assert_int_equal(r.end.outcome, RAYLET_UNREADABLE);
}

static void test_health(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code, *in_text;
    } rows[] = {
        {"STEP=end\n", "", ""},
        {"CLOCK=1000059\nDISK_KB=9999999 9999999\nSHM_KB=9999999 9999999\nROOT_MS=999\nSTEP=end\n",
         "", ""},
        {"NVIDIA=1\nGPU=H200, 5, 0\nGPU=H200, 5, 0\nXID=9000 100 79 a\nXID=9000 8999 31 "
         "a\nSTEP=end\n",
         "", ""},
        {"STEP=root\n", "root_hangs", "'/shared' hangs"},
        {"ROOT=missing\nSTEP=end\n", "root_not_mounted", "is not there"},
        {"ROOT_SAYS=Read-only file system\nSTEP=end\n", "root_read_only", "Read-only"},
        {"ROOT_SAYS=\nSTEP=end\n", "root_read_only", "no reason"},
        {"ROOT_MS=1001\nSTEP=end\n", "root_slow", "took 1s"},
        {"STEP=gpus\n", "gpu_trouble", "nvidia-smi hangs"},
        {"NVIDIA=1\nGPU=No devices were found\nSTEP=end\n", "gpu_trouble", "No devices"},
        {"NVIDIA=1\nGPU=H200, 5, 0\nSTEP=end\n", "gpu_trouble", "shows 1 GPU, and the node has 2"},
        {"NVIDIA=1\nGPU=H200, 5, 0\nGPU=H200, 5, 0\nXID=9000 8000 79 PCI:0000:3b\nSTEP=end\n",
         "gpu_trouble", "Xid 79 (PCI:0000:3b)"},
        {"DISK_KB=9999999 10\nSTEP=end\n", "disk_full", "0 GiB free"},
        {"SHM_KB=9999999 10\nSTEP=end\n", "shm_too_small", "/dev/shm"},
        {"CLOCK=1000061.5\nSTEP=end\n", "clock_off", "ahead of ours"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct raylet_look r = look_of(rows[i].text);
        assert_int_equal(r.end.outcome, RAYLET_OK);
        assert_string_equal(r.trouble_code, rows[i].code);
        if (!strstr(unit_said(r.trouble_code, r.trouble), rows[i].in_text))
            fail_msg("no '%s' in: %s", rows[i].in_text, unit_said(r.trouble_code, r.trouble));
    }
}

/* Also where it is healthy by what it needs: others judge by another measure. */
static void test_what_a_look_measures(void **state)
{
    (void)state;
    struct raylet_look r = look_of(
        "CLOCK=1000059.5\nDISK_KB=9999999 9999998\nSHM_KB=9999999 9999997\nROOT_MS=7\nSTEP=end\n");
    assert_string_equal(r.trouble_code, "");
    assert_true(r.has_disk && r.has_shm && r.has_clock);
    assert_int_equal(r.disk_free, 9999998ULL << 10);
    assert_int_equal(r.shm_free, 9999997ULL << 10);
    assert_int_equal(r.skew, 59500000);
    assert_int_equal(r.root_write, 7 * USEC_MS);
    r = look_of("STEP=end\n");
    assert_false(r.has_disk || r.has_shm || r.has_clock);
    assert_int_equal(r.root_write, 0);
    assert_int_equal(look_of("ROOT_MS=0\nSTEP=end\n").root_write, 1); /* quick, and measured */
}

static void test_rdma_ports(void **state)
{
    (void)state;
    struct raylet_look r =
        look_of("STEP=rdma\nUPTIME=12345.5\n"
                "RDMA=100 18446744073709551615 mlx5_0/ports/1\n"
                "RDMA=N/A (no PMA) N/A (no PMA) mlx5_1/ports/1\n"
                "RDMA=100 mlx5_2/ports/1\nRDMA=100 200\nRDMA=-1 2 mlx5_3/ports/1\n"
                "RDMA=9000000000 0 mlx5_4/ports/1\nRDMA=8 9 mlx5_4/ports/2\n");
    assert_int_equal(r.end.outcome, RAYLET_OK); /* it hung there: the rest of the look stands */
    assert_string_equal(r.trouble_code, "");
    assert_non_null(r.rdma);
    assert_int_equal(r.rdma->n, 2);
    assert_int_equal(r.rdma->up, 12345500000);
    assert_int_equal(r.rdma->v[0].received, 9000000000);
    assert_true(r.rdma->v[0].sent == 0 && r.rdma->v[0].mark != r.rdma->v[1].mark);
    assert_true(r.rdma->v[1].received == 8 && r.rdma->v[1].sent == 9);
    free(r.rdma);
    assert_null(look_of("UPTIME=12345.67\nSTEP=end\n").rdma);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(raylet_outcome_to_string(RAYLET_OK), "ok");
    assert_string_equal(raylet_outcome_to_string(RAYLET_UNREADABLE), "unreadable");
}

/* ---- labels ---- */

static void test_labels(void **state)
{
    (void)state;
    static const char *const pools[] = {"a6000", "big.mem"};
    struct buf out = BUF_INIT(4096);
    assert_int_equal(raylet_labels("n1", NULL, 0, &out, NULL), 0);
    assert_string_equal(buf_str(&out), "argus.node=n1");
    buf_reset(&out);
    assert_int_equal(raylet_labels("n1", pools, 1, &out, NULL), 0);
    assert_string_equal(buf_str(&out), "argus.node=n1,argus.pool=a6000");
    buf_reset(&out);
    assert_int_equal(raylet_labels("n1", pools, 2, &out, NULL), 0);
    assert_string_equal(buf_str(&out),
                        "argus.node=n1,argus.pool=a6000,argus.pool.a6000=1,argus.pool.big.mem=1");
    buf_release(&out);
}

static void test_texts_that_are_no_labels(void **state)
{
    (void)state;
    char long_name[70];
    memset(long_name, 'x', sizeof(long_name));
    long_name[64] = 0;
    const char *bad[] = {"", "a b", "-a", "a-", "a,b", "a=b", "\xc3\xa9", long_name};
    struct buf out = BUF_INIT(4096);
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err = {0};
        assert_int_equal(raylet_labels(bad[i], NULL, 0, &out, &err), ERR_REFUSED);
        assert_true(err.text[0]);
        assert_int_equal(raylet_labels("n", &bad[i], 1, &out, &err), ERR_REFUSED);
    }
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_is_read), cmocka_unit_test(test_starts_that_fail),
        cmocka_unit_test(test_stop_is_read),  cmocka_unit_test(test_jobs_and_strays),
        cmocka_unit_test(test_health),        cmocka_unit_test(test_what_a_look_measures),
        cmocka_unit_test(test_rdma_ports),    cmocka_unit_test(test_words),
        cmocka_unit_test(test_labels),        cmocka_unit_test(test_texts_that_are_no_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
