// What MindSpore passes to the kernels of a plugin, without MindSpore.
#ifndef ATEN_BRIDGE_TESTS_UNIT_PLUGIN_HOST_H_
#define ATEN_BRIDGE_TESTS_UNIT_PLUGIN_HOST_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plugin_host {

using Ints = std::vector<int64_t>;

// MindSpore's own structures (custom_kernel_input_info.h of 2.10), in their order.
struct Layout {
  Ints strides;
  std::size_t offset;
};
struct Shapes {
  std::vector<Ints> sizes;
  std::vector<bool> is_known;
};
struct KernelInputInfo {
  virtual ~KernelInputInfo() = default;
  virtual bool is_scalar(std::size_t index) = 0;
  virtual std::size_t count() = 0;
  virtual bool get_bool(std::size_t index) = 0;
  virtual int64_t get_int(std::size_t index) = 0;
  virtual double get_float(std::size_t index) = 0;
  virtual std::string get_string(std::size_t index) = 0;
  virtual Ints get_ints(std::size_t index) = 0;
  virtual std::vector<double> get_floats(std::size_t index) = 0;
  virtual std::vector<Ints> get_int_lists(std::size_t index) = 0;
  virtual std::vector<std::vector<double>> get_float_lists(std::size_t index) = 0;
  virtual int type_id(std::size_t index) = 0;
  virtual std::optional<Layout> layout(std::size_t index) = 0;
  virtual Shapes* shapes() = 0;
  virtual void set_shapes(std::unique_ptr<Shapes> shapes) = 0;

  std::vector<std::size_t> workspaces;
};

/// A kernel's C function.
using HostFunction = int(int, void**, int*, int64_t**, const char**, void*, void*);

/// One call, of operands over the caller's memory. May run any number of times.
class HostCall : public KernelInputInfo {
 public:
  HostCall& input(const char* dtype, Ints sizes, void* data, bool is_scalar = false) {
    ++inputs_;
    scalars_.push_back(is_scalar);
    layouts_.emplace_back();
    return operand(dtype, std::move(sizes), data);
  }
  HostCall& strided(const char* dtype, Ints sizes, void* data, Ints strides, std::size_t offset) {
    input(dtype, std::move(sizes), data);
    layouts_.back() = Layout{std::move(strides), offset};
    return *this;
  }
  HostCall& none() { return input("none", {}, nullptr, true); }
  HostCall& output(const char* dtype, Ints sizes, void* data) {
    return operand(dtype, std::move(sizes), data);
  }

  /// A parameter more, which has no sizes.
  HostCall& more(void* data) {
    data_.push_back(data);
    ndims_.push_back(1);
    shapes_.push_back(reinterpret_cast<int64_t*>(0x21));  // nowhere
    return *this;
  }

  /// What the kernel returns.
  int run(HostFunction* function, bool with_extra = true) {
    return function(static_cast<int>(data_.size()), data_.data(), ndims_.data(), shapes_.data(),
                    dtypes_.data(), nullptr, with_extra ? this : nullptr);
  }

  bool is_scalar(std::size_t index) override { return scalars_.at(index); }
  std::size_t count() override { return inputs_; }
  bool get_bool(std::size_t /*index*/) override { return false; }
  int64_t get_int(std::size_t /*index*/) override { return 0; }
  double get_float(std::size_t /*index*/) override { return 0; }
  std::string get_string(std::size_t /*index*/) override { return ""; }
  Ints get_ints(std::size_t /*index*/) override { return {}; }
  std::vector<double> get_floats(std::size_t /*index*/) override { return {}; }
  std::vector<Ints> get_int_lists(std::size_t /*index*/) override { return {}; }
  std::vector<std::vector<double>> get_float_lists(std::size_t /*index*/) override { return {}; }
  int type_id(std::size_t /*index*/) override { return 0; }
  std::optional<Layout> layout(std::size_t index) override { return layouts_.at(index); }
  Shapes* shapes() override { return found.get(); }
  void set_shapes(std::unique_ptr<Shapes> shapes) override { found = std::move(shapes); }

  std::unique_ptr<Shapes> found;

 private:
  HostCall& operand(const char* dtype, Ints sizes, void* data) {
    Ints& kept = sizes_.emplace_back(std::move(sizes));
    dtypes_.push_back(dtype);
    ndims_.push_back(static_cast<int>(kept.size()));
    shapes_.push_back(kept.empty() ? nullptr : kept.data());
    data_.push_back(data);
    return *this;
  }

  std::size_t inputs_ = 0;
  std::vector<const char*> dtypes_;
  std::deque<Ints> sizes_;
  std::vector<int> ndims_;
  std::vector<int64_t*> shapes_;
  std::vector<void*> data_;
  std::vector<bool> scalars_;
  std::vector<std::optional<Layout>> layouts_;
};

}  // namespace plugin_host

#endif  // ATEN_BRIDGE_TESTS_UNIT_PLUGIN_HOST_H_
