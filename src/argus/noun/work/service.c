/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - serving: a model or an application, its versions, replicas and logs. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/log/follow.h"
#include "argus/log/logread.h"
#include "argus/show/member.h"
#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

enum { SERVICE_CONFIG_MAX = 512 << 10 };

static const char *const engine_choices[] = {"", "transformers", "vllm", "sglang", NULL};
static const char *const keep_choices[] = {"", "warm", "cold", "none", NULL};

/* ---- options ---- */

struct serve_opts {
    int output, engine, keep;
    const char *idle, *name, *project, *app, *job, *step, *config, *code, *gpus, *cpus, *memory,
        *check, *python;
    const char *request_timeout, *start_timeout;
    int64_t replicas, min_replicas, max_replicas, priority, requests, tokens;
    struct strv pool, env;
};
#define SERVE(otype, member) .type = (otype), .offset = offsetof(struct serve_opts, member)
static const struct opt SERVE_OPTS[] = {
    {.name = "name",
     SERVE(OPT_TEXT, name),
     .arg = "NAME",
     .to = "body:name",
     .doc = "name of the service; made of the model's if not given"},
    {.name = "app",
     SERVE(OPT_TEXT, app),
     .arg = "MODULE:NAME",
     .to = "body:app",
     .doc = "an application of Ray Serve, or its builder, instead of a model"},
    {.name = "job",
     SERVE(OPT_TEXT, job),
     .arg = "ID",
     .to = "body:job",
     .doc =
         "a training instead of a model: one of its checkpoints is merged, registered and served"},
    {.name = "step",
     SERVE(OPT_TEXT, step),
     .arg = "best|latest|N",
     .to = "body:step",
     .doc = "which checkpoint of --job; latest if not given"},
    {.name = "config",
     SERVE(OPT_TEXT, config),
     .arg = "FILE",
     .doc = "a serve.yaml: Ray Serve's own form with one application, or the keys of this command"},
    {.name = "code",
     SERVE(OPT_TEXT, code),
     .arg = "SNAPSHOT",
     .to = "body:code",
     .doc = "a snapshot or directory that holds the application"},
    {.name = "replicas",
     SERVE(OPT_COUNT, replicas),
     .arg = "N",
     .to = "body:replicas",
     .doc = "each with a lease of its own"},
    {.name = "min-replicas",
     SERVE(OPT_COUNT, min_replicas),
     .arg = "N",
     .to = "body:min_replicas",
     .doc = "replicas that autoscaling leaves at least"},
    {.name = "max-replicas",
     SERVE(OPT_COUNT, max_replicas),
     .arg = "N",
     .to = "body:max_replicas",
     .doc = "replicas come and go with the requests, up to so many"},
    {.name = "gpus",
     SERVE(OPT_TEXT, gpus),
     .arg = "N",
     .to = "body:gpus",
     .doc = "GPUs of one replica; 0.5 is half of one"},
    {.name = "cpus",
     SERVE(OPT_TEXT, cpus),
     .arg = "N",
     .to = "body:cpus",
     .doc = "CPUs of one replica"},
    {.name = "memory",
     SERVE(OPT_TEXT, memory),
     .arg = "SIZE",
     .to = "body:memory",
     .doc = "memory of one replica"},
    {.name = "engine",
     SERVE(OPT_CHOICE, engine),
     .arg = "ENGINE",
     .choices = engine_choices,
     .to = "body:engine",
     .doc = "engine that runs the model; transformers runs without a GPU, too"},
    {.name = "python",
     SERVE(OPT_TEXT, python),
     .arg = "PATH",
     .to = "body:python",
     .doc = "interpreter of the replicas, where the engine has an environment of its own"},
    {.name = "keep",
     SERVE(OPT_CHOICE, keep),
     .arg = "HOW",
     .choices = keep_choices,
     .to = "body:keep",
     .doc = "how the version before is kept: warm (back in a second), cold, none"},
    {.name = "idle",
     SERVE(OPT_TEXT, idle),
     .arg = "SPAN|off",
     .to = "body:idle",
     .doc = "it sleeps after so long without a request, 30m; the next request wakes it"},
    {.name = "project",
     SERVE(OPT_TEXT, project),
     .arg = "NAME",
     .to = "body:project",
     .doc = "project whose members may call and change it"},
    {.name = "pool",
     SERVE(OPT_NAMES, pool),
     .arg = "NAME",
     .to = "body:pool",
     .doc = "pool in which its replicas may run"},
    {.name = "priority",
     SERVE(OPT_NUMBER, priority),
     .arg = "N",
     .to = "body:priority",
     .doc = "priority of its replicas in the queue"},
    {.name = "env",
     SERVE(OPT_LIST, env),
     .arg = "NAME=VALUE",
     .doc = "environment of the replicas; may be given again and again; no secrets"},
    {.name = "check",
     SERVE(OPT_TEXT, check),
     .arg = "PATH",
     .to = "body:check_path",
     .doc = "path of an application that answers once it is ready"},
    {.name = "request-timeout",
     SERVE(OPT_TEXT, request_timeout),
     .arg = "SPAN",
     .to = "body:request_timeout",
     .doc = "how long one request may take"},
    {.name = "start-timeout",
     SERVE(OPT_TEXT, start_timeout),
     .arg = "SPAN",
     .to = "body:start_timeout",
     .doc = "how long a replica that has its lease may take until it answers"},
    {.name = "requests-per-minute",
     SERVE(OPT_COUNT, requests),
     .arg = "N",
     .to = "body:requests_per_minute",
     .doc = "requests of one user in a minute, at most"},
    {.name = "tokens-per-minute",
     SERVE(OPT_COUNT, tokens),
     .arg = "N",
     .to = "body:tokens_per_minute",
     .doc = "tokens of one user in a minute, at most"},
    OPT_OUTPUT(struct serve_opts),
};

