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
#include "core/check/safetensors.h"
#include "fsroot/looked.h"

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
static size_t look_read_at(int fd, void *buf, size_t n, uint64_t at)
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

/* What the looks of one question share. */
struct looking {
    const char *root, *real_root;
    struct looked *known;
    char *dir, *real_dir; /* where the last file's directory leads */
};

/* Like realpath(), without asking again for the directory of the previous file. st: by lstat(). */
static char *where_it_leads(struct looking *k, const char *path, const struct stat *st)
{
    const char *slash = strrchr(path, '/');
    if (!slash || S_ISLNK(st->st_mode) || !slash[1] || !strcmp(slash, "/.") ||
        !strcmp(slash, "/.."))
        return realpath(path, NULL);
    _cleanup_(freep) char *dir = xstrndup(path, (size_t)(slash - path) + 1);
    if (!str_eq(dir, k->dir)) {
        free(k->real_dir);
        k->real_dir = realpath(dir, NULL);
        set_str(&k->dir, dir);
    }
    return k->real_dir ? xasprintf("%s%s%s", k->real_dir, k->real_dir[1] ? "/" : "", slash + 1)
                       : NULL;
}

/* Nothing is kept of what cannot be read. errno. */
static int read_ends(struct preflight_file *f, struct looked *known, const struct stat *now)
{
    struct looked_facts read = {0};
    struct stat st = {0};
    if (!looked_find(known, LOOKED_FILE, f->path, now, &read)) {
        int fd = open_plain(f->path, &st);
        if (fd < 0)
            return -fd;
        read.n_head = look_read_at(fd, read.head, sizeof(read.head), 0);
        if (f->size >= sizeof(read.tail))
            (void)look_read_at(fd, read.tail, sizeof(read.tail),
                               f->size - sizeof(read.tail)); /* else zeros */
        (void)close(fd);                                     /* it was only read */
        if (read.n_head || !st.st_size)
            looked_add(known, LOOKED_FILE, f->path, &st, &read);
    }
    memcpy(f->head, read.head, sizeof(f->head));
    memcpy(f->tail, read.tail, sizeof(f->tail));
    f->n_head = read.n_head;
    if (f->kind == PREFLIGHT_TREE)
        f->broken = why_not_a_tree(f->path);
    return 0;
}

static void look_at_file(struct preflight_file *f, struct looking *k)
{
    struct stat st;
    /* Not opened before it is known to be plain: opening a device may do something. */
    if (lstat(f->path, &st) < 0) {
        f->error = errno;
        return;
    }
    f->real = where_it_leads(k, f->path, &st);
    if (S_ISLNK(st.st_mode) && stat(f->path, &st) < 0) {
        f->error = errno;
        freep(&f->real);
        return;
    }
    f->is_dir = S_ISDIR(st.st_mode);
    f->is_file = S_ISREG(st.st_mode);
    f->size = (uint64_t)st.st_size;
    if (leads_out(f, k->root, k->real_root))
        return;
    if (access(f->path, f->is_dir ? R_OK | X_OK : R_OK) < 0) {
        f->error = errno;
        return;
    }
    f->may_run = f->kind == PREFLIGHT_PROGRAM && access(f->path, X_OK) == 0;
    if (f->is_file)
        f->error = read_ends(f, k->known, &st);
}

/* ---- a model ---- */

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
        d->broken = xstrdup("it has fewer than 8 bytes");
        return d->size < sizeof(first);
    }
    if (safetensors_header_length(first, &n, &err) < 0) {
        d->broken = xstrdup(err.text);
        return true;
    }
    d->wants = n + sizeof(first);
    if (n > HEADER_MAX || d->wants > d->size)
        return true;
    bool was_read = true;
    char *header = xcalloc(1, (size_t)n + 1);
    if (look_read_at(fd, header, (size_t)n, sizeof(first)) < n) {
        d->broken = xstrdup("its header cannot be read");
        was_read = false;
    } else if (safetensors_read(header, (size_t)n, &st, &err) < 0) {
        d->broken = xstrdup(err.text);
    } else {
        d->wants = st.bytes;
        d->elements = st.elements;
    }
    free(header);
    return was_read;
}

static bool find_shard(struct looked *known, const char *path, struct preflight_shard *d)
{
    struct stat st;
    struct looked_facts f;
    if (!known || stat(path, &st) < 0 || !looked_find(known, LOOKED_SHARD, path, &st, &f))
        return false;
    d->size = (uint64_t)st.st_size;
    memcpy(d->head, f.head, sizeof(d->head));
    d->n_head = f.n_head;
    d->wants = f.wants;
    d->elements = f.elements;
    d->broken = f.broken;
    return true;
}

