#include "core/lower/b.h"
