/* SPDX-License-Identifier: Apache-2.0 */
/* nodespec.c - the table of a NodeSpec's keys, and what it cannot say; see nodespec.h.
 *
 * host, user and proxy_jump become words on ssh's command line: they may hold nothing that
 * ssh or a shell could take for something else. */
#include "core/spec/nodespec.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* What the table fills; the labels are taken apart afterwards. */
struct raw {
    struct nodespec s;
    const struct node *labels;
};

static const char *const exporter_names[] = {
#define X(e, word, program) word,
    NODESPEC_EXPORTER_TABLE(X)
#undef X
        NULL};

#define AT(member) offsetof(struct raw, member)

enum { MODEL_CACHE_MAX = 200 };
#define MODEL_CACHE_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@"

/* clang-format off */
static const struct field keys[] = {
    {"name", FIELD_STR, AT(s.name), .flags = FIELD_REQUIRED,
     .doc = "the node's name, for ever: 1 to 63 of A-Z a-z 0-9 _ . -"},
    {"cluster", FIELD_STR, AT(s.cluster), .doc = "the cluster that it joins; there is one"},
    {"host", FIELD_STR, AT(s.host), .flags = FIELD_REQUIRED,
     .doc = "address or name for ssh, as argusd's machine knows it"},
    {"user", FIELD_STR, AT(s.user), .doc = "user that ssh logs in as; ssh.user of argus.yaml if absent"},
    {"port", FIELD_INT, AT(s.port), NULL, 1, 65535, .doc = "port of sshd; 22, or what ~/.ssh/config says"},
    {"labels", FIELD_NODE, AT(labels), .schema = "{\"type\":[\"string\",\"array\",\"object\"],"
     "\"items\":{\"type\":\"string\"},\"additionalProperties\":{\"type\":[\"string\",\"null\"]}}",
     .doc = "pools that it belongs to: a list, 'a,b' or a mapping; network=X and shareable are "
            "labels with a meaning"},
    {"gpu_count", FIELD_INT, AT(s.gpu_count), "-1", -1, 64,
     .doc = "GPUs declared to Ray; what nvidia-smi shows if absent"},
    {"cpu_count", FIELD_INT, AT(s.cpu_count), "-1", -1, 4096,
     .doc = "CPUs declared to Ray; if absent, what the machine has, and at least "
            "nodes.cpus_per_gpu for each GPU"},
    {"gpu_type", FIELD_STR, AT(s.gpu_type), .doc = "shown in tables; what nvidia-smi says if absent"},
    {"identity_file", FIELD_STR, AT(s.identity_file),
     .doc = "private key on argusd's machine; ssh.identity_file of argus.yaml if absent"},
    {"proxy_jump", FIELD_STR, AT(s.proxy_jump), .doc = "[user@]host[:port], or several with commas"},
    {"ray_bin", FIELD_STR, AT(s.ray_bin), .doc = "path of ray on the node; looked for if absent"},
    {"env", FIELD_PAIRS, AT(s.env), .doc = "environment of Ray there, and so of all that runs there"},
    {"image", FIELD_STR, AT(s.image), .doc = "tag of the container's image: a note, never pulled"},
    {"exporter", FIELD_ENUM, AT(s.exporter), .names = exporter_names,
     .doc = "dcgm or nvidia: dcgm-exporter or nvidia_gpu_exporter runs beside Ray, kept up by argusd, "
            "and tells of its GPUs; without it Ray and the driver do"},
    {"check_net", FIELD_BOOL, AT(s.check_net),
     .doc = "each time it joins, the network between it and a machine that shares a label with it is "
            "measured before it takes jobs, as 'argus node check --net' does"},
    {"model_cache", FIELD_STR, AT(s.model_cache),
     .doc = "directory on the node's own disk: registered models are copied there once, before a job "
            "starts, and read from there if all of the job's nodes have this directory"},
};
/* clang-format on */

const struct field_table nodespec_table = {"NodeSpec", keys, array_len(keys), sizeof(struct raw),
                                           FIELD_OMIT};

/* ---- places ---- */

struct reading {
    const struct node *root;
    const char *prefix;
    struct problems *ps;
};

