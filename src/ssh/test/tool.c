/* SPDX-License-Identifier: Apache-2.0 */
/* ssh_tool - one call of this layer from a shell, its answer as a line of JSON. For tests on
 * real hosts; not installed.
 *
 *   ssh_tool [key=value…] CALL [ARG…]
 *
 * Calls: run SCRIPT [ARG…], probe, start, stop, look [LIVE-JOB…], exporter PROGRAM, key, forget,
 * close, labels NODE [POOL…]. Keys: those of struct ssh_target, probe_want, raylet_spec and
 * raylet_want by name; port.<option>=value and env.<name>=value may come several times, and so may
 * want_port. Spans are in milliseconds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "base/unit_message.h"
#include "ssh/probe.h"
#include "ssh/raylet.h"

enum { OUTPUT_MAX = 4 << 20 };

struct tool {
    uv_loop_t loop;
    struct pairs keys, ports, env;
    int want_ports[PROBE_PORTS_MAX];
    size_t n_want_ports;
    struct ssh_target t;
    struct buf out; /* of the one answer */
};

/* ---- keys ---- */

static const char *text_of(const struct tool *w, const char *key)
{
    return pairs_find(&w->keys, key);
}

static int64_t number_of(const struct tool *w, const char *key, int64_t dflt)
{
    int64_t v = dflt;
    const char *s = text_of(w, key);
    if (s && str_to_int(s, INT64_MIN, INT64_MAX, &v, NULL) < 0) {
        (void)fprintf(stderr, "ssh_tool: %s=%s is not a number\n", key, s);
        exit(2);
    }
    return v;
}

static usec_t span_of(const struct tool *w, const char *key)
{
    return (usec_t)number_of(w, key, 0) * USEC_MS;
}

static void take_key(struct tool *w, const char *word)
{
    const char *equals = strchr(word, '=');
    _cleanup_(freep) char *key = xstrndup(word, (size_t)(equals - word));
    if (str_starts(key, "port."))
        pairs_set(&w->ports, key + 5, equals + 1);
    else if (str_starts(key, "env."))
        pairs_set(&w->env, key + 4, equals + 1);
    else if (!strcmp(key, "want_port") && w->n_want_ports < PROBE_PORTS_MAX)
        w->want_ports[w->n_want_ports++] = (int)strtol(equals + 1, NULL, 10);
    else
        pairs_set(&w->keys, key, equals + 1);
}

static void make_target(struct tool *w)
{
    w->t = (struct ssh_target){
        .name = str_or(text_of(w, "name"), "n1"),
        .host = text_of(w, "host"),
        .user = text_of(w, "user"),
        .port = (int)number_of(w, "port", 0),
        .identity_file = text_of(w, "identity_file"),
        .proxy_jump = text_of(w, "proxy_jump"),
        .config_file = text_of(w, "config_file"),
        .known_hosts = text_of(w, "known_hosts"),
        .control_dir = text_of(w, "control_dir"),
        .local = number_of(w, "local", 0) != 0,
    };
}

/* ---- answers: one object each ---- */

static struct jout begin(struct tool *w)
{
    w->out = BUF_INIT(OUTPUT_MAX);
    struct jout j = jout_begin(&w->out);
    jout_open(&j, NULL, '{');
    return j;
}

static void print(struct jout *j)
{
    jout_close(j, '}');
    puts(buf_str(j->out));
    buf_release(j->out);
}

static void on_run(const struct ssh_result *r, void *arg)
{
    struct jout j = begin(arg);
    jout_str(&j, "trouble", ssh_trouble_to_string(r->trouble));
    jout_str(&j, "text", unit_said(ssh_trouble_to_string(r->trouble), r->text));
    jout_str(&j, "fix", unit_fix(ssh_trouble_to_string(r->trouble), r->text));
    jout_int(&j, "status", r->status);
    jout_strn(&j, "out", r->out, r->out_len);
    jout_strn(&j, "errs", r->errs, r->errs_len);
    jout_int(&j, "heard_after", (int64_t)r->heard_after);
    print(&j);
}

