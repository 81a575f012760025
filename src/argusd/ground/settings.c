/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the table of argus.yaml's keys and what must hold between them.
 * See settings.h; the reference text of `argusd --list-config` is made from here. */
#include "argusd/ground/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/check/manifest.h"
#include "core/spec/nodespec.h"
#include "core/spec/tracker.h"
#include "http/http.h"
#include "http/listen.h"
#include "ray/ray.h"
#include "ray/reach.h"

enum { TOKEN_FILE_MAX = 4096 };

static const char *const auths[] = {"none", "token", NULL};
static const char *const policies[] = {"fair", "fifo", "flow", NULL};
static const char *const gate_words[] = {"key", "firewall", NULL};
static const char *const switches[] = {"off", "on", NULL};
static const char *const breaches[] = {"stop", "event", NULL};

#define AT(member) offsetof(struct settings, member)

static const struct field keys[] = {
    {"shared_root", FIELD_STR, AT(shared_root), .flags = FIELD_REQUIRED,
     .doc = "directory that every node sees at this path (NFS or any POSIX mount)"},
    {"listen", FIELD_STR, AT(listen), "127.0.0.1:8080",
     .doc = "address and port of the HTTP API; beyond loopback use tls"},
    {"tls.cert", FIELD_STR, AT(tls_cert), .doc = "PEM file of the server's certificate chain"},
    {"tls.key", FIELD_STR, AT(tls_key), .doc = "PEM file of the server's private key"},
    {"notebooks.listen", FIELD_STR, AT(notebooks_listen),
     .doc = "address and port of the door of notebooks; tls is used for it, too "
            "(docs/notebooks.md)"},
    {"notebooks.url", FIELD_STR, AT(notebooks_url),
     .doc = "how browsers reach that door: http(s)://HOST[:PORT], of another host name or address "
            "than argusd's own pages"},
    {"notebooks.running_per_user", FIELD_INT, AT(notebooks_of_user), "3", 0, 50,
     .doc = "notebooks of one user that run or wait at the same time; 0: no limit"},
    {"notebooks.running_per_project", FIELD_INT, AT(notebooks_of_project), "0", 0, 100000,
     .doc = "the same of one project, whoever started them; 0: no limit"},
    {"notebooks.pip_index_url", FIELD_STR, AT(pip_index_url),
     .doc = "where pip in notebooks installs from (PIP_INDEX_URL): http(s)://HOST/PATH, without a "
            "password; default: as the machine has it"},
    {"notebooks.pip_trusted_host", FIELD_STR, AT(pip_trusted_host),
     .doc = "host of that index whose certificate pip does not check, HOST or HOST:PORT"},
    {"alerts", FIELD_NODE, AT(alerts_node),
     .doc = "receivers, routes, quiet hours, escalation and rules of alerts: docs/alerts.md"},
    {"agent.url", FIELD_STR, AT(agent.url),
     .doc = "where events and figures are pushed to (docs/ops-agent.md); http or https"},
    {"agent.url_secret", FIELD_STR, AT(agent.url_secret),
     .doc = "name of a secret that is the URL"},
    {"agent.secret", FIELD_STR, AT(agent.secret),
     .doc = "name of the secret that signs, whsec_ and base64"},
    {"agent.secrets_of", FIELD_STR, AT(agent_secrets_of),
     .doc = "owner of these secrets: user/NAME or project/NAME"},
    {"agent.ca_file", FIELD_STR, AT(agent.ca_file),
     .doc = "PEM file of the certificate authority of the agent's server"},
    {"agent.token", FIELD_STR, AT(agent_token),
     .doc = "id of the agent's token ('argus token ls'): what it may see is pushed, nothing else"},
    {"agent.every", FIELD_SPAN, AT(agent_every), "10s", 1, 30, .doc = "time between two batches"},
    {"agent.behind", FIELD_INT, AT(agent_behind), "10000", 100, 1000000,
     .doc = "events that an agent may be behind; older ones are not pushed, and it is told so"},
    {"agent.figures", FIELD_BOOL, AT(agent_figures), "true",
     .doc = "push figures of running jobs, too"},
    {"second_opinion.url", FIELD_STR, AT(second_url),
     .doc = "address of a model's API in OpenAI's form, with /v1: it is asked about failures that "
            "argusd is not sure of (docs/ops-agent.md); http or https"},
    {"second_opinion.model", FIELD_STR, AT(second_model), .doc = "name of the model there"},
    {"second_opinion.key", FIELD_STR, AT(second_key), .doc = "name of the secret that is its key"},
    {"second_opinion.secrets_of", FIELD_STR, AT(second_secrets_of),
     .doc = "owner of that secret: user/NAME or project/NAME"},
    {"second_opinion.ca_file", FIELD_STR, AT(second_ca_file),
     .doc = "PEM file of the certificate authority of the model's server"},
    {"second_opinion.below", FIELD_REAL, AT(second_below), "0.5", 0, 1,
     .doc = "a finding that is less sure than this is asked about; one of class unknown always is"},
    {"second_opinion.per_hour", FIELD_INT, AT(second_per_hour), "10", 1, 1000,
     .doc = "questions in an hour, at most; findings beyond are passed over"},
    {"second_opinion.tokens_per_day", FIELD_INT, AT(second_tokens_per_day), "200000", 1000,
     1000000000,
     .doc = "tokens in a day, of questions and answers together; findings beyond are passed over"},
    {"second_opinion.answer_tokens", FIELD_INT, AT(second_answer_tokens), "600", 16, 8192,
     .doc = "tokens that one answer may have"},
    {"second_opinion.timeout", FIELD_SPAN, AT(second_timeout), "60s", 1, 600,
     .doc = "how long argusd waits for an answer"},
    {"remote_write.url", FIELD_STR, AT(write_url),
     .doc = "where what /metrics has is pushed to, by Prometheus' remote write: "
            "http(s)://HOST:PORT/api/v1/write; for a Prometheus that cannot reach argusd"},
    {"remote_write.every", FIELD_SPAN, AT(write_every), "15s", 1, 300,
     .doc = "time between two pushes"},
    {"remote_write.token", FIELD_STR, AT(write_token),
     .doc = "name of the secret that is sent as Authorization: Bearer"},
    {"remote_write.secrets_of", FIELD_STR, AT(write_secrets_of),
     .doc = "owner of that secret: user/NAME or project/NAME"},
    {"remote_write.ca_file", FIELD_STR, AT(write_ca_file),
     .doc = "PEM file of the certificate authority of that server"},
    {"remote_write.instance", FIELD_STR, AT(write_instance),
     .doc = "label instance of what is pushed; default: the name of this machine"},
    {"ops.approvals", FIELD_INT, AT(ops_approvals), "0", 0, 5,
     .doc =
         "how many admins, besides the one who made it, must approve a plan before it is applied"},
    {"ops.expires", FIELD_SPAN, AT(ops_expires), "15m", 1, 604800,
     .doc = "how long a plan may be applied after it was made"},
    {"state_dir", FIELD_STR, AT(state_dir), "/var/lib/argus",
     .doc = "local directory of the store; never on NFS"},
    {"cluster", FIELD_STR, AT(cluster), "default", .doc = "name of the Ray cluster"},
    {"address", FIELD_STR, AT(old_address), .doc = "old name of ray.address"},
    {"ray.address", FIELD_STR, AT(ray_address),
     .doc = "URL of Ray's dashboard, http://127.0.0.1:8265 if not given"},
    {"ray.networks", FIELD_STRV, AT(ray_networks),
     .doc = "networks (10.0.0.0/8) of nodes that joined Ray by themselves: the metrics page, "
            "services and notebooks of a node that nobody registered are called there alone, "
            "whatever address Ray tells of it"},
    {"ray.head.host", FIELD_STR, AT(head_host), .doc = "address of the head machine"},
    {"ray.head.port", FIELD_INT, AT(head_port), "6379", 1, 65535, .doc = "port of Ray's GCS"},
    {"ray.head.managed", FIELD_BOOL, AT(head_managed), "false",
     .doc = "argusd starts the head when it is not there, and again when it died"},
    {"ray.head.ray_bin", FIELD_STR, AT(head_ray_bin),
     .doc = "ray on the head machine; looked for if absent"},
    {"ray.head.ssh.host", FIELD_STR, AT(head_ssh_host),
     .doc =
         "address at which sshd of a managed head answers; without it the head is started on this "
         "machine"},
    {"ray.head.ssh.user", FIELD_STR, AT(head_ssh_user),
     .doc = "user that ssh to the head logs in as"},
    {"ray.head.ssh.port", FIELD_INT, AT(head_ssh_port), NULL, 1, 65535,
     .doc = "port of the head's sshd"},
    {"ray.head.ssh.identity_file", FIELD_STR, AT(head_ssh_identity),
     .doc = "private key for the head; ssh.identity_file if absent"},
    {"ray.head.ssh.proxy_jump", FIELD_STR, AT(head_ssh_jump),
     .doc = "host through which ssh reaches the head: [user@]host[:port]"},
    {"ray.temp_dir", FIELD_STR, AT(ray_temp_dir),
     .doc = "short directory for Ray's sessions on every machine that argusd starts; /tmp/ray if "
            "absent"},
    {"ray.object_store", FIELD_SIZE, AT(object_store_bytes), NULL, 80e6, 1e15,
     .doc = "Ray's object store on each node that argusd starts; Ray's own choice if absent"},
    {"ray.auth", FIELD_ENUM, AT(auth), "none", .names = auths,
     .doc = "token: Ray's own token authentication (Ray >= 2.52)"},
    {"ray.auth_token_file", FIELD_STR, AT(auth_token_file),
     .doc = "file with Ray's token, mode 0600; needed with auth: token"},
    {"entrypoint_num_cpus", FIELD_INT, AT(entrypoint_num_cpus), "1", 0, 1024,
     .doc = "CPUs of a job's driver"},
    {"entrypoint_num_gpus", FIELD_INT, AT(entrypoint_num_gpus), "0", 0, 16,
     .doc = "GPUs of a job's driver"},
    {"entrypoint_resources", FIELD_PAIRS, AT(entrypoint_resources),
     .doc = "resources a driver asks for; worker_node: 1 is always among them"},
    {"runtime_env.env_vars", FIELD_PAIRS, AT(env_vars),
     .doc = "environment of every job; a JobSpec's own values win"},
    {"user_code_path", FIELD_STR, AT(user_code_path), "${USER_ROOT}/code",
     .doc = "directory on every job's PYTHONPATH"},
    {"policy", FIELD_ENUM, AT(policy), "fair", .names = policies,
     .doc =
         "fair: priority, fair share, time, with backfill; fifo: the same order, strictly; flow: "
         "priority, then the least GPU time had, and restartable jobs give way to shorter ones "
         "right after a checkpoint"},
    {"flow.quantum", FIELD_SPAN, AT(flow_quantum), "80m", 1, 31536000,
     .doc =
         "under policy flow a job runs for so long before it gives way: 20 times what saving and "
         "starting again cost, so that they take at most 5%"},
    {"flow.back_within", FIELD_SPAN, AT(flow_back_within), "7d", 60, 31536000,
     .doc = "under policy flow a job that has waited for so long, at first or after giving way, is "
            "the first in line; a gang of n nodes after an n-th of it"},
    {"lease_breach", FIELD_ENUM, AT(lease_breach), "stop", .names = breaches,
     .doc = "what GPU demand outside a job's lease does to it: stop it, or only an event"},
    {"limits.live_jobs", FIELD_INT, AT(live_jobs), "64", 1, 10000,
     .doc = "jobs in Ray at the same time"},
    {"limits.submit_per_second", FIELD_REAL, AT(submits_per_second), "4", 0.01, 1000,
     .doc = "submissions to Ray per second"},
    {"limits.gpus_per_job", FIELD_INT, AT(gpus_per_job), "256", 1, 100000,
     .doc = "GPUs of the largest job that is taken"},
    {"limits.queued_jobs", FIELD_INT, AT(queued_jobs), "100000", 1, 10000000,
     .doc = "jobs that may wait at the same time"},
    {"limits.queued_jobs_per_user", FIELD_INT, AT(user_queued_jobs), "10000", 0, 10000000,
     .doc = "waiting jobs of one user who has no quota of queued jobs (argus quota set --queued); "
            "0: no limit"},
    {"limits.connections", FIELD_INT, AT(connections), "16384", 16, 1000000,
     .doc = "open connections to the API, or as many as the open files of argusd leave room for: "
            "256 of them are for its own work"},
    {"limits.connections_per_address", FIELD_INT, AT(address_connections), "64", 0, 1000000,
     .doc =
         "open connections from one address (IPv6: one /64); more are closed at once; 0: no limit"},
    {"limits.proxies", FIELD_STRV, AT(proxies),
     .doc =
         "addresses that speak for many people and have no limit of their own: 127.0.0.1 and ::1 "
         "if absent, for tunnels and a proxy on the head"},
    {"calls.networks", FIELD_STRV, AT(call_networks),
     .doc =
         "networks (10.0.0.0/8) that argusd may call when a user named the address, beside public "
         "ones: a receiver's url_secret, a tracker of one's own; and machines of Ray on loopback"},
    {"limits.streams_per_user", FIELD_INT, AT(user_streams), "64", 0, 1000000,
     .doc = "logs and events that one user follows, and downloads, at the same time; 0: no limit"},
    {"limits.bodies_per_user", FIELD_INT, AT(user_bodies), "16", 0, 1000000,
     .doc = "bodies of more than 64 KiB that one user sends at the same time; 0: no limit"},
    {"limits.polls_per_user", FIELD_INT, AT(user_polls), "64", 0, 1000000,
     .doc = "requests of one user that wait for something at the same time; 0: no limit"},
    {"limits.relays_per_user", FIELD_INT, AT(user_relays), "256", 0, 1000000,
     .doc = "requests of one user that are passed on to services at the same time, open WebSockets "
            "too; 0: no limit"},
    {"session.idle", FIELD_SPAN, AT(session_idle), "24h", 1, 31536000,
     .doc = "a login in a browser ends when it was not used for so long"},
    {"session.longest", FIELD_SPAN, AT(session_longest), "14d", 1, 31536000,
     .doc = "how long a login in a browser lasts at most"},
    {"session.per_user", FIELD_INT, AT(session_most), "20", 1, 1000,
     .doc =
         "logins that one user has at the same time: one more ends the one that was not used for "
         "longest"},
    {"limits.reclaim_grace", FIELD_SPAN, AT(reclaim_grace), "2m", 0, 86400,
     .doc = "how long a job may go on when a quota wants its GPUs back, before it is stopped"},
    {"uploads.max_size", FIELD_SIZE, AT(upload_bytes), "200GiB", 0, 1e15,
     .doc = "size of the largest upload"},
    {"uploads.per_user", FIELD_SIZE, AT(uploads_user_bytes), "500GiB", 0, 1e15,
     .doc = "size of all uploads of one user together, until they are used"},
    {"uploads.total", FIELD_SIZE, AT(uploads_total_bytes), "2TiB", 0, 1e15,
     .doc = "size of all uploads together, until they are used"},
    {"uploads.keep", FIELD_SPAN, AT(uploads_keep), "24h", 60, 31536000,
     .doc = "an upload to which nothing was sent for so long is removed"},
    {"snapshots.max_size", FIELD_SIZE, AT(snapshot_bytes), "20GiB", 1, 1e15,
     .doc = "size of the files of one snapshot together"},
    {"snapshots.max_files", FIELD_INT, AT(snapshot_files), "250000", 1, MANIFEST_ENTRIES_MAX,
     .doc = "how many files one snapshot, and how many entries its archive, may have"},
    {"snapshots.max_ratio", FIELD_INT, AT(snapshot_ratio), "200", 1, 1000000,
     .doc = "bytes that one byte of an archive may become, once they are more than 64 MiB"},
    {"snapshots.max_count", FIELD_INT, AT(snapshots_most), "20000", 1, 1000000,
     .doc = "snapshots that there may be, of all users"},
    {"backup.every", FIELD_SPAN, AT(backup_every), "1h", 0, 31536000,
     .doc =
         "time from one copy of the store and the keys, sealed with backup.key, to the next; 0: no "
         "copies"},
    {"backup.keep", FIELD_INT, AT(backup_keep), "48", 1, 9999,
     .doc = "how many backups stay; the oldest go"},
    {"backup.dir", FIELD_STR, AT(backup_dir),
     .doc =
         "existing directory that backups are kept in, better not on the shared root, where jobs "
         "can remove them; ${SHARED_ROOT}/argus/backup if absent"},
    {"archive.dir", FIELD_STR, AT(archive_dir),
     .doc = "directory that archived jobs are kept in, on the shared root or another mount of the "
            "head; ${SHARED_ROOT}/argus/archive if absent"},
    {"archive.max_size", FIELD_SIZE, AT(archive_bytes), "10TiB", 1, 1e17,
     .doc = "size of all files of one job that is archived"},
    {"archive.max_files", FIELD_INT, AT(archive_files), "500000", 1, 5000000,
     .doc = "how many files and directories one job that is archived may have"},
    {"logs.rate", FIELD_SIZE, AT(logs.rate), "64MiB", 0, 1e12,
     .doc = "how much output of a job is kept, bytes a second on the average; 0: all of it"},
    {"logs.file_size", FIELD_SIZE, AT(logs.segment), "1GiB", 0, 1e15,
     .doc = "size at which a job's log goes on in another file; 0: never"},
    {"logs.total_size", FIELD_SIZE, AT(logs.total), "8GiB", 0, 1e15,
     .doc = "size of an attempt's log beyond which only its first file and the newest ones stay, "
            "at least four in all; 0: no limit"},
    {"logs.spool", FIELD_SIZE, AT(logs.spool), "1GiB", 0, 1e12,
     .doc = "output that waits on a worker's own disk while the shared root is away"},
    {"logs.patience", FIELD_SPAN, AT(logs.patience), "15m", 1, 86400,
     .doc = "how long an attempt that has ended waits for a shared root that is away"},
    {"start_deadline", FIELD_SPAN, AT(start_deadline), "15m", 10, 86400,
     .doc = "a job that Ray has accepted and that has not started by then goes back to the queue"},
    {"hang.factor", FIELD_REAL, AT(hang_factor), "5", 0, 1000,
     .doc =
         "a training is late when no step came for so many times the median time of its steps; 0: "
         "never"},
    {"hang.floor", FIELD_SPAN, AT(hang_floor), "3m", 1, 86400,
     .doc = "and for at least so long; late ones are looked at before they are called hung"},
    {"hang.environment", FIELD_SPAN, AT(hang_environment), "15m", 1, 604800,
     .doc = "how long a training may be without output while its processes start"},
    {"hang.model_load", FIELD_SPAN, AT(hang_model_load), "30m", 1, 604800,
     .doc = "how long a training may be without output while it loads data and model"},
    {"hang.first_step", FIELD_SPAN, AT(hang_first_step), "45m", 1, 604800,
     .doc =
         "how long a training may be without output until its first step, and in validations and "
         "saves"},
    {"serve.port", FIELD_INT, AT(serve_port), "8000", 1, 65535,
     .doc = "port of Ray Serve's HTTP proxies, on each machine; fixed when Serve starts"},
    {"serve.gate", FIELD_ENUM, AT(serve_gate), "key", .names = gate_words,
     .doc = "what keeps others from Ray Serve's port: key is argusd's gate in its proxies, tried "
            "before anything is deployed; firewall means that you have a firewall that does"},
    {"serve.idle_least", FIELD_SPAN, AT(serve_idle_least), "1m", 1, 86400,
     .doc = "the shortest time without a request after which a service may be made to sleep"},
    {"trial", FIELD_BOOL, AT(trial), "true",
     .doc = "a short run without GPUs before each job of verl; false: only the preflight"},
    {"ports", FIELD_PAIRS, AT(given_ports),
     .doc = "ports and ranges of Ray on the machines that argusd starts: argusd --list-ports"},
    {"ssh.config_file", FIELD_STR, AT(ssh_config),
     .doc = "file that ssh reads in place of ~/.ssh/config"},
    {"ssh.identity_file", FIELD_STR, AT(ssh_identity),
     .doc = "private key for nodes whose NodeSpec names none"},
    {"ssh.user", FIELD_STR, AT(ssh_user),
     .doc = "user that ssh logs in as on nodes whose NodeSpec names none"},
    {"ssh.port", FIELD_INT, AT(ssh_port), NULL, 1, 65535,
     .doc = "port of sshd on nodes whose NodeSpec names none"},
    {"nodes.joins", FIELD_INT, AT(joins), "4", 1, 100,
     .doc = "nodes that may join at the same time: more overload Ray's head"},
    {"nodes.look_every", FIELD_SPAN, AT(look_every), "15s", 1, 3600,
     .doc = "how often each node's health is looked at over ssh"},
    {"nodes.looks", FIELD_INT, AT(looks), "8", 1, 100,
     .doc = "how many probes and looks over ssh run at the same time"},
    {"nodes.cpus_per_gpu", FIELD_INT, AT(cpus_per_gpu), "10", 0, 256,
     .doc = "CPUs declared to Ray for each GPU of a node, at least; Ray only counts them"},
    {"nodes.max_skew", FIELD_SPAN, AT(max_skew), "5s", 0.1, 3600,
     .doc = "how far a node's clock may be off; a node further off is kept out"},
    {"nodes.min_disk", FIELD_SIZE, AT(min_disk_bytes), "2GiB", 0, 1e15,
     .doc = "free space below Ray's sessions that a node must have"},
    {"nodes.min_shm", FIELD_SIZE, AT(min_shm_bytes), "1GiB", 0, 1e15,
     .doc = "free space in /dev/shm that a node must have"},
    {"nodes.model_cache_size", FIELD_SIZE, AT(model_cache_bytes), "1TiB", 0, 1e17,
     .doc = "size that the copies in a NodeSpec's model_cache may have on each node; the copy that "
            "was used longest ago goes first"},
    {"nodes.model_cache_wait", FIELD_SPAN, AT(model_cache_wait), "30m", 1, 86400,
     .doc = "how long a start waits for such a copy; then the model is read from the shared root"},
    {"remedies.stray_process", FIELD_ENUM, AT(remedies[REMEDY_STRAY]), "on", .names = switches,
     .doc = "processes of a job that is over, on a node that argusd started, are ended "
            "(docs/remedies.md)"},
    {"remedies.dead_sessions", FIELD_ENUM, AT(remedies[REMEDY_SESSIONS]), "on", .names = switches,
     .doc = "where a node's disk is full, directories of dead Ray sessions of argusd's are removed "
            "there"},
    {"remedies.raylet", FIELD_ENUM, AT(remedies[REMEDY_RAYLET]), "on", .names = switches,
     .doc = "a node's raylet that died is started again; off: when an operator undrains the node"},
    {"trackers.wandb", FIELD_STR, AT(tracker_wandb),
     .doc =
         "URL of the W&B server that runs are sent to; without it their files stay with the job"},
    {"trackers.mlflow", FIELD_STR, AT(tracker_mlflow),
     .doc = "URL of the MLflow server of jobs that name none"},
    {"trackers.swanlab", FIELD_STR, AT(tracker_swanlab),
     .doc = "URL of the SwanLab server; without it runs are written to files of the job"},
    {"prefix", FIELD_STR, AT(prefix), "argus_", .doc = "prefix of the names of argusd's metrics"},
    {"run_as", FIELD_PAIRS, AT(run_as),
     .doc = "user to uid: refused, since jobs of all users run under one uid: docs/security.md"},
    {"shepherd", FIELD_STR, AT(shepherd),
     .doc = "path of argus-shepherd; the one beside argusd if absent"},
    {"hook", FIELD_STR, AT(hook),
     .doc = "directory of the Python hook; the one inside argusd if absent"},
};

