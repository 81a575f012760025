/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - Ray's JSON into the values of reply.h.
 *
 * A thing is read by one `read_x(const json_t *, void *x, err)`, which either fills
 * x or leaves nothing behind; lists are a loop over it. Integers are read as
 * reals (JSON_DECODE_INT_AS_REAL): Ray sends some that fit no int64, and none that
 * we use is above 2^53. */
#include "ray/parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "ray/clean.h"

static void free_buf(struct buf *b)
{
    buf_release(b);
}

/* The reply's first words for a sentence, without control characters. */
static const char *excerpt(const char *text, size_t len, char out[static 64])
{
    size_t n = len < 60 ? len : 60;
    for (size_t i = 0; i < n; i++)
        out[i] = isprint((unsigned char)text[i]) ? text[i] : ' ';
    out[n] = '\0';
    return out;
}

/* want: JSON_OBJECT or JSON_ARRAY. *ret is a new reference. */
static int ray_read_json(const char *text,
                         size_t len,
                         json_type want,
                         json_t **ret,
                         struct err *err)
{
    char words[64];
    size_t at = 0;
    while (at < len && isspace((unsigned char)text[at]))
        at++;
    /* Error bodies are mostly plain text or a page of HTML: look before parsing. */
    if (at == len || text[at] != (want == JSON_OBJECT ? '{' : '['))
        return message_refuse(
            err, ERR_BAD_REQUEST, "ray_other_json",
            MESSAGE_ARGS(MESSAGE_STR("wants", want == JSON_OBJECT ? "object" : "list"),
                         MESSAGE_STR("says", excerpt(text, len, words))));
    _cleanup_(free_buf) struct buf clean = BUF_INIT(2 * len + 16);
    if (clean_json(text, len, RAY_VALUES_MAX, &clean) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "ray_too_many_values",
                              MESSAGE_ARGS(MESSAGE_NUM("most", RAY_VALUES_MAX)));
    json_error_t e;
    json_t *v = json_loadb(clean.data, clean.len, JSON_DECODE_INT_AS_REAL, &e);
    if (!v)
        return message_refuse(err, ERR_BAD_REQUEST, "ray_broken_json",
                              MESSAGE_ARGS(MESSAGE_NUM("line", e.line),
                                           MESSAGE_NUM("column", e.column),
                                           MESSAGE_STR("why", e.text)));
    *ret = v;
    return 0;
}

/* A copy, NULL when absent, empty or no text. */
static char *ray_get_text(const json_t *o, const char *key)
{
    const char *s = json_get_str(o, key, NULL);
    return s && *s ? xstrdup(s) : NULL;
}

static usec_t get_ms(const json_t *o, const char *key)
{
    double ms = json_get_real(o, key, 0);
    return ms >= 1 && ms < 1e14 ? (usec_t)ms * USEC_MS : 0;
}

static void get_pairs(const json_t *o, const char *key, struct pairs *ret)
{
    void *it = json_object_iter(json_object_get(o, key));
    for (; it && ret->n < RAY_NAMES_MAX; it = json_object_iter_next(json_object_get(o, key), it)) {
        const char *value = json_string_value(json_object_iter_value(it));
        if (value)
            pairs_set(ret, json_object_iter_key(it), value);
    }
}

static void get_amounts(const json_t *o, const char *key, struct ray_amounts *ret)
{
    const json_t *from = json_get_object(o, key);
    json_t *object = json_object_get(o, key);
    for (void *it = json_object_iter(object); it && ret->n < RAY_NAMES_MAX;
         it = json_object_iter_next(object, it)) {
        const char *name = json_object_iter_key(it);
        double amount = json_get_real(from, name, -1);
        if (amount >= 0)
            ray_amounts_set(ret, name, amount);
    }
}

/* -- lists ------------------------------------------------------------------ */

struct reader {
    const char *noun;
    size_t size;
    /* 1: filled, 0: to be left out, negative: unusable (nothing left behind). */
    int (*read)(const json_t *from, void *ret, struct err *err);
    int (*compare)(const void *a, const void *b);
};

