/* SPDX-License-Identifier: Apache-2.0 */
static void look(void)
{
}
