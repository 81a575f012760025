/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - the machines: what is free on each, who is on it and whether it is well; register,
 * check, drain and forget them. The server says who is to reach which port of a machine; here that
 * is only written down, and nothing but addresses gets into a rule. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argus/cli/listing.h"
#include "argus/job/jobview.h"
#include "argus/job/netcheck.h"
#include "argus/job/submission.h"
#include "argus/machine/drainview.h"
#include "argus/machine/firewall.h"
#include "argus/machine/nodecall.h"
#include "argus/machine/nodepage.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"

static const struct opt LS_OPTS[] = {LISTING_OPTS};

static void node_name(struct table *t, const json_t *node, const struct when *w)
{
    bool is_head = json_get_bool(node, "is_head", false);
    (void)w;
    table_addf(t, STYLE_PLAIN, "%s%s", member_str(node, "name"), is_head ? " (head)" : "");
}

static void node_state(struct table *t, const json_t *node, const struct when *w)
{
    _cleanup_(freep) char *state = jobview_state(node);
    (void)w;
    table_add(t, str_starts(state, "online") ? STYLE_GREEN : STYLE_YELLOW, state);
}

/* free/used/bad, as the title says. */
static void node_gpus(struct table *t, const json_t *node, const struct when *w)
{
    const json_t *gpus = json_get_object(node, "gpus");
    (void)w;
    if (!gpus)
        table_add(t, STYLE_PLAIN, NULL);
    else
        table_addf(t, STYLE_PLAIN, "%g/%g/%g", json_get_real(gpus, "free", 0),
                   json_get_real(gpus, "used", 0), json_get_real(gpus, "bad", 0));
}

static void node_jobs(struct table *t, const json_t *node, const struct when *w)
{
    _cleanup_(buf_release) struct buf names = BUF_INIT(4096);
    size_t i;
    json_t *v;
    (void)w;
    json_array_foreach (json_get_array(node, "jobs"), i, v)
        if (json_is_string(v))
            (void)buf_addf(&names, "%s%s", i ? "," : "", json_string_value(v)); /* the first ones */
    int64_t hidden = json_get_int(node, "jobs_hidden", 0);
    if (hidden > 0)
        (void)buf_addf(&names, "%s+%" PRId64, names.len ? "," : "", hidden); /* cut: fine */
    table_add(t, STYLE_PLAIN, buf_str(&names));
}

static void node_reason(struct table *t, const json_t *node, const struct when *w)
{
    _cleanup_(freep) char *reason = jobview_reason(node);
    (void)w;
    table_add(t, STYLE_PLAIN, *reason ? reason : json_get_str(node, "reason", ""));
}

static const struct column NODES[] = {
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 12, .draw = node_name},
    {.title = "say_pool", .flags = COLUMN_FLEX, .least = 6, .rank = 2, .key = "pool"},
    {.title = "say_state", .flags = COLUMN_FLEX, .least = 8, .draw = node_state},
    {.title = "say_gpus", .flags = COLUMN_RIGHT, .draw = node_gpus},
    {.title = "say_jobs", .flags = COLUMN_FLEX, .least = 8, .rank = 1, .draw = node_jobs},
    {.title = "say_health", .flags = COLUMN_FLEX, .least = 6, .rank = 4, .key = "health"},
    {.title = "say_since", .rank = 3, .key = "since", .as = CELL_TIME},
    {.title = "say_ip", .flags = COLUMN_WIDE, .key = "ip"},
    {.title = "say_reason", .flags = COLUMN_ROOM, .draw = node_reason},
};

static const usec_t NODE_ADD_PATIENCE = 120 * USEC_SEC;

struct node_add_opts {
    const char *file, *host, *user, *identity_file, *proxy_jump, *ray_bin, *image, *pool, *gpu_type;
    int64_t port, gpus, cpus;
    struct strv env;
    bool wait;
    usec_t timeout;
};