const struct field *settings_keys(size_t *ret_n)
{
    *ret_n = array_len(keys);
    return keys;
}

static void settings_complain(const struct node *root,
                              struct problems *ps,
                              const char *key,
                              const char *code,
                              const struct message_arg *args)
{
    const struct node *n = node_find(root, key);
    problems_add(ps, PROBLEM_ERROR, key, n ? n->line : 0, n ? n->column : 0, code, args);
}

static void check_absolute(const struct node *root,
                           struct problems *ps,
                           const char *key,
                           const char *path)
{
    if (path && *path && *path != '/')
        settings_complain(root, ps, key, "conf_path_relative", MESSAGE_NO_ARGS);
}

static bool is_loopback(const char *listen)
{
    return str_starts(listen, "127.") || str_starts(listen, "[::1]:");
}

/* What the code says that will use the value, at the place of a dotted key. */
static void settings_complain_of(const struct node *root,
                                 struct problems *ps,
                                 const char *key,
                                 const struct err *err)
{
    const struct node *n = node_find_path(root, key);
    problems_add_err(ps, PROBLEM_ERROR, key, n ? n->line : 0, n ? n->column : 0, err);
}

static void check_address(struct settings *s, const struct node *root, struct problems *ps)
{
    struct err err = {0};
    bool is_old = s->old_address && !s->ray_address;
    if (s->old_address && s->ray_address)
        settings_complain(root, ps, "address", "conf_address_twice", MESSAGE_NO_ARGS);
    if (!s->ray_address)
        s->ray_address = xstrdup(str_or(s->old_address, "http://127.0.0.1:8265"));
    if (ray_check_address(s->ray_address, &err) < 0)
        settings_complain_of(root, ps, is_old ? "address" : "ray.address", &err);
}

