/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - see nvml.h.
 *
 * The use of a GPU that the driver tells at once covers 1/6 to 1 s, so that a mean of such samples
 * is wrong: the mean here is of the driver's own buffer, which has several samples a second. Under
 * MIG, and where a driver has no buffer, the figure of the moment has to do. */
#include "shepherd/gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

/* ---- the library's binary interface ---- */

typedef unsigned long long nvml_wide;
enum {
    NVML_OK = 0,
    NVML_UTIL_SAMPLES = 1,
    NVML_SLOWDOWN = 1,
    NVML_EVENT_XID = 8,
    NVML_UNCORRECTED = 1,
    NVML_LINKS = 18,
    NVML_SAMPLES_MAX = 4096,
    NVML_USERS_MAX = 128,
};
static const nvml_wide NVML_UNKNOWN = ~0ULL; /* memory that a driver does not tell */

struct nvml_memory {
    nvml_wide total, free, used;
};
struct nvml_memory_parts {
    unsigned version;
    nvml_wide total, reserved, free, used;
};
static const unsigned NVML_MEMORY_PARTS = sizeof(struct nvml_memory_parts) | 2U << 24;
struct nvml_rates {
    unsigned gpu, memory;
};
struct nvml_sample {
    nvml_wide at; /* microseconds */
    union {
        unsigned number;
        nvml_wide wide;
    } value;
};
struct nvml_user {
    unsigned pid;
    nvml_wide memory;
    unsigned instance, compute;
};
struct nvml_use {
    unsigned pid;
    nvml_wide at;
    unsigned sm, memory, encoder, decoder;
};
struct nvml_account {
    unsigned gpu, memory;
    nvml_wide memory_max, time, start;
    unsigned is_running, reserved[5];
};
struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, kind, subsystem;
    char id[32];
};
struct nvml_event {
    void *device;
    nvml_wide type, data;
    unsigned instance, compute;
};

/* X(our name, its name, parameters) */
#define NVML_CALLS(X)                                                                              \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(shutdown, "nvmlShutdown", (void))                                                            \
    X(version, "nvmlSystemGetDriverVersion", (char *, unsigned))                                   \
    X(count, "nvmlDeviceGetCount_v2", (unsigned *))                                                \
    X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned, void **))                                \
    X(uuid, "nvmlDeviceGetUUID", (void *, char *, unsigned))                                       \
    X(name, "nvmlDeviceGetName", (void *, char *, unsigned))                                       \
    X(pci, "nvmlDeviceGetPciInfo_v3", (void *, struct nvml_pci *))                                 \
    X(memory, "nvmlDeviceGetMemoryInfo", (void *, struct nvml_memory *))                           \
    X(memory_parts, "nvmlDeviceGetMemoryInfo_v2", (void *, struct nvml_memory_parts *))            \
    X(rates, "nvmlDeviceGetUtilizationRates", (void *, struct nvml_rates *))                       \
    X(samples, "nvmlDeviceGetSamples",                                                             \
      (void *, int, nvml_wide, int *, unsigned *, struct nvml_sample *))                           \
    X(power, "nvmlDeviceGetPowerUsage", (void *, unsigned *))                                      \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", (void *, nvml_wide *))                        \
    X(temperature, "nvmlDeviceGetTemperature", (void *, int, unsigned *))                          \
    X(threshold, "nvmlDeviceGetTemperatureThreshold", (void *, int, unsigned *))                   \
    X(ecc, "nvmlDeviceGetTotalEccErrors", (void *, int, int, nvml_wide *))                         \
    X(rows, "nvmlDeviceGetRemappedRows", (void *, unsigned *, unsigned *, unsigned *, unsigned *)) \
    X(reasons, "nvmlDeviceGetCurrentClocksEventReasons", (void *, nvml_wide *))                    \
    X(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", (void *, nvml_wide *))                \
    X(link, "nvmlDeviceGetNvLinkState", (void *, unsigned, int *))                                 \
    X(width, "nvmlDeviceGetCurrPcieLinkWidth", (void *, unsigned *))                               \
    X(width_max, "nvmlDeviceGetMaxPcieLinkWidth", (void *, unsigned *))                            \
    X(users, "nvmlDeviceGetComputeRunningProcesses_v3", (void *, unsigned *, struct nvml_user *))  \
    X(uses, "nvmlDeviceGetProcessUtilization", (void *, struct nvml_use *, unsigned *, nvml_wide)) \
    X(accounting, "nvmlDeviceGetAccountingMode", (void *, int *))                                  \
    X(account, "nvmlDeviceGetAccountingStats", (void *, unsigned, struct nvml_account *))          \
    X(event_set, "nvmlEventSetCreate", (void **))                                                  \
    X(event_add, "nvmlDeviceRegisterEvents", (void *, nvml_wide, void *))                          \
    X(event_wait, "nvmlEventSetWait_v2", (void *, struct nvml_event *, unsigned))

