/* SPDX-License-Identifier: Apache-2.0 */
/* raylet_read.c - the answers of raylet.sh as values, and what a look says of the machine's health;
 * see raylet.h. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "ssh/answer.h"
#include "ssh/machine.h"
#include "ssh/probe.h"
#include "ssh/raylet.h"

#define GIB ((double)(1 << 30))
#define TICKS_MAX ((uint64_t)INT64_MAX)
static const usec_t XID_FRESH = USEC_HOUR;
static const char ROOT_SLOW[] = "root_slow";

static const char *const words[] = {
#define X(name, word) word,
    RAYLET_TABLE(X)
#undef X
};
static_assert(array_len(words) == RAYLET_END, "one word for each");

const char *raylet_outcome_to_string(enum raylet_outcome outcome)
{
    return words[outcome];
}

static void end_set(struct raylet_end *e,
                    enum raylet_outcome outcome,
                    const struct message_arg *args)
{
    e->outcome = outcome;
    message_write(e->text, sizeof(e->text), args);
}

/* ---- what all answers have ---- */

static void read_fact(const struct answer *a, struct raylet_facts *f)
{
    const char *value = a->value;
    if (answer_is(a, "RAYLET")) {
        f->pid = (int64_t)answer_number(&value, INT32_MAX, 0);
        f->start_time = answer_number(&value, TICKS_MAX, 0);
        f->session = (int64_t)answer_number(&value, INT32_MAX, 0);
        f->alive = f->pid > 0 && f->start_time > 0;
    } else if (answer_is(a, "BOOT")) {
        answer_text(value, f->boot_id, sizeof(f->boot_id));
    } else if (answer_is(a, "TOKEN")) {
        answer_text(value, f->token, sizeof(f->token));
    } else if (answer_is(a, "ADDRESS")) {
        answer_text(value, f->address, sizeof(f->address));
    } else if (answer_is(a, "NODE_IP")) {
        answer_text(value, f->node_ip, sizeof(f->node_ip));
    } else if (answer_is(a, "HEAD")) {
        f->is_head = !strcmp(value, "1");
    } else if (answer_is(a, "STARTING")) {
        f->starting = true;
    } else if (answer_is(a, "GCS")) {
        f->has_gcs = true;
    }
}

/* "END=<word> <rest>": how it says that it ended. False: it did not. */
struct said {
    char word[16], rest[300];
};

static bool raylet_read_end(const struct answer *a, struct said *ret)
{
    const char *value = a->value;
    if (!answer_is(a, "END"))
        return false;
    answer_word(&value, ret->word, sizeof(ret->word));
    answer_text(value, ret->rest, sizeof(ret->rest));
    return true;
}

/* The ends that every verb may come to; false if it is another one. */
static bool is_common_end(const struct said *s, struct raylet_end *e)
{
    if (!strcmp(s->word, "busy"))
        end_set(e, RAYLET_BUSY, MESSAGE_NO_ARGS);
    else if (!strcmp(s->word, "unwritable"))
        end_set(e, RAYLET_UNWRITABLE, MESSAGE_ARGS(MESSAGE_STR("at", s->rest)));
    else if (!s->word[0])
        end_set(e, RAYLET_UNREADABLE, MESSAGE_ARGS(MESSAGE_NUM("script", 1)));
    else
        return false;
    return true;
}

/* ---- start ---- */

struct log {
    char last[300], error[300], at[200]; /* the last line; the last that names an error */
    bool is_head_away;
};

static void raylet_read_log(const char *value, struct log *l)
{
    static const char *const head_away[] = {
        "No node info found for head node",
        "Could not read 'temp_dir' from GCS",
        "Version mismatch:",
        "Unable to connect to GCS",
        "Failed to connect to GCS",
        "Failed to get cluster ID from GCS",
        "GCS authentication",
        "InvalidAuthToken",
        "no authentication token",
    };
    for (size_t i = 0; i < array_len(head_away); i++)
        l->is_head_away = l->is_head_away || strstr(value, head_away[i]);
    if (strlen(value) > 3)
        answer_text(value, l->last, sizeof(l->last));
    if (strstr(value, "Error") || strstr(value, "Exception") || strstr(value, "rror: ") ||
        strstr(value, "mismatch"))
        answer_text(value, l->error, sizeof(l->error));
}

