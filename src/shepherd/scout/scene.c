/* SPDX-License-Identifier: Apache-2.0 */
/* scene.c - gathers a node's part of the scene; see scene.h.
 *
 * Every step has its own deadline or reads what cannot block, and a step that fails leaves a gap
 * and nothing else: a scene with gaps is better than none. */
#define _GNU_SOURCE
#include "shepherd/scout/scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "core/figure/figure.h"
#include "fsroot/attempt/launch.h"
#include "shepherd/host/host.h"
#include "shepherd/host/kernel.h"
#include "shepherd/host/kin.h"
#include "shepherd/host/peek.h"
#include "shepherd/scout/gpus.h"
#include "shepherd/scout/stacks.h"
#include "shepherd/scout/tool.h"

enum { TEXT_MAX = 1 << 20, ENVIRONMENT_MAX = 64 << 10, ENVIRON_MAX = 2 << 20 };
static const uint64_t FULL_BELOW = 1 << 20;
#define FULL_FOR                                                                                   \
    (2 * USEC_MIN) /* a file system that was full so long ago has to do with the end               \
                    */
#define TOOL_LIMIT (10 * USEC_SEC)
#define SHM "/dev/shm"

/* ---- while it runs ---- */

void scene_watch_init(struct scene_watch *w, const char *attempt)
{
    struct host_memory memory;
    host_memory_read(&memory);
    *w = (struct scene_watch){.kin = kin_new(attempt),
                              .peek = peek_new(NULL, PEEK_LIMIT),
                              .kernel = KERNEL_LOG_INIT,
                              .oom_kills = memory.oom_kills,
                              .environment = BUF_INIT(ENVIRONMENT_MAX)};
    w->kernel_fd = kernel_log_open(&w->kernel.first);
}

void scene_watch_begin(struct scene_watch *w)
{
    kernel_log_again(w->kernel_fd);
    kin_watch(w->kin);
}

void scene_watch_release(struct scene_watch *w)
{
    kin_free(w->kin);
    peek_free(w->peek);
    closep(&w->kernel_fd);
    kernel_log_release(&w->kernel);
    buf_release(&w->environment);
}

static bool scene_is_full(const char *path)
{
    struct statvfs st;
    return statvfs(path, &st) == 0 && st.f_blocks &&
           ((uint64_t)st.f_bavail * st.f_frsize < FULL_BELOW || (st.f_files && !st.f_favail));
}

/* Reads the kernel's log as the shepherd's loop does (run.c). */
static void scene_read_kernel_log(struct scene_watch *w)
{
    struct kernel_concern concern;
    struct host_memory memory;
    usec_t now = clock_mono();
    host_memory_read(&memory);
    kernel_concern_init(&concern, w->kin);
    kernel_log_read(&w->kernel, w->kernel_fd, &concern);
    kernel_concern_release(&concern);
    if (memory.oom_kills == w->oom_kills && !w->kernel.n_suspects)
        w->no_kill_until = now;
}

void scene_watch_look(struct scene_watch *w, const char *session)
{
    usec_t now = clock_mono();
    scene_read_kernel_log(w);
    if (scene_is_full(SHM))
        w->shm_full = now;
    if (*session && scene_is_full(session))
        w->disk_full = now;
}

static bool is_about_communication(const char *setting)
{
    static const char *const names[] = {
        "NCCL_",        "TORCH_NCCL_",  "GLOO_",       "UCX_",       "FI_",   "IBV_",
        "MLX5_",        "CUDA_",        "NVIDIA_",     "MASTER_",    "RANK=", "WORLD_SIZE=",
        "LOCAL_RANK=",  "LOCAL_WORLD_", "VLLM_",       "SGLANG_",    "OMP_",  "RAY_LOCAL_",
        "HIP_VISIBLE_", "PYTORCH_",     "TORCH_CUDA_", "TOKENIZERS_"};
    for (size_t i = 0; i < array_len(names); i++)
        if (str_starts(setting, names[i]))
            return true;
    return false;
}

void scene_watch_process(struct scene_watch *w, pid_t pid)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(ENVIRON_MAX);
    kin_add(w->kin, pid);
    int r = peek_file(w->peek, pid, "environ", &text);
    if (r == -ENOENT)
        return;
    (void)buf_addf(&w->environment, "[process %d]%s\n", (int)pid, /* what is too much is left out */
                   r < 0 ? " hangs: its environment cannot be read" : "");
    for (size_t i = 0; i < text.len; i += strlen(text.data + i) + 1) {
        const char *setting = text.data + i;
        _cleanup_(freep) char *name = xstrndup(setting, strcspn(setting, "="));
        if (is_about_communication(setting) && !str_is_secret_name(name))
            (void)buf_addf(&w->environment, "%s\n", setting); /* as above */
    }
}

/* ---- one part ---- */

struct part {
    const char *attempt, *node;
    const struct copier *copier;
    struct veil *veil;
    const struct gpus *gpus;
    struct scene_watch *watch;
    char *dir;
    size_t processes, logs;
};