static void check_trackers(const struct settings *s, const struct node *root, struct problems *ps)
{
    const char *urls[] = {s->tracker_wandb, s->tracker_mlflow, s->tracker_swanlab};
    for (size_t i = 0; i < array_len(urls); i++)
        if (urls[i] && !tracker_is_url(urls[i]))
            settings_complain(root, ps, "trackers", "conf_tracker_url", MESSAGE_NO_ARGS);
}

static void check_listen(const struct settings *s, const struct node *root, struct problems *ps)
{
    struct err err = {0};
    if (listen_check(s->listen, &err) < 0)
        settings_complain_of(root, ps, "listen", &err);
    else if (!is_loopback(s->listen) && !s->tls_cert)
        problems_add(ps, PROBLEM_WARNING, "listen", 0, 0, "conf_clear_text",
                     MESSAGE_ARGS(MESSAGE_STR("listen", s->listen)));
    if (!s->tls_cert != !s->tls_key)
        settings_complain(root, ps, "tls", "conf_tls_half", MESSAGE_NO_ARGS);
    else if (s->tls_cert && http_check_tls(s->tls_cert, s->tls_key, &err) < 0)
        settings_complain_of(root, ps, "tls", &err);
}

/* Both stand in the command of each notebook, which all who see its job can read. */
static void check_pip(const struct settings *s, const struct node *root, struct problems *ps)
{
    const char *url = s->pip_index_url, *trusted = s->pip_trusted_host;
    const char *host = !url                          ? "x"
                       : str_starts(url, "http://")  ? url + strlen("http://")
                       : str_starts(url, "https://") ? url + strlen("https://")
                                                     : "";
    size_t end = strcspn(host, "/?#"); /* behind it '@' is no password: feed@view */
    if (!end || memchr(host, '@', end) || host[strcspn(host, " \t\r\n")])
        settings_complain(root, ps, "notebooks.pip_index_url", "conf_pip_index", MESSAGE_NO_ARGS);
    static const char of_host[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]";
    if (trusted && (!*trusted || *trusted == '-' || trusted[strspn(trusted, of_host)]))
        settings_complain(root, ps, "notebooks.pip_trusted_host", "conf_pip_host", MESSAGE_NO_ARGS);
}

