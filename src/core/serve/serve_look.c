/* SPDX-License-Identifier: Apache-2.0 */
/* serve_look.c - see serve_look.h. A member of another type than expected counts as missing; only
 * the object of applications has to be there, because an application that is left out would read as
 * one that is gone. */
#include "core/serve/serve_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"
#include "core/serve/serve_doc.h"

#define X(word) [SERVE_STATUS_##word] = #word,
static const char *const status_words[] = {SERVE_STATUS_TABLE(X)};
#undef X

const char *serve_status_to_string(enum serve_status s)
{
    return status_words[s];
}

static enum serve_status look_status(const char *word)
{
    for (int i = 1; i < SERVE_STATUS_END; i++)
        if (str_eq(word, status_words[i]))
            return (enum serve_status)i;
    return SERVE_STATUS_UNKNOWN;
}

static char *look_text(const json_t *o, const char *key)
{
    const char *text = json_get_str(o, key, NULL);
    return text ? xstrdup(text) : NULL;
}

static void look_take_replica(const char *deployment, const json_t *r, struct serve_seen *s)
{
    s->v = xrealloc(s->v, s->n + 1, sizeof(*s->v));
    s->v[s->n] =
        (struct serve_replica){.deployment = xstrdup(deployment),
                               .id = look_text(r, "replica_id"),
                               .node_id = look_text(r, "node_id"),
                               .node_ip = look_text(r, "node_ip"),
                               .log = look_text(r, "log_file_path"),
                               .is_running = str_eq(json_get_str(r, "state", ""), "RUNNING"),
                               .pid = json_get_int(r, "pid", 0)};
    s->running += s->v[s->n].is_running;
    s->n++;
}

static void look_take_app(const char *name, const json_t *o, struct serve_seen *s)
{
    const char *deployment;
    json_t *d;
    json_t *config = json_object_get(o, "deployed_app_config");
    *s = (struct serve_seen){.name = xstrdup(name),
                             .route = look_text(o, "route_prefix"),
                             .message = look_text(o, "message"),
                             .status = look_status(json_get_str(o, "status", "")),
                             .imperative = str_eq(json_get_str(o, "source", ""), "imperative"),
                             .config = json_is_object(config) ? json_incref(config) : NULL};
    json_object_foreach (json_object_get(o, "deployments"), deployment, d) {
        const json_t *replicas = json_get_array(d, "replicas");
        s->wanted += json_get_int(d, "target_num_replicas", 0);
        for (size_t i = 0; i < json_array_size(replicas); i++)
            look_take_replica(deployment, json_array_get(replicas, i), s);
    }
}

static int look_compare(const void *a, const void *b)
{
    return strcmp(((const struct serve_seen *)a)->name, ((const struct serve_seen *)b)->name);
}

static void look_take_apps(json_t *apps, struct serve_look *l)
{
    const char *name;
    json_t *o;
    l->apps = xcalloc(json_object_size(apps) + 1, sizeof(*l->apps));
    json_object_foreach (apps, name, o)
        if (json_is_object(o))
            look_take_app(name, o, &l->apps[l->n_apps++]);
    xsort(l->apps, l->n_apps, sizeof(*l->apps), look_compare);
}

static void look_take_proxies(json_t *proxies, struct serve_look *l)
{
    const char *id;
    json_t *o;
    l->proxies = xcalloc(json_object_size(proxies) + 1, sizeof(*l->proxies));
    json_object_foreach (proxies, id, o)
        if (json_is_object(o))
            l->proxies[l->n_proxies++] = (struct serve_proxy){
                .node_id = xstrdup(id),
                .is_healthy = str_eq(json_get_str(o, "status", ""), "HEALTHY")};
}

int serve_look_read(const char *text, size_t len, struct serve_look *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = json_parse(text, len, SERVE_LOOK_MAX, &root, err);
    if (r < 0)
        return r;
    json_t *apps = json_object_get(root, "applications");
    if (!json_is_object(apps) || json_object_size(apps) > SERVE_LOOK_APPS_MAX)
        return message_refuse(err, ERR_BAD_REQUEST, "serve_no_answer", MESSAGE_NO_ARGS);
    const json_t *http = json_get_object(root, "http_options");
    struct serve_look l = {.is_there = http != NULL,
                           .host = look_text(http, "host"),
                           .location = look_text(root, "proxy_location"),
                           .port = json_get_int(http, "port", 0)};
    look_take_apps(apps, &l);
    look_take_proxies(json_object_get(root, "proxies"), &l);
    *ret = l;
    return 0;
}

static void look_release_app(struct serve_seen *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].deployment);
        free(s->v[i].id);
        free(s->v[i].node_id);
        free(s->v[i].node_ip);
        free(s->v[i].log);
    }
    free(s->v);
    free(s->name);
    free(s->route);
    free(s->message);
    json_decref(s->config);
}

void serve_look_release(struct serve_look *l)
{
    for (size_t i = 0; i < l->n_apps; i++)
        look_release_app(&l->apps[i]);
    for (size_t i = 0; i < l->n_proxies; i++)
        free(l->proxies[i].node_id);
    free(l->apps);
    free(l->proxies);
    free(l->host);
    free(l->location);
    *l = (struct serve_look){0};
}

const struct serve_seen *serve_look_find(const struct serve_look *l, const char *app)
{
    for (size_t i = 0; i < l->n_apps; i++)
        if (str_eq(l->apps[i].name, app))
            return &l->apps[i];
    return NULL;
}

const struct serve_proxy *serve_look_proxy(const struct serve_look *l, const char *node_id)
{
    for (size_t i = 0; i < l->n_proxies; i++)
        if (str_eq(l->proxies[i].node_id, node_id))
            return &l->proxies[i];
    return NULL;
}

bool serve_seen_is_ready(const struct serve_seen *s, const json_t *sent)
{
    return s->status == SERVE_STATUS_RUNNING && s->wanted > 0 && s->running >= s->wanted &&
           s->config && serve_doc_has(sent, s->config);
}

bool serve_seen_goes_on(const struct serve_seen *s, const json_t *sent)
{
    bool is_shown = s->status == SERVE_STATUS_RUNNING || s->status == SERVE_STATUS_UNHEALTHY ||
                    s->status == SERVE_STATUS_DEPLOYING;
    bool is_built = s->status == SERVE_STATUS_DEPLOYING && !s->wanted;
    return is_shown && (is_built || s->running > 0) && s->config && serve_doc_has(sent, s->config);
}
