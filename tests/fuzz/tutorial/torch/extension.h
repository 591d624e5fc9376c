// Replaces PyTorch's, which needs Python: what ms_ext.h uses of it.
#include <ATen/core/Tensor.h>
