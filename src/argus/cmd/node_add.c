/* SPDX-License-Identifier: Apache-2.0 */
/* node_add.c - register machines: one by options, or a file of them. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argus/nodecall.h"
#include "argus/submission.h"
#include "base/str.h"

static const usec_t PATIENCE = 120 * USEC_SEC;

struct add_opts {
    const char *file, *host, *user, *identity_file, *proxy_jump, *ray_bin, *image, *pool, *gpu_type;
    int64_t port, gpus, cpus;
    struct strv env;
    bool wait;
    usec_t timeout;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct add_opts, member)

static const struct opt OPTS[] = {
    {.letter = 'f', .name = "file", ROW(OPT_TEXT, file), .arg = "FILE", .doc = "NodeSpecs in YAML"},
    {.name = "host",
     ROW(OPT_TEXT, host),
     .arg = "HOST",
     .doc = "address or name, as argusd sees it"},
    {.name = "user", ROW(OPT_TEXT, user), .arg = "NAME", .doc = "for ssh"},
    {.name = "port", ROW(OPT_NUMBER, port), .arg = "N", .doc = "of sshd"},
    {.name = "identity-file",
     ROW(OPT_TEXT, identity_file),
     .arg = "FILE",
     .doc = "private key, on argusd's machine"},
    {.name = "proxy-jump", ROW(OPT_TEXT, proxy_jump), .arg = "HOST", .doc = "reached through this"},
    {.name = "pool", ROW(OPT_TEXT, pool), .arg = "A,B", .doc = "its labels"},
    {.name = "gpus", ROW(OPT_NUMBER, gpus), .arg = "N", .doc = "if not what nvidia-smi shows"},
    {.name = "gpu-type", ROW(OPT_TEXT, gpu_type), .arg = "TEXT", .doc = "for tables"},
    {.name = "cpus", ROW(OPT_NUMBER, cpus), .arg = "N", .doc = "declared to Ray"},
    {.name = "ray-bin", ROW(OPT_TEXT, ray_bin), .arg = "PATH", .doc = "of 'ray' on the machine"},
    {.name = "image", ROW(OPT_TEXT, image), .arg = "TEXT", .doc = "a note: nothing is pulled"},
    {.name = "env", ROW(OPT_LIST, env), .arg = "K=V", .doc = "for all that runs there"},
    {.name = "wait", ROW(OPT_FLAG, wait), .doc = "until it is online, and say what is in the way"},
    {.name = "timeout", ROW(OPT_SPAN, timeout), .arg = "SPAN", .doc = "of --wait [2m]"},
};

static void put(json_t *o, const char *key, const char *value)
{
    if (value)
        (void)json_object_set_new(o, key, json_string(value)); /* fails only for lack of memory */
}

static void put_number(json_t *o, const char *key, int64_t value)
{
    if (value)
        (void)json_object_set_new(o, key, json_integer(value)); /* as above */
}

/* The options as a NodeSpec. */
static int compose(const struct add_opts *o,
                   const char *name,
                   struct submission *s,
                   struct err *err)
{
    _cleanup_(json_unrefp) json_t *spec = json_object();
    json_t *env = json_object();
    put(spec, "name", name);
    put(spec, "host", o->host);
    put(spec, "user", o->user);
    put(spec, "identity_file", o->identity_file);
    put(spec, "proxy_jump", o->proxy_jump);
    put(spec, "labels", o->pool);
    put(spec, "gpu_type", o->gpu_type);
    put(spec, "ray_bin", o->ray_bin);
    put(spec, "image", o->image);
    put_number(spec, "port", o->port);
    put_number(spec, "gpu_count", o->gpus);
    put_number(spec, "cpu_count", o->cpus);
    (void)json_object_set_new(spec, "env", env); /* as above */
    for (size_t i = 0; i < o->env.n; i++) {
        const char *eq = strchr(o->env.v[i], '=');
        if (!eq)
            return err_set(err, ERR_USAGE, "'--env %.60s' is not K=V", o->env.v[i]);
        _cleanup_(freep) char *key = xstrndup(o->env.v[i], (size_t)(eq - o->env.v[i]));
        put(env, key, eq + 1);
    }
    char *text = json_dumps(spec, JSON_INDENT(1));
    int r = submission_compose(s, "the options", text, err);
    free(text);
    return r;
}

static int read_specs(const struct add_opts *o,
                      const struct strv *args,
                      struct submission *s,
                      struct err *err)
{
    static const struct submission_wish no_wish;
    const char *first = args->n ? args->v[0] : NULL;
    const char *file = o->file ? o->file : first && !o->host ? first : NULL;
    if (o->file && (o->host || first))
        return err_set(err, ERR_USAGE, "give a file, or a name with --host; not both");
    if (!file && !first)
        return err_set(err, ERR_USAGE, "give a name with --host, or a file with -f");
    if (!o->file && file && access(file, R_OK) < 0 && !str_eq(file, "-"))
        return err_set(err, ERR_USAGE, "say where '%.60s' is: --host HOST", file);
    return file ? submission_read(s, file, &no_wish, err) : compose(o, first, s, err);
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct add_opts *o = opts;
    _cleanup_(submission_release) struct submission s = {0};
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(strv_release) struct strv names = {0};
    size_t i;
    json_t *node;
    int r = read_specs(o, args, &s, err);
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
        return nodecall_wait(cli, &names, NODE_GOAL_ONLINE, o->timeout ? o->timeout : PATIENCE,
                             err);
    cli_talk(cli, "next: argus node ls --watch");
    return 0;
}

const struct command cmd_node_add = {
    .name = "node add",
    .args = "NAME --host HOST | FILE",
    .most = 1,
    .summary = "register machines",
    .text = "argusd reaches them over ssh, looks what they are, and starts Ray there. What stands "
            "in the way is one sentence and what to do about it; once it is mended the machine "
            "joins by itself. The host key that is met first is pinned and shown: compare it.\n"
            "A file holds one NodeSpec or a list of them (argus-nodespec(5)).",
    .example = "argus node add node-7 --host 10.0.0.17 --pool a6000 --wait\tone machine\n"
               "argus node add -f nodes.yaml\tmany",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct add_opts),
    .run = run,
};