static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt REQUESTS_OPTS[] = {
    {.name = "failed",
     .type = OPT_FLAG,
     .to = "query:failed",
     .doc = "list only requests without an answer, or with a status of 500 and above"},
    LISTING_OPTS,
};
struct service_show_opts {
    int output;
    bool utc, watch;
};
static const struct opt SHOW_OPTS[] = {
    OPT_OUTPUT(struct service_show_opts),
    OPT_UTC(struct service_show_opts),
    OPT_WATCH(struct service_show_opts),
};
static const struct opt ROLLBACK_OPTS[] = {
    {.name = "version",
     .type = OPT_COUNT,
     .arg = "N",
     .to = "body:version",
     .doc = "version that gets the traffic; the one before if not given"},
};
static const struct opt KEEP_OPTS[] = {
    {.name = "keep",
     .type = OPT_CHOICE,
     .arg = "HOW",
     .choices = keep_choices,
     .to = "body:keep",
     .need = "say what is kept: --keep warm, cold or none",
     .doc = "how it is kept: warm, cold or none"},
};
static const struct opt IDLE_OPTS[] = {
    {.name = "after",
     .type = OPT_TEXT,
     .arg = "SPAN|off",
     .to = "body:idle",
     .need = "cli_say_after",
     .doc = "so long without a request; off: it never sleeps, and wakes where it does"},
};
struct service_ask_opts {
    int output;
    const char *path, *body;
    int64_t version; /* 0: the one that has the traffic */
};
static const struct opt ASK_OPTS[] = {
    {.name = "path",
     .type = OPT_TEXT,
     .offset = offsetof(struct service_ask_opts, path),
     .arg = "PATH",
     .doc = "any request instead of a text: its path, /v1/models"},
    {.name = "body",
     .type = OPT_TEXT,
     .offset = offsetof(struct service_ask_opts, body),
     .arg = "JSON",
     .doc = "body of that request; without it, the request is a GET"},
    {.name = "version",
     .type = OPT_COUNT,
     .offset = offsetof(struct service_ask_opts, version),
     .arg = "N",
     .doc = "version that is asked, of those that are ready; the one that has the traffic if not "
            "given"},
    OPT_OUTPUT(struct service_ask_opts),
};
struct service_logs_opts {
    bool follow;
    int64_t replica, tail;
};
static const struct opt LOGS_OPTS[] = {
    {.letter = 'f',
     .name = "follow",
     .type = OPT_FLAG,
     .offset = offsetof(struct service_logs_opts, follow),
     .doc = "go on until the replica ends"},
    {.name = "replica",
     .type = OPT_COUNT,
     .offset = offsetof(struct service_logs_opts, replica),
     .arg = "K",
     .doc = "replica whose log is shown; the first that is ready if not given"},
    {.name = "tail",
     .type = OPT_COUNT,
     .offset = offsetof(struct service_logs_opts, tail),
     .arg = "N",
     .doc = "print only the last N lines"},
};

