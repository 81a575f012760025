/* SPDX-License-Identifier: Apache-2.0 */
/* serve_doc.c - see serve_doc.h. Keys are those of Ray Serve 2.60's schema. */
#include "core/serve/serve_doc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

enum { DOC_MAX = 4 << 20, KEEP_ALIVE_S = 90 };

static double doc_seconds(usec_t span)
{
    return (double)span / USEC_SEC;
}

/* ---- a deployment ---- */

static void doc_put_selector(struct jout *j, const struct serve_app *a, const char *key)
{
    jout_open(j, key, '{');
    jout_str(j, a->label, a->node);
    jout_close(j, '}');
}

/* A replica takes its part of the share that its lease has on the GPUs, so that Ray itself
 * counts. */
static void doc_put_options(struct jout *j,
                            const struct serve_app *a,
                            double cpus,
                            double gpus,
                            uint64_t memory)
{
    double leased = serve_spec_gpus(a->spec);
    jout_open(j, "ray_actor_options", '{');
    jout_real(j, "num_cpus", cpus);
    jout_real(j, "num_gpus", gpus);
    if (memory)
        jout_int(j, "memory", (int64_t)memory);
    if (a->share && gpus > 0 && leased > 0) {
        jout_open(j, "resources", '{');
        jout_real(j, a->share, gpus / leased);
        jout_close(j, '}');
    }
    doc_put_selector(j, a, "label_selector");
    jout_close(j, '}');
}

static void doc_put_limits(struct jout *j, const struct serve_spec *s)
{
    jout_int(j, "max_ongoing_requests", s->max_ongoing_requests);
    jout_int(j, "max_queued_requests", s->max_queued_requests);
    jout_real(j, "graceful_shutdown_timeout_s", doc_seconds(s->graceful));
    jout_int(j, "max_surge_percent",
             0); /* an application never changes: the next version is another */
}

static void doc_put_engine(struct jout *j, const struct serve_app *a)
{
    jout_open(j, "deployments", '[');
    jout_open(j, NULL, '{');
    jout_str(j, "name", "Engine");
    jout_int(j, "num_replicas", 1);
    doc_put_limits(j, a->spec);
    jout_real(j, "health_check_period_s", 5);
    jout_real(j, "health_check_timeout_s", 20);
    doc_put_options(j, a, a->spec->cpus, a->spec->gpus, a->spec->memory);
    jout_close(j, '}');
    jout_close(j, ']');
}

static void doc_put_real(struct jout *j, const char *key, double value)
{
    if (value > 0)
        jout_real(j, key, value);
}

static void doc_put_deployment(struct jout *j,
                               const struct serve_app *a,
                               const struct serve_deployment *d)
{
    const struct serve_spec *s = a->spec;
    jout_open(j, NULL, '{');
    jout_str(j, "name", d->name);
    jout_int(j, "num_replicas", d->num_replicas);
    jout_int(j, "max_ongoing_requests",
             d->max_ongoing_requests ? d->max_ongoing_requests : s->max_ongoing_requests);
    jout_int(j, "max_queued_requests",
             d->max_queued_requests ? d->max_queued_requests : s->max_queued_requests);
    jout_real(j, "graceful_shutdown_timeout_s",
              d->graceful_shutdown_timeout_s > 0 ? d->graceful_shutdown_timeout_s
                                                 : doc_seconds(s->graceful));
    jout_int(j, "max_surge_percent", 0);
    doc_put_real(j, "health_check_period_s", d->health_check_period_s);
    doc_put_real(j, "health_check_timeout_s", d->health_check_timeout_s);
    if (d->user_config)
        jout_raw(j, "user_config", d->user_config);
    doc_put_options(j, a, d->num_cpus, d->num_gpus, d->memory);
    jout_close(j, '}');
}

static void doc_put_deployments(struct jout *j, const struct serve_app *a)
{
    const struct serve_deployment *v = a->deployments->v;
    jout_open(j, "deployments", '[');
    for (size_t i = 0; i < a->deployments->n; i++)
        doc_put_deployment(j, a, &v[i]);
    jout_close(j, ']');
}

/* ---- vLLM and SGLang, by Ray Serve's own module ---- */

#define SGLANG_SERVER "ray.llm._internal.serve.engines.sglang:SGLangServer"

/* Arguments of this text, but for one that was put already, and for those without a value, which
 * the engine has from itself. */
