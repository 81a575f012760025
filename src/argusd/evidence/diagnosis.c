/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis.c - see diagnosis.h. A file that cannot be read is passed over: then the facts alone
 * are judged, and the finding says how much was read. */
#define _GNU_SOURCE
#include "argusd/evidence/diagnosis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/str.h"
#include "fsroot/attempt/attempt.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/witness.h"
#include "fsroot/logs/loglist.h"
#include "fsroot/logs/logread.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { CHUNK = 1 << 20, LINE_MAX_BYTES = 300 };
static const double WEAK = 0.5;
static const uint64_t DISK_FULL_BELOW = 1 << 20;

void diagnosis_release(struct diagnosis *d)
{
    char *texts[] = {d->root,           d->job,      d->lost_node, d->odd_node,   d->odd_rank,
                     d->stopped_reason, d->node,     d->whole,     d->body,       d->oom_line,
                     d->xid_line,       d->nan_text, d->ray_nodes, d->ray_actors, d->start_says};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    pairs_release(&d->names);
    finding_release(&d->found);
    *d = (struct diagnosis){0};
}

/* ---- reading ---- */

struct reading {
    const struct diagnosis *d;
    struct finder *f;
    char *chunk;      /* of CHUNK bytes */
    uint64_t lines;   /* fed of this file */
    uint64_t skipped; /* bytes in the middle of files */
};

static uint64_t count_lines(const char *p, size_t n)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += p[i] == '\n';
    return lines;
}

/* One chunk of a log of the attempt, the whole stream, whatever its files. */
static int read_chunk(const struct reading *r,
                      const char *name,
                      uint64_t from,
                      size_t want,
                      struct logread_part *ret)
{
    const struct diagnosis *d = r->d;
    *ret = (struct logread_part){.offset = from};
    return logread_at(d->root, d->job, d->k, name, from, r->chunk, want, ret, NULL);
}

/* Feeds [from, to). Returns how far it came; *ret_size: of the file, as it is now. */
static uint64_t feed(struct reading *r,
                     const char *name,
                     uint64_t from,
                     uint64_t to,
                     bool count,
                     uint64_t *ret_size)
{
    struct logread_part p = {.n = 1};
    while (from < to && p.n) {
        size_t want = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
        if (read_chunk(r, name, from, want, &p) < 0)
            break;
        *ret_size = p.end;
        if (p.n && p.offset > from) { /* dropped: lines are counted as if it were none */
            r->skipped += p.offset - from;
            finder_seek(r->f, p.offset, r->lines + 1);
        }
        finder_feed(r->f, r->chunk, p.n);
        if (count)
            r->lines += count_lines(r->chunk, p.n);
        from = p.n ? p.offset + p.n : from;
    }
    return from;
}

/* The beginning and the end; where these do not meet, what is between is skipped. */
static void feed_file(struct reading *r, const char *name, uint64_t head, uint64_t tail)
{
    struct logread_part whole;
    if (read_chunk(r, name, 0, 0, &whole) < 0)
        return;
    uint64_t size = whole.end;
    finder_source(r->f, name);
    bool is_cut = size > head + tail, count = is_cut || whole.files > 1;
    r->lines = 0;
    uint64_t at = feed(r, name, 0, is_cut ? head : size, count, &size);
    if (!is_cut || at < head || size <= head + tail)
        return;
    uint64_t end = size;
    uint64_t begin = end - tail > at ? end - tail : at; /* behind a gap it may be there already */
    finder_seek(r->f, begin, r->lines + 1);
    r->skipped += begin - at;
    (void)feed(r, name, begin, end, whole.files > 1,
               &size); /* how far it comes is how much there is */
}

/* The end of each: what training went on after cannot be told from another process's log. */
static void feed_workers(struct reading *r)
{
    _cleanup_(strv_release) struct strv names = {0};
    uint64_t left = DIAGNOSIS_WORKERS_MAX;
    if (fsroot_worker_logs(r->d->root, r->d->job, r->d->k, FINDING_SOURCES_MAX, &names, NULL) < 0)
        return; /* none was copied */
    for (size_t i = 0; i < names.n && left; i++) {
        struct logread_part whole;
        if (read_chunk(r, names.v[i], 0, 0, &whole) < 0)
            continue;
        uint64_t size = whole.end,
                 from = size > DIAGNOSIS_WORKER_TAIL ? size - DIAGNOSIS_WORKER_TAIL : 0;
        uint64_t to = size < from + left ? size : from + left;
        finder_source(r->f, names.v[i]);
        if (from)
            finder_seek(r->f, from, 1);
        (void)feed(r, names.v[i], from, to, false, &size); /* as far as it comes */
        left -= to - from;
    }
}