struct nvml_gpu {
    void *device;            /* NULL: it could not be had */
    nvml_wide sampled, used; /* times of the newest sample of each kind */
    int xid;
};

struct nvml {
    void *library;
#define X(our, its, parameters) int(*(our)) parameters; /* NOLINT(bugprone-macro-parentheses) */
    NVML_CALLS(X)
#undef X
    char driver[32];
    void *events; /* NULL: it tells none */
    unsigned n;
    struct nvml_gpu v[FIGURE_GPUS_MAX];
};

/* ---- open ---- */

static void *nvml_library(const char *beside)
{
    static const char name[] = "libnvidia-ml.so.1";
    static const char *const places[] = {"", "/usr/local/nvidia/lib64/", "/usr/local/nvidia/lib/",
                                         "/run/nvidia/driver/usr/lib64/",
                                         "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/"};
    void *library = NULL;
    if (beside) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", beside, name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; i < array_len(places) && !library; i++) {
        _cleanup_(freep) char *path = xasprintf("%s%s", places[i], name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static void nvml_look_up(struct nvml *n)
{
    /* ISO C has no way from a pointer to a function; POSIX promises that the bytes are the same. */
#define X(our, its, parameters)                                                                    \
    {                                                                                              \
        void *at = dlsym(n->library, its);                                                         \
        memcpy(&n->our, &at, sizeof(at));                                                          \
    }
    NVML_CALLS(X)
#undef X
}

static void nvml_watch_errors(struct nvml *n)
{
    bool is_told = false;
    if (!n->event_set || !n->event_add || !n->event_wait || n->event_set(&n->events) != NVML_OK) {
        n->events = NULL;
        return;
    }
    for (unsigned i = 0; i < n->n; i++)
        is_told |=
            n->v[i].device && n->event_add(n->v[i].device, NVML_EVENT_XID, n->events) == NVML_OK;
    if (!is_told)
        n->events = NULL;
}

int nvml_open(const char *beside, struct nvml **ret, struct err *err)
{
    void *library = nvml_library(beside);
    if (!library)
        return err_set(err, -ENOENT, "there is no libnvidia-ml.so.1");
    struct nvml *n = xcalloc(1, sizeof(*n));
    n->library = library;
    nvml_look_up(n);
    int r = n->init && n->count && n->handle ? n->init() : -1;
    if (r == NVML_OK)
        r = n->count(&n->n);
    if (r != NVML_OK) {
        free(n); /* the library stays: closing it has made programs crash */
        return err_set(err, -ENODEV, "the NVIDIA driver answers with error %d", r);
    }
    if (!n->version || n->version(n->driver, sizeof(n->driver)) != NVML_OK)
        n->driver[0] = 0;
    n->n = n->n < FIGURE_GPUS_MAX ? n->n : FIGURE_GPUS_MAX;
    for (unsigned i = 0; i < n->n; i++)
        if (n->handle(i, &n->v[i].device) != NVML_OK)
            n->v[i].device = NULL;
    nvml_watch_errors(n);
    *ret = n;
    return 0;
}

void nvml_close(struct nvml *n)
{
    if (n && n->shutdown)
        (void)n->shutdown(); /* the process ends anyway */
    free(n);
}

/* ---- read ---- */

/* The mean of the samples that are new; on the first call of those of the newest 15 s. */
static double nvml_mean_use(const struct nvml *n, struct nvml_gpu *g)
{
    unsigned room = 0;
    int kind = 0;
    if (!n->samples ||
        n->samples(g->device, NVML_UTIL_SAMPLES, g->sampled, &kind, &room, NULL) != NVML_OK ||
        !room)
        return -1;
    room = room < NVML_SAMPLES_MAX ? room : NVML_SAMPLES_MAX;
    _cleanup_(freep) struct nvml_sample *v = xcalloc(room, sizeof(*v));
    if (n->samples(g->device, NVML_UTIL_SAMPLES, g->sampled, &kind, &room, v) != NVML_OK)
        return -1;
    nvml_wide newest = 0, from = g->sampled;
    double sum = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < room; i++)
        newest = v[i].at > newest ? v[i].at : newest;
    if (!from && newest > GPU_EVERY)
        from = newest - GPU_EVERY;
    for (unsigned i = 0; i < room; i++)
        if (v[i].at > from) {
            sum += v[i].value.number > 100 ? 100 : v[i].value.number;
            count++;
        }
    g->sampled = newest > g->sampled ? newest : g->sampled;
    return count ? sum / count / 100 : -1;
}

static double nvml_number(int (*call)(void *, unsigned *), void *device)
{
    unsigned v = 0;
    return call && call(device, &v) == NVML_OK ? (double)v : -1;
}

static double nvml_wide_number(int (*call)(void *, nvml_wide *), void *device)
{
    nvml_wide v = 0;
    return call && call(device, &v) == NVML_OK ? (double)v : -1;
}

/* In use is what programs hold. Drivers before 510 count what they keep for themselves to it. */
static void nvml_read_memory(const struct nvml *n, void *device, struct gpu_card *c)
{
    struct nvml_memory_parts parts = {.version = NVML_MEMORY_PARTS};
    struct nvml_memory memory = {0};
    if (n->memory_parts && n->memory_parts(device, &parts) == NVML_OK)
        memory = (struct nvml_memory){.total = parts.total, .used = parts.used};
    else if (!n->memory || n->memory(device, &memory) != NVML_OK)
        return;
    c->mem_used_bytes = (double)memory.used;
    c->mem_total_bytes = (double)memory.total;
}

static void nvml_read_place(const struct nvml *n, void *device, struct gpu_card *c)
{
    struct nvml_pci pci = {0};
    if (!n->pci || n->pci(device, &pci) != NVML_OK)
        return;
    pci.id[sizeof(pci.id) - 1] = 0;
    text_copy(c->pci, pci.id);
}

static void nvml_read_use(const struct nvml *n, struct nvml_gpu *g, struct gpu_card *c)
{
    struct nvml_rates rates = {0};
    double milliwatts = nvml_number(n->power, g->device),
           millijoules = nvml_wide_number(n->energy, g->device);
    c->util = nvml_mean_use(n, g);
    if (c->util < 0 && n->rates && n->rates(g->device, &rates) == NVML_OK)
        c->util = rates.gpu > 100 ? 1 : rates.gpu / 100.0;
    nvml_read_memory(n, g->device, c);
    c->power_watts = milliwatts < 0 ? -1 : milliwatts / 1000;
    c->energy_joules = millijoules < 0 ? -1 : millijoules / 1000;
}

static double nvml_links_up(const struct nvml *n, void *device)
{
    int count = 0, told = 0;
    for (unsigned i = 0; n->link && i < NVML_LINKS; i++) {
        int is_up = 0;
        if (n->link(device, i, &is_up) != NVML_OK)
            continue;
        told++;
        count += is_up == 1;
    }
    return told ? count : -1;
}

static void nvml_read_health(const struct nvml *n, const struct nvml_gpu *g, struct gpu_card *c)
{
    unsigned v[4] = {0};
    nvml_wide errors = 0;
    if (n->temperature && n->temperature(g->device, 0, &v[0]) == NVML_OK)
        c->temperature_celsius = v[0];
    if (n->threshold && n->threshold(g->device, NVML_SLOWDOWN, &v[0]) == NVML_OK)
        c->slowdown_celsius = v[0];
    if (n->ecc && n->ecc(g->device, NVML_UNCORRECTED, 0, &errors) == NVML_OK)
        c->ecc_uncorrected = (double)errors;
    if (n->rows && n->rows(g->device, &v[0], &v[1], &v[2], &v[3]) == NVML_OK) {
        c->rows_pending = v[2];
        c->rows_failed = v[3];
    }
    c->throttle = nvml_wide_number(n->reasons ? n->reasons : n->throttle, g->device);
    c->nvlinks = nvml_links_up(n, g->device);
    c->pcie_width = nvml_number(n->width, g->device);
    c->pcie_width_max = nvml_number(n->width_max, g->device);
    if (n->events)
        c->xid = g->xid;
}

static struct gpu_process *nvml_process(struct gpu_card *c, unsigned pid)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].pid == (int)pid)
            return &c->v[i];
    if (c->n == GPU_PROCESSES_MAX || pid > INT32_MAX)
        return NULL;
    c->v[c->n] = (struct gpu_process){
        .pid = (int)pid, .util = -1, .mem_bytes = -1, .mem_peak_bytes = -1, .rank = -1};
    return &c->v[c->n++];
}

