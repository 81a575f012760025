/* SPDX-License-Identifier: Apache-2.0 */
/* serve_spec.c - see serve_spec.h. Two forms are read: ours, and Ray Serve's own with its one
 * application; both end in the same struct. */
#include "core/serve/serve_spec.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"
#include "core/serve/serve_engine.h"
#include "core/serve/serve_idle.h"

#define X(e, word) [SERVE_##e] = (word),
const char *const serve_engine_words[] = {SERVE_ENGINE_TABLE(X)[SERVE_ENGINES] = NULL};
#undef X
#define X(e, word) [SERVE_KEEP_##e] = (word),
const char *const serve_keep_words[] = {SERVE_KEEP_TABLE(X)[SERVE_KEEPS] = NULL};
#undef X

enum { ASKED = FIELD_ASKED | FIELD_STORED | FIELD_SHOWN, OWN = FIELD_STORED | FIELD_SHOWN };
#define OBJECT                                                                                     \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"description\":\"as it came\"}}"

/* ---- rows ---- */

#define DROW(key, ftype, ...)                                                                      \
    FIELD_AT(serve_deployment, #key, ftype, key, .flags = OWN, __VA_ARGS__)
static const struct field deployment_rows[] = {
    DROW(name, FIELD_STR),
    DROW(num_replicas, FIELD_INT),
    DROW(num_cpus, FIELD_REAL, .dflt = "-1"),
    DROW(num_gpus, FIELD_REAL, .dflt = "-1"),
    DROW(memory, FIELD_COUNT),
    DROW(max_ongoing_requests, FIELD_INT),
    DROW(max_queued_requests, FIELD_INT),
    DROW(graceful_shutdown_timeout_s, FIELD_REAL),
    DROW(health_check_period_s, FIELD_REAL),
    DROW(health_check_timeout_s, FIELD_REAL),
    DROW(user_config, FIELD_JSON, .schema = "{\"description\":\"as it came\"}"),
};
const struct field_table serve_deployment_table =
    FIELD_TABLE("ServiceDeployment", deployment_rows, serve_deployment);

#define ROW(key, ftype, ...) FIELD_AT(serve_spec, #key, ftype, key, __VA_ARGS__)
static const struct field spec_rows[] = {
    ROW(model, FIELD_STR, .flags = ASKED, .doc = "a registered model: NAME or NAME@VERSION"),
    ROW(model_path, FIELD_STR, .flags = OWN, .doc = "where it lies"),
    ROW(model_hash, FIELD_STR, .flags = OWN),
    ROW(engine,
        FIELD_ENUM,
        .dflt = "transformers",
        .names = serve_engine_words,
        .flags = ASKED,
        .doc = "engine of a model: transformers (runs without a GPU, too), vllm, sglang"),
    ROW(engine_args, FIELD_JSON, .schema = OBJECT, .flags = OWN, .doc = "arguments of the engine"),
    ROW(engine_args_unchecked,
        FIELD_JSON,
        .schema = OBJECT,
        .flags = OWN,
        .doc = "arguments that argusd does not know, passed on as they are"),
    ROW(app,
        FIELD_STR,
        .flags = ASKED,
        .doc = "an application of Ray Serve, or its builder: MODULE:NAME"),
    ROW(args, FIELD_JSON, .schema = OBJECT, .flags = OWN, .doc = "arguments of the builder"),
    ROW(code, FIELD_STR, .flags = ASKED, .doc = "the snapshot that holds the application"),
    ROW(python,
        FIELD_STR,
        .flags = ASKED,
        .doc = "interpreter of the replicas, where the engine has an environment of its own"),
    ROW(env,
        FIELD_PAIRS,
        .flags = ASKED,
        .doc = "environment; Ray shows it to everybody: no secrets"),
    ROW(deployments,
        FIELD_LIST,
        .of = &serve_deployment_table,
        .flags = OWN | FIELD_ALWAYS,
        .doc = "deployments of an application: what the spec says of them"),
    ROW(replicas,
        FIELD_INT,
        .dflt = "1",
        .min = 1,
        .max = SERVE_REPLICAS_MAX,
        .flags = ASKED,
        .doc = "each with a lease of its own"),
    ROW(min_replicas,
        FIELD_INT,
        .dflt = "1",
        .min = 1,
        .max = SERVE_REPLICAS_MAX,
        .flags = ASKED,
        .doc = "replicas that autoscaling leaves at least"),
    ROW(max_replicas,
        FIELD_INT,
        .min = 0,
        .max = SERVE_REPLICAS_MAX,
        .flags = ASKED,
        .doc = "above 0: replicas come and go with the requests under way"),
    ROW(target_requests,
        FIELD_REAL,
        .dflt = "2",
        .min = 0.1,
        .max = 1000,
        .flags = ASKED,
        .doc = "under way on one replica, that autoscaling aims at"),
    ROW(gpus,
        FIELD_REAL,
        .min = 0,
        .max = 64,
        .flags = ASKED,
        .doc = "GPUs of one replica; a part of one where the node shares its GPUs"),
    ROW(cpus,
        FIELD_REAL,
        .dflt = "1",
        .min = 0.1,
        .max = 1024,
        .flags = ASKED,
        .doc = "CPUs of one replica; an application's deployments may ask for more"),
    ROW(memory, FIELD_SIZE, .flags = ASKED, .doc = "memory of one replica"),
    ROW(pool,
        FIELD_STRV,
        .flags = ASKED | FIELD_ALWAYS,
        .doc = "pool in which it may run; any if absent"),
    ROW(priority,
        FIELD_INT,
        .dflt = "50",
        .min = 0,
        .max = 100,
        .flags = ASKED,
        .doc = "priority of its replicas in the queue"),
    ROW(max_ongoing_requests,
        FIELD_INT,
        .dflt = "8",
        .min = 1,
        .max = 10000,
        .flags = ASKED,
        .doc = "requests that a replica works on at once"),
    ROW(max_queued_requests,
        FIELD_INT,
        .dflt = "64",
        .min = 1,
        .max = 100000,
        .flags = ASKED,
        .doc = "requests that may wait for a replica; more are refused"),
    ROW(request_timeout,
        FIELD_SPAN,
        .dflt = "10m",
        .min = 1,
        .max = 86400,
        .flags = ASKED,
        .doc = "how long one request may take"),
    ROW(graceful,
        FIELD_SPAN,
        .dflt = "60s",
        .min = 1,
        .max = 3600,
        .flags = ASKED,
        .doc = "time that requests under way have when a replica goes"),
    ROW(start_timeout,
        FIELD_SPAN,
        .dflt = "15m",
        .min = 10,
        .max = 86400,
        .flags = ASKED,
        .doc = "how long a replica that has its lease may take until it answers"),
    ROW(max_body,
        FIELD_SIZE,
        .dflt = "16MiB",
        .min = 1024,
        .max = 1 << 30,
        .flags = ASKED,
        .doc = "bytes of one request"),
    ROW(check_path,
        FIELD_STR,
        .flags = ASKED,
        .doc = "path of an application that answers below 400 once a replica is ready"),
    ROW(requests_per_minute,
        FIELD_INT,
        .min = 0,
        .max = 10000000,
        .flags = ASKED,
        .doc = "requests of one user in a minute; 0: no limit"),
    ROW(tokens_per_minute,
        FIELD_INT,
        .min = 0,
        .max = 1000000000,
        .flags = ASKED,
        .doc = "tokens of one user in a minute; 0: no limit"),
    ROW(log_share,
        FIELD_REAL,
        .dflt = "0",
        .min = 0,
        .max = 1,
        .flags = ASKED,
        .doc = "share of the requests of which one line is kept, never a body"),
};
const struct field_table serve_spec_table = FIELD_TABLE("ServiceSpec", spec_rows, serve_spec);

/* What is read: the spec, and what stands beside it. Nodes are borrowed from the text. */
struct serve_read {
    struct serve_ask ask;
    char *config;
    const struct node *args, *engine_args, *engine_unchecked, *deployments;
    bool is_engine_checked;
    /* of Ray Serve's own form */
    char *import_path, *route_prefix;
    const struct node *runtime_env, *scaler, *logging;
};
#define RROW(key, ftype, member, ...)                                                              \
    FIELD_AT(serve_read, key, ftype, member, .flags = FIELD_ASKED, __VA_ARGS__)
#define SPEC_ROWS                                                                                  \
    {                                                                                              \
        .name = "", .type = FIELD_INLINE, .offset = offsetof(struct serve_read, ask.spec),         \
        .of = &serve_spec_table, .flags = FIELD_ASKED                                              \
    }
static const struct field body_rows[] = {
    RROW("name", FIELD_STR, ask.name),
    RROW("project", FIELD_STR, ask.project),
    RROW("job", FIELD_STR, ask.job),
    RROW("step", FIELD_STR, ask.step),
    RROW("keep", FIELD_ENUM, ask.keep, .dflt = "warm", .names = serve_keep_words),
    RROW("idle", FIELD_STR, ask.idle),
    SPEC_ROWS,
    RROW("args", FIELD_NODE, args),
    RROW("engine_args", FIELD_NODE, engine_args),
    RROW("engine_args_unchecked", FIELD_NODE, engine_unchecked),
    RROW("deployments", FIELD_NODE, deployments),
    RROW("config", FIELD_STR, config),
};
static const struct field_table body_table = FIELD_TABLE(NULL, body_rows, serve_read);

static const struct field ray_rows[] = {
    RROW("name", FIELD_STR, ask.name),
    RROW("import_path", FIELD_STR, import_path),
    RROW("route_prefix", FIELD_STR, route_prefix),
    RROW("args", FIELD_NODE, args),
    RROW("runtime_env", FIELD_NODE, runtime_env),
    RROW("deployments", FIELD_NODE, deployments),
    RROW("external_scaler_enabled", FIELD_NODE, scaler),
    RROW("logging_config", FIELD_NODE, logging),
};

#define AROW(key, ftype, member, ...)                                                              \
    FIELD_AT(serve_ask, key, ftype, member, .flags = FIELD_ASKED, __VA_ARGS__)
static const struct field ask_rows[] = {
    AROW("name", FIELD_STR, name, .doc = "name of the service; made of the model's if absent"),
    AROW("project", FIELD_STR, project, .doc = "project whose members may call and change it"),
    AROW("job",
         FIELD_STR,
         job,
         .doc = "instead of a model: the training of whose checkpoints one is merged and served"),
    AROW("step",
         FIELD_STR,
         step,
         .doc = "which of that job's checkpoints: best, latest (if absent), or its step"),
    AROW("keep",
         FIELD_ENUM,
         keep,
         .dflt = "warm",
         .names = serve_keep_words,
         .doc = "what becomes of the version before: warm, cold or none"),
    AROW("idle",
         FIELD_STR,
         idle,
         .doc = "it sleeps after so long without a request, as 30m; off, the default: never"),
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct serve_ask, spec),
     .of = &serve_spec_table,
     .flags = FIELD_ASKED},
};
const struct field_table serve_ask_table = FIELD_TABLE("ServiceForm", ask_rows, serve_ask);

