void g(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, on_term);
}
