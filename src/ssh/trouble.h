/* SPDX-License-Identifier: Apache-2.0 */
/* trouble.h - inside of this layer: what the ssh client's complaint means. Pure. */
#pragma once
#include "base/message.h"
#include "ssh/ssh.h"

/* Sets trouble, text and fix from what ssh printed before it gave up with 255. `pinned` is the
 * key that was expected, "" if none. Any bytes; the result is printable. */
void trouble_read(const char *errs,
                  size_t len,
                  const struct ssh_target *t,
                  const char *pinned,
                  struct ssh_result *ret);

/* trouble and text at once. */
void trouble_set(struct ssh_result *ret, enum ssh_trouble trouble, const struct message_arg *args);

/* The last line of these bytes that says something, cut to size and printable. Returns ret. */
const char *trouble_last_line(const char *p, size_t len, char *ret, size_t size);
