/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_join.c - does on a machine what its row says: probe and start; see nodes_run.h.
 *
 * One act at a time per node, each an asynchronous call that ends in one event. A start waits
 * for the head and for its turn (nodes.joins); probes share nodes.looks with the looks. An act
 * that was under way when argusd ended is begun again: all of them may come twice. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/foreign.h"
#include "argusd/machines/nodes_run.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/share.h"
#include "fsroot/attempt/install.h"
#include "ray/reach.h"

static const usec_t PROBE_LIMIT = 30 * USEC_SEC;
static const usec_t START_LIMIT = 240 * USEC_SEC; /* `ray start` on a machine that is busy */
static const usec_t TOKEN_LIMIT = 30 * USEC_SEC;
static const usec_t DASHBOARD_WAIT = 60 * USEC_SEC; /* after `ray start --head`, until it listens */
enum { LABELS_MAX = 4096 };

/* ---- what is declared to Ray ---- */

double nodes_declared_gpus(const struct noderun *nr)
{
    const struct nodespec *s = &nr->row->spec;
    return s->gpu_count >= 0 ? (double)s->gpu_count : (double)nr->row->facts.gpus;
}

double nodes_declared_cpus(const struct noderun *nr)
{
    const struct nodespec *s = &nr->row->spec;
    if (s->cpu_count >= 0)
        return (double)s->cpu_count;
    double least = (double)nr->nodes->p.settings->cpus_per_gpu * nodes_declared_gpus(nr);
    return nr->row->facts.cpus > least ? nr->row->facts.cpus : least;
}

/* ---- turns ---- */

static size_t count_probes(const struct nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += ns->v[i]->op == OP_PROBE || ns->v[i]->check_probe || ns->v[i]->look;
    return n;
}

static size_t count_joins(const struct nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += ns->v[i]->op == OP_START || ns->v[i]->op == OP_TOKEN ||
             ns->v[i]->row->step == NODE_STEP_JOIN;
    return n;
}

static bool may_probe(const struct nodes *ns)
{
    return count_probes(ns) < (size_t)ns->p.settings->looks;
}

/* ---- probe ---- */

static void take_findings(struct noderun *nr, const struct probe_result *r)
{
    memcpy(nr->findings, r->findings, sizeof(nr->findings));
    nr->n_findings = r->n_findings;
    nr->found_at = clock_wall();
}

static bool is_about_ssh(const char *code)
{
    return str_starts(code, "ssh_") || !strcmp(code, "no_ssh_client") ||
           !strcmp(code, "host_key_changed");
}

static void take_key(struct noderun *nr, const char *key)
{
    char text[160];
    if (!*key || !strcmp(nr->row->host_key, key))
        return;
    text_copy(nr->row->host_key, key);
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("key", key)));
    nodes_tell(nr, "node_key_pinned", "node_key_pinned", text);
}

static void take_probe(struct noderun *nr, const struct probe_result *r)
{
    take_findings(nr, r);
    take_key(nr, r->host_key);
    if (r->n_findings && is_about_ssh(r->findings[0].code))
        return;
    nr->row->facts = r->facts;
    nr->row->facts.at = clock_wall();
    nr->gpus = nodes_declared_gpus(nr);
    nr->cpus = nodes_declared_cpus(nr);
    nr->nodes->table_changed = true;
}

/* gpu_count promises more than a machine with a driver shows. */
static void compare_gpus(struct noderun *nr, const struct probe_result *r)
{
    int64_t want = nr->row->spec.gpu_count;
    if (!r->has_nvidia || want <= r->facts.gpus || nr->n_findings == PROBE_FINDINGS_MAX)
        return;
    struct probe_finding *f = &nr->findings[nr->n_findings++];
    f->code = "gpu_trouble";
    message_write(f->text, sizeof(f->text),
                  MESSAGE_ARGS(MESSAGE_NUM("has", r->facts.gpus), MESSAGE_NUM("gpu_count", want)));
}

static void end_checks(struct noderun *nr)
{
    struct nodes_check *k;
    while ((k = nr->checks)) {
        nr->checks = k->next;
        k->cb(nr, k->arg);
        free(k);
    }
}

