/* SPDX-License-Identifier: Apache-2.0 */
/* cli.c - the shared hands of the commands; see cli.h. */
#include "argus/cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "argus/show/text.h"
#include "argus/show/yaml.h"
#include "base/message.h"

enum { WATCH_MS = 2000 };

const char *const OUTPUT_NAMES[] = {"table", "wide", "json", "yaml", NULL};

void cli_release(struct cli *cli)
{
    client_free(cli->client);
    cli->client = NULL;
    settings_release(&cli->settings);
}

static void on_talk(const char *sentence, void *arg)
{
    cli_talk(arg, "%s", sentence);
}

int cli_open(struct cli *cli, struct err *err)
{
    int r = settings_load(&cli->settings, err);
    if (r < 0)
        return r;
    cli->client = client_new(&cli->settings);
    client_set_talk(cli->client, on_talk, cli);
    client_set_language(cli->client,
                        cli->term.lang == MESSAGE_CHINESE ? MESSAGE_CHINESE : MESSAGE_ENGLISH,
                        !cli->is_data);
    return 0;
}

void cli_talk(const struct cli *cli, const char *fmt, ...)
{
    _cleanup_(buf_release) struct buf raw = BUF_INIT(1 << 14);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(1 << 16);
    va_list ap;
    va_start(ap, fmt);
    (void)buf_vaddf(&raw, fmt, ap); /* ours are shorter */
    va_end(ap);
    text_clean(&clean, buf_str(&raw));
    (void)fflush(cli->out);
    (void)fprintf(stderr, "%s\n", buf_str(&clean));
}

char *cli_err_text(const struct cli *cli, const struct err *err)
{
    const struct message_listener to = {
        .language = cli->term.lang == MESSAGE_CHINESE ? MESSAGE_CHINESE : MESSAGE_ENGLISH};
    struct buf held = {0};
    char *text =
        xstrdup(err->message ? message_say(err->message, err->args, &to, &held) : err->text);
    buf_release(&held);
    return text;
}

void cli_say(const struct cli *cli, const char *id, const char *a, const char *b, const char *c)
{
    char line[1024];
    const char *texts[] = {a, b, c};
    cli_talk(cli, "%s", msg_fill(cli->term.lang, id, texts, line, sizeof(line)));
}

struct when cli_when(const struct cli *cli, bool utc)
{
    return (struct when){.now = clock_wall(), .utc = utc, .lang = cli->term.lang};
}

void cli_emit(struct cli *cli, const json_t *v, int output)
{
    if (output == OUTPUT_YAML) {
        struct buf text = BUF_INIT(CLIENT_BODY_MAX);
        yaml_add(&text, v); /* no larger than the answer it was */
        (void)fputs(buf_str(&text), cli->out);
        buf_release(&text);
        return;
    }
    (void)json_dumpf(v, cli->out,
                     JSON_INDENT(2) | JSON_REAL_PRECISION(15)); /* ferror(out) tells at the end */
    (void)fputc('\n', cli->out);
}

char *cli_job_path(const char *id, const char *rest)
{
    struct buf path = BUF_INIT(1 << 14);
    (void)buf_adds(&path, "/v1/jobs/");
    buf_add_url(&path, id); /* too long is no job's name: 404 */
    (void)buf_adds(&path, rest);
    return buf_take(&path);
}

int cli_get_job(struct cli *cli, const char *id, json_t **ret, struct err *err)
{
    _cleanup_(freep) char *path = cli_job_path(id, "");
    return client_get(cli->client, path, ret, err);
}

int cli_get_followed(struct cli *cli, const char *id, json_t **ret, struct err *err)
{
    _cleanup_(freep) char *path = cli_job_path(id, "");
    const struct request request = {.path = path, .tries = 10};
    return client_json(cli->client, &request, ret, err);
}

int cli_catch_interrupt(struct cli *cli, struct err *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return message_refuse(err, -errno, "cli_no_block",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK); /* lives as long as we do */
    if (fd < 0)
        return message_refuse(err, -errno, "cli_no_watch",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    client_set_wake(cli->client, fd);
    return 0;
}

/* One page into memory first: a screen is cleared only when its successor is ready. */
static int watch_once(struct cli *cli, cli_page_f page, void *opts, const struct strv *args)
{
    char *text = NULL;
    size_t len = 0;
    FILE *screen = cli->out;
    struct err err = {0};
    cli->out = open_memstream(&text, &len);
    int r = page(cli, opts, args, &err);
    (void)fclose(cli->out); /* in memory */
    cli->out = screen;
    if (cli->term.is_tty) {
        (void)fflush(screen);
        (void)fputs("\033[H\033[2J\033[3J", stdout); /* `screen` would show it: show/screen.h */
    }
    _cleanup_(freep) char *said = r < 0 ? cli_err_text(cli, &err) : NULL;
    if (said)
        cli_talk(cli, "argus: %s", said);
    else
        (void)fwrite(text, 1, len, screen);
    (void)fflush(screen);
    free(text);
    return r;
}

int cli_page(struct cli *cli,
             bool watch,
             cli_page_f page,
             void *opts,
             const struct strv *args,
             struct err *err)
{
    if (!watch)
        return page(cli, opts, args, err);
    int r = cli_catch_interrupt(cli, err);
    if (r < 0)
        return r;
    if (cli->term.is_talk)
        cli_say(cli, "say_watch_every", "", "", "");
    do {
        r = watch_once(cli, page, opts, args);
        if (r < 0 && r != ERR_UNREACHABLE && r != ERR_UNAVAILABLE && r != -EINTR)
            return r;
    } while (r != -EINTR && client_pause(cli->client, WATCH_MS) == 0);
    return 0;
}