/* ---- tables ---- */

static void service_state(struct table *t, const json_t *item, const struct when *w)
{
    const char *state = member_str(item, "state");
    enum style style = str_eq(state, "READY")                                  ? STYLE_GREEN
                       : str_eq(state, "FAILED")                               ? STYLE_RED
                       : str_eq(state, "DEGRADED") || str_eq(state, "LEAVING") ? STYLE_YELLOW
                       : str_eq(state, "LOADING") || str_eq(state, "CHECKING") ? STYLE_CYAN
                                                                               : STYLE_DIM;
    (void)w;
    table_add(t, style, state);
}

static void service_replicas(struct table *t, const json_t *item, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%lld/%lld", (long long)json_get_int(item, "ready", 0),
               (long long)json_get_int(item, "replicas", 0));
}

static void service_version(struct table *t, const json_t *item, const struct when *w)
{
    int64_t current = json_get_int(item, "current", 0), wanted = json_get_int(item, "wanted", 0);
    (void)w;
    if (current && wanted)
        table_addf(t, STYLE_PLAIN, "v%lld -> v%lld", (long long)current, (long long)wanted);
    else
        table_addf(t, STYLE_PLAIN, current || wanted ? "v%lld" : "-",
                   (long long)(current ? current : wanted));
}

static void service_rate(struct table *t, const json_t *item, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%.3g", json_get_real(item, "requests_per_minute", 0));
}

static void service_reason(struct table *t, const json_t *item, const struct when *w)
{
    (void)w;
    table_add(t, STYLE_PLAIN, json_get_str(json_get_object(item, "reason"), "text", NULL));
}

static const struct column SERVICES[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD},
    {.title = "say_state", .draw = service_state},
    {.title = "say_serve_version", .draw = service_version},
    {.title = "say_serve_ready", .draw = service_replicas},
    {.title = "say_serve_what", .flags = COLUMN_FLEX, .least = 12, .key = "what"},
    {.title = "say_serve_rate", .flags = COLUMN_RIGHT, .draw = service_rate},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 6, .key = "owner", .rank = 2},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 9, .key = "project", .rank = 3},
    {.title = "say_made", .key = "created_at", .as = CELL_TIME, .rank = 1},
};
static const struct column REPLICAS[] = {
    {.title = "say_serve_version", .key = "version"},
    {.title = "say_serve_replica", .key = "replica"},
    {.title = "say_state", .draw = service_state},
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 8, .key = "node"},
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 12, .key = "job"},
    {.title = "say_reason", .flags = COLUMN_ROOM, .draw = service_reason},
};

static void service_request(struct table *t, const json_t *item, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%s %s", member_str(item, "method"), member_str(item, "path"));
}

