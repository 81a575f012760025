/* SPDX-License-Identifier: Apache-2.0 */
/* none.c - in place of the pages, in an argusd that is built without them (-Dweb=disabled). */
#include "argusd/web/pages.h"

extern const struct web_file WEB_FILES[];
const struct web_file WEB_FILES[] = {{0}};
