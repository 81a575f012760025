/* SPDX-License-Identifier: Apache-2.0 */
/* loglist.c - the log files of an attempt; see loglist.h. A log's later segments (logread.h) are
 * files of their own here first, and one with it once a directory was read. */
#define _GNU_SOURCE
#include "fsroot/logs/loglist.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/witness.h"

enum {
    NAMES_MAX = 200000,                 /* looked at in one call */
    PIECES_MAX = 4 * LOGLIST_FILES_MAX, /* of one directory: each log has few segments */
    RANKS_MAX = 1 << 20,                /* bytes of ranks.json */
    NAME_BYTES_MAX = 255,
};

static const struct {
    const char *word, *place;
    const char *const ends[4]; /* of names */
} SOURCES[] = {
    [LOGLIST_WORKER] = {"worker", ATTEMPT_WORKERS, {".out", ".err"}},
    [LOGLIST_SCENE] = {"scene", ATTEMPT_SCENE, {".txt", ".json", ".log"}},
};
static_assert(array_len(SOURCES) == LOGLIST_SOURCES, "one row for each source");

const char *loglist_source_to_string(enum loglist_source s)
{
    return SOURCES[s].word;
}

int loglist_source_from_string(const char *text, enum loglist_source *ret)
{
    for (size_t i = 0; i < array_len(SOURCES); i++)
        if (str_eq(text, SOURCES[i].word)) {
            *ret = (enum loglist_source)i;
            return 0;
        }
    return -EINVAL;
}

static void file_release(struct loglist_file *f)
{
    free(f->node);
    free(f->name);
    free(f->actor);
}

void loglist_release(struct loglist *l)
{
    for (size_t i = 0; i < l->n; i++)
        file_release(&l->v[i]);
    free(l->v);
    *l = (struct loglist){0};
}

/* ---- names ---- */

/* True for printable ASCII, which reads the same in JSON, in an address and on a terminal. */
static bool loglist_is_plain(const char *name, size_t n)
{
    if (!n || n > NAME_BYTES_MAX || name[0] == '.')
        return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '/' || name[i] == '\\')
            return false;
    return true;
}

/* What belongs to no node: Ray's view, by argusd. */
static const char *const OF_ALL[] = {SCENE_RAY_NODES, SCENE_RAY_ACTORS};

static bool is_of_all(enum loglist_source s, const char *name)
{
    for (size_t i = 0; i < array_len(OF_ALL); i++)
        if (s == LOGLIST_SCENE && str_eq(name, OF_ALL[i]))
            return true;
    return false;
}

/* The first n bytes of name are what a file of the source is called. */
static bool is_file_of(enum loglist_source s, const char *name, size_t n)
{
    if (!loglist_is_plain(name, n) || (s == LOGLIST_WORKER && !str_starts(name, "worker-")))
        return false;
    for (size_t i = 0; SOURCES[s].ends[i]; i++) {
        size_t len = strlen(SOURCES[s].ends[i]);
        if (n > len && !memcmp(name + n - len, SOURCES[s].ends[i], len))
            return true;
    }
    return false;
}

char *loglist_name(const struct loglist_file *f)
{
    return xasprintf("%s%s%s", f->node, *f->node ? "/" : "", f->name);
}

char *loglist_path(enum loglist_source s, const char *file)
{
    const char *slash = strchr(file, '/');
    const char *name = slash ? slash + 1 : "";
    if (is_of_all(s, file))
        return xasprintf("%s/%s", SOURCES[s].place, file);
    if (!slash || !loglist_is_plain(file, (size_t)(slash - file)))
        return NULL;
    if (s == LOGLIST_SCENE && str_starts(name, "logs/"))
        name += strlen("logs/");
    return is_file_of(s, name, strlen(name)) ? xasprintf("%s/%s", SOURCES[s].place, file) : NULL;
}

/* "a.out" and, of a later segment, "a.out.<offset>": where the log's name ends and the segment
 * begins. False: neither. */
static bool loglist_read_name(enum loglist_source s,
                              const char *name,
                              size_t *ret_n,
                              uint64_t *ret_begin)
{
    const char *dot = strrchr(name, '.');
    int64_t begin = 0;
    size_t n = strlen(name);
    if (dot && dot[1] >= '1' && dot[1] <= '9' &&
        str_to_int(dot + 1, 1, INT64_MAX, &begin, NULL) == 0)
        n = (size_t)(dot - name);
    *ret_n = n;
    *ret_begin = (uint64_t)begin;
    return is_file_of(s, name, n);
}

/* ---- one directory ---- */

struct listing {
    struct loglist *l;
    enum loglist_source source;
    const char *node;
    size_t names; /* looked at */
};

static void loglist_add(struct listing *x,
                        const char *sub,
                        const char *name,
                        size_t n,
                        uint64_t end)
{
    struct loglist *l = x->l;
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->v = xrealloc(l->v, l->cap, sizeof(*l->v));
    }
    l->v[l->n++] = (struct loglist_file){.source = x->source,
                                         .node = xstrdup(x->node),
                                         .name = xasprintf("%s%.*s", sub, (int)n, name),
                                         .pid = -1,
                                         .rank = -1,
                                         .bytes = end};
}

