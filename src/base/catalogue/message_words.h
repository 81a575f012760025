/* SPDX-License-Identifier: Apache-2.0 */
/* message_words.h - arguments of messages that are words of ours, or of the system, and not of
 * people: "user", "read", "Permission denied". Pure. */
#pragma once
#include "base/message.h"

/* The word in that language; as it is, if the key is none whose words are ours or the word is not
 * known. Borrowed. */
const char *message_word(const char *key, const char *word, enum message_language in);
