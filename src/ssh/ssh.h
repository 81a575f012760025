/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.h - one command on one machine, through the OpenSSH client as a child process.
 *
 * What it is: `ssh … exec sh -s`, a script on its standard input, bounded output, a deadline,
 * one callback. Connections are shared (ControlMaster) and outlive a call by a minute. Nobody
 * is ever asked anything (BatchMode). It knows no job and no node's state, retries nothing and
 * holds no truth; nothing here blocks, but ssh_pinned_key() and ssh_forget_key() read one
 * small file of ours.
 *
 * Host keys. A key is pinned in `known_hosts` at first contact, under "argus-<name>" (so a
 * machine that moves keeps its key, and another one at the same address is found out); from
 * then on only that key is accepted. What ~/.ssh/config says holds, but for that.
 *
 * The other side: any login shell, POSIX sh. The whole script is read before its first line
 * runs, so that a cut connection never runs half of it; its standard input is empty; arguments
 * are its "$1"…, exact to the byte. What a login shell prints by itself is not in the output. */
#pragma once
#include <stdbool.h>
#include <uv.h>

#include "base/clock.h"

enum {
    SSH_OUT_MAX = 256 << 10,    /* bytes that a command may print; more is SSH_FAILED */
    SSH_SCRIPT_MAX = 256 << 10, /* of script and arguments together */
    SSH_DIR_MAX = 74,           /* bytes of a control_dir with its NUL */
    SSH_KEY_MAX = 64,           /* "SHA256:…" with its NUL */
};

/* Borrowed during the call that gets it, copied where it must live on. NULL or 0 = ssh's own
 * choice. */
struct ssh_target {
    const char *name; /* of the node: for messages and the pinned key; [A-Za-z0-9._-] */
    const char *host;
    const char *user;
    int port;
    const char *identity_file;
    const char
        *proxy_jump; /* "[user@]host[:port]", several with commas; their keys are pinned too */
    const char *config_file; /* -F; NULL = the user's own ~/.ssh/config */
    const char *known_hosts; /* our own file, made at first contact; one for all nodes is fine */
    const char *control_dir; /* from ssh_control_dir() */
    bool local;              /* this machine: sh -s without ssh; only name is looked at */
};

#define SSH_TROUBLE_TABLE(X)                                                                       \
    X(OK, "ok")                                                                                    \
    X(UNREACHABLE, "ssh_unreachable") /* the machine does not answer, or the connection broke */   \
    X(REFUSED, "ssh_refused")         /* no key of ours is accepted */                             \
    X(HOST_KEY_CHANGED, "host_key_changed") /* it is not the machine that was pinned */            \
    X(TIMEOUT, "ssh_timeout")               /* not done within the limit; killed on our side */    \
    X(NO_CLIENT, "no_ssh_client")           /* no ssh program here */                              \
    X(FAILED, "ssh_failed")                 /* anything else: text quotes it */

#define X(name, word) SSH_##name,
enum ssh_trouble { SSH_TROUBLE_TABLE(X) SSH_TROUBLE_END };
#undef X
const char *ssh_trouble_to_string(enum ssh_trouble trouble); /* "ssh_unreachable" */

/* Whole only if trouble is SSH_OK: the script ran to its end, status says how. Otherwise text
 * is a message's (base/message.h) whose code is that of trouble: what is wrong, and its fix; out
 * and errs have what came until then. */
struct ssh_result {
    enum ssh_trouble trouble;
    char text[400];
    int status;             /* exit status of the script; -1 when it is not known */
    const char *out, *errs; /* NUL-terminated; borrowed until the callback returns */
    size_t out_len, errs_len;
    usec_t heard_after; /* from the call until the script's first sign of life; 0 = never */
};
typedef void (*ssh_f)(const struct ssh_result *r, void *arg);

struct ssh_call;
/* argv: NULL-terminated words, NULL = none. The callback comes exactly once, from the loop and
 * never from inside of this call; then the handle is gone. */
struct ssh_call *ssh_run(uv_loop_t *loop,
                         const struct ssh_target *t,
                         const char *script,
                         const char *const *argv,
                         usec_t limit,
                         ssh_f cb,
                         void *arg);
/* Cancel: the callback never comes, what runs there may go on. NULL is fine; not after the
 * callback. The loop must turn until its handles are closed. */
void ssh_call_free(struct ssh_call *c);

/* The directory of control sockets: <state_dir>/ssh when that is short enough for a Unix socket,
 * else /tmp/argus-ssh-<uid>-<hash of state_dir>. Made 0700; refused when it belongs to another
 * user. */
must_check int ssh_control_dir(const char *state_dir,
                               char ret[static SSH_DIR_MAX],
                               struct err *err);

/* "SHA256:…" of the pinned key (of several, the first), "" if none is pinned. */
must_check int ssh_pinned_key(const struct ssh_target *t,
                              char ret[static SSH_KEY_MAX],
                              struct err *err);
/* ssh_pinned_key() for the text of a known_hosts file. */
void ssh_find_key(const char *text, size_t len, const char *name, char ret[static SSH_KEY_MAX]);
/* Forget it: the node was removed, or the operator accepts a new key. */
must_check int ssh_forget_key(const struct ssh_target *t, struct err *err);

/* Ends the shared connection, if there is one (ssh -O exit), in the background; the loop needs
 * to turn for it. */
void ssh_close_master(uv_loop_t *loop, const struct ssh_target *t);
