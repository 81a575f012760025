/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the table of argus.yaml's keys and what must hold between them.
 * See settings.h; the reference text of `argusd --list-config` is made from here. */
#include "argusd/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static const char *const auths[] = {"none", "token", NULL};
static const char *const policies[] = {"fair", "fifo", NULL};
static const char *const breaches[] = {"stop", "event", NULL};

#define AT(member) offsetof(struct settings, member)

static const struct conf_key keys[] = {
    {"shared_root", CONF_STR, AT(shared_root), .flags = CONF_REQUIRED,
     .doc = "directory that every node sees at this path (NFS or any POSIX mount)"},
    {"listen", CONF_STR, AT(listen), "127.0.0.1:8080",
     .doc = "address and port of the HTTP API; beyond loopback use tls"},
    {"tls.cert", CONF_STR, AT(tls_cert), .doc = "PEM file of the server's certificate chain"},
    {"tls.key", CONF_STR, AT(tls_key), .doc = "PEM file of its private key"},
    {"state_dir", CONF_STR, AT(state_dir), "/var/lib/argus",
     .doc = "local directory of the store; never on NFS"},
    {"cluster", CONF_STR, AT(cluster), "default", .doc = "name of the Ray cluster"},
    {"address", CONF_STR, AT(old_address), .doc = "old name of ray.address"},
    {"ray.address", CONF_STR, AT(ray_address),
     .doc = "URL of Ray's dashboard, http://127.0.0.1:8265 if not given"},
    {"ray.head.host", CONF_STR, AT(head_host), .doc = "address of the head machine"},
    {"ray.head.port", CONF_INT, AT(head_port), "6379", 1, 65535, .doc = "port of Ray's GCS"},
    {"ray.head.managed", CONF_BOOL, AT(head_managed), "false", .flags = CONF_ACCEPTED,
     .doc = "argusd may start and restart the head"},
    {"ray.auth", CONF_ENUM, AT(auth), "none", .names = auths,
     .doc = "token: Ray's own token authentication (Ray >= 2.52)"},
    {"ray.auth_token_file", CONF_STR, AT(auth_token_file),
     .doc = "file with Ray's token, mode 0600; needed with auth: token"},
    {"entrypoint_num_cpus", CONF_INT, AT(entrypoint_num_cpus), "1", 0, 1024,
     .doc = "CPUs of a job's driver"},
    {"entrypoint_num_gpus", CONF_INT, AT(entrypoint_num_gpus), "0", 0, 16,
     .doc = "GPUs of a job's driver"},
    {"entrypoint_resources", CONF_PAIRS, AT(entrypoint_resources),
     .doc = "resources a driver asks for; worker_node: 1 is always among them"},
    {"runtime_env.env_vars", CONF_PAIRS, AT(env_vars),
     .doc = "environment of every job; a JobSpec's own values win"},
    {"user_code_path", CONF_STR, AT(user_code_path), "${USER_ROOT}/code",
     .doc = "directory on every job's PYTHONPATH"},
    {"policy", CONF_ENUM, AT(policy), "fair", .names = policies,
     .doc = "order of the queue; this version admits in order of submission for both"},
    {"lease_breach", CONF_ENUM, AT(lease_breach), "stop", .names = breaches, .flags = CONF_ACCEPTED,
     .doc = "what GPU demand outside a job's lease does to it: stop it, or only an event"},
    {"limits.live_jobs", CONF_INT, AT(live_jobs), "64", 1, 10000,
     .doc = "jobs in Ray at the same time"},
    {"limits.submit_per_second", CONF_REAL, AT(submits_per_second), "4", 0.01, 1000,
     .doc = "submissions to Ray per second"},
    {"limits.gpus_per_job", CONF_INT, AT(gpus_per_job), "256", 1, 100000,
     .doc = "the largest gang that is taken"},
    {"limits.queued_jobs", CONF_INT, AT(queued_jobs), "100000", 1, 10000000,
     .doc = "jobs that may wait at the same time"},
    {"start_deadline", CONF_SPAN, AT(start_deadline), "15m", 10, 86400,
     .doc = "a job that Ray has accepted and that has not started by then goes back to the queue"},
    {"ports", CONF_PAIRS, AT(ports), .flags = CONF_ACCEPTED, .doc = "ports of Ray on the nodes"},
    {"prefix", CONF_STR, AT(prefix), "argus_", .doc = "prefix of metric names"},
    {"run_as", CONF_PAIRS, AT(run_as), .flags = CONF_ACCEPTED, .doc = "user to uid"},
    {"shepherd", CONF_STR, AT(shepherd), .doc = "argus-shepherd; the one beside argusd if absent"},
    {"hook", CONF_STR, AT(hook),
     .doc = "directory of the Python hook; the one inside argusd if absent"},
};

