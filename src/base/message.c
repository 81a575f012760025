/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - the catalogue, and how a row becomes a sentence; see message.h.
 *
 * {key} is the argument of that name, {key|one|more} a word that depends on a number. Of several
 * rows with one code the first is said all of whose arguments are there. */
#include "base/message.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { ARGS_MAX = 4096, SAID_MAX = 8192, DEPTH_MAX = 4 };

static const struct {
    const char *code, *said[MESSAGE_LANGUAGES];
} rows[] = {
    {"held", {"held by '{holder}'; it waits until it is released", "被 '{holder}' 挂起，等待释放"}},
    {"held", {"held until it is released", "已挂起，等待释放"}},
    {"trial_running", {"its trial has to end first: {trial}", "先要等试跑结束：{trial}"}},
    {"restart_backoff",
     {"it pauses for another {span} before {reason}", "再等 {span} 后：{reason}"}},
    {"quota_running",
     {"{kind} '{account}' runs {running} jobs and may run {limit} at once",
      "{kind} '{account}' 已运行 {running} 个作业，最多同时 {limit} 个"}},
    {"quota_gpus",
     {"{kind} '{account}' holds {held} GPUs and may hold {limit}; this job needs {needs}",
      "{kind} '{account}' 已占 {held} 块 GPU，上限 {limit}；本作业需要 {needs}"}},
    {"quota_cpus",
     {"{kind} '{account}' holds {held} CPUs and may hold {limit}; this job needs {needs}",
      "{kind} '{account}' 已占 {held} 个 CPU，上限 {limit}；本作业需要 {needs}"}},
    {"quota_memory",
     {"{kind} '{account}' holds {held} GiB of memory and may hold {limit}; this job states {needs}",
      "{kind} '{account}' 已占 {held} GiB 内存，上限 {limit}；本作业声明 {needs}"}},
    {"quota_gpu_hours",
     {"{kind} '{account}' has used its {limit} GPU-hours of this month; the next begins on the 1st "
      "(UTC)",
      "{kind} '{account}' 本月 {limit} GPU 小时已用完；下月 1 日（UTC）重新计"}},
    {"pool_too_small",
     {"pool_too_small (has {has}, needs {needs}): {pool} has {gpus} {gpus|GPU|GPUs} on {nodes} "
      "{nodes|node|nodes}; it starts when enough nodes join",
      "pool_too_small（有 {has}，需要 {needs}）：{pool}共 {nodes} 个节点 {gpus} 块 "
      "GPU；等足够的节点加入后启动"}},
    {"pool_too_small",
     {"pool_too_small: {pool} has {gpus} {gpus|GPU|GPUs} on {nodes} {nodes|node|nodes}, but no "
      "{nnodes} with {each} GPUs and {cpus} CPUs each, even when empty{shared|, or share their "
      "GPUs|}; ask for another shape or fewer CPUs",
      "pool_too_small：{pool}共 {nodes} 个节点 {gpus} 块 GPU，但即使全空也没有 {nnodes} 个各有 "
      "{each} 块 GPU 和 {cpus} 个 CPU{shared|（或共享 GPU）|} 的节点；请改形状或减少 CPU"}},
    {"waiting_for_gpus",
     {"needs {nnodes} x {each} GPUs; others than Argus hold {foreign} of the pool's {all}",
      "需要 {nnodes} x {each} 块 GPU；Argus 之外的程序占着资源池 {all} 块中的 {foreign} 块"}},
    {"waiting_for_gpus",
     {"needs {nnodes} x {each} GPUs, {free} of the pool's {all} are free, in one gang at most "
      "{gang}; {place}",
      "需要 {nnodes} x {each} 块 GPU，资源池 {all} 块中空闲 {free}，一次最多可给 {gang}；{place}"}},
    {"waiting_for_cpus",
     {"needs {nnodes} x {cpus} CPUs beside its GPUs, and where those are free the CPUs are not; "
      "{place}",
      "除 GPU 外需要 {nnodes} x {cpus} 个 CPU，有空闲 GPU 的地方 CPU 不够；{place}"}},
    {"nodes_not_usable",
     {"needs {nnodes} nodes; {more} of its pool take no jobs now ('{node}' is {state})",
      "需要 {nnodes} 个节点；资源池中 {more} 个现在不接作业（'{node}' {state}）"}},
    {"live_jobs_limit",
     {"{running} jobs run, as many as limits.live_jobs allows",
      "已运行 {running} 个作业，达到 limits.live_jobs 上限"}},
    {"reclaiming",
     {"within its guarantee: {gpus} GPUs come back from {jobs} jobs that were asked to make room",
      "在其保证额度内：{jobs} 个作业正在让出 {gpus} 块 GPU"}},
    {"reclaiming",
     {"it is stopped in {within} and goes on later: {claim}",
      "{within} 后停止，稍后继续：{claim}"}},
    {"reclaiming", {"{claim}", "{claim}"}},
    {"preempted", {"{claim}", "{claim}"}},
    {"claim",
     {"{claim_project} needs {needs} of its {guaranteed} guaranteed GPUs for {job}",
      "{claim_project}需要其保证的 {guaranteed} 块 GPU 中的 {needs} 块给{job}"}},
    {"claim",
     {"{claim_user} needs {needs} of its {guaranteed} guaranteed GPUs for {job}",
      "{claim_user}需要其保证的 {guaranteed} 块 GPU 中的 {needs} 块给{job}"}},
    {"place", {"first in line, its start is promised by {at}", "排在第一，承诺最晚 {at} 启动"}},
    {"place", {"{before} before it in line", "前面还有 {before} 个"}},
    {"place", {"first in line", "排在第一"}},
    {"queued_behind", {"behind {first}, which is first in line", "排在{first}之后，它排第一"}},
    {"queued_behind", {"it fits and starts in the next pass", "放得下，下一轮启动"}},
    {"backfill_would_delay",
     {"it fits but would delay {first}, first in line, whose nodes are promised by {at}: it may "
      "run for {lasts}",
      "放得下，但会推迟排第一的{first}（节点承诺最晚 {at}）：它可能运行 {lasts}"}},
    {"backfill_would_delay",
     {"it fits but would delay {first}, first in line, whose nodes are promised by {at}: it has no "
      "timeout",
      "放得下，但会推迟排第一的{first}（节点承诺最晚 {at}）：它没有 timeout"}},
    {"backfill_would_delay",
     {"it fits but would delay {first}, first in line, whose nodes are promised when those that "
      "run there end: it may run for {lasts}",
      "放得下，但会推迟排第一的{first}（其节点等正在运行的结束）：它可能运行 {lasts}"}},
    {"backfill_would_delay",
     {"it fits but would delay {first}, first in line, whose nodes are promised when those that "
      "run there end: it has no timeout",
      "放得下，但会推迟排第一的{first}（其节点等正在运行的结束）：它没有 timeout"}},
    {"hint_release", {"starts when it is released", "释放后即启动"}},
    {"hint_pool", {"would start now on pool {on}", "在资源池 {on} 可立即启动"}},
    {"hint_shape",
     {"would start now with nnodes {nnodes} and n_gpus_per_node {each}",
      "用 nnodes {nnodes}、n_gpus_per_node {each} 可立即启动"}},
    {"hint_timeout", {"would start now with timeout {limit}", "设 timeout {limit} 可立即启动"}},
    {"hint_priority", {"would start now with priority {priority}", "优先级 {priority} 可立即启动"}},
    {"hint_job_end", {"starts when {job} ends, expected {at}", "{job}结束后启动，预计 {at}"}},
    {"hint_job_end", {"starts when {job} ends", "{job}结束后启动"}},
    {"hint_node",
     {"starts when node '{node}' takes jobs again (it is {state})",
      "节点 '{node}' 再接作业时启动（现在 {state}）"}},
    {"submitted_again", {"submitted again as {job}", "重新提交为{job}"}},
    {"retry", {"it is {job} again", "它是{job}的重试"}},
};