static void nodespec_complain(const struct reading *r,
                              const char *key,
                              const struct node *at,
                              const char *code,
                              const struct message_arg *args)
{
    _cleanup_(freep) char *field = xasprintf("%s%s", r->prefix, key);
    const struct node *n = at ? at : node_find(r->root, key);
    problems_add(r->ps, PROBLEM_ERROR, field, n ? n->line : 0, n ? n->column : 0, code, args);
}

/* ---- words that go to ssh ---- */

static bool nodespec_is_word(const char *s, const char *others)
{
    if (!*s || *s == '-')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(others, *s))
            return false;
    return true;
}

static bool nodespec_is_env_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

int nodespec_check_name(const char *name, struct err *err)
{
    bool good = isalnum((unsigned char)*name) && strlen(name) <= NODESPEC_NAME_MAX;
    for (const char *p = name; good && *p; p++)
        good = isalnum((unsigned char)*p) || strchr("_.-", *p);
    if (!good)
        return message_refuse(err, ERR_BAD_SPEC, "bad_node_name",
                              MESSAGE_ARGS(MESSAGE_STR("name", name)));
    return 0;
}

/* "::1", "fe80::1%eth0" */
static bool nodespec_is_v6(const char *host)
{
    struct in6_addr v6;
    _cleanup_(freep) char *bare = xstrndup(host, strcspn(host, "%"));
    return inet_pton(AF_INET6, bare, &v6) == 1;
}

/* Brackets and a port belong to URLs; ssh takes the port by itself. */
int nodespec_check_host(const char *host, struct err *err)
{
    const char *colon = strrchr(host, ':'), *end = *host == '[' ? strchr(host, ']') : NULL;
    const char *port = end ? end + 1 + (end[1] == ':') : colon ? colon + 1 : NULL;
    if (nodespec_is_word(host, "._-:%") && (!colon || nodespec_is_v6(host)))
        return 0;
    _cleanup_(freep) char *own = end     ? xstrndup(host + 1, (size_t)(end - host) - 1)
                                 : colon ? xstrndup(host, (size_t)(colon - host))
                                         : xstrdup("");
    if (!port || port[strspn(port, "0123456789")] || !nodespec_is_word(own, "._-:%"))
        return message_refuse(err, ERR_BAD_SPEC, "node_host", MESSAGE_NO_ARGS);
    return message_refuse(err, ERR_BAD_SPEC, "node_host_port",
                          MESSAGE_ARGS(MESSAGE_STR("host", host), MESSAGE_STR("own", own),
                                       MESSAGE_STR("port", port)));
}

static void check_ssh(const struct reading *r, const struct nodespec *s)
{
    struct err err = {0};
    if (s->host && nodespec_check_host(s->host, &err) < 0) {
        _cleanup_(freep) char *field = xasprintf("%shost", r->prefix);
        const struct node *n = node_find(r->root, "host");
        problems_add_err(r->ps, PROBLEM_ERROR, field, n ? n->line : 0, n ? n->column : 0, &err);
    }
    if (s->user && !nodespec_is_word(s->user, "._-"))
        nodespec_complain(r, "user", NULL, "node_user", MESSAGE_NO_ARGS);
    if (s->proxy_jump && !nodespec_is_word(s->proxy_jump, "._-:%@,[]"))
        nodespec_complain(r, "proxy_jump", NULL, "node_jump", MESSAGE_NO_ARGS);
    if (s->identity_file && (str_has_control(s->identity_file) || *s->identity_file == '-'))
        nodespec_complain(r, "identity_file", NULL, "node_identity", MESSAGE_NO_ARGS);
    if (s->ray_bin && (*s->ray_bin != '/' || str_has_control(s->ray_bin)))
        nodespec_complain(r, "ray_bin", NULL, "node_ray_bin", MESSAGE_NO_ARGS);
}

