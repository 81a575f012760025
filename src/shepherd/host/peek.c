/* SPDX-License-Identifier: Apache-2.0 */
/* peek.c - reads another process's environment and command line, which may hang; see peek.h. A
 * thread for each question: they are few, a process is asked when it is met. One that is not
 * waited for any more owns its question alone, and frees it when it comes back.
 *
 * Ray's workers write their title over their command line and leave the environment alone, so a
 * process of a job is known by what it was started with. */
#define _GNU_SOURCE
#include "shepherd/host/peek.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "shepherd/host/process.h"

enum { TEXT_MAX = 2 << 20, FILE_MAX = 32 }; /* a kernel's own ceiling of an environment */

struct peek {
    peek_read_f *read;
    usec_t limit;
    pthread_mutex_t lock;  /* of all below and of each question */
    pthread_cond_t answer; /* to any question */
    size_t owners;         /* each thread and the creator of this struct: the last one frees it */
    pid_t hung[PEEK_HUNG_MAX];
    size_t n;
};

struct question {
    struct peek *peek;
    pid_t pid;
    char file[FILE_MAX];
    struct buf out;
    bool is_read, is_answered;
    bool is_left; /* the caller gave up waiting for the answer */
};

struct peek *peek_new(peek_read_f *read, usec_t limit)
{
    struct peek *p = xcalloc(1, sizeof(*p));
    p->read = read ? read : process_read;
    p->limit = limit;
    p->owners = 1;
    (void)pthread_mutex_init(&p->lock, NULL); /* these cannot fail on Linux */
    (void)pthread_cond_init(&p->answer, NULL);
    return p;
}

/* Held; unlocks. */
static void peek_let_go(struct peek *p)
{
    bool is_last = --p->owners == 0;
    pthread_mutex_unlock(&p->lock);
    if (!is_last)
        return;
    (void)pthread_cond_destroy(&p->answer); /* no owner is left */
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

void peek_free(struct peek *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    peek_let_go(p);
}

void peek_freep(struct peek **p)
{
    peek_free(*p);
}

static void question_free(struct question *q)
{
    buf_release(&q->out);
    free(q);
}

/* ---- processes that hang; under the lock ---- */

static bool may_ask(const struct peek *p, pid_t pid)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->hung[i] == pid)
            return false;
    return p->n < PEEK_HUNG_MAX;
}

static void is_back(struct peek *p, pid_t pid)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->hung[i] == pid) {
            p->hung[i] = p->hung[--p->n];
            return;
        }
}

/* ---- one question ---- */

static void *read_it(void *arg)
{
    struct question *q = arg;
    struct peek *p = q->peek;
    bool is_read = p->read(q->pid, q->file, &q->out);
    pthread_mutex_lock(&p->lock);
    q->is_read = is_read;
    q->is_answered = true;
    if (q->is_left) {
        is_back(p, q->pid);
        question_free(q);
    }
    (void)pthread_cond_broadcast(&p->answer); /* cannot fail */
    peek_let_go(p);
    return NULL;
}

usec_t peek_patience(usec_t limit, size_t hung)
{
    usec_t patience = limit >> hung, least = limit < PEEK_FLOOR ? limit : PEEK_FLOOR;
    return patience > least ? patience : least;
}

/* Held. False: the question is its thread's alone. */
static bool peek_wait_for(struct peek *p, struct question *q)
{
    usec_t until = clock_mono() + peek_patience(p->limit, p->n);
    const struct timespec at = {.tv_sec = (time_t)(until / USEC_SEC),
                                .tv_nsec = (long)(until % USEC_SEC * 1000)};
    int r = 0;
    while (!q->is_answered && r == 0)
        r = pthread_cond_clockwait(&p->answer, &p->lock, CLOCK_MONOTONIC, &at);
    if (q->is_answered)
        return true;
    q->is_left = true;
    if (p->n < PEEK_HUNG_MAX) /* others may have come meanwhile */
        p->hung[p->n++] = q->pid;
    return false;
}

int peek_file(struct peek *p, pid_t pid, const char *file, struct buf *out)
{
    pthread_t thread;
    pthread_mutex_lock(&p->lock);
    if (!may_ask(p, pid)) {
        pthread_mutex_unlock(&p->lock);
        return -ETIME;
    }
    struct question *q = xcalloc(1, sizeof(*q));
    *q = (struct question){.peek = p, .pid = pid, .out = BUF_INIT(out->max)};
    text_copy(q->file, file);
    p->owners++;
    if (pthread_create(&thread, NULL, read_it, q) != 0) {
        p->owners--;
        pthread_mutex_unlock(&p->lock);
        question_free(q);
        return -ETIME;
    }
    (void)pthread_detach(thread); /* cannot fail for a thread of ours */
    bool is_answered = peek_wait_for(p, q);
    pthread_mutex_unlock(&p->lock);
    if (!is_answered)
        return -ETIME;
    int r = q->is_read ? 0 : -ENOENT;
    size_t room = out->max - out->len;
    if (r == 0) /* cut at the ceiling, as process_read() does */
        (void)buf_add(out, buf_str(&q->out), q->out.len < room ? q->out.len : room);
    question_free(q);
    return r;
}

/* ---- what is in it ---- */

/* Words of a text in which each ends with a zero byte: the first that begins so. */
static const char *find_word(const struct buf *text, const char *prefix, size_t n)
{
    const char *end = buf_str(text) + text->len;
    for (const char *s = buf_str(text); s < end; s += strlen(s) + 1)
        if (!strncmp(s, prefix, n))
            return s;
    return NULL;
}

static int take_word(struct peek *p, pid_t pid, const char *file, const char *prefix, char **ret)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    int r = peek_file(p, pid, file, &text);
    const char *found = r == 0 ? find_word(&text, prefix, strlen(prefix)) : NULL;
    if (found)
        *ret = xstrdup(found + strlen(prefix));
    return found ? 0 : r < 0 ? r : text.len ? -ENODATA : -ENOENT;
}

int peek_env(struct peek *p, pid_t pid, const char *name, char **ret)
{
    _cleanup_(freep) char *prefix = xasprintf("%s=", name);
    return take_word(p, pid, "environ", prefix, ret);
}

int peek_has_env(struct peek *p, pid_t pid, const char *setting)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    int r = peek_file(p, pid, "environ", &text);
    if (r < 0 || !text.len)
        return r < 0 ? r : -ENOENT;
    return find_word(&text, setting, strlen(setting) + 1) != NULL;
}

char *peek_word(struct peek *p, pid_t pid, const char *prefix)
{
    char *word = NULL;
    return take_word(p, pid, "cmdline", prefix, &word) == 0 ? word : NULL;
}

char *peek_line(struct peek *p, pid_t pid, size_t max)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(max);
    (void)!peek_file(p, pid, "cmdline", &text); /* then it is empty */
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ')
            text.data[i] = ' ';
    while (text.len && text.data[text.len - 1] == ' ')
        text.data[--text.len] = 0;
    return buf_take(&text);
}
