/* SPDX-License-Identifier: Apache-2.0 */
/* ray_probe - one call of the client from a shell, its answer as a line of JSON.
 * For tests against the fake and the real Ray; not installed.
 *
 *   ray_probe URL [key=value…] CALL [ARG]
 *
 * Keys: token, agent, read_ms, submit_ms, list_max, per_second. Calls: version,
 * submit FILE… (JSON objects, in order), get ID, stop ID, delete ID,
 * supervisor ID, jobs, nodes, usages, actors [JOB], groups [JOB]. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "ray/ray.h"

enum { OUTPUT_MAX = 64 << 20, FILE_MAX = 1 << 20 };

struct probe {
    struct ray_client *rc;
    int pending;
};

static void print_open(struct buf *out, struct jout *j, const char *outcome, const struct err *err)
{
    *out = BUF_INIT(OUTPUT_MAX);
    *j = jout_begin(out);
    jout_open(j, NULL, '{');
    jout_str(j, "outcome", outcome);
    jout_str(j, "error", err ? err_word(err->code) : NULL);
    jout_str(j, "sentence", err ? err->text : NULL);
}

/* The answer is there: print it; the last one ends the client and so the loop. */
static void print_close(struct buf *out, struct jout *j, struct probe *p)
{
    jout_close(j, '}');
    puts(buf_str(out));
    buf_release(out);
    if (--p->pending == 0)
        ray_client_free(p->rc);
}

static const char *known(const void *what)
{
    return what ? "known" : "unknown";
}

static void add_amounts(struct jout *j, const char *key, const struct ray_amounts *a)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < a->n; i++)
        jout_real(j, a->v[i].name, a->v[i].amount);
    jout_close(j, '}');
}

static void add_pairs(struct jout *j, const char *key, const struct pairs *pairs)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < pairs->n; i++)
        jout_str(j, pairs->v[i].key, pairs->v[i].value);
    jout_close(j, '}');
}

static void add_job(struct jout *j, const char *key, const struct ray_job *job)
{
    jout_open(j, key, '{');
    jout_bool(j, "is_submission", job->is_submission);
    jout_str(j, "submission_id", job->submission_id);
    jout_str(j, "job_id", job->job_id);
    jout_str(j, "status", ray_job_status_to_string(job->status));
    jout_str(j, "entrypoint", job->entrypoint);
    jout_str(j, "message", job->message);
    jout_str(j, "error_type", job->error_type);
    jout_int(j, "start_ms", (int64_t)(job->start / USEC_MS));
    jout_int(j, "end_ms", (int64_t)(job->end / USEC_MS));
    jout_str(j, "driver_id", job->driver_id);
    jout_str(j, "driver_ip", job->driver_ip);
    jout_int(j, "driver_pid", job->driver_pid);
    jout_str(j, "driver_node_id", job->driver_node_id);
    jout_str(j, "driver_agent", job->driver_agent);
    if (job->has_exit_code)
        jout_int(j, "exit_code", job->exit_code);
    jout_bool(j, "is_ghost", ray_job_is_ghost(job));
    add_pairs(j, "metadata", &job->metadata);
    jout_close(j, '}');
}

static void add_actor(struct jout *j, const char *key, const struct ray_actor *actor)
{
    jout_open(j, key, '{');
    jout_str(j, "actor_id", actor->actor_id);
    jout_str(j, "class_name", actor->class_name);
    jout_str(j, "name", actor->name);
    jout_str(j, "state", ray_actor_state_to_string(actor->state));
    jout_str(j, "job_id", actor->job_id);
    jout_str(j, "node_id", actor->node_id);
    jout_int(j, "pid", actor->pid);
    jout_bool(j, "is_detached", actor->is_detached);
    jout_str(j, "group_id", actor->group_id);
    add_amounts(j, "resources", &actor->resources);
    jout_close(j, '}');
}

static void on_version(const struct ray_version *v, const struct err *err, void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, known(v), err);
    if (v) {
        jout_str(&j, "version", v->text);
        jout_str(&j, "session", v->session_name);
        jout_bool(&j, "labels", v->supports & RAY_SUPPORTS_LABELS);
        jout_bool(&j, "token", v->supports & RAY_SUPPORTS_TOKEN);
        jout_bool(&j, "entrypoint_labels", v->supports & RAY_SUPPORTS_ENTRYPOINT_LABELS);
    }
    print_close(&out, &j, arg);
}

static void on_submit(enum ray_submit_outcome outcome, const struct err *err, void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, ray_submit_outcome_to_string(outcome), err);
    print_close(&out, &j, arg);
}

static const char *found_word(enum ray_found found)
{
    static const char *const words[] = {"FOUND", "NOT_FOUND", "UNKNOWN"};
    return words[found];
}

static void on_job(enum ray_found found,
                   const struct ray_job *job,
                   const struct err *err,
                   void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, found_word(found), err);
    if (job)
        add_job(&j, "job", job);
    print_close(&out, &j, arg);
}