static void scene_note(const struct part *p, const char *name, const struct buf *text)
{
    if (text->len) /* a note that cannot be written is a gap */
        (void)!tool_note(p->dir, name, p->veil, text, NULL);
}

static void scene_add_file(struct buf *out, const char *path, size_t max)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(max);
    if (file_read(path, &text, NULL) < 0)
        return;
    (void)buf_addf(out, "== %s\n%s\n", path, buf_str(&text)); /* a note that is full is cut */
}

static void gather_stacks(struct part *p)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(STACKS_MAX);
    p->processes = stacks_tell(p->attempt, p->copier, p->watch->peek, &out);
    if (p->processes && !out.failed)
        scene_note(p, "stacks.json", &out);
}

static void gather_gpus(const struct part *p)
{
    static const char *const argv[] = {"nvidia-smi", "-q", NULL};
    struct err err;
    _cleanup_(buf_release) struct buf out = BUF_INIT(TEXT_MAX);
    int r = tool_run(argv, true, TOOL_LIMIT, &out, &err);
    if (r < 0 && r != -ENOENT)
        (void)buf_addf(&out, "\n[argus] %s\n", err.text); /* as above */
    scene_note(p, "nvidia-smi.txt", &out);
}

static void gather_infiniband(const struct part *p)
{
    static const char *const argv[] = {
        "/bin/sh", "-c",
        "for f in /sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/ports/*/phys_state "
        "/sys/class/infiniband/*/ports/*/rate /sys/class/infiniband/*/ports/*/counters/link_* "
        "/sys/class/infiniband/*/ports/*/counters/*errors; do [ -r \"$f\" ] && "
        "echo \"$f: $(cat \"$f\")\"; done; :",
        NULL};
    _cleanup_(buf_release) struct buf out = BUF_INIT(TEXT_MAX);
    if (access("/sys/class/infiniband", F_OK) == 0 &&
        tool_run(argv, false, TOOL_LIMIT, &out, NULL) == 0)
        scene_note(p, "infiniband.txt", &out);
}

static void gather_system(const struct part *p)
{
    struct utsname u;
    _cleanup_(buf_release) struct buf out = BUF_INIT(TEXT_MAX), group = BUF_INIT(4096);
    if (uname(&u) == 0)
        (void)buf_addf(&out, "%s %s %s %s\n", u.sysname, u.release, u.version, u.machine);
    static const char *const files[] = {"/etc/os-release",
                                        "/proc/driver/nvidia/version",
                                        "/proc/loadavg",
                                        "/proc/meminfo",
                                        "/proc/pressure/memory",
                                        "/proc/pressure/io",
                                        "/sys/fs/cgroup/memory.events",
                                        "/sys/fs/cgroup/memory.current",
                                        "/sys/fs/cgroup/memory.max",
                                        "/proc/self/limits"};
    for (size_t i = 0; i < array_len(files); i++)
        scene_add_file(&out, files[i], 64 << 10);
    if (file_read("/proc/self/cgroup", &group, NULL) == 0 && str_starts(buf_str(&group), "0::/")) {
        const char *path = buf_str(&group) + 3;
        _cleanup_(freep) char *events =
            xasprintf("/sys/fs/cgroup%.*s/memory.events", (int)strcspn(path, "\n"), path);
        scene_add_file(&out, events, 4096);
    }
    scene_note(p, "system.txt", &out);
}

/* ---- Ray's own logs of the workers ---- */

static void take_end(const struct part *p, const char *path, const char *name)
{
    struct stat st;
    _cleanup_(freep) char *dir = xasprintf("%s/logs", p->dir);
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
        return;
    _cleanup_(buf_release) struct buf out = BUF_INIT(SCENE_LOG_MAX);
    char piece[16 << 10];
    off_t at = st.st_size > SCENE_LOG_MAX ? st.st_size - SCENE_LOG_MAX : 0;
    ssize_t n;
    while ((n = pread(fd, piece, sizeof(piece), at)) > 0 && buf_add(&out, piece, (size_t)n) == 0)
        at += n;
    (void)!tool_note(dir, name, p->veil, &out, NULL); /* a gap */
}

static void gather_logs(struct part *p)
{
    const struct copier *c = p->copier;
    for (size_t i = 0; c && i < c->n && p->logs < SCENE_LOGS; i++) {
        const struct copier_file *f = &c->v[i];
        if (f->is_foreign || !str_ends(f->name, ".out"))
            continue;
        _cleanup_(freep) char *name =
            xasprintf("python-core-worker-%s_%d.log", f->worker, (int)f->pid);
        _cleanup_(freep) char *path = xasprintf("%s/%s", c->from, name);
        take_end(p, path, name);
        p->logs++;
    }
}

/* ---- the facts ---- */

