/* SPDX-License-Identifier: Apache-2.0 */
/* login.c - how one begins: a first server; address and token, which are checked and remembered. */
#include "argus/noun/noun.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "argus/cli/ask.h"
#include "argus/setup/firstserver.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"

enum { LOGIN_TOKEN_MAX = 4096 };

struct login_opts {
    const char *token, *ca;
};

static const struct opt LOGIN_OPTS[] = {
    {.name = "token",
     .type = OPT_TEXT,
     .offset = offsetof(struct login_opts, token),
     .arg = "TOKEN",
     .doc = "the token; other users may see it in the process list, so prefer stdin or the prompt"},
    {.name = "ca",
     .type = OPT_TEXT,
     .offset = offsetof(struct login_opts, ca),
     .arg = "FILE",
     .doc = "certificates to trust, for a server with a private one"},
};

/* One line of stdin; on a terminal with a prompt and without echo. */
static int login_read_token(char **ret, struct err *err)
{
    struct termios before, quiet;
    bool is_tty = tcgetattr(STDIN_FILENO, &before) == 0;
    char line[LOGIN_TOKEN_MAX];
    if (is_tty) {
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet); /* else it is echoed: still right */
        (void)fputs("token: ", stderr); /* after the flush, so that no typed byte is lost */
    }
    char *got = fgets(line, sizeof(line), stdin);
    if (is_tty) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        (void)fputc('\n', stderr);
    }
    size_t n = got ? strcspn(line, " \t\r\n") : 0;
    if (!n)
        return message_refuse(err, ERR_USAGE, "cli_no_token", MESSAGE_NO_ARGS);
    *ret = xstrndup(line, n);
    return 0;
}

static int login_prepare(struct cli *cli,
                         const struct login_opts *o,
                         const char *url,
                         struct err *err)
{
    struct settings *s = &cli->settings;
    int r = settings_tidy_url(url, &s->server, err);
    if (r < 0)
        return r;
    if (o->ca) {
        s->ca = realpath(o->ca, NULL);
        if (!s->ca)
            return message_refuse(
                err, ERR_USAGE, "disk_cannot_read",
                MESSAGE_ARGS(MESSAGE_STR("path", o->ca), MESSAGE_STR("why", strerror(errno))));
    }
    if (!settings_url_is_private(s->server))
        cli_talk(cli, "argus: warning: '%s' is not encrypted: the token can be read on the way",
                 s->server);
    if (!o->token)
        return login_read_token(&s->token, err);
    if (!*o->token || strpbrk(o->token, " \t\r\n"))
        return message_refuse(err, ERR_USAGE, "cli_token_no", MESSAGE_NO_ARGS);
    s->token = xstrdup(o->token);
    return 0;
}

static int login_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    _cleanup_(json_unrefp) json_t *me = NULL;
    _cleanup_(freep) char *path = settings_path();
    if (!path)
        return message_refuse(err, ERR_USAGE, "cli_no_home", MESSAGE_NO_ARGS);
    int r = login_prepare(cli, opts, args->v[0], err);
    if (r < 0)
        return r;
    cli->client = client_new(&cli->settings);
    r = client_get(cli->client, "/v1/whoami", &me, err);
    if (r == ERR_UNAUTHORISED)
        return message_refuse(err, r, "cli_token_refused",
                              MESSAGE_ARGS(MESSAGE_STR("server", cli->settings.server)));
    if (r >= 0)
        r = settings_save(&cli->settings, path, err);
    if (r < 0)
        return r;
    cli_talk(cli, "logged in at %s as %s (%s); stored in %s", cli->settings.server,
             member_str(me, "user"), member_str(me, "role"), path);
    if (getenv("ARGUS_URL") || getenv("ARGUS_TOKEN"))
        cli_talk(cli, "argus: warning: ARGUS_URL or ARGUS_TOKEN is set and goes before what was "
                      "stored");
    return 0;
}

static int login_link_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    _cleanup_(json_unrefp) json_t *made = NULL;
    (void)opts, (void)args;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = ask_send(cli, "POST", "/v1/session:link", json_object(), 1, &made, err);
    if (r < 0)
        return r;
    (void)fprintf(cli->out, "%s%s\n", cli->settings.server, member_str(made, "path"));
    return 0;
}

