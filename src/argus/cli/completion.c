/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - scripts for three shells, each made in one walk over the table.
 *
 * Ids are asked for when they are needed (`argus ls -q`); a server that is away then
 * completes nothing and says nothing. See completion.h. */
#include "argus/cli/completion.h"

#include <string.h>

#include "argus/cli/command.h"
#include "base/str.h"

static bool takes_job(const struct command *c)
{
    return strstr(c->args, "ID") != NULL;
}

static bool takes_file(const struct opt *o)
{
    return str_eq(o->arg, "FILE");
}

/* The first word of "node ls"; the others are offered after it. */
static size_t first_word(const struct command *c)
{
    return strcspn(c->name, " ");
}

static void put_choices(const struct opt *o, FILE *out)
{
    for (size_t k = 0; o->choices && o->choices[k]; k++)
        (void)fprintf(out, "%s%s", k ? " " : "", o->choices[k]);
}

/* In single quotes of a shell. */
static void put_quoted(const char *s, const char *quote_as, FILE *out)
{
    for (; *s; s++)
        (void)(*s == '\'' ? fputs(quote_as, out) : fputc(*s, out));
}

/* ---- bash ---- */

static void bash_command(const struct command *c, FILE *out)
{
    size_t n = first_word(c);
    (void)fprintf(out, "        %.*s%s%s)\n            words='", (int)n, c->name,
                  c->alias ? "|" : "", c->alias ? c->alias : "");
    if (c->name[n])
        (void)fprintf(out, "%s ", c->name + n + 1);
    for (size_t i = 0; i < c->n_opts; i++)
        (void)fprintf(out, "--%s ", c->opts[i].name);
    (void)fprintf(out, "--help'\n            kind=%s\n            case $prev in\n",
                  takes_job(c)      ? "job"
                  : *c->args == 'F' ? "file"
                                    : "none");
    for (size_t i = 0; i < c->n_opts; i++) {
        const struct opt *o = &c->opts[i];
        if (o->type == OPT_FLAG)
            continue;
        char letter[] = {'|', '-', o->letter, 0};
        (void)fprintf(out, "                --%s%s) words='", o->name, o->letter ? letter : "");
        put_choices(o, out);
        (void)fprintf(out, "'; kind=%s ;;\n", takes_file(o) ? "file" : "value");
    }
    (void)fputs("            esac ;;\n", out);
}

void completion_bash(FILE *out)
{
    const struct command *c;
    (void)fputs(
        "# bash completion for argus: source <(argus completion bash)\n"
        "_argus()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
        "\n    local words='' kind=none\n    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n"
        "        words='",
        out);
    for (size_t i = 0; (c = command_at(i)); i++)
        (void)fprintf(out, "%.*s ", (int)first_word(c), c->name);
    (void)fputs("'\n    else\n        case ${COMP_WORDS[1]} in\n", out);
    for (size_t i = 0; (c = command_at(i)); i++)
        bash_command(c, out);
    (void)fputs("        esac\n    fi\n"
                "    if [[ $kind == job && $cur != -* ]]; then\n"
                "        words=$(argus ls -q -a --limit 200 2>/dev/null)\n"
                "    elif [[ $kind == file && $cur != -* ]]; then\n"
                "        COMPREPLY=($(compgen -f -- \"$cur\"))\n        return\n    fi\n"
                "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
                "complete -o filenames -F _argus argus\n",
                out);
}

/* ---- zsh ---- */

static void zsh_option(const struct opt *o, FILE *out)
{
    (void)fprintf(out, " \\\n                '--%s[", o->name);
    for (const char *p = o->doc; *p; p++)
        (void)(strchr("[]:'", *p) ? fputc(' ', out) : fputc(*p, out));
    (void)fputs("]", out);
    if (o->type != OPT_FLAG) {
        (void)fprintf(out, ":%s:", o->arg);
        if (takes_file(o))
            (void)fputs("_files", out);
        else if (o->choices)
            (void)fputs("(", out), put_choices(o, out), (void)fputs(")", out);
        else
            (void)fputc(' ', out);
    }
    (void)fputc('\'', out);
}

void completion_zsh(FILE *out)
{
    const struct command *c;
    (void)fputs("#compdef argus\n# zsh completion for argus: source <(argus completion zsh)\n"
                "_argus_jobs() { compadd -- ${(f)\"$(argus ls -q -a --limit 200 2>/dev/null)\"} }\n"
                "_argus()\n{\n    local -a commands\n    commands=(\n",
                out);
    for (size_t i = 0; (c = command_at(i)); i++) {
        (void)fprintf(out, "        '%.*s:", (int)first_word(c), c->name);
        put_quoted(c->summary, "'\\''", out);
        (void)fputs("'\n", out);
    }
    (void)fputs("    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n"
                "        return\n    fi\n    case $words[2] in\n",
                out);
    for (size_t i = 0; (c = command_at(i)); i++) {
        size_t len = first_word(c);
        (void)fprintf(out, "        %.*s)\n            _arguments", (int)len, c->name);
        for (size_t k = 0; k < c->n_opts; k++)
            zsh_option(&c->opts[k], out);
        if (c->name[len])
            (void)fprintf(out, " \\\n                '2:verb:(%s)'", c->name + len + 1);
        (void)fprintf(out, " \\\n                '*:argument:%s' ;;\n",
                      takes_job(c)      ? "_argus_jobs"
                      : *c->args == 'F' ? "_files"
                                        : " ");
    }
    (void)fputs("    esac\n}\ncompdef _argus argus\n", out);
}

/* ---- fish ---- */

void completion_fish(FILE *out)
{
    const struct command *c;
    (void)fputs("# fish completion for argus: argus completion fish | source\n"
                "complete -c argus -f\n",
                out);
    for (size_t i = 0; (c = command_at(i)); i++) {
        int len = (int)first_word(c);
        (void)fprintf(out, "complete -c argus -n __fish_use_subcommand -a %.*s -d '", len, c->name);
        put_quoted(c->summary, "\\'", out);
        (void)fputs("'\n", out);
        if (c->name[len])
            (void)fprintf(out, "complete -c argus -n '__fish_seen_subcommand_from %.*s' -a '%s'\n",
                          len, c->name, c->name + len + 1);
        if (takes_job(c))
            (void)fprintf(out,
                          "complete -c argus -n '__fish_seen_subcommand_from %.*s' -a "
                          "'(argus ls -q -a --limit 200 2>/dev/null)'\n",
                          len, c->name);
        for (size_t k = 0; k < c->n_opts; k++) {
            const struct opt *o = &c->opts[k];
            (void)fprintf(out, "complete -c argus -n '__fish_seen_subcommand_from %.*s' -l %s", len,
                          c->name, o->name);
            if (o->letter)
                (void)fprintf(out, " -s %c", o->letter);
            (void)fputs(o->type == OPT_FLAG ? "" : takes_file(o) ? " -r -F" : " -x", out);
            if (o->choices)
                (void)fputs(" -a '", out), put_choices(o, out), (void)fputs("'", out);
            (void)fputs(" -d '", out);
            put_quoted(o->doc, "\\'", out);
            (void)fputs("'\n", out);
        }
    }
}
