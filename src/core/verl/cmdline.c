/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline.c - command line and environment of one attempt; see cmdline.h.
 *
 * Here: what all workloads share, the environment, and entrypoints. The keys of
 * verl's programs stand in cmdline_verl.c, the text for people in cmdline_text.c. */
#include "core/verl/cmdline.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/verl/cmdline_build.h"
#include "core/verl/hydra.h"

enum {
    PATH_LIST_MAX = 64 * 1024,
    SHELL_LINE_MAX = 128 * 1024,
    STOP_MARGIN_SECONDS = 15,
    TQ_THREADS = 8
};

/* ---- pieces ---- */

void build_fail(struct build *b, const char *code, const struct message_arg *args)
{
    if (b->r == 0)
        b->r = message_refuse(b->err, ERR_BAD_SPEC, code, args);
}

static bool is_overridden(const struct build *b, const char *key)
{
    return spec_override_find(b->s, key + strspn(key, "+")) != NULL;
}

void build_text(struct build *b, const char *key, const char *value)
{
    if (b->r == 0 && !is_overridden(b, key) && hydra_add(&b->out->argv, key, value, b->err) < 0)
        b->r = ERR_BAD_SPEC;
}

void build_plain(struct build *b, const char *key, const char *fmt, ...)
{
    char text[128];
    va_list ap;
    if (b->r < 0 || is_overridden(b, key))
        return;
    va_start(ap, fmt);
    text_vprintf(text, fmt, ap);
    va_end(ap);
    strv_addf(&b->out->argv, "%s=%s", key, text);
}

void build_files(struct build *b, const char *key, const struct strv *files)
{
    if (files->n == 1)
        build_text(b, key, files->v[0]);
    else if (files->n > 1 && b->r == 0 && !is_overridden(b, key) &&
             hydra_add_list(&b->out->argv, key, files, b->err) < 0)
        b->r = ERR_BAD_SPEC;
}

void build_arg(struct build *b, const char *arg)
{
    if (b->r == 0)
        strv_add(&b->out->argv, arg);
}

void build_env_default(struct build *b, const char *name, const char *value)
{
    if (!pairs_find(&b->out->env, name))
        pairs_set(&b->out->env, name, value);
}

int64_t build_number(const struct build *b, const char *key, int64_t dflt)
{
    const char *text = spec_override_find(b->s, key);
    int64_t v = dflt;
    if (!text || str_to_int(text, 1, INT64_MAX, &v, NULL) < 0)
        return dflt;
    return v;
}

int64_t build_world(const struct build *b)
{
    int64_t n = b->s->nnodes * (int64_t)b->s->gpus_per_node;
    return n > 0 ? n : 1;
}

const char *build_python(const struct build *b)
{
    return str_or(b->s->py_executable, "python3");
}

void build_overrides(struct build *b)
{
    for (size_t i = 0; i < b->s->overrides.n; i++)
        if (b->s->overrides.v[i][0] != '-')
            build_arg(b, b->s->overrides.v[i]);
}

/* ---- environment ---- */

static void add_path(struct build *b, struct buf *path, const char *dir)
{
    if (!dir)
        return;
    if (strchr(dir, ':'))
        build_fail(b, "path_has_colon", MESSAGE_ARGS(MESSAGE_STR("dir", dir)));
    (void)buf_addf(path, "%s%s", path->len > 0 ? ":" : "", dir); /* failed is looked at once */
}

static void add_pythonpath(struct build *b)
{
    struct buf path = BUF_INIT(PATH_LIST_MAX);
    const struct cmdline_in *in = b->in;
    add_path(b, &path, in->hook_dir);
    bool by_name = b->v && b->v->eval_imports_custom_module && b->s->workload == WORKLOAD_EVAL;
    if (b->out->links.n > 0 || (b->out->files.n > 0 && by_name)) {
        _cleanup_(freep) char *dir = xasprintf("%s/reward", in->attempt_dir);
        add_path(b, &path, dir);
    }
    add_path(b, &path, b->s->code_path);
    add_path(b, &path, b->s->working_dir);
    add_path(b, &path, in->user_code_path);
    for (size_t i = 0; i < b->s->extra_pythonpath.n; i++)
        add_path(b, &path, b->s->extra_pythonpath.v[i]);
    (void)buf_adds(&path, ":${PYTHONPATH}"); /* as above */
    if (path.failed)
        build_fail(b, "pythonpath_too_long", MESSAGE_NO_ARGS);
    else if (path.data[0] != ':')
        pairs_set(&b->out->env, "PYTHONPATH", path.data);
    buf_release(&path);
}

