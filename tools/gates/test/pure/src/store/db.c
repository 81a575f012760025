/* time(NULL) in a comment */
void f(void)
{
    uptime(1);
    clock_gettime(0, 0);
    x = clock_mono();
}
