/* SPDX-License-Identifier: Apache-2.0 */
/* probe_read.c - turns the answer of probe.sh into facts and judges them for a raylet; see
 * probe.h.
 *
 * The two passes do not mix: read_*() takes lines into `struct seen`, judge_*() compares that
 * with the requirements. An answer that stops in the middle is judged as far as it goes; the
 * step in which it stopped is a finding of its own, since a dead mount hangs every process that
 * touches it. */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "ssh/answer.h"
#include "ssh/machine.h"
#include "ssh/probe.h"
#include "ssh/probe_network.h"

#define GIB ((double)(1 << 30))
enum { PORTS_SEEN_MAX = 64, RAYLETS_SEEN_MAX = 8 };
#define KB_MAX ((uint64_t)1 << 50)

static const char *const codes[] = {
#define X(name, word) word,
    PROBE_TABLE(X)
#undef X
};
static_assert(array_len(codes) == PROBE_END, "one word for each");

const char *probe_code_to_string(enum probe_code code)
{
    return codes[code];
}

struct seen_port {
    int port;
    char at[40], holder[200]; /* address as the kernel writes it */
    uint64_t pid;
    bool is_ours;
};

struct seen_raylet {
    uint64_t pid;
    char owner[80], node[80], user[40], ip[64], gcs[80];
    bool is_head;
};

struct seen {
    char step[16], python_bin[256], python_says[200], cpu_max[64], memory_max[32];
    char disk_at[128], disk_closed[40], root[16], root_says[200], root_mount[200];
    bool has_ray, has_python3, has_disk, has_shm, root_is_empty;
    double cpus, clock;
    uint64_t memory_kb;
    struct machine_gpus gpus;
    struct seen_port ports[PORTS_SEEN_MAX];
    size_t n_ports;
    struct seen_raylet raylets[RAYLETS_SEEN_MAX];
    size_t n_raylets;
    struct network_seen network;
};

/* ---- lines ---- */

static void read_port(const char *value, struct seen *s)
{
    if (s->n_ports == PORTS_SEEN_MAX)
        return;
    struct seen_port *p = &s->ports[s->n_ports++];
    p->port = (int)answer_number(&value, 65535, 0);
    answer_word(&value, p->at, sizeof(p->at));
    p->pid = answer_number(&value, INT32_MAX, 0);
    p->is_ours = answer_number(&value, 1, 0) == 1;
    answer_text(value, p->holder, sizeof(p->holder));
}

static void read_raylet(const char *value, struct seen *s)
{
    if (s->n_raylets == RAYLETS_SEEN_MAX)
        return;
    struct seen_raylet *r = &s->raylets[s->n_raylets++];
    r->pid = answer_number(&value, INT32_MAX, 0);
    answer_word(&value, r->owner, sizeof(r->owner));
    answer_word(&value, r->node, sizeof(r->node));
    r->is_head = answer_number(&value, 1, 0) == 1;
    answer_word(&value, r->user, sizeof(r->user));
    answer_word(&value, r->ip, sizeof(r->ip));
    answer_word(&value, r->gcs, sizeof(r->gcs));
}

static void read_lib(const char *value, struct probe_result *ret)
{
    const struct {
        const char *name;
        char *at;
    } libs[] = {
        {"ray", ret->facts.ray},       {"torch", ret->facts.torch},
        {"cuda", ret->facts.cuda},     {"vllm", ret->facts.vllm},
        {"sglang", ret->facts.sglang}, {"transformers", ret->facts.transformers},
        {"numpy", ret->facts.numpy},   {"verl", ret->facts.verl},
    };
    char name[24];
    answer_word(&value, name, sizeof(name));
    for (size_t i = 0; i < array_len(libs); i++)
        if (!strcmp(name, libs[i].name))
            answer_text(value, libs[i].at, sizeof(ret->facts.ray));
}

