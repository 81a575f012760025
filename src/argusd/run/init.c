/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - see init.h. Opens the store as the daemon does, so that it refuses while
 * a daemon runs, and waits until the token is on disk before it prints it. */
#include "argusd/run/init.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argusd/ground/events.h"
#include "argusd/ground/inventory.h"
#include "argusd/ground/settings.h"
#include "argusd/people/people.h"
#include "argusd/people/tokens.h"
#include "argusd/run/ownnets.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"

static int init_say(const char *sentence)
{
    (void)fprintf(stderr, "argusd init: %s\n", sentence); /* nowhere else to say it */
    return 1;
}

/* A cluster whose nodes joined Ray by themselves tells its figures without another word. */
static void write_networks(const char *ray, struct buf *out)
{
    struct strv v = {0};
    ownnets_find(inventory_is_here(ray), &v);
    _cleanup_(freep) char *list = strv_join(&v, "\", \"");
    if (v.n)
        (void)buf_addf(out,
                       "  # where nodes that joined Ray by themselves are asked for their figures: "
                       "this machine's networks\n"
                       "  networks: [\"%s\"]\n",
                       list); /* it fits */
    strv_release(&v);
}

/* Without another word the store lies beside the file, wherever that is said from. */
static int write_config(const struct init_args *a, struct err *err)
{
    struct buf out = BUF_INIT(16 << 10);
    const char *slash = strrchr(a->config, '/');
    const char *ray = str_or(a->ray, "http://127.0.0.1:8265");
    _cleanup_(freep) char *dir =
        slash ? xstrndup(a->config, (size_t)(slash - a->config) + 1) : xstrdup(".");
    int r = file_mkdirs(dir, 0755, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *place = realpath(dir, NULL);
    if (!place)
        return err_set(err, -errno, "'%s' cannot be used: %s", dir, strerror(errno));
    _cleanup_(freep) char *state = a->state_dir
                                       ? xstrdup(a->state_dir)
                                       : xasprintf("%s/state", str_eq(place, "/") ? "" : place);
    (void)buf_addf(&out,
                   "# Argus. Every key: argusd --list-config\n"
                   "shared_root: %s\n"
                   "listen: %s\n"
                   "state_dir: %s\n"
                   "ray:\n"
                   "  address: %s\n",
                   a->shared_root, str_or(a->listen, "127.0.0.1:8080"), state, ray); /* fits */
    write_networks(ray, &out);
    r = file_write(a->config, out.data, out.len, 0644, FILE_SYNC, err);
    buf_release(&out);
    return r;
}

struct state {
    struct tokens *tokens;
    struct people *people;
};

static void init_on_token_row(const struct store_token *row, void *arg)
{
    struct state *s = arg;
    tokens_restore(s->tokens, row);
    people_imply_user(s->people, row);
}

static void init_on_user_row(const struct store_user *row, void *arg)
{
    struct state *s = arg;
    people_restore_user(s->people, row);
}

static void init_on_entry_row(const struct store_entry *entry, void *arg)
{
    struct state *s = arg;
    (void)people_restore_entry(s->people, entry); /* others are of no use here */
}

/* Whoever may write here may do everything: a user is made, or made fit for the role. */
static void ensure_user(struct state *s, const char *name, enum http_role role, usec_t now)
{
    struct person *p = people_find(s->people, name);
    if (!p)
        p = people_add(s->people, name, role, now);
    if (p->role < (int)role)
        p->role = (int)role;
    p->disabled = false;
    people_save(s->people, p);
}

static void note_token(struct store *store, const struct store_last *last, const struct token *k)
{
    struct events *ev = events_new(store, last);
    _cleanup_(freep) char *object = xasprintf("token/%s/%s", k->user, k->id);
    char text[200];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("role", http_role_to_string(k->role)),
                               MESSAGE_STR("user", k->user)));
    struct access_thing thing = {.kind = ACCESS_KIND_TOKEN, .name = k->id, .owner = k->user};
    struct events_note note = {.thing = &thing,
                               .kind = "token_added",
                               .actor = "argusd",
                               .object = object,
                               .code = "token_added",
                               .text = text};
    events_add(ev, &note, k->created_at);
    events_free(ev);
}

