/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c - pages that Ray and exporters wrote become figures, and pages that lie do no harm. */
#include "core/figure/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/unit.h"
#include "core/figure/promtext.h"

/* The value of a figure, gpu < 0 for one of the node; NaN: not told. */
static double figure_of(const struct figure_page *p, enum figure f, int gpu)
{
    if ((int)f < FIGURE_NODE_FIGURES)
        return figure_from_steps(f, p->v[f]);
    return gpu < FIGURE_GPUS_MAX ? figure_from_steps(f, p->gpus[gpu].v[f - FIGURE_GPU_UTIL])
                                 : (double)NAN;
}

static struct figure_page read_text(enum figure_source source, const char *text)
{
    struct figure_page p;
    figure_page_init(&p);
    figure_page_read(&p, source, text, strlen(text));
    return p;
}

static struct figure_page read_sample(const char *name)
{
    _cleanup_(freep) char *path = xasprintf("%s/figures/%s", GOLDEN_DIR, name);
    struct buf text = BUF_INIT(1 << 20);
    assert_int_equal(file_read(path, &text, NULL), 0);
    struct figure_page p = read_text(FIGURE_OF_RAY, buf_str(&text));
    buf_release(&text);
    return p;
}

static void check_near(const struct figure_page *p, enum figure f, int gpu, double want)
{
    double got = figure_of(p, f, gpu);
    double step = figure_from_steps(f, 1);
    if (!(fabs(got - want) <= step / 2 + 1e-9))
        fail_msg("%s of gpu %d is %g and not %g", figure_to_string(f), gpu, got, want);
}

static void test_words(void **state)
{
    (void)state;
    for (int f = 0; f < FIGURE_END; f++)
        assert_int_equal(figure_from_string(figure_to_string((enum figure)f)), f);
    assert_int_equal(figure_from_string("gpu_util"), FIGURE_END);
    assert_true(figure_to_steps(FIGURE_CPU_UTIL, (double)NAN) == FIGURE_NONE);
    assert_true(figure_to_steps(FIGURE_CPU_UTIL, 1e300) == FIGURE_NONE);
    assert_true(isnan(figure_from_steps(FIGURE_CPU_UTIL, FIGURE_NONE)));
}

/* Pages as Ray wrote them. */
static void test_whose_fault_an_xid_is(void **state)
{
    (void)state;
    assert_true(figure_xid_is_of_program(31) && figure_xid_is_of_program(13));
    assert_false(figure_xid_is_of_program(0) || figure_xid_is_of_program(79) ||
                 figure_xid_is_of_program(48));
}