/* A value that is kept as it is. */
static bool probe_read_text(const struct answer *a, struct seen *s, struct probe_result *ret)
{
    const struct {
        const char *key;
        char *at;
        size_t size;
    } texts[] = {
        {"STEP", s->step, sizeof(s->step)},
        {"HOSTNAME", ret->facts.hostname, sizeof(ret->facts.hostname)},
        {"IMAGE", ret->facts.image, sizeof(ret->facts.image)},
        {"CPU_MAX", s->cpu_max, sizeof(s->cpu_max)},
        {"MEMORY_MAX", s->memory_max, sizeof(s->memory_max)},
        {"DISK_AT", s->disk_at, sizeof(s->disk_at)},
        {"DISK_CLOSED", s->disk_closed, sizeof(s->disk_closed)},
        {"RAY_BIN", ret->facts.ray_bin, sizeof(ret->facts.ray_bin)},
        {"PYTHON_BIN", s->python_bin, sizeof(s->python_bin)},
        {"PYTHON", ret->facts.python, sizeof(ret->facts.python)},
        {"PYTHON_SAYS", s->python_says, sizeof(s->python_says)},
        {"ROOT", s->root, sizeof(s->root)},
        {"ROOT_SAYS", s->root_says, sizeof(s->root_says)},
        {"ROOT_MOUNT", s->root_mount, sizeof(s->root_mount)},
    };
    for (size_t i = 0; i < array_len(texts); i++)
        if (answer_is(a, texts[i].key)) {
            answer_text(a->value, texts[i].at, texts[i].size);
            return true;
        }
    return false;
}

static void probe_read_line(const struct answer *a, struct seen *s, struct probe_result *ret)
{
    const char *value = a->value;
    uint64_t unused = 0;
    if (probe_read_text(a, s, ret))
        return;
    if (answer_is(a, "CLOCK"))
        s->clock = machine_read_clock(value);
    else if (answer_is(a, "CPUS"))
        s->cpus = (double)answer_number(&value, 1 << 20, 0);
    else if (answer_is(a, "MEMORY_KB"))
        s->memory_kb = answer_number(&value, KB_MAX, 0);
    else if (answer_is(a, "DISK_KB"))
        s->has_disk = machine_read_space(value, &unused, &ret->facts.disk_free_bytes);
    else if (answer_is(a, "SHM_KB"))
        s->has_shm = machine_read_space(value, &ret->shm_bytes, &ret->facts.shm_free_bytes);
    else if (answer_is(a, "PORT"))
        read_port(value, s);
    else if (answer_is(a, "RAYLET"))
        read_raylet(value, s);
    else if (answer_is(a, "LIB"))
        read_lib(value, ret);
    else if (answer_is(a, "GPU"))
        machine_read_gpu(value, &s->gpus);
    else
        probe_network_line(a, &s->network);
    s->has_ray = s->has_ray || answer_is(a, "RAY_THERE");
    s->has_python3 = s->has_python3 || answer_is(a, "ANY_PYTHON");
    s->root_is_empty = s->root_is_empty || answer_is(a, "ROOT_EMPTY");
    ret->has_nvidia = ret->has_nvidia || answer_is(a, "NVIDIA");
}

/* What the machine has, or what its container may use of it. */
static void weigh(const struct seen *s, struct probe_result *ret)
{
    const char *rest = s->cpu_max, *limit = s->memory_max;
    double quota = (double)answer_number(&rest, 1 << 30, 0);
    double period = (double)answer_number(&rest, 1 << 30, 0);
    ret->facts.cpus = s->cpus;
    if (quota > 0 && period > 0 && quota / period < ret->facts.cpus)
        ret->facts.cpus = quota / period;
    ret->facts.memory_bytes = s->memory_kb * 1024;
    uint64_t max = answer_number(&limit, INT64_MAX, 0);
    if (max > 0 && max < ret->facts.memory_bytes)
        ret->facts.memory_bytes = max;
    ret->facts.gpus = s->gpus.n;
    answer_text(s->gpus.type, ret->facts.gpu_type, sizeof(ret->facts.gpu_type));
    answer_text(s->gpus.driver, ret->facts.driver, sizeof(ret->facts.driver));
    answer_text(s->gpus.trouble, ret->gpu_trouble, sizeof(ret->gpu_trouble));
}

/* ---- findings ---- */

static void probe_find(struct probe_result *ret,
                       enum probe_code code,
                       const char *fix,
                       const char *fmt,
                       ...) printf_like(4, 5);

static void probe_find(struct probe_result *ret,
                       enum probe_code code,
                       const char *fix,
                       const char *fmt,
                       ...)
{
    if (ret->n_findings == PROBE_FINDINGS_MAX)
        return;
    struct probe_finding *f = &ret->findings[ret->n_findings++];
    va_list ap;
    va_start(ap, fmt);
    f->code = codes[code];
    text_vprintf(f->text, fmt, ap);
    text_copy(f->fix, fix);
    va_end(ap);
}

