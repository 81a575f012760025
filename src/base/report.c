/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h. Quoted lines of Markdown are indented and not fenced: no line can end
 * an indented block. */
#include "base/report.h"

#include <string.h>

static const char *html_of(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

static void report_char(const struct report *r, char c, bool may_mark)
{
    const char *html = r->is_html ? html_of(c) : NULL;
    if (html)
        (void)buf_adds(r->out, html); /* overflow: out->failed, here and below */
    else if (!r->is_html && may_mark && strchr("\\`*_{}[]<>#|", c))
        (void)buf_addf(r->out, "\\%c", c);
    else
        (void)buf_addc(r->out, (unsigned char)c < ' ' || c == 0x7f ? ' ' : c);
}

static void report_text(const struct report *r, const char *text, bool may_mark)
{
    for (; *text; text++)
        report_char(r, *text, may_mark);
}

static void report_title(const struct report *r, int level, const char *text)
{
    if (r->is_html)
        (void)buf_addf(r->out, "<h%d>", level);
    else
        (void)buf_addf(r->out, "\n%s ", level == 1 ? "#" : "##");
    report_text(r, text, true);
    if (r->is_html)
        (void)buf_addf(r->out, "</h%d>\n", level);
    else
        (void)buf_adds(r->out, "\n\n");
}

void report_begin(const struct report *r, const char *title)
{
    if (r->is_html) {
        (void)buf_adds(r->out, "<!doctype html>\n<meta charset=\"utf-8\">\n<title>");
        report_text(r, title, true);
        (void)buf_adds(r->out, "</title>\n");
    }
    report_title(r, 1, title);
}

void report_heading(const struct report *r, const char *text)
{
    report_title(r, 2, text);
}

void report_list(const struct report *r, bool opens)
{
    if (r->is_html)
        (void)buf_adds(r->out, opens ? "<ul>\n" : "</ul>\n");
}

void report_item(const struct report *r, const char *label, const char *text)
{
    (void)buf_adds(r->out, r->is_html ? "<li>" : "- ");
    if (label) {
        report_text(r, label, true);
        (void)buf_adds(r->out, ": ");
    }
    report_text(r, text, true);
    (void)buf_adds(r->out, r->is_html ? "</li>\n" : "\n");
}

void report_paragraph(const struct report *r, const char *text)
{
    (void)buf_adds(r->out, r->is_html ? "<p>" : "");
    report_text(r, text, true);
    (void)buf_adds(r->out, r->is_html ? "</p>\n" : "\n\n");
}

void report_quote(const struct report *r, bool opens)
{
    if (r->is_html)
        (void)buf_adds(r->out, opens ? "<pre>\n" : "</pre>\n");
    else
        (void)buf_addc(r->out, '\n');
}

void report_quoted(const struct report *r, const char *line)
{
    (void)buf_adds(r->out, r->is_html ? "" : "    ");
    report_text(r, line, false);
    (void)buf_addc(r->out, '\n');
}