/* *ret_v is what was read, also on failure: the caller releases it. */
static int read_list(const json_t *array,
                     const struct reader *r,
                     void **ret_v,
                     size_t *ret_n,
                     struct err *err)
{
    size_t count = json_array_size(array);
    if (count > RAY_LIST_MAX)
        return message_refuse(
            err, ERR_BAD_REQUEST, "ray_long_list",
            MESSAGE_ARGS(MESSAGE_NUM("entries", count), MESSAGE_NUM("most", RAY_LIST_MAX)));
    char *v = *ret_v = xcalloc(count + 1, r->size);
    *ret_n = 0;
    for (size_t i = 0; i < count; i++) {
        int n = r->read(json_array_get(array, i), v + *ret_n * r->size, err);
        if (n < 0) {
            return err ? message_refuse(err, n, "ray_entry",
                                        MESSAGE_ARGS(MESSAGE_NUM("entry", i),
                                                     MESSAGE_STR("noun", r->noun),
                                                     MESSAGE_ERR("why", err)))
                       : n;
        }
        *ret_n += (size_t)n;
    }
    xsort(v, *ret_n, r->size, r->compare);
    return 0;
}

static int compare_texts(const char *a, const char *b)
{
    return strcmp(str_or(a, ""), str_or(b, ""));
}

/* The envelope of /api/v0: {"result":true,"data":{"result":{"total":…,"result":[…]}}}.
 * *ret_list is borrowed from *ret_root. */
static int read_envelope(const char *text,
                         size_t len,
                         json_t **ret_root,
                         const json_t **ret_list,
                         bool *ret_partial,
                         struct err *err)
{
    json_t *root;
    int r = ray_read_json(text, len, JSON_OBJECT, &root, err);
    if (r < 0)
        return r;
    const json_t *inner = json_get_object(json_get_object(root, "data"), "result");
    const json_t *list = json_get_array(inner, "result");
    if (!list || !json_get_bool(root, "result", false)) {
        char words[64];
        const char *msg = json_get_str(root, "msg", "no list in it");
        r = message_refuse(err, ERR_BAD_REQUEST, "ray_state_reply",
                           MESSAGE_ARGS(MESSAGE_STR("says", excerpt(msg, strlen(msg), words))));
        json_decref(root);
        return r;
    }
    double n = (double)json_array_size(list);
    double total = json_get_real(inner, "total", -1);
    *ret_partial = total < 0 || json_get_real(inner, "num_after_truncation", -1) < total ||
                   json_get_real(inner, "num_filtered", n + 1) > n ||
                   *json_get_str(inner, "partial_failure_warning", "");
    *ret_root = root;
    *ret_list = list;
    return 0;
}

/* -- version ---------------------------------------------------------------- */

static void read_supports(struct ray_version *v)
{
    static const struct {
        int minor;
        unsigned flag;
    } since[] = {
        {49, RAY_SUPPORTS_LABELS},
        {52, RAY_SUPPORTS_TOKEN},
        {54, RAY_SUPPORTS_ENTRYPOINT_LABELS},
    };
    for (size_t i = 0; i < array_len(since); i++)
        if (v->major > 2 || (v->major == 2 && v->minor >= since[i].minor))
            v->supports |= since[i].flag;
}

/* "2.51.1", "3.0.0.dev0": up to three numbers. False without two. */
static bool ray_read_numbers(const char *text, int *ret_major, int *ret_minor, int *ret_patch)
{
    int n[3] = {0};
    size_t have = 0;
    for (const char *p = text; have < 3 && isdigit((unsigned char)*p);) {
        for (; isdigit((unsigned char)*p); p++)
            if (n[have] < 100000)
                n[have] = n[have] * 10 + (*p - '0');
        have++;
        if (*p != '.')
            break;
        p++;
    }
    *ret_major = n[0];
    *ret_minor = n[1];
    *ret_patch = n[2];
    return have >= 2;
}

int ray_parse_version(const char *text, size_t len, struct ray_version *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = ray_read_json(text, len, JSON_OBJECT, &root, err);
    if (r < 0)
        return r;
    const char *version = json_get_str(root, "ray_version", "");
    const char *session = json_get_str(root, "session_name", "");
    struct ray_version v = {0};
    if (!ray_read_numbers(version, &v.major, &v.minor, &v.patch) || !*session)
        return message_refuse(err, ERR_BAD_REQUEST, "ray_version_reply", MESSAGE_NO_ARGS);
    v.text = xstrdup(version);
    v.session_name = xstrdup(session);
    read_supports(&v);
    *ret = v;
    return 0;
}

/* -- jobs ------------------------------------------------------------------- */

