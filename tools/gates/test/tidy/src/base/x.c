/* x.c - a null pointer is read, and a name is not like the others. */
#include <stddef.h>
typedef int number_type;
int readTwice(const int *p);
int readTwice(const int *p)
{
    if (p == NULL)
        return *p;
    return 2 * *p;
}
