/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - files and models as they lie there; see look.h. */
#define _GNU_SOURCE
#include "fsroot/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "core/safetensors.h"

enum {
    CONFIG_MAX = 8 << 20,
    INDEX_MAX = 32 << 20,
    HEADER_MAX = 32 << 20, /* of one shard; a longer one is believed */
    TREE_MAX = 1 << 20,
    DIR_ENTRIES_MAX = 100000,
};

/* ---- one file ---- */

/* Opened for reading, without ever waiting for a pipe or a device. -errno. */
static int open_plain(const char *path, struct stat *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, ret) == 0)
        return fd;
    int r = -errno;
    (void)close(fd); /* nothing was written */
    return r;
}

/* What cannot be read is missing. */
static size_t read_at(int fd, void *buf, size_t n, uint64_t at)
{
    size_t got;
    (void)file_read_at(fd, at, buf, n, &got); /* fewer bytes tell it */
    return got;
}

static char *why_not_a_tree(const char *path)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TREE_MAX);
    _cleanup_(problems_release) struct problems ps = {0};
    struct doc *d = NULL;
    struct err err = {0};
    if (file_read(path, &text, &err) < 0)
        return xstrdup(err.text);
    if (doc_parse(buf_str(&text), text.len, true, &d, &ps) < 0)
        return ps.n && ps.v[0].line
                   ? xasprintf("%s at %d:%d", ps.v[0].text, ps.v[0].line, ps.v[0].column)
                   : xstrdup(ps.n ? ps.v[0].text : "it is broken");
    doc_free(d);
    return NULL;
}

/* A link out of the root: what it leads to is not opened. A program may lie anywhere. */
static bool leads_out(const struct preflight_file *f, const char *root, const char *real_root)
{
    size_t n = real_root ? strlen(real_root) : 0;
    return f->kind != PREFLIGHT_PROGRAM && f->real && n && str_starts(f->path, root) &&
           (strncmp(f->real, real_root, n) != 0 || (f->real[n] && f->real[n] != '/'));
}

static void look_at_file(struct preflight_file *f, const char *root, const char *real_root)
{
    struct stat st;
    /* Not opened before it is known to be plain: opening a device may do something. */
    if (stat(f->path, &st) < 0) {
        f->error = errno;
        return;
    }
    f->is_dir = S_ISDIR(st.st_mode);
    f->is_file = S_ISREG(st.st_mode);
    f->size = (uint64_t)st.st_size;
    f->real = realpath(f->path, NULL);
    if (leads_out(f, root, real_root))
        return;
    if (access(f->path, f->is_dir ? R_OK | X_OK : R_OK) < 0) {
        f->error = errno;
        return;
    }
    f->may_run = access(f->path, X_OK) == 0;
    if (!f->is_file)
        return;
    int fd = open_plain(f->path, &st);
    if (fd < 0) {
        f->error = -fd;
        return;
    }
    f->n_head = read_at(fd, f->head, sizeof(f->head), 0);
    if (f->size >= sizeof(f->tail))
        (void)read_at(fd, f->tail, sizeof(f->tail), f->size - sizeof(f->tail)); /* else zeros */
    (void)close(fd); /* it was only read */
    if (f->kind == PREFLIGHT_TREE)
        f->broken = why_not_a_tree(f->path);
}

/* ---- a model ---- */

