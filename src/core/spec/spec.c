/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c - the table of the JobSpec's keys, and reading by it; see spec.h.
 *
 * conf.c does types, bounds and unknown keys. What the table cannot say stands in
 * spec_check.c and spec_override.c; roots and ${…} in spec_expand.c. Two keys have
 * a second form that the table does not know, "checkpoint: none" and a shell line
 * as entrypoint: they are looked at before and after. */
#include "core/spec/spec.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/spec_table.h"

#define AT(member) offsetof(struct spec, member)

static const char *const workload_names[] = {
#define X(e, word) word,
    WORKLOAD_TABLE(X)
#undef X
        NULL};
static_assert(array_len(workload_names) == WORKLOAD_COUNT + 1, "one word per workload");

static const char *const mode_names[] = {"max", "min", NULL};
static const char *const action_names[] = {"alert", "stop", NULL};
static const char *const spread_names[] = {"lease", "cluster", NULL};
static const char *const wandb_names[] = {"online", "offline", "disabled", NULL};

enum { BIG = 1000000000 };

/* clang-format off */
const struct field spec_keys[] = {
    {.name = "workload", .type = FIELD_ENUM, .offset = AT(workload), .names = workload_names,
     .flags = FIELD_REQUIRED,
     .doc = "what runs: one of verl's programs, or any entrypoint: ray, or the name of its library "
            "(train, tune, data, rllib, serve)"},
    {.name = "submission_id", .type = FIELD_STR, .offset = AT(id),
     .doc = "the job's id, 1 to 63 of a-z 0-9 _ . -; default <workload>-<yyyymmdd>-<6 characters>"},
    {.name = "name", .type = FIELD_STR, .offset = AT(name),
     .doc = "a name for people, free text of up to 200 letters"},
    {.name = "project", .type = FIELD_STR, .offset = AT(project), .doc = "project that the job counts for"},
    {.name = "cluster", .type = FIELD_STR, .offset = AT(cluster),
     .doc = "one of the clusters of argus.yaml"},
    {.name = "pool", .type = FIELD_STRV, .offset = AT(pool),
     .doc = "a label, or several that must all match"},
    {.name = "priority", .type = FIELD_INT, .offset = AT(priority), .dflt = "50", .min = 0,
     .max = 100, .doc = "high first"},
    {.name = "preset", .type = FIELD_STR, .offset = AT(preset),
     .doc = "a JobSpec with holes to fill; the other keys fill them or go before its own"},
    {.name = "nnodes", .type = FIELD_INT, .offset = AT(nnodes), .dflt = "1", .min = 1, .max = 4096,
     .doc = "nodes of the gang"},
    {.name = "n_gpus_per_node", .type = FIELD_REAL, .offset = AT(gpus_per_node), .min = 0,
     .max = 1024, .doc = "GPUs on each node; 0.25 and 0.5 only with an entrypoint"},
    {.name = "n_cpus_per_gpu", .type = FIELD_REAL, .offset = AT(cpus_per_gpu), .min = 0,
     .max = 1024, .doc = "default: what the verl version really asks for"},
    {.name = "n_cpus_per_node", .type = FIELD_REAL, .offset = AT(cpus_per_node), .min = 0,
     .max = 1024, .doc = "CPUs that it takes of each node at least; only with an entrypoint"},
    {.name = "spread", .type = FIELD_ENUM, .offset = AT(spread), .dflt = "lease",
     .names = spread_names,
     .doc = "where tasks and actors without GPUs run: on the nodes of its lease, or on any worker "
            "of the cluster"},
    {.name = "memory_per_node", .type = FIELD_SIZE, .offset = AT(memory_per_node), .min = 0,
     .max = 1e15, .doc = "memory that it takes of each node, 200GiB; quotas and placement count it"},
    {.name = "entrypoint_num_cpus", .type = FIELD_REAL, .offset = AT(entrypoint_cpus), .flags = FIELD_NO_LIMIT, .min = 0,
     .max = 1024, .doc = "CPUs of the driver; default as in argus.yaml"},
    {.name = "entrypoint_num_gpus", .type = FIELD_REAL, .offset = AT(entrypoint_gpus), .flags = FIELD_NO_LIMIT, .min = 0,
     .max = 1024, .doc = "GPUs of the driver; they count in the gang"},
    {.name = "entrypoint_resources", .type = FIELD_PAIRS, .offset = AT(entrypoint_resources),
     .doc = "more resources of the driver; worker_node always stays"},
    {.name = "code", .type = FIELD_STR, .offset = AT(code),
     .doc = "a snapshot of verl, name@version, yours or a common one; instead of code_path"},
    {.name = "code_path", .type = FIELD_STR, .offset = AT(code_path),
     .doc = "directory that holds the package verl; default: the one of the environment"},
    {.name = "working_dir", .type = FIELD_STR, .offset = AT(working_dir),
     .doc = "working directory of the driver, also on PYTHONPATH: a snapshot (name@version) or a "
            "directory on the shared root"},
    {.name = "extra_pythonpath", .type = FIELD_STRV, .offset = AT(extra_pythonpath),
     .doc = "more directories for PYTHONPATH"},
    {.name = "model_id", .type = FIELD_STR, .offset = AT(model_id),
     .doc = "a registered model, a Hugging Face id in the cache, or a path; for merge the checkpoint"},
    {.name = "train_file", .type = FIELD_STRV, .offset = AT(train_file),
     .doc = "parquet file or registered data set, name[@version][/file], or a list of them"},
    {.name = "val_file", .type = FIELD_STRV, .offset = AT(val_file),
     .doc = "the same to validate on; for eval and generate the input"},
    {.name = "reward_fn_path", .type = FIELD_STR, .offset = AT(reward_fn_path),
     .doc = "python file or dotted module, and ':function' (default compute_score)"},
    {.name = "total_epochs", .type = FIELD_INT, .offset = AT(total_epochs), .min = 1, .max = BIG,
     .doc = "passes over the data"},
    {.name = "total_training_steps", .type = FIELD_INT, .offset = AT(total_training_steps),
     .min = 1, .max = BIG, .doc = "stop after so many steps"},
    {.name = "save_freq", .type = FIELD_INT, .offset = AT(save_freq), .min = -1, .max = BIG,
     .doc = "steps between checkpoints; default the larger of 10 and a tenth of all steps (given, or by rows, epochs and batch)"},
    {.name = "test_freq", .type = FIELD_INT, .offset = AT(test_freq), .min = -1, .max = BIG,
     .doc = "steps between validations; -1 never"},
    {.name = "samples", .type = FIELD_BOOL, .offset = AT(samples), .dflt = "true",
     .doc = "of ppo and grpo: keep what the model writes in training and validation, for argus samples"},
    {.name = "overrides", .type = FIELD_STRV, .offset = AT(overrides),
     .doc = "Hydra overrides; they win, except over what the platform owns"},
    {.name = "entrypoint", .type = FIELD_STRV, .offset = AT(entrypoint), .schema =
     "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":[\"string\",\"number\",\"boolean\"]}},"
     "{\"type\":\"string\"}]}",
     .doc = "command of ray and its libraries: an argv list, or one shell line"},
    {.name = "env", .type = FIELD_PAIRS, .offset = AT(env),
     .doc = "environment variables; short for runtime_env.env_vars"},
    {.name = "runtime_env.env_vars", .type = FIELD_PAIRS, .offset = AT(env_vars),
     .doc = "environment variables of the driver and of every worker"},
    {.name = "runtime_env.py_executable", .type = FIELD_STR, .offset = AT(py_executable),
     .doc = "python of a virtual environment on the shared root"},
    {.name = "secrets", .type = FIELD_STRV, .offset = AT(secrets),
     .doc = "names of secrets of the user or the project, set in the job's environment"},
    {.name = "timeout", .type = FIELD_SPAN, .offset = AT(timeout), .min = 1, .max = BIG,
     .doc = "longest running time"},
    {.name = "queue_timeout", .type = FIELD_SPAN, .offset = AT(queue_timeout), .min = 1,
     .max = BIG, .doc = "longest time in the queue"},
    {.name = "stop_grace", .type = FIELD_SPAN, .offset = AT(stop_grace), .dflt = "60s", .min = 0,
     .max = 86400, .doc = "time between SIGTERM and SIGKILL"},
    {.name = "resume", .type = FIELD_STR, .offset = AT(resume), .dflt = "auto",
     .doc = "auto, never, or <job id>[@step]; without a step its newest verified checkpoint"},
    {.name = "checkpoint.keep_last", .type = FIELD_INT, .offset = AT(keep_last), .dflt = "3",
     .flags = FIELD_OR_NONE, .min = 1, .max = BIG, .doc = "checkpoints kept; 'checkpoint: none' saves nothing"},
    {.name = "checkpoint.keep_best.metric", .type = FIELD_STR, .offset = AT(keep_best_metric),
     .doc = "pattern of the metric; of several that fit the mean counts"},
    {.name = "checkpoint.keep_best.mode", .type = FIELD_ENUM, .offset = AT(keep_best_mode),
     .dflt = "max", .names = mode_names, .doc = "which way is better"},
    {.name = "restart.max", .type = FIELD_INT, .offset = AT(restart_max), .min = 0, .max = 1000,
     .doc = "restarts after failures at most; above 0 the job may also be preempted"},
    {.name = "restart.on", .type = FIELD_STRV, .offset = AT(restart_on),
     .doc = "classes of failure that are restarted, and exit codes as 'exit:75'; if absent those "
            "classes that are not the job's own"},
    {.name = "restart.backoff", .type = FIELD_SPAN, .offset = AT(restart_backoff), .dflt = "60s",
     .min = 0, .max = 86400, .doc = "pause before a restart"},
    {.name = "restart.avoid_failed_nodes", .type = FIELD_BOOL,
     .offset = AT(restart_avoid_failed_nodes), .dflt = "true",
     .doc = "restart on other nodes while there are any"},
    {.name = "idle.min_gpu_util", .type = FIELD_REAL, .offset = AT(idle_min_gpu_util), .min = 0,
     .max = 100,
     .doc = "per cent: a job whose GPUs work less than this over idle.window is idle; 0 = never"},
    {.name = "idle.window", .type = FIELD_SPAN, .offset = AT(idle_window), .min = 1, .max = BIG,
     .doc = "how long its GPUs may work less than idle.min_gpu_util (30m if absent; longer, at most "
            "four times, for a job whose GPUs rest for longer again and again and then work), and "
            "how long a job that tells of no steps may print nothing"},
    {.name = "idle.warn", .type = FIELD_SPAN, .offset = AT(idle_warn), .min = 1, .max = BIG,
     .doc = "with action stop: how long it is called idle before its GPUs are taken back (15m, and "
            "not longer than idle.window, if absent); its owner may say why: 'argus justify'"},
    {.name = "idle.action", .type = FIELD_ENUM, .offset = AT(idle_action), .dflt = "alert",
     .names = action_names,
     .doc = "alert: the job is called idle or hung, with an event; stop: it is also ended, right after a "
            "checkpoint where it makes some"},
    {.name = "wandb.enabled", .type = FIELD_BOOL, .offset = AT(wandb_enabled), .dflt = "false",
     .doc = "also log to Weights & Biases"},
    {.name = "wandb.project", .type = FIELD_STR, .offset = AT(wandb_project),
     .doc = "project in W&B; default: the job's"},
    {.name = "wandb.run", .type = FIELD_STR, .offset = AT(wandb_run), .doc = "name of the run in W&B; default: the job's id"},
    {.name = "wandb.mode", .type = FIELD_ENUM, .offset = AT(wandb_mode), .dflt = "offline",
     .names = wandb_names, .doc = "offline: to files, which are sent after the end; online: while it runs, where the "
            "server answers before the start"},
    {.name = "tracking.backend", .type = FIELD_STR, .offset = AT(tracking_backend),
     .doc = "mlflow, tensorboard or swanlab"},
    {.name = "tracking.uri", .type = FIELD_STR, .offset = AT(tracking_uri),
     .doc = "server of mlflow, directory of the others; default: as argus.yaml's trackers, and below "
            "the job's directory"},
    {.name = "tracking.project", .type = FIELD_STR, .offset = AT(tracking_project),
     .doc = "experiment of mlflow, project of the others; default: the job's"},
    {.name = "tracking.run", .type = FIELD_STR, .offset = AT(tracking_run),
     .doc = "name of the run; default: the id"},
    {.name = "hold_on_failure", .type = FIELD_SPAN, .offset = AT(hold_on_failure), .min = 0,
     .max = 604800, .doc = "how long a job that failed keeps its slots, so that people can look: argus release ends it"},
    {.name = "after", .type = FIELD_STRV, .offset = AT(after),
     .doc = "jobs that must have SUCCEEDED before: refused, a pipeline waits for its steps"},
    {.name = "notify", .type = FIELD_STRV, .offset = AT(notify),
     .doc = "receivers, and of what: ops, ops:succeeded,failed"},
    {.name = "alerts", .type = FIELD_STRV, .offset = AT(alerts),
     .doc = "of its metrics: \"actor/entropy < 0.1 for 10 steps\", \"reward falls 20 % from best\""},
    {.name = "eval_on_save", .type = FIELD_JSON, .offset = AT(eval_on_save),
     .schema = "{\"type\":\"object\",\"additionalProperties\":true}",
     .doc = "a JobSpec that judges each checkpoint once it is saved, with ${CHECKPOINT}, ${STEP} and "
            "${JOB} in its place; without a workload this job itself (ppo, grpo), to validate alone; "
            "what it tells stands with the checkpoint"},
};
/* clang-format on */
const size_t spec_keys_n = array_len(spec_keys);
const struct field_table spec_table = {"JobSpec", spec_keys, array_len(spec_keys),
                                       sizeof(struct spec), FIELD_OMIT};

/* ---- reading ---- */

/* An empty text is a key left blank in a form: as if it were not there. */
static void drop_blank_texts(struct spec *s)
{
    for (size_t i = 0; i < spec_keys_n; i++) {
        if (spec_keys[i].type != FIELD_STR)
            continue;
        char **text = (char **)(void *)((char *)s + spec_keys[i].offset);
        if (*text && !**text)
            set_str(text, NULL);
    }
    if (!s->resume)
        set_str(&s->resume, "auto");
}

/* A copy of root's list of children without the one called name; *ret_v is to be freed. */
static struct node map_without(const struct node *root, const char *name, struct node **ret_v)
{
    struct node copy = *root, *v = xcalloc(root->n + 1, sizeof(*v));
    size_t n = 0;
    for (const struct node *c = root->first; c; c = c->next) {
        if (!strcmp(c->key, name))
            continue;
        v[n] = *c;
        v[n].next = NULL;
        if (n > 0)
            v[n - 1].next = &v[n];
        n++;
    }
    copy.n = n;
    copy.first = n > 0 ? v : NULL;
    *ret_v = v;
    return copy;
}

static void spec_merge_env(struct spec *s, const struct spec_check *c)
{
    for (size_t i = 0; i < s->env_vars.n; i++) {
        const struct pair *p = &s->env_vars.v[i];
        if (pairs_find(&s->env, p->key))
            spec_error(c, "env", "env_twice", MESSAGE_ARGS(MESSAGE_STR("name", p->key)));
        else
            pairs_set(&s->env, p->key, p->value);
    }
    pairs_release(&s->env_vars);
}

static bool is_none(const struct node *n)
{
    return n && n->kind == NODE_SCALAR && !strcmp(n->text, "none"); /* in JSON it has quotes */
}

static void spec_read_rows(const struct node *root, struct spec *ret, struct problems *ps)
{
    _cleanup_(freep) struct node *kept = NULL;
    struct node copy = {0};
    const struct node *from = root;
    if (root && is_none(node_find(root, "checkpoint"))) {
        copy = map_without(root, "checkpoint", &kept);
        from = &copy;
        ret->checkpoint_none = true;
    }
    conf_read(spec_keys, spec_keys_n, from, ret, ps);
}

void spec_check_rows(const struct node *root, struct problems *ps)
{
    struct spec read = {0};
    spec_read_rows(root, &read, ps);
    spec_release(&read);
}

int spec_read(const struct node *root,
              const struct spec_limits *lim,
              struct spec *ret,
              struct problems *ps)
{
    size_t errors = ps->errors;
    struct spec_check c = {.root = root, .ps = ps};
    *ret = (struct spec){0};
    spec_read_rows(root, ret, ps);
    c.n_read = ps->n;
    if (root && root->kind != NODE_MAP)
        return ERR_BAD_SPEC;
    drop_blank_texts(ret);
    const struct node *entry = node_find(root, "entrypoint");
    ret->entrypoint_is_shell = entry && entry->kind == NODE_SCALAR && ret->entrypoint.n == 1;
    if (!spec_is_given(root, "entrypoint_num_cpus"))
        ret->entrypoint_cpus = -1;
    if (!spec_is_given(root, "entrypoint_num_gpus"))
        ret->entrypoint_gpus = -1;
    spec_merge_env(ret, &c);
    spec_check_all(ret, lim, &c);
    return ps->errors > errors ? ERR_BAD_SPEC : 0;
}

void spec_release(struct spec *s)
{
    conf_release(spec_keys, spec_keys_n, s);
    freep(&s->resume_job);
    freep(&s->reward_file);
    freep(&s->reward_module);
    freep(&s->reward_function);
    *s = (struct spec){0};
}

/* What is derived from the rows stands beside them. */
void spec_copy(struct spec *dst, const struct spec *src)
{
    field_copy(&spec_table, dst, src);
    dst->entrypoint_is_shell = src->entrypoint_is_shell;
    dst->checkpoint_none = src->checkpoint_none;
    dst->resume_mode = src->resume_mode;
    dst->resume_step = src->resume_step;
    dst->resume_job = xstrdup(src->resume_job);
    dst->reward_file = xstrdup(src->reward_file);
    dst->reward_module = xstrdup(src->reward_module);
    dst->reward_function = xstrdup(src->reward_function);
}

char *spec_resume_path(const struct spec *s, const char *shared_root, int64_t step)
{
    return xasprintf("%s/jobs/%s/checkpoints/global_step_%" PRId64, shared_root, s->resume_job,
                     step);
}

void spec_describe(struct buf *out)
{
    field_describe(spec_keys, spec_keys_n, out);
}

/* ---- ids and words ---- */

static bool is_id_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool has_attempt_suffix(const char *id)
{
    size_t n = strlen(id), digits = 0;
    while (digits < n && isdigit((unsigned char)id[n - 1 - digits]))
        digits++;
    return digits > 0 && n >= digits + 2 && !strncmp(id + n - digits - 2, "-a", 2);
}

int spec_check_id(const char *id, struct err *err)
{
    size_t n = strlen(id);
    bool good = n >= 1 && n <= SPEC_ID_MAX && is_id_byte(id[0]);
    for (size_t i = 1; good && i < n; i++)
        good = is_id_byte(id[i]) || strchr("_.-", id[i]);
    if (!good)
        return message_refuse(err, ERR_BAD_SPEC, "bad_job_id", MESSAGE_ARGS(MESSAGE_STR("id", id)));
    if (has_attempt_suffix(id) || str_ends(id, "-trial"))
        return message_refuse(err, ERR_BAD_SPEC, "job_id_reserved",
                              MESSAGE_ARGS(MESSAGE_STR("id", id)));
    return 0;
}

const char *spec_generate_id(enum workload w,
                             usec_t now,
                             const unsigned char bytes[static 6],
                             char ret[static SPEC_ID_BUF])
{
    /* 32 characters, without 0 o 1 l: ids are read aloud and typed. The last one is a letter:
     * "-a23456" would read as the suffix of an attempt. */
    static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";
    static_assert(sizeof(letters) == 33, "a byte's low 5 bits choose evenly");
    char day[CLOCK_TEXT_MAX], tail[7] = "";
    (void)clock_to_string(now > 0 ? now : 1, day); /* 2026-11-21T… */
    for (size_t i = 0; i < 6; i++)
        tail[i] = letters[bytes[i] & (i < 5 ? 31 : 15)];
    text_printf_to(ret, SPEC_ID_BUF, "%s-%.4s%.2s%.2s-%s", workload_to_string(w), day, day + 5,
                   day + 8, tail);
    return ret;
}

const char *workload_to_string(enum workload w)
{
    assert((unsigned)w < WORKLOAD_COUNT);
    return workload_names[w];
}

bool workload_is_verl(enum workload w)
{
    return w <= WORKLOAD_MERGE;
}

bool workload_trains(enum workload w)
{
    return w <= WORKLOAD_SFT;
}

bool workload_word_trains(const char *word)
{
    for (unsigned w = 0; workload_trains((enum workload)w); w++)
        if (!strcmp(word, workload_names[w]))
            return true;
    return false;
}

bool workload_has_entrypoint(enum workload w)
{
    return w >= WORKLOAD_RAY && w <= WORKLOAD_NOTEBOOK;
}

const char *spec_wandb_mode_name(int mode)
{
    return wandb_names[mode];
}
