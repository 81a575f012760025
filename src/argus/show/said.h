/* SPDX-License-Identifier: Apache-2.0 */
/* said.h - the messages in an answer of the server (base/message.h), in the reader's language.
 *
 * A message is an object with a code, its arguments and its sentence. A code that this program does
 * not know, or one without arguments, keeps the server's sentence. */
#pragma once
#include "base/json.h"
#include "base/message.h"

/* Says each message below v anew: text or detail, and with it fix or hint. NULL v is fine. The
 * server speaks English by itself, so English changes nothing. */
void said_in(json_t *v, enum message_language language);