static void service_status(struct table *t, const json_t *item, const struct when *w)
{
    int64_t status = json_get_int(item, "status", 0);
    (void)w;
    table_addf(t, !status || status >= 500 ? STYLE_RED : STYLE_PLAIN, "%" PRId64, status);
}

static void service_tokens(struct table *t, const json_t *item, const struct when *w)
{
    int64_t in = json_get_int(item, "tokens_in", -1), out = json_get_int(item, "tokens_out", -1);
    const char *about = json_get_bool(item, "tokens_estimated", false) ? "~" : "";
    (void)w;
    if (out < 0)
        table_add(t, STYLE_DIM, NULL);
    else if (in < 0)
        table_addf(t, STYLE_PLAIN, "%" PRId64, out);
    else
        table_addf(t, STYLE_PLAIN, "%s%" PRId64 "+%" PRId64, about, in, out);
}

static const struct column REQUESTS[] = {
    {.title = "say_at", .key = "at", .as = CELL_TIME},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user"},
    {.title = "say_serve_version", .key = "version", .as = CELL_NUMBER, .rank = 2},
    {.title = "say_serve_path", .flags = COLUMN_FLEX, .least = 14, .draw = service_request},
    {.title = "say_serve_status", .flags = COLUMN_RIGHT, .draw = service_status},
    {.title = "say_serve_ms", .flags = COLUMN_RIGHT, .key = "took_ms", .as = CELL_NUMBER},
    {.title = "say_serve_tokens", .flags = COLUMN_RIGHT, .draw = service_tokens, .rank = 1},
    {.title = "say_serve_key", .key = "key", .rank = 3},
};
static const struct column APPLICATIONS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD},
    {.title = "say_serve_route", .flags = COLUMN_FLEX, .least = 8, .key = "route"},
    {.title = "say_state", .key = "status"},
    {.title = "say_serve_ready", .key = "replicas", .as = CELL_NUMBER},
    {.title = "say_serve_made_by", .flags = COLUMN_FLEX, .least = 8, .key = "made_by"},
};

/* ---- serve ---- */

static int serve_add_env(const struct strv *given, json_t *body, struct err *err)
{
    json_t *env = given->n ? json_object() : NULL;
    int r = 0;
    for (size_t i = 0; r == 0 && i < given->n; i++) {
        const char *equals = strchr(given->v[i], '=');
        _cleanup_(freep) char *name =
            equals ? xstrndup(given->v[i], (size_t)(equals - given->v[i])) : NULL;
        if (!equals || json_object_set_new(env, name, json_string(equals + 1)) < 0)
            r = message_refuse(err, ERR_USAGE, "cli_no_param",
                               MESSAGE_ARGS(MESSAGE_STR("text", given->v[i])));
    }
    if (r == 0 && env)
        (void)json_object_set(body, "env", env); /* both are there */
    json_decref(env);
    return r;
}

static int serve_add_config(const char *file, json_t *body, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(SERVICE_CONFIG_MAX);
    int r = file ? file_read_input(file, &text, err) : 0;
    if (r == 0 && file)
        (void)json_object_set_new(body, "config", json_string(buf_str(&text))); /* as above */
    return r;
}

static int serve_fill(const struct serve_opts *o,
                      const struct strv *args,
                      json_t *body,
                      struct err *err)
{
    int r = ask_fill(SERVE_OPTS, array_len(SERVE_OPTS), o, body, err);
    if (r == 0 && args->n)
        (void)json_object_set_new(body, "model", json_string(args->v[0])); /* as above */
    if (r == 0)
        r = serve_add_env(&o->env, body, err);
    return r < 0 ? r : serve_add_config(o->config, body, err);
}

static int serve_send(struct cli *cli, const char *path, json_t *body, int output, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    int r = ask_send(cli, "POST", path, body, 1, &answer, err);
    if (r < 0)
        return r;
    const char *name = json_get_str(answer, "name", "");
    if (output >= OUTPUT_JSON) {
        cli_emit(cli, answer, output);
    } else {
        (void)fprintf(cli->out, "%s\n", name);
        cli_say(cli, "say_next_service", name, name, NULL);
    }
    return 0;
}

