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
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
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
    ret->ecc_errors = s->gpus.ecc_errors;
    ret->ecc_gpu = s->gpus.ecc_gpu;
}

/* ---- findings ---- */

static void probe_find(struct probe_result *ret,
                       enum probe_code code,
                       const struct message_arg *args)
{
    if (ret->n_findings == PROBE_FINDINGS_MAX)
        return;
    struct probe_finding *f = &ret->findings[ret->n_findings++];
    f->code = codes[code];
    message_write(f->text, sizeof(f->text), args);
}

/* Bytes as GiB with so many digits as people read. */
static double gib(uint64_t bytes, double digits)
{
    return round((double)bytes / GIB * digits) / digits;
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
        probe_find(ret, PROBE_CLOCK_OFF,
                   MESSAGE_ARGS(MESSAGE_STR(ret->facts.skew < 0 ? "behind" : "ahead",
                                            span_to_string(off, span))));
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
    const struct node_facts *f = &ret->facts;
    if (!f->python[0]) {
        probe_find(ret, PROBE_NO_PYTHON,
                   MESSAGE_ARGS(MESSAGE_STR("program", f->ray_bin),
                                MESSAGE_STR("python", str_or(s->python_bin, "")),
                                MESSAGE_STR("says", s->python_says)));
        return;
    }
    if (!f->ray[0]) {
        probe_find(ret, PROBE_NO_RAY, MESSAGE_ARGS(MESSAGE_STR("program", f->ray_bin)));
        return;
    }
    if (want->ray_version && strcmp(f->ray, want->ray_version) != 0)
        probe_find(ret, PROBE_RAY_VERSION,
                   MESSAGE_ARGS(MESSAGE_STR("has", f->ray), MESSAGE_STR("program", f->ray_bin),
                                MESSAGE_STR("needs", want->ray_version)));
    if (want->python_version && !same_minor(f->python, want->python_version))
        probe_find(ret, PROBE_PYTHON_VERSION,
                   MESSAGE_ARGS(MESSAGE_STR("has", f->python), MESSAGE_STR("program", f->ray_bin),
                                MESSAGE_STR("needs", want->python_version)));
}

static void judge_ray(const struct seen *s, const struct probe_want *want, struct probe_result *ret)
{
    if (s->has_ray)
        judge_python(s, want, ret);
    else if (want->ray_bin)
        probe_find(ret, PROBE_NO_RAY, MESSAGE_ARGS(MESSAGE_STR("ray_bin", want->ray_bin)));
    else
        probe_find(ret, s->has_python3 ? PROBE_NO_RAY : PROBE_NO_PYTHON, MESSAGE_NO_ARGS);
}

static void judge_shm(const struct seen *s, const struct probe_want *want, struct probe_result *ret)
{
    bool is_small = ret->shm_bytes < want->min_shm_bytes;
    if (!s->has_shm && want->min_shm_bytes)
        probe_find(ret, PROBE_SHM_TOO_SMALL, MESSAGE_NO_ARGS);
    else if (ret->facts.shm_free_bytes < want->min_shm_bytes)
        probe_find(ret, PROBE_SHM_TOO_SMALL,
                   MESSAGE_ARGS(MESSAGE_NUM("free", gib(ret->facts.shm_free_bytes, 100)),
                                MESSAGE_NUM("size", gib(ret->shm_bytes, 100)),
                                MESSAGE_NUM("needs", gib(want->min_shm_bytes, 100)),
                                MESSAGE_NUM(is_small ? "" : "left", 1)));
}

static void judge_room(const struct seen *s,
                       const struct probe_want *want,
                       struct probe_result *ret)
{
    if (s->disk_closed[0])
        probe_find(
            ret, PROBE_DISK_FULL,
            MESSAGE_ARGS(MESSAGE_STR("at", s->disk_at), MESSAGE_STR("closed", s->disk_closed)));
    else if (s->has_disk && ret->facts.disk_free_bytes < want->min_disk_bytes)
        probe_find(ret, PROBE_DISK_FULL,
                   MESSAGE_ARGS(MESSAGE_STR("at", s->disk_at),
                                MESSAGE_NUM("free", gib(ret->facts.disk_free_bytes, 10)),
                                MESSAGE_NUM("needs", gib(want->min_disk_bytes, 10))));
    judge_shm(s, want, ret);
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
        probe_find(ret, PROBE_PORT_TAKEN,
                   MESSAGE_ARGS(MESSAGE_NUM("port", p->port),
                                MESSAGE_NUM(p->pid ? "pid" : "", p->pid),
                                MESSAGE_STR("holder", p->holder)));
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
        if (is_welcome(r, want))
            continue;
        bool has_owner = strcmp(r->owner, "-") != 0;
        if (want->owner && !strcmp(r->owner, want->owner))
            probe_find(ret, PROBE_RAYLET_FOREIGN,
                       MESSAGE_ARGS(MESSAGE_STR("node", r->node), MESSAGE_NUM("pid", r->pid)));
        else
            probe_find(ret, PROBE_RAYLET_FOREIGN,
                       MESSAGE_ARGS(MESSAGE_NUM("pid", r->pid), MESSAGE_STR("user", r->user),
                                    MESSAGE_STR("gcs", r->gcs),
                                    MESSAGE_STR("owner", has_owner ? r->owner : "")));
    }
}

static void probe_judge_root(const struct seen *s,
                             const struct probe_want *want,
                             struct probe_result *ret)
{
    const char *root = want->shared_root;
    if (!root || !strcmp(s->root, "ok") || !s->root[0])
        return;
    const char *why = strstr(s->root_says, "create ");
    bool is_other = !strcmp(s->root, "other");
    if (!strcmp(s->root, "missing"))
        probe_find(ret, PROBE_ROOT_NOT_MOUNTED, MESSAGE_ARGS(MESSAGE_STR("root", root)));
    else if (is_other && s->root_is_empty)
        probe_find(ret, PROBE_ROOT_NOT_MOUNTED,
                   MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_NUM("empty", 1)));
    else if (is_other)
        probe_find(ret, PROBE_ROOT_OTHER,
                   MESSAGE_ARGS(MESSAGE_STR("root", root),
                                MESSAGE_STR("mark", str_or(want->root_mark, "?")),
                                MESSAGE_STR("mount", s->root_mount)));
    else
        probe_find(
            ret, PROBE_ROOT_READ_ONLY,
            MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("says", why ? why : s->root_says)));
}

static void probe_judge_gpus(struct probe_result *ret)
{
    if (ret->gpu_trouble[0])
        probe_find(ret, PROBE_GPU_TROUBLE, MESSAGE_ARGS(MESSAGE_STR("says", ret->gpu_trouble)));
    else if (ret->ecc_errors)
        probe_find(ret, PROBE_GPU_TROUBLE,
                   MESSAGE_ARGS(MESSAGE_NUM("ecc_gpu", ret->ecc_gpu),
                                MESSAGE_NUM("ecc_errors", ret->ecc_errors)));
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
        probe_find(ret, PROBE_ROOT_HANGS, MESSAGE_ARGS(MESSAGE_STR("root", root)));
    else if (!strcmp(s->step, "gpus"))
        probe_find(ret, PROBE_GPU_TROUBLE, MESSAGE_NO_ARGS);
    else
        probe_find(ret, PROBE_FAILED,
                   MESSAGE_ARGS(MESSAGE_STR("step", s->step[0] ? s->step : "the beginning")));
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
