/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the argus program: find the command, run it, say what failed. */
#include <stdio.h>
#include <string.h>

#include "argus/cli/cli.h"
#include "argus/cli/command.h"
#include "argus/cli/manual.h"
#include "argus/show/screen.h"
#include "base/str.h"

static int run_words(struct cli *cli,
                     int argc,
                     char **argv,
                     const struct command **ret_command,
                     struct err *err)
{
    char client[] = "--client";
    int used = 0;
    if (argc < 2) {
        manual_overview(stderr);
        return ERR_USAGE;
    }
    if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")) {
        manual_overview(cli->out);
        return 0;
    }
    if (argc == 3 && (str_eq(argv[2], "--help") || str_eq(argv[2], "-h")) &&
        !command_find(argv[1]) && manual_noun(argv[1], cli->out))
        return 0;
    if (str_eq(argv[1], "--list-commands")) {
        manual_list(cli->out);
        return 0;
    }
    if (str_eq(argv[1], "--version"))
        return command_run(command_find("version"), cli, 1, (char *[]){client}, cli->out, err);
    int r = command_match(argc - 1, argv + 1, ret_command, &used, err);
    if (r < 0)
        return r;
    return command_run(*ret_command, cli, argc - 1 - used, argv + 1 + used, cli->out, err);
}

/* One line about the failure and, for wrong usage, where to read more. */
static int argus_tell_failure(const struct cli *cli, const struct command *c, const struct err *err)
{
    _cleanup_(freep) char *said = cli_err_text(cli, err);
    cli_talk(cli, "argus: %s", said);
    if (err->code == ERR_USAGE)
        cli_say(cli, "say_try_help", c ? c->name : "help", c ? " --help" : "", "");
    return err_exit_status(err->code);
}

/* False: something of what was printed did not arrive. */
static bool argus_close_out(struct cli *cli)
{
    bool arrived = fflush(cli->out) == 0 && !ferror(cli->out);
    if (cli->out != stdout)
        arrived = fclose(cli->out) == 0 && arrived;
    cli->out = stdout;
    return fflush(stdout) == 0 && !ferror(stdout) && arrived;
}

int main(int argc, char **argv)
{
    struct cli cli = {.out = stdout, .term = term_read()};
    FILE *screen = cli.term.is_tty ? screen_open(stdout) : NULL;
    if (screen)
        cli.out = screen;
    const struct command *command = NULL;
    struct err err = {0};
    int status = run_words(&cli, argc, argv, &command, &err);
    if (status < 0)
        status = err.code ? argus_tell_failure(&cli, command, &err) : err_exit_status(ERR_USAGE);
    if (!argus_close_out(&cli)) {
        (void)fprintf(stderr, "argus: cannot write to stdout\n");
        status = status ? status : err_exit_status(ERR_INTERNAL);
    }
    cli_release(&cli);
    return status;
}
