#include <stdio.h>
#include <time.h>
#include "base/log.h"
void job_tell(char *s, unsigned n)
{
    snprintf(s, n, "printf(%d)", 1);
    printf("time(NULL) %ld", (long)time(NULL));
    log_info("job", "made");
    now = clock_wall();
}
