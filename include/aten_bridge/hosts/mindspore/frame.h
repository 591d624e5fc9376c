// MindSpore's calling convention, without PyTorch. It calls
//
//   extern "C" int Name(int nparam, void** params, int* ndims, int64_t** shapes,
//                       const char** dtypes, void* stream, void* extra);
//
// and takes 0 for success. `CallFrame` says what the parameters are.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_FRAME_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_FRAME_H_

#include <aten_bridge/core/operand_desc.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// The seven arguments of one call of MindSpore's AOT interface. Owns nothing; valid during the
/// call.
///
/// `params` holds the data pointers of the inputs, then of the outputs, then of the workspaces;
/// `nparam` counts all three. `ndims`, `shapes` and `dtypes` describe inputs and outputs only:
/// what lies behind is not readable (MindSpore 2.10). The number of workspaces is read from
/// `extra`.
class CallFrame {
 public:
  static constexpr int kMaxNdim = detail::kMaxNdim;

  /// Throws `Error`, with `operator_name` in its text, if the arguments contradict each other.
  /// The name must outlive the frame. No operand is looked at yet.
  CallFrame(const char* operator_name, int nparam, void** params, int* ndims, int64_t** shapes,
            const char** dtypes, void* stream, void* extra)
      : operator_name_(operator_name),
        params_(params),
        ndims_(ndims),
        shapes_(shapes),
        dtypes_(dtypes),
        stream_(stream) {
    // Behind the pointer to its virtual table, `extra` has a std::vector of the workspaces' sizes
    // (MindSpore 2.10). Hosts before about 1.9 pass null and have no workspaces.
    if (extra != nullptr) {
      std::memcpy(static_cast<void*>(&workspaces_), static_cast<const char*>(extra) + sizeof(void*),
                  sizeof(workspaces_));
    }
    // On addresses: a foreign `extra` may hold anything here.
    const auto begin = reinterpret_cast<std::uintptr_t>(workspaces_.begin);
    const auto end = reinterpret_cast<std::uintptr_t>(workspaces_.end);
    const std::uintptr_t count = (end - begin) / sizeof(std::size_t);
    if (nparam >= 0 && end >= begin && (end - begin) % sizeof(std::size_t) == 0 &&
        count <= static_cast<std::size_t>(nparam)) {
      size_ = nparam - static_cast<int>(count);
    }
    if (size_ < 0 || (nparam > 0 && params == nullptr) ||
        (size_ > 0 && (ndims == nullptr || shapes == nullptr || dtypes == nullptr))) {
      refuse_arguments(nparam);
    }
  }

  const char* operator_name() const noexcept { return operator_name_; }

  /// Number of inputs and outputs together.
  int size() const noexcept { return size_; }

  /// The host's stream: null on the CPU; on CUDA a cudaStream_t, of which null is a valid one.
  void* stream() const noexcept { return stream_; }

  /// Number of inputs where the host tells; else -1.
  int input_count() const noexcept { return input_count_; }

  /// For hosts that tell how many inputs there are, and how each lies in memory. `layouts` has an
  /// entry for each, and must outlive the frame.
  void set_inputs(int count, const Layout* layouts) noexcept {
    input_count_ = count;
    layouts_ = layouts;
  }

  /// The host's memory of the operand at `index`, below `size()`, and its sizes.
  void* data(int index) const noexcept { return params_[index]; }
  const int64_t* sizes(int index) const noexcept { return shapes_[index]; }
  int ndim(int index) const noexcept { return ndims_[index]; }

  /// The number of the CUDA device that the operands are on; -1 for the memory of the CPU.
  int cuda_device() const noexcept { return cuda_device_; }

  /// Without checks, since a kernel's operands are checked before it runs.
  void set_cuda_device(int device) noexcept { cuda_device_ = device; }

  int workspace_count() const noexcept {
    return static_cast<int>(workspaces_.end - workspaces_.begin);
  }

  /// Memory of workspace `index`, of `workspace_bytes(index)` bytes, with no initial value.
  void* workspace(int index) const noexcept { return params_[size_ + index]; }
  std::size_t workspace_bytes(int index) const noexcept { return workspaces_.begin[index]; }

  /// Describes the operand at `index`, below `size()`, but for its `numel`, and touches no data;
  /// faster where `desc` has the dtype already. False, after which `add_fault()` says why, if the
  /// dtype is not in the tables, or the strides do not fit.
  [[nodiscard, gnu::always_inline]] bool describe(int index, OperandDesc& desc) const noexcept {
    const bool has_dtype = read_dtype(dtypes_[index], desc.dtype);
    desc.data = params_[index];
    desc.sizes = shapes_[index];
    desc.ndim = ndims_[index];
    desc.strides = nullptr;
    desc.offset = 0;
    if (index < input_count_) {
      const Layout& layout = layouts_[index];
      desc.strides = layout.strides.empty() ? nullptr : layout.strides.data();
      desc.offset = static_cast<int64_t>(layout.offset);
      if (desc.strides != nullptr && layout.strides.size() != static_cast<std::size_t>(desc.ndim)) {
        return has_dtype && takes_any_strides(desc);
      }
    }
    return has_dtype;
  }

