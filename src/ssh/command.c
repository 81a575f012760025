/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - from a target to words; see command.h.
 *
 * Three readers stand between us and the other machine, each with its own quoting: ssh's option
 * values (double quotes, %-sequences), the shell that runs a ProxyCommand, and the shell over
 * there. Only `exec sh -s` is left to that last one, so that any login shell will do; all else
 * is text on its standard input. Host and user are held to a small alphabet, since ssh itself
 * puts them into shell lines. */
#include "ssh/command.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* A Unix socket's path has 107 bytes; ssh adds a dot and 16 characters while it makes one. */
enum { SOCKET_PATH_MAX = 107, SOCKET_NAME = 1 + 16 + 17, WORD_MAX = 8 << 10 };
static_assert(SSH_DIR_MAX - 1 + SOCKET_NAME <= SOCKET_PATH_MAX, "a control socket fits");

/* ---- what may be in a target ---- */

static bool command_is_of(const char *s, const char *more)
{
    if (!*s || *s == '-')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(more, *s))
            return false;
    return true;
}

static int check_path(const char *what, const char *path, struct err *err)
{
    for (const char *p = str_or(path, ""); *p; p++)
        if (*p == '"' || *p == '\\' || *p == '$' || iscntrl((unsigned char)*p))
            return message_refuse(
                err, -EINVAL, "ssh_character",
                MESSAGE_ARGS(MESSAGE_STR("key", what),
                             MESSAGE_STR("character", iscntrl((unsigned char)*p)
                                                          ? "?"
                                                          : ((const char[]){*p, 0}))));
    return 0;
}

static int check_target(const struct ssh_target *t, struct err *err)
{
    if (!command_is_of(str_or(t->name, ""), "._-"))
        return message_refuse(err, -EINVAL, "ssh_node_name",
                              MESSAGE_ARGS(MESSAGE_STR("name", str_or(t->name, ""))));
    if (!command_is_of(str_or(t->host, ""), "._:%-"))
        return message_refuse(err, -EINVAL, "ssh_host",
                              MESSAGE_ARGS(MESSAGE_STR("host", str_or(t->host, ""))));
    if (t->user && !command_is_of(t->user, "._@+-"))
        return message_refuse(err, -EINVAL, "ssh_user",
                              MESSAGE_ARGS(MESSAGE_STR("login", t->user)));
    if (t->proxy_jump && !command_is_of(t->proxy_jump, "._:%@,+[]-"))
        return message_refuse(err, -EINVAL, "ssh_jump",
                              MESSAGE_ARGS(MESSAGE_STR("hosts", t->proxy_jump)));
    if (t->port < 0 || t->port > 65535)
        return message_refuse(err, -EINVAL, "ssh_port", MESSAGE_ARGS(MESSAGE_NUM("port", t->port)));
    if (!t->known_hosts || !t->control_dir)
        return message_refuse(err, -EINVAL, "ssh_no_place", MESSAGE_NO_ARGS);
    if (strlen(t->control_dir) >= SSH_DIR_MAX)
        return message_refuse(err, -ENAMETOOLONG, "ssh_long_dir",
                              MESSAGE_ARGS(MESSAGE_STR("path", t->control_dir)));
    int r = check_path("known_hosts", t->known_hosts, err);
    r = r < 0 ? r : check_path("control_dir", t->control_dir, err);
    r = r < 0 ? r : check_path("identity_file", t->identity_file, err);
    return r < 0 ? r : check_path("ssh_config", t->config_file, err);
}

/* ---- options ---- */

/* A path as an option's value: ssh splits at blanks and expands %. */
static void command_add_path(struct strv *words, const char *key, const char *path)
{
    struct buf b = BUF_INIT(WORD_MAX);
    (void)buf_addf(&b, "%s=\"", key); /* blind appends, as below: WORD_MAX is twice PATH_MAX */
    for (const char *p = path; *p; p++)
        (void)buf_adds(&b, *p == '%' ? "%%" : (char[]){*p, 0});
    (void)buf_addc(&b, '"');
    strv_add(words, "-o");
    strv_add(words, buf_str(&b));
    buf_release(&b);
}

