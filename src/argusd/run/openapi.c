/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.c - a program of the build alone: prints openapi.json as argusd serves it. The client of
 * the pages (web/) is made from it, so that a member which is renamed here fails the build there.
 */
#include <stdio.h>

#include "argusd/api/routes.h"

int main(void)
{
    struct buf out = BUF_INIT(8 << 20);
    routes_openapi(&out);
    int r = fputs(buf_str(&out), stdout) < 0 || fflush(stdout) != 0;
    buf_release(&out);
    return r;
}