void serve_deployments_release(struct field_list *l)
{
    struct serve_deployment *v = l->v;
    for (size_t i = 0; i < l->n; i++)
        field_release(&serve_deployment_table, &v[i]);
    free(v);
    *l = (struct field_list){0};
}

void serve_ask_release(struct serve_ask *a)
{
    free(a->name);
    free(a->project);
    free(a->job);
    free(a->step);
    free(a->idle);
    field_release(&serve_spec_table, &a->spec);
    *a = (struct serve_ask){0};
}

/* ---- JSON as it came ---- */

static void serve_problem(struct problems *ps,
                          const char *field,
                          const struct node *at,
                          const char *code,
                          const struct message_arg *args)
{
    problems_add(ps, PROBLEM_ERROR, field, at ? at->line : 0, at ? at->column : 0, code, args);
}

static void serve_take_json(const struct node *n,
                            const char *field,
                            char **into,
                            struct problems *ps)
{
    struct buf out = BUF_INIT(SERVE_TEXT_MAX);
    struct jout j = jout_begin(&out);
    struct node alone;
    if (!n)
        return;
    if (n->kind != NODE_MAP) {
        serve_problem(ps, field, n, "serve_mapping", MESSAGE_ARGS(MESSAGE_STR("key", field)));
        return;
    }
    alone = *n;
    alone.key = NULL;
    node_to_json(&alone, &j, NULL);
    free(*into);
    *into = buf_take(&out);
}

