/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - which process of a job stands elsewhere than the others; see stacks.h.
 *
 * "Idle" is a worker of Ray that waits for its next call: that is no place to hang in, unless
 * others of its kind are at work. Processes below a worker (loaders, engines) are no ranks, but
 * what they do is looked at: a rank that waits for an engine which computes is well. */
#include "core/metric/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"

enum { FRAMES_MAX = 12, CHAIN_MAX = 2048, ABOVE_MAX = 16 };
static const double BUSY_S = 0.5; /* between two samples */

struct process {
    char node[STACKS_NAME_MAX], rank[STACKS_NAME_MAX], actor[STACKS_NAME_MAX];
    int64_t pid, parent;
    double cpu_s; /* -1: not known */
    char state;   /* of /proc: R S D T t Z; 0 not known */
    bool is_worker, is_child, is_idle, is_collective;
    char place[STACKS_PLACE_MAX]; /* "": no Python frames */
    char *chain;                  /* the innermost frames with their lines; NULL */
};

struct stacks {
    struct process *v;
    size_t n;
};

struct stacks *stacks_new(void)
{
    return xcalloc(1, sizeof(struct stacks));
}

void stacks_free(struct stacks *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].chain);
    free(s->v);
    free(s);
}

/* ---- frames ---- */

static bool stacks_is_one_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(word, words[i]))
            return true;
    return false;
}

/* From Python 3.11 on a function has its class before it: "Worker.main_loop". */
static const char *last_name(const char *fn)
{
    const char *dot = strrchr(fn, '.');
    return dot ? dot + 1 : fn;
}

/* Where ranks wait for each other. */
static bool is_collective(const char *fn, const char *file)
{
    static const char *const fns[] = {"all_reduce",
                                      "allreduce",
                                      "all_gather",
                                      "all_gather_into_tensor",
                                      "allgather",
                                      "reduce_scatter",
                                      "broadcast",
                                      "reduce_scatter_tensor",
                                      "barrier",
                                      "monitored_barrier",
                                      "all_to_all",
                                      "all_to_all_single",
                                      "reduce",
                                      "gather",
                                      "scatter",
                                      "broadcast_object_list",
                                      "all_gather_object",
                                      "gather_object",
                                      "send",
                                      "recv",
                                      "batch_isend_irecv",
                                      "_rendezvous",
                                      "rendezvous"};
    static const char *const homes[] = {"torch/distributed/", "ray/util/collective/", "/nccl",
                                        "horovod/", "deepspeed/comm/"};
    bool is_home = false;
    for (size_t i = 0; i < array_len(homes); i++)
        is_home = is_home || strstr(file, homes[i]);
    return is_home && stacks_is_one_of(last_name(fn), fns, array_len(fns));
}

static bool stacks_is_idle(const char *fn, const char *file)
{
    return str_eq(last_name(fn), "main_loop") && strstr(file, "ray/_private/worker.py");
}

static bool is_standard(const char *file)
{
    return file[0] == '<' || (strstr(file, "/lib/python3") && !strstr(file, "-packages/"));
}

/* "torch/distributed/distributed_c10d.py", "src/train.py" */
static const char *short_file(const char *file)
{
    static const char *const homes[] = {"site-packages/", "dist-packages/"};
    for (size_t i = 0; i < array_len(homes); i++) {
        const char *at = strstr(file, homes[i]);
        if (at)
            return at + strlen(homes[i]);
    }
    const char *last = strrchr(file, '/');
    const char *from = last;
    while (from && from > file && from[-1] != '/')
        from--;
    return last && from ? from : file;
}

/* For people, and harmless for a terminal; cut where it is too long. */
static void stacks_copy(char *dst, size_t size, const char *src)
{
    size_t n = strnlen(src, size - 1);
    for (size_t i = 0; i < n; i++)
        dst[i] = (char)((unsigned char)src[i] < ' ' || src[i] == 0x7f ? ' ' : src[i]);
    dst[n] = 0;
}

static void set_place(struct process *p, const char *fn, const char *file)
{
    _cleanup_(freep) char *text = xasprintf("%s (%s)", fn, short_file(file));
    stacks_copy(p->place, sizeof(p->place), text);
}

/* What a thread does: nothing of ours, waits for a call, runs something. */
enum thread_kind { THREAD_EMPTY, THREAD_IDLE, THREAD_BUSY };

static const char *fn_of(const json_t *frame)
{
    return json_get_str(frame, "function", "");
}

static const char *file_of(const json_t *frame)
{
    return json_get_str(frame, "file", "");
}

