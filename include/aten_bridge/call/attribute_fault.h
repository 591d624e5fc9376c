// What is wrong with an attribute.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_ATTRIBUTE_FAULT_H_
#define ATEN_BRIDGE_CALL_ATTRIBUTE_FAULT_H_

#include <aten_bridge/core/attributes.h>
#include <aten_bridge/interface/kernel_base.h>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

[[gnu::cold]] ATEN_BRIDGE_INLINE void add_attribute_fault(const Attributes& attributes,
                                                          const char* name, const char* expected,
                                                          Report& report) {
  report.add_attribute(name, attribute_fault(attributes, name, expected));
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_ATTRIBUTE_FAULT_H_
