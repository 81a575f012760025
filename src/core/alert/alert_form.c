/* SPDX-License-Identifier: Apache-2.0 */
/* alert_form.c - see alert_form.h.
 *
 * Bodies are written member by member, since text of others stands in them. Signatures are those of
 * the makers' documents; tests compare them with ones made by other programs. */
#include "core/alert/alert_form.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/digest/seal.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/training/curve.h"

enum {
    LETTER_MAX = 128 << 10,
    TEXT_BYTES_MAX = 16000,
    WECOM_MAX = 2000,
    ANSWER_MAX = 64 << 10,
    SUBJECT_MAX = 180,
    PICTURES_MAX = 4,     /* of a mail: with its text they fit into LETTER_MAX */
    WORD_BYTES = 45,      /* 60 of base64, and 12 around them */
    FIRST_WORD_BYTES = 39 /* behind "Subject: " */
};
static const usec_t ALERTMANAGER_LASTS = 4 * USEC_MIN;

void alert_letter_release(struct alert_letter *l)
{
    if (l->url)
        seal_forget(l->url, strlen(l->url));
    free(l->url);
    for (size_t i = 0; i < l->headers.n; i++)
        seal_forget(l->headers.v[i], strlen(l->headers.v[i]));
    strv_release(&l->headers);
    buf_release(&l->body);
    *l = (struct alert_letter){0};
}

/* ---- signatures ---- */

static char *sign_base64(const void *key, size_t key_n, const char *text)
{
    unsigned char mac[HASH_BYTES];
    hash_hmac(key, key_n, text, strlen(text), mac);
    return hash_base64(mac, sizeof(mac));
}

/* Standard Webhooks: of `id.timestamp.body`, with what follows whsec_ in base64. */
static int sign_webhook(const struct alert_order *o, struct alert_letter *l, struct err *err)
{
    static const char prefix[] = "whsec_";
    long long ts = (long long)(o->now / USEC_SEC);
    size_t n = 0;
    strv_addf(&l->headers, "webhook-id: %s", o->id);
    strv_addf(&l->headers, "webhook-timestamp: %lld", ts);
    if (!o->secret)
        return 0;
    if (!str_starts(o->secret, prefix))
        return err_set(err, ERR_USAGE, "the secret '%s' does not begin with whsec_", o->to->secret);
    unsigned char *key = hash_from_base64(o->secret + strlen(prefix), &n);
    if (!key)
        return err_set(err, ERR_USAGE, "the secret '%s' is not valid base64 behind whsec_",
                       o->to->secret);
    _cleanup_(freep) char *text = xasprintf("%s.%lld.%s", o->id, ts, buf_str(&l->body));
    _cleanup_(freep) char *sign = sign_base64(key, n, text);
    seal_forget(key, n);
    free(key);
    strv_addf(&l->headers, "webhook-signature: v1,%s", sign);
    return 0;
}

/* DingTalk: in the URL, of `ms\nsecret` with the secret as key. */
static void sign_dingtalk(const struct alert_order *o, struct alert_letter *l)
{
    if (!o->secret)
        return;
    struct buf url = BUF_INIT(8192);
    long long ms = (long long)(o->now / USEC_MS);
    _cleanup_(freep) char *text = xasprintf("%lld\n%s", ms, o->secret);
    _cleanup_(freep) char *sign = sign_base64(o->secret, strlen(o->secret), text);
    (void)buf_addf(&url, "%s%ctimestamp=%lld&sign=", l->url, strchr(l->url, '?') ? '&' : '?', ms);
    buf_add_url(&url, sign);
    free(l->url);
    l->url = buf_take(&url);
    seal_forget(text, strlen(text));
}