static void judge_failed(const struct said *s, const struct log *l, struct raylet_end *e)
{
    const char *why = l->error[0] ? l->error : l->last;
    const char *how = !strcmp(s->rest, "dashboard")                        ? "dashboard"
                      : !strcmp(s->rest, "137") || !strcmp(s->rest, "124") ? "late"
                      : !strcmp(s->rest, "0")                              ? "gone"
                                                                           : "";
    char status[8];
    text_printf(status, "%.4s", s->rest);
    if (l->is_head_away)
        end_set(e, RAYLET_NO_HEAD, MESSAGE_ARGS(MESSAGE_STR("says", why)));
    else
        end_set(e, RAYLET_START_FAILED,
                MESSAGE_ARGS(MESSAGE_STR("log", l->at), MESSAGE_STR("says", why),
                             MESSAGE_STR("status", *how ? "" : status), MESSAGE_NUM(how, 1)));
}

void raylet_read_start(const char *text, size_t len, struct raylet_started *ret)
{
    struct answer a = answer_of(text, len);
    struct said said = {0};
    struct log log = {0};
    *ret = (struct raylet_started){0};
    while (answer_next(&a)) {
        const char *value = a.value;
        read_fact(&a, &ret->facts);
        if (answer_is(&a, "TOOK_MS"))
            ret->ray_took = answer_number(&value, USEC_DAY / USEC_MS, 0) * USEC_MS;
        else if (answer_is(&a, "LOG"))
            raylet_read_log(value, &log);
        else if (answer_is(&a, "LOG_AT"))
            answer_text(value, log.at, sizeof(log.at));
        else
            (void)raylet_read_end(&a, &said); /* another line is none */
    }
    bool is_well = !strcmp(said.word, "started") || !strcmp(said.word, "adopted");
    ret->adopted = !strcmp(said.word, "adopted");
    if (is_common_end(&said, &ret->end) || (is_well && ret->facts.alive))
        return;
    if (!strcmp(said.word, "gcs_alone")) {
        end_set(&ret->end, RAYLET_GCS_ALONE, MESSAGE_NO_ARGS);
        return;
    }
    if (is_well)
        end_set(&ret->end, RAYLET_UNREADABLE, MESSAGE_ARGS(MESSAGE_NUM("start", 1)));
    else
        judge_failed(&said, &log, &ret->end);
}

/* ---- stop ---- */

void raylet_read_stop(const char *text, size_t len, struct raylet_stopped *ret)
{
    struct answer a = answer_of(text, len);
    struct said said = {0};
    char left[400] = "";
    *ret = (struct raylet_stopped){0};
    while (answer_next(&a)) {
        const char *value = a.value;
        if (answer_is(&a, "KILLED"))
            ret->killed = (size_t)answer_number(&value, 1 << 20, 0);
        else if (answer_is(&a, "LEFT") && !left[0])
            answer_text(value, left, sizeof(left));
        else
            (void)raylet_read_end(&a, &said); /* another line is none */
    }
    if (is_common_end(&said, &ret->end))
        return;
    const char *rest = said.rest;
    ret->ended = (size_t)answer_number(&rest, 1 << 20, 0);
    if (left[0])
        end_set(&ret->end, RAYLET_NOT_ENDED, MESSAGE_ARGS(MESSAGE_STR("left", left)));
    else if (strcmp(said.word, "stopped") != 0)
        end_set(&ret->end, RAYLET_UNREADABLE, MESSAGE_ARGS(MESSAGE_NUM("stop", 1)));
}

/* ---- exporter ---- */

static const char *const exporter_words[] = {
#define X(name, word) word,
    RAYLET_EXPORTER_TABLE(X)
#undef X
};

const char *raylet_exporter_to_string(enum raylet_exporter_state state)
{
    return exporter_words[state];
}

