/* SPDX-License-Identifier: Apache-2.0 */
/* look_model.c - the looks at a model: its config, its weights by index or by name, the headers of
 * its shards; also in a cache of the hub. */
#define _GNU_SOURCE
#include "base/message.h"
#include "fsroot/look/looking.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "core/check/safetensors.h"
#include "fsroot/look/looked.h"
#include "fsroot/tree/rootdir.h"

enum {
    CONFIG_MAX = 8 << 20,
    INDEX_MAX = 32 << 20,
    HEADER_MAX = 32 << 20, /* of one shard; a longer one is believed */
    DIR_ENTRIES_MAX = 100000,
};

static char *in(const char *dir, const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

/* False: it could not be read, which may pass. */
static bool look_into_safetensors(int fd, struct preflight_shard *d)
{
    unsigned char first[SAFETENSORS_LENGTH_BYTES];
    struct safetensors st;
    struct err err = {0};
    uint64_t n;
    if (look_read_at(fd, first, sizeof(first), 0) < sizeof(first)) {
        d->broken = xstrdup("shard_short{}");
        return d->size < sizeof(first);
    }
    if (safetensors_header_length(first, &n, &err) < 0) {
        d->broken = message_keep(&err);
        return true;
    }
    d->wants = n + sizeof(first);
    if (n > HEADER_MAX || d->wants > d->size)
        return true;
    bool was_read = true;
    char *header = xcalloc(1, (size_t)n + 1);
    if (look_read_at(fd, header, (size_t)n, sizeof(first)) < n) {
        d->broken = xstrdup("shard_no_header{}");
        was_read = false;
    } else if (safetensors_read(header, (size_t)n, &st, &err) < 0) {
        d->broken = message_keep(&err);
    } else {
        d->wants = st.bytes;
        d->elements = st.elements;
    }
    free(header);
    return was_read;
}

static bool find_shard(const struct looking *k,
                       const char *path,
                       const struct stat *st,
                       struct preflight_shard *d)
{
    struct looked_facts f;
    if (!looked_find(k->known, LOOKED_SHARD, path, st, &f))
        return false;
    d->size = (uint64_t)st->st_size;
    memcpy(d->head, f.head, sizeof(d->head));
    d->n_head = f.n_head;
    d->wants = f.wants;
    d->elements = f.elements;
    d->broken = f.broken;
    return true;
}

static void look_read_shard(const struct looking *k,
                            const char *path,
                            const char *name,
                            struct preflight_shard *d)
{
    struct stat st = {0};
    int fd = look_open_plain(&k->dir, name, &st);
    if (fd < 0) {
        d->error = -fd;
        return;
    }
    d->size = (uint64_t)st.st_size;
    d->n_head = look_read_at(fd, d->head, sizeof(d->head), 0);
    bool was_read = d->n_head || !d->size;
    if (d->is_safetensors && d->size && !preflight_name_head(d->head, d->n_head))
        was_read &= look_into_safetensors(fd, d);
    (void)close(fd); /* it was only read */
    struct looked_facts f = {
        .n_head = d->n_head, .wants = d->wants, .elements = d->elements, .broken = d->broken};
    memcpy(f.head, d->head, sizeof(f.head));
    if (was_read)
        looked_add(k->known, LOOKED_SHARD, path, &st, &f);
}

static void look_at_shard(struct looking *k, const char *dir, struct preflight_shard *d)
{
    struct stat st;
    _cleanup_(freep) char *path = in(dir, d->name);
    _cleanup_(freep) char *name = NULL;
    _cleanup_(freep) char *out = NULL;
    d->is_safetensors = str_ends(d->name, ".safetensors");
    int r = look_reach(k, path, &name, &st, &out);
    d->is_elsewhere = r == -EXDEV;
    if (r < 0)
        d->error = d->is_elsewhere ? 0 : -r;
    else if (!S_ISREG(st.st_mode))
        d->broken = xstrdup("no_plain_file{}");
    else if (!find_shard(k, path, &st, d))
        look_read_shard(k, path, name, d);
}

/* There is none of this name. */
static void append_shard(struct preflight_model *m, const char *name)
{
    if (m->n_shards >= PREFLIGHT_SHARDS_MAX)
        return;
    m->shards = xrealloc(m->shards, m->n_shards + 1, sizeof(*m->shards));
    m->shards[m->n_shards++] = (struct preflight_shard){.name = xstrdup(name)};
}

static void look_add_shard(struct preflight_model *m, const char *name)
{
    for (size_t i = m->n_shards; i-- > 0;) /* most often it is the last one again */
        if (!strcmp(m->shards[i].name, name))
            return;
    append_shard(m, name);
}

/* The JSON object in this file of k->dir; NULL: *ret_why says what is wrong with it. */
static json_t *look_read_object(const struct looking *k,
                                const char *name,
                                size_t max,
                                char **ret_why)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(max);
    struct err err = {0};
    json_t *root = NULL;
    int r = rootdir_read(&k->dir, name, &text, &err);
    const char *what = preflight_name_head((const unsigned char *)buf_str(&text), text.len);
    *ret_why = NULL;
    if (r == 0 && what)
        *ret_why = xasprintf("json_is{\"is\":\"%s\"}", what); /* a word of ours */
    else if (r < 0 || json_parse(buf_str(&text), text.len, max, &root, &err) < 0)
        *ret_why = message_keep(&err);
    else if (!json_is_object(root))
        *ret_why = xstrdup("json_no_object{}");
    if (!*ret_why)
        return root;
    json_decref(root);
    return NULL;
}