static void on_stop(enum ray_stop_outcome outcome, const struct err *err, void *arg)
{
    static const char *const words[] = {"ASKED", "ENDED", "NOT_FOUND", "UNKNOWN"};
    struct buf out;
    struct jout j;
    print_open(&out, &j, words[outcome], err);
    print_close(&out, &j, arg);
}

static void on_delete(enum ray_delete_outcome outcome, const struct err *err, void *arg)
{
    static const char *const words[] = {"DONE", "NOT_FOUND", "TOO_EARLY", "UNKNOWN"};
    struct buf out;
    struct jout j;
    print_open(&out, &j, words[outcome], err);
    print_close(&out, &j, arg);
}

static void on_supervisor(enum ray_found found,
                          const struct ray_actor *actor,
                          const struct err *err,
                          void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, found_word(found), err);
    if (actor)
        add_actor(&j, "actor", actor);
    print_close(&out, &j, arg);
}

static void on_jobs(const struct ray_jobs *jobs, const struct err *err, void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, known(jobs), err);
    jout_open(&j, "jobs", '[');
    for (size_t i = 0; jobs && i < jobs->n; i++)
        add_job(&j, NULL, &jobs->v[i]);
    jout_close(&j, ']');
    print_close(&out, &j, arg);
}

static void on_nodes(const struct ray_nodes *nodes, const struct err *err, void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, known(nodes), err);
    jout_open(&j, "nodes", '[');
    for (size_t i = 0; nodes && i < nodes->n; i++) {
        const struct ray_node *node = &nodes->v[i];
        jout_open(&j, NULL, '{');
        jout_str(&j, "node_id", node->node_id);
        jout_str(&j, "ip", node->ip);
        jout_str(&j, "name", node->name);
        jout_bool(&j, "alive", node->is_alive);
        jout_bool(&j, "head", node->is_head);
        jout_str(&j, "state_message", node->state_message);
        add_amounts(&j, "resources", &node->resources);
        add_pairs(&j, "labels", &node->labels);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    print_close(&out, &j, arg);
}

static void on_usages(const struct ray_usages *usages, const struct err *err, void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, known(usages), err);
    jout_int(&j, "time_ms", usages ? (int64_t)(usages->time / USEC_MS) : 0);
    jout_open(&j, "usages", '[');
    for (size_t i = 0; usages && i < usages->n; i++) {
        const struct ray_usage *u = &usages->v[i];
        jout_open(&j, NULL, '{');
        jout_str(&j, "node_id", u->node_id);
        jout_real(&j, "cpus_used", u->cpus_used);
        jout_real(&j, "cpus_total", u->cpus_total);
        jout_real(&j, "gpus_used", u->gpus_used);
        jout_real(&j, "gpus_total", u->gpus_total);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    print_close(&out, &j, arg);
}

static void on_actors(const struct ray_actors *actors, const struct err *err, void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, known(actors), err);
    jout_bool(&j, "partial", actors && actors->is_partial);
    jout_open(&j, "actors", '[');
    for (size_t i = 0; actors && i < actors->n; i++)
        add_actor(&j, NULL, &actors->v[i]);
    jout_close(&j, ']');
    print_close(&out, &j, arg);
}

static void add_group(struct jout *j, const struct ray_group *group)
{
    jout_open(j, NULL, '{');
    jout_str(j, "group_id", group->group_id);
    jout_str(j, "name", group->name);
    jout_str(j, "job_id", group->job_id);
    jout_str(j, "state", ray_group_state_to_string(group->state));
    jout_bool(j, "is_detached", group->is_detached);
    jout_str(j, "scheduling_state", group->scheduling_state);
    jout_int(j, "scheduling_attempts", group->scheduling_attempts);
    jout_open(j, "bundles", '[');
    for (size_t i = 0; i < group->n_bundles; i++) {
        jout_open(j, NULL, '{');
        jout_str(j, "node_id", group->bundles[i].node_id);
        add_amounts(j, "resources", &group->bundles[i].resources);
        jout_close(j, '}');
    }
    jout_close(j, ']');
    jout_close(j, '}');
}

static void on_groups(const struct ray_groups *groups, const struct err *err, void *arg)
{
    struct buf out;
    struct jout j;
    print_open(&out, &j, known(groups), err);
    jout_bool(&j, "partial", groups && groups->is_partial);
    jout_open(&j, "groups", '[');
    for (size_t i = 0; groups && i < groups->n; i++)
        add_group(&j, &groups->v[i]);
    jout_close(&j, ']');
    print_close(&out, &j, arg);
}

/* -- arguments ----------------------------------------------------------------- */

static void fail(const char *what, const char *subject)
{
    (void)fprintf(stderr, "ray_probe: %s '%s'\n", what, subject); /* nowhere else to say it */
    exit(2);
}

static json_t *read_file(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        fail("cannot read", path);
    char *text = xmalloc(FILE_MAX);
    size_t n = fread(text, 1, FILE_MAX, f);
    (void)fclose(f); /* only read */
    json_t *spec = NULL;
    struct err err;
    if (json_parse(text, n, FILE_MAX, &spec, &err) < 0)
        fail(err.text, path);
    free(text);
    return spec;
}

