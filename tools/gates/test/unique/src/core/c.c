/* SPDX-License-Identifier: Apache-2.0 */
static int begin(int n,
                 int k)
{
    return n + k;
}

int c_begin(int n)
{
    return begin(n, 1);
}

int main(void)
{
    return 0;
}

/* Four are allowed. */
static void look(void)
{
}