/* Feishu: in the body; the key is `s\nsecret`, and the message is empty. */
static void sign_feishu(const struct alert_order *o, struct jout *j)
{
    char ts[32];
    if (!o->secret)
        return;
    text_printf(ts, "%lld", (long long)(o->now / USEC_SEC));
    _cleanup_(freep) char *key = xasprintf("%s\n%s", ts, o->secret);
    _cleanup_(freep) char *sign = sign_base64(key, strlen(key), "");
    jout_str(j, "timestamp", ts);
    jout_str(j, "sign", sign);
    seal_forget(key, strlen(key));
}

/* ---- words ---- */

static void say_one(const struct alert_order *o, const json_t *p, struct buf *out)
{
    bool zh = o->to->language == MESSAGE_CHINESE;
    const json_t *line;
    size_t i;
    (void)buf_adds(out, json_get_str(p, zh ? "title_zh" : "title", ""));
    (void)buf_adds(out, "\n");
    json_array_foreach (json_get_array(p, zh ? "lines_zh" : "lines"), i, line)
        (void)buf_addf(out, "- %s\n", str_or(json_string_value(line), ""));
}

/* Names and errors of jobs are texts of others, and chats take `<at user_id="all">` for a call to
 * everybody: there is no way to quote it there but another character. Heap. */
static char *say_without_tags(char *taken)
{
    struct buf out = BUF_INIT(3 * LETTER_MAX);
    for (const char *s = taken; *s; s++)
        (void)(*s == '<' ? buf_adds(&out, "\xef\xbc\x9c") : buf_addc(&out, *s)); /* it fits */
    free(taken);
    return buf_take(&out);
}

/* Whole lines, as many bytes as fit. Heap. */
static char *say_all(const struct alert_order *o, size_t most)
{
    bool is_chat = o->to->kind == ALERT_KIND_FEISHU || o->to->kind == ALERT_KIND_DINGTALK ||
                   o->to->kind == ALERT_KIND_WECOM;
    struct buf out = BUF_INIT(LETTER_MAX);
    for (size_t i = 0; i < o->n; i++)
        say_one(o, o->payloads[i], &out);
    char *text = buf_take(&out);
    if (is_chat)
        text = say_without_tags(text);
    if (strlen(text) > most) {
        static const char cut[] = "\n...";
        memcpy(text + str_cut(text, most - sizeof(cut)), cut, sizeof(cut));
    }
    return text;
}

static const char *say_title(const struct alert_order *o)
{
    return json_get_str(o->payloads[0], o->to->language == MESSAGE_CHINESE ? "title_zh" : "title",
                        "");
}

/* ---- forms ---- */

static void form_feishu(const struct alert_order *o, struct jout *j)
{
    _cleanup_(freep) char *text = say_all(o, TEXT_BYTES_MAX);
    jout_open(j, NULL, '{');
    sign_feishu(o, j);
    jout_str(j, "msg_type", "text");
    jout_open(j, "content", '{');
    jout_str(j, "text", text);
    jout_close(j, '}');
    jout_close(j, '}');
}

/* DingTalk and WeCom. */
static void form_msgtype(const struct alert_order *o, size_t most, struct jout *j)
{
    _cleanup_(freep) char *text = say_all(o, most);
    jout_open(j, NULL, '{');
    jout_str(j, "msgtype", "text");
    jout_open(j, "text", '{');
    jout_str(j, "content", text);
    jout_close(j, '}');
    jout_close(j, '}');
}

/* Slack's form takes & < > as markup. */
static void form_slack(const struct alert_order *o, struct jout *j)
{
    _cleanup_(freep) char *text = say_all(o, TEXT_BYTES_MAX);
    struct buf out = BUF_INIT(LETTER_MAX);
    for (const char *s = text; *s; s++)
        if (*s == '&' || *s == '<' || *s == '>')
            (void)buf_adds(&out, *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : "&gt;");
        else
            (void)buf_addc(&out, *s);
    jout_open(j, NULL, '{');
    jout_str(j, "text", buf_str(&out));
    jout_close(j, '}');
    buf_release(&out);
}

