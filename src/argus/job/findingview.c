/* SPDX-License-Identifier: Apache-2.0 */
/* findingview.c - see findingview.h. A log is read in blocks; nothing of it is kept. */
#define _GNU_SOURCE
#include "argus/job/findingview.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "argus/show/text.h"
#include "argus/transfer/upload.h"
#include "base/child.h"
#include "base/file.h"
#include "base/message.h"
#include "base/said.h"
#include "base/str.h"
#include "base/text.h"
#include "core/finding/read/finding_unwrap.h"
#include "core/finding/rules/finding_rules.h"

enum {
    WIDTH = 80,
    LABEL = 12,
    TEXT_MAX = 16384,
    PRIMARY_LINES = 6,
    BLOCK = 1 << 18,
    RULES_FILE_MAX = 1 << 20,
    RULES_FILES_MAX = 200,
};

static void label(const struct term *t, const char *name, FILE *out)
{
    (void)fprintf(out, "%s%s%s%*s", term_on(t, STYLE_DIM), name, term_off(t, STYLE_DIM),
                  LABEL - (int)strlen(name), "");
}

static int findingview_width_of(const struct term *t)
{
    return t->width > 2 * LABEL ? t->width : WIDTH;
}

/* One text of any length, folded under its label. */
static void paragraph(const struct term *t,
                      const char *name,
                      enum style style,
                      const char *text,
                      FILE *out)
{
    _cleanup_(buf_release) struct buf clean = BUF_INIT(TEXT_MAX), folded = BUF_INIT(4 * TEXT_MAX);
    if (!text || !*text)
        return;
    text_clean(&clean, text); /* a longer one is cut */
    text_wrap(&folded, buf_str(&clean), findingview_width_of(t), LABEL);
    label(t, name, out);
    /* text_wrap() leaves the first line to its caller: the label stands there. */
    (void)fprintf(out, "%s%s%s\n", term_on(t, style), buf_str(&folded), term_off(t, style));
}

/* The line that shows the cause stands there whole, as far as a person reads. */
static void primary(const struct term *t,
                    const char *name,
                    const struct finding_quote *q,
                    FILE *out)
{
    _cleanup_(buf_release) struct buf clean = BUF_INIT(TEXT_MAX), whole = BUF_INIT(TEXT_MAX);
    text_clean(&clean, q->text);
    if (q->line)
        (void)buf_addf(&whole, "line %" PRIu64 ": ", q->line); /* short */
    text_cut(&whole, buf_str(&clean), PRIMARY_LINES * (findingview_width_of(t) - LABEL));
    paragraph(t, name, STYLE_BOLD, buf_str(&whole), out);
}

/* The line of the user's own code, of which people need the whole path. */
static bool is_code(const struct finding *f, const struct finding_quote *q)
{
    return q->source && *q->source == '/' && !str_eq(q->source, f->evidence[0].source);
}

static void findingview_code(const struct term *t, const struct finding *f, FILE *out)
{
    for (size_t i = 1; i < f->n_evidence; i++) {
        const struct finding_quote *q = &f->evidence[i];
        _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
        if (!is_code(f, q))
            continue;
        (void)buf_addf(&text, "%s:%" PRIu64 ": %s", q->source, q->line, q->text); /* else cut */
        paragraph(t, "code", STYLE_BOLD, buf_str(&text), out);
    }
}

static void quotes(const struct term *t,
                   const char *name,
                   size_t first,
                   const struct finding *of,
                   const struct finding_quote *q,
                   size_t n,
                   FILE *out)
{
    for (size_t i = first; i < n; i++) {
        if (is_code(of, &q[i]))
            continue;
        _cleanup_(buf_release) struct buf clean = BUF_INIT(TEXT_MAX), cut = BUF_INIT(TEXT_MAX);
        char place[64] = "";
        if (q[i].line)
            text_printf(place, "line %" PRIu64 ": ", q[i].line);
        text_clean(&clean, q[i].text);
        text_cut(&cut, buf_str(&clean), findingview_width_of(t) - LABEL - (int)strlen(place));
        label(t, i ? "" : name, out);
        (void)fprintf(out, "%s%s%s%s\n", term_on(t, STYLE_DIM), place, term_off(t, STYLE_DIM),
                      buf_str(&cut));
    }
}