static enum thread_kind thread_kind(const json_t *thread)
{
    size_t i;
    const json_t *f, *frames = json_get_array(thread, "frames");
    bool idle = false;
    json_array_foreach (frames, i, f) {
        if (stacks_is_idle(fn_of(f), file_of(f)))
            idle = true;
        else if (!is_standard(file_of(f)) && !idle && !strstr(file_of(f), "/ray/_private/"))
            return THREAD_BUSY;
        if (i >= FRAMES_MAX)
            break;
    }
    return idle ? THREAD_IDLE : THREAD_EMPTY;
}

/* The process's main thread if it is at work, else another thread that is, else the main thread. */
static const json_t *choose_thread(const json_t *threads, enum thread_kind *ret)
{
    const json_t *best = NULL, *t;
    size_t i;
    *ret = THREAD_EMPTY;
    json_array_foreach (threads, i, t) {
        enum thread_kind kind = thread_kind(t);
        bool main = str_eq(json_get_str(t, "name", ""), "MainThread");
        if (!best || kind > *ret || (kind == *ret && main)) {
            best = t;
            *ret = kind;
        }
        if (main && kind == THREAD_BUSY)
            break;
    }
    return best;
}

static void read_frames(struct process *p, const json_t *frames)
{
    struct buf chain = BUF_INIT(CHAIN_MAX);
    const json_t *f, *own = NULL;
    size_t i;
    json_array_foreach (frames, i, f) {
        if (i >= FRAMES_MAX)
            break;
        (void)buf_addf(&chain, "%s:%s:%lld;", fn_of(f), file_of(f),
                       (long long)json_get_int(f, "line", 0)); /* too long: the innermost ones */
        if (!p->is_collective && is_collective(fn_of(f), file_of(f))) {
            p->is_collective = true;
            set_place(p, fn_of(f), file_of(f));
        }
        if (!own && !is_standard(file_of(f)))
            own = f;
    }
    own = own ? own : json_array_get(frames, 0);
    if (!p->is_collective && own)
        set_place(p, fn_of(own), file_of(own));
    p->chain = chain.len ? xstrdup(buf_str(&chain)) : NULL;
    buf_release(&chain);
}

static void read_threads(struct process *p, const json_t *threads)
{
    enum thread_kind kind;
    const json_t *t = choose_thread(threads, &kind);
    if (t)
        read_frames(p, json_get_array(t, "frames"));
    p->is_idle = kind == THREAD_IDLE;
}

/* ---- answers ---- */

static const struct process *find_pid(const struct process *v, size_t n, int64_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].pid == pid)
            return &v[i];
    return NULL;
}

/* Below a worker of Ray or a rank: a loader, an engine. A rank below torchrun is none. */
static bool is_below_one(const struct process *v, size_t n, const struct process *p)
{
    const struct process *above = find_pid(v, n, p->parent);
    for (int i = 0; above && i < ABOVE_MAX; i++) {
        if (above->is_worker || *above->rank)
            return true;
        above = find_pid(v, n, above->parent);
    }
    return false;
}

size_t stacks_add(struct stacks *s, const char *node, const json_t *answer)
{
    const json_t *o;
    size_t i, before = s->n;
    json_array_foreach (answer, i, o) {
        const char *cmd = json_get_str(o, "cmd", "");
        struct process p = {.pid = json_get_int(o, "pid", 0),
                            .parent = json_get_int(o, "parent", 0),
                            .cpu_s = json_get_real(o, "cpu_s", -1),
                            .state = *json_get_str(o, "state", ""),
                            .is_worker =
                                *json_get_str(o, "worker", "") || str_starts(cmd, "ray::")};
        if (s->n >= STACKS_PROCESSES_MAX)
            break;
        if (p.pid <= 0 || str_starts(cmd, "ray::IDLE"))
            continue;
        stacks_copy(p.node, sizeof(p.node), node);
        stacks_copy(p.rank, sizeof(p.rank), json_get_str(o, "rank", ""));
        stacks_copy(p.actor, sizeof(p.actor), json_get_str(o, "actor", ""));
        read_threads(&p, json_get_array(o, "threads"));
        s->v = xrealloc(s->v, s->n + 1, sizeof(*s->v));
        s->v[s->n++] = p;
    }
    for (i = before; i < s->n; i++)
        s->v[i].is_child = is_below_one(s->v + before, s->n - before, &s->v[i]);
    return s->n - before;
}

/* ---- judging ---- */

