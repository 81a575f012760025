/* #include "core/upper/a.h" */
#include "core/upper/a.h"
