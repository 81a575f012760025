static struct daemon *the_daemon;