/* unknown and actor_died say that something ended, and not why. */
static bool says_why(const struct finding *f)
{
    return finding_class_tells(f->class) && f->class != FINDING_ACTOR_DIED;
}

/* The driver's log does not know: what the workers said may have never come to it. Of two that are
 * equally sure the one that says why is right. */
static void ask_workers(struct diagnosis *d, char *chunk)
{
    struct finding other = {0};
    struct reading r = {.d = d, .f = finder_new(d->rules), .chunk = chunk};
    feed_workers(&r);
    finder_end(r.f, &d->facts, &other);
    finder_free(r.f);
    double surer = other.confidence - d->found.confidence;
    bool is_better = surer > 0 || (surer >= 0 && says_why(&other) && !says_why(&d->found));
    bool knows = finding_class_tells(other.class) && other.evidence[0].source && is_better;
    if (knows) {
        other.bytes += d->found.bytes;
        other.lines += d->found.lines;
        finding_release(&d->found);
        d->found = other;
    } else {
        finding_release(&other);
    }
}

static bool is_weak(const struct finding *f)
{
    return f->class == FINDING_UNKNOWN || f->class == FINDING_ACTOR_DIED ||
           (f->class != FINDING_NONE && f->confidence < WEAK);
}

/* ---- what the nodes found ---- */

/* The first one stays. */
static void take_line(const json_t *facts, const char *key, char **line)
{
    const char *text = json_get_str(facts, key, NULL);
    if (text && *text && !*line)
        *line = xstrndup(text, strnlen(text, LINE_MAX_BYTES));
}

/* Scouts of before say no own_oom_kills: the group's and the kernel's, whichever are more. */
static int64_t kills_of(const json_t *o)
{
    int64_t group = json_get_int(o, "oom_kills", 0), log = json_get_int(o, "kernel_oom_kills", 0);
    bool says_own = json_object_get(o, "own_oom_kills") != NULL;
    return says_own ? json_get_int(o, "own_oom_kills", 0) : group > log ? group : log;
}

/* What is certain on one node outdoes what is not on another. */
static void take_memory(struct diagnosis *d, const json_t *o)
{
    struct finding_facts *f = &d->facts;
    int64_t kills = kills_of(o);
    bool is_unsure = json_get_bool(o, "oom_unsure", false);
    bool is_better = !f->oom_kills || (f->oom_unsure && !is_unsure);
    bool is_more = f->oom_unsure == is_unsure && kills > f->oom_kills;
    if (kills <= 0 || kills >= INT32_MAX || (!is_better && !is_more))
        return;
    f->oom_kills = kills;
    f->oom_unsure = is_unsure;
    take_line(o, "oom_line", &d->oom_line);
}

static void take_xid(struct diagnosis *d, const json_t *o)
{
    int64_t xid = json_get_int(o, "xid", 0);
    if (xid <= 0 || xid >= 10000 || d->facts.xid)
        return;
    d->facts.xid = (int)xid;
    take_line(o, "xid_line", &d->xid_line);
}

static void take_facts_of(struct diagnosis *d, const char *node)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    _cleanup_(buf_release) struct buf text = BUF_INIT(DIAGNOSIS_FACTS_MAX);
    _cleanup_(freep) char *part = xasprintf(ATTEMPT_SCENE "/%s/" SCENE_FACTS, node);
    _cleanup_(freep) char *path = fsroot_attempt_dir(d->root, d->job, d->k, part);
    struct finding_facts *f = &d->facts, before = *f;
    if (rootfile_read(d->root, path, &text, NULL) < 0 ||
        json_parse(buf_str(&text), text.len, DIAGNOSIS_FACTS_MAX, &o, NULL) < 0)
        return; /* this node has nothing to say */
    bool shm = json_get_bool(o, "shm_full", false), disk = json_get_bool(o, "disk_full", false);
    take_memory(d, o);
    take_xid(d, o);
    f->shm_full = f->shm_full || shm;
    f->disk_full = f->disk_full || disk;
    bool is_odd =
        shm || disk || (f->oom_kills > before.oom_kills && !f->oom_unsure) || f->xid != before.xid;
    if (is_odd && !d->odd_node)
        d->odd_node = xstrdup(node);
}