static void add_versions(struct jout *j, const struct probe_result *r)
{
    jout_str(j, "python", r->facts.python);
    jout_str(j, "ray", r->facts.ray);
    jout_str(j, "ray_bin", r->facts.ray_bin);
    jout_str(j, "torch", r->facts.torch);
    jout_str(j, "cuda", r->facts.cuda);
    jout_str(j, "driver", r->facts.driver);
    jout_str(j, "vllm", r->facts.vllm);
    jout_str(j, "sglang", r->facts.sglang);
    jout_str(j, "transformers", r->facts.transformers);
    jout_str(j, "numpy", r->facts.numpy);
    jout_str(j, "verl", r->facts.verl);
}

static void on_probe(const struct probe_result *r, void *arg)
{
    struct jout j = begin(arg);
    jout_open(&j, "findings", '[');
    for (size_t i = 0; i < r->n_findings; i++) {
        jout_open(&j, NULL, '{');
        jout_str(&j, "code", r->findings[i].code);
        jout_str(&j, "text", unit_said(r->findings[i].code, r->findings[i].text));
        jout_str(&j, "fix", unit_fix(r->findings[i].code, r->findings[i].text));
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_str(&j, "hostname", r->facts.hostname);
    jout_str(&j, "image", r->facts.image);
    jout_str(&j, "host_key", r->host_key);
    add_versions(&j, r);
    jout_int(&j, "gpus", r->facts.gpus);
    jout_str(&j, "gpu_type", r->facts.gpu_type);
    jout_str(&j, "interface", r->facts.interface);
    jout_str(&j, "bond_of", r->facts.bond_of);
    jout_str(&j, "link_layer", r->facts.link_layer);
    jout_str(&j, "hca", r->facts.hca);
    jout_str(&j, "roce", r->facts.roce);
    jout_str(&j, "gid_index", r->facts.gid_index);
    jout_int(&j, "mtu", r->facts.mtu);
    jout_int(&j, "rdma_gbps", r->facts.rdma_gbps);
    jout_bool(&j, "has_nvidia", r->has_nvidia);
    jout_str(&j, "gpu_trouble", r->gpu_trouble);
    jout_real(&j, "cpus", r->facts.cpus);
    jout_int(&j, "memory_bytes", (int64_t)r->facts.memory_bytes);
    jout_int(&j, "disk_free_bytes", (int64_t)r->facts.disk_free_bytes);
    jout_int(&j, "shm_free_bytes", (int64_t)r->facts.shm_free_bytes);
    jout_int(&j, "shm_bytes", (int64_t)r->shm_bytes);
    jout_int(&j, "skew", r->facts.skew);
    jout_bool(&j, "has_skew", r->has_skew);
    print(&j);
}

static const char *end_code(const struct raylet_end *e)
{
    return e->outcome == RAYLET_SSH ? ssh_trouble_to_string(e->trouble)
                                    : raylet_outcome_to_string(e->outcome);
}

static void add_end(struct jout *j, const struct raylet_end *e)
{
    jout_str(j, "outcome", raylet_outcome_to_string(e->outcome));
    jout_str(j, "trouble", ssh_trouble_to_string(e->trouble));
    jout_str(j, "text", unit_said(end_code(e), e->text));
    jout_str(j, "fix", unit_fix(end_code(e), e->text));
}

static void add_facts(struct jout *j, const struct raylet_facts *f)
{
    jout_bool(j, "alive", f->alive);
    jout_bool(j, "starting", f->starting);
    jout_bool(j, "is_head", f->is_head);
    jout_int(j, "pid", f->pid);
    jout_int(j, "session", f->session);
    jout_int(j, "start_time", (int64_t)f->start_time);
    jout_str(j, "boot_id", f->boot_id);
    jout_str(j, "token", f->token);
    jout_str(j, "address", f->address);
    jout_str(j, "node_ip", f->node_ip);
}

static void on_started(const struct raylet_started *r, void *arg)
{
    struct jout j = begin(arg);
    add_end(&j, &r->end);
    add_facts(&j, &r->facts);
    jout_bool(&j, "adopted", r->adopted);
    jout_int(&j, "ray_took", (int64_t)r->ray_took);
    print(&j);
}

static void on_stopped(const struct raylet_stopped *r, void *arg)
{
    struct jout j = begin(arg);
    add_end(&j, &r->end);
    jout_int(&j, "ended", (int64_t)r->ended);
    jout_int(&j, "killed", (int64_t)r->killed);
    print(&j);
}

static void on_look(const struct raylet_look *r, void *arg)
{
    struct jout j = begin(arg);
    add_end(&j, &r->end);
    add_facts(&j, &r->facts);
    jout_open(&j, "jobs", '[');
    for (size_t i = 0; i < r->n_jobs; i++) {
        jout_open(&j, NULL, '{');
        jout_str(&j, "id", r->jobs[i].id);
        jout_int(&j, "processes", r->jobs[i].processes);
        jout_bool(&j, "is_live", r->jobs[i].is_live);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_int(&j, "strays", (int64_t)r->strays);
    jout_str(&j, "stray_text", unit_said("strays", r->stray_text));
    jout_str(&j, "health", unit_said(r->trouble_code, r->trouble));
    jout_str(&j, "health_code", r->trouble_code);
    jout_int(&j, "root_write", (int64_t)r->root_write);
    jout_open(&j, "cards", '[');
    for (size_t i = 0; r->cards && i < r->cards->n; i++)
        gpu_card_put(&r->cards->v[i], &j, false);
    jout_close(&j, ']');
    jout_open(&j, "rdma", '[');
    for (size_t i = 0; r->rdma && i < r->rdma->n; i++) {
        jout_open(&j, NULL, '{');
        jout_int(&j, "received", (int64_t)r->rdma->v[i].received);
        jout_int(&j, "sent", (int64_t)r->rdma->v[i].sent);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    print(&j);
}

/* ---- calls ---- */

static void call_probe(struct tool *w)
{
    struct probe_want want = {
        .ray_bin = text_of(w, "ray_bin"),
        .ray_version = text_of(w, "ray_version"),
        .python_version = text_of(w, "python_version"),
        .shared_root = text_of(w, "shared_root"),
        .root_mark = text_of(w, "root_mark"),
        .ports = w->want_ports,
        .n_ports = w->n_want_ports,
        .node_ip = text_of(w, "node_ip"),
        .temp_dir = text_of(w, "temp_dir"),
        .min_disk_bytes = (uint64_t)number_of(w, "min_disk_bytes", 0),
        .min_shm_bytes = (uint64_t)number_of(w, "min_shm_bytes", 0),
        .max_skew = span_of(w, "max_skew"),
        .now = clock_wall(),
        .owner = text_of(w, "owner"),
        .node = text_of(w, "node"),
    };
    (void)probe_start(&w->loop, &w->t, &want, span_of(w, "limit"), on_probe,
                      w); /* it ends by itself */
}

static void call_start(struct tool *w)
{
    struct raylet_spec spec = {
        .owner = text_of(w, "owner"),
        .node = text_of(w, "node"),
        .ray_bin = text_of(w, "ray_bin"),
        .head = number_of(w, "head", 0) != 0,
        .spare = number_of(w, "spare", 0) != 0,
        .dashboard_wait = span_of(w, "dashboard_wait"),
        .address = text_of(w, "address"),
        .node_ip = text_of(w, "node_ip"),
        .cpus = (double)number_of(w, "cpus", 0),
        .gpus = (int)number_of(w, "gpus", 0),
        .resources_json = text_of(w, "resources_json"),
        .labels = text_of(w, "labels"),
        .temp_dir = text_of(w, "temp_dir"),
        .object_store_bytes = (uint64_t)number_of(w, "object_store_bytes", 0),
        .ports = &w->ports,
        .env = &w->env,
    };
    (void)raylet_start(&w->loop, &w->t, &spec, span_of(w, "limit"), on_started,
                       w); /* it ends by itself */
}

static void call_look(struct tool *w, const char *const *live, size_t n)
{
    struct raylet_want want = {
        .owner = text_of(w, "owner"),
        .node = text_of(w, "node"),
        .live_jobs = live,
        .n_live_jobs = n,
        .shared_root = text_of(w, "shared_root"),
        .root_mark = text_of(w, "root_mark"),
        .min_disk_bytes = (uint64_t)number_of(w, "min_disk_bytes", 0),
        .min_shm_bytes = (uint64_t)number_of(w, "min_shm_bytes", 0),
        .temp_dir = text_of(w, "temp_dir"),
        .max_skew = span_of(w, "max_skew"),
        .max_write = span_of(w, "max_write"),
        .now = clock_wall(),
        .gpus = (int)number_of(w, "gpus", 0),
        .cards = text_of(w, "cards"),
    };
    (void)raylet_look(&w->loop, &w->t, &want, span_of(w, "limit"), on_look,
                      w); /* it ends by itself */
}

static void on_exporter(const struct raylet_exporter *r, void *arg)
{
    struct jout j = begin(arg);
    jout_str(&j, "outcome", raylet_outcome_to_string(r->end.outcome));
    jout_str(&j, "state", raylet_exporter_to_string(r->state));
    jout_str(&j, "text", unit_said(raylet_exporter_to_string(r->state), r->text));
    print(&j);
}

static void call_exporter(struct tool *w, const char *program)
{
    struct raylet_exporter_spec spec = {.owner = text_of(w, "owner"),
                                        .node = text_of(w, "node"),
                                        .program = program,
                                        .place = text_of(w, "place"),
                                        .address = text_of(w, "node_ip"),
                                        .port = (int)number_of(w, "exporter_port", 9400)};
    (void)raylet_exporter(&w->loop, &w->t, &spec, span_of(w, "limit"), on_exporter,
                          w); /* it ends by itself */
}

static int call_key(struct tool *w, bool forgets)
{
    char key[SSH_KEY_MAX] = "";
    struct err err = {0};
    int r = forgets ? ssh_forget_key(&w->t, &err) : ssh_pinned_key(&w->t, key, &err);
    puts(r < 0 ? err.text : key);
    return r < 0;
}

static int call_labels(const char *node, const char *const *pools, size_t n)
{
    struct buf out = BUF_INIT(4096);
    struct err err = {0};
    int r = raylet_labels(node, pools, n, &out, &err);
    puts(r < 0 ? err.text : buf_str(&out));
    buf_release(&out);
    return r < 0;
}

static int call(struct tool *w, const char *const *args, size_t n)
{
    const char *verb = n ? args[0] : "";
    if (!strcmp(verb, "run") && n > 1)
        (void)ssh_run(&w->loop, &w->t, args[1], args + 2, span_of(w, "limit"), on_run,
                      w); /* it ends by itself */
    else if (!strcmp(verb, "probe"))
        call_probe(w);
    else if (!strcmp(verb, "start"))
        call_start(w);
    else if (!strcmp(verb, "stop"))
        (void)raylet_stop(&w->loop, &w->t, text_of(w, "owner"), text_of(w, "node"),
                          span_of(w, "grace"), on_stopped, w);
    else if (!strcmp(verb, "look"))
        call_look(w, args + 1, n - 1);
    else if (!strcmp(verb, "exporter") && n > 1)
        call_exporter(w, args[1]);
    else if (!strcmp(verb, "close"))
        ssh_close_master(&w->loop, &w->t);
    else if (!strcmp(verb, "key") || !strcmp(verb, "forget"))
        return call_key(w, verb[0] == 'f');
    else if (!strcmp(verb, "labels") && n > 1)
        return call_labels(args[1], args + 2, n - 2);
    else {
        (void)fprintf(stderr, "ssh_tool: no call '%s'\n", verb);
        return 2;
    }
    return uv_run(&w->loop, UV_RUN_DEFAULT) != 0;
}

int main(int argc, char **argv)
{
    struct tool w = {0};
    int i = 1;
    hash_init();
    (void)uv_loop_init(&w.loop);
    for (; i < argc && strchr(argv[i], '='); i++)
        take_key(&w, argv[i]);
    make_target(&w);
    int r = call(&w, (const char *const *)argv + i, (size_t)(argc - i));
    if (uv_loop_close(&w.loop) != 0)
        (void)fprintf(stderr, "ssh_tool: a handle was left open\n");
    pairs_release(&w.keys);
    pairs_release(&w.ports);
    pairs_release(&w.env);
    return r;
}