static void tell_file_system(struct jout *j, const char *path)
{
    struct statvfs st;
    if (!path || statvfs(path, &st) < 0)
        return;
    jout_open(j, NULL, '{');
    jout_str(j, "path", path);
    jout_int(j, "total_bytes", (int64_t)((uint64_t)st.f_blocks * st.f_frsize));
    jout_int(j, "free_bytes", (int64_t)((uint64_t)st.f_bavail * st.f_frsize));
    jout_int(j, "free_inodes", (int64_t)st.f_favail);
    jout_close(j, '}');
}

/* A line of /proc/meminfo in bytes; -1: there is none. */
static int64_t memory(const struct buf *text, const char *name)
{
    const char *line = strstr(buf_str(text), name);
    return line ? strtoll(line + strlen(name), NULL, 10) * 1024 : -1;
}

static void scene_tell_memory(struct jout *j)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(64 << 10);
    if (file_read("/proc/meminfo", &text, NULL) < 0)
        return;
    jout_open(j, "memory", '{');
    jout_int(j, "total_bytes", memory(&text, "MemTotal:"));
    jout_int(j, "available_bytes", memory(&text, "MemAvailable:"));
    jout_int(j, "shared_bytes", memory(&text, "Shmem:"));
    jout_close(j, '}');
}

static bool was_full(usec_t seen, usec_t now)
{
    return seen && now - seen < FULL_FOR;
}

static void scene_tell_xid(const struct part *p, struct jout *j)
{
    uint64_t held[FIGURE_GPUS_MAX];
    int n = gpus_held(p->gpus, held, array_len(held));
    const struct kernel_xid *xid = kernel_xid_among(&p->watch->kernel, held, n);
    jout_int(j, "xid", xid ? xid->number : 0);
    jout_str(j, "xid_line", xid ? xid->line : NULL);
}

static void tell_facts(const struct part *p, usec_t began)
{
    char host[HOST_NAME_MAX_BYTES];
    const struct scene_watch *w = p->watch;
    usec_t now = clock_mono();
    struct host_memory group;
    host_memory_read(&group);
    _cleanup_(buf_release) struct buf out = BUF_INIT(SCENE_FACTS_MAX);
    struct jout j = jout_begin(&out);
    host_name(host);
    jout_open(&j, NULL, '{');
    jout_int(&j, "version", 1);
    jout_str(&j, "node", p->node);
    jout_str(&j, "host", host);
    jout_time(&j, "at", clock_wall());
    jout_int(&j, "took_ms", (int64_t)((now - began) / USEC_MS));
    bool is_known = w->oom_kills >= 0 && group.oom_kills >= w->oom_kills;
    int64_t in_group = is_known ? group.oom_kills - w->oom_kills : -1;
    if (w->kernel.n_suspects || in_group > 0)
        kin_look(w->kin);
    struct kernel_oom oom = kernel_oom(&w->kernel, w->kernel_fd >= 0, in_group,
                                       kin_has_neighbours(w->kin, w->no_kill_until));
    jout_count(&j, "oom_kills", in_group);
    jout_count(&j, "own_oom_kills", oom.kills);
    jout_bool(&j, "oom_unsure", oom.is_unsure);
    jout_str(&j, "oom_line", oom.line);
    jout_count(&j, "memory_max_bytes", group.max_bytes);
    jout_count(&j, "memory_peak_bytes", group.peak_bytes);
    jout_bool(&j, "shm_full", was_full(w->shm_full, now));
    jout_bool(&j, "disk_full", was_full(w->disk_full, now));
    scene_tell_xid(p, &j);
    jout_open(&j, "file_systems", '[');
    tell_file_system(&j, SHM);
    tell_file_system(&j, p->copier ? p->copier->from : NULL);
    tell_file_system(&j, p->attempt);
    jout_close(&j, ']');
    scene_tell_memory(&j);
    jout_int(&j, "processes", (int64_t)p->processes);
    jout_int(&j, "logs", (int64_t)p->logs);
    jout_close(&j, '}');
    scene_note(p, SCENE_FACTS, &out);
}

void scene_gather(const char *attempt,
                  const char *node,
                  const struct copier *copier,
                  struct veil *veil,
                  const struct gpus *gpus,
                  struct scene_watch *w)
{
    usec_t began = clock_mono();
    struct part p = {.attempt = attempt,
                     .node = node,
                     .copier = copier,
                     .veil = veil,
                     .gpus = gpus,
                     .watch = w,
                     .dir = xasprintf("%s/" ATTEMPT_SCENE "/%s", attempt, node)};
    gather_stacks(&p);
    scene_read_kernel_log(w);
    scene_note(&p, "kernel.txt", &w->kernel.text);
    scene_note(&p, "environment.txt", &w->environment);
    gather_system(&p);
    gather_gpus(&p);
    gather_infiniband(&p);
    gather_logs(&p);
    tell_facts(&p, began);
    free(p.dir);
}

bool scene_is_gathered(const char *attempt, const char *node)
{
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_SCENE "/%s/" SCENE_FACTS, attempt, node);
    bool is_there = false;
    return file_look_for(path, &is_there, NULL) == 0 && is_there;
}