static void take_facts(struct diagnosis *d)
{
    _cleanup_(strv_release) struct strv nodes = {0};
    if (fsroot_nodes_of(d->root, d->job, d->k, ATTEMPT_SCENE, &nodes, NULL) < 0)
        return; /* no scene was gathered */
    for (size_t i = 0; i < nodes.n; i++)
        take_facts_of(d, nodes.v[i]);
}

static bool disk_is_full(const char *root)
{
    struct statvfs st;
    return statvfs(root, &st) == 0 && (uint64_t)st.f_bavail * st.f_frsize < DISK_FULL_BELOW;
}

static uint64_t diagnosis_judge(struct diagnosis *d)
{
    struct reading r = {.d = d, .f = finder_new(d->rules)};
    take_facts(d);
    d->facts.lost_node = d->lost_node;
    d->facts.odd_node = d->odd_node;
    d->facts.odd_rank = d->odd_rank;
    d->facts.stopped_reason = d->stopped_reason;
    d->facts.start_says = d->start_says;
    d->facts.oom_line = d->oom_line;
    d->facts.xid_line = d->xid_line;
    d->facts.nan_text = d->nan_text;
    d->facts.nodes = d->all_named ? &d->names : NULL;
    if (!d->no_logs) {
        r.chunk = xmalloc(CHUNK);
        feed_file(&r, ATTEMPT_LOG, d->head ? d->head : DIAGNOSIS_HEAD,
                  d->tail ? d->tail : DIAGNOSIS_TAIL);
        d->facts.disk_full = d->facts.disk_full || disk_is_full(d->root);
    }
    finder_end(r.f, &d->facts, &d->found);
    finder_free(r.f);
    if (!d->no_logs && is_weak(&d->found))
        ask_workers(d, r.chunk);
    free(r.chunk);
    return r.skipped;
}

/* ---- writing ---- */

static void diagnosis_take_given(struct diagnosis *d)
{
    d->found = (struct finding){.class = d->given, .rule = xstrdup("argusd"), .confidence = 1};
    if (d->stopped_reason) {
        d->found.evidence[0].text = xstrdup(d->stopped_reason);
        d->found.n_evidence = 1;
    }
}

/* False: it cannot be read. */
static bool take_whole(struct diagnosis *d)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    struct finding f = {0};
    if (json_parse(d->whole, strlen(d->whole), DIAGNOSIS_BODY_MAX, &o, NULL) < 0 ||
        finding_from_json(o, &f, NULL) < 0) {
        finding_release(&f);
        return false;
    }
    d->found = f;
    return true;
}

/* What is stored of an attempt's finding, and shown. */
struct verdict_page {
    struct finding_page finding;
    int attempt;
    uint64_t skipped_bytes;
    const char *job, *sentence;
    usec_t at;
};
/* Rows that older versions stored have none of these. */
enum { SINCE_LATER = FIELD_OWN(0) };
#define VERDICT(key, ftype, member, ...) FIELD_AT(verdict_page, key, ftype, member, __VA_ARGS__)
static const struct field verdict_rows[] = {
    VERDICT("", FIELD_INLINE, finding, .of = &finding_page_table),
    VERDICT("attempt", FIELD_INT32, attempt),
    VERDICT("skipped_bytes", FIELD_COUNT, skipped_bytes, .flags = SINCE_LATER),
    VERDICT("job", FIELD_STR, job, .flags = FIELD_ALWAYS | SINCE_LATER),
    VERDICT("sentence", FIELD_STR, sentence, .flags = FIELD_ALWAYS),
    VERDICT("at", FIELD_TIME, at, .flags = FIELD_ALWAYS),
};
const struct field_table diagnosis_table = FIELD_TABLE("Finding", verdict_rows, verdict_page);

