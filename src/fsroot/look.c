/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - files and models as they lie there; see look.h. A link is followed by ourselves, and
 * only as long as it stays on the root: what lies elsewhere is not even asked whether it is there.
 */
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
#include "fsroot/rootdir.h"

enum {
    CONFIG_MAX = 8 << 20,
    INDEX_MAX = 32 << 20,
    HEADER_MAX = 32 << 20, /* of one shard; a longer one is believed */
    TREE_MAX = 1 << 20,
    DIR_ENTRIES_MAX = 100000,
};

/* ---- the way there ---- */

/* What the looks of one question share. */
struct looking {
    const struct rootdir *top; /* nothing outside of it is looked at */
    struct looked *known;
    struct rootdir dir; /* the directory of the last file, with its path as it really is */
    char *asked;        /* by this path below top */
};

static void looking_release(struct looking *k)
{
    rootdir_release(&k->dir);
    freep(&k->asked);
}

/* Opens the directory, unless it is that of the previous file. -EXDEV: *ret_out is where it leads.
 */
static int look_enter(struct looking *k, const char *below, char **ret_out)
{
    _cleanup_(freep) char *real = NULL;
    if (k->dir.fd >= 0 && str_eq(k->asked, below))
        return 0;
    int fd = rootdir_open_followed(k->top, below, O_PATH | O_DIRECTORY, &real);
    if (fd == -EXDEV) {
        *ret_out = real;
        real = NULL;
    }
    if (fd < 0)
        return fd;
    rootdir_release(&k->dir);
    const char *slash = real && *real ? "/" : "";
    k->dir = (struct rootdir){.fd = fd,
                              .path = xasprintf("%s%s%s", k->top->path, slash, str_or(real, ""))};
    set_str(&k->asked, below);
    return 0;
}

/* The last name of the path, in k->dir, and what it is, which is no link. */
static int look_step(struct looking *k,
                     const char *below,
                     char **ret_name,
                     struct stat *ret,
                     char **ret_out)
{
    const char *slash = strrchr(below, '/');
    _cleanup_(freep) char *dir = slash ? xstrndup(below, (size_t)(slash - below)) : xstrdup("");
    const char *name = slash ? slash + 1 : below;
    int r = look_enter(k, dir, ret_out);
    if (r == 0 && *name)
        r = rootdir_look(&k->dir, name, ret);
    else if (r == 0) /* the root itself */
        r = fstat(k->dir.fd, ret) < 0 ? -errno : 0;
    if (r == 0 && S_ISLNK(ret->st_mode))
        return -ELOOP;
    if (r == 0)
        *ret_name = xstrdup(*name ? name : ".");
    return r;
}

/* The thing at the end of the path: its name in k->dir. -EXDEV: a link leads off the root, and
 * *ret_out says where; that is not looked at. */
static int look_reach(struct looking *k,
                      const char *path,
                      char **ret_name,
                      struct stat *ret,
                      char **ret_out)
{
    const char *given = rootdir_below(k->top->path, path);
    if (!given) {
        *ret_out = xstrdup(path);
        return -EXDEV;
    }
    _cleanup_(freep) char *below = xstrdup(given);
    int r = look_step(k, below, ret_name, ret, ret_out);
    for (int n = 0; r == -ELOOP && n < 2; n++) { /* twice: it was moved meanwhile */
        char *real = NULL;
        r = rootdir_resolve(k->top, given, &real);
        if (r == -EXDEV)
            *ret_out = real;
        if (r < 0)
            return r;
        free(below);
        below = real;
        r = look_step(k, below, ret_name, ret, ret_out);
    }
    return r;
}

/* A sandbox that does not know this call refuses it: then opening tells. errno. */
static int look_may(const struct rootdir *dir, const char *name, int mode)
{
    int r = faccessat(dir->fd, name, mode, AT_SYMLINK_NOFOLLOW);
    return r == 0 || errno == EPERM ? 0 : errno;
}

/* ---- one file ---- */

/* What cannot be read is missing. */
static size_t look_read_at(int fd, void *buf, size_t n, uint64_t at)
{
    size_t got;
    (void)file_read_at(fd, at, buf, n, &got); /* fewer bytes tell it */
    return got;
}

static char *why_not_a_tree(const struct rootdir *dir, const char *name)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TREE_MAX);
    _cleanup_(problems_release) struct problems ps = {0};
    struct doc *d = NULL;
    struct err err = {0};
    if (rootdir_read(dir, name, &text, &err) < 0)
        return xstrdup(err.text);
    if (doc_parse(buf_str(&text), text.len, true, &d, &ps) < 0)
        return ps.n && ps.v[0].line
                   ? xasprintf("%s at %d:%d", ps.v[0].text, ps.v[0].line, ps.v[0].column)
                   : xstrdup(ps.n ? ps.v[0].text : "it is broken");
    doc_free(d);
    return NULL;
}

