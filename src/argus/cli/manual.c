/* SPDX-License-Identifier: Apache-2.0 */
/* manual.c - help and man pages from the table of commands; see manual.h. */
#include "argus/cli/manual.h"

#include <stdlib.h>
#include <string.h>

#include "argus/show/text.h"
#include "base/str.h"
#include "base/version.h"

enum { HELP_WIDTH = 78, OPTION_COLUMN = 25, TEXT_MAX = 1 << 14 };

static const struct opt HELP_OPT = {.letter = 'h',
                                    .name = "help",
                                    .type = OPT_FLAG,
                                    .doc = "print this help"};

static const struct {
    const char *status, *meaning;
} EXITS[] = {
    {"0", "it worked; of a job: SUCCEEDED"},
    {"1", "internal error"},
    {"2", "wrong usage"},
    {"3", "not authorised"},
    {"4", "not found"},
    {"5", "refused: the spec has problems, or a limit"},
    {"6", "the server cannot be reached"},
    {"7", "the wait timed out"},
    {"10", "the job FAILED"},
    {"11", "the job was STOPPED"},
    {"12", "the job ended in TIMEOUT"},
    {"13", "the infrastructure was lost after all restarts"},
};

static const struct {
    const char *name, *meaning;
} VARIABLES[] = {
    {"ARGUS_URL", "address of the server, before the one in the file"},
    {"ARGUS_TOKEN", "token, before the one in the file"},
    {"XDG_CONFIG_HOME", "where argus/config.yaml lies (else ~/.config)"},
    {"NO_COLOR", "when set, nothing is coloured"},
    {"COLUMNS", "width of tables"},
    {"LANG", "zh… gives Chinese titles and messages; codes and states stay English"},
};

static void wrapped(FILE *out, const char *text, int indent)
{
    _cleanup_(buf_release) struct buf b = BUF_INIT(TEXT_MAX);
    text_wrap(&b, text, HELP_WIDTH, indent);
    (void)fprintf(out, "%s\n", buf_str(&b));
}

/* "-o, --output FORMAT" */
static char *option_name(const struct opt *o)
{
    char letter[] = {'-', o->letter, ',', ' ', 0};
    return xasprintf("%s--%s%s%s", o->letter ? letter : "    ", o->name, o->arg ? " " : "",
                     o->arg ? o->arg : "");
}

static void help_option(const struct opt *o, FILE *out)
{
    char *name = option_name(o);
    int width = text_width(name);
    (void)fprintf(out, "  %s%*s", name, width < OPTION_COLUMN - 3 ? OPTION_COLUMN - 2 - width : 2,
                  "");
    wrapped(out, o->doc, OPTION_COLUMN);
    free(name);
}

/* Calls f for each part of text between marks. */
static void each_part(const char *text, char mark, FILE *out, void (*f)(const char *, FILE *))
{
    while (text && *text) {
        size_t n = strcspn(text, (char[]){mark, 0});
        char *part = xstrndup(text, n);
        f(part, out);
        free(part);
        text += n + (text[n] != 0);
    }
}

static void help_paragraph(const char *text, FILE *out)
{
    (void)fputc('\n', out);
    wrapped(out, text, 0);
}

static void help_example(const char *line, FILE *out)
{
    size_t n = strcspn(line, "\t");
    (void)fprintf(out, "  %.*s\n", (int)n, line);
    if (line[n])
        (void)fprintf(out, "      %s\n", line + n + 1);
}

static const char *usage_options(const struct command *c)
{
    return c->n_opts ? " [options]" : "";
}

void manual_help(const struct command *c, FILE *out)
{
    (void)fprintf(out, "argus %s: %s\n\nusage: argus %s%s%s%s\n", c->name, c->summary, c->name,
                  usage_options(c), *c->args ? " " : "", c->args);
    each_part(c->text, '\n', out, help_paragraph);
    (void)fputs("\noptions:\n", out);
    for (size_t i = 0; i < c->n_opts; i++)
        help_option(&c->opts[i], out);
    help_option(&HELP_OPT, out);
    if (c->example)
        (void)fputs("\nexamples:\n", out);
    each_part(c->example, '\n', out, help_example);
}

/* The commands that begin with `prefix`, one below the other; how many. */
static size_t list_commands(const char *prefix, FILE *out)
{
    size_t shown = 0;
    int width = 0;
    const struct command *c;
    for (size_t i = 0; (c = command_at(i)); i++)
        if (str_starts(c->name, prefix) && (int)strlen(c->name) > width)
            width = (int)strlen(c->name);
    for (size_t i = 0; (c = command_at(i)); i++) {
        if (!str_starts(c->name, prefix))
            continue;
        (void)fprintf(out, "  %-*s  %s\n", width, c->name, c->summary);
        shown++;
    }
    return shown;
}

