/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_write.c - the threads that write an archive's files; see unpack_write.h. A batch
 * belongs to one thread at a time: to the reader while it is filled and when it is done, in
 * between to the writer that took it from the line. */
#define _GNU_SOURCE
#include "fsroot/content/unpack_write.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "base/message.h"
#include "fsroot/tree/dirtree.h"

/* Most of the time a writer waits for the file system, of a server above all. */
enum { THREADS = 4, BATCHES = 12, BATCH_FILES = 128, BATCH_BYTES = UNPACK_WRITE_SMALL };

/* ---- one file ---- */

static int unpack_write_fail(const char *path, int error, struct err *err)
{
    return message_refuse(
        err, -error, "disk_no_write",
        MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(error))));
}

int unpack_create(struct unpack_way *way, const char *path, bool program, int *ret, struct err *err)
{
    const char *name;
    int dir = unpack_way_enter(way, path, true, &name);
    if (dir < 0)
        return unpack_write_fail(path, -dir, err);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    program ? 0555 : 0444);
    if (fd < 0)
        return unpack_write_fail(path, errno, err);
    *ret = fd;
    return 0;
}

int unpack_create_link(struct unpack_way *way,
                       const char *path,
                       const char *target,
                       struct err *err)
{
    const char *name;
    int dir = unpack_way_enter(way, path, true, &name);
    if (dir < 0)
        return unpack_write_fail(path, -dir, err);
    return symlinkat(target, dir, name) < 0 ? unpack_write_fail(path, errno, err) : 0;
}

int unpack_close(int fd, const char *path, struct err *err)
{
    static const struct timespec times[2] = {{.tv_sec = DIRTREE_MTIME}, {.tv_sec = DIRTREE_MTIME}};
    int error = futimens(fd, times) < 0 ? errno : 0;
    if (close(fd) < 0 && !error) /* a full NFS server says it here */
        error = errno;
    return error ? unpack_write_fail(path, error, err) : 0;
}

/* ---- batches ---- */

struct item {
    size_t index;     /* in the manifest */
    const char *path; /* the manifest's: it stays where it is */
    bool program;
    size_t at, size;
    unsigned char hash[HASH_BYTES];
};

struct batch {
    struct batch *next;
    size_t n, used;
    struct item v[BATCH_FILES];
    char bytes[BATCH_BYTES];
};

struct unpack_writers {
    int tree;
    struct manifest *m;
    struct batch *open; /* is being filled */
    size_t n_batches;
    pthread_t threads[THREADS];
    size_t n_threads;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work, done;
    struct batch *line, **line_end; /* to be written */
    struct batch *idle;             /* written, or never used */
    size_t busy;
    bool ends;
    struct err err; /* the first failure: after it nothing is written any more */
};

static int write_item(struct unpack_way *way,
                      const struct batch *b,
                      struct item *it,
                      struct err *err)
{
    struct hash_running h;
    int fd = -1;
    hash_begin(&h);
    hash_add(&h, b->bytes + it->at, it->size);
    hash_end(&h, it->hash);
    int r = unpack_create(way, it->path, it->program, &fd, err);
    if (r < 0)
        return r;
    r = file_write_all(fd, b->bytes + it->at, it->size);
    if (r < 0) {
        (void)close(fd); /* it failed already */
        return unpack_write_fail(it->path, -r, err);
    }
    return unpack_close(fd, it->path, err);
}

static int write_batch(int tree, struct batch *b, struct err *err)
{
    struct unpack_way way = UNPACK_WAY(tree);
    int r = 0;
    for (size_t i = 0; i < b->n && r == 0; i++)
        r = write_item(&way, b, &b->v[i], err);
    unpack_way_release(&way);
    return r;
}

/* ---- the threads ---- */

static struct batch *take_from_line(struct unpack_writers *w)
{
    struct batch *b = w->line;
    w->line = b->next;
    if (!w->line)
        w->line_end = &w->line;
    return b;
}

