/* SPDX-License-Identifier: Apache-2.0 */
/* sample_mark.h - whether an answer is blank, and whether it has turns of a chat in it. A model
 * writes those when it was asked with another template than its own, or when nothing stops at the
 * token by which it ends an answer. Pure. */
#pragma once
#include <stddef.h>

enum sample_marks {
    SAMPLE_IS_BLANK = 1 << 0, /* no byte but blanks */
    /* The opening of a turn, as templates write it ("<|im_start|>", "[INST]"), or a line that opens
     * one ("user", "Assistant: yes"). Never where tools are called, nor for such lines where the
     * text begins with "User: …": there turns are meant. */
    SAMPLE_HAS_TEMPLATE = 1 << 1,
};
/* A set of enum sample_marks. The text may be no UTF-8. */
unsigned sample_marks(const char *text, size_t n);