static void doc_put_args_but(struct jout *j, const char *text, const char *but)
{
    _cleanup_(json_unrefp) json_t *args = text ? json_loads(text, 0, NULL) : NULL;
    const char *key;
    json_t *value;
    json_object_foreach (args, key, value) {
        bool is_put = str_eq(key, but) || json_is_null(value);
        char *said = is_put ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        if (said)
            jout_raw(j, key, said);
        free(said);
    }
}

/* SGLang's server hands them to its engine as they are, and looks nowhere else for the model. */
static void doc_put_engine_kwargs(struct jout *j, const struct serve_app *a)
{
    const struct serve_spec *s = a->spec;
    bool is_sglang = s->engine == SERVE_SGLANG;
    const char *parallel = is_sglang ? "tp_size" : "tensor_parallel_size";
    jout_open(j, "engine_kwargs", '{');
    if (is_sglang)
        jout_str(j, "model_path", s->model_path);
    jout_int(j, parallel, (int64_t)s->gpus);
    doc_put_args_but(j, s->engine_args, parallel);
    doc_put_args_but(j, s->engine_args_unchecked, parallel);
    jout_close(j, '}');
}

/* One bundle for each of vLLM's workers. SGLang's server makes one of all its GPUs, on one machine,
 * and of the CPUs of its actor. */
static void doc_put_bundles(struct jout *j, const struct serve_app *a)
{
    if (a->spec->engine == SERVE_SGLANG)
        return;
    jout_open(j, "placement_group_config", '{');
    jout_open(j, "bundle_per_worker", '{');
    jout_real(j, "CPU", a->spec->cpus / fmax(a->spec->gpus, 1));
    jout_int(j, "GPU", 1);
    jout_close(j, '}');
    jout_str(j, "strategy", "STRICT_PACK");
    jout_close(j, '}');
}

static void doc_put_llm_args(struct jout *j, const struct serve_app *a)
{
    const struct serve_spec *s = a->spec;
    jout_open(j, "args", '{');
    jout_open(j, "llm_configs", '[');
    jout_open(j, NULL, '{');
    jout_open(j, "model_loading_config", '{');
    jout_str(j, "model_id", a->service);
    jout_str(j, "model_source", s->model_path);
    jout_close(j, '}');
    /* The module knows one word for an engine, vLLM's; SGLang is another class of server. */
    if (s->engine == SERVE_SGLANG)
        jout_str(j, "server_cls", SGLANG_SERVER);
    else
        jout_str(j, "llm_engine", "vLLM");
    doc_put_engine_kwargs(j, a);
    doc_put_bundles(j, a);
    jout_open(j, "deployment_config", '{');
    jout_int(j, "num_replicas", 1);
    doc_put_limits(j, s);
    jout_open(j, "ray_actor_options", '{');
    if (s->engine == SERVE_SGLANG)
        jout_real(j, "num_cpus", s->cpus);
    doc_put_selector(j, a, "label_selector");
    jout_close(j, '}');
    jout_close(j, '}');
    jout_close(j, '}');
    jout_close(j, ']');
    jout_close(j, '}');
}

/* The server and the ingress in front of it: both on the leased machine. */
static void doc_put_llm_deployments(struct jout *j, const struct serve_app *a)
{
    bool is_sglang = a->spec->engine == SERVE_SGLANG;
    _cleanup_(freep) char *server =
        xasprintf("%s:%s", is_sglang ? "SGLangServer" : "LLMServer", a->service);
    int bundles = is_sglang ? 1 : (int)a->spec->gpus;
    jout_open(j, "deployments", '[');
    jout_open(j, NULL, '{');
    jout_str(j, "name", server);
    jout_open(j, "ray_actor_options", '{');
    if (is_sglang)
        jout_real(j, "num_cpus", a->spec->cpus);
    doc_put_selector(j, a, "label_selector");
    jout_close(j, '}');
    jout_open(j, "placement_group_bundle_label_selector", '[');
    for (int i = 0; i < bundles; i++)
        doc_put_selector(j, a, NULL);
    jout_close(j, ']');
    jout_close(j, '}');
    jout_open(j, NULL, '{');
    jout_str(j, "name", "OpenAiIngress");
    jout_int(j, "num_replicas", 1);
    jout_open(j, "ray_actor_options", '{');
    jout_real(j, "num_cpus", 0.5);
    doc_put_selector(j, a, "label_selector");
    jout_close(j, '}');
    jout_close(j, '}');
    jout_close(j, ']');
}

