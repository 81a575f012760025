/* SPDX-License-Identifier: Apache-2.0 */
/* trouble.c - one table of ssh's sentences; see trouble.h. */
#include "ssh/trouble.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/text.h"

static const char *const words[] = {
#define X(name, word) word,
    SSH_TROUBLE_TABLE(X)
#undef X
};
static_assert(array_len(words) == SSH_TROUBLE_END, "one word for each");

const char *ssh_trouble_to_string(enum ssh_trouble trouble)
{
    return words[trouble];
}

/* The first that is in ssh's output decides: a refused key may follow a warning. */
static const struct {
    const char *said;
    enum ssh_trouble trouble;
} meanings[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", SSH_HOST_KEY_CHANGED},
    {"Host key verification failed", SSH_HOST_KEY_CHANGED},
    {"host key is known for", SSH_HOST_KEY_CHANGED},
    {"Permission denied (", SSH_REFUSED},
    {"Too many authentication failures", SSH_REFUSED},
    {"Load key \"", SSH_REFUSED},
    {"Bad owner or permissions on", SSH_FAILED},
    {"Bad configuration option", SSH_FAILED},
    {"Connection refused", SSH_UNREACHABLE},
    {"Connection timed out", SSH_UNREACHABLE},
    {"Operation timed out", SSH_UNREACHABLE},
    {"No route to host", SSH_UNREACHABLE},
    {"Network is unreachable", SSH_UNREACHABLE},
    {"Could not resolve hostname", SSH_UNREACHABLE},
    {"Connection closed by", SSH_UNREACHABLE},
    {"Connection reset by", SSH_UNREACHABLE},
    {"closed by remote host", SSH_UNREACHABLE},
    {"Broken pipe", SSH_UNREACHABLE},
    {"not responding", SSH_UNREACHABLE},
    {"kex_exchange_identification", SSH_UNREACHABLE},
    {"Connection to ", SSH_UNREACHABLE},
    {"stdio forwarding failed", SSH_UNREACHABLE},
};

/* The end of the line in which ssh says this; 0 if it does not. A jump's complaint comes before
 * that of the connection which should have gone through it. */
static size_t said_until(const char *p, size_t len, const char *what)
{
    const char *at = memmem(p, len, what, strlen(what));
    const char *nl = at ? memchr(at, '\n', len - (size_t)(at - p)) : NULL;
    return !at ? 0 : nl ? (size_t)(nl - p) : len;
}

static bool has_letter(const char *p, size_t begin, size_t end)
{
    while (begin < end && !isalpha((unsigned char)p[begin]))
        begin++;
    return begin < end;
}

const char *trouble_last_line(const char *p, size_t len, char *ret, size_t size)
{
    size_t end = len, begin = len, n = 0;
    while (end > 0 && !has_letter(p, begin, end)) {
        for (end = begin; end > 0 && isspace((unsigned char)p[end - 1]);)
            end--;
        for (begin = end; begin > 0 && p[begin - 1] != '\n' && p[begin - 1] != '\r';)
            begin--;
    }
    if (end - begin > 5 && !memcmp(p + begin, "ssh: ", 5))
        begin += 5;
    for (; begin + n < end && n < size - 1; n++) {
        unsigned char c = (unsigned char)p[begin + n];
        ret[n] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    ret[n] = 0;
    return ret;
}

void trouble_set(struct ssh_result *ret, enum ssh_trouble trouble, const struct message_arg *args)
{
    ret->trouble = trouble;
    message_write(ret->text, sizeof(ret->text), args);
}

/* "user@host -p 2222" as people type it. */
static void way(const struct ssh_target *t, char *ret, size_t size)
{
    char port[16] = "";
    if (t->port)
        text_printf(port, "-p %d ", t->port);
    text_printf_to(ret, size, "%s%s%s%s", port, str_or(t->user, ""), t->user ? "@" : "", t->host);
}

/* The key that the machine showed now: ssh prints its fingerprint in the warning. */
static void find_shown(const char *p, size_t len, char ret[static SSH_KEY_MAX])
{
    const char *at = memmem(p, len, "SHA256:", 7);
    size_t n = 0, left = at ? len - (size_t)(at - p) : 0;
    for (; n < left && n < SSH_KEY_MAX - 1 &&
           (isalnum((unsigned char)at[n]) || strchr(":+/=", at[n]));
         n++)
        ret[n] = at[n];
    while (n && (ret[n - 1] == '.' || ret[n - 1] == ':'))
        n--;
    ret[n] = 0;
}

static void say_changed(const char *errs,
                        size_t len,
                        const struct ssh_target *t,
                        const char *pinned,
                        struct ssh_result *ret)
{
    char shown[SSH_KEY_MAX];
    find_shown(errs, len, shown);
    trouble_set(ret, SSH_HOST_KEY_CHANGED,
                MESSAGE_ARGS(MESSAGE_STR("node", t->name), MESSAGE_STR("host", t->host),
                             MESSAGE_STR("pinned", pinned), MESSAGE_STR("shown", shown)));
}

static void say_refused(const struct ssh_target *t,
                        const char *to,
                        const char *last,
                        struct ssh_result *ret)
{
    if (t->identity_file && *t->identity_file == '/' && access(t->identity_file, R_OK) < 0)
        trouble_set(ret, SSH_REFUSED,
                    MESSAGE_ARGS(MESSAGE_STR("node", t->name), MESSAGE_STR("key", t->identity_file),
                                 MESSAGE_STR("says", strerror(errno))));
    else
        trouble_set(ret, SSH_REFUSED,
                    MESSAGE_ARGS(MESSAGE_STR("node", t->name), MESSAGE_STR("says", last),
                                 MESSAGE_STR("to", to)));
}

void trouble_read(const char *errs,
                  size_t len,
                  const struct ssh_target *t,
                  const char *pinned,
                  struct ssh_result *ret)
{
    enum ssh_trouble trouble = SSH_FAILED;
    size_t until = 0;
    for (size_t i = 0; i < array_len(meanings) && !until; i++) {
        until = said_until(errs, len, meanings[i].said);
        if (until)
            trouble = meanings[i].trouble;
    }
    char last[200], to[160];
    (void)trouble_last_line(errs, until ? until : len, last, sizeof(last));
    way(t, to, sizeof(to));
    switch (trouble) {
    case SSH_HOST_KEY_CHANGED:
        say_changed(errs, len, t, pinned, ret);
        return;
    case SSH_REFUSED:
        say_refused(t, to, last, ret);
        return;
    default:
        trouble_set(ret, trouble,
                    MESSAGE_ARGS(MESSAGE_STR("node", t->name), MESSAGE_STR("says", last),
                                 MESSAGE_STR("to", to)));
        return;
    }
}