/* Pages of notebooks have an origin of their own. */
static void check_notebooks(const struct settings *s, const struct node *root, struct problems *ps)
{
    const char *url = s->notebooks_url;
    if (!url != !s->notebooks_listen)
        settings_complain(root, ps, "notebooks", "conf_notebooks_half", MESSAGE_NO_ARGS);
    if (!url)
        return;
    const char *host = str_starts(url, "http://")    ? url + strlen("http://")
                       : str_starts(url, "https://") ? url + strlen("https://")
                                                     : "";
    const char *own_port = str_starts(url, "https://") ? ":443" : ":80"; /* browsers leave it out */
    if (!*host || *host == ':' || host[strcspn(host, "/?#@ \t\r\n")] || str_ends(host, own_port))
        settings_complain(root, ps, "notebooks", "conf_notebooks_url", MESSAGE_NO_ARGS);
    struct err err = {0};
    if (s->notebooks_listen && listen_check(s->notebooks_listen, &err) < 0)
        settings_complain_of(root, ps, "notebooks.listen", &err);
    else if (!is_loopback(str_or(s->notebooks_listen, s->listen)) && !s->tls_cert)
        problems_add(ps, PROBLEM_WARNING, "notebooks.listen", 0, 0, "conf_clear_text",
                     MESSAGE_ARGS(MESSAGE_STR("listen", str_or(s->notebooks_listen, ""))));
}

