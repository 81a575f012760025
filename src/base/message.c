/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - the catalogue, and how a row becomes a sentence; see message.h.
 *
 * Its rows stand in the families of message_rows.h. */
#include "base/message.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/catalogue/message_rows.h"
#include "base/catalogue/message_words.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

enum {
    ARGS_MAX = 4096,
    SAID_MAX = 8192,
    DEPTH_MAX = 6,
    HIDE_DEPTH_MAX = 2 * DEPTH_MAX,
    ARG_LEAST = 16
};

static const struct message_family *const families[] = {
    &message_wait,     &message_refusal, &message_node,   &message_form,       &message_spec,
    &message_check,    &message_ask,     &message_file,   &message_simulation, &message_account,
    &message_machine,  &message_pipe,    &message_now,    &message_conf,       &message_thing,
    &message_advice,   &message_rule,    &message_class,  &message_cli,        &message_disk,
    &message_ray,      &message_job,     &message_serve,  &message_event,      &message_trial,
    &message_notebook, &message_ops,     &message_title,  &message_talk,       &message_training,
    &message_verdict,  &message_fact,    &message_doctor,
};

const struct message_row *message_row(size_t i)
{
    for (size_t k = 0; k < array_len(families); i -= families[k++]->n)
        if (i < families[k]->n)
            return &families[k]->rows[i];
    return NULL;
}

/* "zh-CN;q=0.9": the weight of one item of the list. */
static double weight_of(const char *item, size_t n)
{
    static const char q[] = ";q=";
    const char *at = memmem(item, n, q, strlen(q));
    return at ? strtod(at + strlen(q), NULL) : 1;
}