static bool find_index(struct preflight_model *m,
                       struct looked *known,
                       const char *path,
                       const struct stat *st)
{
    struct looked_facts f;
    if (!looked_find(known, LOOKED_INDEX, path, st, &f))
        return false;
    for (size_t i = 0; i < f.names.n; i++)
        append_shard(m, f.names.v[i]);
    looked_facts_release(&f);
    return true;
}

static void keep_index(const struct preflight_model *m,
                       struct looked *known,
                       const char *path,
                       const struct stat *st)
{
    struct looked_facts f = {0};
    for (size_t i = 0; i < m->n_shards; i++)
        strv_add(&f.names, m->shards[i].name);
    looked_add(known, LOOKED_INDEX, path, st, &f);
    looked_facts_release(&f);
}

/* An index that a link has off the root is none: then what lies there counts. */
static bool read_index(struct preflight_model *m, struct looking *k, const char *name)
{
    const char *tensor;
    json_t *v;
    struct stat st;
    _cleanup_(freep) char *path = in(m->path, name);
    _cleanup_(freep) char *last = NULL;
    _cleanup_(freep) char *out = NULL;
    if (look_reach(k, path, &last, &st, &out) < 0)
        return false;
    m->has_index = true;
    set_str(&m->index_name, name);
    if (find_index(m, k->known, path, &st))
        return true;
    json_t *root = look_read_object(k, last, INDEX_MAX, &m->index_broken);
    json_t *map = json_object_get(root, "weight_map");
    if (root && !json_is_object(map))
        m->index_broken = xstrdup("index_no_map{}");
    json_object_foreach (map, tensor, v) {
        const char *file = json_string_value(v);
        if (file && *file && *file != '.' && !strchr(file, '/'))
            look_add_shard(m, file);
    }
    if (root && !m->index_broken)
        keep_index(m, k->known, path, &st);
    json_decref(root);
    return true;
}

static void look_at_config(struct preflight_model *m, struct looking *k)
{
    struct stat st;
    struct looked_facts f = {0};
    _cleanup_(freep) char *path = in(m->path, "config.json");
    _cleanup_(freep) char *name = NULL;
    _cleanup_(freep) char *out = NULL;
    int r = look_reach(k, path, &name, &st, &out);
    m->has_config = r == -EXDEV || (r == 0 && looked_find(k->known, LOOKED_OBJECT, path, &st, &f));
    if (r < 0 || m->has_config)
        return; /* it is an object: what is broken is not kept */
    json_t *config = look_read_object(k, name, CONFIG_MAX, &m->config_broken);
    m->has_config = true;
    if (config)
        looked_add(k->known, LOOKED_OBJECT, path, &st, &f);
    json_decref(config);
}

static bool is_weights(const char *name)
{
    return str_ends(name, ".safetensors") ||
           (str_starts(name, "pytorch_model") && str_ends(name, ".bin")) || str_ends(name, ".gguf");
}

static void look_at_names(struct preflight_model *m, const struct rootdir *d, bool want_weights)
{
    static const char *const tokenizers[] = {"tokenizer.json", "tokenizer_config.json",
                                             "tokenizer.model", "vocab.json", "vocab.txt"};
    DIR *dir = NULL;
    int n = 0, r = rootdir_list(d, &dir, NULL);
    m->is_empty = true;
    if (r < 0) {
        m->error = -r;
        return;
    }
    for (struct dirent *e; (e = readdir(dir)) && n < DIR_ENTRIES_MAX; n++) {
        if (e->d_name[0] == '.')
            continue;
        m->is_empty = false;
        for (size_t i = 0; i < array_len(tokenizers); i++)
            m->has_tokenizer |= !strcmp(e->d_name, tokenizers[i]);
        if (want_weights && is_weights(e->d_name))
            look_add_shard(m, e->d_name);
    }
    (void)closedir(dir); /* it was only read */
}

