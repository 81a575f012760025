/* SPDX-License-Identifier: Apache-2.0 */
/* twice.h - a header that may be read twice by accident. */
int x;
