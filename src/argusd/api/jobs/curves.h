/* SPDX-License-Identifier: Apache-2.0 */
/* curves.h - the curves of the jobs that were asked for last, kept between requests; see curves.c.
 */
#pragma once

struct curves_kept;

struct curves_kept *curves_kept_new(void);
void curves_kept_free(struct curves_kept *all); /* nobody asks any more; NULL is fine */
