/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/completion.c - the completion script of a shell. */
#include "argus/cmd/cmd.h"

#include "argus/completion.h"
#include "base/str.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct {
        const char *shell;
        void (*print)(FILE *out);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    (void)opts;
    for (size_t i = 0; i < array_len(shells); i++) {
        if (str_eq(args->v[0], shells[i].shell)) {
            shells[i].print(cli->out);
            return 0;
        }
    }
    return err_set(err, ERR_USAGE, "'%.60s' is no shell that we know: bash, zsh or fish",
                   args->v[0]);
}

const struct command cmd_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .least = 1,
    .most = 1,
    .summary = "print a completion script",
    .text = "Completes commands, options, their values and job ids.",
    .example = "source <(argus completion bash)\tin ~/.bashrc\n"
               "argus completion fish | source\tin config.fish",
    .run = run,
};
