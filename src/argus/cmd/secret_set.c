/* SPDX-License-Identifier: Apache-2.0 */
/* secret_set.c - store a value; it never stands in the arguments, where others could see it. */
#include "argus/cmd/cmd.h"

#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "argus/jobview.h"
#include "argus/people.h"
#include "base/file.h"

enum { VALUE_MAX = 32 << 10 };

struct secret_set_opts {
    const char *file, *user, *project;
};

static const struct opt OPTS[] = {
    {.name = "from-file",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_set_opts, file),
     .arg = "FILE",
     .doc = "the value is what this file holds"},
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_set_opts, project),
     .arg = "NAME",
     .doc = "for all members of this project"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct secret_set_opts, user),
     .arg = "NAME",
     .doc = "for this user (admins); for you if not given"},
};

/* A line that is typed, without echo. */
static int ask(const char *name, struct buf *out, struct err *err)
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
static int read_value(const struct secret_set_opts *o,
                      const char *name,
                      struct buf *out,
                      struct err *err)
{
    int r = o->file ? file_read_input(o->file, out, err) : ask(name, out, err);
    if (r < 0)
        return r;
    if (out->len && out->data[out->len - 1] == '\n')
        out->data[--out->len] = 0;
    if (out->len && out->data[out->len - 1] == '\r')
        out->data[--out->len] = 0;
    if (!out->len)
        return err_set(err, ERR_USAGE, "the value is empty: type it, pipe it, or use --from-file");
    if (memchr(out->data, 0, out->len))
        return err_set(err, ERR_USAGE, "the value holds a zero byte: encode it, as base64 does");
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct secret_set_opts *o = opts;
    const char *name = args->v[0];
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(buf_release) struct buf value = BUF_INIT(VALUE_MAX + 2);
    int r = cli_open(cli, err);
    if (r == 0)
        r = read_value(o, name, &value, err);
    if (r < 0)
        return r;
    json_t *body = json_object();
    json_t *text = json_stringn(value.data, value.len);
    explicit_bzero(value.data, value.len);
    people_set_text(body, "user", o->user);
    people_set_text(body, "project", o->project);
    if (!text || json_object_set_new(body, "value", text) < 0) {
        json_decref(body);
        return err_set(err, ERR_USAGE, "the value is no UTF-8 text: encode it, as base64 does");
    }
    r = people_call(cli, "PUT", "secrets", name, "", body, &answer, err);
    if (r < 0)
        return r;
    (void)fprintf(cli->out, "secret %s stored\n", name);
    if (!json_get_bool(answer, "masked", true))
        cli_talk(cli, "argus: warning: a value of less than 8 bytes is not hidden in logs");
    return 0;
}

const struct command cmd_secret_set = {
    .name = "secret set",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "store a secret",
    .text = "The value comes from stdin (at a terminal it is asked for and not shown) or from a "
            "file, never from the arguments; one newline at its end is left out. It is kept "
            "encrypted and never given back. A job that names it in 'secrets:' has it in its "
            "environment, and its log shows stars in its place. Your own go before those of the "
            "job's project.",
    .example = "argus secret set WANDB_API_KEY\tasks for the value\n"
               "argus secret set HF_TOKEN --project rlhf < token.txt\tfor a project",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct secret_set_opts),
    .run = run,
};