static void on_probed(const struct probe_result *r, void *arg)
{
    struct noderun *nr = arg;
    nr->op = OP_NONE;
    nr->probe = NULL;
    take_probe(nr, r);
    compare_gpus(nr, r);
    nodes_remedy_take_probe(nr);
    if (nr->n_findings) {
        const struct probe_finding *f = &nr->findings[0];
        nodes_fail(nr, f->code, f->text);
    } else {
        struct node_event e = {.kind = NODE_EV_PROBED};
        nodes_save(nr);
        (void)nodes_change(nr, &e, "argusd");
    }
    end_checks(nr);
    nodes_pass(nr->nodes);
}

static void fill_want(const struct noderun *nr, int *ports, size_t n_ports, struct probe_want *ret)
{
    const struct nodes *ns = nr->nodes;
    const struct settings *s = ns->p.settings;
    const char *version = cluster_ray_version(ns->p.cluster);
    const struct noderun *head = nodes_find(ns, "head");
    const char *python = head && !nr->row->is_head ? head->row->facts.python : "";
    *ret = (struct probe_want){
        .ray_bin = nr->row->spec.ray_bin,
        .ray_version = nr->row->is_head || !*version ? NULL : version,
        .python_version = *python ? python : NULL,
        .shared_root = s->shared_root,
        .root_mark = cluster_root_is_ok(ns->p.cluster) ? cluster_root_mark(ns->p.cluster) : NULL,
        .ports = ports,
        .n_ports = n_ports,
        .node_ip = *nr->row->address ? nr->row->address : NULL,
        .temp_dir = s->ray_temp_dir,
        .min_disk_bytes = s->min_disk_bytes,
        .min_shm_bytes = s->min_shm_bytes,
        .max_skew = s->max_skew,
        .now = clock_wall(),
        .owner = ns->p.instance,
        .node = nr->row->spec.name};
}

static struct probe *start_probe(struct noderun *nr, probe_f cb)
{
    int ports[PORTS_COUNT];
    struct probe_want want;
    struct ssh_target t;
    bool head = nr->row->is_head;
    size_t n = ports_needed(&nr->nodes->p.settings->ports, nr->row->place, head, ports);
    fill_want(nr, ports, n, &want);
    nodes_target(nr, &t);
    return probe_start(nr->nodes->p.loop, &t, &want, PROBE_LIMIT, cb, nr);
}

/* The address under which Ray will know it: the host itself, or what its name means here. Behind
 * a jump host or an alias of ssh the machine finds out by itself. */
static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct noderun *nr = req->data;
    free(req);
    if (nr) {
        nr->resolving = NULL;
        nr->op = OP_NONE;
        char text[64] = "";
        if (status == 0)
            (void)getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof(text), NULL, 0,
                              NI_NUMERICHOST); /* "" = it is not known */
        text_copy(nr->row->address, text);
        nr->op = OP_PROBE;
        nr->probe = start_probe(nr, on_probed);
    }
    uv_freeaddrinfo(list);
}

static bool resolve(struct noderun *nr)
{
    static const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    const struct nodespec *spec = &nr->row->spec;
    bool literal = reach_is_address(spec->host);
    if (nr->row->is_head)
        return false; /* argus.yaml says it */
    if (literal || spec->proxy_jump) {
        if (literal)
            text_copy(nr->row->address, spec->host);
        return false;
    }
    uv_getaddrinfo_t *req = xcalloc(1, sizeof(*req));
    req->data = nr;
    if (uv_getaddrinfo(nr->nodes->p.loop, req, on_resolved, spec->host, NULL, &hints) < 0) {
        free(req);
        return false;
    }
    nr->resolving = req;
    return true;
}

static void begin_probe(struct noderun *nr)
{
    nr->op = OP_PROBE;
    if (!resolve(nr))
        nr->probe = start_probe(nr, on_probed);
}

/* A probe that somebody asked for, of a node that is not to be probed now anyway. */
static void nodes_join_on_checked(const struct probe_result *r, void *arg)
{
    struct noderun *nr = arg;
    nr->check_probe = NULL;
    take_probe(nr, r);
    compare_gpus(nr, r);
    nodes_save(nr);
    end_checks(nr);
    nodes_pass(nr->nodes);
}

bool nodes_check_begin(struct noderun *nr)
{
    bool probed_anyway =
        nr->op == OP_PROBE || (node_act(nr->row) == NODE_ACT_PROBE && !nodes_remedy_keeps_out(nr));
    if (!nr->checks || nr->check_probe || probed_anyway || !may_probe(nr->nodes))
        return false;
    nr->check_probe = start_probe(nr, nodes_join_on_checked);
    return true;
}

/* ---- start ---- */

