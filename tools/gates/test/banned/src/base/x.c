void f(char *d, const char *s)
{
    strcpy(d, s); /* strcpy(d, s) in a comment */
    puts("strcat(d, s)");
    x->index(1);
    my_system(s);
    system(s);
    int n = atoi(s), m = sscanf(s, "%d", &n);
    xmalloc(1);
    malloc(1);
}