static const struct command LOGIN_COMMANDS[] = {
    {
        .name = "login",
        .args = "URL",
        .least = 1,
        .most = 1,
        .summary = "remember a server and a token",
        .text = "Asks the server who we are and, when it accepts the token, writes address "
                "and token to ~/.config/argus/config.yaml (mode 0600). The token is taken "
                "from --token, or from stdin: at a terminal it is asked for and not shown.\n"
                "ARGUS_URL and ARGUS_TOKEN go before the file; the stored token is only ever "
                "sent to the stored server.",
        .example = "argus login http://10.0.0.1:8080\task for the token\n"
                   "argus login https://argus.example --ca ca.pem < token.txt\ttoken from a file",
        .opts = LOGIN_OPTS,
        .n_opts = array_len(LOGIN_OPTS),
        .opts_size = sizeof(struct login_opts),
        .run = login_run,
    },
    {
        .name = "login-link",
        .args = "",
        .summary = "a link that logs a browser in",
        .text = "Prints an address that is opened once, within ten minutes, and then is of no use: "
                "the browser is logged in as you, without your token. What stands behind the # is "
                "not sent to any server by following the link; a button on the page does that. Who "
                "has the link before you have used it can log in as you.",
        .example = "argus login-link\tand open it",
        .run = login_link_run,
    },
};

NOUN(login, LOGIN_COMMANDS);

/* ---- init ---- */

#define INIT_ROW(kind, member) .type = (kind), .offset = offsetof(struct init_opts, member)

static const struct opt INIT_OPTS[] = {
    {.name = "shared-root",
     INIT_ROW(OPT_TEXT, shared_root),
     .arg = "DIR",
     .doc = "the directory that all machines mount at this path"},
    {.name = "state-dir",
     INIT_ROW(OPT_TEXT, state_dir),
     .arg = "DIR",
     .doc = "the store, on a local disk [/var/lib/argus]"},
    {.name = "listen",
     INIT_ROW(OPT_TEXT, listen),
     .arg = "ADDRESS",
     .doc = "address and port that argusd answers at [127.0.0.1:8080]"},
    {.name = "ray",
     INIT_ROW(OPT_TEXT, ray),
     .arg = "URL",
     .doc = "the address of Ray's head [http://127.0.0.1:8265]"},
    {.name = "config",
     INIT_ROW(OPT_TEXT, config),
     .arg = "FILE",
     .doc = "the configuration to write [/etc/argus/argus.yaml]"},
    {.name = "token-file",
     INIT_ROW(OPT_TEXT, token_file),
     .arg = "FILE",
     .doc = "where the token is kept, mode 0600 [admin.token beside the configuration]"},
    {.name = "keeper",
     INIT_ROW(OPT_CHOICE, keeper),
     .arg = "KIND",
     .doc =
         "program that keeps argusd running: systemd, script or none [systemd where it runs, else "
         "script]",
     .choices = INIT_KEEPERS},
    {.name = "print-unit",
     INIT_ROW(OPT_FLAG, print_unit),
     .doc = "print the unit of systemd and do nothing else"},
};

static int init_run_command(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)args;
    return firstserver_make(cli, opts, err);
}

static const struct command INIT_COMMANDS[] = {
    {
        .name = "init",
        .args = "",
        .summary = "make a first server on this machine",
        .text =
            "Writes the configuration of argusd and its store, makes an admin with a token, and "
            "writes what keeps argusd running: a unit where systemd is the init and you are "
            "root, else a script that starts argusd in the foreground and starts it again when "
            "it dies. The token is printed once, and kept in a file of mode 0600. Nothing that "
            "is there is written over. Without --shared-root it asks, at a terminal.",
        .example = "argus init --shared-root /private\tin /etc/argus and /var/lib/argus\n"
                   "argus init --shared-root /private --state-dir /srv/argus --config "
                   "/srv/argus.yaml --keeper script\telsewhere, without systemd",
        .opts = INIT_OPTS,
        .n_opts = array_len(INIT_OPTS),
        .opts_size = sizeof(struct init_opts),
        .run = init_run_command,
    },
};

NOUN(init, INIT_COMMANDS);