static void judge_clock(const struct seen *s,
                        const struct probe_want *want,
                        usec_t began,
                        struct probe_result *ret)
{
    if (s->clock <= 0 || !began)
        return;
    ret->facts.skew = (int64_t)(s->clock * 1e6) - (int64_t)began;
    ret->has_skew = true;
    usec_t off = (usec_t)llabs(ret->facts.skew);
    char span[CLOCK_TEXT_MAX];
    if (want->max_skew && off > want->max_skew)
        probe_find(
            ret, PROBE_CLOCK_OFF,
            "set its clock by NTP (chronyc makestep, or on the machine below it if this is a "
            "container)",
            "its clock is %s %s ours", span_to_string(off, span),
            ret->facts.skew < 0 ? "behind" : "ahead of");
}

static bool same_minor(const char *a, const char *b)
{
    size_t n = strcspn(a, "."), m = n + (a[n] == '.') + strcspn(a + n + (a[n] == '.'), ".");
    size_t k = strcspn(b, "."), l = k + (b[k] == '.') + strcspn(b + k + (b[k] == '.'), ".");
    return m == l && !strncmp(a, b, m);
}

static void judge_python(const struct seen *s,
                         const struct probe_want *want,
                         struct probe_result *ret)
{
    char fix[400];
    if (!ret->facts.python[0]) {
        probe_find(ret, PROBE_NO_PYTHON,
                   "make that environment anew, or name another one by ray_bin",
                   "the Python of '%s' does not run ('%s'%s%s)", ret->facts.ray_bin, s->python_bin,
                   s->python_says[0] ? ": " : "", s->python_says);
        return;
    }
    if (!ret->facts.ray[0]) {
        probe_find(ret, PROBE_NO_RAY,
                   "install it: pip install 'ray[default]' of the head's version, or name another "
                   "environment by ray_bin",
                   "there is no package 'ray' in the Python of '%s'", ret->facts.ray_bin);
        return;
    }
    if (want->ray_version && strcmp(ret->facts.ray, want->ray_version) != 0) {
        text_printf(
            fix,
            "pip install 'ray[default]==%s' there, or name an environment that has it by ray_bin",
            want->ray_version);
        probe_find(ret, PROBE_RAY_VERSION, fix, "Ray is %s at '%s', and the head runs %s",
                   ret->facts.ray, ret->facts.ray_bin, want->ray_version);
    }
    if (want->python_version && !same_minor(ret->facts.python, want->python_version)) {
        text_printf(fix, "name an environment with Python %s by ray_bin", want->python_version);
        probe_find(ret, PROBE_PYTHON_VERSION, fix, "Python is %s at '%s', and the head runs %s",
                   ret->facts.python, ret->facts.ray_bin, want->python_version);
    }
}

static void judge_ray(const struct seen *s, const struct probe_want *want, struct probe_result *ret)
{
    if (s->has_ray)
        judge_python(s, want, ret);
    else if (want->ray_bin)
        probe_find(ret, PROBE_NO_RAY,
                   "name the whole path of 'ray' in the right environment by ray_bin",
                   "there is no program '%s'", want->ray_bin);
    else if (!s->has_python3)
        probe_find(ret, PROBE_NO_PYTHON, "use an image with Python and Ray of the head's version",
                   "there is no python3, and no 'ray' either");
    else
        probe_find(ret, PROBE_NO_RAY,
                   "pip install 'ray[default]' of the head's version, or name the path of 'ray' by "
                   "ray_bin",
                   "there is no 'ray' on PATH nor in the usual places");
}