static char *in(const char *dir, const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void look_into_safetensors(int fd, struct preflight_shard *d)
{
    unsigned char first[SAFETENSORS_LENGTH_BYTES];
    struct safetensors st;
    struct err err = {0};
    uint64_t n;
    if (read_at(fd, first, sizeof(first), 0) < sizeof(first)) {
        d->broken = xstrdup("it has fewer than 8 bytes");
        return;
    }
    if (safetensors_header_length(first, &n, &err) < 0) {
        d->broken = xstrdup(err.text);
        return;
    }
    d->wants = n + sizeof(first);
    if (n > HEADER_MAX || d->wants > d->size)
        return;
    char *header = xcalloc(1, (size_t)n + 1);
    if (read_at(fd, header, (size_t)n, sizeof(first)) < n)
        d->broken = xstrdup("its header cannot be read");
    else if (safetensors_read(header, (size_t)n, &st, &err) < 0)
        d->broken = xstrdup(err.text);
    else {
        d->wants = st.bytes;
        d->elements = st.elements;
    }
    free(header);
}

static void look_at_shard(const char *dir, struct preflight_shard *d)
{
    _cleanup_(freep) char *path = in(dir, d->name);
    struct stat st;
    int fd = open_plain(path, &st);
    if (fd < 0) {
        d->error = -fd;
        return;
    }
    d->size = (uint64_t)st.st_size;
    d->is_safetensors = str_ends(d->name, ".safetensors");
    if (!S_ISREG(st.st_mode)) {
        d->broken = xstrdup("it is no plain file");
    } else {
        d->n_head = read_at(fd, d->head, sizeof(d->head), 0);
        if (d->is_safetensors && d->size && !preflight_name_head(d->head, d->n_head))
            look_into_safetensors(fd, d);
    }
    (void)close(fd); /* it was only read */
}

static void add_shard(struct preflight_model *m, const char *name)
{
    if (m->n_shards >= PREFLIGHT_SHARDS_MAX)
        return;
    for (size_t i = 0; i < m->n_shards; i++)
        if (!strcmp(m->shards[i].name, name))
            return;
    m->shards = xrealloc(m->shards, m->n_shards + 1, sizeof(*m->shards));
    m->shards[m->n_shards++] = (struct preflight_shard){.name = xstrdup(name)};
}

/* The JSON object in dir/name; NULL: *ret_why says what is wrong with it, or is NULL as well
 * when there is no such file. */
static json_t *read_object(const char *dir, const char *name, size_t max, char **ret_why)
{
    _cleanup_(freep) char *path = in(dir, name);
    _cleanup_(buf_release) struct buf text = BUF_INIT(max);
    struct err err = {0};
    json_t *root = NULL;
    int r = file_read(path, &text, &err);
    *ret_why = NULL;
    if (r == -ENOENT)
        return NULL;
    const char *what = preflight_name_head((const unsigned char *)buf_str(&text), text.len);
    if (r == 0 && what)
        *ret_why = xasprintf("it is %s", what);
    else if (r < 0 || json_parse(buf_str(&text), text.len, max, &root, &err) < 0)
        *ret_why = xstrdup(err.text);
    else if (!json_is_object(root))
        *ret_why = xstrdup("it is no JSON object");
    if (!*ret_why)
        return root;
    json_decref(root);
    return NULL;
}

static bool read_index(struct preflight_model *m, const char *name)
{
    json_t *root = read_object(m->path, name, INDEX_MAX, &m->index_broken);
    const char *tensor;
    json_t *v;
    if (!root && !m->index_broken)
        return false;
    m->has_index = true;
    set_str(&m->index_name, name);
    json_t *map = json_object_get(root, "weight_map");
    if (root && !json_is_object(map))
        m->index_broken = xstrdup("it has no 'weight_map'");
    json_object_foreach (map, tensor, v) {
        const char *file = json_string_value(v);
        if (file && *file && *file != '.' && !strchr(file, '/'))
            add_shard(m, file);
    }
    json_decref(root);
    return true;
}

static bool is_weights(const char *name)
{
    return str_ends(name, ".safetensors") ||
           (str_starts(name, "pytorch_model") && str_ends(name, ".bin")) || str_ends(name, ".gguf");
}

static void look_at_names(struct preflight_model *m, bool want_weights)
{
    static const char *const tokenizers[] = {"tokenizer.json", "tokenizer_config.json",
                                             "tokenizer.model", "vocab.json", "vocab.txt"};
    DIR *dir = opendir(m->path);
    int n = 0;
    m->is_empty = true;
    if (!dir) {
        m->error = errno;
        return;
    }
    for (struct dirent *e; (e = readdir(dir)) && n < DIR_ENTRIES_MAX; n++) {
        if (e->d_name[0] == '.')
            continue;
        m->is_empty = false;
        for (size_t i = 0; i < array_len(tokenizers); i++)
            m->has_tokenizer |= !strcmp(e->d_name, tokenizers[i]);
        if (want_weights && is_weights(e->d_name))
            add_shard(m, e->d_name);
    }
    (void)closedir(dir); /* it was only read */
}

/* The snapshot that refs/main names, else any; false if there is none. */
static bool enter_hub_snapshot(struct preflight_model *m)
{
    _cleanup_(freep) char *ref = in(m->path, "refs/main");
    _cleanup_(freep) char *all = in(m->path, "snapshots");
    _cleanup_(buf_release) struct buf text = BUF_INIT(200);
    char *found = NULL;
    if (file_read(ref, &text, NULL) == 0 && text.len) {
        const char *name = buf_str(&text);
        size_t n = strcspn(name, " \t\r\n/");
        _cleanup_(freep) char *rev = xstrndup(name, n);
        found = in(all, rev);
        if (*rev == '.' || !file_is_there(found))
            freep(&found);
    }
    DIR *dir = found ? NULL : opendir(all);
    for (struct dirent *e; dir && !found && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            found = in(all, e->d_name);
    if (dir)
        (void)closedir(dir); /* it was only read */
    if (!found)
        return false;
    free(m->path);
    m->path = found;
    return true;
}

static void look_at_model(struct preflight_model *m)
{
    struct stat st;
    if (m->is_hub && !enter_hub_snapshot(m)) {
        m->error = ENOENT;
        return;
    }
    if (stat(m->path, &st) < 0) {
        m->error = errno;
        return;
    }
    m->is_dir = S_ISDIR(st.st_mode);
    m->real = realpath(m->path, NULL);
    if (!m->is_dir)
        return;
    if (!m->only_there && !read_index(m, "model.safetensors.index.json"))
        (void)read_index(m, "pytorch_model.bin.index.json"); /* none: what lies there counts */
    look_at_names(m, !m->has_index);
    if (m->error || m->only_there)
        return;
    json_t *config = read_object(m->path, "config.json", CONFIG_MAX, &m->config_broken);
    m->has_config = config || m->config_broken;
    json_decref(config);
    for (size_t i = 0; i < m->n_shards; i++)
        look_at_shard(m->path, &m->shards[i]);
}

/* ---- all ---- */

void fsroot_look(const char *shared_root, struct preflight_facts *f, _Atomic(size_t) *at)
{
    struct statvfs vfs;
    f->real_root = realpath(shared_root, NULL);
    f->has_free = statvfs(shared_root, &vfs) == 0;
    if (f->has_free)
        f->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    for (size_t i = 0; i < f->n_files; i++) {
        if (at)
            *at = i + 1;
        look_at_file(&f->files[i], shared_root, f->real_root);
    }
    if (at)
        *at = f->n_files + 1;
    if (f->model)
        look_at_model(f->model);
}