const char *message_row(size_t i, enum message_language language, const char **ret_code)
{
    if (i >= array_len(rows))
        return NULL;
    *ret_code = rows[i].code;
    return rows[i].said[language];
}

/* ---- arguments ---- */

/* Arguments that are names, and how one is said: %s is the name. */
static const struct {
    const char *key;
    enum message_name kind;
    const char *said[MESSAGE_LANGUAGES];
} names[] = {
    {"job", MESSAGE_JOB, {"job '%s'", "作业 '%s' "}},
    {"first", MESSAGE_JOB, {"'%s'", " '%s' "}},
    {"claim_project", MESSAGE_PROJECT, {"project '%s'", "项目 '%s' "}},
    {"claim_user", MESSAGE_USER, {"user '%s'", "用户 '%s' "}},
};

static const char *const unheard[][MESSAGE_LANGUAGES] = {
    [MESSAGE_JOB] = {"another's job", "别人的作业"},
    [MESSAGE_PROJECT] = {"another project", "其他项目"},
    [MESSAGE_USER] = {"another user", "其他用户"},
};
static const char *const over[MESSAGE_LANGUAGES] = {"a job that is over", "已结束的作业"};

/* Arguments that are one of a few words. */
static const struct {
    const char *word, *said[MESSAGE_LANGUAGES];
} words[] = {{"project", {"project", "项目"}}, {"user", {"user", "用户"}}};