static void judge_room(const struct seen *s,
                       const struct probe_want *want,
                       struct probe_result *ret)
{
    char fix[400];
    if (s->disk_closed[0]) {
        text_printf(fix, "let '%s' write there, or set another temp_dir", s->disk_closed);
        probe_find(ret, PROBE_DISK_FULL, fix, "'%s' cannot be written", s->disk_at);
    } else if (s->has_disk && ret->facts.disk_free_bytes < want->min_disk_bytes) {
        text_printf(fix,
                    "clear '%s' of old Ray sessions (/tmp/ray/session_*) and other files, or "
                    "set another temp_dir",
                    s->disk_at);
        probe_find(ret, PROBE_DISK_FULL, fix,
                   "the disk below '%s' has %.1f GiB free, and %.1f GiB are needed", s->disk_at,
                   (double)ret->facts.disk_free_bytes / GIB, (double)want->min_disk_bytes / GIB);
    }
    if (!s->has_shm && want->min_shm_bytes)
        probe_find(ret, PROBE_SHM_TOO_SMALL,
                   "mount a tmpfs there (docker run --shm-size, or an emptyDir of medium Memory)",
                   "there is no /dev/shm");
    else if (ret->facts.shm_free_bytes < want->min_shm_bytes)
        probe_find(
            ret, PROBE_SHM_TOO_SMALL,
            ret->shm_bytes < want->min_shm_bytes
                ? "make it larger: mount -o remount,size=… /dev/shm, or docker run --shm-size"
                : "remove what dead processes left in /dev/shm",
            "/dev/shm has %.2f GiB free of %.2f GiB, and %.2f GiB are needed",
            (double)ret->facts.shm_free_bytes / GIB, (double)ret->shm_bytes / GIB,
            (double)want->min_shm_bytes / GIB);
}

/* Whether an address of /proc/net/tcp[6] stands in our way. Hosts on loopback addresses share a
 * machine, so that only their own address counts for them, and all addresses at once. */
static bool is_in_way(const char *at, const char *node_ip)
{
    struct in_addr ip;
    char hex[16];
    if (!node_ip || strncmp(node_ip, "127.", 4) != 0 || inet_pton(AF_INET, node_ip, &ip) != 1)
        return true;
    text_printf(hex, "%08X", ip.s_addr);
    return strspn(at, "0") == strlen(at) || str_ends(at, hex);
}

static void judge_ports(const struct seen *s,
                        const struct probe_want *want,
                        struct probe_result *ret)
{
    int told[PORTS_SEEN_MAX];
    size_t n_told = 0;
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct seen_port *p = &s->ports[i];
        bool is_told = p->is_ours || !is_in_way(p->at, want->node_ip);
        for (size_t k = 0; k < n_told; k++)
            is_told = is_told || told[k] == p->port;
        if (is_told)
            continue;
        told[n_told++] = p->port;
        char fix[400];
        if (p->pid)
            text_printf(fix, "stop process %" PRIu64 " there, or set other ports in argus.yaml",
                        p->pid);
        else
            text_copy(
                fix,
                "find who holds it there (as root: ss -ltnp), or set other ports in argus.yaml");
        probe_find(ret, PROBE_PORT_TAKEN, fix, "port %d is taken by %s%s%s", p->port,
                   p->pid ? "'" : "a process of another user", p->pid ? p->holder : "",
                   p->pid ? "'" : "");
    }
}

/* A raylet that may be there: that of this node, a head of ours, that of another loopback address.
 */
static bool is_welcome(const struct seen_raylet *r, const struct probe_want *want)
{
    if (want->node_ip && !strncmp(r->ip, "127.", 4) && strcmp(r->ip, want->node_ip) != 0)
        return true;
    bool is_ours = want->owner && !strcmp(r->owner, want->owner);
    return is_ours && (!want->node || !strcmp(r->node, want->node) || r->is_head);
}

static void judge_raylets(const struct seen *s,
                          const struct probe_want *want,
                          struct probe_result *ret)
{
    for (size_t i = 0; i < s->n_raylets; i++) {
        const struct seen_raylet *r = &s->raylets[i];
        char fix[400];
        if (is_welcome(r, want))
            continue;
        if (want->owner && !strcmp(r->owner, want->owner)) {
            text_printf(fix, "remove one of the two: argus node rm %s", r->node);
            probe_find(ret, PROBE_RAYLET_FOREIGN, fix,
                       "the machine is our node '%s' already: its raylet runs there (pid %" PRIu64
                       ")",
                       r->node, r->pid);
            continue;
        }
        bool has_owner = strcmp(r->owner, "-") != 0;
        text_printf(
            fix, "let '%s' stop it there (kill %" PRIu64 "), or leave the machine to that cluster",
            r->user, r->pid);
        probe_find(ret, PROBE_RAYLET_FOREIGN, fix,
                   "a raylet that is not ours runs there: pid %" PRIu64
                   " of user '%s', in the cluster of %s%s%s",
                   r->pid, r->user, r->gcs, has_owner ? ", started by the argusd " : "",
                   has_owner ? r->owner : "");
    }
}