/* The driver lists the processes of our own pid namespace, as that counts them, but the uses of all
 * processes of the machine, as the outermost namespace counts them: within another one, as in a
 * container, the uses would be taken for those of others. */
static bool nvml_counts_as_driver(void)
{
    static const char outermost[] = "pid:[4026531836]"; /* the kernel's own number of it */
    char space[64];
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    space[n > 0 ? n : 0] = 0;
    return str_eq(space, outermost);
}

/* The mean of what is new of each process. */
static void nvml_read_uses(const struct nvml *n, struct nvml_gpu *g, struct gpu_card *c)
{
    struct nvml_use v[NVML_USERS_MAX];
    unsigned room = NVML_USERS_MAX, counts[GPU_PROCESSES_MAX] = {0};
    if (!n->uses || !nvml_counts_as_driver() || n->uses(g->device, v, &room, g->used) != NVML_OK)
        return;
    for (unsigned i = 0; i < room && i < NVML_USERS_MAX; i++) {
        struct gpu_process *p = nvml_process(c, v[i].pid);
        if (!p)
            continue;
        double sum = p->util < 0 ? 0 : p->util * counts[p - c->v];
        p->util = (sum + (v[i].sm > 100 ? 100 : v[i].sm) / 100.0) / ++counts[p - c->v];
        g->used = v[i].at > g->used ? v[i].at : g->used;
    }
}

