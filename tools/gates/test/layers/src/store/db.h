#include "ray/ray.h"