/* The port of an http URL; 0 when it names none. */
static int settings_port_of(const char *url)
{
    const char *begin = strstr(url, "://");
    begin = begin ? begin + 3 : url;
    size_t brackets = *begin == '[' ? strcspn(begin, "]") : 0; /* of an IPv6 address */
    size_t n = brackets + strcspn(begin + brackets, "/:");
    int64_t port = 0;
    if (begin[n] == ':') {
        _cleanup_(freep) char *digits = xstrndup(begin + n + 1, strcspn(begin + n + 1, "/"));
        if (str_to_int(digits, 1, 65535, &port, NULL) < 0)
            port = 0;
    }
    return (int)port;
}

/* A head of ours listens where ray.head.port and ray.address say. */
static void add_head_ports(const struct settings *s,
                           const struct node *root,
                           struct pairs *all,
                           struct problems *ps)
{
    char text[16];
    int dashboard = settings_port_of(s->ray_address);
    text_printf(text, "%d", (int)s->head_port);
    if (!pairs_find(all, "gcs"))
        pairs_set(all, "gcs", text);
    else if (node_find(node_find(node_find(root, "ray"), "head"), "port") &&
             strcmp(pairs_find(all, "gcs"), text) != 0)
        settings_complain(root, ps, "ports", "conf_gcs_twice", MESSAGE_NO_ARGS);
    text_printf(text, "%d", dashboard);
    if (dashboard && !pairs_find(all, "dashboard"))
        pairs_set(all, "dashboard", text);
}