static void nvml_read_processes(const struct nvml *n, struct nvml_gpu *g, struct gpu_card *c)
{
    struct nvml_user v[NVML_USERS_MAX];
    struct nvml_account a;
    unsigned room = NVML_USERS_MAX;
    int is_counted = 0;
    if (!n->users || n->users(g->device, &room, v) != NVML_OK)
        return;
    for (unsigned i = 0; i < room && i < NVML_USERS_MAX; i++) {
        struct gpu_process *p = nvml_process(c, v[i].pid);
        if (p && v[i].memory != NVML_UNKNOWN)
            p->mem_bytes = (double)v[i].memory;
    }
    nvml_read_uses(n, g, c);
    if (!n->accounting || !n->account || n->accounting(g->device, &is_counted) != NVML_OK ||
        !is_counted)
        return;
    for (size_t i = 0; i < c->n; i++) {
        memset(&a, 0, sizeof(a));
        if (n->account(g->device, (unsigned)c->v[i].pid, &a) == NVML_OK)
            c->v[i].mem_peak_bytes = (double)a.memory_max;
    }
}

void nvml_read(struct nvml *n, struct gpu_sample *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->at = clock_wall();
    text_copy(ret->driver, n->driver);
    for (unsigned i = 0; i < n->n; i++) {
        struct nvml_gpu *g = &n->v[i];
        struct gpu_card *c = &ret->v[ret->n];
        gpu_card_init(c);
        c->index = (int)i;
        if (!g->device)
            continue;
        if (!n->uuid || n->uuid(g->device, c->uuid, sizeof(c->uuid)) != NVML_OK)
            c->uuid[0] = 0;
        if (!n->name || n->name(g->device, c->name, sizeof(c->name)) != NVML_OK)
            c->name[0] = 0;
        c->uuid[sizeof(c->uuid) - 1] = c->name[sizeof(c->name) - 1] = 0;
        nvml_read_place(n, g->device, c);
        nvml_read_use(n, g, c);
        nvml_read_health(n, g, c);
        nvml_read_processes(n, g, c);
        ret->n++;
    }
}

/* A job whose program faulted ends at once, and its scout with it: an error is told soon, and not
 * with the next turn. Soon, since several come together; never more often than each second. */
static usec_t nvml_soon(usec_t began, usec_t until)
{
    usec_t now = clock_mono(), least = began + USEC_SEC, soon = now + USEC_SEC / 5;
    soon = soon > least ? soon : least;
    return soon < until ? soon : until;
}

void nvml_wait(struct nvml *n, usec_t span)
{
    usec_t began = clock_mono(), until = began + span;
    for (usec_t now; (now = clock_mono()) < until;) {
        struct nvml_event e = {0};
        unsigned left = (unsigned)((until - now) / USEC_MS) + 1;
        if (!n->events || n->event_wait(n->events, &e, left) != NVML_OK) {
            now = clock_mono();
            if (now < until)
                (void)poll(NULL, 0, (int)((until - now) / USEC_MS) + 1);
            return;
        }
        for (unsigned i = 0; i < n->n && e.type == NVML_EVENT_XID; i++)
            if (n->v[i].device == e.device)
                n->v[i].xid = e.data < 10000 ? (int)e.data : 0;
        if (e.type == NVML_EVENT_XID)
            until = nvml_soon(began, until);
    }
}
