void f(void)
{
    clock_gettime(0, 0);
}