static void check_ports(struct settings *s, const struct node *root, struct problems *ps)
{
    struct err err = {0};
    struct pairs all = {0};
    const char *key = "ports";
    const struct node *at = node_find(root, "ports");
    pairs_copy(&all, &s->given_ports);
    if (s->head_managed)
        add_head_ports(s, root, &all, ps);
    if (ports_read(&all, &s->ports, &key, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "ports", at ? at->line : 0, at ? at->column : 0, &err);
    else if (pairs_find(&all, "gcs"))
        s->head_port = s->ports.v[PORTS_GCS].first;
    pairs_release(&all);
}

static void check_head(const struct settings *s, const struct node *root, struct problems *ps)
{
    if (!s->head_managed)
        return;
    struct err err = {0};
    if (!s->head_host)
        settings_complain(root, ps, "ray", "conf_head_host", MESSAGE_NO_ARGS);
    else if (nodespec_check_host(s->head_host, &err) < 0)
        settings_complain_of(root, ps, "ray.head.host", &err);
    if (s->head_ssh_host && nodespec_check_host(s->head_ssh_host, &err) < 0)
        settings_complain_of(root, ps, "ray.head.ssh.host", &err);
    if (!settings_port_of(s->ray_address))
        settings_complain(root, ps, "ray", "conf_head_port", MESSAGE_NO_ARGS);
    if (s->head_ray_bin && *s->head_ray_bin != '/')
        settings_complain(root, ps, "ray", "conf_ray_bin", MESSAGE_NO_ARGS);
    if (s->auth == RAY_AUTH_TOKEN)
        check_absolute(root, ps, "ray", s->auth_token_file);
}

/* An address that argusd calls; NULL is fine. */
static void settings_check_url(const char *url,
                               const char *key,
                               const struct node *root,
                               struct problems *ps)
{
    if (url && !str_starts(url, "http://") && !str_starts(url, "https://"))
        settings_complain(root, ps, key, "alert_url_http", MESSAGE_NO_ARGS);
    if (url && strpbrk(url, " \r\n\t"))
        settings_complain(root, ps, key, "alert_url_blank", MESSAGE_NO_ARGS);
}

static void check_agent(struct settings *s, const struct node *root, struct problems *ps)
{
    const char *url = s->agent.url;
    if (!url && !s->agent.url_secret)
        return;
    s->agent.kind = ALERT_KIND_WEBHOOK;
    if (url && s->agent.url_secret)
        settings_complain(root, ps, "agent", "alert_url_one", MESSAGE_NO_ARGS);
    settings_check_url(url, "agent", root, ps);
    if ((s->agent.secret || s->agent.url_secret) && !s->agent_secrets_of)
        settings_complain(root, ps, "agent", "agent_secrets_of", MESSAGE_NO_ARGS);
    if (!s->agent_token)
        settings_complain(root, ps, "agent", "agent_token", MESSAGE_NO_ARGS);
}

static void check_second(const struct settings *s, const struct node *root, struct problems *ps)
{
    static const char at[] = "second_opinion";
    if (!s->second_url)
        return;
    settings_check_url(s->second_url, at, root, ps);
    if (!s->second_model)
        settings_complain(root, ps, at, "second_model", MESSAGE_NO_ARGS);
    if (s->second_key && !s->second_secrets_of)
        settings_complain(root, ps, at, "second_secrets_of", MESSAGE_NO_ARGS);
}

static void check_write(const struct settings *s, const struct node *root, struct problems *ps)
{
    if (!s->write_url)
        return;
    settings_check_url(s->write_url, "remote_write", root, ps);
    if (s->write_token && !s->write_secrets_of)
        settings_complain(root, ps, "remote_write", "write_secrets_of", MESSAGE_NO_ARGS);
}

/* What can be mended while argusd runs is no error, but said. */
static void check_key(const struct node *root,
                      struct problems *ps,
                      const char *key,
                      const char *path)
{
    _cleanup_(freep) char *top = xstrndup(key, strcspn(key, "."));
    const struct node *n = node_find(root, top);
    struct stat st;
    int line = n ? n->line : 0, column = n ? n->column : 0;
    if (!path || *path != '/') /* ssh knows where '~' is */
        return;
    if (stat(path, &st) < 0 || access(path, R_OK) < 0)
        problems_add(ps, PROBLEM_WARNING, key, line, column, "conf_key_unreadable",
                     MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    else if (st.st_uid == geteuid() && st.st_mode & (S_IRWXG | S_IRWXO))
        problems_add(ps, PROBLEM_WARNING, key, line, column, "conf_key_open",
                     MESSAGE_ARGS(MESSAGE_STR("path", path)));
}

static void settings_check_networks(const struct strv *networks,
                                    const char *key,
                                    const struct node *root,
                                    struct problems *ps)
{
    for (size_t i = 0; i < networks->n; i++)
        if (reach_check_network(networks->v[i], NULL) < 0)
            settings_complain(root, ps, key, "bad_network",
                              MESSAGE_ARGS(MESSAGE_STR("text", networks->v[i])));
}

static void check_together(struct settings *s, const struct node *root, struct problems *ps)
{
    if (s->shared_root)
        check_absolute(root, ps, "shared_root", s->shared_root);
    check_absolute(root, ps, "state_dir", s->state_dir);
    check_absolute(root, ps, "archive", s->archive_dir);
    check_absolute(root, ps, "backup", s->backup_dir);
    check_address(s, root, ps);
    check_listen(s, root, ps);
    check_notebooks(s, root, ps);
    check_pip(s, root, ps);
    check_trackers(s, root, ps);
    check_agent(s, root, ps);
    check_second(s, root, ps);
    check_write(s, root, ps);
    if (!s->proxies.n) {
        strv_add(&s->proxies, "127.0.0.1");
        strv_add(&s->proxies, "::1");
    }
    settings_check_networks(&s->call_networks, "calls", root, ps);
    settings_check_networks(&s->ray_networks, "ray", root, ps);
    if (s->run_as.n)
        settings_complain(root, ps, "run_as", "conf_run_as", MESSAGE_NO_ARGS);
    check_ports(s, root, ps);
    check_head(s, root, ps);
    check_key(root, ps, "ssh.identity_file", s->ssh_identity);
    check_key(root, ps, "ray.head.ssh.identity_file", s->head_ssh_identity);
    check_absolute(root, ps, "ray", s->ray_temp_dir);
    if (s->auth == RAY_AUTH_TOKEN && !s->auth_token_file)
        settings_complain(root, ps, "ray", "conf_auth_file", MESSAGE_NO_ARGS);
    if (!str_starts(str_or(s->user_code_path, ""), "${USER_ROOT}"))
        problems_add(ps, PROBLEM_WARNING, "user_code_path", 0, 0, "conf_common_code",
                     MESSAGE_NO_ARGS);
    if (!pairs_find(&s->entrypoint_resources, "worker_node"))
        pairs_set(&s->entrypoint_resources, "worker_node", "1");
    for (size_t i = 0; i < s->entrypoint_resources.n; i++) {
        double v;
        const struct pair *p = &s->entrypoint_resources.v[i];
        if (str_to_real(p->value, &v, NULL) < 0 || v < 0)
            settings_complain(root, ps, "entrypoint_resources", "conf_amount", MESSAGE_NO_ARGS);
    }
}

static int settings_read_file(const char *path, struct buf *out, struct problems *ps)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        int e = errno;
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, "conf_file_unreadable",
                     MESSAGE_ARGS(MESSAGE_STR("why", strerror(e))));
        return -e;
    }
    char chunk[4096];
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        (void)buf_add(out, chunk, n); /* a ceiling passed shows below */
    bool bad = ferror(f) || out->failed;
    (void)fclose(f); /* only read */
    if (bad)
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, "conf_file_large", MESSAGE_NO_ARGS);
    return bad ? -EIO : 0;
}

