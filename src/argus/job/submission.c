/* SPDX-License-Identifier: Apache-2.0 */
/* submission.c - one Idempotency-Key for all tries of one submit, so that a lost
 * answer is asked for again instead of making a second job. See submission.h. */
#include "argus/job/submission.h"

#include <errno.h>

#include "argus/job/overlay.h"
#include "base/digest/hash.h"
#include "base/doc/problem.h"
#include "base/file.h"
#include "base/message.h"
#include "base/said.h"
#include "base/str.h"

/* A server that restarts is back within these tries (about 8 s). */
enum { SUBMIT_TRIES = 5 };

static void submission_begin(struct submission *s, const char *name)
{
    *s = (struct submission){
        .name = name, .text = BUF_INIT(SUBMISSION_MAX), .sent = BUF_INIT(SUBMISSION_MAX)};
    hash_init();
    (void)random_hex(s->key);
}

int submission_compose(struct submission *s, const char *name, const char *text, struct err *err)
{
    submission_begin(s, name);
    if (buf_adds(&s->text, text) < 0)
        return message_refuse(err, ERR_TOO_LARGE, "cli_are_long",
                              MESSAGE_ARGS(MESSAGE_STR("what", name)));
    return 0;
}

static int submission_read_file(struct submission *s, const char *file, struct err *err)
{
    submission_begin(s, str_eq(file, "-") ? "stdin" : file);
    int r = file_read_input(file, &s->text, err);
    return r == -ENOENT ? message_refuse(err, ERR_USAGE, "cli_no_file",
                                         MESSAGE_ARGS(MESSAGE_STR("path", file)))
                        : r;
}

int submission_read(struct submission *s,
                    const char *file,
                    const struct submission_wish *wish,
                    struct err *err)
{
    _cleanup_(strv_release) struct strv sets = {0};
    int r =
        file ? submission_read_file(s, file, err) : submission_compose(s, wish->preset, "{}", err);
    if (wish->preset)
        strv_addf(&sets, "preset=\"%s\"", wish->preset);
    for (size_t i = 0; i < wish->set.n; i++)
        strv_add(&sets, wish->set.v[i]);
    if (r < 0 || !sets.n)
        return r;
    return overlay_apply(buf_str(&s->text), s->text.len, &sets, &s->sent, err);
}

void submission_release(struct submission *s)
{
    buf_release(&s->text);
    buf_release(&s->sent);
}

/* After --set the server's places are those of our own text, and of a filled preset there are
 * none: look the field up instead. */
static void submission_place(const struct submission *s, const char *field, int *line, int *column)
{
    if (s->sent.len || !*line)
        overlay_place(buf_str(&s->text), s->text.len, field, line, column);
}

static void add_problem(const struct submission *s, const json_t *v, struct problems *ps)
{
    bool is_warning = str_eq(json_get_str(v, "level", ""), "warning");
    const char *field = json_get_str(v, "field", "");
    int line = (int)json_get_int(v, "line", 0), column = (int)json_get_int(v, "column", 0);
    submission_place(s, field, &line, &column);
    problems_add_said(ps, is_warning ? PROBLEM_WARNING : PROBLEM_ERROR, field, line, column,
                      json_get_str(v, "hint", NULL), json_get_str(v, "detail", "not accepted"));
}

/* How many problems were told. */
static size_t tell_problems(const struct submission *s, const json_t *answer)
{
    static const char *const keys[] = {"problems", "warnings"};
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(1 << 20);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(1 << 20);
    for (size_t k = 0; k < array_len(keys); k++) {
        size_t i;
        json_t *v;
        json_array_foreach (json_get_array(answer, keys[k]), i, v)
            if (json_is_object(v))
                add_problem(s, v, &ps);
    }
    problems_to_text(&ps, s->name, MESSAGE_ENGLISH, &text); /* PROBLEMS_MAX short ones fit */
    for (const char *p = buf_str(&text); *p; p++) {
        unsigned char c = (unsigned char)*p;
        (void)buf_addc(&clean, c == '\n' || (c >= 0x20 && c != 0x7f) ? *p : '?');
    }
    (void)fputs(buf_str(&clean), stderr);
    return ps.n;
}

static int refusal(const struct submission *s, const struct response *response, struct err *err)
{
    struct err e = {0};
    _cleanup_(json_unrefp) json_t *problem = NULL;
    int r = response_error(response, &e);
    if (json_parse(buf_str(&response->body), response->body.len, CLIENT_BODY_MAX, &problem, NULL) <
        0)
        problem = NULL; /* the status says enough */
    said_in(problem, response->language);
    size_t n = tell_problems(s, problem);
    if (n)
        return message_refuse(
            err, r, "cli_spec_refused",
            MESSAGE_ARGS(MESSAGE_STR("path", s->name), MESSAGE_NUM("problems", n)));
    return err_copy(err, r, &e);
}

static int send_it(struct submission *s,
                   struct cli *cli,
                   const char *method,
                   const char *path,
                   json_t **ret,
                   struct err *err)
{
    const struct buf *body = s->sent.len ? &s->sent : &s->text;
    struct request request = {.method = method,
                              .path = path,
                              .content_type = "application/yaml",
                              .body = buf_str(body),
                              .body_len = body->len,
                              .idempotency_key = s->key,
                              .tries = SUBMIT_TRIES};
    _cleanup_(response_release) struct response response = {0};
    int r = client_call(cli->client, &request, &response, err);
    if (r < 0)
        return r;
    if (response.status >= 400)
        return refusal(s, &response, err);
    r = json_parse(buf_str(&response.body), response.body.len, CLIENT_BODY_MAX, ret, err);
    client_say(cli->client, r < 0 ? NULL : *ret);
    if (r >= 0)
        (void)tell_problems(s, *ret); /* warnings: how many does not matter */
    return r;
}

int submission_post(struct submission *s,
                    struct cli *cli,
                    const char *path,
                    json_t **ret,
                    struct err *err)
{
    return send_it(s, cli, "POST", path, ret, err);
}

int submission_put(struct submission *s,
                   struct cli *cli,
                   const char *path,
                   json_t **ret,
                   struct err *err)
{
    return send_it(s, cli, "PUT", path, ret, err);
}
