// The version, what a library shows, and the device that a source is for.
//
// Everything but ATEN_BRIDGE_PUBLIC functions is hidden, with or without -fvisibility=hidden, by
// the pragmas in each of these files: two libraries in one process, each with a bridge of its own
// version, must not share a symbol.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_CONFIG_H_
#define ATEN_BRIDGE_CORE_CONFIG_H_

#define ATEN_BRIDGE_VERSION_MAJOR 0
#define ATEN_BRIDGE_VERSION_MINOR 1
#define ATEN_BRIDGE_VERSION_PATCH 0

/// Marks what a kernel library shows to its host: a C function written by hand needs it.
#define ATEN_BRIDGE_PUBLIC __attribute__((visibility("default"), used))

/// Ordinary functions that a kernel's templates or a host's C functions call: `inline` where a
/// source has all of the bridge. Where aten_bridge_add_kernel defines ATEN_BRIDGE_COMPILED, sources
/// have declarations, and one object has the functions (aten_bridge.cpp beside it).
#ifdef ATEN_BRIDGE_COMPILED
#define ATEN_BRIDGE_INLINE
#else
#define ATEN_BRIDGE_INLINE inline
#endif  // ATEN_BRIDGE_COMPILED

// A source that nvcc compiles has kernels for CUDA.
#if defined(__CUDACC__) && !defined(ATEN_BRIDGE_CUDA)
#define ATEN_BRIDGE_CUDA
#endif

#endif  // ATEN_BRIDGE_CORE_CONFIG_H_