#define NODE_ADD_ROW(type_, member)                                                                \
    .type = (type_), .offset = offsetof(struct node_add_opts, member)

static const struct opt NODE_ADD_OPTS[] = {
    {.letter = 'f',
     .name = "file",
     NODE_ADD_ROW(OPT_TEXT, file),
     .arg = "FILE",
     .doc = "NodeSpecs in YAML"},
    {.name = "host",
     NODE_ADD_ROW(OPT_TEXT, host),
     .arg = "HOST",
     .doc = "address or name, as argusd sees it"},
    {.name = "user",
     NODE_ADD_ROW(OPT_TEXT, user),
     .arg = "NAME",
     .doc = "user that ssh logs in as"},
    {.name = "port", NODE_ADD_ROW(OPT_NUMBER, port), .arg = "N", .doc = "port of its sshd"},
    {.name = "identity-file",
     NODE_ADD_ROW(OPT_TEXT, identity_file),
     .arg = "FILE",
     .doc = "private key, on argusd's machine"},
    {.name = "proxy-jump",
     NODE_ADD_ROW(OPT_TEXT, proxy_jump),
     .arg = "HOST",
     .doc = "host through which ssh reaches the machine"},
    {.name = "pool",
     NODE_ADD_ROW(OPT_TEXT, pool),
     .arg = "A,B",
     .doc = "pools that the machine is in, its labels"},
    {.name = "gpus",
     NODE_ADD_ROW(OPT_NUMBER, gpus),
     .arg = "N",
     .doc = "how many GPUs it has, if not what nvidia-smi shows"},
    {.name = "gpu-type",
     NODE_ADD_ROW(OPT_TEXT, gpu_type),
     .arg = "TEXT",
     .doc = "type of its GPUs, as tables show it"},
    {.name = "cpus",
     NODE_ADD_ROW(OPT_NUMBER, cpus),
     .arg = "N",
     .doc = "CPUs that are declared to Ray"},
    {.name = "ray-bin",
     NODE_ADD_ROW(OPT_TEXT, ray_bin),
     .arg = "PATH",
     .doc = "where 'ray' lies on the machine"},
    {.name = "image",
     NODE_ADD_ROW(OPT_TEXT, image),
     .arg = "TEXT",
     .doc = "a note: nothing is pulled"},
    {.name = "env",
     NODE_ADD_ROW(OPT_LIST, env),
     .arg = "K=V",
     .doc = "environment variable for all that runs on the machine"},
    {.name = "wait",
     NODE_ADD_ROW(OPT_FLAG, wait),
     .doc = "wait until it is online, and say what is in the way"},
    {.name = "timeout",
     NODE_ADD_ROW(OPT_SPAN, timeout),
     .arg = "SPAN",
     .doc = "how long --wait waits [2m]"},
};

static void node_add_put(json_t *o, const char *key, const char *value)
{
    if (value)
        (void)json_object_set_new(o, key, json_string(value)); /* fails only for lack of memory */
}

static void node_add_put_number(json_t *o, const char *key, int64_t value)
{
    if (value)
        (void)json_object_set_new(o, key, json_integer(value)); /* as above */
}

/* The options as a NodeSpec. */
static int node_add_compose(const struct node_add_opts *o,
                            const char *name,
                            struct submission *s,
                            struct err *err)
{
    _cleanup_(json_unrefp) json_t *spec = json_object();
    json_t *env = json_object();
    node_add_put(spec, "name", name);
    node_add_put(spec, "host", o->host);
    node_add_put(spec, "user", o->user);
    node_add_put(spec, "identity_file", o->identity_file);
    node_add_put(spec, "proxy_jump", o->proxy_jump);
    node_add_put(spec, "labels", o->pool);
    node_add_put(spec, "gpu_type", o->gpu_type);
    node_add_put(spec, "ray_bin", o->ray_bin);
    node_add_put(spec, "image", o->image);
    node_add_put_number(spec, "port", o->port);
    node_add_put_number(spec, "gpu_count", o->gpus);
    node_add_put_number(spec, "cpu_count", o->cpus);
    (void)json_object_set_new(spec, "env", env); /* as above */
    for (size_t i = 0; i < o->env.n; i++) {
        const char *eq = strchr(o->env.v[i], '=');
        if (!eq)
            return message_refuse(err, ERR_USAGE, "cli_env_form",
                                  MESSAGE_ARGS(MESSAGE_STR("text", o->env.v[i])));
        _cleanup_(freep) char *key = xstrndup(o->env.v[i], (size_t)(eq - o->env.v[i]));
        node_add_put(env, key, eq + 1);
    }
    char *text = json_dumps(spec, JSON_INDENT(1));
    int r = submission_compose(s, "the options", text, err);
    free(text);
    return r;
}

