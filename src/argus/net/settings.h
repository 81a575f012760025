/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - where the server is and who we are: ~/.config/argus/config.yaml,
 * with ARGUS_URL and ARGUS_TOKEN before it.
 *
 * The stored token belongs to the stored server: it is never sent to another one
 * that ARGUS_URL names. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct settings {
    char *server; /* "http://127.0.0.1:8080": without a slash at the end */
    char *token;  /* NULL = none */
    char *ca;     /* file with the certificates to trust, NULL = the system's */
};

/* Free the texts; zeroed again. */
void settings_release(struct settings *s);

/* $XDG_CONFIG_HOME/argus/config.yaml, else ~/.config/argus/config.yaml; yours to free().
 * NULL when neither variable is set. */
char *settings_path(void);

/* File and environment together; without either the server is http://127.0.0.1:8080.
 * ERR_USAGE: the file cannot be read, or what it holds is wrong. */
must_check int settings_load(struct settings *ret, struct err *err);

/* Write atomically, mode 0600, directories 0700. */
must_check int settings_save(const struct settings *s, const char *path, struct err *err);

/* Check and tidy a server's address: *ret is yours to free(). ERR_USAGE when it is none. */
must_check int settings_tidy_url(const char *url, char **ret, struct err *err);

/* True if what goes to this server stays on the machine, or is encrypted. */
bool settings_url_is_private(const char *url);
/* True for a loopback address. */
bool settings_url_is_loopback(const char *url);