static const struct process *stacks_find(const struct stacks *s, const struct process *as)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].pid == as->pid && !strcmp(s->v[i].node, as->node))
            return &s->v[i];
    return NULL;
}

static bool is_stopped(const struct process *p)
{
    return p->state == 'T' || p->state == 't';
}

static bool computes(const struct process *a, const struct process *b)
{
    return a->cpu_s >= 0 && b->cpu_s - a->cpu_s >= BUSY_S;
}

/* A process that spins in a collective does nothing. */
static bool has_moved(const struct process *a, const struct process *b)
{
    if (is_stopped(b) || (a->is_idle && b->is_idle))
        return false;
    if (a->chain && b->chain && strcmp(a->chain, b->chain) != 0)
        return true;
    return b->chain && computes(a, b) && !b->is_collective;
}

/* True for an actor class of which a process is at work. */
static bool is_awaited(const struct stacks *s, const struct process *p)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->v[i].is_idle && !strcmp(s->v[i].actor, p->actor))
            return true;
    return false;
}

struct ranks {
    const struct process **v;
    size_t n;
};

static bool counts_as_rank(const struct stacks *s, const struct process *p, bool has_ranks)
{
    if (p->is_child || (has_ranks && !*p->rank) || (!has_ranks && !*p->actor))
        return false;
    return !p->is_idle || is_awaited(s, p);
}

/* Collects the processes that have a rank; if none has one, all actors. */
static void stacks_collect(const struct stacks *s, struct ranks *ret)
{
    size_t with_rank = 0;
    for (size_t i = 0; i < s->n; i++)
        with_rank += *s->v[i].rank && !s->v[i].is_child;
    ret->v = xcalloc(s->n + 1, sizeof(struct process *));
    for (size_t i = 0; i < s->n; i++)
        if (counts_as_rank(s, &s->v[i], with_rank > 1))
            ret->v[ret->n++] = &s->v[i];
}

static size_t group_size(const struct ranks *r, const struct process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += !is_stopped(r->v[i]) && !strcmp(r->v[i]->place, p->place);
    return n;
}

static const struct process *largest_group(const struct ranks *r)
{
    const struct process *best = NULL;
    for (size_t i = 0; i < r->n; i++)
        if (!is_stopped(r->v[i]) && *r->v[i]->place &&
            (!best || group_size(r, r->v[i]) > group_size(r, best)))
            best = r->v[i];
    return best;
}

/* The only one that is alone, among those that stand elsewhere than `most`. NULL: none, or more. */
static const struct process *the_only(const struct ranks *r,
                                      const struct process *most,
                                      bool outside_collectives)
{
    const struct process *found = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct process *p = r->v[i];
        if (!*p->place || !strcmp(p->place, most->place) ||
            (outside_collectives && p->is_collective))
            continue;
        if (found)
            return NULL;
        found = p;
    }
    return found;
}

/* Dead, or in the kernel for a disk both times. */
static bool is_stuck(const struct stacks *first, const struct process *p)
{
    const struct process *before = stacks_find(first, p);
    return p->state == 'Z' || (p->state == 'D' && before && before->state == 'D');
}

/* A stopped one, of all: a loader may be stopped too. Else the only rank that is stuck. */
static const struct process *find_dead(const struct stacks *first,
                                       const struct stacks *s,
                                       const struct ranks *r)
{
    const struct process *stuck = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (is_stopped(&s->v[i]))
            return &s->v[i];
    for (size_t i = 0; i < r->n; i++)
        if (is_stuck(first, r->v[i])) {
            stuck = r->v[i];
            n++;
        }
    return n == 1 && r->n > 1 ? stuck : NULL;
}

/* The only process at work while all others have done their part; processes that wait for them
 * do not count. */
static const struct process *the_only_at_work(const struct ranks *r)
{
    const struct process *found = NULL;
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i]->is_idle)
            continue;
        if (found)
            return NULL;
        found = r->v[i];
    }
    return found && !found->is_collective ? found : NULL;
}

static const struct process *find_odd(const struct stacks *first,
                                      const struct stacks *s,
                                      const struct ranks *r)
{
    const struct process *most = largest_group(r), *odd = find_dead(first, s, r);
    if (odd || !most || r->n < 2)
        return odd;
    for (size_t i = 0; i < r->n && !most->is_collective; i++)
        if (r->v[i]->is_collective) /* a process in a collective waits, however few they are */
            most = r->v[i];
    odd = most->is_collective ? the_only(r, most, true) : NULL;
    odd = odd ? odd : the_only_at_work(r);
    bool majority = 2 * group_size(r, most) > r->n;
    return odd ? odd : majority ? the_only(r, most, false) : NULL;
}

