/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what a report writes in either form, with texts that would be markup. */
#include "base/report.h"

#include "base/unit.h"

static void write_all(struct buf *out, bool is_html)
{
    const struct report r = {.out = out, .is_html = is_html};
    report_begin(&r, "a <b>");
    report_paragraph(&r, "# no heading\nof ours");
    report_heading(&r, "part");
    report_list(&r, true);
    report_item(&r, "key", "[link](x) & \"more\"");
    report_item(&r, NULL, "\033[31mred");
    report_list(&r, false);
    report_quote(&r, true);
    report_quoted(&r, "```");
    report_quoted(&r, "<script>");
    report_quote(&r, false);
}

static void test_markdown(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(4096);
    write_all(&out, false);
    assert_string_equal(buf_str(&out), "\n# a \\<b\\>\n\n\\# no heading of ours\n\n\n## part\n\n"
                                       "- key: \\[link\\](x) & \"more\"\n-  \\[31mred\n"
                                       "\n    ```\n    <script>\n\n");
    buf_release(&out);
}

static void test_html(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(4096);
    write_all(&out, true);
    assert_string_equal(buf_str(&out),
                        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>a &lt;b&gt;</title>\n"
                        "<h1>a &lt;b&gt;</h1>\n<p># no heading of ours</p>\n<h2>part</h2>\n"
                        "<ul>\n<li>key: [link](x) &amp; &quot;more&quot;</li>\n<li> [31mred</li>\n"
                        "</ul>\n<pre>\n```\n&lt;script&gt;\n</pre>\n");
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_markdown),
                                       cmocka_unit_test(test_html)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
