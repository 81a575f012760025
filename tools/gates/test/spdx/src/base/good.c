/* SPDX-License-Identifier: Apache-2.0 */
/* good.c - owns the sample that must pass; see good.h. */
int x;