static int node_add_read_specs(const struct node_add_opts *o,
                               const struct strv *args,
                               struct submission *s,
                               struct err *err)
{
    static const struct submission_wish no_wish;
    const char *first = args->n ? args->v[0] : NULL;
    const char *file = o->file ? o->file : first && !o->host ? first : NULL;
    if (o->file && (o->host || first))
        return message_refuse(err, ERR_USAGE, "cli_node_not_both", MESSAGE_NO_ARGS);
    if (!file && !first)
        return message_refuse(err, ERR_USAGE, "cli_node_give", MESSAGE_NO_ARGS);
    if (!o->file && file && access(file, R_OK) < 0 && !str_eq(file, "-"))
        return message_refuse(err, ERR_USAGE, "cli_node_where",
                              MESSAGE_ARGS(MESSAGE_STR("name", file)));
    return file ? submission_read(s, file, &no_wish, err) : node_add_compose(o, first, s, err);
}

static int node_add_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_add_opts *o = opts;
    _cleanup_(submission_release) struct submission s = {0};
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(strv_release) struct strv names = {0};
    size_t i;
    json_t *node;
    int r = node_add_read_specs(o, args, &s, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        r = submission_post(&s, cli, "/v1/nodes", &answer, err);
    if (r < 0)
        return r;
    json_array_foreach (json_get_array(answer, "nodes"), i, node) {
        strv_add(&names, json_get_str(node, "name", ""));
        if (!o->wait)
            nodecall_print(cli, node);
    }
    if (o->wait && names.n)
        return nodecall_wait(cli, &names, NODE_GOAL_ONLINE,
                             o->timeout ? o->timeout : NODE_ADD_PATIENCE, err);
    cli_talk(cli, "next: argus node ls --watch");
    return 0;
}

struct node_check_opts {
    bool accept_key, net, anew, no_wait;
    const char *pool, *python;
    int output;
};

#define NODE_CHECK_ROW(type_, member)                                                              \
    .type = (type_), .offset = offsetof(struct node_check_opts, member)
static const struct opt NODE_CHECK_OPTS[] = {
    {.name = "accept-key",
     NODE_CHECK_ROW(OPT_FLAG, accept_key),
     .doc = "forget the pinned host key: the machine was made anew, and I know it"},
    {.name = "net", NODE_CHECK_ROW(OPT_FLAG, net), .doc = "check the network between machines"},
    {.name = "pool",
     NODE_CHECK_ROW(OPT_TEXT, pool),
     .arg = "POOL",
     .doc = "with --net: the machines of this pool"},
    {.name = "baseline",
     NODE_CHECK_ROW(OPT_FLAG, anew),
     .doc = "with --net: what is measured becomes the baseline, in place of what there is"},
    {.name = "python",
     NODE_CHECK_ROW(OPT_TEXT, python),
     .arg = "PATH",
     .doc = "with --net: the Python with torch on the machines [python3]"},
    {.name = "no-wait",
     NODE_CHECK_ROW(OPT_FLAG, no_wait),
     .doc = "with --net: print the id of the job, and return"},
    OPT_OUTPUT(struct node_check_opts),
};