enum message_language message_language(const char *accepted)
{
    static const char *const tags[MESSAGE_LANGUAGES] = {"en", "zh"};
    enum message_language best = MESSAGE_ENGLISH;
    double most = 0;
    for (const char *p = accepted ? accepted : ""; *p; p += strspn(p, ", ")) {
        size_t n = strcspn(p, ",");
        for (int i = 0; i < MESSAGE_LANGUAGES; i++)
            if (!strncasecmp(p, tags[i], 2) && weight_of(p, n) > most) {
                most = weight_of(p, n);
                best = (enum message_language)i;
            }
        p += n;
    }
    return best;
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
    size_t name = find_name(key);
    if (name < array_len(names)) {
        say_name(s, name, value);
        return;
    }
    if (str_eq(key, "pool")) {
        say_pool(s, value);
        return;
    }
    (void)buf_adds(s->out, message_word(key, value, s->to->language));
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

static void say_list(const struct saying *s, const json_t *messages)
{
    size_t i;
    const json_t *v;
    json_array_foreach (messages, i, v) {
        if (i)
            (void)buf_adds(s->out, s->to->language == MESSAGE_ENGLISH ? "; " : "；");
        if (json_is_object(v))
            say_nested(s, v);
        else
            (void)buf_adds(s->out, str_or(json_string_value(v), ""));
    }
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
    else if (json_is_array(v))
        say_list(s, v);
    else if (json_is_null(v) && find_name(key) < array_len(names)) /* hidden by message_page() */
        (void)buf_adds(s->out, unheard[names[find_name(key)].kind][s->to->language]);
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
    while (open && open > at && open[-1] == '$') /* ${…} is what people write in a spec */
        open = strchr(open + 1, '{');
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

/* The first row of the code from row i of family k on; NULL: there is none. Most codes differ from
 * the one that is asked for in their first bytes. */
static const struct message_row *next_row(const char *code, size_t *k, size_t *i)
{
    for (; *k < array_len(families); ++*k, *i = 0)
        for (; *i < families[*k]->n; ++*i) {
            const struct message_row *row = &families[*k]->rows[*i];
            if (row->code[0] == code[0] && !strcmp(row->code, code))
                return row;
        }
    return NULL;
}

/* The first row all of whose arguments are there; else the last one, which asks for the least: an
 * argument that is empty was left out. NULL: no such code. */
static const struct message_row *find_row(const char *code, const json_t *args, bool *ret_whole)
{
    const struct message_row *row, *last = NULL;
    *ret_whole = true;
    for (size_t k = 0, i = 0; (row = next_row(code, &k, &i)); i++) {
        if (has_all(args, row->said[MESSAGE_ENGLISH]))
            return row;
        last = row;
    }
    *ret_whole = false;
    return last;
}

static void say_row(const struct saying *s, const char *row)
{
    const char *rest, *hole;
    char key[KEY_MAX];
    for (; (hole = next_hole(row, key, &rest)); row = strchr(rest, '}') + 1) {
        (void)buf_add(s->out, row, (size_t)(hole - row));
        if (*rest == '|')
            say_choice(s, key, rest + 1, strchr(rest, '}'));
        else
            say_arg(s, key);
    }
    (void)buf_adds(s->out, row);
}

static void say_object(const struct saying *s, const char *code)
{
    bool is_whole;
    const struct message_row *row = find_row(code, s->args, &is_whole);
    if (row)
        say_row(s, row->said[s->to->language]);
    else
        (void)buf_adds(s->out, code);
}

bool message_is_known(const char *code)
{
    return message_code(code) != NULL;
}

const char *message_code(const char *code)
{
    size_t k = 0, i = 0;
    const struct message_row *row = next_row(code, &k, &i);
    return row ? row->code : NULL;
}

const char *message_words(const char *code, enum message_language in)
{
    size_t k = 0, i = 0;
    const struct message_row *row = next_row(code, &k, &i);
    return row ? row->said[in] : code;
}

#define SAYS "{\"message\":"

/* NULL: the text is a sentence, of others perhaps, who begin theirs with a brace. */
static json_t *args_of(const char *code, const char *text)
{
    json_t *args = NULL;
    if (!text || *text != '{' || (!str_starts(text, SAYS) && !message_code(str_or(code, ""))) ||
        json_parse(text, strlen(text), ARGS_MAX, &args, NULL) < 0)
        return NULL;
    if (json_is_object(args))
        return args;
    json_decref(args);
    return NULL;
}

/* What is said of a code and its arguments: where the code only classes it, another one. */
struct message_at {
    const char *code, *sentence; /* sentence: instead of all */
    const json_t *args;
};

static struct message_at message_said(const char *code, const json_t *args)
{
    const json_t *says = json_object_get(args, "message");
    if (json_is_string(says))
        return (struct message_at){.sentence = json_string_value(says)};
    if (!json_is_object(says))
        return (struct message_at){.code = str_or(code, ""), .args = args};
    return (struct message_at){.code = json_get_str(says, "code", ""),
                               .args = json_get_object(says, "args")};
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
    struct message_at at = message_said(code, args);
    struct saying s = {.args = at.args, .to = listener, .out = ret};
    if (at.sentence)
        (void)buf_adds(ret, at.sentence);
    else
        say_object(&s, at.code);
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
        size_t i;
        json_t *one;
        if (is_unheard(to, key, v))
            (void)json_object_set_new(args, key, json_null()); /* it is there: no memory is asked */
        else if (json_is_object(v) && depth < HIDE_DEPTH_MAX)
            hide_names(v, to, depth + 1);
        else if (json_is_array(v) && depth < HIDE_DEPTH_MAX)
            json_array_foreach (v, i, one)
                hide_names(one, to, depth + 1);
    }
}

void message_page(const char *code,
                  const char *text,
                  const struct message_listener *listener,
                  struct message_page *ret)
{
    _cleanup_(json_unrefp) json_t *args = args_of(code, text);
    *ret = (struct message_page){0};
    if (!args) {
        ret->text = sentence_say(str_or(text, ""), listener, &ret->held);
        return;
    }
    struct message_at at = message_said(code, args);
    const struct message_row *row = at.sentence ? NULL : find_row(at.code, at.args, &ret->is_whole);
    struct saying s = {.args = at.args, .to = listener, .out = &ret->held};
    ret->held = BUF_INIT(SAID_MAX);
    if (row)
        say_row(&s, row->said[listener->language]);
    else
        (void)buf_adds(&ret->held, str_or(at.sentence, str_or(at.code, "")));
    ret->text = buf_str(&ret->held);
    if (row && row->fix[listener->language]) {
        s.out = &ret->held_fix;
        ret->held_fix = BUF_INIT(SAID_MAX);
        say_row(&s, row->fix[listener->language]);
        ret->fix = buf_str(&ret->held_fix);
    }
    hide_names(args, listener, 0);
    ret->args = json_dumps(args, JSON_COMPACT);
}

void message_page_release(struct message_page *p)
{
    free(p->args);
    buf_release(&p->held);
    buf_release(&p->held_fix);
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

static void put_cut(struct jout *j, const char *key, const char *text, size_t most)
{
    jout_strn(j, key, text, str_cut(text, most));
}

/* A text is cut to `most` bytes, between characters. */
static void put_arg(struct jout *j, const struct message_arg *a, size_t most)
{
    if (!*a->key || (a->text && !*a->text))
        return;
    if (a->message && a->text && strlen(a->text) <= most) {
        message_put(j, a->key, a->message, a->text);
    } else if (a->message && a->text) { /* in English at least */
        char said[ARGS_MAX / 4];
        message_to_string(a->message, a->text, true, said, sizeof(said));
        put_cut(j, a->key, said, most);
    } else if (a->text) {
        put_cut(j, a->key, a->text, most);
    } else if (floor(a->number) < a->number || fabs(a->number) > 1e15) {
        jout_real(j, a->key, a->number);
    } else {
        jout_int(j, a->key, (int64_t)a->number);
    }
}

void message_write(char *text, size_t size, const struct message_arg *args)
{
    for (size_t most = size; most >= ARG_LEAST; most /= 2) {
        struct message m;
        message_begin(&m);
        for (const struct message_arg *a = args; a->key; a++)
            put_arg(&m.j, a, most);
        message_end(&m, text, size);
        if (text[1] != '}' || !args->key)
            return;
    }
}

char *message_keep(const struct err *err)
{
    return err->message ? xasprintf("%s%s", err->message, err->args) : xstrdup(err->text);
}

const char *message_kept_code(const char *kept)
{
    size_t n = strcspn(kept, "{");
    _cleanup_(freep) char *code = xstrndup(kept, n);
    return kept[n] ? message_code(code) : NULL;
}

const char *message_kept_text(const char *kept)
{
    return message_kept_code(kept) ? kept + strcspn(kept, "{") : kept;
}

char *message_kept_say(const char *kept, const struct message_listener *listener)
{
    struct buf held = {0};
    if (!kept)
        return NULL;
    char *said =
        xstrdup(message_say(message_kept_code(kept), message_kept_text(kept), listener, &held));
    buf_release(&held);
    return said;
}

int message_refuse(struct err *err, int code, const char *message, const struct message_arg *args)
{
    char text[sizeof(err->args)];
    if (!err)
        return code;
    message_write(text, sizeof(text), args);
    return message_refuse_text(err, code, message, text);
}

int message_refuse_kept(struct err *err, int code, const char *kept)
{
    const char *message = message_kept_code(kept);
    return message ? message_refuse_text(err, code, message, message_kept_text(kept))
                   : err_set(err, code, "%s", kept);
}

int message_wrap(struct err *err, const char *message)
{
    return err ? message_refuse(err, err->code, message, MESSAGE_ARGS(MESSAGE_ERR("why", err)))
               : ERR_INTERNAL;
}

int message_refuse_text(struct err *err, int code, const char *message, const char *args)
{
    static const struct message_listener to = {.language = MESSAGE_ENGLISH};
    struct buf said = {0};
    if (!err)
        return code;
    (void)err_set(err, code, "%s", message_say(message, args, &to, &said));
    buf_release(&said);
    err->message = message;
    text_copy(err->args, args);
    return code;
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