static const char *head_address(const struct nodes *ns)
{
    return str_or(ns->p.settings->head_host, cluster_head_address(ns->p.cluster));
}

/* Has this raylet joined our head? It may have when nobody but Ray vouched for the address. */
static bool is_at_head(const struct nodes *ns, const char *at)
{
    const char *const heads[] = {head_address(ns), cluster_head_ip(ns->p.cluster)};
    char want[300];
    for (size_t i = 0; i < array_len(heads); i++) {
        text_printf(want, "%s:%d", heads[i], (int)ns->p.settings->head_port);
        if (!strcmp(at, want))
            return true;
    }
    return false;
}

static void lost_session(struct noderun *nr, const char *text)
{
    struct node_event e = {.kind = NODE_EV_SESSION, .code = "raylet_of_another", .text = text};
    (void)nodes_change(nr, &e, "argusd");
}

/* By its NodeSpec's host: then whatever runs there moves it nowhere else. */
static bool knows_address(const struct noderun *nr)
{
    return *nr->row->address && !nr->row->is_head && !nr->row->spec.proxy_jump;
}

static void took(struct noderun *nr, const struct raylet_started *r)
{
    const struct nodes *ns = nr->nodes;
    nr->adopted = r->adopted;
    if (r->adopted) /* it is alive, whatever was believed */
        nr->lost_id[0] = 0;
    if (!nr->row->is_head && r->adopted && *r->facts.address && !is_at_head(ns, r->facts.address)) {
        lost_session(nr, "{}");
        return;
    }
    if (*r->facts.node_ip && !knows_address(nr))
        text_copy(nr->row->address, r->facts.node_ip);
    struct node_event e = {.kind = NODE_EV_STARTED, .session = cluster_session(ns->p.cluster)};
    (void)nodes_change(nr, &e, "argusd");
    if (r->ray_took)
        log_info("node", "ray start took %llu ms node=%s",
                 (unsigned long long)(r->ray_took / USEC_MS), nr->row->spec.name);
    cluster_poke(ns->p.cluster);
}

static void on_started(const struct raylet_started *r, void *arg)
{
    struct noderun *nr = arg;
    nr->op = OP_NONE;
    nr->call = NULL;
    if (r->end.outcome == RAYLET_OK)
        took(nr, r);
    else
        nodes_fail_end(nr, &r->end);
    nodes_pass(nr->nodes);
}

/* The pools that Ray takes as labels; the registry has them all. */
static void fill_labels(const struct noderun *nr, struct buf *out)
{
    const struct strv *all = &nr->row->spec.labels;
    const char **fit = xcalloc(all->n ? all->n : 1, sizeof(*fit));
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct buf trial = BUF_INIT(LABELS_MAX);
        const char *one[] = {all->v[i]};
        if (raylet_labels(nr->row->spec.name, one, 1, &trial, NULL) == 0 && n < 16)
            fit[n++] = all->v[i];
        buf_release(&trial);
    }
    if (raylet_labels(nr->row->spec.name, fit, n, out, NULL) < 0)
        buf_reset(out); /* the name itself is none that Ray takes: the resource names it */
    free(fit);
}

static char *resources_of(const struct noderun *nr)
{
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *own = xasprintf("argus_node_%s", nr->row->spec.name);
    jout_open(&j, NULL, '{');
    jout_int(&j, "worker_node", 100);
    jout_int(&j, own, 1000);
    share_put_resources(&j);
    jout_close(&j, '}');
    return buf_take(&out);
}

/* Ray Serve's proxies let nobody through to argusd's routes without its key, and a dead one is
 * missed within seconds. What is not found on this machine's root concerns Serve alone. */
