/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - argus.yaml: read whole, checked whole, then never changed. */
#pragma once
#include "base/doc/conf.h"
#include "core/alert/alert_route.h"
#include "core/job/ports.h"
#include "core/job/remedy.h"
#include "core/sched/sched.h"
#include "fsroot/attempt/launch.h"

enum lease_breach { LEASE_BREACH_STOP, LEASE_BREACH_EVENT };
enum serve_gate { SERVE_GATE_KEY, SERVE_GATE_FIREWALL };
enum remedy_switch { REMEDY_IS_OFF, REMEDY_IS_ON };
enum ray_auth { RAY_AUTH_NONE, RAY_AUTH_TOKEN };
enum policy { POLICY_FAIR, POLICY_FIFO, POLICY_FLOW };

struct settings {
    char *shared_root;
    char *listen;
    char *tls_cert, *tls_key;
    char *state_dir;
    char *ray_address;
    char *old_address; /* top-level `address` of the founding files */
    char *head_host;
    int64_t head_port;
    bool head_managed;
    char *head_ray_bin;
    char *head_ssh_host, *head_ssh_user, *head_ssh_identity, *head_ssh_jump; /* host NULL: here */
    int64_t head_ssh_port;
    char *ray_temp_dir;
    uint64_t object_store_bytes; /* 0 = Ray's own choice */
    int auth;                    /* enum ray_auth */
    char *auth_token_file;
    int64_t entrypoint_num_cpus, entrypoint_num_gpus;
    struct pairs entrypoint_resources;
    struct pairs env_vars;
    char *user_code_path;
    char *cluster;
    int policy;       /* enum policy */
    int lease_breach; /* enum lease_breach */
    int64_t live_jobs, gpus_per_job, queued_jobs, user_queued_jobs;
    int64_t connections, address_connections, user_streams, user_bodies, user_polls, user_relays;
    struct strv proxies;
    struct strv call_networks; /* see ray/reach.h */
    struct strv ray_networks;  /* see inventory.h */
    int64_t ops_approvals;
    usec_t ops_expires; /* of a plan that nobody applied */
    usec_t session_idle, session_longest;
    int64_t session_most;
    char *notebooks_listen, *notebooks_url;          /* both or neither */
    char *pip_index_url, *pip_trusted_host;          /* of notebooks; NULL: as the machine has it */
    int64_t notebooks_of_user, notebooks_of_project; /* that run at the same time; 0: no limit */
    double submits_per_second;
    int64_t serve_port;
    int serve_gate;          /* enum serve_gate */
    usec_t serve_idle_least; /* of a service's `idle` */
    usec_t start_deadline, reclaim_grace;
    usec_t flow_quantum, flow_back_within;
    bool trial;
    double hang_factor;
    usec_t hang_floor, hang_environment, hang_model_load, hang_first_step;
    uint64_t upload_bytes, uploads_user_bytes, uploads_total_bytes;
    usec_t uploads_keep;
    struct launch_logs logs;
    usec_t backup_every; /* 0: never */
    int64_t backup_keep;
    char *backup_dir;  /* NULL: below the shared root */
    char *archive_dir; /* NULL: below the shared root */
    uint64_t archive_bytes;
    int64_t archive_files;
    uint64_t snapshot_bytes;
    int64_t snapshot_files, snapshot_ratio, snapshots_most;
    struct pairs given_ports, run_as;
    struct ports ports; /* of given_ports, whole */
    char *ssh_config, *ssh_identity, *ssh_user;
    int64_t ssh_port;
    int64_t joins, looks, cpus_per_gpu;
    uint64_t model_cache_bytes; /* of the copies of models on a node */
    usec_t model_cache_wait;
    usec_t look_every, max_skew;
    uint64_t min_disk_bytes, min_shm_bytes;
    int remedies[REMEDY_END]; /* enum remedy_switch */
    char *prefix;
    char *tracker_wandb, *tracker_mlflow, *tracker_swanlab; /* NULL: none */
    const struct node *alerts_node;                         /* while it is read */
    struct alert_config alerts;
    struct alert_receiver
        agent; /* whom batches of events and figures are pushed to; no URL: none */
    char *agent_secrets_of, *agent_token;
    usec_t agent_every;
    int64_t agent_behind;
    bool agent_figures;
    char *second_url, *second_model, *second_key, *second_secrets_of, *second_ca_file; /* a model
        that is asked about failures; no URL: none */
    int64_t second_per_hour, second_tokens_per_day, second_answer_tokens;
    usec_t second_timeout;
    double second_below;
    char *write_url, *write_token, *write_secrets_of, *write_ca_file, *write_instance; /* where the
        page of metrics is pushed to; no URL: nowhere */
    usec_t write_every;
    char *shepherd, *hook; /* NULL: beside argusd */

    char *text; /* the file, for the copy in each job's directory */
};

/* The rows, for reference documentation. */
const struct field *settings_keys(size_t *ret_n);

/* Read the file. Problems (with file:line:column) go to ps; -EINVAL if any is an error,
 * -ENOENT and the like with a sentence in ps as well. *ret is to be released in any case. */
must_check int settings_load(const char *path, struct settings *ret, struct problems *ps);
void settings_release(struct settings *s);
enum sched_policy settings_sched_policy(const struct settings *s);

char *settings_store_path(const struct settings *s); /* the store, below state_dir; yours */
/* The token of Ray, as its file has it now; NULL: Ray asks for none. Yours. */
must_check int settings_read_token(const struct settings *s, char **ret, struct err *err);
