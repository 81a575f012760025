/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - reads launch.json and the secrets and makes the environment; see order.h. */
#define _GNU_SOURCE
#include "shepherd/attempt/order.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"

void order_release(struct order *o)
{
    launch_release(&o->launch);
    pairs_release(&o->env);
}

void order_environment(const struct launch *l, const char *const *base, struct pairs *env)
{
    pairs_release(env);
    for (; base && *base; base++) {
        const char *equals = strchr(*base, '=');
        if (!equals || equals == *base) /* no variable */
            continue;
        _cleanup_(freep) char *name = xstrndup(*base, (size_t)(equals - *base));
        if (!pairs_find(env, name)) /* the first one counts, as for getenv() */
            pairs_set(env, name, equals + 1);
    }
    for (size_t i = 0; i < l->env.n; i++)
        pairs_set(env, l->env.v[i].key, l->env.v[i].value);
    if (l->worker_secrets) /* for Ray's workers: the command has them here */
        pairs_set(env, SECRETS_ENV, "");
    if (!l->pythonpath_prefix)
        return;
    _cleanup_(freep) char *path =
        launch_pythonpath(l->pythonpath_prefix, pairs_find(env, "PYTHONPATH"));
    pairs_set(env, "PYTHONPATH", path);
}

static int read_launch(const char *dir, struct launch *ret, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_LAUNCH, dir);
    _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
    int r = file_read(path, &text, err);
    if (r == -ENOENT)
        return message_refuse(err, r, "shepherd_no_launch",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    if (r < 0)
        return r;
    r = launch_from_json(buf_str(&text), text.len, ret, err);
    return r < 0 ? message_refuse(err, r, "shepherd_bad_launch",
                                  MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_ERR("why", err)))
                 : 0;
}

static int order_read_secrets(const char *dir, struct launch *l, struct err *err)
{
    if (!l->secrets)
        return 0;
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, l->secrets);
    _cleanup_(buf_release) struct buf text = BUF_INIT(LAUNCH_MAX_BYTES);
    int r = file_read(path, &text, err);
    if (r == 0)
        r = launch_secrets_add(l, buf_str(&text), text.len, err);
    if (text.data)
        explicit_bzero(text.data, text.len);
    if (r < 0)
        return message_wrap(err, "shepherd_no_secrets");
    if (unlink(path) < 0)
        return message_refuse(
            err, -errno, "shepherd_secrets_stay",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    return 0;
}

int order_read(const char *dir, struct order *ret, struct err *err)
{
    struct order o = {0};
    int r = read_launch(dir, &o.launch, err);
    if (r == 0)
        r = order_read_secrets(dir, &o.launch, err);
    if (r < 0) {
        order_release(&o);
        return r;
    }
    order_environment(&o.launch, (const char *const *)environ, &o.env);
    *ret = o;
    return 0;
}