/* ---- deployments ---- */

/* What argusd decides, and the key that is meant instead. */
static const struct {
    const char *key, *instead;
} taken_keys[] = {
    {"autoscaling_config", "max_replicas"},
    {"max_replicas_per_node", "replicas"},
    {"placement_group_bundles", "gpus"},
    {"placement_group_strategy", "gpus"},
    {"placement_group_bundle_label_selector", "pool"},
    {"gang_scheduling_config", "replicas"},
    {"label_selector", "pool"},
    {"resources", "gpus"},
    {"accelerator_type", "pool"},
    {"fallback_strategy", "pool"},
};

struct serve_options {
    const struct node *cpus, *gpus;
    double num_cpus, num_gpus;
    uint64_t memory;
};
struct serve_deployment_read {
    struct serve_deployment d;
    const struct node *options, *user_config;
    double num_cpus, num_gpus;
    int64_t surge, loops;
    uint64_t memory;
};
#define NROW(key, ftype, member, ...)                                                              \
    FIELD_AT(serve_deployment_read, key, ftype, member, __VA_ARGS__)
static const struct field given_rows[] = {
    NROW("name", FIELD_STR, d.name, .flags = FIELD_REQUIRED),
    NROW("num_replicas", FIELD_INT, d.num_replicas, .min = 1, .max = SERVE_REPLICAS_MAX),
    NROW("max_ongoing_requests", FIELD_INT, d.max_ongoing_requests, .min = 1, .max = 100000),
    NROW("max_queued_requests", FIELD_INT, d.max_queued_requests, .min = 1, .max = 100000),
    NROW("graceful_shutdown_timeout_s",
         FIELD_REAL,
         d.graceful_shutdown_timeout_s,
         .min = 0.1,
         .max = 3600),
    NROW("health_check_period_s", FIELD_REAL, d.health_check_period_s, .min = 0.1, .max = 3600),
    NROW("health_check_timeout_s", FIELD_REAL, d.health_check_timeout_s, .min = 0.1, .max = 3600),
    NROW("user_config", FIELD_NODE, user_config),
    NROW("ray_actor_options", FIELD_NODE, options),
};
static const struct field option_rows[] = {
    NROW("num_cpus", FIELD_REAL, num_cpus, .dflt = "-1", .min = -1, .max = 1024),
    NROW("num_gpus", FIELD_REAL, num_gpus, .dflt = "-1", .min = -1, .max = 64),
    NROW("memory", FIELD_SIZE, memory),
};