static void read_pairs(json_t *spec, const char *key, struct pairs *ret)
{
    json_t *object = json_object_get(spec, key);
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it))
        pairs_set(ret, json_object_iter_key(it), json_string_value(json_object_iter_value(it)));
}

static void submit_file(struct probe *p, const char *path)
{
    json_t *spec = read_file(path);
    struct pairs env = {0}, metadata = {0}, labels = {0};
    struct ray_amounts resources = {0};
    read_pairs(spec, "env", &env);
    read_pairs(spec, "metadata", &metadata);
    read_pairs(spec, "labels", &labels);
    json_t *object = json_object_get(spec, "resources");
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it))
        ray_amounts_set(&resources, json_object_iter_key(it),
                        json_number_value(json_object_iter_value(it)));
    struct ray_submit what = {
        .submission_id = json_get_str(spec, "submission_id", NULL),
        .entrypoint = json_get_str(spec, "entrypoint", NULL),
        .runtime_env = json_get_str(spec, "runtime_env", NULL),
        .env = &env,
        .metadata = &metadata,
        .num_cpus = json_get_real(spec, "num_cpus", 0),
        .num_gpus = json_get_real(spec, "num_gpus", 0),
        .memory_bytes = (uint64_t)json_get_int(spec, "memory", 0),
        .resources = &resources,
        .labels = &labels,
    };
    struct err err;
    if (!ray_submit(p->rc, &what, on_submit, p, &err))
        fail(err.text, path);
    pairs_release(&env);
    pairs_release(&metadata);
    pairs_release(&labels);
    ray_amounts_release(&resources);
    json_decref(spec);
}

static struct ray_call *call_about(struct probe *p, const char *call, const char *id)
{
    if (str_eq(call, "get"))
        return ray_get_job(p->rc, id, on_job, p);
    if (str_eq(call, "stop"))
        return ray_stop_job(p->rc, id, on_stop, p);
    if (str_eq(call, "delete"))
        return ray_delete_job(p->rc, id, on_delete, p);
    if (str_eq(call, "supervisor"))
        return ray_find_supervisor(p->rc, id, on_supervisor, p);
    return NULL;
}

static struct ray_call *call_list(struct probe *p, const char *call, const char *job)
{
    if (str_eq(call, "version"))
        return ray_get_version(p->rc, on_version, p);
    if (str_eq(call, "jobs"))
        return ray_list_jobs(p->rc, on_jobs, p);
    if (str_eq(call, "nodes"))
        return ray_list_nodes(p->rc, on_nodes, p);
    if (str_eq(call, "usages"))
        return ray_list_usages(p->rc, on_usages, p);
    if (str_eq(call, "actors"))
        return ray_list_actors(p->rc, job, on_actors, p);
    if (str_eq(call, "groups"))
        return ray_list_groups(p->rc, job, on_groups, p);
    return NULL;
}

/* argv: CALL [ARG…]; argv ends with NULL. */
static void start(struct probe *p, char **argv)
{
    p->pending = 1;
    if (str_eq(argv[0], "submit")) {
        for (p->pending = 0; argv[p->pending + 1];)
            p->pending++;
        for (char **path = argv + 1; *path; path++)
            submit_file(p, *path);
    } else if (!(argv[1] && call_about(p, argv[0], argv[1])) && !call_list(p, argv[0], argv[1])) {
        fail("unknown call", argv[0]);
    }
}

/* One key=value; false when it is none and the call begins. */
static bool read_option(const char *arg, struct ray_options *opt)
{
    const char *value = strchr(arg, '=');
    if (!value)
        return false;
    value++;
    double n = strtod(value, NULL);
    if (str_starts(arg, "token="))
        opt->token = value;
    else if (str_starts(arg, "agent="))
        opt->user_agent = value;
    else if (str_starts(arg, "read_ms="))
        opt->read_timeout = (usec_t)n * USEC_MS;
    else if (str_starts(arg, "submit_ms="))
        opt->submit_timeout = (usec_t)n * USEC_MS;
    else if (str_starts(arg, "list_max="))
        opt->list_reply_max_bytes = (size_t)n;
    else if (str_starts(arg, "per_second="))
        opt->submits_per_second = n;
    else
        fail("unknown option", arg);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        fail("usage: ray_probe URL [key=value…] CALL [ARG] and not", argc > 1 ? argv[1] : "");
    uv_loop_t loop;
    if (uv_loop_init(&loop) < 0)
        fail("cannot start", "uv");
    struct ray_options opt = {
        .loop = &loop, .base_url = argv[1], .user_agent = "argus/probe", .impatient = true};
    argv += 2;
    while (*argv && read_option(*argv, &opt))
        argv++;
    struct probe p = {0};
    struct err err;
    if (ray_client_new(&opt, &p.rc, &err) < 0)
        fail(err.text, opt.base_url);
    if (!*argv)
        fail("a call is missing after", opt.base_url);
    start(&p, argv);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 ? 0 : 3;
}
