/* SPDX-License-Identifier: Apache-2.0 */
/* order.h - the order that this shepherd carries out: launch.json, the secrets, and the
 * environment built from them and Ray's own. */
#pragma once
#include "fsroot/attempt/launch.h"

struct order {
    struct launch launch;
    struct pairs env; /* whole: what the command gets */
};

void order_release(struct order *o);

/* Reads the order from the attempt's directory. The secrets file is deleted before this returns
 * 0; failure to delete it is an error. */
must_check int order_read(const char *dir, struct order *ret, struct err *err);

/* base ("NAME=value" strings, NULL at the end) with the launch's environment over it and
 * its PYTHONPATH in front. env is emptied first. */
void order_environment(const struct launch *l, const char *const *base, struct pairs *env);