static int serve_to(struct cli *cli,
                    const char *path,
                    const struct serve_opts *o,
                    const struct strv *model,
                    struct err *err)
{
    json_t *body = json_object();
    int r = serve_fill(o, model, body, err);
    if (r == 0)
        r = cli_open(cli, err);
    if (r < 0) {
        json_decref(body);
        return r;
    }
    return serve_send(cli, path, body, o->output, err);
}

static int serve_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    return serve_to(cli, "/v1/services", opts, args, err);
}

static int service_deploy(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    _cleanup_(freep) char *path = ask_path("/v1/services/{}:deploy", args->v[0]);
    const struct strv model = {.v = args->v + 1, .n = args->n - 1};
    return serve_to(cli, path, opts, &model, err);
}

/* ---- a service ---- */

/* What it holds and has cost, what is asked of it, and when it sleeps: a line each. */
static void service_draw_figures(struct cli *cli, const json_t *service)
{
    char gpus[32], hours[32], in_flight[32], waiting[32], rate[32], line[256];
    const char *idle = json_get_str(service, "idle", "0s");
    text_printf(gpus, "%.4g", json_get_real(service, "gpus", 0));
    text_printf(hours, "%.2f", json_get_real(service, "gpu_hours", 0));
    text_printf(in_flight, "%" PRId64, json_get_int(service, "in_flight", 0));
    text_printf(waiting, "%" PRId64, json_get_int(service, "waiting", 0));
    text_printf(rate, "%.3g", json_get_real(service, "requests_per_minute", 0));
    const struct {
        const char *code, *texts[3];
    } lines[] = {
        {"say_service_costs", {gpus, hours, ""}},
        {"say_service_asked", {in_flight, waiting, rate}},
        {str_eq(idle, "0s") ? "say_service_stays" : "say_service_sleeps", {idle, "", ""}},
    };
    for (size_t i = 0; i < array_len(lines); i++)
        (void)fprintf(
            cli->out, "%s\n",
            msg_fill(cli->term.lang, lines[i].code, lines[i].texts, line, (int)sizeof(line)));
}

static void service_draw(struct cli *cli, const json_t *service, const struct service_show_opts *o)
{
    _cleanup_(table_freep) struct table *t = table_new(REPLICAS, array_len(REPLICAS));
    struct when w = cli_when(cli, o->utc);
    size_t i, k;
    const json_t *version, *replica;
    (void)fprintf(cli->out, "%s  %s  %s\n", json_get_str(service, "name", ""),
                  member_str(service, "state"), json_get_str(service, "endpoint", ""));
    service_draw_figures(cli, service);
    json_array_foreach (json_get_array(service, "versions"), i, version)
        json_array_foreach (json_get_array(version, "replicas"), k, replica) {
            json_t *row = json_copy((json_t *)(uintptr_t)replica);
            (void)json_object_set_new(row, "version", json_integer(json_get_int(version, "n", 0)));
            table_add_item(t, row, &w);
            json_decref(row);
        }
    (void)table_print(t, &cli->term, o->output == OUTPUT_WIDE,
                      cli->out); /* the rest is in -o wide */
    json_array_foreach (json_get_array(service, "versions"), i, version) {
        const char *why = json_get_str(json_get_object(version, "reason"), "text", NULL);
        if (why)
            (void)fprintf(cli->out, "v%" PRId64 "  %s  %s\n", json_get_int(version, "n", 0),
                          member_str(version, "state"), why);
    }
}

static int service_page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct service_show_opts *o = opts;
    _cleanup_(json_unrefp) json_t *service = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/services/{}", args->v[0]);
    int r = client_get(cli->client, path, &service, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, service, o->output);
    else
        service_draw(cli, service, o);
    return 0;
}