static void test_ray(void **state)
{
    (void)state;
    struct figure_page p = read_sample("ray-2.60.0-worker.prom");
    assert_int_equal(p.bad, 0);
    assert_int_equal(p.n_gpus, 2);
    check_near(&p, FIGURE_CPU_UTIL, -1, 0.159);
    check_near(&p, FIGURE_MEM_USED, -1, 3179302912.0);
    check_near(&p, FIGURE_GPU_UTIL, 0, 0.87);
    check_near(&p, FIGURE_GPU_UTIL, 1, 0.05);
    check_near(&p, FIGURE_GPU_MEM_USED, 0, 40960 * 1048576.0);
    check_near(&p, FIGURE_GPU_MEM_TOTAL, 0, 81559 * 1048576.0);
    check_near(&p, FIGURE_GPU_POWER, 0, 512);
    check_near(&p, FIGURE_GPU_TEMPERATURE, 1, 35);
    assert_string_equal(p.gpus[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    assert_true(isnan(figure_of(&p, FIGURE_GPU_XID, 0)));

    struct figure_page old = read_sample("ray-2.51.1-worker.prom");
    assert_int_equal(old.bad, 0);
    assert_int_equal(old.n_gpus, 2);
    assert_string_equal(old.gpus[0].uuid, "");
    assert_true(!isnan(figure_of(&old, FIGURE_GPU_UTIL, 0)));
    assert_true(isnan(figure_of(&old, FIGURE_GPU_POWER, 0)));
}

static void test_exporters(void **state)
{
    (void)state;
    struct figure_page p =
        read_text(FIGURE_OF_DCGM, "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
                                  "DCGM_FI_DEV_GPU_UTIL{gpu=\"3\",UUID=\"GPU-a\"} 21\n"
                                  "DCGM_FI_DEV_FB_USED{gpu=\"3\",UUID=\"GPU-a\"} 10\n"
                                  "DCGM_FI_DEV_FB_FREE{gpu=\"3\",UUID=\"GPU-a\"} 30\n"
                                  "DCGM_FI_DEV_XID_ERRORS{gpu=\"3\",UUID=\"GPU-a\"} 79\n"
                                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"3\"} 9223372036854775794\n");
    check_near(&p, FIGURE_GPU_UTIL, 3, 0.21);
    check_near(&p, FIGURE_GPU_MEM_TOTAL, 3, 40 * 1048576.0);
    check_near(&p, FIGURE_GPU_XID, 3, 79);
    assert_true(isnan(figure_of(&p, FIGURE_GPU_TEMPERATURE, 3)));
    assert_true(!p.gpus[0].is_there);

    /* By uuid alone: where it is known from Ray, it is that GPU. */
    struct figure_page both = read_sample("ray-2.60.0-worker.prom");
    const char *text = "nvidia_smi_utilization_gpu_ratio{uuid=\"00000000-0000-0000-0000-"
                       "000000000001\"} 0.42\n";
    figure_page_read(&both, FIGURE_OF_NVIDIA, text, strlen(text));
    assert_int_equal(both.n_gpus, 2);
    check_near(&both, FIGURE_GPU_UTIL, 1, 0.42);
    check_near(&both, FIGURE_GPU_UTIL, 0, 0.87);
}

/* By uuid, and the page says which index it has: its series stand in the order of UUIDs. One of
 * which nobody says the index is not read. */
static void test_indices_of_uuids(void **state)
{
    (void)state;
    struct figure_page p =
        read_text(FIGURE_OF_NVIDIA, "nvidia_smi_utilization_gpu_ratio{uuid=\"a\"} 0.1\n"
                                    "nvidia_smi_utilization_gpu_ratio{uuid=\"b\"} 0.2\n"
                                    "nvidia_smi_utilization_gpu_ratio{uuid=\"c\"} 0.3\n"
                                    "nvidia_smi_index{uuid=\"a\"} 2\n"
                                    "nvidia_smi_index{uuid=\"b\"} 0\n"
                                    "nvidia_smi_index{uuid=\"d\"} 64\n"
                                    "nvidia_smi_index{uuid=\"e\"} NaN\n");
    assert_int_equal(p.n_gpus, 3);
    check_near(&p, FIGURE_GPU_UTIL, 0, 0.2);
    check_near(&p, FIGURE_GPU_UTIL, 2, 0.1);
    assert_false(p.gpus[1].is_there);
}

static void test_a_page_without_end(void **state)
{
    (void)state;
    enum { MORE = 100 };
    struct buf text = BUF_INIT(4 << 20);
    for (int i = 0; i < FIGURE_SERIES_MAX + MORE; i++)
        (void)buf_addf(&text, "ray_node_cpu_count %d\n", i); /* failed tells */
    assert_false(text.failed);
    struct figure_page p = read_text(FIGURE_OF_RAY, buf_str(&text));
    assert_true(p.is_cut);
    check_near(&p, FIGURE_CPU_COUNT, -1, FIGURE_SERIES_MAX - 1);
    buf_release(&text);
}

/* What a peer can do with a page. */
static void test_lies(void **state)
{
    (void)state;
    struct figure_page p =
        read_text(FIGURE_OF_RAY, "ray_node_gpus_utilization{GpuIndex=\"64\"} 1\n"
                                 "ray_node_gpus_utilization{GpuIndex=\"-1\"} 1\n"
                                 "ray_node_gpus_utilization{GpuIndex=\"1000\"} 1\n"
                                 "ray_node_gpus_utilization{GpuIndex=\"0\"} NaN\n"
                                 "ray_node_gpus_utilization{GpuIndex=\"1\"} -5\n"
                                 "ray_node_mem_used 1e308\n"
                                 "ray_node_mem_total +Inf\n"
                                 "ray_node_cpu_utilization{ip=\"x} 5\n"
                                 "ray_node_cpu_utilization{ip=\"x\" 5\n"
                                 "ray_node_cpu_utilization five\n"
                                 "ray_node_cpu_utilization 5 6 7\n"
                                 "{} 5\n"
                                 "ray_node_cpu_utilization");
    for (int f = 0; f < FIGURE_NODE_FIGURES; f++)
        assert_true(isnan(figure_of(&p, (enum figure)f, -1)));
    assert_true(isnan(figure_of(&p, FIGURE_GPU_UTIL, 0)));
    assert_true(isnan(figure_of(&p, FIGURE_GPU_UTIL, 1)));
    assert_int_equal(p.n_gpus, 2);
    assert_int_equal(p.bad, 6);
    assert_int_equal(p.lines, 13);
    assert_true(isnan(figure_of(&p, FIGURE_GPU_UTIL, 64)));

    /* A line without end, and one with too many labels: the next one is read. */
    struct buf long_line = BUF_INIT(1 << 20);
    assert_int_equal(buf_adds(&long_line, "ray_node_cpu_utilization{a=\""), 0);
    for (int i = 0; i < PROMTEXT_LINE_MAX; i++)
        assert_int_equal(buf_addc(&long_line, 'x'), 0);
    assert_int_equal(buf_adds(&long_line, "\"} 7\nray_node_cpu_utilization{"), 0);
    for (int i = 0; i <= PROMTEXT_LABELS_MAX; i++)
        assert_int_equal(buf_adds(&long_line, "a=\"\","), 0);
    assert_int_equal(
        buf_adds(&long_line, "} 8\r\n\nray_node_cpu_utilization{ip=\"a\\\"}\",} 9 17\r\n"), 0);
    p = read_text(FIGURE_OF_RAY, buf_str(&long_line));
    assert_int_equal(p.bad, 2);
    check_near(&p, FIGURE_CPU_UTIL, -1, 0.09);
    buf_release(&long_line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_whose_fault_an_xid_is),
        cmocka_unit_test(test_ray),
        cmocka_unit_test(test_exporters),
        cmocka_unit_test(test_indices_of_uuids),
        cmocka_unit_test(test_a_page_without_end),
        cmocka_unit_test(test_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