struct saying {
    const json_t *args;
    const struct message_listener *to;
    struct buf *out;
    int depth;
};

static size_t find_name(const char *key)
{
    size_t i = 0;
    while (i < array_len(names) && strcmp(names[i].key, key) != 0)
        i++;
    return i;
}

static enum message_hearing how_heard(const struct message_listener *to,
                                      size_t name,
                                      const char *value)
{
    return to->hears ? to->hears(names[name].kind, value, to->arg) : MESSAGE_NAMED;
}

static void say_name(const struct saying *s, size_t name, const char *value)
{
    enum message_language in = s->to->language;
    switch (how_heard(s->to, name, value)) {
    case MESSAGE_NAMED: {
        const char *said = names[name].said[in], *at = strstr(said, "%s");
        (void)buf_addf(s->out, "%.*s%s%s", (int)(at - said), said, value, at + 2);
        break;
    }
    case MESSAGE_ANOTHERS:
        (void)buf_adds(s->out, unheard[names[name].kind][in]);
        break;
    case MESSAGE_OVER:
        (void)buf_adds(s->out, over[in]);
        break;
    }
}

static void say_pool(const struct saying *s, const char *pool)
{
    bool english = s->to->language == MESSAGE_ENGLISH;
    if (*pool)
        (void)buf_addf(s->out, english ? "the pool '%s'" : "资源池 '%s' ", pool);
    else
        (void)buf_adds(s->out, english ? "the cluster" : "集群");
}

static void say_text(const struct saying *s, const char *key, const char *value)
{
    size_t name = find_name(key), i = 0;
    if (name < array_len(names)) {
        say_name(s, name, value);
        return;
    }
    if (str_eq(key, "pool")) {
        say_pool(s, value);
        return;
    }
    while (i < array_len(words) && (!str_eq(key, "kind") || strcmp(words[i].word, value) != 0))
        i++;
    (void)buf_adds(s->out, i < array_len(words) ? words[i].said[s->to->language] : value);
}

static void say_object(const struct saying *s, const char *code);

static void say_nested(const struct saying *s, const json_t *message)
{
    struct saying inner = *s;
    inner.args = json_get_object(message, "args");
    inner.depth++;
    if (inner.depth < DEPTH_MAX)
        say_object(&inner, json_get_str(message, "code", ""));
}