enum { STACKS_PART_MAX = 400 };

/* "rank 2 (WorkerDict, pid 4711 on w2) is stopped (state T)" */
static void stacks_put_odd(const struct process *p, struct jout *j)
{
    static const char *const codes[] = {"stacks_stopped", "stacks_disk", "stacks_dead",
                                        "stacks_idle", "stacks_at"};
    char who[STACKS_PART_MAX], text[2 * STACKS_PART_MAX], state[] = {p->state, 0};
    size_t kind = is_stopped(p)     ? 0
                  : p->state == 'D' ? 1
                  : p->state == 'Z' ? 2
                  : p->is_idle      ? 3
                                    : 4;
    message_write(who, sizeof(who),
                  MESSAGE_ARGS(MESSAGE_STR("rank", p->rank), MESSAGE_STR("actor", p->actor),
                               MESSAGE_NUM("pid", p->pid),
                               MESSAGE_STR("node", *p->node ? p->node : "?")));
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_OF("process", *p->rank ? "stacks_rank" : "stacks_process", who),
                     MESSAGE_STR("state", kind ? "" : state), MESSAGE_STR("place", p->place)));
    message_put(j, NULL, codes[kind], text);
}

static void stacks_put_place(const char *code,
                             size_t n,
                             size_t of,
                             const char *place,
                             struct jout *j)
{
    char text[STACKS_PART_MAX];
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_NUM("n", n), MESSAGE_NUM("of", of), MESSAGE_STR("place", place)));
    message_put(j, NULL, code, text);
}

static void stacks_describe(const struct ranks *r,
                            const struct process *odd,
                            const struct process *any,
                            struct stacks_verdict *ret)
{
    const struct process *most = largest_group(r);
    size_t n = most ? group_size(r, most) : 0;
    bool has_group = most && r->n > 1, is_alone = !has_group && any && *any->place && !odd;
    struct message m;
    *ret->text = 0;
    if (!odd && !has_group && !is_alone)
        return;
    message_begin(&m);
    jout_open(&m.j, "parts", '[');
    if (odd)
        stacks_put_odd(odd, &m.j);
    if (has_group)
        stacks_put_place(n == r->n ? "stacks_all" : "stacks_some", n, r->n, most->place, &m.j);
    if (is_alone)
        stacks_put_place("stacks_one", 1, 1, any->place, &m.j);
    jout_close(&m.j, ']');
    message_end(&m, ret->text, sizeof(ret->text));
}

static void count_moves(const struct stacks *first,
                        const struct stacks *second,
                        const struct ranks *r,
                        struct stacks_verdict *ret)
{
    bool any_rank_works = false;
    for (size_t i = 0; i < r->n; i++)
        any_rank_works = any_rank_works || !r->v[i]->is_idle;
    for (size_t i = 0; i < second->n; i++) {
        const struct process *b = &second->v[i], *a = stacks_find(first, b);
        if (!a)
            continue;
        ret->processes++;
        bool counts = !any_rank_works || b->is_child;
        for (size_t k = 0; k < r->n && !counts; k++)
            counts = r->v[k] == b;
        ret->moved += counts && has_moved(a, b);
        ret->unclear += counts && !b->chain && !is_stopped(b) && computes(a, b);
    }
}

static void take_odd(const struct process *odd, struct stacks_verdict *ret)
{
    ret->has_odd = true;
    ret->is_stopped = is_stopped(odd);
    ret->pid = odd->pid;
    stacks_copy(ret->rank, sizeof(ret->rank), odd->rank);
    stacks_copy(ret->actor, sizeof(ret->actor), odd->actor);
    stacks_copy(ret->node, sizeof(ret->node), odd->node);
    stacks_copy(ret->place, sizeof(ret->place), odd->place);
}

void stacks_judge(const struct stacks *first,
                  const struct stacks *second,
                  struct stacks_verdict *ret)
{
    struct ranks r = {0};
    const struct process *any = NULL;
    *ret = (struct stacks_verdict){0};
    stacks_collect(second, &r);
    count_moves(first, second, &r, ret);
    const struct process *odd = find_odd(first, second, &r);
    for (size_t i = 0; i < second->n && !any; i++)
        if (!second->v[i].is_idle && !second->v[i].is_child)
            any = &second->v[i];
    if (odd)
        take_odd(odd, ret);
    stacks_describe(&r, odd, any, ret);
    free(r.v);
}