static void add_where(struct buf *b, const char *name, const char *value)
{
    if (value)
        (void)buf_addf(b, "%s%s %s", b->len ? ", " : "", name, value); /* short */
}

/* What it is else, and the line that says so. */
static void print_second(const struct finding *f, const struct term *t, FILE *out)
{
    const struct finding_second *s = &f->second;
    _cleanup_(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
    if (!f->has_second)
        return;
    (void)buf_addf(&text, "%s - %s (%.0f%%%s%s)", finding_class_to_string(s->class),
                   finding_class_meaning(s->class), 100 * s->confidence, s->rule ? ", rule " : "",
                   str_or(s->rule, "")); /* short */
    paragraph(t, "or else", STYLE_PLAIN, buf_str(&text), out);
    if (s->quote.text)
        quotes(t, "", 0, f, &s->quote, 1, out);
}

void findingview_print(const struct finding *f, const struct term *t, FILE *out)
{
    _cleanup_(buf_release) struct buf where = BUF_INIT(TEXT_MAX), class = BUF_INIT(TEXT_MAX),
                                      fix = BUF_INIT(TEXT_MAX);
    _cleanup_(freep) char *advice = said_advice(
        f->advice_code, f->advice, t->lang == MESSAGE_CHINESE ? MESSAGE_CHINESE : MESSAGE_ENGLISH);
    (void)buf_addf(&class, "%s - %s", finding_class_to_string(f->class),
                   finding_class_meaning(f->class)); /* short */
    add_where(&where, "rank", f->rank);
    add_where(&where, "node", f->node);
    add_where(&where, "actor", f->actor);
    add_where(&where, "pid", f->pid);
    add_where(&where, "at", f->time);
    paragraph(t, "finding", f->class == FINDING_NONE ? STYLE_GREEN : STYLE_RED, buf_str(&class),
              out);
    paragraph(t, "where", STYLE_PLAIN, buf_str(&where), out);
    if (f->n_evidence)
        primary(t, "evidence", &f->evidence[0], out);
    findingview_code(t, f, out);
    quotes(t, "", 1, f, f->evidence, f->n_evidence, out);
    quotes(t, "followed by", 0, f, f->after, f->n_after, out);
    paragraph(t, "advice", STYLE_PLAIN, advice, out);
    for (size_t i = 0; i < f->n_patch; i++) {
        buf_reset(&fix);
        finding_change_to_text(&f->patch[i], &fix);
        paragraph(t, i ? "" : "fix", STYLE_GREEN, buf_str(&fix), out);
    }
    print_second(f, t, out);
    label(t, "confidence", out);
    (void)fprintf(out, "%.0f%%", 100 * f->confidence);
    if (f->rule)
        (void)fprintf(out, "%s (rule %s)%s", term_on(t, STYLE_DIM), f->rule,
                      term_off(t, STYLE_DIM));
    (void)fputs("\n", out);
}

static int findingview_add_file(struct finding_rules *rules, const char *path, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(RULES_FILE_MAX);
    struct problems ps = {0};
    int r = file_read(path, &text, err);
    if (r == 0 && finding_rules_add(rules, buf_str(&text), text.len, &ps) < 0)
        r = problems_to_err(&ps, path, ERR_BAD_SPEC, err);
    problems_release(&ps);
    return r;
}

static int is_rules_file(const struct dirent *d)
{
    return d->d_name[0] != '.' && str_ends(d->d_name, ".yaml");
}

static int add_directory(struct finding_rules *rules, const char *dir, struct err *err)
{
    struct dirent **found = NULL;
    int n = scandir(dir, &found, is_rules_file, alphasort);
    if (n < 0)
        return message_refuse(
            err, -errno, "cli_rules_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_STR("why", strerror(errno))));
    int r = n > RULES_FILES_MAX ? message_refuse(err, ERR_TOO_LARGE, "cli_many_rules",
                                                 MESSAGE_ARGS(MESSAGE_NUM("most", RULES_FILES_MAX)))
                                : 0;
    for (int i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s", dir, found[i]->d_name);
        if (r == 0)
            r = findingview_add_file(rules, path, err);
        free(path);
        free(found[i]);
    }
    free(found);
    return r;
}

int findingview_rules(const char *dir, struct finding_rules **ret, struct err *err)
{
    if (!dir)
        return finding_rules_built_in(ret, err);
    _cleanup_(finding_rules_freep) struct finding_rules *rules = finding_rules_new();
    struct problems ps = {0};
    int r = add_directory(rules, dir, err);
    if (r == 0)
        r = finding_rules_compile(rules, err);
    if (r < 0)
        return r;
    finding_rules_try(rules, &ps);
    if (ps.n)
        r = problems_to_err(&ps, dir, ERR_BAD_SPEC, err);
    problems_release(&ps);
    if (r < 0)
        return r;
    *ret = rules;
    rules = NULL;
    return 0;
}

/* What other programs make a text of. */
struct packing {
    size_t at, n;
    const char *bytes, *reader, *unpacker; /* reader NULL: nobody does; unpacker NULL: not by -dc */
};

static const struct packing *packing_of(const char *block, size_t n)
{
    static const struct packing packings[] = {
        {0, 2, "\x1f\x8b", "zcat", "gzip"},     {0, 4, "\x28\xb5\x2f\xfd", "zstdcat", "zstd"},
        {0, 6, "\xfd\x37zXZ\0", "xzcat", "xz"}, {4, 6, "1AY&SY", "bzcat", "bzip2"},
        {0, 4, "PK\3\4", "unzip -p", NULL},     {0, 4, "\x7f\x45LF", NULL, NULL}};
    for (size_t i = 0; i < array_len(packings); i++)
        if (n >= packings[i].at + packings[i].n &&
            !memcmp(block + packings[i].at, packings[i].bytes, packings[i].n))
            return &packings[i];
    return NULL;
}

/* What is no text by its first bytes would be told healthy. */
static int judge_form(const char *block, size_t n, const char *file, struct err *err)
{
    const struct packing *p = packing_of(block, n);
    bool is_input = str_eq(file, "-");
    if (p && !p->reader)
        return message_refuse(err, ERR_MEDIA, "cli_is_program",
                              MESSAGE_ARGS(MESSAGE_STR("path", file)));
    if (p)
        return message_refuse(err, ERR_MEDIA, "cli_is_compressed",
                              MESSAGE_ARGS(MESSAGE_STR("path", file),
                                           MESSAGE_STR("reader", p->reader),
                                           MESSAGE_STR("input", is_input ? "FILE" : file)));
    if (!unwrap_is_text(block, n))
        return message_refuse(err, ERR_MEDIA, "cli_not_text",
                              MESSAGE_ARGS(MESSAGE_STR("path", file)));
    return 0;
}

/* A log that is read. What a pipe gives is there once: its first bytes are kept, and if they are of
 * something packed all of it becomes a file. */
struct log_input {
    int fd; /* owned */
    char head[16];
    size_t n; /* of head; those of a file can be read again */
    bool is_file;
};

static int log_input_begin(struct log_input *in, struct err *err)
{
    struct stat st;
    in->is_file = fstat(in->fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t k;
    do { /* reading the rest says again why it could not be */
        size_t room = sizeof(in->head) - in->n;
        k = in->is_file ? pread(in->fd, in->head + in->n, room, (off_t)in->n)
                        : read(in->fd, in->head + in->n, room);
        in->n += k > 0 ? (size_t)k : 0;
    } while (in->n < sizeof(in->head) && (k > 0 || (k < 0 && errno == EINTR)));
    const struct packing *p = packing_of(in->head, in->n);
    if (in->is_file || !p || !p->unpacker)
        return 0;
    int copy = upload_spool_input(in->fd, in->head, in->n, err);
    if (copy < 0)
        return copy;
    closep(&in->fd);
    in->fd = copy;
    in->is_file = true;
    return 0;
}

static void log_input_end(struct log_input *in)
{
    closep(&in->fd);
}

/* What a file that was packed is read by; *ret_fd gives its text. -ENOENT: it is not packed, or
 * nothing here unpacks it. */
static int unpack_begin(const struct log_input *in, struct child *ret, int *ret_fd)
{
    int pipes[2];
    const struct packing *p = packing_of(in->head, in->n);
    if (!p || !p->unpacker || pipe2(pipes, O_CLOEXEC) < 0)
        return -ENOENT;
    const char *argv[] = {p->unpacker, "-dc", NULL};
    struct child_spec spec = {.argv = argv, .in = in->fd, .out = pipes[1], .err = -1};
    int r = child_start(&spec, ret, NULL);
    close(pipes[1]);
    if (r < 0) {
        close(pipes[0]);
        return -ENOENT;
    }
    *ret_fd = pipes[0];
    return 0;
}

static void unpack_end(struct child *c)
{
    closep(&c->pidfd);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ; /* of a file that was torn all that could be read counts */
}

/* before: what was read of it already. An empty one says nothing, unless how the run ended is
 * known. */
static int findingview_read_all(struct finder *f,
                                int fd,
                                const struct log_input *before,
                                const char *file,
                                bool may_be_empty,
                                struct err *err)
{
    _cleanup_(freep) char *block = xmalloc(BLOCK);
    size_t had = before ? before->n : 0;
    bool any = false;
    ssize_t n;
    if (had)
        memcpy(block, before->head, had);
    while ((n = read(fd, block + had, BLOCK - had)) != 0 || had) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return message_refuse(
                err, -errno, "disk_cannot_read",
                MESSAGE_ARGS(MESSAGE_STR("path", file), MESSAGE_STR("why", strerror(errno))));
        size_t len = had + (size_t)n;
        int r = any ? 0 : judge_form(block, len, file, err);
        if (r < 0)
            return r;
        any = true;
        had = 0;
        finder_feed(f, block, len);
    }
    if (any || may_be_empty)
        return 0;
    return message_refuse(err, ERR_MEDIA, "cli_log_empty", MESSAGE_ARGS(MESSAGE_STR("path", file)));
}

static int refuse_directory(const char *file, struct err *err)
{
    _cleanup_(freep) char *log = xasprintf("%s/logs/driver.log", file);
    bool is_job = access(log, F_OK) == 0;
    return message_refuse(
        err, ERR_MEDIA, "cli_log_directory",
        MESSAGE_ARGS(MESSAGE_STR("path", file), MESSAGE_STR("log", is_job ? log : "")));
}

int findingview_diagnose(const struct finding_rules *rules,
                         const char *file,
                         const struct finding_facts *facts,
                         struct finding *ret,
                         struct err *err)
{
    struct stat st;
    bool is_input = str_eq(file, "-");
    _cleanup_(log_input_end) struct log_input in = {
        .fd = is_input ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC)};
    if (in.fd < 0)
        return message_refuse(
            err, -errno, "disk_cannot_open",
            MESSAGE_ARGS(MESSAGE_STR("path", file), MESSAGE_STR("why", strerror(errno))));
    if (fstat(in.fd, &st) == 0 && S_ISDIR(st.st_mode))
        return refuse_directory(file, err);
    int r = log_input_begin(&in, err);
    if (r < 0)
        return r;
    _cleanup_(finder_freep) struct finder *f = finder_new(rules);
    finder_source(f, is_input ? "standard input" : file);
    struct child child;
    _cleanup_(closep) int text = -1;
    bool is_packed = unpack_begin(&in, &child, &text) == 0;
    r = findingview_read_all(f, is_packed ? text : in.fd, in.is_file ? NULL : &in, file,
                             facts->exit_known, err);
    closep(&text);
    if (is_packed)
        unpack_end(&child);
    if (r == 0)
        finder_end(f, facts, ret);
    return r;
}