static void say_arg(const struct saying *s, const char *key)
{
    const json_t *v = json_object_get(s->args, key);
    if (json_is_integer(v))
        (void)buf_addf(s->out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        (void)buf_addf(s->out, "%g", json_real_value(v));
    else if (json_is_string(v))
        say_text(s, key, json_string_value(v));
    else if (json_is_object(v))
        say_nested(s, v);
}

/* {key|one|more} */
static void say_choice(const struct saying *s, const char *key, const char *one, const char *end)
{
    const char *more = memchr(one, '|', (size_t)(end - one));
    double n = json_get_real(s->args, key, 0);
    assert(more);
    if (n >= 1 && n <= 1)
        (void)buf_add(s->out, one, (size_t)(more - one));
    else
        (void)buf_add(s->out, more + 1, (size_t)(end - more - 1));
}

/* ---- sentences ---- */

enum { KEY_MAX = 32 };

/* The next {…} from *at: its key; *ret_rest behind the key. NULL: there is none. */
static const char *next_hole(const char *at, char key[static KEY_MAX], const char **ret_rest)
{
    const char *open = strchr(at, '{');
    if (!open)
        return NULL;
    size_t n = strcspn(open + 1, "|}");
    assert(n < KEY_MAX);
    memcpy(key, open + 1, n);
    key[n] = 0;
    *ret_rest = open + 1 + n;
    return open;
}

static bool has_all(const json_t *args, const char *row)
{
    char key[KEY_MAX];
    while (next_hole(row, key, &row))
        if (!json_object_get(args, key))
            return false;
    return true;
}

static const char *find_row(const struct saying *s, const char *code)
{
    for (size_t i = 0; i < array_len(rows); i++)
        if (!strcmp(rows[i].code, code) && has_all(s->args, rows[i].said[MESSAGE_ENGLISH]))
            return rows[i].said[s->to->language];
    return NULL;
}

static void say_object(const struct saying *s, const char *code)
{
    const char *row = find_row(s, code), *rest, *hole;
    char key[KEY_MAX];
    if (!row) {
        (void)buf_adds(s->out, code);
        return;
    }
    for (; (hole = next_hole(row, key, &rest)); row = strchr(rest, '}') + 1) {
        (void)buf_add(s->out, row, (size_t)(hole - row));
        if (*rest == '|')
            say_choice(s, key, rest + 1, strchr(rest, '}'));
        else
            say_arg(s, key);
    }
    (void)buf_adds(s->out, row);
}

static bool is_known(const char *code)
{
    size_t i = 0;
    while (i < array_len(rows) && strcmp(rows[i].code, code) != 0)
        i++;
    return i < array_len(rows);
}

/* NULL: the text is a sentence, of others perhaps, who begin theirs with a brace. */
static json_t *args_of(const char *code, const char *text)
{
    json_t *args = NULL;
    if (!text || *text != '{' || !is_known(str_or(code, "")) ||
        json_parse(text, strlen(text), ARGS_MAX, &args, NULL) < 0)
        return NULL;
    if (json_is_object(args))
        return args;
    json_decref(args);
    return NULL;
}

/* ---- sentences of a store of before ---- */

/* Their wording is frozen: nothing makes such sentences any more, and the catalogue is not read by
 * this. They hold names in quotes, and these words stand before one. Of projects and users only
 * those of a claim are names to hide. */
static const struct {
    const char *word, *behind;
    enum message_name kind;
    bool is_kept;
} leads[] = {
    {"job ", "", MESSAGE_JOB, false},           {"behind ", "", MESSAGE_JOB, true},
    {"delay ", "", MESSAGE_JOB, true},          {"project ", "' needs ", MESSAGE_PROJECT, false},
    {"user ", "' needs ", MESSAGE_USER, false},
};

/* Which word stands before the quote at `open`, of a name that ends at `close`. */
static size_t find_lead(const char *text, const char *open, const char *close)
{
    size_t i = 0, n = (size_t)(open - text);
    for (; i < array_len(leads); i++) {
        size_t len = strlen(leads[i].word);
        if (len <= n && !memcmp(open - len, leads[i].word, len) &&
            (!*close || str_starts(close, leads[i].behind)))
            break;
    }
    return i;
}

/* A name of which a sentence was cut off may be anybody's. */
static enum message_hearing lead_heard(const struct message_listener *to,
                                       size_t lead,
                                       const char *open,
                                       const char *close)
{
    _cleanup_(freep) char *name = xstrndup(open + 1, (size_t)(close - open - 1));
    enum message_hearing how = to->hears(leads[lead].kind, name, to->arg);
    return how == MESSAGE_OVER && !*close ? MESSAGE_ANOTHERS : how;
}

/* As message_say(), of a text that is a sentence. */
static const char *sentence_say(const char *text,
                                const struct message_listener *to,
                                struct buf *ret)
{
    const char *from = text, *open = text, *close;
    if (!to->hears || !strchr(text, '\''))
        return text;
    *ret = BUF_INIT(4 * strlen(text) + 64); /* each replacement is shorter than that */
    for (; (open = strchr(open, '\'')); open = *close ? open + 1 : close) {
        close = open + 1 + strcspn(open + 1, "'");
        size_t lead = find_lead(text, open, close);
        if (lead == array_len(leads))
            continue;
        enum message_hearing how = lead_heard(to, lead, open, close);
        if (how == MESSAGE_NAMED)
            continue;
        size_t left_out = leads[lead].is_kept ? 0 : strlen(leads[lead].word);
        (void)buf_add(ret, from, (size_t)(open - from) - left_out);
        (void)buf_adds(ret, how == MESSAGE_OVER ? over[MESSAGE_ENGLISH]
                                                : unheard[leads[lead].kind][MESSAGE_ENGLISH]);
        from = *close ? close + 1 : close;
        open = *close ? close : open;
    }
    (void)buf_adds(ret, from);
    return buf_str(ret);
}

const char *message_say(const char *code,
                        const char *text,
                        const struct message_listener *listener,
                        struct buf *ret)
{
    _cleanup_(json_unrefp) json_t *args = args_of(code, text);
    if (!args)
        return sentence_say(str_or(text, ""), listener, ret);
    *ret = BUF_INIT(SAID_MAX);
    struct saying s = {.args = args, .to = listener, .out = ret};
    say_object(&s, str_or(code, ""));
    return buf_str(ret);
}

static enum message_hearing hears_no_name(enum message_name kind, const char *name, void *arg)
{
    (void)kind, (void)name, (void)arg;
    return MESSAGE_ANOTHERS;
}

void message_to_string(const char *code, const char *text, bool named, char *ret, size_t size)
{
    struct message_listener to = {.language = MESSAGE_ENGLISH,
                                  .hears = named ? NULL : hears_no_name};
    struct buf said = {0};
    (void)snprintf(ret, size, "%s", message_say(code, text, &to, &said)); /* cut: fine */
    buf_release(&said);
}

static bool is_unheard(const struct message_listener *to, const char *key, const json_t *v)
{
    size_t name = find_name(key);
    return name < array_len(names) && json_is_string(v) &&
           how_heard(to, name, json_string_value(v)) != MESSAGE_NAMED;
}

static void hide_names(json_t *args, const struct message_listener *to, int depth)
{
    const char *key;
    json_t *v;
    json_object_foreach (args, key, v) {
        if (is_unheard(to, key, v))
            (void)json_object_set_new(args, key, json_null()); /* it is there: no memory is asked */
        else if (json_is_object(v) && depth < DEPTH_MAX)
            hide_names(v, to, depth + 1);
    }
}

char *message_args(const char *code, const char *text, const struct message_listener *listener)
{
    _cleanup_(json_unrefp) json_t *args = args_of(code, text);
    if (!args)
        return NULL;
    hide_names(args, listener, 0);
    return json_dumps(args, JSON_COMPACT);
}

/* ---- writing ---- */

void message_begin(struct message *m)
{
    m->buf = BUF_INIT(ARGS_MAX);
    m->j = jout_begin(&m->buf);
    jout_open(&m->j, NULL, '{');
}

void message_add(struct message *m, const char *text)
{
    size_t n = strlen(text);
    if (n <= 2 || *text != '{')
        return;
    if (m->j.comma)
        (void)buf_adds(&m->buf, ",");
    (void)buf_add(&m->buf, text + 1, n - 2); /* too long: message_end() sees it */
    m->j.comma = true;
}

void message_end(struct message *m, char *text, size_t size)
{
    jout_close(&m->j, '}');
    bool fits = !m->buf.failed && m->buf.len < size;
    (void)snprintf(text, size, "%s", fits ? buf_str(&m->buf) : "{}"); /* fits */
    buf_release(&m->buf);
}

void message_put(struct jout *j, const char *key, const char *code, const char *text)
{
    if (*text != '{') {
        jout_str(j, key, text);
        return;
    }
    jout_open(j, key, '{');
    jout_str(j, "code", code);
    jout_raw(j, "args", text);
    jout_close(j, '}');
}