static void look_read_shard(struct looked *known, const char *path, struct preflight_shard *d)
{
    struct stat st = {0};
    bool was_read = true;
    int fd = open_plain(path, &st);
    if (fd < 0) {
        d->error = -fd;
        return;
    }
    d->size = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode)) {
        d->broken = xstrdup("it is no plain file");
    } else {
        d->n_head = look_read_at(fd, d->head, sizeof(d->head), 0);
        was_read = d->n_head || !d->size;
        if (d->is_safetensors && d->size && !preflight_name_head(d->head, d->n_head))
            was_read &= look_into_safetensors(fd, d);
    }
    (void)close(fd); /* it was only read */
    struct looked_facts f = {
        .n_head = d->n_head, .wants = d->wants, .elements = d->elements, .broken = d->broken};
    memcpy(f.head, d->head, sizeof(f.head));
    if (was_read)
        looked_add(known, LOOKED_SHARD, path, &st, &f);
}

static void look_at_shard(struct looked *known, const char *dir, struct preflight_shard *d)
{
    _cleanup_(freep) char *path = in(dir, d->name);
    d->is_safetensors = str_ends(d->name, ".safetensors");
    if (!find_shard(known, path, d))
        look_read_shard(known, path, d);
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

/* The JSON object in dir/name; NULL: *ret_why says what is wrong with it, or is NULL as well
 * when there is no such file. */
static json_t *look_read_object(const char *dir, const char *name, size_t max, char **ret_why)
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

static bool read_index(struct preflight_model *m, struct looked *known, const char *name)
{
    const char *tensor;
    json_t *v;
    struct stat st;
    _cleanup_(freep) char *path = in(m->path, name);
    bool is_there = stat(path, &st) == 0;
    bool is_known = is_there && find_index(m, known, path, &st);
    json_t *root = is_known ? NULL : look_read_object(m->path, name, INDEX_MAX, &m->index_broken);
    if (!root && !m->index_broken && !is_known)
        return false;
    m->has_index = true;
    set_str(&m->index_name, name);
    json_t *map = json_object_get(root, "weight_map");
    if (root && !json_is_object(map))
        m->index_broken = xstrdup("it has no 'weight_map'");
    json_object_foreach (map, tensor, v) {
        const char *file = json_string_value(v);
        if (file && *file && *file != '.' && !strchr(file, '/'))
            look_add_shard(m, file);
    }
    if (is_there && root && !m->index_broken)
        keep_index(m, known, path, &st);
    json_decref(root);
    return true;
}

static void look_at_config(struct preflight_model *m, struct looked *known)
{
    struct stat st;
    struct looked_facts f;
    _cleanup_(freep) char *path = in(m->path, "config.json");
    bool is_there = stat(path, &st) == 0;
    m->has_config = is_there && looked_find(known, LOOKED_OBJECT, path, &st, &f);
    if (m->has_config)
        return; /* it is an object: what is broken is not kept */
    json_t *config = look_read_object(m->path, "config.json", CONFIG_MAX, &m->config_broken);
    m->has_config = config || m->config_broken;
    f = (struct looked_facts){0};
    if (is_there && config)
        looked_add(known, LOOKED_OBJECT, path, &st, &f);
    json_decref(config);
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
            look_add_shard(m, e->d_name);
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

static void look_at_model(struct preflight_model *m, struct looked *known)
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
    if (!m->only_there && !read_index(m, known, "model.safetensors.index.json"))
        (void)read_index(m, known,
                         "pytorch_model.bin.index.json"); /* none: what lies there counts */
    look_at_names(m, !m->has_index);
    if (m->error || m->only_there)
        return;
    look_at_config(m, known);
    for (size_t i = 0; i < m->n_shards; i++)
        look_at_shard(known, m->path, &m->shards[i]);
}

/* ---- all ---- */

void fsroot_look(const char *shared_root,
                 struct looked *known,
                 struct preflight_facts *f,
                 _Atomic(size_t) *at)
{
    struct statvfs vfs;
    f->real_root = realpath(shared_root, NULL);
    f->has_free = statvfs(shared_root, &vfs) == 0;
    if (f->has_free)
        f->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    struct looking k = {.root = shared_root, .real_root = f->real_root, .known = known};
    for (size_t i = 0; i < f->n_files; i++) {
        if (at)
            *at = i + 1;
        look_at_file(&f->files[i], &k);
    }
    free(k.dir);
    free(k.real_dir);
    if (at)
        *at = f->n_files + 1;
    if (f->model)
        look_at_model(f->model, known);
}