static int ray_read_job(const json_t *from, void *out, struct err *err)
{
    const char *type = json_get_str(from, "type", "");
    const char *submission_id = json_get_str(from, "submission_id", "");
    bool is_submission = str_eq(type, "SUBMISSION");
    if (!is_submission && !str_eq(type, "DRIVER"))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_job_type", MESSAGE_NO_ARGS);
    if (is_submission ? !*submission_id : !*json_get_str(from, "job_id", ""))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_job_id", MESSAGE_NO_ARGS);
    const json_t *driver = json_get_object(from, "driver_info");
    int64_t code = json_get_int(from, "driver_exit_code", INT64_MAX);
    struct ray_job job = {
        .is_submission = is_submission,
        .submission_id = ray_get_text(from, "submission_id"),
        .job_id = ray_get_text(from, "job_id"),
        .status = ray_job_status_from_string(json_get_str(from, "status", "")),
        .entrypoint = ray_get_text(from, "entrypoint"),
        .message = ray_get_text(from, "message"),
        .error_type = ray_get_text(from, "error_type"),
        .start = get_ms(from, "start_time"),
        .end = get_ms(from, "end_time"),
        .driver_id = ray_get_text(driver, "id"),
        .driver_ip = ray_get_text(driver, "node_ip_address"),
        .driver_pid = json_get_int(driver, "pid", 0),
        .driver_node_id = ray_get_text(from, "driver_node_id"),
        .driver_agent = ray_get_text(from, "driver_agent_http_address"),
        .has_exit_code = code >= -255 && code <= 255,
        .exit_code = code >= -255 && code <= 255 ? (int)code : 0,
    };
    get_pairs(from, "metadata", &job.metadata);
    *(struct ray_job *)out = job;
    return 1;
}

static int compare_jobs(const void *a, const void *b)
{
    const struct ray_job *x = a, *y = b;
    int c = compare_texts(x->submission_id, y->submission_id);
    return c ? c : compare_texts(x->job_id, y->job_id);
}

int ray_parse_job(const char *text, size_t len, struct ray_job *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = ray_read_json(text, len, JSON_OBJECT, &root, err);
    if (r < 0)
        return r;
    r = ray_read_job(root, ret, err);
    return r < 0 ? r : 0;
}

int ray_parse_jobs(const char *text, size_t len, struct ray_jobs *ret, struct err *err)
{
    static const struct reader reader = {"job", sizeof(struct ray_job), ray_read_job, compare_jobs};
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = ray_read_json(text, len, JSON_ARRAY, &root, err);
    if (r < 0)
        return r;
    struct ray_jobs jobs = {0};
    void *v = NULL;
    r = read_list(root, &reader, &v, &jobs.n, err);
    jobs.v = v;
    if (r < 0)
        ray_jobs_release(&jobs);
    else
        *ret = jobs;
    return r;
}

/* -- nodes ------------------------------------------------------------------ */

static int ray_read_node(const json_t *from, void *out, struct err *err)
{
    const char *state = json_get_str(from, "state", "");
    if (!*json_get_str(from, "node_id", "") || !*json_get_str(from, "node_ip", ""))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_node_id", MESSAGE_NO_ARGS);
    if (!str_eq(state, "ALIVE") && !str_eq(state, "DEAD"))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_node_state", MESSAGE_NO_ARGS);
    struct ray_node node = {
        .node_id = ray_get_text(from, "node_id"),
        .ip = ray_get_text(from, "node_ip"),
        .name = ray_get_text(from, "node_name"),
        .is_alive = str_eq(state, "ALIVE"),
        .is_head = json_get_bool(from, "is_head_node", false),
        .state_message = ray_get_text(from, "state_message"),
    };
    get_amounts(from, "resources_total", &node.resources);
    get_pairs(from, "labels", &node.labels);
    *(struct ray_node *)out = node;
    return 1;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct ray_node *x = a, *y = b;
    int c = compare_texts(x->ip, y->ip);
    return c ? c : compare_texts(x->node_id, y->node_id);
}