static bool serve_refuse_taken(const struct node *map, struct problems *ps)
{
    bool any = false;
    for (size_t i = 0; i < array_len(taken_keys); i++) {
        const struct node *n = node_find(map, taken_keys[i].key);
        if (!n)
            continue;
        serve_problem(ps, taken_keys[i].key, n, "serve_key_taken",
                      MESSAGE_ARGS(MESSAGE_STR("key", taken_keys[i].key),
                                   MESSAGE_STR("instead", taken_keys[i].instead)));
        any = true;
    }
    return any;
}

static void serve_read_deployment(const struct node *n,
                                  struct serve_deployment *ret,
                                  struct problems *ps)
{
    struct serve_deployment_read r = {0};
    bool taken = serve_refuse_taken(n, ps);
    if (!taken)
        conf_read(given_rows, array_len(given_rows), n, &r, ps);
    r.num_cpus = r.num_gpus = -1;
    if (r.options && !serve_refuse_taken(r.options, ps))
        conf_read(option_rows, array_len(option_rows), r.options, &r, ps);
    serve_take_json(r.user_config, "user_config", &r.d.user_config, ps);
    r.d.num_cpus = r.num_cpus;
    r.d.num_gpus = r.num_gpus;
    r.d.memory = r.memory;
    *ret = r.d;
}

static void serve_read_deployments(const struct node *list,
                                   struct field_list *into,
                                   struct problems *ps)
{
    if (!list)
        return;
    if (list->kind != NODE_SEQ || list->n > SERVE_DEPLOYMENTS_MAX) {
        serve_problem(ps, "deployments", list, "serve_deployments",
                      MESSAGE_ARGS(MESSAGE_NUM("most", SERVE_DEPLOYMENTS_MAX)));
        return;
    }
    struct serve_deployment *v = xcalloc(list->n + 1, sizeof(*v));
    size_t n = 0;
    for (const struct node *k = list->first; k; k = k->next) {
        serve_read_deployment(k, &v[n], ps);
        for (size_t i = 0; i < n; i++)
            if (v[n].name && str_eq(v[i].name, v[n].name))
                serve_problem(ps, "deployments", k, "serve_deployment_twice",
                              MESSAGE_ARGS(MESSAGE_STR("name", v[n].name)));
        n++;
    }
    serve_deployments_release(into);
    *into = (struct field_list){.v = v, .n = n};
}