static int service_show(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct service_show_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, service_page, opts, args, err);
}

/* The model's words, or the answer as it came. */
static void service_print_answer(struct cli *cli, const json_t *reply, const struct seen *seen)
{
    const json_t *answer = json_object_get(reply, "answer");
    const json_t *choice = json_array_get(json_get_array(answer, "choices"), 0);
    const char *said = json_get_str(json_get_object(choice, "message"), "content", NULL);
    (void)seen;
    if (said || json_is_string(answer)) {
        (void)fprintf(cli->out, "%s\n", said ? said : json_string_value(answer));
    } else {
        char *text = json_dumps(answer, JSON_INDENT(2) | JSON_ENCODE_ANY);
        (void)fprintf(cli->out, "%s\n", text ? text : "");
        free(text);
    }
}

/* NULL: it is neither a text nor a path, or both, or a body that is no JSON. */
static json_t *service_ask_body(const struct service_ask_opts *o, const struct strv *args)
{
    const char *text = args->n > 1 ? args->v[1] : NULL;
    _cleanup_(json_unrefp) json_t *sent =
        o->body ? json_loads(o->body, JSON_DECODE_ANY, NULL) : NULL;
    if (!text == !o->path || (o->body && !sent))
        return NULL;
    json_t *body = text ? json_pack("{s:s}", "text", text)
                        : json_pack("{s:s,s:O?}", "path", o->path, "body", sent);
    if (body && o->version)
        (void)json_object_set_new(body, "version", json_integer(o->version)); /* it is there */
    return body;
}