static void fill_serve_env(const struct settings *s, struct pairs *env)
{
    _cleanup_(freep) char *lib = fsroot_lib_dir(s->shared_root);
    const char *given = pairs_find(env, "PYTHONPATH");
    _cleanup_(freep) char *path = given ? xasprintf("%s:%s", given, lib) : xstrdup(lib);
    pairs_set(env, "PYTHONPATH", path);
    pairs_set(env, "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "argus_gate:middlewares");
    pairs_set(env, "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S", "2");
    pairs_set(env, "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S", "2");
}

static void fill_env(const struct noderun *nr, struct pairs *env)
{
    const struct nodes *ns = nr->nodes;
    pairs_copy(env, &nr->row->spec.env);
    pairs_set(env, "RAY_USAGE_STATS_ENABLED", "0");
    /* On a busy machine Ray gives itself up after 30 s, the dashboard without telling anybody. */
    pairs_set(env, "RAY_raylet_start_wait_time_s", "120");
    pairs_set(env, "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "180");
    fill_serve_env(ns->p.settings, env);
    if (nr->row->is_head)
        ports_head_env(&ns->p.settings->ports, env);
    if (ns->token) {
        pairs_set(env, "RAY_AUTH_MODE", "token");
        pairs_set(env, "RAY_AUTH_TOKEN_PATH", nr->token_path);
    }
}

/* Where Ray's dashboard is to listen: where ray.address asks for it. */
static void fill_head_ports(const struct settings *s, struct pairs *ports)
{
    bool loopback = strstr(s->ray_address, "//127.") || strstr(s->ray_address, "//localhost");
    pairs_set(ports, "dashboard-host", loopback ? "127.0.0.1" : s->head_host);
}

/* Something runs in the cluster: ours, a job of others, or what Ray counts besides. */
static bool is_used(const struct nodes *ns)
{
    size_t n;
    const struct cluster_node *k = cluster_nodes(ns->p.cluster, &n);
    bool used = sched_lease_count(ns->p.sched) > 0 ||
                foreign_count_live(cluster_foreign(ns->p.cluster)) > 0;
    for (size_t i = 0; i < ns->n; i++)
        used |= ns->v[i]->foreign_gpus > 0 || ns->v[i]->foreign_cpus > 0;
    for (size_t i = 0; i < n; i++)
        used |= k[i].is_alive && nodes_foreign(ns, &k[i]) > 0;
    return used;
}

static void start_raylet(struct noderun *nr)
{
    struct nodes *ns = nr->nodes;
    const struct settings *s = ns->p.settings;
    bool head = nr->row->is_head;
    struct ssh_target t;
    struct pairs ports = {0}, env = {0};
    struct buf labels = BUF_INIT(LABELS_MAX);
    _cleanup_(freep) char *address = xasprintf("%s:%d", head_address(ns), (int)s->head_port);
    _cleanup_(freep) char *resources = head ? NULL : resources_of(nr);
    const char *ray_bin = *nr->row->facts.ray_bin ? nr->row->facts.ray_bin : nr->row->spec.ray_bin;
    ports_options(&s->ports, nr->row->place, head, &ports);
    fill_env(nr, &env);
    if (head)
        fill_head_ports(s, &ports);
    else
        fill_labels(nr, &labels);
    struct raylet_spec spec = {.owner = ns->p.instance,
                               .node = nr->row->spec.name,
                               .ray_bin = ray_bin,
                               .head = head,
                               .spare = is_used(ns),
                               .dashboard_wait = DASHBOARD_WAIT,
                               .address = head ? NULL : address,
                               .node_ip = *nr->row->address ? nr->row->address : NULL,
                               .cpus = head ? 0 : nodes_declared_cpus(nr),
                               .gpus = head ? 0 : (int)nodes_declared_gpus(nr),
                               .resources_json = resources,
                               .labels = labels.len ? buf_str(&labels) : NULL,
                               .temp_dir = s->ray_temp_dir,
                               .object_store_bytes = s->object_store_bytes,
                               .ports = &ports,
                               .env = &env};
    nodes_target(nr, &t);
    nr->op = OP_START;
    nr->call = raylet_start(ns->p.loop, &t, &spec, START_LIMIT, on_started, nr);
    buf_release(&labels);
    pairs_release(&ports);
    pairs_release(&env);
}

/* True while Ray is away, or only Ray says where its head is: that could be anybody's cluster. */
static bool waits_for_head(struct noderun *nr)
{
    const struct cluster *c = nr->nodes->p.cluster;
    struct node_event e = {.kind = NODE_EV_BLOCKED, .code = "waiting_for_head", .text = "{}"};
    const char *told = cluster_head_ip(c); /* "": Ray lists no head, or one without an address */
    char text[160];
    if (nr->row->is_head || (cluster_is_up(c) && *head_address(nr->nodes)))
        return false;
    if (cluster_is_up(c) && *told) {
        message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("ip", told)));
        e.code = "head_only_ray_says";
        e.text = text;
    }
    (void)nodes_change(nr, &e, "argusd"); /* once */
    nr->act_batch = 0;
    return true;
}

/* ---- Ray's token goes first, by ssh and into a file that only its user reads ---- */

