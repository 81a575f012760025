/* SPDX-License-Identifier: Apache-2.0 */
/* sample_mark.c - see sample_mark.h. Marks that only end a turn do not count: a dump may keep the
 * one that ends the answer itself. */
#include "core/sample/sample_mark.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* How the templates of Qwen, Llama, Gemma, Mistral, GLM and DeepSeek open a turn. */
static const char *const openings[] = {
    "<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "[INST]",
    "<|user|>",     "<|assistant|>",       "<｜User｜>",      "<｜Assistant｜>",
};
static const char *const tools[] = {"<tool_call>", "<tool_response>", "<function"};
static const char *const roles[] = {"user", "assistant", "human", "system"};

static bool mark_has_any(const char *text, size_t n, const char *const *words, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++)
        if (memmem(text, n, words[i], strlen(words[i])))
            return true;
    return false;
}

/* The bytes of the role of "user", or of "user:" and what is said; 0: "users" and "user is" are
 * text. */
static size_t mark_role(const char *line, size_t n)
{
    for (size_t i = 0; i < array_len(roles); i++) {
        size_t len = strlen(roles[i]);
        if (n >= len && !strncasecmp(line, roles[i], len) && (n == len || line[len] == ':'))
            return len;
    }
    return 0;
}

static size_t mark_leading_blanks(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (unsigned char)text[i] <= ' ')
        i++;
    return i;
}

/* An answer that begins with "User: …" is a dialogue that was asked for: a model that runs on into
 * another turn has answered first. */
static bool mark_is_script(const char *text, size_t n)
{
    size_t blanks = mark_leading_blanks(text, n);
    text += blanks;
    n -= blanks;
    const char *end = memchr(text, '\n', n);
    size_t len = end ? (size_t)(end - text) : n, role = mark_role(text, len);
    return role && role < len;
}

static bool mark_has_role(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        bool is_crlf = len && text[at + len - 1] == '\r';
        if (mark_role(text + at, len - is_crlf))
            return true;
        at += len + 1;
    }
    return false;
}

unsigned sample_marks(const char *text, size_t n)
{
    if (mark_leading_blanks(text, n) == n)
        return SAMPLE_IS_BLANK;
    if (mark_has_any(text, n, tools, array_len(tools)))
        return 0;
    bool has = mark_has_any(text, n, openings, array_len(openings)) ||
               (!mark_is_script(text, n) && mark_has_role(text, n));
    return has ? SAMPLE_HAS_TEMPLATE : 0;
}
