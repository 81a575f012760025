/* SPDX-License-Identifier: Apache-2.0 */
/* said.h - the messages in an answer of the server (base/message.h), in the reader's language.
 *
 * A message is an object with a code, its arguments and its sentence. A code that this program does
 * not know, or one without arguments, keeps the server's sentence. */
#pragma once
#include "base/json.h"
#include "base/message.h"

/* Says each message below v anew: text or detail, and with it fix or hint; and each advice, an
 * object with an advice_code and its advice. NULL v is fine. The
 * server speaks English by itself, so English changes nothing. */
void said_in(json_t *v, enum message_language language);
/* The same of a JSON text, which stays as it is where it is none. Heap; NULL of NULL. */
char *said_in_text(const char *json, enum message_language language);
/* An advice as it is said in that language: as it is, where it is not the catalogue's under that
 * code. Heap; NULL of NULL. */
char *said_advice(const char *code, const char *advice, enum message_language language);