/* ---- an application ---- */

static void doc_put_env(struct jout *j, const struct serve_app *a)
{
    const struct serve_spec *s = a->spec;
    char threads[24];
    text_printf(threads, "%d", (int)fmax(1, s->cpus));
    jout_open(j, "runtime_env", '{');
    if (s->python)
        jout_str(j, "py_executable", s->python);
    if (a->code) {
        _cleanup_(freep) char *dir = xasprintf("local://%s", a->code);
        jout_str(j, "working_dir", dir);
    }
    jout_open(j, "env_vars", '{');
    if (s->model && s->engine == SERVE_TRANSFORMERS)
        jout_str(j, "PYTHONPATH", a->lib);
    if (!pairs_find(&s->env, "OMP_NUM_THREADS"))
        jout_str(j, "OMP_NUM_THREADS", threads);
    for (size_t i = 0; i < s->env.n; i++)
        jout_str(j, s->env.v[i].key, s->env.v[i].value);
    jout_close(j, '}');
    jout_close(j, '}');
}

static void doc_put_transformers_args(struct jout *j, const struct serve_app *a)
{
    jout_open(j, "args", '{');
    jout_str(j, "model", a->spec->model_path);
    jout_str(j, "name", a->service);
    jout_int(j, "threads", (int64_t)fmax(1, a->spec->cpus));
    jout_close(j, '}');
}

static void doc_put_what(struct jout *j, const struct serve_app *a)
{
    const struct serve_spec *s = a->spec;
    if (s->app) {
        jout_str(j, "import_path", s->app);
        if (s->args)
            jout_raw(j, "args", s->args);
        doc_put_deployments(j, a);
    } else if (s->engine == SERVE_TRANSFORMERS) {
        jout_str(j, "import_path", "argus_engine:build");
        doc_put_transformers_args(j, a);
        doc_put_engine(j, a);
    } else {
        jout_str(j, "import_path", "ray.serve.llm:build_openai_app");
        doc_put_llm_args(j, a);
        doc_put_llm_deployments(j, a);
    }
}

char *serve_doc_app(const struct serve_app *a)
{
    char route[SERVE_APP_MAX + 8];
    struct buf out = BUF_INIT(SERVE_TEXT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "name", a->name);
    jout_str(&j, "route_prefix", serve_app_route(a->name, route));
    doc_put_what(&j, a);
    doc_put_env(&j, a);
    jout_close(&j, '}');
    if (out.failed) {
        buf_release(&out);
        return NULL;
    }
    return buf_take(&out);
}

void serve_doc_write(const struct serve_doc *d, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "proxy_location", "EveryNode");
    jout_open(&j, "http_options", '{');
    jout_str(&j, "host", "0.0.0.0");
    jout_int(&j, "port", d->port);
    jout_int(&j, "keep_alive_timeout_s", KEEP_ALIVE_S);
    jout_close(&j, '}');
    jout_open(&j, "applications", '[');
    for (size_t i = 0; i < d->n_apps; i++)
        jout_raw(&j, NULL, d->apps[i]);
    for (size_t i = 0; i < d->n_foreign; i++)
        jout_raw(&j, NULL, d->foreign[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
}

static bool doc_has_members(const json_t *sent, const json_t *shown)
{
    const char *key;
    json_t *value;
    if (!json_is_object(shown))
        return false;
    json_object_foreach ((json_t *)(uintptr_t)sent, key, value)
        if (!serve_doc_has(value, json_object_get(shown, key)))
            return false;
    return true;
}

bool serve_doc_has(const json_t *sent, const json_t *shown)
{
    if (json_is_object(sent))
        return doc_has_members(sent, shown);
    if (json_is_array(sent)) {
        bool same = json_is_array(shown) && json_array_size(sent) == json_array_size(shown);
        for (size_t i = 0; same && i < json_array_size(sent); i++)
            same = serve_doc_has(json_array_get(sent, i), json_array_get(shown, i));
        return same;
    }
    if (json_is_number(sent))
        return json_is_number(shown) &&
               fabs(json_number_value(sent) - json_number_value(shown)) <= 1e-9;
    return shown && json_equal(sent, shown);
}
