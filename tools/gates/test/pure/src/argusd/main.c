void f(void)
{
    now = clock_wall();
    time(NULL);
}
