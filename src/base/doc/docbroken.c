/* SPDX-License-Identifier: Apache-2.0 */
/* docbroken.c - parts of libfyaml's sentences and what each means to who wrote the text; see
 * docbroken.h.
 *
 * Its sentences name productions of the grammar. A reader wants to know which character to change:
 * several sentences are one mistake, as all that follow from an indentation. The first row that is
 * part of the sentence counts. */
#include "base/doc/docbroken.h"

#include <stddef.h>
#include <string.h>

#include "base/str.h"

static const struct {
    const char *part, *code;
} sentences[] = {
    {"nested block mapping on the same line", "yaml_colon"},
    {"tab character", "yaml_tab"},
    {"tab used", "yaml_tab"},
    {"cannot use tab", "yaml_tab"},
    {"invalid tab", "yaml_tab"},
    {"escape", "yaml_escape"},
    {"without closing quote", "yaml_quote_open"},
    {"wrongly indented double-quoted", "yaml_quote_open"},
    {"wrongly indented single-quoted", "yaml_quote_open"},
    {"trailing content after double-quoted", "yaml_after_quote"},
    {"trailing content after single-quoted", "yaml_after_quote"},
    {"plain scalar cannot start with", "yaml_begins"},
    {"block scalar no linebreak", "yaml_begins"},
    {"nsupported directive", "yaml_begins"},
    {"invalid alias", "yaml_begins"},
    {"invalid anchor", "yaml_begins"},
    {"block sequence on the same line", "yaml_dash"},
    {"expected ':'", "yaml_no_colon"},
    {"multiline plain key", "yaml_no_colon"},
    {"flow", "yaml_bracket"},
    {"expected node content", "yaml_bracket"},
    {"tag", "yaml_tag_form"},
    {"indent", "yaml_indent"},
    {"indend", "yaml_indent"},
    {"expected '-'", "yaml_indent"},
    {"expected key", "yaml_indent"},
    {"at the end of block sequence", "yaml_indent"},
    {"invalid value after mapping", "yaml_indent"},
};

const char *docbroken_code(const char *sentence)
{
    for (size_t i = 0; i < array_len(sentences); i++)
        if (strstr(sentence, sentences[i].part))
            return sentences[i].code;
    return "yaml_broken";
}