/* Which options go together. */
static int node_check_refuse(const struct node_check_opts *o, size_t n, struct err *err)
{
    if (o->net && o->accept_key)
        return message_refuse(err, ERR_USAGE, "cli_accept_net", MESSAGE_NO_ARGS);
    if (!o->net && (o->pool || o->anew || o->python || o->no_wait))
        return message_refuse(err, ERR_USAGE, "cli_needs_net", MESSAGE_NO_ARGS);
    return o->net || n ? 0 : message_refuse(err, ERR_USAGE, "cli_which_machines", MESSAGE_NO_ARGS);
}

static int node_check_net(struct cli *cli,
                          const struct node_check_opts *o,
                          const struct strv *names,
                          struct err *err)
{
    const struct netcheck_wish wish = {.nodes = names,
                                       .pool = o->pool,
                                       .python = o->python,
                                       .anew = o->anew,
                                       .no_wait = o->no_wait,
                                       .output = o->output};
    return netcheck_ask(cli, &wish, err);
}

static int node_check_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_check_opts *o = opts;
    size_t found = 0;
    int r = node_check_refuse(o, args->n, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0 && o->net)
        return node_check_net(cli, o, args, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *node = NULL;
        json_t *body = o->accept_key ? json_pack("{s:b}", "accept_key", 1) : NULL;
        r = nodecall_post(cli, args->v[i], ":check", body, &node, err);
        if (r < 0)
            break;
        nodecall_print(cli, node);
        size_t n = nodecall_print_findings(cli, node);
        if (!n)
            (void)fprintf(cli->out, "  nothing stands in its way\n");
        found += n;
    }
    return r < 0   ? r
           : found ? message_refuse(err, ERR_REFUSED, "cli_in_the_way", MESSAGE_NO_ARGS)
                   : 0;
}

/* The body with this member if it is on: an older argusd takes no word that it does not know. */
static json_t *node_with(json_t *body, const char *key, bool is_on)
{
    if (!is_on)
        return body;
    body = body ? body : json_object();
    (void)json_object_set_new(body, key, json_true()); /* fails for lack of memory only */
    return body;
}

struct node_drain_opts {
    usec_t deadline, timeout;
    int then, output;
    bool wait, dry_run, stop_foreign;
};

static const char *const NODE_DRAIN_THEN[] = {"wait", "stop", "restart", NULL};

static const struct opt NODE_DRAIN_OPTS[] = {
    {.name = "deadline",
     .type = OPT_SPAN,
     .offset = offsetof(struct node_drain_opts, deadline),
     .arg = "SPAN",
     .doc = "how long the jobs there may go on, such as 2h; without it, to their end"},
    {.name = "then",
     .type = OPT_CHOICE,
     .offset = offsetof(struct node_drain_opts, then),
     .arg = "WHAT",
     .doc = "what becomes of jobs at the deadline: wait on, stop them, or restart them on other "
            "machines",
     .choices = NODE_DRAIN_THEN},
    {.name = "stop-foreign",
     .type = OPT_FLAG,
     .offset = offsetof(struct node_drain_opts, stop_foreign),
     .doc = "jobs that Argus did not submit are stopped with the node, at the deadline if there is "
            "one; otherwise they are waited for, however long"},
    {.name = "wait",
     .type = OPT_FLAG,
     .offset = offsetof(struct node_drain_opts, wait),
     .doc = "wait until it is offline; Ctrl-C ends only the waiting"},
    {.name = "timeout",
     .type = OPT_SPAN,
     .offset = offsetof(struct node_drain_opts, timeout),
     .arg = "SPAN",
     .doc = "how long --wait waits; for ever if not given"},
    {.name = "dry-run",
     .type = OPT_FLAG,
     .offset = offsetof(struct node_drain_opts, dry_run),
     .doc = "say what it would do to the jobs there, and do nothing"},
    OPT_OUTPUT(struct node_drain_opts),
};

