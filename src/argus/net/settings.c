/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - reads and writes the client's file; see settings.h. */
#include "argus/net/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"

#define DEFAULT_SERVER "http://127.0.0.1:8080"

enum { SETTINGS_MAX = 1 << 16 };

static const struct field KEYS[] = {
    {.name = "server",
     .type = FIELD_STR,
     .offset = offsetof(struct settings, server),
     .doc = "address of argusd"},
    {.name = "token",
     .type = FIELD_STR,
     .offset = offsetof(struct settings, token),
     .doc = "token for that server"},
    {.name = "ca",
     .type = FIELD_STR,
     .offset = offsetof(struct settings, ca),
     .doc = "file with the certificates to trust"},
};

void settings_release(struct settings *s)
{
    conf_release(KEYS, array_len(KEYS), s);
    *s = (struct settings){0};
}

char *settings_path(void)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (config && *config == '/')
        return xasprintf("%s/argus/config.yaml", config);
    return home && *home ? xasprintf("%s/.config/argus/config.yaml", home) : NULL;
}

static void empty_is_null(char **text)
{
    if (*text && !**text)
        freep(text);
}

static int read_settings(const char *path, struct settings *s, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(SETTINGS_MAX);
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *doc = NULL;
    int r = file_read(path, &text, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0) {
        if (err)
            err->code = ERR_USAGE;
        return ERR_USAGE;
    }
    r = doc_parse(buf_str(&text), text.len, true, &doc, &ps);
    if (r >= 0)
        conf_read(KEYS, array_len(KEYS), doc_root(doc), s, &ps);
    if (!ps.errors)
        return 0;
    return problems_to_err(&ps, path, ERR_USAGE, err);
}

int settings_tidy_url(const char *url, char **ret, struct err *err)
{
    size_t scheme = str_starts(url, "http://") ? 7 : str_starts(url, "https://") ? 8 : 0;
    if (!scheme || !url[scheme] || strchr("/:?#@", url[scheme]) || strpbrk(url, " \t\r\n?#@"))
        return message_refuse(err, ERR_USAGE, "cli_no_address",
                              MESSAGE_ARGS(MESSAGE_STR("text", url)));
    size_t len = strlen(url);
    while (len > scheme && url[len - 1] == '/')
        len--;
    *ret = xstrndup(url, len);
    return 0;
}

bool settings_url_is_loopback(const char *url)
{
    const char *host = strstr(url, "://");
    if (!host)
        return false;
    host += 3;
    if (str_starts(host, "[::1]"))
        return true;
    size_t n = strcspn(host, ":/");
    if (n == 9 && !memcmp(host, "localhost", 9))
        return true;
    return str_starts(host, "127.") && strspn(host, "0123456789.") == n;
}

bool settings_url_is_private(const char *url)
{
    return str_starts(url, "https://") || settings_url_is_loopback(url);
}

int settings_load(struct settings *ret, struct err *err)
{
    struct settings s = {0};
    char *path = settings_path();
    int r = path ? read_settings(path, &s, err) : 0;
    free(path);
    const char *env_url = getenv("ARGUS_URL");
    const char *env_token = getenv("ARGUS_TOKEN");
    empty_is_null(&s.server);
    empty_is_null(&s.token);
    empty_is_null(&s.ca);
    char *tidy = NULL;
    if (r >= 0)
        r = settings_tidy_url(env_url && *env_url ? env_url
                              : s.server          ? s.server
                                                  : DEFAULT_SERVER,
                              &tidy, err);
    if (r < 0) {
        settings_release(&s);
        return r;
    }
    if (s.server && !str_eq(tidy, s.server))
        set_str(&s.token, NULL);
    set_str(&s.server, tidy);
    free(tidy);
    if (env_token && *env_token)
        set_str(&s.token, env_token);
    *ret = s;
    return 0;
}

int settings_save(const struct settings *s, const char *path, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(SETTINGS_MAX);
    (void)buf_adds(&text, "# written by 'argus login'\n");
    const char *const values[] = {s->server, s->token, s->ca};
    for (size_t i = 0; i < array_len(KEYS); i++) {
        if (!values[i])
            continue;
        struct jout j = jout_begin(&text); /* a JSON string is a YAML double-quoted one */
        (void)buf_addf(&text, "%s: ", KEYS[i].name);
        jout_str(&j, NULL, values[i]);
        (void)buf_addc(&text, '\n');
    }
    if (text.failed)
        return message_refuse(err, ERR_USAGE, "cli_login_long", MESSAGE_NO_ARGS);
    return file_write_private(path, buf_str(&text), text.len, err);
}
