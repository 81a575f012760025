/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml.c - a pretended libnvidia-ml.so.1: the figures and faults that the file nvml.state
 * beside it says. It answers as the driver 580.159.04 did of an H100 80GB HBM3 (docs/gpu.md).
 *
 * That file is read again at each call; its lines:
 *
 *   gpu INDEX MEAN_PERCENT MEM_MIB MILLIWATTS CELSIUS
 *       a GPU, and the mean of its buffer of samples
 *   now INDEX PERCENT
 *       what it says of the moment, else the mean
 *   proc INDEX PID MEM_MIB PERCENT
 *       a process on it
 *   peak PID MEM_MIB
 *       accounting is on, and says so
 *   energy INDEX MILLIJOULES
 *   ecc INDEX N
 *   rows INDEX N
 *   pending INDEX N
 *   links INDEX N
 *   pcie INDEX LANES
 *   throttle INDEX BITS
 *   xid INDEX N
 *       told once, when the number of such lines has grown
 *   hang
 *   crash
 *       the next reading of a GPU does
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    GPUS = 16,
    PROCESSES = 64,
    OK = 0,
    INVALID = 2,
    UNSUPPORTED = 3,
    TIMED_OUT = 10,
    TOO_SMALL = 7
};
typedef unsigned long long wide;

static struct {
    int used, mean, now, links;
    wide mem, energy, ecc, throttle;
    unsigned milliwatts, celsius, rows, pending, pcie;
} gpus[GPUS];
static struct {
    int gpu;
    unsigned pid, percent;
    wide mem, peak;
} processes[PROCESSES];
static int n_gpus, n_processes, n_xids, told_xids, is_accounting, xid_gpu, xid_number;

static void state_path(char *path, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)state_path, &info) || !info.dli_fname)
        abort();
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(path, size, "%.*snvml.state", slash ? (int)(slash + 1 - info.dli_fname) : 0,
             info.dli_fname);
}

static void read_line(const char *line)
{
    int i;
    wide a, b, c, d;
    if (sscanf(line, "gpu %d %llu %llu %llu %llu", &i, &a, &b, &c, &d) == 5 && i < GPUS) {
        gpus[i].used = 1;
        gpus[i].mean = gpus[i].now = (int)a;
        gpus[i].mem = b << 20;
        gpus[i].milliwatts = (unsigned)c;
        gpus[i].celsius = (unsigned)d;
        gpus[i].links = -1;
        gpus[i].pcie = 16;
        n_gpus = i + 1 > n_gpus ? i + 1 : n_gpus;
    } else if (sscanf(line, "now %d %llu", &i, &a) == 2) {
        gpus[i].now = (int)a;
    } else if (sscanf(line, "proc %d %llu %llu %llu", &i, &a, &b, &c) == 4 &&
               n_processes < PROCESSES) {
        processes[n_processes].gpu = i;
        processes[n_processes].pid = (unsigned)a;
        processes[n_processes].mem = b << 20;
        processes[n_processes].peak = 0;
        processes[n_processes++].percent = (unsigned)c;
    } else if (sscanf(line, "peak %llu %llu", &a, &b) == 2) {
        is_accounting = 1;
        for (int k = 0; k < n_processes; k++)
            if (processes[k].pid == a)
                processes[k].peak = b << 20;
    } else if (sscanf(line, "energy %d %llu", &i, &a) == 2) {
        gpus[i].energy = a;
    } else if (sscanf(line, "ecc %d %llu", &i, &a) == 2) {
        gpus[i].ecc = a;
    } else if (sscanf(line, "rows %d %llu", &i, &a) == 2) {
        gpus[i].rows = (unsigned)a;
    } else if (sscanf(line, "pending %d %llu", &i, &a) == 2) {
        gpus[i].pending = (unsigned)a;
    } else if (sscanf(line, "pcie %d %llu", &i, &a) == 2) {
        gpus[i].pcie = (unsigned)a;
    } else if (sscanf(line, "links %d %llu", &i, &a) == 2) {
        gpus[i].links = (int)a;
    } else if (sscanf(line, "throttle %d %llu", &i, &a) == 2) {
        gpus[i].throttle = a;
    } else if (sscanf(line, "xid %d %llu", &i, &a) == 2) {
        n_xids++;
        xid_gpu = i;
        xid_number = (int)a;
    } else if (!strncmp(line, "hang", 4)) {
        for (;;)
            pause();
    } else if (!strncmp(line, "crash", 5)) {
        abort();
    }
}

