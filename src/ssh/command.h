/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - inside of this layer: the words of an ssh command for a target. Pure but for
 * ssh_control_dir(). */
#pragma once
#include "base/buf.h"
#include "base/strv.h"
#include "ssh/ssh.h"

enum { SSH_MARK_MAX = 33 };

/* ssh and all its options, up to the host; what is to run there comes after. -EINVAL: a text of
 * the target that no command line can carry safely; the sentence names it. is_pinned: its key
 * is known, and no other will do. */
must_check int command_words(const struct ssh_target *t,
                             bool is_pinned,
                             struct strv *ret,
                             struct err *err);

/* ssh -O <verb>: asks the shared connection of this target. */
must_check int command_master(const struct ssh_target *t,
                              const char *verb,
                              struct strv *ret,
                              struct err *err);

/* The name under which keys are pinned. */
char *command_key_name(const char *name);

/* Builds the input of `sh -s`: arguments, the mark, the script as one compound command, the mark
 * with its exit status. ERR_TOO_LARGE past SSH_SCRIPT_MAX. */
must_check int command_script(const char *script,
                              const char *const *argv,
                              const char *mark,
                              struct buf *out,
                              struct err *err);