static void cmdline_merge_env(struct build *b)
{
    const struct pairs *both[] = {b->in->env, &b->s->env};
    for (size_t i = 0; i < array_len(both); i++)
        for (size_t j = 0; both[i] && j < both[i]->n; j++)
            pairs_set(&b->out->env, both[i]->v[j].key, both[i]->v[j].value);
}

/* Variables that verl hands to ray.init() itself; Ray refuses a key that the job has too. */
static bool has_variable_of_verl(const struct pairs *env)
{
    static const char *const own[] = {
        "TOKENIZERS_PARALLELISM",
        "NCCL_DEBUG",
        "VLLM_LOGGING_LEVEL",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
        "VLLM_USE_V1",
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "NCCL_CUMEM_ENABLE",
        "VERL_FULL_DETERMINISM",
        "VLLM_BATCH_INVARIANT",
        "VERL_RL_INSIGHT_ENABLE",
    };
    for (size_t i = 0; i < array_len(own); i++)
        if (pairs_find(env, own[i]))
            return true;
    return false;
}

static void add_verl_env(struct build *b)
{
    build_env_default(b, "HYDRA_FULL_ERROR", "1");
    if (b->v->has_transfer_queue && b->in->node_cpus > 0 && b->in->node_cpus < TQ_THREADS)
        build_env_default(b, "TQ_NUM_THREADS", "1"); /* else it warns 200 times a step */
    if (b->v->has_file_logger && workload_trains((enum workload)b->s->workload)) {
        _cleanup_(freep) char *path = xasprintf("%s/metrics.jsonl", b->in->attempt_dir);
        pairs_set(&b->out->env, "VERL_FILE_LOGGER_PATH", path);
    }
    if (has_variable_of_verl(&b->out->env))
        build_env_default(b, "RAY_OVERRIDE_JOB_RUNTIME_ENV", "1");
}

/* The decisions of the caller, where it made one. */
static void find_trackers(struct build *b)
{
    enum tracker_kind kinds[2] = {0};
    const size_t n = tracker_of_spec(b->s, kinds);
    b->n_trackers = n;
    for (size_t i = 0; i < n && i < array_len(b->trackers); i++) {
        b->trackers[i] =
            (struct tracker){.kind = kinds[i], .mode = tracker_mode_of_spec(b->s, kinds[i])};
        for (size_t k = 0; k < b->in->n_trackers; k++)
            if (b->in->trackers[k].kind == kinds[i])
                b->trackers[i] = b->in->trackers[k];
    }
}

/* ARGUS_TRACKERS has the hook keep verl's loggers out of the training's way. */
static void add_tracking_env(struct build *b)
{
    const struct tracker_place at = {.job = b->in->id,
                                     .job_dir = b->in->job_dir,
                                     .attempt_dir = b->in->attempt_dir,
                                     .attempt = b->in->attempt};
    for (size_t i = 0; i < b->n_trackers; i++)
        tracker_env(b->s, &b->trackers[i], &at, &b->out->env);
    if (b->n_trackers || spec_override_find(b->s, "trainer.logger"))
        pairs_set(&b->out->env, "ARGUS_TRACKERS", "guarded");
}

static void add_env(struct build *b)
{
    char text[32];
    cmdline_merge_env(b);
    build_env_default(b, "RAY_DEDUP_LOGS", "0");
    build_env_default(b, "RAY_COLOR_PREFIX", "0");
    build_env_default(b, "PYTHONUNBUFFERED", "1");
    if (b->v)
        add_verl_env(b);
    add_tracking_env(b);
    add_pythonpath(b);
    /* Ray kills a stopped driver after 3 s unless told; the shepherd's own deadline comes first. */
    text_printf(text, "%llu",
                (unsigned long long)(b->s->stop_grace / USEC_SEC + STOP_MARGIN_SECONDS));
    pairs_set(&b->out->env, "RAY_JOB_STOP_WAIT_TIME_S", text);
    pairs_set(&b->out->env, "ARGUS_JOB_ID", b->in->id);
    text_printf(text, "%d", b->in->attempt);
    pairs_set(&b->out->env, "ARGUS_ATTEMPT", text);
    pairs_set(&b->out->env, "ARGUS_ATTEMPT_DIR", b->in->attempt_dir);
}

/* ---- entrypoints ---- */

/* The line as given; with a py_executable its directory comes first in PATH, so that the
 * line's "python3" is that one. */