void raylet_read_exporter(const char *text,
                          size_t len,
                          const struct raylet_exporter_spec *spec,
                          struct raylet_exporter *ret)
{
    struct answer a = answer_of(text, len);
    struct said said = {0};
    char log[300] = "", code[40];
    *ret = (struct raylet_exporter){0};
    while (answer_next(&a))
        if (answer_is(&a, "LOG"))
            answer_text(a.value, log, sizeof(log));
        else
            (void)raylet_read_end(&a, &said); /* another line is none */
    if (is_common_end(&said, &ret->end))
        return;
    text_printf(code, "exporter_%s", said.word);
    while (ret->state < RAYLET_EXPORTER_END && strcmp(exporter_words[ret->state], code) != 0)
        ret->state++;
    if (ret->state == RAYLET_EXPORTER_END)
        end_set(&ret->end, RAYLET_UNREADABLE, MESSAGE_ARGS(MESSAGE_NUM("script", 1)));
    else
        message_write(
            ret->text, sizeof(ret->text),
            MESSAGE_ARGS(MESSAGE_STR("program", spec->program), MESSAGE_NUM("port", spec->port),
                         MESSAGE_STR("place", str_or(spec->place, "?")), MESSAGE_STR("says", log)));
}

/* ---- look ---- */

struct health {
    char step[16], root[16], root_says[200], xid_device[64], stray_job[80], stray_user[104];
    int xid; /* 0 = none */
    bool has_disk, has_shm, has_root_time;
    uint64_t disk_free, shm_free;
    usec_t root_write;
    double clock, up;
    struct machine_gpus gpus;
    bool has_nvidia;
};

static bool is_live(const struct raylet_want *want, const char *id)
{
    for (size_t i = 0; i < want->n_live_jobs; i++)
        if (!strcmp(want->live_jobs[i], id))
            return true;
    return false;
}

/* "<processes> <id>" */
static void raylet_read_job(const char *value,
                            const struct raylet_want *want,
                            struct health *h,
                            struct raylet_look *ret)
{
    struct raylet_job job = {.processes = (unsigned)answer_number(&value, 1 << 20, 0)};
    answer_word(&value, job.id, sizeof(job.id));
    job.is_live = is_live(want, job.id);
    if (!job.id[0] || !job.processes)
        return;
    if (!job.is_live) {
        ret->strays += job.processes;
        if (!h->stray_job[0])
            text_copy(h->stray_job, job.id);
    }
    if (ret->n_jobs < RAYLET_JOBS_MAX)
        ret->jobs[ret->n_jobs++] = job;
}

/* "<received> <sent> <device>/ports/<port>". A driver without a counter says so in words there. */
static void raylet_read_rdma(const char *value, struct raylet_look *ret)
{
    const uint64_t none = UINT64_MAX;
    uint64_t received = answer_number(&value, none, none), sent = answer_number(&value, none, none);
    if (received != none && sent != none && *value)
        rdma_add(&ret->rdma, value, received, sent);
}

/* "<uptime> <seconds> <number> <device>": only those after which a GPU is not to be used, and only
 * fresh ones, since the kernel's log keeps them when the GPU was reset long ago. */
static void read_xid(const char *value, struct health *h)
{
    static const uint64_t grave[] = {48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140, 143};
    uint64_t up = answer_number(&value, UINT32_MAX, 0), at = answer_number(&value, UINT32_MAX, 0);
    uint64_t number = answer_number(&value, 1000, 0);
    if (up < at || (up - at) * USEC_SEC > XID_FRESH)
        return;
    for (size_t i = 0; i < array_len(grave); i++)
        if (grave[i] == number) {
            h->xid = (int)number;
            text_copy(h->xid_device, value);
        }
}

static void read_health(const struct answer *a, struct health *h)
{
    const char *value = a->value;
    uint64_t size = 0;
    if (answer_is(a, "STEP"))
        answer_text(value, h->step, sizeof(h->step));
    else if (answer_is(a, "CLOCK"))
        h->clock = machine_read_clock(value);
    else if (answer_is(a, "UPTIME"))
        h->up = machine_read_clock(value);
    else if (answer_is(a, "DISK_KB"))
        h->has_disk = machine_read_space(value, &size, &h->disk_free);
    else if (answer_is(a, "SHM_KB"))
        h->has_shm = machine_read_space(value, &size, &h->shm_free);
    else if (answer_is(a, "NVIDIA"))
        h->has_nvidia = true;
    else if (answer_is(a, "GPU"))
        machine_read_gpu(value, &h->gpus);
    else if (answer_is(a, "XID"))
        read_xid(value, h);
    else if (answer_is(a, "ROOT"))
        answer_text(value, h->root, sizeof(h->root));
    else if (answer_is(a, "ROOT_SAYS"))
        answer_text(*value ? value : "no reason given", h->root_says, sizeof(h->root_says));
    else if (answer_is(a, "ROOT_MS")) {
        h->has_root_time = true;
        h->root_write = answer_number(&value, USEC_DAY / USEC_MS, 0) * USEC_MS;
    }
}

