void test_exact(void **state)
{
    char *p = malloc(3);
    sprintf(p, "12");
}
