/* SPDX-License-Identifier: Apache-2.0 */
/* opts.c - the parser of opts.h, in the manner of getopt_long: -abc, -oVALUE,
 * --name=VALUE, --name VALUE, options and arguments in any order. */
#include "argus/cli/opts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/str.h"

struct parse {
    const struct opt *opts;
    size_t n;
    int argc, i;
    char **argv;
    void *out;
    struct strv *args;
    bool *help;
    struct err *err;
};

static const struct opt *find_letter(const struct parse *p, char letter)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->opts[i].letter && p->opts[i].letter == letter)
            return &p->opts[i];
    return NULL;
}

static const struct opt *find_name(const struct parse *p, const char *name, size_t len)
{
    for (size_t i = 0; i < p->n; i++)
        if (strlen(p->opts[i].name) == len && !memcmp(p->opts[i].name, name, len))
            return &p->opts[i];
    return NULL;
}

static int set_choice(const struct opt *o, const char *value, int *ret, struct err *err)
{
    size_t n = 0;
    for (; o->choices[n]; n++) {
        if (str_eq(o->choices[n], value)) {
            *ret = (int)n;
            return 0;
        }
    }
    struct buf all = BUF_INIT(256);
    for (size_t i = 0; i < n; i++)
        (void)buf_addf(&all, "%s%s", i ? ", " : "", o->choices[i]); /* our own short names */
    int r = message_refuse(err, ERR_USAGE, "cli_no_value",
                           MESSAGE_ARGS(MESSAGE_STR("text", value), MESSAGE_STR("option", o->name),
                                        MESSAGE_STR("all", buf_str(&all))));
    buf_release(&all);
    return r;
}

static int set_value(const struct opt *o, const char *value, void *out, struct err *err)
{
    void *p = (char *)out + o->offset;
    int r = 0;
    switch (o->type) {
    case OPT_FLAG:
        *(bool *)p = true;
        return 0;
    case OPT_TEXT:
    case OPT_LIMIT:
        *(const char **)p = value;
        return 0;
    case OPT_LIST:
    case OPT_NAMES:
        strv_add(p, value);
        return 0;
    case OPT_CHOICE:
        return set_choice(o, value, p, err);
    case OPT_NUMBER:
        r = str_to_int(value, 0, INT64_MAX, p, err);
        break;
    case OPT_COUNT:
        r = str_to_int(value, 0, INT64_MAX, p, err);
        if (r == 0 && !*(int64_t *)p)
            r = message_refuse(err, ERR_USAGE, "cli_from_one", MESSAGE_NO_ARGS);
        break;
    case OPT_SPAN:
        r = span_from_string(value, p, err);
        break;
    }
    if (r >= 0)
        return 0;
    return err ? message_refuse(
                     err, ERR_USAGE, "cli_wrong_value",
                     MESSAGE_ARGS(MESSAGE_STR("option", o->name), MESSAGE_ERR("why", err)))
               : ERR_USAGE;
}

static int unknown_name(const struct parse *p, const char *name, size_t len)
{
    const char **names = xcalloc(p->n + 1, sizeof(*names));
    for (size_t i = 0; i < p->n; i++)
        names[i] = p->opts[i].name;
    names[p->n] = "help";
    char *typed = xstrndup(name, len);
    const char *near = str_nearest(typed, names, p->n + 1);
    struct buf all = BUF_INIT(300);
    for (size_t i = 0; i < p->n && !all.failed; i++) /* a long list ends where the room does */
        (void)buf_addf(&all, "%s--%s", i ? ", " : "", names[i]);
    int r =
        near ? message_refuse(p->err, ERR_USAGE, "cli_option_near",
                              MESSAGE_ARGS(MESSAGE_STR("option", typed), MESSAGE_STR("near", near)))
             : message_refuse(
                   p->err, ERR_USAGE, "cli_option_unknown",
                   MESSAGE_ARGS(MESSAGE_STR("option", typed), MESSAGE_STR("all", buf_str(&all))));
    buf_release(&all);
    free(names);
    free(typed);
    return r;
}