static int make_token(const struct init_args *a,
                      struct store *store,
                      struct state *s,
                      char ret[static TOKEN_TEXT_MAX],
                      struct err *err)
{
    enum http_role role = HTTP_ROLE_ADMIN;
    static const struct store_load_ops ops = {
        .on_user = init_on_user_row, .on_entry = init_on_entry_row, .on_token = init_on_token_row};
    const char *user = a->user ? a->user : "admin";
    usec_t now = clock_wall();
    struct store_last last;
    int r = store_load(store, &ops, s, &last, err);
    if (r == 0 && a->role)
        r = http_role_from_string(a->role, &role, err);
    if (r == 0 && !people_find(s->people, user)) /* those of before keep their names */
        r = access_check_name("user", user, err);
    if (r < 0)
        return r;
    people_restored(s->people);
    if (!a->user && tokens_count(s->tokens))
        return err_set(err, ERR_USAGE,
                       "there are tokens already; add one with --user NAME "
                       "--role admin|user|viewer");
    ensure_user(s, user, role, now);
    const struct token *k =
        tokens_add(s->tokens, a->user ? a->user : "first", user, role, now, 0, ret);
    note_token(store, &last, k);
    return 0;
}

static int with_store(const struct init_args *a, const struct settings *settings, struct err *err)
{
    uv_loop_t loop;
    struct state s = {0};
    struct store *store = NULL;
    char token[TOKEN_TEXT_MAX] = "";
    _cleanup_(freep) char *path = settings_store_path(settings);
    if (uv_loop_init(&loop) < 0)
        return err_set(err, ERR_INTERNAL, "no event loop");
    struct store_options opt = {.path = path, .loop = &loop};
    int r = store_open(&opt, &store, err);
    if (r < 0) {
        (void)uv_run(&loop, UV_RUN_DEFAULT); /* lets go of what was begun */
        (void)uv_loop_close(&loop);          /* nothing is left in it */
        return r;
    }
    s.tokens = tokens_new(store);
    s.people = people_new(store);
    r = make_token(a, store, &s, token, err);
    struct err close_err = {0};
    int c = store_close(store, &close_err); /* commits: after this the token is on disk */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    tokens_free(s.tokens);
    people_free(s.people);
    (void)uv_loop_close(&loop); /* nothing is left in it */
    if (r == 0 && c < 0)
        return err_copy(err, c, &close_err);
    if (r == 0)
        (void)printf("%s\n", token); /* a closed stdout shows in fflush below */
    return r;
}

/* What lies above it may be for others, too. */
static int make_state_dir(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    _cleanup_(freep) char *above = xstrndup(path, slash ? (size_t)(slash - path) : 0);
    int r = *above ? file_mkdirs(above, 0755, err) : 0;
    if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, -errno, "state_dir '%s' cannot be made: %s", path, strerror(errno));
    return r;
}

int init_run(const struct init_args *a)
{
    struct settings settings = {0};
    struct problems ps = {0};
    struct err err = {0};
    if ((a->user == NULL) != (a->role == NULL))
        return init_say("--user and --role go together") + 1;
    int looked = access(a->config, F_OK) < 0 ? -errno : 0;
    if (looked < 0 && !file_is_absence(looked)) { /* it may be there: it is not written over */
        (void)err_set(&err, looked, "cannot look at '%s': %s", a->config, strerror(-looked));
        return init_say(err.text);
    }
    if (looked < 0 && a->shared_root && write_config(a, &err) < 0)
        return init_say(err.text);
    if (settings_load(a->config, &settings, &ps) < 0) {
        struct buf out = BUF_INIT(64 << 10);
        problems_to_text(&ps, a->config, MESSAGE_ENGLISH, &out);
        (void)fputs(buf_str(&out), stderr); /* nowhere else to say it */
        buf_release(&out);
        problems_release(&ps);
        settings_release(&settings);
        return init_say("give --config FILE that exists, or --shared-root DIR to write one") + 1;
    }
    problems_release(&ps);
    int r = make_state_dir(settings.state_dir, &err);
    if (r == 0)
        r = with_store(a, &settings, &err);
    if (r == 0)
        (void)fprintf(stderr,
                      "this token is shown once; keep it, or use it now:\n"
                      "  argus login http://%s --token TOKEN\n",
                      settings.listen); /* talk */
    settings_release(&settings);
    return r < 0 ? init_say(err.text) : fflush(stdout) ? 1 : 0;
}