  /// The same with `numel`. Returns false after adding what is wrong with the operand, under
  /// `name`, to `report`.
  [[nodiscard, gnu::noinline]] bool read(int index, const OperandName& name, OperandDesc& desc,
                                         Report& report) const {
    if (!describe(index, desc)) {
      add_fault(index, name, desc, report);
      return false;
    }
    return detail::complete(desc, name, report);
  }

  /// Adds why an operand cannot be described.
  [[gnu::cold, gnu::noinline]] void add_fault(int index, const OperandName& name, OperandDesc desc,
                                              Report& report) const {
    if (!detail::has_form(desc.ndim, desc.sizes)) {
      report.add(Status::kShape, name, detail::form_fault(desc.ndim));
    } else if (desc.is_none()) {
      report.add(Status::kDtype, name, dtype_fault(dtypes_[index], desc));
    } else if (layouts_ != nullptr && detail::count_elements(desc, name, report)) {
      report.add(Status::kShape, name,
                 {detail::count_text(desc.ndim, "stride"), detail::kGot,
                  layouts_[index].strides.size(), " with ", desc.text()});
    }
  }

 private:
  /// Reads a dtype, which is `dtype` as a rule, by its name; false, and kNone, for another name.
  [[gnu::always_inline]] static bool read_dtype(const char* name, DType& dtype) noexcept {
    if (name == nullptr) {
      dtype = DType::kNone;
      return false;
    }
    return has_name(dtype, name) || find_dtype(name, dtype);
  }

  /// Drops the strides of None and of one element, whatever they are; false for other operands.
  [[gnu::cold, gnu::noinline]] static bool takes_any_strides(OperandDesc& desc) noexcept {
    bool is_one = detail::has_form(desc.ndim, desc.sizes);
    for (int i = 0; is_one && i < desc.ndim; ++i) {
      is_one = desc.sizes[i] == 1;
    }
    if (is_one || desc.is_none()) {
      desc.strides = nullptr;
      return true;
    }
    return false;
  }

  /// Throws an error that says what is wrong with the call's arguments.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_arguments(int nparam) const {
    Report report(operator_name_);
    if (nparam < 0) {
      report.add_count({"0 or more slots", detail::kGot, nparam});
    } else if (size_ < 0) {
      report.add(Status::kCount, {"expected `extra` to list the workspaces of a call with ",
                                  detail::count_text(nparam, "slot"),
                                  ", got something else than MindSpore 2.10 passes"});
    } else {
      if (params_ == nullptr) {
        report.add(Status::kNullPointer,
                   {"expected pointers to the operands, got a null `params`"});
      }
      if (size_ > 0 && (ndims_ == nullptr || shapes_ == nullptr || dtypes_ == nullptr)) {
        report.add(Status::kNullPointer,
                   {"expected `ndims`, `shapes` and `dtypes`, got a null pointer"});
      }
    }
    report.raise();
  }

  /// What is wrong with a dtype that is not in the tables.
  [[gnu::cold]] static Fault dtype_fault(const char* dtype, const OperandDesc& desc) {
    const std::string shape = " with shape " + detail::shape_text(desc.sizes, desc.ndim);
    if (dtype == nullptr) {
      return {"a dtype", detail::kGot, "null", shape};
    }
    if (std::strcmp(dtype, "string") == 0) {
      return {"a tensor", detail::kGot, "\"string\", a str"};
    }
    if (std::strcmp(dtype, "typetype") == 0) {
      return {"a tensor", detail::kGot, "\"typetype\", a dtype"};
    }
    return {detail::dtype_names(), detail::kGot, "\"", dtype, "\"", shape};
  }

  /// A std::vector<std::size_t> of the host's, whichever C++ ABI it was built with.
  struct Workspaces {
    const std::size_t* begin = nullptr;
    const std::size_t* end = nullptr;
  };

  const char* operator_name_;
  void** params_;
  int* ndims_;
  int64_t** shapes_;
  const char** dtypes_;
  void* stream_;
  Workspaces workspaces_;
  int size_ = -1;  // until the constructor knows
  int cuda_device_ = -1;
  int input_count_ = -1;
  const Layout* layouts_ = nullptr;
};

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_FRAME_H_
