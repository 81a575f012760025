/* SPDX-License-Identifier: Apache-2.0 */
/* msg.h - the words of argus itself, by their codes in the catalogue (message_title.c for titles of
 * columns, message_talk.c for what it says), in the language of the terminal.
 *
 * A code begins with say_: the gate `messages` knows the words by that. The language is that of
 * LC_ALL, LC_MESSAGES or LANG. Codes, state words, exit statuses and everything in -o json stay as
 * they are in every language. */
#pragma once
#include "base/message.h"

/* From a value such as "zh_CN.UTF-8"; NULL is English. */
enum message_language lang_from_string(const char *locale);

/* Borrowed for ever; "" for the code NULL. */
const char *msg(enum message_language lang, const char *code);

/* A message with the texts in place of its {1}, {2} and {3}. Returns out, cut to fit. */
const char *msg_fill(enum message_language lang,
                     const char *code,
                     const char *const *texts,
                     char *out,
                     int out_size);