/* ---- Ray Serve's own form ---- */

static void serve_take_env(const struct node *env, struct serve_spec *s, struct problems *ps)
{
    for (const struct node *k = env ? env->first : NULL; k; k = k->next) {
        if (str_eq(k->key, "env_vars") && k->kind == NODE_MAP) {
            for (const struct node *e = k->first; e; e = e->next)
                if (e->kind == NODE_SCALAR)
                    pairs_set(&s->env, e->key, e->text);
        } else {
            serve_problem(ps, "runtime_env", k, "serve_key_taken",
                          MESSAGE_ARGS(MESSAGE_STR("key", k->key), MESSAGE_STR("instead", "code")));
        }
    }
}

/* The one application of a serve.yaml, into what the request says. */
static void serve_read_ray(const struct node *root, struct serve_read *r, struct problems *ps)
{
    const struct node *apps = node_find(root, "applications");
    const struct node *one = apps->kind == NODE_SEQ && apps->n == 1 ? apps->first : NULL;
    struct serve_read own = {0};
    for (const struct node *k = root->first; k; k = k->next)
        if (!str_eq(k->key, "applications"))
            problems_add(ps, PROBLEM_WARNING, k->key, k->key_line, k->key_column, "serve_key_whole",
                         MESSAGE_ARGS(MESSAGE_STR("key", k->key)));
    if (!one || one->kind != NODE_MAP) {
        serve_problem(ps, "applications", apps, "serve_one_app", MESSAGE_NO_ARGS);
        return;
    }
    conf_read(ray_rows, array_len(ray_rows), one, &own, ps);
    if (own.route_prefix)
        problems_add(ps, PROBLEM_WARNING, "route_prefix", one->line, one->column, "serve_key_whole",
                     MESSAGE_ARGS(MESSAGE_STR("key", "route_prefix")));
    if (own.scaler || own.logging)
        serve_problem(ps, "applications", own.scaler ? own.scaler : own.logging, "serve_key_taken",
                      MESSAGE_ARGS(MESSAGE_STR("key", own.scaler ? "external_scaler_enabled"
                                                                 : "logging_config"),
                                   MESSAGE_STR("instead", "max_replicas")));
    if (own.import_path)
        set_str(&r->ask.spec.app, own.import_path);
    if (own.ask.name && !r->ask.name)
        set_str(&r->ask.name, own.ask.name);
    serve_take_env(own.runtime_env, &r->ask.spec, ps);
    serve_take_json(own.args, "args", &r->ask.spec.args, ps);
    serve_read_deployments(own.deployments, &r->ask.spec.deployments, ps);
    free(own.import_path);
    free(own.route_prefix);
    free(own.ask.name);
}

/* ---- the whole ---- */

static bool serve_is_path(const char *app)
{
    const char *colon = strchr(app, ':');
    bool ok = colon && colon != app && colon[1] && strlen(app) <= 255;
    for (const char *c = app; ok && *c; c++)
        ok = isalnum((unsigned char)*c) || *c == '_' || *c == '.' || c == colon;
    return ok;
}

static void serve_check_model(const struct serve_spec *s, struct problems *ps)
{
    if (s->deployments.n || s->args || s->code || s->check_path)
        serve_problem(ps, "model", NULL, "serve_of_app", MESSAGE_NO_ARGS);
    if (s->engine != SERVE_TRANSFORMERS && s->gpus < 1)
        serve_problem(ps, "gpus", NULL, "serve_engine_gpus",
                      MESSAGE_ARGS(MESSAGE_STR("engine", serve_engine_words[s->engine])));
    if (s->engine == SERVE_TRANSFORMERS && (s->engine_args || s->engine_args_unchecked))
        serve_problem(ps, "engine_args", NULL, "serve_engine_no_args", MESSAGE_NO_ARGS);
}

