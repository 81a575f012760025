/* SPDX-License-Identifier: Apache-2.0 */
/* thing.c - this comment belongs to quite another file. */
