/* SPDX-License-Identifier: Apache-2.0 */
/* preset_holes.h - the holes of a preset and their marks in its spec: preset*.c's own. */
#pragma once
#include "core/preset/preset.h"

#define PRESET_MARK "${hole:"

struct preset_hole {
    const char *name; /* of the tree */
    int type;         /* enum preset_type */
    bool required, is_used;
    char *description;
    const struct node *dflt, *example;
};

struct preset {
    struct doc *doc;
    char *description;
    const struct node *given_holes, *spec;
    struct preset_hole *holes;
    size_t n;
};

/* NULL: there is none of that name. Borrowed. */
struct preset_hole *preset_find_hole(const struct preset *p, const char *name, size_t len);
/* "a, b (required), c": what one may fill; yours. */
char *preset_list_holes(const struct preset *p);
/* The next mark in text: where it begins; its name and its end. NULL: there is none. */
const char *preset_find_mark(const char *text,
                             const char **ret_name,
                             size_t *ret_len,
                             const char **ret_end);

bool preset_is_of_type(int type, const struct node *v);
const char *preset_type_sentence(int type); /* "a whole number" */
/* The value for a sentence: its text, or what it is. */
const char *preset_shown(const struct node *v);