/* A checkpoint instead of a model. What the version before has for a model is not said twice. */
static void serve_check_job(struct serve_ask *a, const struct serve_spec *base, struct problems *ps)
{
    const char *step = str_or(a->step, "latest"), *was = base ? base->model : NULL;
    if (!a->job) {
        if (a->step)
            serve_problem(ps, "step", NULL, "serve_step_alone", MESSAGE_NO_ARGS);
        return;
    }
    if (a->spec.model && !str_eq(a->spec.model, was))
        serve_problem(ps, "model", NULL, "serve_model_or_app", MESSAGE_NO_ARGS);
    a->at = str_eq(step, "best") ? SERVE_STEP_BEST : SERVE_STEP_LATEST;
    if (a->at == SERVE_STEP_LATEST && !str_eq(step, "latest") &&
        str_to_int(step, 1, INT32_MAX, &a->at, NULL) < 0)
        serve_problem(ps, "step", NULL, "no_checkpoint_text",
                      MESSAGE_ARGS(MESSAGE_STR("text", step)));
    set_str(&a->spec.model, a->job);
}

static void serve_check_what(const struct serve_spec *s, struct problems *ps)
{
    if (!s->model == !s->app)
        serve_problem(ps, s->model ? "app" : "model", NULL, "serve_model_or_app", MESSAGE_NO_ARGS);
    if (s->app && !serve_is_path(s->app))
        serve_problem(ps, "app", NULL, "serve_app_path", MESSAGE_ARGS(MESSAGE_STR("app", s->app)));
    if (s->app && (s->engine_args || s->engine_args_unchecked))
        serve_problem(ps, "engine_args", NULL, "serve_of_model", MESSAGE_NO_ARGS);
    if (s->model)
        serve_check_model(s, ps);
}

static void serve_check_env(const struct serve_spec *s, struct problems *ps)
{
    for (size_t i = 0; i < s->env.n; i++)
        if (str_is_secret_name(s->env.v[i].key))
            serve_problem(ps, "env", NULL, "serve_env_secret",
                          MESSAGE_ARGS(MESSAGE_STR("name", s->env.v[i].key)));
        else if (str_starts(s->env.v[i].key, "ARGUS_") || str_starts(s->env.v[i].key, "RAY_") ||
                 str_eq(s->env.v[i].key, "PYTHONPATH") ||
                 str_eq(s->env.v[i].key, "CUDA_VISIBLE_DEVICES"))
            serve_problem(
                ps, "env", NULL, "serve_key_taken",
                MESSAGE_ARGS(MESSAGE_STR("key", s->env.v[i].key), MESSAGE_STR("instead", "code")));
}

static void serve_check_size(const struct serve_spec *s, struct problems *ps)
{
    if (s->max_replicas && (s->max_replicas < s->min_replicas || s->replicas > s->max_replicas))
        serve_problem(ps, "max_replicas", NULL, "serve_bounds",
                      MESSAGE_ARGS(MESSAGE_NUM("least", s->min_replicas),
                                   MESSAGE_NUM("most", s->max_replicas),
                                   MESSAGE_NUM("replicas", s->replicas)));
    if (s->gpus > 1 && s->gpus != floor(s->gpus))
        serve_problem(ps, "gpus", NULL, "serve_gpus_part", MESSAGE_NO_ARGS);
    if (s->check_path && *s->check_path != '/')
        serve_problem(ps, "check_path", NULL, "serve_check_path", MESSAGE_NO_ARGS);
}

static void serve_check_engine(const struct serve_spec *s,
                               const struct node *checked,
                               const struct node *unchecked,
                               bool was_served,
                               struct problems *ps)
{
    const struct serve_engine_ask k = {.engine = serve_engine_words[s->engine],
                                       .gpus = s->gpus,
                                       .checked = s->engine_args,
                                       .unchecked = s->engine_args_unchecked,
                                       .checked_at = checked,
                                       .unchecked_at = unchecked,
                                       .was_served = was_served};
    if (!s->app) /* which takes none: that is said elsewhere */
        serve_engine_check(&k, ps);
}

static void serve_take_engine(const struct serve_read *from,
                              struct serve_spec *into,
                              struct problems *ps)
{
    serve_take_json(from->engine_args, "engine_args", &into->engine_args, ps);
    serve_take_json(from->engine_unchecked, "engine_args_unchecked", &into->engine_args_unchecked,
                    ps);
}