static void *unpack_write_run(void *arg)
{
    struct unpack_writers *w = arg;
    (void)pthread_mutex_lock(&w->lock); /* ours never fail */
    for (;;) {
        while (!w->line && !w->ends)
            (void)pthread_cond_wait(&w->work, &w->lock);
        if (!w->line)
            break;
        struct err err = {0};
        struct batch *b = take_from_line(w);
        bool failed = w->err.code != 0;
        w->busy++;
        (void)pthread_mutex_unlock(&w->lock);
        int r = failed ? 0 : write_batch(w->tree, b, &err);
        (void)pthread_mutex_lock(&w->lock);
        w->busy--;
        if (r < 0 && !w->err.code)
            w->err = err;
        b->next = w->idle;
        w->idle = b;
        (void)pthread_cond_signal(&w->done); /* only the reader waits there */
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* The process's signals are not for them. */
static void start_threads(struct unpack_writers *w)
{
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old); /* valid arguments, here and below */
    while (w->n_threads < THREADS &&
           pthread_create(&w->threads[w->n_threads], NULL, unpack_write_run, w) == 0)
        w->n_threads++;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

struct unpack_writers *unpack_writers_new(int tree, struct manifest *m)
{
    struct unpack_writers *w = xcalloc(1, sizeof(*w));
    w->tree = tree;
    w->m = m;
    w->line_end = &w->line;
    (void)pthread_mutex_init(&w->lock, NULL); /* these never fail with the usual attributes */
    (void)pthread_cond_init(&w->work, NULL);
    (void)pthread_cond_init(&w->done, NULL);
    start_threads(w);
    return w;
}

static void free_list(struct batch *b)
{
    for (struct batch *next; b; b = next) {
        next = b->next;
        free(b);
    }
}

void unpack_writers_free(struct unpack_writers *w)
{
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->ends = true;
    if (!w->err.code)
        w->err.code = -ECANCELED; /* the caller waits no longer: the files are not written */
    (void)pthread_cond_broadcast(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->n_threads; i++)
        (void)pthread_join(w->threads[i], NULL); /* each is joined once */
    free_list(w->line);
    free_list(w->idle);
    free(w->open);
    (void)pthread_mutex_destroy(&w->lock); /* no thread holds it */
    (void)pthread_cond_destroy(&w->work);
    (void)pthread_cond_destroy(&w->done);
    free(w);
}

/* ---- the reader ---- */

/* What a writer found out of a batch goes to the manifest; then it is empty. */
static void unpack_write_settle(struct unpack_writers *w, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        memcpy(w->m->v[b->v[i].index].hash, b->v[i].hash, HASH_BYTES);
    b->n = b->used = 0;
}

static int unpack_write_hand_over(struct unpack_writers *w, struct err *err)
{
    struct batch *b = w->open;
    if (!w->n_threads) { /* then it stays open */
        int r = write_batch(w->tree, b, err);
        unpack_write_settle(w, b);
        return r;
    }
    w->open = NULL;
    b->next = NULL;
    (void)pthread_mutex_lock(&w->lock);
    *w->line_end = b;
    w->line_end = &b->next;
    (void)pthread_cond_signal(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
    return 0;
}

/* An empty one: new ones until there are BATCHES, then as they come back. */
static int next_batch(struct unpack_writers *w, struct err *err)
{
    (void)pthread_mutex_lock(&w->lock);
    while (!w->idle && w->n_batches == BATCHES)
        (void)pthread_cond_wait(&w->done, &w->lock);
    struct batch *b = w->idle;
    struct err why = w->err;
    if (b)
        w->idle = b->next;
    (void)pthread_mutex_unlock(&w->lock);
    if (b) {
        unpack_write_settle(w, b);
    } else {
        b = xmalloc(sizeof(*b));
        b->n = b->used = 0;
        w->n_batches++;
    }
    w->open = b;
    return why.code ? err_copy(err, why.code, &why) : 0;
}

int unpack_writers_room(struct unpack_writers *w, size_t size, char **ret, struct err *err)
{
    int r = 0;
    if (w->open && (w->open->n == BATCH_FILES || size > BATCH_BYTES - w->open->used))
        r = unpack_write_hand_over(w, err);
    if (r == 0 && !w->open)
        r = next_batch(w, err);
    if (r < 0)
        return r;
    *ret = w->open->bytes + w->open->used;
    return 0;
}

void unpack_writers_add(struct unpack_writers *w, size_t index)
{
    struct batch *b = w->open;
    const struct manifest_entry *e = &w->m->v[index];
    b->v[b->n++] = (struct item){.index = index,
                                 .path = e->path,
                                 .program = e->kind == MANIFEST_PROGRAM,
                                 .at = b->used,
                                 .size = (size_t)e->size};
    b->used += (size_t)e->size;
}

int unpack_writers_end(struct unpack_writers *w, struct err *err)
{
    int r = w->open && w->open->n ? unpack_write_hand_over(w, err) : 0;
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&w->lock);
    while (w->line || w->busy)
        (void)pthread_cond_wait(&w->done, &w->lock);
    struct err why = w->err;
    (void)pthread_mutex_unlock(&w->lock);
    for (struct batch *b = w->idle; b; b = b->next) /* all threads have ended */
        unpack_write_settle(w, b);
    return why.code ? err_copy(err, why.code, &why) : 0;
}