static int node_drain_drain(struct cli *cli,
                            const struct node_drain_opts *o,
                            const char *name,
                            struct err *err)
{
    _cleanup_(json_unrefp) json_t *node = NULL;
    json_t *body = json_pack("{s:s}", "then", NODE_DRAIN_THEN[o->then]);
    body = node_with(body, "stop_foreign", o->stop_foreign);
    if (o->deadline)
        (void)json_object_set_new(
            body, "deadline",
            json_integer((json_int_t)(o->deadline / USEC_SEC))); /* fails for lack of memory only */
    int r = nodecall_post(cli, name, o->dry_run ? ":drain?dry_run=1" : ":drain", body, &node, err);
    if (r >= 0 && o->dry_run)
        drainview_print(cli, node, o->output);
    else if (r >= 0 && o->output >= OUTPUT_JSON)
        cli_emit(cli, node, o->output);
    else if (r >= 0 && !o->wait)
        nodecall_print(cli, node);
    return r;
}

static int node_drain_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_drain_opts *o = opts;
    if (o->then && !o->deadline)
        return message_refuse(err, ERR_USAGE, "cli_then_deadline",
                              MESSAGE_ARGS(MESSAGE_STR("then", NODE_DRAIN_THEN[o->then])));
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++)
        r = node_drain_drain(cli, o, args->v[i], err);
    return r < 0 || !o->wait || o->dry_run
               ? r
               : nodecall_wait(cli, args, NODE_GOAL_OFFLINE, o->timeout, err);
}

static const usec_t NODE_UNDRAIN_PATIENCE = 120 * USEC_SEC;

struct node_undrain_opts {
    bool wait;
};

static const struct opt NODE_UNDRAIN_OPTS[] = {
    {.name = "wait",
     .type = OPT_FLAG,
     .offset = offsetof(struct node_undrain_opts, wait),
     .doc = "wait until it is online, 2m at most"},
};

static int node_undrain_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_undrain_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *node = NULL;
        r = nodecall_post(cli, args->v[i], ":undrain", NULL, &node, err);
        if (r >= 0 && !o->wait)
            nodecall_print(cli, node);
    }
    return r < 0 || !o->wait
               ? r
               : nodecall_wait(cli, args, NODE_GOAL_ONLINE, NODE_UNDRAIN_PATIENCE, err);
}

static const usec_t NODE_RM_PATIENCE = 120 * USEC_SEC;

struct node_rm_opts {
    bool force, stop_foreign;
};

static const struct opt NODE_RM_OPTS[] = {
    {.name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct node_rm_opts, force),
     .doc = "though jobs run there, and though the machine does not answer"},
    {.name = "stop-foreign",
     .type = OPT_FLAG,
     .offset = offsetof(struct node_rm_opts, stop_foreign),
     .doc = "jobs that Argus did not submit are stopped with the node"},
};

static int node_rm_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_rm_opts *o = opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *node = NULL;
        json_t *body =
            node_with(node_with(NULL, "force", o->force), "stop_foreign", o->stop_foreign);
        r = nodecall_post(cli, args->v[i], ":remove", body, &node, err);
    }
    return r < 0 ? r : nodecall_wait(cli, args, NODE_GOAL_GONE, NODE_RM_PATIENCE, err);
}

struct node_firewall_opts {
    int format;
    const char *argusd, *prometheus;
};

static const char *const NODE_FIREWALL_FORMATS[] = {"plain", "iptables", "nft", "json", NULL};
enum format {
    NODE_FIREWALL_FORMAT_PLAIN,
    NODE_FIREWALL_FORMAT_IPTABLES,
    NODE_FIREWALL_FORMAT_NFT,
    NODE_FIREWALL_FORMAT_JSON
};

