#define TABLE(X) \
    X(a) \
    X(b)
struct row {
    int code;
    const char *word;
};
enum kind { A, B };
typedef int (*do_f)(void *arg);
static const struct row rows[] = {{1, "one"}, {2, "two"}};
static const char *const names[] = {"a", "b"};
static const char *mutable_names[] = {"a", "b"};
const int limit = 3;
int counter;
static struct row last = {0};
static int add(int a, int b);
extern int elsewhere;
_Static_assert(sizeof(int) == 4, "int has 4 bytes");
static do_f current;
struct row *find(const char *name) __attribute__((pure));
static const do_f steps[] = {0};
static __thread int per_thread;
static int (*hook)(int);

static int add(int a, int b)
{
    static const char digits[] = "0123";
    static int calls = 0;
    struct row r = {0};
    return a + b;
}
struct back_end {
    int (*start)(void *arg); /* a member is no global */
    char *path;
};
static int each(int (*noun)(int), void *arg)
{
    return noun(1);
}
must_check int visit(int (*f)(int), void *arg);
