static const char *arg_file;
static bool arg_follow = false;
static bool follow = false;