static void alertmanager_labels(const json_t *a, const char *incident, struct jout *j)
{
    static const char *const keys[] = {"severity", "kind", "name", "user", "project"};
    jout_open(j, "labels", '{');
    jout_str(j, "alertname", json_get_str(a, "rule", "argus"));
    for (size_t i = 0; i < array_len(keys); i++)
        if (*json_get_str(a, keys[i], "")) /* an empty label is none */
            jout_str(j, keys[i], json_get_str(a, keys[i], ""));
    jout_str(j, "incident", incident);
    jout_close(j, '}');
}

/* Without an end Alertmanager ends it after five minutes by itself: each says how long it holds. */
static void form_alertmanager(const struct alert_order *o, struct jout *j)
{
    const json_t *a;
    size_t k;
    jout_open(j, NULL, '[');
    for (size_t i = 0; i < o->n; i++) {
        const json_t *incident = json_get_object(o->payloads[i], "incident");
        json_array_foreach (json_get_array(incident, "alerts"), k, a) {
            bool open = json_get_bool(a, "open", false);
            jout_open(j, NULL, '{');
            alertmanager_labels(a, json_get_str(incident, "id", ""), j);
            jout_open(j, "annotations", '{');
            jout_str(j, "summary", json_get_str(a, "text", ""));
            jout_close(j, '}');
            jout_str(j, "startsAt", json_get_str(a, "since", NULL));
            if (open)
                jout_time(j, "endsAt", o->now + ALERTMANAGER_LASTS);
            else
                jout_str(j, "endsAt", json_get_str(a, "ended_at", NULL));
            jout_close(j, '}');
        }
    }
    jout_close(j, ']');
}

/* Encoded words of RFC 2047: at most 75 characters each and 76 a line, none parts a character of
 * several bytes. */
static void form_subject(const char *text, struct buf *out)
{
    size_t left = str_cut(text, SUBJECT_MAX), most = FIRST_WORD_BYTES;
    (void)buf_adds(out, "Subject:");
    for (size_t n; left > 0; text += n, left -= n, most = WORD_BYTES) {
        n = str_cut(text, left < most ? left : most);
        _cleanup_(freep) char *coded = hash_base64(text, n);
        (void)buf_addf(out, " =?UTF-8?B?%s?=\r\n", coded);
    }
}

