/* SPDX-License-Identifier: Apache-2.0 */
int t(void)
{
    return open("/x", O_RDONLY);
}
