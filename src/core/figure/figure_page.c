/* SPDX-License-Identifier: Apache-2.0 */
/* figure_page.c - which series of whom is which of our figures; see figure.h.
 *
 * Ray counts GPU memory in MiB, power in mW and use in percent. Its `*_available` of GPU memory is
 * what is free: the total is the sum of both, made when the page was read. Missing values of DCGM
 * are numbers from 2^62 on. */
#include "core/figure/figure.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "core/figure/promtext.h"

static const double MIB = 1048576;
static const double DCGM_MISSING = 4611686018427387904.0;

struct series {
    const char *name;
    enum figure is;
    double factor; /* of the unit; 0: MiB that are added to what is there (total memory) */
};

static const struct series ray_series[] = {
    {"ray_node_cpu_utilization", FIGURE_CPU_UTIL, 0.01},
    {"ray_node_cpu_count", FIGURE_CPU_COUNT, 1},
    {"ray_node_mem_used", FIGURE_MEM_USED, 1},
    {"ray_node_mem_total", FIGURE_MEM_TOTAL, 1},
    {"ray_node_disk_usage", FIGURE_DISK_USED, 1},
    {"ray_node_disk_free", FIGURE_DISK_FREE, 1},
    {"ray_node_disk_io_read_speed", FIGURE_DISK_READ, 1},
    {"ray_node_disk_io_write_speed", FIGURE_DISK_WRITE, 1},
    {"ray_node_network_send_speed", FIGURE_NET_SENT, 1},
    {"ray_node_network_receive_speed", FIGURE_NET_RECEIVED, 1},
    {"ray_object_store_used_memory", FIGURE_OBJECTS_USED, 1},
    {"ray_object_store_available_memory", FIGURE_OBJECTS_FREE, 1},
    {"ray_node_gpus_utilization", FIGURE_GPU_UTIL, 0.01},
    {"ray_node_gram_used", FIGURE_GPU_MEM_USED, 1048576},
    {"ray_node_gram_used", FIGURE_GPU_MEM_TOTAL, 0},
    {"ray_node_gram_available", FIGURE_GPU_MEM_TOTAL, 0},
    {"ray_node_gpu_power_milliwatts", FIGURE_GPU_POWER, 0.001},
    {"ray_node_gpu_temperature_celsius", FIGURE_GPU_TEMPERATURE, 1},
    {NULL, FIGURE_END, 0},
};
static const struct series dcgm_series[] = {
    {"DCGM_FI_DEV_GPU_UTIL", FIGURE_GPU_UTIL, 0.01},
    {"DCGM_FI_DEV_FB_USED", FIGURE_GPU_MEM_USED, 1048576},
    {"DCGM_FI_DEV_FB_USED", FIGURE_GPU_MEM_TOTAL, 0},
    {"DCGM_FI_DEV_FB_FREE", FIGURE_GPU_MEM_TOTAL, 0},
    {"DCGM_FI_DEV_FB_RESERVED", FIGURE_GPU_MEM_TOTAL, 0},
    {"DCGM_FI_DEV_POWER_USAGE", FIGURE_GPU_POWER, 1},
    {"DCGM_FI_DEV_GPU_TEMP", FIGURE_GPU_TEMPERATURE, 1},
    {"DCGM_FI_DEV_XID_ERRORS", FIGURE_GPU_XID, 1},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", FIGURE_GPU_ECC, 1},
    {NULL, FIGURE_END, 0},
};
static const struct series nvidia_series[] = {
    {"nvidia_smi_utilization_gpu_ratio", FIGURE_GPU_UTIL, 1},
    {"nvidia_smi_memory_used_bytes", FIGURE_GPU_MEM_USED, 1},
    {"nvidia_smi_memory_total_bytes", FIGURE_GPU_MEM_TOTAL, 1},
    {"nvidia_smi_power_draw_watts", FIGURE_GPU_POWER, 1},
    {"nvidia_smi_temperature_gpu", FIGURE_GPU_TEMPERATURE, 1},
    {NULL, FIGURE_END, 0},
};

static const struct {
    const struct series *series;
    const char *index, *uuid; /* labels of a GPU; index NULL: by uuid alone */
} sources[] = {
    [FIGURE_OF_RAY] = {ray_series, "GpuIndex", "GpuUuid"},
    [FIGURE_OF_DCGM] = {dcgm_series, "gpu", "UUID"},
    [FIGURE_OF_NVIDIA] = {nvidia_series, NULL, "uuid"},
};

void figure_page_init(struct figure_page *p)
{
    memset(p, 0, sizeof(*p));
    for (int f = 0; f < FIGURE_NODE_FIGURES; f++)
        p->v[f] = FIGURE_NONE;
    for (int g = 0; g < FIGURE_GPUS_MAX; g++)
        for (int f = 0; f < FIGURE_GPU_FIGURES; f++)
            p->gpus[g].v[f] = FIGURE_NONE;
}