/* "Fri, 27 Nov 2026 08:00:00 +0000" of RFC 5322, which no language changes. */
static void form_date(usec_t at, struct buf *out)
{
    static const char *const days[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    char text[CLOCK_TEXT_MAX]; /* 2026-11-27T08:00:00.000Z */
    clock_to_string(at, text);
    int month = (text[5] - '0') * 10 + text[6] - '1';
    (void)buf_addf(out, "Date: %s, %.2s %s %.4s %.8s +0000\r\n", days[at / USEC_DAY % 7], text + 8,
                   months[month >= 0 && month < 12 ? month : 0], text, text + 11);
}

/* ---- the parts of a mail ---- */

/* No line of base64 begins with it. */
static const char boundary[] = "=_argus_part";

static void mail_add_base64(const void *p, size_t n, struct buf *out)
{
    _cleanup_(freep) char *coded = hash_base64(p, n);
    for (size_t i = 0, len = strlen(coded); i < len; i += 76)
        (void)buf_addf(out, "%.76s\r\n", coded + i);
}

static void mail_add_text(const char *text, struct buf *out)
{
    (void)buf_adds(out, "Content-Type: text/plain; charset=utf-8\r\n"
                        "Content-Transfer-Encoding: base64\r\n\r\n");
    mail_add_base64(text, strlen(text), out);
}

/* Its file has the name of the job, as far as no header can be broken by that. */
static void mail_add_picture(const json_t *alert, const struct curve *c, struct buf *out)
{
    struct buf picture = BUF_INIT(CURVE_PNG_MAX);
    char name[64];
    text_copy(name, json_get_str(alert, "name", ""));
    for (char *s = name; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '-' && *s != '.')
            *s = '_';
    curve_picture(c, &picture);
    (void)buf_addf(out,
                   "--%s\r\nContent-Type: image/png; name=\"%s.png\"\r\n"
                   "Content-Transfer-Encoding: base64\r\n"
                   "Content-Disposition: inline; filename=\"%s.png\"\r\n\r\n",
                   boundary, name, name);
    mail_add_base64(picture.data, picture.len, out);
    buf_release(&picture);
}

/* Adds the curves of the first few alerts that have one; returns how many there were. */
static size_t mail_add_pictures(const struct alert_order *o, struct buf *out)
{
    size_t n = 0, k;
    const json_t *a;
    struct curve c;
    for (size_t i = 0; i < o->n; i++)
        json_array_foreach (json_get_array(json_get_object(o->payloads[i], "incident"), "alerts"),
                            k, a)
            if (n < PICTURES_MAX && curve_from_json(json_get_object(a, "curve"), &c)) {
                mail_add_picture(a, &c, out);
                n++;
            }
    return n;
}

/* RFC 5322: headers, then the text in base64, which no line of ours can break. With pictures it is
 * the first of several parts (RFC 2046). */
static void form_mail(const struct alert_order *o, struct buf *out)
{
    _cleanup_(freep) char *text = say_all(o, TEXT_BYTES_MAX);
    struct buf pictures = BUF_INIT(LETTER_MAX);
    form_date(o->now, out);
    (void)buf_addf(out, "From: <%s>\r\n", o->to->from);
    for (size_t i = 0; i < o->to->to.n; i++)
        (void)buf_addf(out, "%s<%s>%s", i ? " " : "To: ", o->to->to.v[i],
                       i + 1 < o->to->to.n ? ",\r\n" : "\r\n");
    form_subject(say_title(o), out);
    (void)buf_addf(out, "Message-ID: <%s%s>\r\nMIME-Version: 1.0\r\n", o->id,
                   str_or(strchr(o->to->from, '@'), "@argus"));
    (void)buf_adds(out, "Auto-Submitted: auto-generated\r\n");
    bool has_pictures = mail_add_pictures(o, &pictures) > 0;
    if (has_pictures)
        (void)buf_addf(out, "Content-Type: multipart/mixed; boundary=\"%s\"\r\n\r\n--%s\r\n",
                       boundary, boundary);
    mail_add_text(text, out);
    if (has_pictures)
        (void)(buf_add(out, pictures.data, pictures.len) < 0 ||
               buf_addf(out, "--%s--\r\n", boundary)); /* it failed: the letter says so */
    buf_release(&pictures);
}

int alert_form(const struct alert_order *o, struct alert_letter *ret, struct err *err)
{
    size_t room = o->body ? strlen(o->body) + 1 : LETTER_MAX;
    *ret = (struct alert_letter){.url = xstrdup(str_or(o->url, "")), .body = BUF_INIT(room)};
    struct jout j = jout_begin(&ret->body);
    int r = 0;
    switch ((enum alert_kind)o->to->kind) {
    case ALERT_KIND_FEISHU:
        form_feishu(o, &j);
        break;
    case ALERT_KIND_DINGTALK:
        form_msgtype(o, TEXT_BYTES_MAX, &j);
        sign_dingtalk(o, ret);
        break;
    case ALERT_KIND_WECOM:
        form_msgtype(o, WECOM_MAX, &j);
        break;
    case ALERT_KIND_SLACK:
        form_slack(o, &j);
        break;
    case ALERT_KIND_ALERTMANAGER:
        form_alertmanager(o, &j);
        break;
    case ALERT_KIND_MAIL:
        form_mail(o, &ret->body);
        break;
    case ALERT_KIND_WEBHOOK:
    case ALERT_KIND_LOG:
    case ALERT_KIND_END: {
        _cleanup_(freep) char *text = o->body ? NULL : json_dumps(o->payloads[0], JSON_COMPACT);
        (void)buf_adds(&ret->body, o->body ? o->body : str_or(text, "{}"));
        r = o->to->kind == ALERT_KIND_WEBHOOK ? sign_webhook(o, ret, err) : 0;
        break;
    }
    }
    if (r == 0 && ret->body.failed)
        r = message_refuse(err, ERR_TOO_LARGE, "letter_large",
                           MESSAGE_ARGS(MESSAGE_NUM("most", LETTER_MAX)));
    return r;
}

/* ---- answers ---- */

/* {"code": 0} of Feishu, {"errcode": 0} of the others. Rates may pass; the rest is ours to mend. */
static enum alert_verdict judge_chat(const char *key, const char *body, size_t len, struct err *err)
{
    static const int64_t rates[] = {11232, 130101, 90030, 45009, -1, 9999};
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (json_parse(body, len, ANSWER_MAX, &o, NULL) < 0 || !json_is_object(o))
        return (void)message_refuse(err, ERR_UNAVAILABLE, "letter_no_json", MESSAGE_NO_ARGS),
               ALERT_AGAIN;
    const char *word = json_object_get(o, key) ? key : "StatusCode"; /* of an older Feishu */
    int64_t code = json_get_int(o, word, -1);
    if (code == 0)
        return ALERT_TAKEN;
    const char *said = json_get_str(o, "errmsg", json_get_str(o, "msg", "no reason told"));
    (void)message_refuse(err, ERR_REFUSED, "letter_refused",
                         MESSAGE_ARGS(MESSAGE_STR("word", word),
                                      MESSAGE_NUM("code", (long long)code),
                                      MESSAGE_STR("said", said)));
    for (size_t i = 0; i < array_len(rates); i++)
        if (code == rates[i])
            return ALERT_AGAIN;
    return ALERT_REFUSED;
}

static enum alert_verdict judge_status(int status, struct err *err)
{
    if (status >= 200 && status < 300)
        return ALERT_TAKEN;
    (void)message_refuse(err, ERR_UNAVAILABLE, "letter_status",
                         MESSAGE_ARGS(MESSAGE_NUM("status", status)));
    if (status >= 300 && status < 400)
        (void)message_refuse(err, ERR_REFUSED, "letter_redirect",
                             MESSAGE_ARGS(MESSAGE_NUM("status", status)));
    bool again = status >= 500 || status == 408 || status == 425 || status == 429;
    return again ? ALERT_AGAIN : ALERT_REFUSED;
}

/* 4xx is later, as grey-listing has it; and so is a login that the server wants otherwise, which is
 * no answer to this mail. */
static enum alert_verdict judge_mail(int status, struct err *err)
{
    bool is_login = status == 530 || status == 534 || status == 535 || status == 538;
    if (status >= 200 && status < 300)
        return ALERT_TAKEN;
    (void)message_refuse(err, ERR_UNAVAILABLE, "letter_mail_status",
                         MESSAGE_ARGS(MESSAGE_NUM("status", status)));
    return status >= 500 && !is_login ? ALERT_REFUSED : ALERT_AGAIN;
}

enum alert_verdict alert_judge(enum alert_kind kind,
                               int status,
                               const char *body,
                               size_t len,
                               struct err *err)
{
    if (kind == ALERT_KIND_MAIL)
        return judge_mail(status, err);
    enum alert_verdict v = judge_status(status, err);
    if (v != ALERT_TAKEN)
        return v;
    if (kind == ALERT_KIND_FEISHU)
        return judge_chat("code", body, len, err);
    if (kind == ALERT_KIND_DINGTALK || kind == ALERT_KIND_WECOM)
        return judge_chat("errcode", body, len, err);
    return ALERT_TAKEN;
}