static int service_ask(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct service_ask_opts *o = opts;
    const struct seen seen = {0};
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/services/{}:ask", args->v[0]);
    json_t *body = service_ask_body(o, args);
    if (!body)
        return message_refuse(err, ERR_USAGE, "cli_service_ask", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r == 0)
        r = ask_send(cli, "POST", path, body, 1, &answer, err);
    else
        json_decref(body);
    if (r == 0 && o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else if (r == 0)
        service_print_answer(cli, answer, &seen);
    return r;
}

static int service_scale(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    int64_t n;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/services/{}:scale", args->v[0]);
    (void)opts;
    int r = str_to_int(args->v[1], 1, 1 << 20, &n, err);
    if (r < 0)
        return message_refuse(err, ERR_USAGE, "cli_no_replicas",
                              MESSAGE_ARGS(MESSAGE_STR("text", args->v[1])));
    r = cli_open(cli, err);
    if (r == 0)
        r = ask_send(cli, "POST", path, json_pack("{s:I}", "replicas", (json_int_t)n), 1, &answer,
                     err);
    if (r == 0)
        cli_say(cli, "say_done_changed", args->v[0], NULL, NULL);
    return r;
}

/* The job whose log is the replica's. NULL: there is none. Borrowed. */
static const char *service_job(const json_t *service, int64_t replica)
{
    const char *any = NULL;
    size_t i, k;
    const json_t *version, *r;
    json_array_foreach (json_get_array(service, "versions"), i, version)
        json_array_foreach (json_get_array(version, "replicas"), k, r) {
            const char *job = json_get_str(r, "job", NULL);
            bool is_it = replica ? json_get_int(r, "replica", 0) == replica
                                 : str_eq(member_str(r, "state"), "READY");
            if (job && is_it)
                return job;
            any = job && !replica && !any ? job : any;
        }
    return any;
}

static int service_print_log(struct cli *cli,
                             const char *job,
                             const struct service_logs_opts *o,
                             struct err *err)
{
    _cleanup_(logout_release) struct logout logout = {0};
    struct follow_opts f = {.query = "", .logout = &logout};
    int r = logout_init(&logout, cli->out, cli->term.is_tty, NULL, err);
    if (r >= 0)
        r = logread_print(cli, job, "", o->tail, NULL, &logout, &f.offset, err);
    if (r >= 0 && o->follow)
        return follow_run(cli, job, &f, err);
    logout_end(&logout);
    return r;
}

static int service_logs(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct service_logs_opts *o = opts;
    _cleanup_(json_unrefp) json_t *service = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/services/{}", args->v[0]);
    int r = cli_open(cli, err);
    if (r == 0)
        r = client_get(cli->client, path, &service, err);
    if (r < 0)
        return r;
    const char *job = service_job(service, o->replica);
    if (!job)
        return message_refuse(err, ERR_NOT_FOUND, "cli_no_replica",
                              MESSAGE_ARGS(MESSAGE_STR("service", args->v[0])));
    return service_print_log(cli, job, o, err);
}

static const struct command SERVICE_COMMANDS[] = {
    {
        .name = "serve",
        .args = "[MODEL[@VERSION]]",
        .most = 1,
        .summary = "serve a model, a job's checkpoint, or any application of Ray Serve",
        .text =
            "MODEL is a registered model. Prints the name of the service; it answers at "
            "/v1/services/NAME/v1 once a replica is ready. A service of that name that is there "
            "already gets "
            "its next version: that takes the traffic once it is ready, and none is lost.\n"
            "Each replica waits in the queue for its lease as any job does: 'argus service status "
            "NAME' says "
            "what it waits for.\n"
            "With --job the checkpoint is merged first, as 'argus ckpt export' does it, and served "
            "once its model is ready, whether this command still runs or not; a checkpoint that "
            "was merged before is not merged again. A merge that fails leaves the version before "
            "with its traffic.",
        .example = "argus serve sums --gpus 0.5\thalf a GPU\n"
                   "argus serve --job grpo-7 --step best --name sums --gpus 1\tfrom a training\n"
                   "argus serve --app translator:app --code translator --cpus 2\tan application",
        OPTS(SERVE_OPTS),
        .opts_size = sizeof(struct serve_opts),
        .run = serve_run,
    },
    {
        .name = "service deploy",
        .args = "NAME [MODEL[@VERSION]]",
        .least = 1,
        .most = 2,
        .summary = "the next version of a service",
        .text =
            "The next version is like the current one, except for the options that you give. It "
            "takes the traffic once it is ready.",
        OPTS(SERVE_OPTS),
        .opts_size = sizeof(struct serve_opts),
        .run = service_deploy,
    },
    {
        .name = "service ls",
        .args = "",
        .summary = "list the services",
        .text = "Lists your services and those of your projects; admins see all.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/services",
                .table = {.key = "services", COLUMNS(SERVICES), .none = "say_no_services"}},
    },
    {
        .name = "service show",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "show a service with its versions and replicas",
        .text =
            "Shows the GPUs that it holds and the GPU-hours of all its leases, the requests under "
            "way and those of them that wait, when it sleeps, and each replica with its machine "
            "and the job that is its lease.",
        OPTS(SHOW_OPTS),
        .opts_size = sizeof(struct service_show_opts),
        .run = service_show,
    },
    {
        .name = "service status",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "say what a service does, and what it waits for",
        .text = "Shows the same as 'argus service show'.",
        OPTS(SHOW_OPTS),
        .opts_size = sizeof(struct service_show_opts),
        .run = service_show,
    },
    {
        .name = "service ask",
        .args = "NAME TEXT|--path PATH",
        .least = 1,
        .most = 2,
        .summary = "try a service: one request, and its answer",
        .text =
            "TEXT is sent to the model as one message of a chat. With --version the one that is "
            "named answers in place of the one that has the traffic, if it has a replica that is "
            "ready: what has the traffic, what is kept warm.",
        .example =
            "argus service ask sums '1 + 1 ='\task a model\n"
            "argus service ask sums --version 1 '1 + 1 ='\task the version before\n"
            "argus service ask translator --path / --body '{\"text\": \"good\"}'\tsend a request "
            "to an application",
        OPTS(ASK_OPTS),
        .opts_size = sizeof(struct service_ask_opts),
        .run = service_ask,
    },
    {
        .name = "service logs",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "print the log of a replica",
        .text = "The log is that of the job that is the replica's lease.",
        OPTS(LOGS_OPTS),
        .opts_size = sizeof(struct service_logs_opts),
        .run = service_logs,
    },
    {
        .name = "service requests",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "list the last requests to a service",
        .text =
            "The last 100, and with --failed the last 100 that failed: who asked, for which path, "
            "and what "
            "became of it. Bodies are never kept, and a restart of argusd forgets the list.",
        OPTS(REQUESTS_OPTS),
        .ask = {.path = "/v1/services/{}:requests",
                .table = {.key = "requests", COLUMNS(REQUESTS), .none = "say_no_requests"}},
    },
    {
        .name = "service applications",
        .args = "",
        .summary = "list what there is in Ray Serve, argusd's and others'",
        .text =
            "MADE BY is argusd; list, of somebody else who wrote Ray Serve's list, which argusd "
            "keeps; or "
            "program, of a job's serve.run: it outlives the job, and no list removes it.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/service-applications",
                .table = {.key = "applications",
                          COLUMNS(APPLICATIONS),
                          .none = "say_no_applications"}},
    },
    {
        .name = "service scale",
        .args = "NAME REPLICAS",
        .least = 2,
        .most = 2,
        .summary = "change the number of replicas",
        .text = "A replica that goes finishes its requests first.",
        .run = service_scale,
    },
    {
        .name = "service rollback",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "give the traffic back to another version",
        .text = "A version that is kept warm takes the traffic at once; another is loaded first.",
        OPTS(ROLLBACK_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/services/{}:rollback",
                .done = "say_done_changed",
                .subject = "service {name}"},
    },
    {
        .name = "service keep",
        .args = "NAME --keep HOW",
        .least = 1,
        .most = 1,
        .summary = "say what becomes of the version before",
        .text = "warm: its replicas stay, and going back takes a second. cold: it is loaded again. "
                "none: there is no "
                "going back.",
        OPTS(KEEP_OPTS),
        .ask = {.method = "PATCH",
                .path = "/v1/services/{}",
                .done = "say_done_changed",
                .subject = "service {name}"},
    },
    {
        .name = "service idle",
        .args = "NAME --after SPAN|off",
        .least = 1,
        .most = 1,
        .summary = "say after how long without a request a service sleeps",
        .text = "One that sleeps has no replicas and holds no GPU. It keeps its version and its "
                "traffic, and the next request wakes it.",
        .example = "argus service idle sums --after 30m\tgive its GPUs back while nobody asks",
        OPTS(IDLE_OPTS),
        .ask = {.method = "PATCH",
                .path = "/v1/services/{}",
                .done = "say_done_changed",
                .subject = "service {name}"},
    },
    {
        .name = "service wake",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "wake a service that sleeps",
        .text = "Its replicas are leased and loaded again, as by a request. Whoever may ask the "
                "service may wake it.",
        .ask = {.method = "POST",
                .path = "/v1/services/{}:wake",
                .done = "say_done_woken",
                .subject = "service {name}"},
    },
    {
        .name = "service stop",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "stop a service; a rollback starts it again",
        .text = "Its replicas finish their requests, and their leases go back.",
        .ask = {.method = "POST",
                .path = "/v1/services/{}:stop",
                .done = "say_done_stopped",
                .subject = "service {name}"},
    },
    {
        .name = "service rm",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "remove a service with all its versions",
        .text = "Its replicas finish their requests first.",
        .ask = {.method = "DELETE",
                .path = "/v1/services/{}",
                .done = "say_done_removed",
                .subject = "service {name}"},
    },
};

NOUN(service, SERVICE_COMMANDS);