const struct conf_key *settings_keys(size_t *ret_n)
{
    *ret_n = array_len(keys);
    return keys;
}

static void complain(const struct node *root,
                     struct problems *ps,
                     const char *key,
                     const char *hint,
                     const char *text)
{
    const struct node *n = node_find(root, key);
    problems_add(ps, PROBLEM_ERROR, key, n ? n->line : 0, n ? n->column : 0, hint, "%s", text);
}

static void check_absolute(const struct node *root,
                           struct problems *ps,
                           const char *key,
                           const char *path)
{
    if (path && *path && *path != '/')
        complain(root, ps, key, "begin it with '/'", "the path is not absolute");
}

static bool is_loopback(const char *listen)
{
    return str_starts(listen, "127.") || str_starts(listen, "localhost:") ||
           str_starts(listen, "[::1]:");
}

static void check_address(struct settings *s, const struct node *root, struct problems *ps)
{
    if (s->old_address && s->ray_address)
        complain(root, ps, "address", "keep ray.address",
                 "'address' and 'ray.address' are both given");
    if (!s->ray_address)
        s->ray_address = xstrdup(str_or(s->old_address, "http://127.0.0.1:8265"));
    if (!str_starts(s->ray_address, "http://") && !str_starts(s->ray_address, "https://"))
        complain(root, ps, "ray", "write http://HOST:8265",
                 "Ray's address is not the URL of its dashboard");
}

static void check_listen(const struct settings *s, const struct node *root, struct problems *ps)
{
    const char *colon = strrchr(s->listen, ':');
    int64_t port;
    if (!colon || str_to_int(colon + 1, 0, 65535, &port, NULL) < 0)
        complain(root, ps, "listen", "write HOST:PORT", "the address has no port");
    if (!is_loopback(s->listen) && !s->tls_cert)
        problems_add(ps, PROBLEM_WARNING, "listen", 0, 0, "set tls.cert and tls.key",
                     "tokens cross the network in clear text on '%s'", s->listen);
    if (!s->tls_cert != !s->tls_key)
        complain(root, ps, "tls", "give cert and key", "one of the two TLS files is missing");
}

static void check_together(struct settings *s, const struct node *root, struct problems *ps)
{
    if (s->shared_root)
        check_absolute(root, ps, "shared_root", s->shared_root);
    check_absolute(root, ps, "state_dir", s->state_dir);
    check_address(s, root, ps);
    check_listen(s, root, ps);
    if (s->auth == RAY_AUTH_TOKEN && !s->auth_token_file)
        complain(root, ps, "ray", "name the file with Ray's token",
                 "auth: token needs ray.auth_token_file");
    if (!str_starts(str_or(s->user_code_path, ""), "${USER_ROOT}"))
        problems_add(ps, PROBLEM_WARNING, "user_code_path", 0, 0, "use ${USER_ROOT}/code",
                     "a directory common to all users lets anybody shadow anybody's imports");
    if (!pairs_find(&s->entrypoint_resources, "worker_node"))
        pairs_set(&s->entrypoint_resources, "worker_node", "1");
    for (size_t i = 0; i < s->entrypoint_resources.n; i++) {
        double v;
        const struct pair *p = &s->entrypoint_resources.v[i];
        if (str_to_real(p->value, &v, NULL) < 0 || v < 0)
            complain(root, ps, "entrypoint_resources", "write NAME: AMOUNT",
                     "an amount is not a number");
    }
}

static int read_file(const char *path, struct buf *out, struct problems *ps)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        int e = errno;
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, "argusd init --config FILE writes one",
                     "cannot be read: %s", strerror(e));
        return -e;
    }
    char chunk[4096];
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        (void)buf_add(out, chunk, n); /* a ceiling passed shows below */
    bool bad = ferror(f) || out->failed;
    (void)fclose(f); /* only read */
    if (bad)
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, NULL, "cannot be read, or is larger than 1 MiB");
    return bad ? -EIO : 0;
}

int settings_load(const char *path, struct settings *ret, struct problems *ps)
{
    struct buf text = BUF_INIT(DOC_MAX_BYTES);
    _cleanup_(doc_freep) struct doc *d = NULL;
    int r = read_file(path, &text, ps);
    if (r == 0)
        r = doc_parse(buf_str(&text), text.len, true, &d, ps);
    if (r == 0) {
        conf_read(keys, array_len(keys), doc_root(d), ret, ps);
        ret->text = xstrdup(buf_str(&text));
        if (ret->listen && ret->state_dir)
            check_together(ret, doc_root(d), ps);
        r = ps->errors ? -EINVAL : 0;
    }
    buf_release(&text);
    return r;
}

void settings_release(struct settings *s)
{
    conf_release(keys, array_len(keys), s);
    free(s->text);
    *s = (struct settings){0};
}
