/* SPDX-License-Identifier: Apache-2.0 */
/* notebooktoken.c - the token of a notebook by argusd's key; see notebooktoken.h. */
#include "argusd/launch/notebooktoken.h"

#include "base/digest/seal.h"
#include "base/str.h"

void notebooktoken_of(const struct secrets *s, const char *job, char ret[static NOTEBOOKTOKEN_MAX])
{
    unsigned char key[32];
    _cleanup_(freep) char *purpose = xasprintf("notebook/%s", job);
    secrets_derive(s, purpose, key);
    (void)str_hex(key, sizeof(key), ret); /* 64 characters fit */
    seal_forget(key, sizeof(key));
}
