void *xmalloc(size_t n)
{
    return malloc(n);
}