static void probe_judge_root(const struct seen *s,
                             const struct probe_want *want,
                             struct probe_result *ret)
{
    const char *root = want->shared_root;
    if (!root || !strcmp(s->root, "ok") || !s->root[0])
        return;
    char fix[400];
    if (!strcmp(s->root, "missing")) {
        text_printf(fix, "mount it there at the same path: '%s'", root);
        probe_find(ret, PROBE_ROOT_NOT_MOUNTED, fix, "the shared root '%s' is not there", root);
    } else if (!strcmp(s->root, "other") && s->root_is_empty) {
        text_printf(fix, "mount it: '%s' is only an empty directory there", root);
        probe_find(ret, PROBE_ROOT_NOT_MOUNTED, fix, "the shared root is not mounted at '%s'",
                   root);
    } else if (!strcmp(s->root, "other")) {
        text_printf(fix, "mount argusd's shared root at '%s' there; now it is '%s'", root,
                    s->root_mount);
        probe_find(ret, PROBE_ROOT_OTHER, fix,
                   "'%s' is another file system than argusd's: it has no '%s'", root,
                   str_or(want->root_mark, ""));
    } else {
        text_copy(fix, "let the user that ssh logs in as write there: remount it read-write, or "
                       "see its export options and quota");
        const char *why = strstr(s->root_says, "create ");
        probe_find(ret, PROBE_ROOT_READ_ONLY, fix, "the shared root '%s' cannot be written%s%s",
                   root, s->root_says[0] ? ": " : "", why ? why : s->root_says);
    }
}

static void probe_judge_gpus(struct probe_result *ret)
{
    if (ret->gpu_trouble[0])
        probe_find(ret, PROBE_GPU_TROUBLE,
                   "run nvidia-smi there; reset the GPU or restart the machine",
                   "nvidia-smi reports trouble: %s", ret->gpu_trouble);
}

/* Whether an answer went on past this step, so that what is not in it is not there. */
static bool is_past(const struct seen *s, const char *step)
{
    static const char *const order[] = {"host", "disk", "ports", "raylets", "network",
                                        "ray",  "gpus", "root",  "end"};
    bool is_behind = false;
    for (size_t i = 0; i < array_len(order); i++) {
        if (!strcmp(s->step, order[i]))
            return is_behind;
        is_behind = is_behind || !strcmp(step, order[i]);
    }
    return false;
}

/* Where an answer that never ended stopped. */
static void judge_step(const struct seen *s,
                       const struct probe_want *want,
                       struct probe_result *ret)
{
    const char *root = want->shared_root;
    bool is_env_on_root = root && !strcmp(s->step, "ray") &&
                          str_starts(str_or(want->ray_bin, ret->facts.ray_bin), root);
    if (!strcmp(s->step, "end"))
        return;
    if (root && (!strcmp(s->step, "root") || is_env_on_root))
        probe_find(ret, PROBE_ROOT_HANGS,
                   "see that the file server answers, and mount it anew there",
                   "the shared root '%s' hangs there", root);
    else if (!strcmp(s->step, "gpus"))
        probe_find(ret, PROBE_GPU_TROUBLE, "restart the machine: its GPU driver does not answer",
                   "nvidia-smi hangs there");
    else
        probe_find(ret, PROBE_FAILED, "try it again; if it stays, log in and see what hangs",
                   "the probe did not end: it stopped at '%s'",
                   s->step[0] ? s->step : "the beginning");
}

void probe_read(const char *text,
                size_t len,
                const struct probe_want *want,
                usec_t began,
                struct probe_result *ret)
{
    struct seen *s = xcalloc(1, sizeof(*s));
    struct answer a = answer_of(text, len);
    *ret = (struct probe_result){0};
    while (answer_next(&a))
        probe_read_line(&a, s, ret);
    weigh(s, ret);
    network_judge(&s->network, want->node_ip, &ret->facts);
    judge_step(s, want, ret);
    if (is_past(s, "ray"))
        judge_ray(s, want, ret);
    probe_judge_root(s, want, ret);
    if (is_past(s, "disk"))
        judge_room(s, want, ret);
    judge_clock(s, want, began, ret);
    judge_raylets(s, want, ret);
    judge_ports(s, want, ret);
    probe_judge_gpus(ret);
    free(s);
}