#define NODE_FIREWALL_AT(member) offsetof(struct node_firewall_opts, member)
static const struct opt NODE_FIREWALL_OPTS[] = {
    {.name = "format",
     .type = OPT_CHOICE,
     .offset = NODE_FIREWALL_AT(format),
     .arg = "FORMAT",
     .doc = "plain, iptables (commands for sh), nft (for nft -f -) or json",
     .choices = NODE_FIREWALL_FORMATS},
    {.name = "argusd",
     .type = OPT_TEXT,
     .offset = NODE_FIREWALL_AT(argusd),
     .arg = "ADDRESS",
     .doc = "argusd as the machine sees it, where that is not argusd's own address"},
    {.name = "prometheus",
     .type = OPT_TEXT,
     .offset = NODE_FIREWALL_AT(prometheus),
     .arg = "ADDRESS",
     .doc =
         "addresses that may read the metrics, with commas between them; networks as 10.0.0.0/24"},
};

static int node_firewall_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct node_firewall_opts *o = opts;
    static firewall_f *const writers[] = {
        [NODE_FIREWALL_FORMAT_PLAIN] = firewall_plain,
        [NODE_FIREWALL_FORMAT_IPTABLES] = firewall_iptables,
        [NODE_FIREWALL_FORMAT_NFT] = firewall_nft,
    };
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(buf_release) struct buf path = BUF_INIT(FIREWALL_MAX), out = BUF_INIT(FIREWALL_MAX);
    _cleanup_(freep) char *at = ask_path("/v1/nodes/{}/firewall", args->v[0]);
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    (void)buf_adds(&path, at); /* what does not fit is refused by the server */
    url_query(&path, "argusd", o->argusd);
    url_query(&path, "prometheus", o->prometheus);
    r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r < 0)
        return r;
    if (o->format == NODE_FIREWALL_FORMAT_JSON) {
        cli_emit(cli, answer, OUTPUT_JSON);
        return 0;
    }
    r = writers[o->format](answer, &out, err);
    if (r == 0)
        (void)fwrite(out.data, 1, out.len, cli->out); /* main() looks at stdout */
    return r;
}