int ray_parse_nodes(const char *text, size_t len, struct ray_nodes *ret, struct err *err)
{
    static const struct reader reader = {"node", sizeof(struct ray_node), ray_read_node,
                                         compare_nodes};
    _cleanup_(json_unrefp) json_t *root = NULL;
    const json_t *list;
    bool partial;
    int r = read_envelope(text, len, &root, &list, &partial, err);
    if (r < 0)
        return r;
    if (partial)
        return message_refuse(err, ERR_BAD_REQUEST, "ray_some_nodes", MESSAGE_NO_ARGS);
    struct ray_nodes nodes = {0};
    void *v = NULL;
    r = read_list(list, &reader, &v, &nodes.n, err);
    nodes.v = v;
    if (r < 0)
        ray_nodes_release(&nodes);
    else
        *ret = nodes;
    return r;
}

int ray_parse_metrics_port(const char *text,
                           size_t len,
                           const char *node_id,
                           int *ret,
                           struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = ray_read_json(text, len, JSON_OBJECT, &root, err);
    if (r < 0)
        return r;
    const json_t *detail = json_get_object(json_get_object(root, "data"), "detail");
    const json_t *raylet = json_get_object(detail, "raylet");
    int64_t port = json_get_int(raylet, "metricsExportPort", 0);
    if (!str_eq(json_get_str(raylet, "nodeId", ""), node_id) || port < 1 || port > 65535)
        return message_refuse(err, ERR_NOT_FOUND, "ray_metrics_port",
                              MESSAGE_ARGS(MESSAGE_STR("node", node_id)));
    *ret = (int)port;
    return 0;
}

/* -- usage ------------------------------------------------------------------ */

/* "GPU": [used, total]; nothing of the kind is 0 of 0. */
static void get_usage(const json_t *from, const char *name, double *ret_used, double *ret_total)
{
    const json_t *two = json_get_array(from, name);
    *ret_used = json_number_value(json_array_get(two, 0));
    *ret_total = json_number_value(json_array_get(two, 1));
}

static int compare_usages(const void *a, const void *b)
{
    const struct ray_usage *x = a, *y = b;
    return strcmp(x->node_id, y->node_id);
}

int ray_parse_usages(const char *text, size_t len, struct ray_usages *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = ray_read_json(text, len, JSON_OBJECT, &root, err);
    if (r < 0)
        return r;
    const json_t *status = json_get_object(json_get_object(root, "data"), "clusterStatus");
    json_t *nodes = json_object_get(json_get_object(status, "loadMetricsReport"), "usageByNode");
    if (!json_is_object(nodes))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_no_report", MESSAGE_NO_ARGS);
    size_t count = json_object_size(nodes);
    if (count > RAY_LIST_MAX)
        return message_refuse(
            err, ERR_BAD_REQUEST, "ray_long_report",
            MESSAGE_ARGS(MESSAGE_NUM("nodes", count), MESSAGE_NUM("most", RAY_LIST_MAX)));
    double seconds = json_get_real(status, "time", 0);
    struct ray_usages usages = {
        .v = xcalloc(count + 1, sizeof(*usages.v)),
        .time = seconds >= 1 && seconds < 1e11 ? (usec_t)(seconds * (double)USEC_SEC) : 0,
    };
    for (void *it = json_object_iter(nodes); it; it = json_object_iter_next(nodes, it)) {
        struct ray_usage *u = &usages.v[usages.n++];
        u->node_id = xstrdup(json_object_iter_key(it));
        get_usage(json_object_iter_value(it), "CPU", &u->cpus_used, &u->cpus_total);
        get_usage(json_object_iter_value(it), "GPU", &u->gpus_used, &u->gpus_total);
    }
    xsort(usages.v, usages.n, sizeof(*usages.v), compare_usages);
    *ret = usages;
    return 0;
}

/* -- actors ----------------------------------------------------------------- */

static int read_actor(const json_t *from, void *out, struct err *err)
{
    enum ray_actor_state state = ray_actor_state_from_string(json_get_str(from, "state", ""));
    if (!*json_get_str(from, "actor_id", ""))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_actor_id", MESSAGE_NO_ARGS);
    if (state == RAY_ACTOR_DEAD)
        return 0;
    struct ray_actor actor = {
        .actor_id = ray_get_text(from, "actor_id"),
        .class_name = ray_get_text(from, "class_name"),
        .name = ray_get_text(from, "name"),
        .state = state,
        .job_id = ray_get_text(from, "job_id"),
        .node_id = ray_get_text(from, "node_id"),
        .pid = json_get_int(from, "pid", 0),
        .is_detached = json_get_bool(from, "is_detached", false),
        .group_id = ray_get_text(from, "placement_group_id"),
    };
    get_amounts(from, "required_resources", &actor.resources);
    *(struct ray_actor *)out = actor;
    return 1;
}