static void serve_read_config(struct serve_read *r, struct problems *ps)
{
    struct doc *d = NULL;
    if (doc_parse(r->config, strlen(r->config), true, &d, ps) < 0)
        return;
    const struct node *root = doc_root(d);
    if (node_find(root, "applications")) {
        serve_read_ray(root, r, ps);
    } else {
        struct serve_read inner = {.ask = r->ask};
        conf_read_table(&body_table, FIELD_ASKED, true, root, &inner, ps);
        if (inner.config)
            serve_problem(ps, "config", root, "serve_config_twice", MESSAGE_NO_ARGS);
        free(inner.config);
        r->ask = inner.ask;
        serve_take_json(inner.args, "args", &r->ask.spec.args, ps);
        serve_take_engine(&inner, &r->ask.spec, ps);
        r->is_engine_checked = inner.engine_args || inner.engine_unchecked;
        if (r->is_engine_checked) /* while their places are known */
            serve_check_engine(&r->ask.spec, inner.engine_args, inner.engine_unchecked, false, ps);
        serve_read_deployments(inner.deployments, &r->ask.spec.deployments, ps);
    }
    doc_free(d);
}

enum { NOT_SAID = -1 };
static void serve_read_whole(const struct node *root,
                             const struct serve_spec *base,
                             struct serve_read *r,
                             struct problems *ps)
{
    if (base)
        field_copy(&serve_spec_table, &r->ask.spec, base);
    else /* the defaults */
        conf_read_table(&body_table, FIELD_ASKED, false, NULL, r, ps);
    const int keep = r->ask.keep;
    r->ask.keep = NOT_SAID;
    conf_read_table(&body_table, FIELD_ASKED, true, root, r, ps);
    serve_take_json(r->args, "args", &r->ask.spec.args, ps);
    serve_take_engine(r, &r->ask.spec, ps);
    serve_read_deployments(r->deployments, &r->ask.spec.deployments, ps);
    if (r->config)
        serve_read_config(r, ps);
    const bool was_served = base && base->model && base->engine == r->ask.spec.engine &&
                            !r->engine_args && !r->engine_unchecked;
    if (!r->is_engine_checked)
        serve_check_engine(&r->ask.spec, r->engine_args, r->engine_unchecked, was_served, ps);
    set_str(&r->config, NULL);
    r->ask.says_keep = r->ask.keep != NOT_SAID;
    if (!r->ask.says_keep)
        r->ask.keep = keep;
}

static bool serve_table_has(const struct field_table *t, const char *key)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->rows[i].name, key) && t->rows[i].flags & FIELD_ASKED)
            return true;
    return false;
}

bool serve_knows_key(const char *key)
{
    if (str_eq(key, "job") || str_eq(key, "step"))
        return false;
    return serve_table_has(&body_table, key) || serve_table_has(&serve_spec_table, key);
}

