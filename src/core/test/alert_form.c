/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of alert_form.h: the parts of a mail. Signatures and the forms of chats are tested in
 * alert.c. */
#include "core/alert/alert_form.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/unit.h"

/* Each curve is a part of its own, four at most, and no name of a job breaks a header. */
static void test_mail_with_pictures(void **state)
{
    char name[] = "x", from[] = "a@b.org";
    struct alert_receiver to = {.name = name, .kind = ALERT_KIND_MAIL, .from = from};
    json_t *alerts = json_array();
    struct alert_letter l;
    struct err err = {0};
    (void)state;
    for (int i = 0; i < 6; i++)
        (void)json_array_append_new(alerts, json_pack("{s:s,s:{s:s,s:f,s:[f,n,f]}}", "name",
                                                      "job\"\r\nBcc: e", "curve", "metric", "m",
                                                      "limit", 0.5, "points", 1.0, 0.25));
    json_t *p = json_pack("{s:s,s:[s],s:{s:o}}", "title", "it", "lines", "one", "incident",
                          "alerts", alerts);
    const json_t *const payloads[] = {p};
    const struct alert_order o = {
        .to = &to, .url = "smtp://x", .id = "msg_1", .payloads = payloads, .n = 1, .now = USEC_DAY};
    strv_add(&to.to, "c@d.org");
    assert_int_equal(alert_form(&o, &l, &err), 0);
    const char *body = buf_str(&l.body);
    size_t pictures = 0;
    for (const char *s = body; (s = strstr(s, "Content-Type: image/png")); s++)
        pictures++;
    assert_int_equal(pictures, 4);
    assert_non_null(strstr(body, "filename=\"job___Bcc__e.png\"\r\n"));
    assert_null(strstr(body, "\nBcc"));
    assert_true(str_ends(body, "\r\n--=_argus_part--\r\n"));
    for (const char *s = body; *s; s++)
        assert_true(*s != '\n' || s[-1] == '\r');
    alert_letter_release(&l);
    strv_release(&to.to);
    json_decref(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mail_with_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
