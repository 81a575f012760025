/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - argus.yaml: read whole, checked whole, then never changed. */
#pragma once
#include "base/conf.h"

enum ray_auth { RAY_AUTH_NONE, RAY_AUTH_TOKEN };

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
    int auth; /* enum ray_auth */
    char *auth_token_file;
    int64_t entrypoint_num_cpus, entrypoint_num_gpus;
    struct pairs entrypoint_resources;
    struct pairs env_vars;
    char *user_code_path;
    char *cluster;
    int policy;
    int lease_breach;
    int64_t live_jobs, gpus_per_job, queued_jobs;
    double submits_per_second;
    usec_t start_deadline;
    struct pairs ports, run_as;
    char *prefix;
    char *shepherd, *hook; /* NULL: beside argusd */

    char *text; /* the file, for the copy in each job's directory */
};

/* The rows, for reference documentation. */
const struct conf_key *settings_keys(size_t *ret_n);

/* Read the file. Problems (with file:line:column) go to ps; -EINVAL if any is an error,
 * -ENOENT and the like with a sentence in ps as well. *ret is to be released in any case. */
must_check int settings_load(const char *path, struct settings *ret, struct problems *ps);
void settings_release(struct settings *s);
