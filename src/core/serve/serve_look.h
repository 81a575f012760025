/* SPDX-License-Identifier: Apache-2.0 */
/* serve_look.h - what Ray Serve says of itself: its applications with their replicas, and its HTTP
 * proxies. Reads outside bytes: no type is trusted, what is missing is missing. Pure. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SERVE_LOOK_MAX = 8 << 20, SERVE_LOOK_APPS_MAX = 4096 };

/* X(word of Ray). */
#define SERVE_STATUS_TABLE(X)                                                                      \
    X(UNKNOWN) X(NOT_STARTED) X(DEPLOYING) X(RUNNING) X(DEPLOY_FAILED) X(UNHEALTHY) X(DELETING)
enum serve_status {
#define X(word) SERVE_STATUS_##word,
    SERVE_STATUS_TABLE(X)
#undef X
        SERVE_STATUS_END
};
const char *serve_status_to_string(enum serve_status s);

struct serve_replica {
    char *deployment, *id, *node_id, *node_ip, *log; /* NULL while it starts */
    bool is_running;
    int64_t pid; /* 0: not known */
};
struct serve_seen {
    char *name, *route, *message;
    enum serve_status status;
    bool imperative; /* somebody's program made it: it is in no list, and stays when lists go */
    json_t *config;  /* as it was put; NULL: none */
    struct serve_replica *v;
    size_t n;
    int64_t wanted; /* replicas, over its deployments; 0 while it is (re)built */
    int64_t running;
};
struct serve_proxy {
    char *node_id; /* its address is the node's, whatever it tells Serve */
    bool is_healthy;
};
struct serve_look {
    bool is_there; /* Serve runs */
    char *host;    /* NULL: Serve is not there */
    char *location;
    int64_t port;
    struct serve_seen *apps; /* by name */
    size_t n_apps;
    struct serve_proxy *proxies;
    size_t n_proxies;
};

/* ERR_BAD_REQUEST: it is not what Ray Serve answers. */
must_check int serve_look_read(const char *text,
                               size_t len,
                               struct serve_look *ret,
                               struct err *err);
void serve_look_release(struct serve_look *l);
const struct serve_seen *serve_look_find(const struct serve_look *l, const char *app);
const struct serve_proxy *serve_look_proxy(const struct serve_look *l, const char *node_id);
/* It answers, with the very configuration that was sent, and all replicas that are wanted. */
bool serve_seen_is_ready(const struct serve_seen *s, const json_t *sent);
/* A replica that was ready still answers. Each list that is put shows every application as
 * DEPLOYING for a moment, and one without deployments, changed or not. */
bool serve_seen_goes_on(const struct serve_seen *s, const json_t *sent);