/* The first one stays: they are judged in order of weight. */
static void trouble_is(struct raylet_look *ret, const char *code, const struct message_arg *args)
{
    if (ret->trouble[0])
        return;
    message_write(ret->trouble, sizeof(ret->trouble), args);
    text_copy(ret->trouble_code, code);
}

/* The line of a sample is longer than an answer's value may be. NULL: there is none. */
static struct gpu_sample *raylet_read_cards(const char *text, size_t len)
{
    static const char key[] = "CARDS=";
    const size_t n = sizeof(key) - 1;
    for (const char *line = text, *end = text + len, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        if ((size_t)(next - line) <= n || memcmp(line, key, n) != 0 || !stop)
            continue;
        struct gpu_sample *s = xcalloc(1, sizeof(*s));
        if (gpu_sample_read(line + n, (size_t)(stop - line) - n, s))
            return s;
        free(s);
        return NULL;
    }
    return NULL;
}

/* What makes a GPU unfit for any job. Heat and links are for people to weigh: rules of alerts. */
static void raylet_judge_cards(struct raylet_look *ret)
{
    const char *code = probe_code_to_string(PROBE_GPU_TROUBLE);
    if (!ret->cards)
        return;
    if (ret->cards->trouble[0])
        trouble_is(ret, code, MESSAGE_ARGS(MESSAGE_STR("driver", ret->cards->trouble)));
    for (size_t i = 0; i < ret->cards->n; i++)
        if (ret->cards->v[i].rows_failed > 0)
            trouble_is(ret, code, MESSAGE_ARGS(MESSAGE_NUM("rows_of", ret->cards->v[i].index)));
}

static void raylet_judge_gpus(const struct health *h,
                              const struct raylet_want *want,
                              struct raylet_look *ret)
{
    const char *code = probe_code_to_string(PROBE_GPU_TROUBLE);
    if (!strcmp(h->step, "gpus"))
        trouble_is(ret, code, MESSAGE_NO_ARGS);
    else if (h->gpus.trouble[0])
        trouble_is(ret, code, MESSAGE_ARGS(MESSAGE_STR("says", h->gpus.trouble)));
    else if (h->gpus.ecc_errors)
        trouble_is(ret, code,
                   MESSAGE_ARGS(MESSAGE_NUM("ecc_gpu", h->gpus.ecc_gpu),
                                MESSAGE_NUM("ecc_errors", h->gpus.ecc_errors)));
    else if (h->xid)
        trouble_is(ret, code,
                   MESSAGE_ARGS(MESSAGE_NUM("xid", h->xid),
                                MESSAGE_STR("device", h->xid_device[0] ? h->xid_device : "?")));
    else if (h->has_nvidia && h->gpus.n < want->gpus)
        trouble_is(ret, code,
                   MESSAGE_ARGS(MESSAGE_NUM("has", h->gpus.n), MESSAGE_NUM("needs", want->gpus)));
}

static void raylet_judge_root(const struct health *h,
                              const struct raylet_want *want,
                              struct raylet_look *ret)
{
    char took[CLOCK_TEXT_MAX];
    const struct message_arg root = MESSAGE_STR("root", str_or(want->shared_root, "?"));
    if (!strcmp(h->step, "root"))
        trouble_is(ret, probe_code_to_string(PROBE_ROOT_HANGS), MESSAGE_ARGS(root));
    else if (!strcmp(h->root, "missing"))
        trouble_is(ret, probe_code_to_string(PROBE_ROOT_NOT_MOUNTED), MESSAGE_ARGS(root));
    else if (h->root_says[0])
        trouble_is(ret, probe_code_to_string(PROBE_ROOT_READ_ONLY),
                   MESSAGE_ARGS(root, MESSAGE_STR("says", h->root_says)));
    else if (h->has_root_time && want->max_write && h->root_write > want->max_write)
        trouble_is(ret, ROOT_SLOW,
                   MESSAGE_ARGS(MESSAGE_STR("took", span_to_string(h->root_write, took))));
}