static void load(void)
{
    char path[4096], line[256];
    state_path(path, sizeof(path));
    FILE *f = fopen(path, "re");
    n_gpus = n_processes = n_xids = is_accounting = 0;
    memset(gpus, 0, sizeof(gpus));
    while (f && fgets(line, sizeof(line), f))
        read_line(line);
    if (f)
        fclose(f);
}

static int at(void *device)
{
    return (int)(long)device - 1;
}

static wide now_usec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (wide)t.tv_sec * 1000000 + (wide)t.tv_nsec / 1000;
}

/* NOLINTBEGIN(readability-identifier-naming): the names are the library's */
int nvmlInit_v2(void)
{
    load();
    told_xids = n_xids;
    return n_gpus ? OK : 9;
}
/* Ray begins so. */
int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return nvmlInit_v2();
}
int nvmlShutdown(void)
{
    return OK;
}
int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "570.00");
    return OK;
}
int nvmlDeviceGetCount_v2(unsigned *count)
{
    load();
    *count = (unsigned)n_gpus;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
{
    if ((int)i >= n_gpus)
        return INVALID;
    *device = (void *)(long)(i + 1);
    return OK;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    snprintf(text, size, "GPU-00000000-0000-0000-0000-00000000000%d", at(device));
    return OK;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    (void)device;
    snprintf(text, size, "NVIDIA H100 80GB HBM3");
    return OK;
}
struct pci {
    char legacy[16];
    unsigned domain, bus, device, kind, subsystem;
    char id[32];
};
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    unsigned bus = 0x3bU + (unsigned)at(device);
    *pci = (struct pci){.bus = bus};
    snprintf(pci->id, sizeof(pci->id), "00000000:%02X:00.0", bus);
    return OK;
}
static const wide total_bytes = 81559ULL << 20, reserved_bytes = 480ULL << 20;
/* The old form counts what the driver keeps for itself to what is used. */
int nvmlDeviceGetMemoryInfo(void *device, wide *memory)
{
    load();
    memory[0] = total_bytes;
    memory[2] = gpus[at(device)].mem + reserved_bytes;
    memory[1] = memory[0] - memory[2];
    return OK;
}
struct memory_parts {
    unsigned version;
    wide total, reserved, free, used;
};
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_parts *memory)
{
    load();
    if (memory->version != (sizeof(*memory) | 2U << 24))
        return INVALID;
    memory->total = total_bytes;
    memory->reserved = reserved_bytes;
    memory->used = gpus[at(device)].mem;
    memory->free = memory->total - memory->reserved - memory->used;
    return OK;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates)
{
    load();
    rates[0] = (unsigned)gpus[at(device)].now;
    rates[1] = 3;
    return OK;
}
struct sample {
    wide at, value;
};
/* A buffer as the driver's: 71 samples, one each 200 ms, so that of 15 s a part is never told. */
int nvmlDeviceGetSamples(void *device,
                         int type,
                         wide since,
                         int *kind,
                         unsigned *count,
                         struct sample *v)
{
    load();
    if (type != 1)
        return INVALID;
    wide now = now_usec();
    unsigned n = 0;
    *kind = 1;
    for (wide t = (now / 200000 - 70) * 200000; t <= now; t += 200000) {
        if (t <= since)
            continue;
        if (v && n < *count)
            v[n] = (struct sample){t, (wide)gpus[at(device)].mean};
        n++;
    }
    *count = v && n > *count ? *count : n;
    return OK;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    load();
    *milliwatts = gpus[at(device)].milliwatts;
    return OK;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, wide *millijoules)
{
    load();
    *millijoules = gpus[at(device)].energy;
    return *millijoules ? OK : UNSUPPORTED;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)sensor;
    load();
    *celsius = gpus[at(device)].celsius;
    return OK;
}
int nvmlDeviceGetTemperatureThreshold(void *device, int kind, unsigned *celsius)
{
    (void)device;
    *celsius = 89;
    return kind == 1 ? OK : INVALID;
}
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, wide *n)
{
    load();
    *n = gpus[at(device)].ecc;
    return kind == 1 && counter == 0 ? OK : INVALID;
}
int nvmlDeviceGetRemappedRows(void *device,
                              unsigned *good,
                              unsigned *bad,
                              unsigned *pending,
                              unsigned *failed)
{
    load();
    *good = *bad = 0;
    *pending = gpus[at(device)].pending;
    *failed = gpus[at(device)].rows;
    return OK;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *device, wide *bits)
{
    load();
    *bits = gpus[at(device)].throttle;
    return OK;
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *is_up)
{
    load();
    int n = gpus[at(device)].links;
    *is_up = n < 0 || (int)link < n;
    return link < 18 ? OK : INVALID;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *lanes)
{
    load();
    *lanes = gpus[at(device)].pcie;
    return OK;
}
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *lanes)
{
    (void)device;
    *lanes = 16;
    return OK;
}
struct user {
    unsigned pid;
    wide mem;
    unsigned instance, compute;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct user *v)
{
    unsigned n = 0;
    load();
    for (int i = 0; i < n_processes; i++)
        if (processes[i].gpu == at(device) && n++ < *count)
            v[n - 1] = (struct user){processes[i].pid, processes[i].mem, ~0U, ~0U};
    int r = n > *count ? TOO_SMALL : OK;
    *count = n;
    return r;
}
/* Nobody draws on these GPUs. Ray adds those who do to those who compute. */
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct user *v)
{
    (void)device, (void)v;
    *count = 0;
    return OK;
}
struct use {
    unsigned pid;
    wide at;
    unsigned sm, memory, encoder, decoder;
};
int nvmlDeviceGetProcessUtilization(void *device, struct use *v, unsigned *count, wide since)
{
    unsigned n = 0;
    (void)since;
    load();
    for (int i = 0; i < n_processes; i++)
        if (processes[i].gpu == at(device) && n++ < *count)
            v[n - 1] = (struct use){processes[i].pid, now_usec(), processes[i].percent, 0, 0, 0};
    *count = n;
    return n ? OK : 6;
}
int nvmlDeviceGetAccountingMode(void *device, int *mode)
{
    (void)device;
    load();
    *mode = is_accounting;
    return OK;
}
struct account {
    unsigned gpu, memory;
    wide peak, time, start;
    unsigned is_running, reserved[5];
};
int nvmlDeviceGetAccountingStats(void *device, unsigned pid, struct account *ret)
{
    load();
    for (int i = 0; i < n_processes; i++)
        if (processes[i].gpu == at(device) && processes[i].pid == pid && processes[i].peak) {
            *ret = (struct account){processes[i].percent, 0, processes[i].peak, 0, 0, 1, {0}};
            return OK;
        }
    return 6;
}
int nvmlEventSetCreate(void **set)
{
    *set = (void *)1;
    return OK;
}
int nvmlDeviceRegisterEvents(void *device, wide types, void *set)
{
    (void)device, (void)set;
    return types & 8 ? OK : UNSUPPORTED;
}
struct event {
    void *device;
    wide type, data;
    unsigned instance, compute;
};
int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned milliseconds)
{
    (void)set;
    for (unsigned waited = 0; waited < milliseconds; waited += 50) {
        load();
        if (n_xids > told_xids) {
            told_xids = n_xids;
            *ret = (struct event){(void *)(long)(xid_gpu + 1), 8, (wide)xid_number, ~0U, ~0U};
            return OK;
        }
        told_xids = n_xids;
        usleep(50000);
    }
    return TIMED_OUT;
}
/* NOLINTEND(readability-identifier-naming) */