/* A GPU's index as its label has it; -1 for anything else, as the slice of a MIG device. */
static int figure_page_index(struct promtext_piece text)
{
    int n = 0;
    if (!text.n || text.n > 2)
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        if (!isdigit((unsigned char)text.p[i]))
            return -1;
        n = n * 10 + (text.p[i] - '0');
    }
    return n < FIGURE_GPUS_MAX ? n : -1;
}

/* "GPU-0f1e…": letters, digits and dashes. */
static bool figure_page_is_uuid(struct promtext_piece text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!isalnum((unsigned char)text.p[i]) && text.p[i] != '-')
            return false;
    return text.n > 0 && text.n < FIGURE_UUID_MAX;
}

/* The prefix "GPU-" is left out by some exporters, and case differs. */
static const char *figure_page_bare(const char *uuid)
{
    return !strncmp(uuid, "GPU-", 4) || !strncmp(uuid, "gpu-", 4) ? uuid + 4 : uuid;
}

static int figure_page_by_uuid(const struct figure_page *p, const char *uuid)
{
    for (int g = 0; g < p->n_gpus; g++)
        if (*p->gpus[g].uuid && !strcmp(figure_page_bare(p->gpus[g].uuid), figure_page_bare(uuid)))
            return g;
    return -1;
}

/* The GPU of a sample; one that was not met before is new. NULL: it names none. */
static struct figure_gpu *figure_page_gpu(struct figure_page *p,
                                          enum figure_source source,
                                          const struct promtext *t)
{
    char uuid[FIGURE_UUID_MAX] = "";
    struct promtext_piece text = promtext_label(t, sources[source].uuid);
    if (figure_page_is_uuid(text))
        memcpy(uuid, text.p, text.n);
    int i =
        sources[source].index ? figure_page_index(promtext_label(t, sources[source].index)) : -1;
    if (!sources[source].index && *uuid)
        i = figure_page_by_uuid(p, uuid);
    if (i < 0)
        return NULL;
    struct figure_gpu *g = &p->gpus[i];
    g->is_there = true;
    p->n_gpus = i >= p->n_gpus ? i + 1 : p->n_gpus;
    if (*uuid)
        memcpy(g->uuid, uuid, sizeof(uuid));
    return g;
}

static void figure_page_set(int64_t *slot, const struct series *s, double value, bool *is_begun)
{
    if (!(value >= 0 && value < DCGM_MISSING))
        return;
    if (s->factor != 0.0) {
        *slot = figure_to_steps(s->is, value * s->factor);
        return;
    }
    int64_t more = figure_to_steps(s->is, value * MIB);
    if (more != FIGURE_NONE)
        *slot = *is_begun && *slot != FIGURE_NONE ? *slot + more : more;
    *is_begun = true;
}

/* Which index each UUID has, where the page says so and nobody knew before: its own series stand in
 * the order of UUIDs. */
static void figure_page_read_indices(struct figure_page *p, const char *text, size_t n)
{
    struct promtext t = promtext_begin(text, n);
    while (promtext_next(&t) && t.lines <= FIGURE_SERIES_MAX) {
        struct promtext_piece uuid = promtext_label(&t, "uuid");
        if (!promtext_piece_is(t.name, "nvidia_smi_index") || !figure_page_is_uuid(uuid) ||
            !(t.value >= 0 && t.value < FIGURE_GPUS_MAX))
            continue;
        int i = (int)t.value;
        if (*p->gpus[i].uuid)
            continue;
        memcpy(p->gpus[i].uuid, uuid.p, uuid.n);
        p->n_gpus = i >= p->n_gpus ? i + 1 : p->n_gpus;
    }
}

void figure_page_read(struct figure_page *p, enum figure_source source, const char *text, size_t n)
{
    struct promtext t = promtext_begin(text, n);
    bool total_begun[FIGURE_GPUS_MAX] = {false}, never = false;
    if (source == FIGURE_OF_NVIDIA)
        figure_page_read_indices(p, text, n);
    while (promtext_next(&t)) {
        if (t.lines > FIGURE_SERIES_MAX) {
            p->is_cut = true;
            break;
        }
        for (const struct series *s = sources[source].series; s->name; s++) {
            if (!promtext_piece_is(t.name, s->name))
                continue;
            if (!figure_is_of_gpu(s->is)) {
                figure_page_set(&p->v[s->is], s, t.value, &never);
                continue;
            }
            struct figure_gpu *g = figure_page_gpu(p, source, &t);
            if (g)
                figure_page_set(&g->v[s->is - FIGURE_GPU_UTIL], s, t.value,
                                &total_begun[g - p->gpus]);
        }
    }
    p->lines += t.lines;
    p->bad += t.bad;
}