static void put_verdict(const struct diagnosis *d,
                        const struct finding *found,
                        uint64_t skipped,
                        struct buf *out)
{
    struct verdict_page page = {.attempt = d->k,
                                .skipped_bytes = skipped,
                                .job = d->job,
                                .sentence = d->sentence,
                                .at = d->at};
    struct jout j = jout_begin(out);
    finding_page_fill(found, &page.finding);
    if (!page.finding.node)
        page.finding.node = d->lost_node ? d->lost_node : d->node;
    field_to_json(&diagnosis_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
}

static char *make_body(const struct diagnosis *d, uint64_t skipped)
{
    struct buf text = BUF_INIT(DIAGNOSIS_BODY_MAX);
    put_verdict(d, &d->found, skipped, &text);
    if (text.failed) { /* too long: without its lines */
        const struct finding bare = {.class = d->found.class};
        buf_release(&text);
        put_verdict(d, &bare, skipped, &text);
    }
    return buf_take(&text);
}

/* Logs know nodes by their addresses, people by their names. */
static void name_node(struct diagnosis *d)
{
    const char *name = d->found.node ? pairs_find(&d->names, d->found.node) : NULL;
    if (name)
        set_str(&d->found.node, name);
}

/* What cannot be written is a gap. */
static void leave_views(const struct diagnosis *d)
{
    if (d->ray_nodes)
        (void)!fsroot_scene_write(d->root, d->job, d->k, SCENE_RAY_NODES, d->ray_nodes, NULL);
    if (d->ray_actors)
        (void)!fsroot_scene_write(d->root, d->job, d->k, SCENE_RAY_ACTORS, d->ray_actors, NULL);
}

/* The log of a process; NULL: of none. node NULL: it is not known, and asked is who copied logs, as
 * long as that is one node only. */
static const struct loglist_file *process_of(const struct loglist *l, const char *node, int64_t pid)
{
    const struct loglist_file *of = NULL;
    for (size_t i = 0; i < l->n; i++) {
        const struct loglist_file *f = &l->v[i];
        if (!node && !str_eq(l->v[0].node, f->node))
            return NULL; /* pids of different nodes can be the same */
        if (f->pid == pid && (!node || str_eq(node, f->node)))
            of = f;
    }
    return of;
}

/* The node of logs/workers/<node>/…; NULL: it is another file. Yours. */
static char *node_of_source(const char *source)
{
    static const char dir[] = ATTEMPT_WORKERS "/";
    const char *node = source && str_starts(source, dir) ? source + strlen(dir) : NULL;
    return node ? xstrndup(node, strcspn(node, "/")) : NULL;
}

static bool may_be_of_job(const struct diagnosis *d, const char *node)
{
    bool is_named = !d->all_named;
    for (size_t i = 0; i < d->names.n && !is_named; i++)
        is_named = str_eq(d->names.v[i].value, node);
    return is_named;
}

static void take_process(struct finding *f, const struct loglist_file *of, const char *node)
{
    if (!f->actor)
        f->actor = xstrdup(of->actor);
    if (!f->rank && of->rank >= 0)
        f->rank = xasprintf("%" PRId64, of->rank);
    if (node && !f->node)
        f->node = xstrdup(node);
}

/* A pid that the log told is an actor and a rank by what the scout of its node wrote down. One
 * without an address is of the node where it was printed: Ray leaves it out there. */
static void name_process(struct diagnosis *d)
{
    struct finding *f = &d->found;
    struct loglist l = {0};
    int64_t pid;
    if (!f->pid || (f->rank && f->actor) || str_to_int(f->pid, 1, INT32_MAX, &pid, NULL) < 0)
        return;
    _cleanup_(freep) char *printed = node_of_source(f->evidence[0].source);
    const char *node = f->node ? f->node : printed ? printed : d->node;
    if ((node && !may_be_of_job(d, node)) ||
        loglist_read(d->root, d->job, d->k, LOGLIST_WORKER, node, &l, NULL) < 0)
        return; /* no worker's log was copied */
    const struct loglist_file *of = process_of(&l, node, pid);
    if (of)
        take_process(f, of, node);
    loglist_release(&l);
}

void diagnosis_run(struct diagnosis *d)
{
    uint64_t skipped = 0;
    bool is_known = d->whole && take_whole(d);
    leave_views(d);
    if (!is_known && d->is_given)
        diagnosis_take_given(d);
    else if (!is_known)
        skipped = diagnosis_judge(d);
    name_node(d);
    name_process(d);
    (void)finding_line(&d->found, d->sentence, sizeof(d->sentence)); /* cut: fine */
    d->body = make_body(d, skipped);
    if (!d->no_file && fsroot_finding_write(d->root, d->job, d->k, d->body, &d->wrote) == 0)
        d->wrote = (struct err){0};
}
