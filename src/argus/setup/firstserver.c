/* SPDX-License-Identifier: Apache-2.0 */
/* firstserver.c - see firstserver.h. All is looked at before anything is written. It asks at a
 * terminal only, and only when the shared root is not given. */
#include "argus/setup/firstserver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argus/cli/cli.h"
#include "argus/setup/keeper.h"
#include "argus/setup/making.h"
#include "argus/show/msg.h"
#include "base/file.h"
#include "base/message.h"
#include "base/self.h"
#include "base/str.h"

enum { INIT_LINE_MAX = 4096, INIT_TEXT_MAX = 16 << 10 };
enum init_keeper { INIT_AUTO, INIT_SYSTEMD, INIT_SCRIPT, INIT_NOTHING };
const char *const INIT_KEEPERS[] = {"", "systemd", "script", "none", NULL};

/* ---- what is wanted ---- */

struct init_plan {
    char *argusd, *config, *shared_root, *state_dir, *listen, *token_file, *script;
    const char *unit; /* the one to use, written here or not; NULL: none */
    bool writes_unit;
};

static void init_plan_release(struct init_plan *p)
{
    char *const all[] = {p->argusd, p->config,     p->shared_root, p->state_dir,
                         p->listen, p->token_file, p->script};
    for (size_t i = 0; i < array_len(all); i++)
        free(all[i]);
}

/* One line of the terminal; the default where it is empty. */
static char *init_ask(const struct cli *cli, const char *what, const char *otherwise)
{
    char line[INIT_LINE_MAX];
    (void)fprintf(stderr, "%s%s%s%s: ", msg(cli->term.lang, what), *otherwise ? " [" : "",
                  otherwise, *otherwise ? "]" : "");
    size_t n = fgets(line, sizeof(line), stdin) ? strcspn(line, "\r\n") : 0;
    return n ? xstrndup(line, n) : xstrdup(otherwise);
}

static char *init_choose(const struct cli *cli,
                         bool asks,
                         const char *given,
                         const char *what,
                         const char *otherwise)
{
    return given || !asks ? xstrdup(str_or(given, otherwise)) : init_ask(cli, what, otherwise);
}

static char *init_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return xasprintf("%.*s/%s", slash ? (int)(slash - path) : 0, path, name);
}

static void init_want(const struct cli *cli, const struct init_opts *o, struct init_plan *p)
{
    bool asks = !o->shared_root && isatty(STDIN_FILENO);
    p->shared_root = init_choose(cli, asks, o->shared_root, "say_init_ask_root", "");
    p->state_dir = init_choose(cli, asks, o->state_dir, "say_init_ask_state", "/var/lib/argus");
    p->listen = init_choose(cli, asks, o->listen, "say_init_ask_listen", "127.0.0.1:8080");
    p->config = xstrdup(str_or(o->config, "/etc/argus/argus.yaml"));
    p->token_file = o->token_file ? xstrdup(o->token_file) : init_beside(p->config, "admin.token");
}

/* ---- what stands in the way ---- */

static int init_want_keeper(const struct init_opts *o, struct init_plan *p, struct err *err)
{
    bool may = keeper_has_systemd() && geteuid() == 0;
    if (o->keeper == INIT_SYSTEMD && !may)
        return message_refuse(err, ERR_USAGE, "cli_init_systemd", MESSAGE_NO_ARGS);
    if (o->keeper == INIT_SYSTEMD || (o->keeper == INIT_AUTO && may)) {
        p->unit = keeper_find_unit();
        p->writes_unit = !p->unit;
        p->unit = str_or(p->unit, KEEPER_UNIT);
    } else if (o->keeper != INIT_NOTHING) {
        p->script = init_beside(p->config, "argusd-run");
    }
    return 0;
}