static double in_gib(uint64_t bytes, double digits)
{
    return round((double)bytes / GIB * digits) / digits;
}

/* What was measured, for whoever judges it by another measure. */
static void raylet_take_measures(const struct health *h, usec_t began, struct raylet_look *ret)
{
    ret->root_write = h->has_root_time && !h->root_write ? 1 : h->root_write;
    ret->has_disk = h->has_disk;
    ret->disk_free = h->disk_free;
    ret->has_shm = h->has_shm;
    ret->shm_free = h->shm_free;
    ret->has_clock = h->clock > 0 && began;
    ret->skew = ret->has_clock ? (int64_t)(h->clock * 1e6) - (int64_t)began : 0;
    if (ret->rdma)
        ret->rdma->up = (usec_t)(h->up * 1e6);
}

static void judge_rest(const struct health *h,
                       const struct raylet_want *want,
                       struct raylet_look *ret)
{
    if (h->has_disk && h->disk_free < want->min_disk_bytes)
        trouble_is(ret, probe_code_to_string(PROBE_DISK_FULL),
                   MESSAGE_ARGS(MESSAGE_STR("at", str_or(want->temp_dir, "/tmp")),
                                MESSAGE_NUM("free", in_gib(h->disk_free, 10)),
                                MESSAGE_NUM("needs", in_gib(want->min_disk_bytes, 10))));
    if (h->has_shm && h->shm_free < want->min_shm_bytes)
        trouble_is(ret, probe_code_to_string(PROBE_SHM_TOO_SMALL),
                   MESSAGE_ARGS(MESSAGE_NUM("free", in_gib(h->shm_free, 100)),
                                MESSAGE_NUM("needs", in_gib(want->min_shm_bytes, 100))));
    int64_t skew = ret->skew;
    if (!ret->has_clock || !want->max_skew)
        return;
    char span[CLOCK_TEXT_MAX];
    if ((usec_t)llabs(skew) > want->max_skew)
        trouble_is(ret, probe_code_to_string(PROBE_CLOCK_OFF),
                   MESSAGE_ARGS(MESSAGE_STR(skew < 0 ? "behind" : "ahead",
                                            span_to_string((usec_t)llabs(skew), span))));
}

void raylet_read_look(const char *text,
                      size_t len,
                      const struct raylet_want *want,
                      usec_t began,
                      struct raylet_look *ret)
{
    struct answer a = answer_of(text, len);
    struct health h = {0};
    *ret = (struct raylet_look){0};
    while (answer_next(&a)) {
        read_fact(&a, &ret->facts);
        read_health(&a, &h);
        if (answer_is(&a, "JOB"))
            raylet_read_job(a.value, want, &h, ret);
        else if (answer_is(&a, "RDMA"))
            raylet_read_rdma(a.value, ret);
        else if (answer_is(&a, "GPU_USER")) {
            ret->strays++;
            if (!h.stray_user[0])
                text_copy(h.stray_user, a.value);
        }
    }
    if (ret->strays)
        message_write(ret->stray_text, sizeof(ret->stray_text),
                      MESSAGE_ARGS(MESSAGE_NUM("strays", ret->strays),
                                   MESSAGE_STR("job", h.stray_job),
                                   MESSAGE_STR("user", h.stray_user)));
    raylet_take_measures(&h, began, ret);
    if (!h.step[0]) { /* the first step comes after all that is told of processes */
        end_set(&ret->end, RAYLET_UNREADABLE, MESSAGE_NO_ARGS);
        return;
    }
    ret->cards = raylet_read_cards(text, len);
    raylet_judge_root(&h, want, ret);
    raylet_judge_gpus(&h, want, ret);
    raylet_judge_cards(ret);
    judge_rest(&h, want, ret);
}