static int compare_actors(const void *a, const void *b)
{
    const struct ray_actor *x = a, *y = b;
    return strcmp(x->actor_id, y->actor_id);
}

int ray_parse_actors(const char *text, size_t len, struct ray_actors *ret, struct err *err)
{
    static const struct reader reader = {"actor", sizeof(struct ray_actor), read_actor,
                                         compare_actors};
    _cleanup_(json_unrefp) json_t *root = NULL;
    const json_t *list;
    struct ray_actors actors = {0};
    int r = read_envelope(text, len, &root, &list, &actors.is_partial, err);
    if (r < 0)
        return r;
    void *v = NULL;
    r = read_list(list, &reader, &v, &actors.n, err);
    actors.v = v;
    if (r < 0)
        ray_actors_release(&actors);
    else
        *ret = actors;
    return r;
}

/* -- placement groups --------------------------------------------------------- */

static void read_bundles(const json_t *from, struct ray_group *group)
{
    const json_t *list = json_get_array(from, "bundles");
    size_t n = json_array_size(list);
    group->bundles = xcalloc(n + 1, sizeof(*group->bundles));
    for (group->n_bundles = 0; group->n_bundles < n; group->n_bundles++) {
        const json_t *bundle = json_array_get(list, group->n_bundles);
        struct ray_bundle *b = &group->bundles[group->n_bundles];
        b->node_id = ray_get_text(bundle, "node_id");
        get_amounts(bundle, "unit_resources", &b->resources);
    }
}

static int ray_read_group(const json_t *from, void *out, struct err *err)
{
    enum ray_group_state state = ray_group_state_from_string(json_get_str(from, "state", ""));
    if (!*json_get_str(from, "placement_group_id", ""))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_group_id", MESSAGE_NO_ARGS);
    if (state == RAY_GROUP_REMOVED)
        return 0;
    const json_t *stats = json_get_object(from, "stats");
    struct ray_group group = {
        .group_id = ray_get_text(from, "placement_group_id"),
        .name = ray_get_text(from, "name"),
        .job_id = ray_get_text(from, "creator_job_id"),
        .state = state,
        .is_detached = json_get_bool(from, "is_detached", false),
        .scheduling_state = ray_get_text(stats, "scheduling_state"),
        .scheduling_attempts = json_get_int(stats, "scheduling_attempt", 0),
    };
    read_bundles(from, &group);
    *(struct ray_group *)out = group;
    return 1;
}

static int compare_groups(const void *a, const void *b)
{
    const struct ray_group *x = a, *y = b;
    return strcmp(x->group_id, y->group_id);
}

int ray_parse_groups(const char *text, size_t len, struct ray_groups *ret, struct err *err)
{
    static const struct reader reader = {"placement group", sizeof(struct ray_group),
                                         ray_read_group, compare_groups};
    _cleanup_(json_unrefp) json_t *root = NULL;
    const json_t *list;
    struct ray_groups groups = {0};
    int r = read_envelope(text, len, &root, &list, &groups.is_partial, err);
    if (r < 0)
        return r;
    void *v = NULL;
    r = read_list(list, &reader, &v, &groups.n, err);
    groups.v = v;
    if (r < 0)
        ray_groups_release(&groups);
    else
        *ret = groups;
    return r;
}

/* -- small answers ------------------------------------------------------------ */

int ray_parse_flag(const char *text, size_t len, const char *name, bool *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = ray_read_json(text, len, JSON_OBJECT, &root, err);
    if (r < 0)
        return r;
    const json_t *flag = json_object_get(root, name);
    if (!json_is_boolean(flag))
        return message_refuse(err, ERR_BAD_REQUEST, "ray_reply_lacks",
                              MESSAGE_ARGS(MESSAGE_STR("key", name)));
    *ret = json_is_true(flag);
    return 0;
}

int ray_parse_submitted(const char *text, size_t len, char **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    int r = ray_read_json(text, len, JSON_OBJECT, &root, err);
    if (r < 0)
        return r;
    char *id = ray_get_text(root, "submission_id");
    if (!id)
        return message_refuse(err, ERR_BAD_REQUEST, "ray_reply_lacks",
                              MESSAGE_ARGS(MESSAGE_STR("key", "submission_id")));
    *ret = id;
    return 0;
}
