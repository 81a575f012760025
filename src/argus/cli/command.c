/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - finds and runs a row of the table; see command.h. */
#include "argus/cli/command.h"

#include <stdlib.h>
#include <string.h>

#include "argus/cli/cli.h"
#include "argus/cli/manual.h"
#include "base/message.h"
#include "base/str.h"

const struct command *command_at(size_t i)
{
    for (size_t k = 0; k < NOUN_COUNT; k++) {
        if (i < NOUNS[k]->n)
            return &NOUNS[k]->commands[i];
        i -= NOUNS[k]->n;
    }
    return NULL;
}

const struct command *command_find(const char *name)
{
    const struct command *c;
    for (size_t i = 0; (c = command_at(i)); i++)
        if (str_eq(c->name, name) || (c->alias && str_eq(c->alias, name)))
            return c;
    return NULL;
}

enum { NAMES_MAX = 256, COMMAND_WORDS_MAX = 3, COMMAND_NAME_MAX = 200 };

/* "ls, add, rm" of "node"; empty: there is no such noun. */
static void verbs_of(const char *noun, struct buf *out)
{
    size_t len = strlen(noun);
    const struct command *c;
    for (size_t i = 0; len && (c = command_at(i)); i++)
        if (str_starts(c->name, noun) && c->name[len] == ' ')
            (void)buf_addf(out, "%s%s", out->len ? ", " : "", c->name + len + 1); /* few */
}

static int refuse_noun(const char *noun, const char *verb, const char *verbs, struct err *err)
{
    if (verb && *verb != '-')
        return message_refuse(err, ERR_USAGE, "cli_no_verb",
                              MESSAGE_ARGS(MESSAGE_STR("noun", noun), MESSAGE_STR("verb", verb),
                                           MESSAGE_STR("verbs", verbs)));
    return message_refuse(err, ERR_USAGE, "cli_needs_verb",
                          MESSAGE_ARGS(MESSAGE_STR("noun", noun), MESSAGE_STR("verbs", verbs)));
}

static int unknown(const char *word, const char *next, struct err *err)
{
    struct buf verbs = BUF_INIT(1024);
    verbs_of(word, &verbs);
    if (verbs.len) {
        int r = refuse_noun(word, next, buf_str(&verbs), err);
        buf_release(&verbs);
        return r;
    }
    const char *names[NAMES_MAX];
    const struct command *c;
    size_t n = 0;
    for (size_t i = 0; (c = command_at(i)) && n + 2 <= NAMES_MAX; i++) {
        names[n++] = c->name;
        if (c->alias)
            names[n++] = c->alias;
    }
    const char *near = str_nearest(word, names, n);
    if (near)
        return message_refuse(err, ERR_USAGE, "cli_unknown_near",
                              MESSAGE_ARGS(MESSAGE_STR("word", word), MESSAGE_STR("near", near)));
    return message_refuse(err, ERR_USAGE, "cli_unknown", MESSAGE_ARGS(MESSAGE_STR("word", word)));
}

/* The longest name that fits is meant: "service key new" before "service key". */
static const struct command *command_of_words(char **argv, int n)
{
    struct buf name = BUF_INIT(COMMAND_NAME_MAX);
    for (int i = 0; i < n; i++)
        (void)buf_addf(&name, "%s%s", i ? " " : "", argv[i]); /* a longer one is none */
    const struct command *found = name.failed ? NULL : command_find(buf_str(&name));
    buf_release(&name);
    return found;
}

int command_match(int argc, char **argv, const struct command **ret, int *ret_used, struct err *err)
{
    const struct command *found = NULL;
    int used = COMMAND_WORDS_MAX + 1;
    while (!found && --used)
        found = argc >= used ? command_of_words(argv, used) : NULL;
    if (!found)
        return unknown(argv[0], argc >= 2 ? argv[1] : NULL, err);
    *ret = found;
    *ret_used = used;
    return 0;
}

/* "ID… [--reason TEXT]": what the command takes. Options that only switch something are left out.
 */
static char *command_form(const struct command *c)
{
    struct buf out = BUF_INIT(400);
    (void)buf_adds(&out, str_or(c->args, "")); /* a long one ends where the room does */
    for (size_t i = 0; i < c->n_opts; i++) {
        const struct opt *o = &c->opts[i];
        if (o->type != OPT_FLAG && o->choices != OUTPUT_NAMES && o->arg && !out.failed)
            (void)buf_addf(&out, "%s[--%s %s]", out.len ? " " : "", o->name, o->arg);
    }
    return buf_take(&out);
}

static int check_args(const struct command *c, const struct strv *args, struct err *err)
{
    _cleanup_(freep) char *form = command_form(c);
    if (args->n < c->least)
        return message_refuse(
            err, ERR_USAGE, "cli_needs_args",
            MESSAGE_ARGS(MESSAGE_STR("name", c->name), MESSAGE_STR("args", c->args)));
    if (args->n > c->most)
        return message_refuse(err, ERR_USAGE, "cli_takes_no",
                              MESSAGE_ARGS(MESSAGE_STR("name", c->name),
                                           MESSAGE_STR("word", args->v[c->most]),
                                           MESSAGE_STR("form", form)));
    return 0;
}

static bool asks_for_data(const struct opt *opts, size_t n, const void *values)
{
    for (size_t i = 0; i < n; i++)
        if (opts[i].choices == OUTPUT_NAMES)
            return *(const int *)opt_at(&opts[i], values) >= OUTPUT_JSON;
    return false;
}

int command_run(const struct command *c,
                struct cli *cli,
                int argc,
                char **argv,
                FILE *out,
                struct err *err)
{
    _cleanup_(strv_release) struct strv args = {0};
    size_t size = 0;
    _cleanup_(freep) struct opt *laid = c->run ? NULL : opts_lay_out(c->opts, c->n_opts, &size);
    const struct opt *opts = laid ? laid : c->opts;
    void *values = xcalloc(1, (laid ? size : c->opts_size) + 1);
    bool help = false;
    int r = opts_parse(opts, c->n_opts, argc, argv, values, &args, &help, err);
    if (r >= 0 && help) {
        manual_help(c, out);
    } else {
        if (r >= 0)
            r = check_args(c, &args, err);
        cli->is_data = asks_for_data(opts, c->n_opts, values);
        if (r >= 0)
            r = c->run ? c->run(cli, values, &args, err)
                       : ask_run(cli, &c->ask, opts, c->n_opts, values, &args, err);
    }
    opts_release(opts, c->n_opts, values);
    free(values);
    return r;
}