static int init_check(const struct init_plan *p, struct err *err)
{
    const char *const paths[] = {p->shared_root, p->state_dir, p->config, p->token_file};
    const char *const written[] = {p->config, p->token_file, p->script};
    if (!*p->shared_root)
        return message_refuse(err, ERR_USAGE, "cli_init_root", MESSAGE_NO_ARGS);
    for (size_t i = 0; i < array_len(paths); i++)
        if (*paths[i] != '/' || !keeper_is_plain(paths[i]))
            return message_refuse(err, ERR_USAGE, "cli_init_plain",
                                  MESSAGE_ARGS(MESSAGE_STR("path", paths[i])));
    for (size_t i = 0; i < array_len(written); i++) {
        bool is_there = false;
        int r = written[i] ? file_look_for(written[i], &is_there, err) : 0;
        if (r < 0)
            return r;
        if (is_there)
            return message_refuse(err, ERR_CONFLICT, "cli_init_there",
                                  MESSAGE_ARGS(MESSAGE_STR("path", written[i])));
    }
    return 0;
}

/* ---- what is done ---- */

static int init_write(const char *path, const struct buf *text, mode_t mode, struct err *err)
{
    return file_write(path, text->data, text->len, mode, FILE_SYNC, err);
}

static int init_write_keeper(const struct init_plan *p, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(INIT_TEXT_MAX);
    if (p->writes_unit) {
        keeper_write_unit(&text, p->argusd, p->config);
        return init_write(p->unit, &text, 0644, err);
    }
    if (!p->script)
        return 0;
    keeper_write_script(&text, p->argusd, p->config);
    return init_write(p->script, &text, 0755, err);
}

static void init_tell(struct cli *cli, const struct init_plan *p, const char *token)
{
    cli_say(cli, "say_init_made", p->config, p->token_file, "");
    (void)fflush(stderr);
    (void)fprintf(cli->out, "%s\n", token);
    (void)fflush(cli->out); /* before the talk that follows; main looks at the end */
    if (p->unit)
        cli_say(cli, "say_init_unit", p->unit, "", "");
    else if (p->script)
        cli_say(cli, "say_init_script", p->script, "", "");
    else
        cli_say(cli, "say_init_by_hand", p->argusd, p->config, "");
    cli_say(cli, "say_init_next", p->listen, p->token_file, "");
}

static int init_make(struct cli *cli,
                     const struct init_opts *o,
                     const struct init_plan *p,
                     struct err *err)
{
    _cleanup_(freep) char *token = NULL;
    const struct making m = {.argusd = p->argusd,
                             .config = p->config,
                             .shared_root = p->shared_root,
                             .state_dir = p->state_dir,
                             .listen = p->listen,
                             .ray = o->ray};
    int r = making_run(&m, &token, err);
    if (r < 0) {
        (void)unlink(p->config); /* it was not there, and would stand in the way of the next time */
        return r;
    }
    _cleanup_(freep) char *line = xasprintf("%s\n", token);
    r = file_write_private(p->token_file, line, strlen(line), err);
    if (r == 0)
        r = init_write_keeper(p, err);
    init_tell(cli, p, token); /* also when a file could not be written: it is not shown again */
    return r;
}

static int init_unit(struct cli *cli, const struct init_plan *p)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(INIT_TEXT_MAX);
    keeper_write_unit(&text, p->argusd, p->config);
    (void)fputs(buf_str(&text), cli->out); /* main looks at the end */
    return 0;
}

int firstserver_make(struct cli *cli, const struct init_opts *o, struct err *err)
{
    _cleanup_(init_plan_release) struct init_plan p = {.argusd = self_find_program("argusd")};
    if (!p.argusd || !keeper_is_plain(p.argusd))
        return message_refuse(err, ERR_USAGE, "cli_init_program", MESSAGE_NO_ARGS);
    if (o->print_unit) {
        p.config = xstrdup(str_or(o->config, "/etc/argus/argus.yaml"));
        return init_unit(cli, &p);
    }
    init_want(cli, o, &p);
    int r = init_want_keeper(o, &p, err);
    if (r == 0)
        r = init_check(&p, err);
    return r < 0 ? r : init_make(cli, o, &p, err);
}