static void check_env(const struct reading *r, const struct nodespec *s)
{
    /* What argusd itself sets, or what would lead Ray to another cluster. */
    static const char *const ours[] = {"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN",
                                       "RAY_AUTH_TOKEN_PATH", "BASH_ENV"};
    for (size_t i = 0; i < s->env.n; i++) {
        const char *name = s->env.v[i].key;
        const struct node *at = node_find(node_find(r->root, "env"), name);
        if (!nodespec_is_env_name(name))
            nodespec_complain(r, "env", at, "node_env_name", MESSAGE_NO_ARGS);
        else if (str_starts(name, "ARGUS_"))
            nodespec_complain(r, "env", at, "node_env_ours", MESSAGE_NO_ARGS);
        else if (strchr(s->env.v[i].value, '\n'))
            nodespec_complain(r, "env", at, "node_env_lines", MESSAGE_NO_ARGS);
        for (size_t k = 0; k < array_len(ours); k++)
            if (!strcmp(name, ours[k]))
                nodespec_complain(r, "env", at, "node_env_set", MESSAGE_NO_ARGS);
    }
}

/* ---- labels ---- */

static bool is_label(const char *s)
{
    return nodespec_is_word(s, "._-=/+@") && strlen(s) <= 120;
}

static void add_label(const struct reading *r,
                      struct nodespec *s,
                      const struct node *at,
                      const char *text)
{
    if (!is_label(text)) {
        nodespec_complain(r, "labels", at, "node_label", MESSAGE_NO_ARGS);
    } else if (str_starts(text, "network=")) {
        set_str(&s->network, text + strlen("network="));
    } else if (!strcmp(text, "shareable") || !strcmp(text, "shareable=true")) {
        s->shareable = true;
    } else {
        const char *label = str_starts(text, "pool=") ? text + strlen("pool=") : text;
        if (*label && strcmp(text, "shareable=false") != 0 && !strv_has(&s->labels, label))
            strv_add(&s->labels, label);
    }
}

/* "a,b" */
static void add_labels(const struct reading *r,
                       struct nodespec *s,
                       const struct node *at,
                       const char *key,
                       const char *list)
{
    const char *item;
    size_t n;
    if (!*list)
        add_label(r, s, at, "");
    while ((item = str_item(&list, &n))) {
        _cleanup_(freep) char *text =
            key ? xasprintf("%s=%.*s", key, (int)n, item) : xasprintf("%.*s", (int)n, item);
        add_label(r, s, at, text);
    }
}

static void read_labels(const struct reading *r, struct nodespec *s, const struct node *n)
{
    if (!n || node_is_null(n))
        return;
    if (n->kind == NODE_SCALAR) {
        add_labels(r, s, n, NULL, n->text);
        return;
    }
    for (const struct node *c = n->first; c; c = c->next) {
        if (c->kind != NODE_SCALAR)
            nodespec_complain(r, "labels", c, "node_label_text", MESSAGE_NO_ARGS);
        else
            add_labels(r, s, c, n->kind == NODE_MAP ? c->key : NULL, c->text);
    }
}

/* ---- one ---- */

/* It becomes a part of command lines of jobs, and copies are removed below it. */
static void check_model_cache(const struct reading *r, const struct nodespec *s)
{
    const char *dir = s->model_cache;
    if (dir && (dir[0] != '/' || !dir[1] || strstr(dir, "..") || strlen(dir) > MODEL_CACHE_MAX ||
                dir[strspn(dir, MODEL_CACHE_BYTES)]))
        nodespec_complain(r, "model_cache", NULL, "node_model_cache",
                          MESSAGE_ARGS(MESSAGE_STR("path", dir)));
}

static void check_size(const struct reading *r, const struct nodespec *s)
{
    struct buf text = BUF_INIT(NODESPEC_JSON_MAX);
    struct jout j = jout_begin(&text);
    nodespec_to_json(s, &j, NULL, false);
    if (text.failed)
        nodespec_complain(r, "env", NULL, "node_spec_large", MESSAGE_NO_ARGS);
    buf_release(&text);
}

/* The table's problems get the prefix too. */
static void read_table(const struct reading *r, struct raw *raw)
{
    struct problems own = {0};
    conf_read(keys, array_len(keys), r->root, raw, &own);
    for (size_t i = 0; i < own.n; i++) {
        const struct problem *p = &own.v[i];
        _cleanup_(freep) char *field = xasprintf("%s%s", r->prefix, p->field);
        problems_add_copy(r->ps, p, field, p->line, p->column);
    }
    problems_release(&own);
}

