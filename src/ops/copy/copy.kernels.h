#pragma once

#include "backend/cpu/copy.kernels.h"