static void command_add_option(struct strv *words, const char *option)
{
    strv_add(words, "-o");
    strv_add(words, option);
}

/* What holds for every connection of ours, to a jump host too. */
static void add_common(struct strv *words, const struct ssh_target *t, bool is_pinned)
{
    static const char *const options[] = {
        "BatchMode=yes",         "ConnectTimeout=10",
        "ConnectionAttempts=1",  "ServerAliveInterval=5",
        "ServerAliveCountMax=3", "LogLevel=ERROR",
        "HashKnownHosts=no",     "UpdateHostKeys=no",
        "CheckHostIP=no",        "VerifyHostKeyDNS=no",
        "ForwardAgent=no",       "ForwardX11=no",
        "PermitLocalCommand=no", "GlobalKnownHostsFile=/dev/null",
    };
    if (t->config_file) {
        strv_add(words, "-F");
        strv_add(words, t->config_file);
    }
    for (size_t i = 0; i < array_len(options); i++)
        command_add_option(words, options[i]);
    strv_add(words, "-o");
    strv_addf(words, "StrictHostKeyChecking=%s", is_pinned ? "yes" : "accept-new");
    command_add_path(words, "UserKnownHostsFile", t->known_hosts);
    if (t->identity_file)
        command_add_path(words, "IdentityFile", t->identity_file);
}

/* ProxyCommand is run by a shell ("exec " and this line), after ssh has expanded its %: the last
 * host of the list is reached with our options, those before it as ~/.ssh/config says. */
static void add_jump(struct strv *words, const struct ssh_target *t)
{
    const char *comma = strrchr(t->proxy_jump, ',');
    const char *last = comma ? comma + 1 : t->proxy_jump;
    struct strv jump = {0};
    strv_add(&jump, "ssh");
    add_common(&jump, t, false);
    command_add_option(&jump, "ControlPath=none");
    if (comma) {
        strv_add(&jump, "-J");
        strv_addf(&jump, "%.*s", (int)(comma - t->proxy_jump), t->proxy_jump);
    }
    strv_add(&jump, "-W");
    strv_add(&jump, "[%h]:%p");
    strv_add(&jump, "--");
    strv_addf(&jump, "ssh://%s", last);
    struct buf line = BUF_INIT(2 * WORD_MAX);
    (void)buf_adds(&line, "ProxyCommand=");
    for (size_t i = 0; i < jump.n; i++) {
        bool is_ours = !strcmp(jump.v[i], "[%h]:%p");
        struct buf word = BUF_INIT(WORD_MAX);
        for (const char *p = jump.v[i]; *p; p++)
            (void)buf_adds(&word, *p == '%' && !is_ours ? "%%" : (char[]){*p, 0});
        if (i > 0)
            (void)buf_addc(&line, ' ');
        (void)str_shell_quote(&line, buf_str(&word));
        buf_release(&word);
    }
    command_add_option(words, buf_str(&line));
    buf_release(&line);
    strv_release(&jump);
}

/* One control socket for each way to the machine: a changed port means a new connection. */
static void add_control(struct strv *words, const struct ssh_target *t)
{
    char hex[HASH_HEX];
    _cleanup_(freep) char *way =
        xasprintf("%s\n%s\n%s\n%d\n%s\n%s\n%s\n%s", t->name, t->host, str_or(t->user, ""), t->port,
                  str_or(t->identity_file, ""), str_or(t->proxy_jump, ""),
                  str_or(t->config_file, ""), t->known_hosts);
    (void)hash_sha256_hex(way, strlen(way), hex); /* it is hex */
    hex[16] = 0;
    _cleanup_(freep) char *path = xasprintf("%s/%s", t->control_dir, hex);
    command_add_path(words, "ControlPath", path);
}

