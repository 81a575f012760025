#include "core/upper/a.h"