int nodespec_read(const struct node *root,
                  const char *prefix,
                  struct nodespec *ret,
                  struct problems *ps)
{
    struct raw raw = {0};
    struct reading r = {.root = root, .prefix = prefix, .ps = ps};
    size_t before = ps->errors;
    read_table(&r, &raw);
    if (raw.s.name && nodespec_check_name(raw.s.name, NULL) < 0)
        nodespec_complain(&r, "name", NULL, "bad_node_name",
                          MESSAGE_ARGS(MESSAGE_STR("name", raw.s.name)));
    check_ssh(&r, &raw.s);
    check_env(&r, &raw.s);
    read_labels(&r, &raw.s, raw.labels);
    check_model_cache(&r, &raw.s);
    check_size(&r, &raw.s);
    *ret = raw.s;
    return ps->errors > before ? ERR_BAD_SPEC : 0;
}

void nodespec_release(struct nodespec *s)
{
    char *texts[] = {s->name,    s->cluster,  s->host,    s->user,  s->identity_file, s->proxy_jump,
                     s->network, s->gpu_type, s->ray_bin, s->image, s->model_cache};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    strv_release(&s->labels);
    pairs_release(&s->env);
    *s = (struct nodespec){0};
}

void nodespec_move(struct nodespec *dst, struct nodespec *src)
{
    nodespec_release(dst);
    *dst = *src;
    *src = (struct nodespec){0};
}

/* ---- several ---- */

static bool has_own_names(const struct nodespec *v, size_t n, const struct reading *r)
{
    size_t before = r->ps->errors;
    for (size_t i = 0; i < n; i++) {
        if (str_eq(v[i].name, "head"))
            nodespec_complain(r, "name", NULL, "node_is_head", MESSAGE_NO_ARGS);
        for (size_t k = 0; k < i; k++) {
            if (!v[i].name || !v[k].name)
                continue;
            char field[40];
            bool same = !strcmp(v[i].name, v[k].name);
            if (!same && !nodespec_same_machine(&v[i], &v[k]))
                continue;
            text_printf(field, "[%zu]", i);
            nodespec_complain(r, field, r->root, same ? "node_name_twice" : "node_machine_twice",
                              MESSAGE_ARGS(MESSAGE_STR("name", v[k].name)));
        }
    }
    return r->ps->errors == before;
}

int nodespec_read_all(const struct node *root,
                      struct nodespec **ret,
                      size_t *ret_n,
                      struct problems *ps)
{
    const struct node *list = root;
    size_t n = 0;
    bool bad = false;
    if (root && root->kind == NODE_MAP && root->n == 1 && node_find(root, "nodes"))
        list = node_find(root, "nodes");
    bool many = list && list->kind == NODE_SEQ;
    struct reading r = {.root = list, .prefix = "", .ps = ps};
    if (many && (!list->n || list->n > NODESPEC_LIST_MAX)) {
        nodespec_complain(&r, "nodes", list, "node_list", MESSAGE_NO_ARGS);
        return ERR_BAD_SPEC;
    }
    struct nodespec *v = xcalloc(many ? list->n : 1, sizeof(*v));
    if (!many)
        bad = nodespec_read(list, "", &v[n++], ps) < 0;
    for (const struct node *c = many ? list->first : NULL; c; c = c->next) {
        char prefix[32];
        text_printf(prefix, "[%zu].", n);
        bad |= nodespec_read(c, prefix, &v[n++], ps) < 0;
    }
    bad |= !has_own_names(v, n, &r);
    *ret = v;
    *ret_n = n;
    return bad ? ERR_BAD_SPEC : 0;
}

/* ---- writing ---- */