static void command_add_where(struct strv *words, const struct ssh_target *t)
{
    if (t->port) {
        strv_add(words, "-p");
        strv_addf(words, "%d", t->port);
    }
    if (t->user) {
        strv_add(words, "-l");
        strv_add(words, t->user);
    }
    strv_add(words, "--");
    strv_add(words, t->host);
}

char *command_key_name(const char *name)
{
    return xasprintf("argus-%s", name);
}

int command_words(const struct ssh_target *t, bool is_pinned, struct strv *ret, struct err *err)
{
    int r = check_target(t, err);
    if (r < 0)
        return r;
    strv_add(ret, "ssh");
    strv_add(ret, "-T");
    add_common(ret, t, is_pinned);
    _cleanup_(freep) char *name = command_key_name(t->name);
    strv_add(ret, "-o");
    strv_addf(ret, "HostKeyAlias=%s", name);
    command_add_option(ret, "ControlMaster=auto");
    command_add_option(ret, "ControlPersist=60");
    command_add_option(ret, "ClearAllForwardings=yes");
    command_add_option(ret, "RemoteCommand=none");
    add_control(ret, t);
    if (t->proxy_jump)
        add_jump(ret, t);
    command_add_where(ret, t);
    return 0;
}

int command_master(const struct ssh_target *t, const char *verb, struct strv *ret, struct err *err)
{
    int r = check_target(t, err);
    if (r < 0)
        return r;
    strv_add(ret, "ssh");
    if (t->config_file) {
        strv_add(ret, "-F");
        strv_add(ret, t->config_file);
    }
    command_add_option(ret, "LogLevel=QUIET");
    add_control(ret, t);
    strv_add(ret, "-O");
    strv_add(ret, verb);
    command_add_where(ret, t);
    return 0;
}

/* ---- the script ---- */

int command_script(const char *script,
                   const char *const *argv,
                   const char *mark,
                   struct buf *out,
                   struct err *err)
{
    (void)buf_adds(out, "set --"); /* blind appends, looked at once at the end */
    for (size_t i = 0; argv && argv[i]; i++) {
        (void)buf_addc(out, ' ');
        (void)str_shell_quote(out, argv[i]);
    }
    (void)buf_addf(
        out, "\nprintf '\\n%%s\\n' %s\n(\n%s\n) </dev/null\nprintf '\\n%%s %%d\\n' %s \"$?\"\n",
        mark, script, mark);
    if (out->failed)
        return message_refuse(err, ERR_TOO_LARGE, "ssh_large_script",
                              MESSAGE_ARGS(MESSAGE_NUM("most", SSH_SCRIPT_MAX)));
    return 0;
}

/* ---- where control sockets lie ---- */

/* The directory must be ours and closed to other users: otherwise another user could plant a
 * connection of his own. */
static int check_private(const char *path, struct err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return message_refuse(
            err, -errno, "ssh_dir_unseen",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return message_refuse(err, -EPERM, "ssh_dir_anothers",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if ((st.st_mode & 077) && chmod(path, 0700) < 0)
        return message_refuse(
            err, -errno, "ssh_dir_open",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    return 0;
}

int ssh_control_dir(const char *state_dir, char ret[static SSH_DIR_MAX], struct err *err)
{
    char hex[HASH_HEX], path[SSH_DIR_MAX];
    int n = snprintf(path, sizeof(path), "%s/ssh", state_dir);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        (void)hash_sha256_hex(state_dir, strlen(state_dir), hex); /* it is hex */
        text_printf(path, "/tmp/argus-ssh-%u-%.12s", geteuid(), hex);
    }
    int r = file_mkdirs(path, 0700, err);
    if (r == 0)
        r = check_private(path, err);
    if (r == 0)
        text_copy_to(ret, SSH_DIR_MAX, path);
    return r;
}