static const struct command NODE_COMMANDS[] = {
    {
        .name = "node ls",
        .args = "",
        .summary = "list the machines",
        .text = "Lists the nodes of the Ray cluster: state, GPUs as free/used/bad, the jobs "
                "on each, health. The head carries no job. '+2' are two jobs that you may "
                "not see.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/nodes",
                .table = {.key = "nodes", COLUMNS(NODES), .none = "say_no_nodes"}},
    },
    {
        .name = "node add",
        .args = "NAME --host HOST | FILE",
        .most = 1,
        .summary = "register machines",
        .text = "argusd reaches them over ssh, looks what they are, and starts Ray there. "
                "What stands in the way is one sentence and what to do about it; once it is "
                "mended the machine joins by itself. The host key that is met first is "
                "pinned and shown: compare it.\n"
                "A file holds one NodeSpec or a list of them (argus-nodespec(5)).",
        .example = "argus node add node-7 --host 10.0.0.17 --pool a6000 --wait\tone machine\n"
                   "argus node add -f nodes.yaml\tmany",
        .opts = NODE_ADD_OPTS,
        .n_opts = array_len(NODE_ADD_OPTS),
        .opts_size = sizeof(struct node_add_opts),
        .run = node_add_run,
    },
    {
        .name = "node show",
        .args = "NODE",
        .least = 1,
        .most = 1,
        .summary = "show all about one machine",
        .text = "Shows its state, GPUs and versions, and its network as the last look over ssh "
                "saw it: the interface that holds the address Ray uses, InfiniBand or RoCE ports "
                "that jobs may use, and the NCCL and Gloo variables that follow for jobs there. A "
                "variable of the JobSpec goes before one of the node's env, that before one of "
                "argus.yaml, that before what was seen.",
        .example = "argus node show node-7\twhich interface and which HCAs",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/nodes/{}", .print = nodepage_print},
    },
    {
        .name = "node check",
        .args = "NODE… | --net [NODE… | --pool POOL]",
        .most = ARGS_ANY,
        .summary = "look at machines now, or at the network between them",
        .text = "argusd looks at the machine over ssh: Python, Ray, shared root, disk, "
                "shared memory, clock, ports, GPUs. Each thing in the way is one sentence "
                "and what to do about it (exit status 5).\n"
                "With --net a job measures torch's all-reduce (NCCL where each machine has a "
                "GPU, else Gloo) over each pair of 2 to 32 machines and over all of them; "
                "without names, all that take jobs. It waits until one GPU is free on each, is "
                "queued as any job, and ends within 30 minutes. A pair below 80 % of its "
                "baseline, a machine below 80 % of the median where there is no baseline, and one "
                "that is not reached are named (exit status 5). The first check that passes sets "
                "the baseline of each pair; 'argus node show' has the figures. A node added with "
                "check_net is measured so (with Gloo) by itself each time it joins, and takes no "
                "job before; a check that passes lets it in.",
        .example = "argus node check node-7\tafter something was mended\n"
                   "argus node check --net --pool a6000\tall pairs of a pool\n"
                   "argus node check --net node-1 node-7 --baseline\tthe cable is a new one",
        .opts = NODE_CHECK_OPTS,
        .n_opts = array_len(NODE_CHECK_OPTS),
        .opts_size = sizeof(struct node_check_opts),
        .run = node_check_run,
    },
    {
        .name = "node drain",
        .args = "NODE…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "let machines run empty",
        .text = "From now on no job starts there. When nothing runs on it any more, argusd "
                "ends its own Ray there and the machine is offline. Jobs that Argus did not "
                "submit are waited for, too, and 'argus node ls' names them. 'argus node "
                "undrain' takes it back.",
        .example = "argus node drain node-7\tjobs run to their end\n"
                   "argus node drain node-7 --dry-run --then stop --deadline 0s\twhat that would "
                   "cost\n"
                   "argus node drain node-7 --deadline 2h --then restart --wait\tat the latest in "
                   "two hours",
        .opts = NODE_DRAIN_OPTS,
        .n_opts = array_len(NODE_DRAIN_OPTS),
        .opts_size = sizeof(struct node_drain_opts),
        .run = node_drain_run,
    },
    {
        .name = "node undrain",
        .args = "NODE…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "take drained machines back",
        .text = "A machine that still drains takes jobs again at once; one that is offline "
                "already joins anew.",
        .example = "argus node undrain node-7 --wait\tand it is online again",
        .opts = NODE_UNDRAIN_OPTS,
        .n_opts = array_len(NODE_UNDRAIN_OPTS),
        .opts_size = sizeof(struct node_undrain_opts),
        .run = node_undrain_run,
    },
    {
        .name = "node rm",
        .args = "NODE…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "forget machines",
        .text = "argusd ends its own Ray there and forgets the machine and its host key. "
                "While jobs run on it, those of others too, this is refused: 'argus node drain' "
                "comes first.",
        .example = "argus node rm node-7\tit may be switched off",
        .opts = NODE_RM_OPTS,
        .n_opts = array_len(NODE_RM_OPTS),
        .opts_size = sizeof(struct node_rm_opts),
        .run = node_rm_run,
    },
    {
        .name = "node firewall",
        .args = "NODE",
        .least = 1,
        .most = 1,
        .summary = "print the packet filter rules of one machine",
        .text = "Prints who is to reach which port of a machine, with its own ports: argusd, "
                "the head, the other nodes, Prometheus. Others are kept out of these ports, "
                "and of no others; sshd is let in for argusd, and who else may is yours to "
                "say. Print it again when machines were added.",
        .example = "argus node firewall node-1 --prometheus 10.0.0.9\tto read\n"
                   "argus node firewall node-1 --format nft | ssh node-1 sudo nft -f -\tto apply",
        .opts = NODE_FIREWALL_OPTS,
        .n_opts = array_len(NODE_FIREWALL_OPTS),
        .opts_size = sizeof(struct node_firewall_opts),
        .run = node_firewall_run,
    },
};

NOUN(node, NODE_COMMANDS);