/* The revision that refs/main names, where it is there; NULL. */
static char *hub_main(const struct rootdir *top, const char *hub)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(200);
    _cleanup_(freep) char *ref = in(hub, "refs/main");
    _cleanup_(closep) int fd = rootdir_open_followed(top, ref, O_RDONLY, NULL);
    if (fd < 0 || file_read_open(fd, ref, &text, NULL) < 0 || !text.len)
        return NULL;
    const char *name = buf_str(&text);
    _cleanup_(freep) char *rev = xstrndup(name, strcspn(name, " \t\r\n/"));
    _cleanup_(freep) char *path = xasprintf("%s/snapshots/%s", hub, rev);
    _cleanup_(closep) int there = *rev == '.' ? -1 : rootdir_open_followed(top, path, O_PATH, NULL);
    return there < 0 ? NULL : xstrdup(rev);
}

/* A negative errno: -EXDEV, a link has them elsewhere. */
static int hub_any(const struct rootdir *top, const char *hub, char **ret)
{
    _cleanup_(freep) char *all = in(hub, "snapshots");
    int fd = rootdir_open_followed(top, all, O_RDONLY | O_DIRECTORY, NULL);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = fd < 0 ? fd : -ENOENT;
    if (!dir)
        closep(&fd);
    for (struct dirent *e; dir && r < 0 && (e = readdir(dir));)
        if (e->d_name[0] != '.') {
            *ret = xstrdup(e->d_name);
            r = 0;
        }
    if (dir)
        (void)closedir(dir); /* it was only read */
    return r;
}

/* The snapshot that refs/main names, else any. A negative errno, as of hub_any(). */
static int enter_hub_snapshot(struct preflight_model *m, const struct rootdir *top)
{
    const char *hub = rootdir_below(top->path, m->path);
    _cleanup_(freep) char *rev = hub ? hub_main(top, hub) : NULL;
    int r = rev ? 0 : hub ? hub_any(top, hub, &rev) : -ENOENT;
    if (r < 0)
        return r;
    char *path = xasprintf("%s/snapshots/%s", m->path, rev);
    free(m->path);
    m->path = path;
    return 0;
}

/* A file in its place is a fact as well. */
static int look_open_model(struct preflight_model *m,
                           const struct looking *k,
                           const char *below,
                           struct rootdir *ret)
{
    char *real = NULL;
    int fd = rootdir_open_followed(k->top, below, O_RDONLY | O_DIRECTORY, &real);
    if (fd == -EXDEV) {
        m->is_elsewhere = m->is_hub;
        m->real = look_outside(k, real);
    } else if (fd >= 0) {
        m->real = xasprintf("%s/%s", k->top->path, real);
        free(real);
        *ret = (struct rootdir){.fd = fd, .path = xstrdup(m->path)};
    }
    m->is_dir = fd >= 0 || fd == -EXDEV;
    return fd < 0 ? fd : 0;
}

static void look_at_model(struct preflight_model *m, struct looking *k)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int r = m->is_hub ? enter_hub_snapshot(m, k->top) : 0;
    m->is_elsewhere = r == -EXDEV;
    if (r < 0) {
        m->error = m->is_elsewhere ? 0 : ENOENT;
        return;
    }
    const char *below = rootdir_below(k->top->path, m->path);
    r = below ? look_open_model(m, k, below, &dir) : -ENOENT;
    if (r == -ENOTDIR) {
        _cleanup_(closep) int fd = rootdir_open_followed(k->top, below, O_PATH, NULL);
        m->error = fd < 0 ? ENOTDIR : 0;
        return;
    }
    if (r < 0) {
        m->error = r == -EXDEV ? 0 : -r;
        return;
    }
    if (!m->only_there && !read_index(m, k, "model.safetensors.index.json"))
        (void)read_index(m, k, "pytorch_model.bin.index.json"); /* none: what lies there counts */
    look_at_names(m, &dir, !m->has_index);
    if (m->error || m->only_there)
        return;
    look_at_config(m, k);
    for (size_t i = 0; i < m->n_shards; i++)
        look_at_shard(k, m->path, &m->shards[i]);
}

void look_at_model_there(struct preflight_model *m, const struct looking *on_root)
{
    _cleanup_(rootdir_release) struct rootdir cache = ROOTDIR_NONE;
    struct looking k = {.top = on_root->top, .known = on_root->known, .dir = ROOTDIR_NONE};
    if (m->cache && rootdir_open(m->cache, "", 0, &cache, NULL) < 0) {
        m->error = ENOENT;
        return;
    }
    if (m->cache)
        k.top = &cache;
    look_at_model(m, &k);
    looking_release(&k);
}