static void add_shell_line(struct build *b)
{
    const char *line = b->s->entrypoint.v[0], *python = b->s->py_executable;
    struct buf text = BUF_INIT(SHELL_LINE_MAX);
    build_arg(b, "/bin/sh");
    build_arg(b, "-c");
    if (python) {
        _cleanup_(freep) char *dir = xstrndup(python, (size_t)(strrchr(python, '/') - python));
        (void)buf_adds(&text, "PATH="); /* failed is looked at once */
        (void)str_shell_quote(&text, dir);
        (void)buf_adds(&text, ":$PATH; export PATH; ");
    }
    (void)buf_adds(&text, line);
    if (text.failed)
        build_fail(b, "entrypoint_too_long", MESSAGE_NO_ARGS);
    build_arg(b, buf_str(&text));
    buf_release(&text);
}

static void build_entrypoint(struct build *b)
{
    const struct strv *e = &b->s->entrypoint;
    if (b->s->entrypoint_is_shell) {
        add_shell_line(b);
        return;
    }
    for (size_t i = 0; i < e->n; i++) {
        bool python = i == 0 && (!strcmp(e->v[0], "python3") || !strcmp(e->v[0], "python"));
        build_arg(b, python && b->s->py_executable ? b->s->py_executable : e->v[i]);
    }
}

/* ---- all ---- */

static int refuse_files(const struct spec *s, const char *verl, struct err *err)
{
    return message_refuse(
        err, ERR_BAD_SPEC, "one_val_file",
        MESSAGE_ARGS(MESSAGE_STR("workload", workload_to_string((enum workload)s->workload)),
                     MESSAGE_STR("verl", verl), MESSAGE_NUM("files", (double)s->val_file.n)));
}

int cmdline_check_version(const struct spec *s,
                          const struct verl_version *v,
                          const char **ret_field,
                          struct err *err)
{
    *ret_field = "val_file";
    if (s->workload == WORKLOAD_EVAL && s->val_file.n > 1)
        return refuse_files(s, v->name, err);
    if (s->workload == WORKLOAD_GENERATE && !v->generate_is_server && s->val_file.n > 1)
        return refuse_files(s, v->name, err);
    if (s->workload != WORKLOAD_SFT)
        return 0;
    if (!v->sft_is_engine && s->val_file.n == 0)
        return message_refuse(err, ERR_BAD_SPEC, "sft_needs_val_file",
                              MESSAGE_ARGS(MESSAGE_STR("verl", v->name)));
    *ret_field = "nnodes";
    if (!v->sft_ray && s->nnodes > 1)
        return message_refuse(
            err, ERR_BAD_SPEC, "sft_on_one_node",
            MESSAGE_ARGS(MESSAGE_STR("verl", v->name), MESSAGE_NUM("nnodes", (double)s->nnodes)));
    return 0;
}

int cmdline_build(const struct cmdline_in *in,
                  struct cmdline *ret,
                  struct problems *ps,
                  struct err *err)
{
    static void (*const builders[])(struct build *) = {
        [WORKLOAD_PPO] = build_ppo,
        [WORKLOAD_GRPO] = build_ppo,
        [WORKLOAD_SFT] = build_sft,
        [WORKLOAD_EVAL] = build_eval,
        [WORKLOAD_MERGE] = build_merge,
        [WORKLOAD_GENERATE] = build_generate,
        [WORKLOAD_RAY] = build_entrypoint,
        [WORKLOAD_TRAIN] = build_entrypoint,
        [WORKLOAD_TUNE] = build_entrypoint,
        [WORKLOAD_DATA] = build_entrypoint,
        [WORKLOAD_RLLIB] = build_entrypoint,
        [WORKLOAD_SERVE] = build_entrypoint,
        [WORKLOAD_NOTEBOOK] = build_entrypoint,
    };
    struct build b = {.in = in, .s = in->spec, .v = in->version, .out = ret, .ps = ps, .err = err};
    *ret = (struct cmdline){0};
    static_assert(array_len(builders) == WORKLOAD_COUNT, "each workload has a command line");
    if (workload_has_entrypoint((enum workload)b.s->workload))
        b.v = NULL;
    const char *field;
    if (b.v)
        b.r = cmdline_check_version(b.s, b.v, &field, err);
    set_str(&ret->cwd, b.s->working_dir);
    find_trackers(&b);
    builders[b.s->workload](&b);
    add_env(&b);
    return b.r;
}

void cmdline_release(struct cmdline *c)
{
    strv_release(&c->argv);
    pairs_release(&c->env);
    pairs_release(&c->links);
    pairs_release(&c->files);
    strv_release(&c->dirs);
    freep(&c->cwd);
    *c = (struct cmdline){0};
}