/* Opened for reading; it is plain. */
static int open_plain(const struct rootdir *dir, const char *name, struct stat *ret)
{
    int fd = rootdir_open_file(dir, name, NULL);
    if (fd < 0 || fstat(fd, ret) == 0)
        return fd;
    int r = -errno;
    (void)close(fd); /* nothing was written */
    return r;
}

/* Nothing is kept of what cannot be read. errno. */
static int read_ends(struct preflight_file *f,
                     struct looking *k,
                     const char *name,
                     const struct stat *now)
{
    struct looked_facts read = {0};
    struct stat st = {0};
    if (!looked_find(k->known, LOOKED_FILE, f->path, now, &read)) {
        int fd = open_plain(&k->dir, name, &st);
        if (fd < 0)
            return -fd;
        read.n_head = look_read_at(fd, read.head, sizeof(read.head), 0);
        if (f->size >= sizeof(read.tail))
            (void)look_read_at(fd, read.tail, sizeof(read.tail),
                               f->size - sizeof(read.tail)); /* else zeros */
        (void)close(fd);                                     /* it was only read */
        if (read.n_head || !st.st_size)
            looked_add(k->known, LOOKED_FILE, f->path, &st, &read);
    }
    memcpy(f->head, read.head, sizeof(f->head));
    memcpy(f->tail, read.tail, sizeof(f->tail));
    f->n_head = read.n_head;
    if (f->kind == PREFLIGHT_TREE)
        f->broken = why_not_a_tree(&k->dir, name);
    return 0;
}

/* So that the judge sees that it is not below the root, however it is written. */
static char *look_outside(const struct looking *k, char *taken)
{
    if (*taken == '/' && rootdir_below(k->top->path, taken))
        set_str(&taken, "/");
    return taken;
}

static void look_at_file(struct preflight_file *f, struct looking *k)
{
    struct stat st = {0};
    _cleanup_(freep) char *name = NULL;
    char *out = NULL;
    int r = look_reach(k, f->path, &name, &st, &out);
    if (r == -EXDEV) {
        f->is_elsewhere = f->kind == PREFLIGHT_PROGRAM;
        f->real = look_outside(k, out);
        return;
    }
    if (!name) {
        f->error = -r;
        return;
    }
    f->real = str_eq(name, ".") ? xstrdup(k->dir.path) : xasprintf("%s/%s", k->dir.path, name);
    f->is_dir = S_ISDIR(st.st_mode);
    f->is_file = S_ISREG(st.st_mode);
    f->size = (uint64_t)st.st_size;
    if (f->is_dir)
        f->error = look_may(&k->dir, name, R_OK | X_OK);
    f->may_run = f->kind == PREFLIGHT_PROGRAM && look_may(&k->dir, name, X_OK) == 0;
    if (f->is_file) /* a file that is known could be read: what forbids it changes its times */
        f->error = read_ends(f, k, name, &st);
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
    int fd = open_plain(&k->dir, name, &st);
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
        d->broken = xstrdup("it is no plain file");
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
        m->index_broken = xstrdup("it has no 'weight_map'");
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

/* On the shared root, or in a cache that argus.yaml has elsewhere. */
static void look_at_model_there(struct preflight_model *m, const struct looking *on_root)
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

/* ---- all ---- */

static void look_at_all(struct preflight_facts *f, struct looking *k, _Atomic(size_t) *at)
{
    struct statvfs vfs;
    f->real_root = xstrdup(k->top->path);
    f->has_free = fstatvfs(k->top->fd, &vfs) == 0;
    if (f->has_free)
        f->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    for (size_t i = 0; i < f->n_files; i++) {
        if (at)
            *at = i + 1;
        look_at_file(&f->files[i], k);
    }
    if (at)
        *at = f->n_files + 1;
    if (f->model)
        look_at_model_there(f->model, k);
}

void fsroot_look(const char *shared_root,
                 struct looked *known,
                 struct preflight_facts *f,
                 _Atomic(size_t) *at)
{
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    int r = rootdir_open(shared_root, "", 0, &top, NULL);
    for (size_t i = 0; r < 0 && i < f->n_files; i++)
        f->files[i].error = -r;
    if (r < 0 && f->model)
        f->model->error = -r;
    if (r < 0)
        return;
    struct looking k = {.top = &top, .known = known, .dir = ROOTDIR_NONE};
    look_at_all(f, &k, at);
    looking_release(&k);
}