int serve_ask_read(const char *text,
                   size_t len,
                   const struct serve_spec *base,
                   struct serve_ask *ret,
                   struct problems *ps)
{
    struct doc *d = NULL;
    struct serve_read r = {0};
    struct err err = {0};
    *ret = (struct serve_ask){0};
    if (doc_parse(text, len, true, &d, ps) < 0)
        return ERR_BAD_SPEC;
    if (!doc_root(d) || doc_root(d)->kind != NODE_MAP)
        serve_problem(ps, "", doc_root(d), "serve_mapping",
                      MESSAGE_ARGS(MESSAGE_STR("key", "body")));
    else
        serve_read_whole(doc_root(d), base, &r, ps);
    doc_free(d);
    *ret = r.ask;
    if (ps->errors)
        return ERR_BAD_SPEC;
    serve_check_job(ret, base, ps);
    serve_check_what(&ret->spec, ps);
    serve_check_env(&ret->spec, ps);
    serve_check_size(&ret->spec, ps);
    if (ret->idle && serve_idle_read(ret->idle, &ret->idle_for, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "idle", 0, 0, &err);
    if (ret->name && serve_name_check(ret->name, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "name", 0, 0, &err);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

/* ---- the lease ---- */

static double serve_sum(const struct serve_spec *s, bool gpus)
{
    const struct serve_deployment *v = s->deployments.v;
    double sum = 0;
    for (size_t i = 0; i < s->deployments.n; i++) {
        double each = gpus ? v[i].num_gpus : v[i].num_cpus;
        each = each < 0 ? (gpus ? 0 : 1) : each;
        sum += each * (double)(v[i].num_replicas ? v[i].num_replicas : 1);
    }
    return sum;
}

double serve_spec_cpus(const struct serve_spec *s)
{
    return fmax(s->cpus, serve_sum(s, false));
}

double serve_spec_gpus(const struct serve_spec *s)
{
    return fmax(s->gpus, serve_sum(s, true));
}

/* Over what the code says. */
static void serve_override(struct serve_deployment *d, const struct serve_deployment *by)
{
    d->num_replicas = by->num_replicas ? by->num_replicas : d->num_replicas;
    d->num_cpus = by->num_cpus >= 0 ? by->num_cpus : d->num_cpus;
    d->num_gpus = by->num_gpus >= 0 ? by->num_gpus : d->num_gpus;
    d->memory = by->memory ? by->memory : d->memory;
    d->max_ongoing_requests = by->max_ongoing_requests;
    d->max_queued_requests = by->max_queued_requests;
    d->graceful_shutdown_timeout_s = by->graceful_shutdown_timeout_s;
    d->health_check_period_s = by->health_check_period_s;
    d->health_check_timeout_s = by->health_check_timeout_s;
    set_str(&d->user_config, by->user_config);
}

/* What takes no CPU would land on the head (seen): each replica has at least a little of one. */
static void serve_least(struct serve_deployment *d)
{
    d->num_replicas = d->num_replicas > 0 ? d->num_replicas : 1;
    d->num_gpus = d->num_gpus > 0 ? d->num_gpus : 0;
    d->num_cpus = d->num_cpus < 0 ? 1 : d->num_cpus;
    if (d->num_cpus <= 0 && d->num_gpus <= 0)
        d->num_cpus = 0.1;
}

static int serve_check_found(const struct serve_spec *s,
                             const struct field_list *l,
                             struct err *err)
{
    const struct serve_deployment *v = l->v;
    double cpus = 0, gpus = 0, has_cpus = serve_spec_cpus(s), has_gpus = serve_spec_gpus(s);
    for (size_t i = 0; i < l->n; i++) {
        cpus += v[i].num_cpus * (double)v[i].num_replicas;
        gpus += v[i].num_gpus * (double)v[i].num_replicas;
    }
    if (cpus > has_cpus + 1e-6 || gpus > has_gpus + 1e-6)
        return message_refuse(err, ERR_BAD_SPEC, "serve_beyond_lease",
                              MESSAGE_ARGS(MESSAGE_NUM("cpus", cpus), MESSAGE_NUM("gpus", gpus),
                                           MESSAGE_NUM("has_cpus", has_cpus),
                                           MESSAGE_NUM("has_gpus", has_gpus)));
    return 0;
}

int serve_spec_merge(const struct serve_spec *s,
                     const json_t *found,
                     struct field_list *ret,
                     struct err *err)
{
    const struct serve_deployment *by = s->deployments.v;
    size_t n = json_array_size(found);
    struct field_list all = {.v = xcalloc(n + 1, sizeof(struct serve_deployment)), .n = n};
    struct serve_deployment *v = all.v;
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        v[i].num_cpus = v[i].num_gpus = -1;
        field_from_json(&serve_deployment_table, json_array_get(found, i), FIELD_STORED, &v[i]);
        if (!v[i].name)
            r = -1;
    }
    if (!n || n > SERVE_DEPLOYMENTS_MAX || r < 0)
        r = message_refuse(err, ERR_BAD_SPEC, "serve_deployments",
                           MESSAGE_ARGS(MESSAGE_NUM("most", SERVE_DEPLOYMENTS_MAX)));
    for (size_t k = 0; r == 0 && k < s->deployments.n; k++) {
        size_t i = 0;
        while (i < n && !str_eq(v[i].name, by[k].name))
            i++;
        if (i == n)
            r = message_refuse(
                err, ERR_BAD_SPEC, "serve_no_deployment",
                MESSAGE_ARGS(MESSAGE_STR("name", by[k].name), MESSAGE_STR("app", s->app)));
        else
            serve_override(&v[i], &by[k]);
    }
    for (size_t i = 0; i < n; i++)
        serve_least(&v[i]);
    if (r == 0)
        r = serve_check_found(s, &all, err);
    if (r < 0) {
        serve_deployments_release(&all);
        return r;
    }
    *ret = all;
    return 0;
}