static void loglist_look_at(struct listing *x, DIR *d, const char *sub, const char *name)
{
    struct stat st;
    size_t n;
    uint64_t begin;
    if (loglist_read_name(x->source, name, &n, &begin) &&
        fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        loglist_add(x, sub, name, n, begin + (uint64_t)st.st_size);
}

static int loglist_by_name(const void *a, const void *b)
{
    return strcmp(((const struct loglist_file *)a)->name, ((const struct loglist_file *)b)->name);
}

static int by_rank(const void *a, const void *b)
{
    const struct loglist_file *x = a, *y = b;
    uint64_t p = (uint64_t)x->rank, q = (uint64_t)y->rank; /* not known: last */
    return p != q ? (p < q ? -1 : 1) : strcmp(x->name, y->name);
}

/* The segments of one log become one file. */
static void loglist_join(struct loglist *l, size_t first)
{
    size_t n = first;
    if (l->n - first > 1)
        qsort(l->v + first, l->n - first, sizeof(*l->v), loglist_by_name);
    for (size_t i = first; i < l->n; i++) {
        if (n > first && str_eq(l->v[n - 1].name, l->v[i].name)) {
            if (l->v[i].bytes > l->v[n - 1].bytes)
                l->v[n - 1].bytes = l->v[i].bytes;
            file_release(&l->v[i]);
        } else {
            l->v[n++] = l->v[i];
        }
    }
    l->n = n;
}

static void keep_ceiling(struct loglist *l)
{
    l->is_cut |= l->n > LOGLIST_FILES_MAX;
    while (l->n > LOGLIST_FILES_MAX)
        file_release(&l->v[--l->n]);
}

/* dir is taken. */
static void list_dir(struct listing *x, int dir, const char *sub)
{
    struct loglist *l = x->l;
    DIR *d = fdopendir(dir);
    if (!d) {
        closep(&dir);
        return;
    }
    size_t first = l->n;
    for (const struct dirent *e; (e = readdir(d));) {
        if (++x->names > NAMES_MAX || l->n - first >= PIECES_MAX) {
            l->is_cut = true;
            break;
        }
        loglist_look_at(x, d, sub, e->d_name);
    }
    (void)closedir(d); /* it was only read */
    loglist_join(l, first);
}

/* ---- what is known of workers ---- */

static int read_ranks(int dir, json_t **ret)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(RANKS_MAX);
    _cleanup_(closep) int fd = file_open_regular(dir, "ranks.json", O_RDONLY);
    if (fd < 0)
        return -ENOENT;
    int r = file_read_open(fd, "ranks.json", &text, NULL);
    return r < 0 ? r : json_parse(buf_str(&text), text.len, RANKS_MAX, ret, NULL);
}

/* What cannot be read is not known. */
static void add_ranks(struct loglist *l, size_t first, int dir)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    if (read_ranks(dir, &all) < 0)
        return;
    for (size_t i = first; i < l->n; i++) {
        struct loglist_file *f = &l->v[i];
        const json_t *o = json_get_object(all, f->name);
        const char *actor = json_get_str(o, "actor", NULL);
        int64_t rank = json_get_int(o, "rank", -1), pid = json_get_int(o, "pid", -1);
        f->rank = rank < 0 ? -1 : rank;
        f->pid = pid < 0 ? -1 : pid;
        f->actor = actor ? xstrdup(actor) : NULL;
    }
    if (l->n - first > 1)
        qsort(l->v + first, l->n - first, sizeof(*l->v), by_rank);
}

/* ---- all nodes ---- */

static int open_below(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void list_node(struct listing *x, int place)
{
    size_t first = x->l->n;
    _cleanup_(closep) int dir = open_below(place, x->node);
    int own = dir < 0 ? -1 : open_below(dir, ".");
    if (own < 0)
        return;
    list_dir(x, own, "");
    if (x->source == LOGLIST_WORKER)
        add_ranks(x->l, first, dir);
    int logs = x->source == LOGLIST_SCENE ? open_below(dir, "logs") : -1;
    if (logs >= 0)
        list_dir(x, logs, "logs/");
    keep_ceiling(x->l);
}

/* Names; those that are no directories are found to be none later. */
static void find_nodes(struct listing *x, DIR *place, struct strv *ret)
{
    for (const struct dirent *e; (e = readdir(place));) {
        if (++x->names > NAMES_MAX || ret->n == LOGLIST_NODES_MAX) {
            x->l->is_cut = true;
            break;
        }
        if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) &&
            loglist_is_plain(e->d_name, strlen(e->d_name)))
            strv_add(ret, e->d_name);
    }
    strv_sort_once(ret);
}

static void list_of_all(struct listing *x, DIR *place)
{
    x->node = "";
    for (size_t i = 0; x->source == LOGLIST_SCENE && i < array_len(OF_ALL); i++)
        loglist_look_at(x, place, "", OF_ALL[i]);
}

int loglist_read(const char *root,
                 const char *job,
                 int attempt,
                 enum loglist_source source,
                 const char *node,
                 struct loglist *ret,
                 struct err *err)
{
    DIR *place = NULL;
    struct listing x = {.l = ret, .source = source};
    _cleanup_(strv_release) struct strv nodes = {0};
    int r = fsroot_attempt_opendir(root, job, attempt, SOURCES[source].place, &place);
    if (r == -ENOENT || r == -ELOOP)
        return 0;
    if (r < 0 || !place)
        return message_refuse(err, r, "logs_no_read",
                              MESSAGE_ARGS(MESSAGE_NUM("attempt", attempt),
                                           MESSAGE_STR("name", job),
                                           MESSAGE_STR("why", strerror(-r))));
    if (!node)
        find_nodes(&x, place, &nodes);
    else if (loglist_is_plain(node, strlen(node)))
        strv_add(&nodes, node);
    if (!node)
        list_of_all(&x, place);
    for (size_t i = 0; i < nodes.n; i++) {
        x.node = nodes.v[i];
        if (ret->n < LOGLIST_FILES_MAX)
            list_node(&x, dirfd(place));
        else
            ret->is_cut = true;
    }
    (void)closedir(place); /* it was only read */
    return 0;
}