/* The value of an option that needs one: what is glued to it, else the next word. */
static int take_value(struct parse *p, const struct opt *o, const char *glued)
{
    if (!glued && p->i + 1 >= p->argc)
        return message_refuse(
            p->err, ERR_USAGE, "cli_option_value",
            MESSAGE_ARGS(MESSAGE_STR("option", o->name), MESSAGE_STR("arg", o->arg)));
    return set_value(o, glued ? glued : p->argv[++p->i], p->out, p->err);
}

static int parse_long(struct parse *p, const char *word)
{
    const char *eq = strchr(word, '=');
    size_t len = eq ? (size_t)(eq - word) : strlen(word);
    const struct opt *o = find_name(p, word, len);
    if (!o && len == 4 && !memcmp(word, "help", 4)) {
        *p->help = true;
        return 0;
    }
    if (!o)
        return unknown_name(p, word, len);
    if (o->type != OPT_FLAG)
        return take_value(p, o, eq ? eq + 1 : NULL);
    if (eq)
        return message_refuse(p->err, ERR_USAGE, "cli_option_no_value",
                              MESSAGE_ARGS(MESSAGE_STR("option", o->name)));
    return set_value(o, NULL, p->out, p->err);
}

static int parse_letters(struct parse *p, const char *letters)
{
    for (; *letters; letters++) {
        const struct opt *o = find_letter(p, *letters);
        if (!o && *letters == 'h') {
            *p->help = true;
            continue;
        }
        if (!o)
            return message_refuse(p->err, ERR_USAGE, "cli_letter_unknown",
                                  MESSAGE_ARGS(MESSAGE_STR("letter", ((char[]){*letters, 0}))));
        if (o->type != OPT_FLAG)
            return take_value(p, o, letters[1] ? letters + 1 : NULL);
        int r = set_value(o, NULL, p->out, p->err);
        if (r < 0)
            return r;
    }
    return 0;
}

int opts_parse(const struct opt *opts,
               size_t n,
               int argc,
               char **argv,
               void *out,
               struct strv *args,
               bool *ret_help,
               struct err *err)
{
    struct parse p = {.opts = opts,
                      .n = n,
                      .argc = argc,
                      .argv = argv,
                      .out = out,
                      .args = args,
                      .help = ret_help,
                      .err = err};
    int r = 0;
    for (; p.i < argc && r >= 0; p.i++) {
        const char *word = argv[p.i];
        if (str_eq(word, "--")) {
            while (++p.i < argc)
                strv_add(args, argv[p.i]);
            return 0;
        }
        if (str_starts(word, "--"))
            r = parse_long(&p, word + 2);
        else if (word[0] == '-' && word[1])
            r = parse_letters(&p, word + 1);
        else
            strv_add(args, word);
    }
    return r;
}

void opts_release(const struct opt *opts, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++)
        if (opts[i].type == OPT_LIST || opts[i].type == OPT_NAMES)
            strv_release((struct strv *)(void *)((char *)out + opts[i].offset));
}

const void *opt_at(const struct opt *o, const void *values)
{
    return (const char *)values + o->offset;
}

bool opt_is_given(const struct opt *o, const void *values)
{
    const void *at = opt_at(o, values);
    switch (o->type) {
    case OPT_FLAG:
        return *(const bool *)at;
    case OPT_TEXT:
    case OPT_LIMIT:
        return *(const char *const *)at != NULL;
    case OPT_NUMBER:
    case OPT_COUNT:
        return *(const int64_t *)at != 0;
    case OPT_SPAN:
        return *(const usec_t *)at != 0;
    case OPT_LIST:
    case OPT_NAMES:
        return ((const struct strv *)at)->n > 0;
    case OPT_CHOICE:
        return *o->choices[*(const int *)at] != 0;
    }
    return false;
}

union opt_value {
    bool flag;
    const char *text;
    int64_t number;
    usec_t span;
    int choice;
    struct strv list;
};

struct opt *opts_lay_out(const struct opt *opts, size_t n, size_t *ret_size)
{
    struct opt *laid = xcalloc(n + 1, sizeof(*laid));
    for (size_t i = 0; i < n; i++) {
        laid[i] = opts[i];
        laid[i].offset = i * sizeof(union opt_value);
    }
    *ret_size = (n + 1) * sizeof(union opt_value);
    return laid;
}
