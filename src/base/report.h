/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - a report in Markdown or HTML: headings, lists of items, quoted lines.
 *
 * Texts are those of jobs, machines and people: nothing in them is markup, control characters are
 * spaces. What does not fit sets out->failed, as buf.h has it. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

struct report {
    struct buf *out;
    bool is_html;
};

/* The title of the page, and the heading of all. */
void report_begin(const struct report *r, const char *title);
void report_heading(const struct report *r, const char *text);
/* Items stand between report_list(true) and report_list(false). label NULL: the text alone. */
void report_list(const struct report *r, bool opens);
void report_item(const struct report *r, const char *label, const char *text);
void report_paragraph(const struct report *r, const char *text);
/* Lines as they were written, one call for each, between the two calls of report_quote(). */
void report_quote(const struct report *r, bool opens);
void report_quoted(const struct report *r, const char *line);
