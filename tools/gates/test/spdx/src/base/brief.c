/* SPDX-License-Identifier: Apache-2.0 */
/* brief.c - short. */