struct nodespec_page {
    struct nodespec s;
    struct strv labels; /* with those that have a meaning of their own */
};
#define PAGE(key, ftype, member, how) FIELD_AT(nodespec_page, key, ftype, member, .flags = (how))
static const struct field shown_rows[] = {
    PAGE("name", FIELD_STR, s.name, FIELD_ALWAYS),
    PAGE("cluster", FIELD_STR, s.cluster, FIELD_OMIT),
    PAGE("host", FIELD_STR, s.host, FIELD_ALWAYS),
    PAGE("user", FIELD_STR, s.user, FIELD_OMIT),
    PAGE("port", FIELD_INT, s.port, FIELD_OMIT),
    PAGE("labels", FIELD_STRV, labels, FIELD_OMIT),
    PAGE("gpu_count", FIELD_INT, s.gpu_count, FIELD_NO_LIMIT | FIELD_OMIT),
    PAGE("cpu_count", FIELD_INT, s.cpu_count, FIELD_NO_LIMIT | FIELD_OMIT),
    PAGE("gpu_type", FIELD_STR, s.gpu_type, FIELD_OMIT),
    PAGE("identity_file", FIELD_STR, s.identity_file, FIELD_OMIT),
    PAGE("proxy_jump", FIELD_STR, s.proxy_jump, FIELD_OMIT),
    PAGE("ray_bin", FIELD_STR, s.ray_bin, FIELD_OMIT),
    FIELD_AT(nodespec_page,
             "env",
             FIELD_PAIRS,
             s.env,
             .flags = FIELD_OMIT,
             .schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"),
    PAGE("image", FIELD_STR, s.image, FIELD_OMIT),
    PAGE("model_cache", FIELD_STR, s.model_cache, FIELD_OMIT),
    FIELD_AT(nodespec_page,
             "exporter",
             FIELD_ENUM,
             s.exporter,
             .flags = FIELD_OMIT,
             .names = exporter_names),
    PAGE("check_net", FIELD_BOOL, s.check_net, FIELD_OMIT),
};
#undef PAGE
const struct field_table nodespec_shown_table =
    FIELD_TABLE("NodeSpecShown", shown_rows, nodespec_page);

void nodespec_to_json(const struct nodespec *s, struct jout *j, const char *key, bool masked)
{
    struct nodespec_page page = {.s = *s};
    strv_copy(&page.labels, &s->labels);
    if (s->network)
        strv_addf(&page.labels, "network=%s", s->network);
    if (s->shareable)
        strv_add(&page.labels, "shareable");
    field_to_json(&nodespec_shown_table, &page, FIELD_ALL, masked ? FIELD_PAGE : FIELD_ROW, j, key);
    strv_release(&page.labels);
}

char *nodespec_text(const struct nodespec *s, bool masked)
{
    struct buf text = BUF_INIT(4 * NODESPEC_JSON_MAX);
    struct jout j = jout_begin(&text);
    nodespec_to_json(s, &j, NULL, masked);
    return buf_take(&text);
}

bool nodespec_equal(const struct nodespec *a, const struct nodespec *b)
{
    struct buf ta = BUF_INIT(NODESPEC_JSON_MAX), tb = BUF_INIT(NODESPEC_JSON_MAX);
    struct jout ja = jout_begin(&ta), jb = jout_begin(&tb);
    nodespec_to_json(a, &ja, NULL, false);
    nodespec_to_json(b, &jb, NULL, false);
    bool same = !ta.failed && !tb.failed && !strcmp(buf_str(&ta), buf_str(&tb));
    buf_release(&ta);
    buf_release(&tb);
    return same;
}

char *nodespec_pool(const struct nodespec *s)
{
    struct buf out = BUF_INIT(NODESPEC_JSON_MAX);
    for (size_t i = 0; i < s->labels.n; i++)
        (void)buf_addf(&out, "%s%s", i ? "," : "", s->labels.v[i]); /* checked when it was read */
    return buf_take(&out);
}

bool nodespec_same_machine(const struct nodespec *a, const struct nodespec *b)
{
    int64_t pa = a->port ? a->port : 22, pb = b->port ? b->port : 22;
    return pa == pb && str_eq(a->host, b->host) && str_eq(a->proxy_jump, b->proxy_jump);
}

void nodespec_describe(struct buf *out)
{
    field_describe(keys, array_len(keys), out);
}
