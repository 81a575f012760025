#include "own.h"
#include "base/err.h"