static void on_token(const struct ssh_result *r, void *arg)
{
    struct noderun *nr = arg;
    nr->op = OP_NONE;
    nr->ssh = NULL;
    if (r->trouble != SSH_OK) {
        nodes_fail(nr, ssh_trouble_to_string(r->trouble), r->text);
    } else if (r->status != 0 || *r->out != '/' || r->out_len >= sizeof(nr->token_path)) {
        nodes_fail(nr, "token_unwritable", "{}");
    } else {
        text_printf(nr->token_path, "%.*s", (int)strcspn(r->out, "\n"), r->out);
        if (!waits_for_head(nr)) {
            start_raylet(nr);
            return;
        }
    }
    nodes_pass(nr->nodes);
}

static void begin_start(struct noderun *nr)
{
    struct ssh_target t;
    const char *const words[] = {nr->nodes->p.instance, nr->nodes->token, NULL};
    if (!nr->nodes->token) {
        start_raylet(nr);
        return;
    }
    nodes_target(nr, &t);
    nr->op = OP_TOKEN;
    nr->ssh = raylet_put_token(nr->nodes->p.loop, &t, words, TOKEN_LIMIT, on_token, nr);
}

static void try_start(struct noderun *nr)
{
    struct nodes *ns = nr->nodes;
    if (waits_for_head(nr))
        return;
    if (count_joins(ns) < (size_t)ns->p.settings->joins) {
        begin_start(nr);
    } else {
        struct node_event e = {.kind = NODE_EV_BLOCKED, .code = "waiting_for_turn", .text = "{}"};
        (void)nodes_change(nr, &e, "argusd");
        nr->act_batch = 0;
    }
}

/* ---- what is due ---- */

/* Jobs may run on it, others' too, and nobody can see them now: that is no reason to end them. A
 * head whose dashboard never came up was none (dashboard_wait). */
static void tell_silent_head(struct noderun *nr)
{
    struct node_event e = {.kind = NODE_EV_SILENT, .code = "dashboard_silent", .text = "{}"};
    (void)nodes_change(nr, &e, "argusd"); /* once */
}

static void watch_join(struct noderun *nr, usec_t now)
{
    usec_t patience = node_patience(nr->row);
    if (!nr->row->is_head && !cluster_is_up(nr->nodes->p.cluster))
        nr->step_since = now; /* nobody could have seen it */
    if (!patience || now - nr->step_since < patience)
        return;
    if (nr->row->is_head)
        tell_silent_head(nr);
    else if (!nodes_is_busy(nr) && nr->adopted)
        lost_session(nr, "{\"unlisted\":1}");
    else
        nodes_fail(nr, "join_timeout", "{}");
}

static void nodes_join_watch(struct noderun *nr, usec_t now)
{
    if (nr->row->state == NODE_DRAINING) {
        nodes_watch_drain(nr);
    } else if (nr->row->step == NODE_STEP_JOIN) {
        watch_join(nr, now);
    }
}

void nodes_act(struct noderun *nr, usec_t now)
{
    if (nr->op || nr->act_batch)
        return;
    if (nodes_check_begin(nr))
        return;
    enum node_act act = node_act(nr->row);
    if (act != NODE_ACT_WATCH && act != NODE_ACT_FORGET && now < nr->act_after)
        return;
    switch (act) {
    case NODE_ACT_PROBE:
        if (nodes_remedy_lets_join(nr) && may_probe(nr->nodes))
            begin_probe(nr);
        break;
    case NODE_ACT_FENCE:
        nodes_begin_fence(nr);
        break;
    case NODE_ACT_START:
        if (!nr->heal.call) /* it may be removing what Ray would use again */
            try_start(nr);
        break;
    case NODE_ACT_STOP:
        nodes_begin_stop(nr);
        break;
    case NODE_ACT_FORGET:
        nodes_forget(nr);
        break;
    case NODE_ACT_WATCH:
        nodes_join_watch(nr, now);
        break;
    case NODE_ACT_NONE:
        break;
    }
}

void nodes_act_cancel(struct noderun *nr)
{
    probe_free(nr->probe);
    probe_free(nr->check_probe);
    raylet_call_free(nr->call);
    ssh_call_free(nr->ssh);
    if (nr->resolving) {
        nr->resolving->data = NULL;
        (void)uv_cancel((uv_req_t *)nr->resolving); /* or it ends by itself */
    }
    nr->probe = nr->check_probe = NULL;
    nr->call = NULL;
    nr->ssh = NULL;
    nr->resolving = NULL;
    nr->op = OP_NONE;
}