int settings_load(const char *path, struct settings *ret, struct problems *ps)
{
    struct buf text = BUF_INIT(DOC_MAX_BYTES);
    _cleanup_(doc_freep) struct doc *d = NULL;
    int r = settings_read_file(path, &text, ps);
    if (r == 0)
        r = doc_parse(buf_str(&text), text.len, true, &d, ps);
    if (r == 0) {
        conf_read(keys, array_len(keys), doc_root(d), ret, ps);
        ret->text = xstrdup(buf_str(&text));
        alert_config_read(ret->alerts_node, &ret->alerts, ps);
        ret->alerts_node = NULL;
        if (ret->listen && ret->state_dir)
            check_together(ret, doc_root(d), ps);
        r = ps->errors ? -EINVAL : 0;
    }
    buf_release(&text);
    return r;
}

enum sched_policy settings_sched_policy(const struct settings *s)
{
    static const enum sched_policy of[] = {[POLICY_FAIR] = SCHED_POLICY_FAIR,
                                           [POLICY_FIFO] = SCHED_POLICY_FIFO,
                                           [POLICY_FLOW] = SCHED_POLICY_FLOW};
    return of[s->policy];
}

void settings_release(struct settings *s)
{
    conf_release(keys, array_len(keys), s);
    free(s->text);
    alert_config_release(&s->alerts);
    *s = (struct settings){0};
}

char *settings_store_path(const struct settings *s)
{
    return xasprintf("%s/argus.db", s->state_dir);
}

int settings_read_token(const struct settings *s, char **ret, struct err *err)
{
    struct buf text = BUF_INIT(TOKEN_FILE_MAX);
    int r = s->auth == RAY_AUTH_TOKEN ? file_read(s->auth_token_file, &text, err) : 0;
    *ret = NULL;
    if (r == 0 && s->auth == RAY_AUTH_TOKEN) {
        *ret = buf_take(&text);
        (*ret)[strcspn(*ret, " \r\n")] = 0;
    }
    buf_release(&text);
    return r;
}
