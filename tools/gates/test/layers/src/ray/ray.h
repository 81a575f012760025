#include <stddef.h>

#include "core/job.h"
