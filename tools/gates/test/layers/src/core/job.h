#include "base/err.h"
/* "store/x.h" in a comment is nothing: #include "store/x.h" */
#include "store/db.h"
#include "job.h"
#include "core/gone.h"