void manual_overview(FILE *out)
{
    (void)fputs("argus: run training jobs on Ray clusters\n\nusage: argus COMMAND [options]\n\n",
                out);
    (void)list_commands("", out);
    (void)fputs("\n'argus COMMAND --help' says more; 'argus login URL' comes first\n", out);
}

bool manual_noun(const char *noun, FILE *out)
{
    char *prefix = xasprintf("%s ", noun);
    bool found = list_commands(prefix, out) > 0;
    if (found)
        (void)fprintf(out, "\n'argus %s COMMAND --help' says more\n", noun);
    free(prefix);
    return found;
}

void manual_list(FILE *out)
{
    const struct command *c;
    for (size_t i = 0; (c = command_at(i)); i++) {
        (void)fprintf(out, "%s\t%s\n", c->name, c->summary);
        for (size_t k = 0; k < c->n_opts; k++)
            (void)fprintf(out, "%s --%s\t%s\n", c->name, c->opts[k].name, c->opts[k].doc);
    }
}

/* ---- roff ---- */

static void roff_text(const char *s, FILE *out)
{
    if (*s == '.' || *s == '\'')
        (void)fputs("\\&", out);
    for (; *s; s++) {
        if (*s == '\\')
            (void)fputs("\\e", out);
        else if (*s == '-')
            (void)fputs("\\-", out);
        else if (*s == '\'')
            (void)fputs("\\(aq", out);
        else
            (void)fputc(*s, out);
    }
}

static void roff_term(const char *term, const char *text, FILE *out)
{
    (void)fputs(".TP\n\\fB", out);
    roff_text(term, out);
    (void)fputs("\\fR\n", out);
    roff_text(text, out);
    (void)fputc('\n', out);
}

static void roff_option(const struct opt *o, FILE *out)
{
    char *name = option_name(o);
    roff_term(name + strspn(name, " "), o->doc, out);
    free(name);
}

static void roff_paragraph(const char *text, FILE *out)
{
    (void)fputs(".PP\n", out);
    roff_text(text, out);
    (void)fputc('\n', out);
}

static void roff_example(const char *line, FILE *out)
{
    size_t n = strcspn(line, "\t");
    char *command = xstrndup(line, n);
    roff_term(command, line[n] ? line + n + 1 : "", out);
    free(command);
}

static void roff_tail(FILE *out)
{
    (void)fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < array_len(EXITS); i++)
        roff_term(EXITS[i].status, EXITS[i].meaning, out);
    (void)fputs(".SH ENVIRONMENT\n", out);
    for (size_t i = 0; i < array_len(VARIABLES); i++)
        roff_term(VARIABLES[i].name, VARIABLES[i].meaning, out);
    (void)fputs(".SH FILES\n", out);
    roff_term("~/.config/argus/config.yaml",
              "server, token and certificates, written by 'argus login'; mode 0600", out);
}

static void roff_head(const char *page, const char *summary, FILE *out)
{
    (void)fprintf(out, ".TH \"%s\" \"1\" \"\" \"argus %s\" \"Argus\"\n.SH NAME\n", page,
                  ARGUS_VERSION);
    roff_text(page, out);
    (void)fputs(" \\- ", out);
    roff_text(summary, out);
    (void)fputs("\n.SH SYNOPSIS\n", out);
}

static void roff_program(FILE *out)
{
    const struct command *c;
    roff_head("argus", "run training jobs on Ray clusters", out);
    (void)fputs("\\fBargus\\fR \\fICOMMAND\\fR [options]\n.SH COMMANDS\n", out);
    for (size_t i = 0; (c = command_at(i)); i++)
        roff_term(c->name, c->summary, out);
    roff_tail(out);
}

void manual_roff(const struct command *c, FILE *out)
{
    if (!c) {
        roff_program(out);
        return;
    }
    char *page = xasprintf("argus-%s", c->name);
    for (char *p = page; *p; p++)
        *p = *p == ' ' ? '-' : *p;
    roff_head(page, c->summary, out);
    (void)fputs("\\fBargus ", out);
    roff_text(c->name, out);
    (void)fprintf(out, "\\fR%s ", usage_options(c));
    roff_text(c->args, out);
    (void)fputs("\n.SH DESCRIPTION\n", out);
    each_part(c->text, '\n', out, roff_paragraph);
    (void)fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < c->n_opts; i++)
        roff_option(&c->opts[i], out);
    roff_option(&HELP_OPT, out);
    if (c->example)
        (void)fputs(".SH EXAMPLES\n", out);
    each_part(c->example, '\n', out, roff_example);
    roff_tail(out);
    free(page);
}
