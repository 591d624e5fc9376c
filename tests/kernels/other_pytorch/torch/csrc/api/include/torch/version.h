// In place of PyTorch's own header: the version that a library of another PyTorch was built with.
#pragma once
#define TORCH_VERSION_MAJOR 1
#define TORCH_VERSION_MINOR 99
