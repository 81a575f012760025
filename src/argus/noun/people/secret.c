/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - secrets: values that jobs are given and nobody is shown. A value comes from stdin or a
 * file, never from the arguments, where other users of the machine could read it. */
#include "argus/noun/noun.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"

enum { VALUE_MAX = 32 << 10 };

struct secret_set_opts {
    const char *file, *user, *project;
};

static const struct opt SET_OPTS[] = {
    {.name = "from-file",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_set_opts, file),
     .arg = "FILE",
     .doc = "the value is what this file holds"},
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_set_opts, project),
     .arg = "NAME",
     .doc = "store it for all members of this project",
     .to = "body:project"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_set_opts, user),
     .arg = "NAME",
     .doc = "store it for this user (admins); for you if not given",
     .to = "body:user"},
};

static const struct opt LS_OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .doc = "list everybody's (admins)",
     .to = "query:all"},
    {.name = "project",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "list the secrets of this project",
     .to = "query:project"},
    {.name = "user",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "list the secrets of this user (admins)",
     .to = "query:user"},
    OPT_OUTPUT(struct listing_opts),
    OPT_UTC(struct listing_opts),
};

static const struct opt RM_OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "a secret of this project",
     .to = "query:project"},
    {.name = "user",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "a secret of this user (admins)",
     .to = "query:user"},
};

static const struct column SECRETS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 12, .key = "name"},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user"},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 6, .key = "project"},
    {.title = "say_made", .rank = 1, .key = "created_at", .as = CELL_TIME},
    {.title = "say_last_use", .key = "last_use_at", .as = CELL_TIME},
};

/* A line that is typed, without echo. */
static int secret_ask(const char *name, struct buf *out, struct err *err)
{
    struct termios before, quiet;
    char line[4096];
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return file_read_input("-", out, err);
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);   /* else it is echoed: still right */
    (void)fprintf(stderr, "value of %s: ", name);       /* after the flush, so that no typed */
    const char *got = fgets(line, sizeof(line), stdin); /* byte is lost */
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    (void)fputc('\n', stderr);
    int r = got ? buf_adds(out, line) : 0;
    explicit_bzero(line, sizeof(line));
    return r;
}

/* One newline at the end is of the editor or of echo, and not of the value. */
static int secret_read(const char *file, const char *name, struct buf *out, struct err *err)
{
    int r = file ? file_read_input(file, out, err) : secret_ask(name, out, err);
    if (r < 0)
        return r;
    if (out->len && out->data[out->len - 1] == '\n')
        out->data[--out->len] = 0;
    if (out->len && out->data[out->len - 1] == '\r')
        out->data[--out->len] = 0;
    if (!out->len)
        return message_refuse(err, ERR_USAGE, "cli_secret_empty", MESSAGE_NO_ARGS);
    if (memchr(out->data, 0, out->len))
        return message_refuse(err, ERR_USAGE, "cli_secret_zero", MESSAGE_NO_ARGS);
    return 0;
}

static int secret_put(struct cli *cli, const char *name, json_t *body, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/secrets/{}", name);
    int r = ask_send(cli, "PUT", path, body, 0, &answer, err);
    if (r < 0)
        return r;
    (void)fprintf(cli->out, "secret %s stored\n", name);
    if (!json_get_bool(answer, "masked", true))
        cli_talk(cli, "argus: warning: a value of less than 8 bytes is not hidden in logs");
    return 0;
}

static int secret_set(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct secret_set_opts *o = opts;
    _cleanup_(json_unrefp) json_t *body = json_object();
    _cleanup_(buf_release) struct buf value = BUF_INIT(VALUE_MAX + 2);
    int r = cli_open(cli, err);
    if (r == 0)
        r = secret_read(o->file, args->v[0], &value, err);
    if (r == 0)
        r = ask_fill(SET_OPTS, array_len(SET_OPTS), opts, body, err);
    if (r < 0)
        return r;
    json_t *text = json_stringn(value.data, value.len);
    explicit_bzero(value.data, value.len);
    if (!text || json_object_set_new(body, "value", text) < 0)
        return message_refuse(err, ERR_USAGE, "cli_secret_utf8", MESSAGE_NO_ARGS);
    return secret_put(cli, args->v[0], json_incref(body), err);
}

static const struct command SECRET_COMMANDS[] = {
    {
        .name = "secret set",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "store a secret",
        .text = "The value comes from stdin (at a terminal it is asked for and not shown) or from "
                "a file, never from the arguments; one newline at its end is left out. It is kept "
                "encrypted and never given back. A job that names it in 'secrets:' has it in its "
                "environment, and its log shows stars in its place. Your own secrets go before "
                "those of the job's project.",
        .example = "argus secret set WANDB_API_KEY\tasks for the value\n"
                   "argus secret set HF_TOKEN --project rlhf < token.txt\tfor a project",
        OPTS(SET_OPTS),
        .opts_size = sizeof(struct secret_set_opts),
        .run = secret_set,
    },
    {
        .name = "secret ls",
        .args = "",
        .summary = "list secrets by name, with their last use",
        .text = "Lists your own secrets and those of your projects. A value is never shown. The "
                "last use is noted every five minutes.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/secrets", .table = {.key = "secrets", COLUMNS(SECRETS)}},
    },
    {
        .name = "secret rm",
        .args = "NAME…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "remove secrets",
        .text = "Running jobs keep what they were given; a job that names a removed secret and "
                "starts later fails, and says so.",
        OPTS(RM_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/secrets/{}",
                .done = "say_done_removed",
                .subject = "secret {name}"},
    },
};

NOUN(secret, SECRET_COMMANDS);
