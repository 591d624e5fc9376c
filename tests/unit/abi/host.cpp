// A host's `extra` under one of the two C++ ABIs, written from MindSpore's headers.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "abi.h"

namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

struct AotExtra {
  virtual ~AotExtra() = default;
  virtual bool HasAttr(std::string name) = 0;
  virtual bool GetAttrBool(std::string name) = 0;
  virtual int64_t GetAttrInt(std::string name) = 0;
  virtual float GetAttrFloat(std::string name) = 0;
  virtual std::string GetAttrStr(std::string name) = 0;
  virtual Ints GetAttrIntVec(std::string name) = 0;
  virtual Floats GetAttrFloatVec(std::string name) = 0;
  virtual std::vector<Ints> GetAttrInt2DVec(std::string name) = 0;
  virtual std::vector<Floats> GetAttrFloat2DVec(std::string name) = 0;

  std::vector<std::size_t> workspaces;
  void* kernel_data = nullptr;
};

class Host final : public AotExtra {
 public:
  bool HasAttr(std::string name) override {
    keep(name);
    for (const char* known : {"", "bool", "int", "float", "name of 15 long", "name of 16 chars",
                              "ints", "floats", "int lists", "float lists", "mixed"}) {
      if (name == known) {
        return true;
      }
    }
    return name == long_text_ || name == "shared";
  }
  bool GetAttrBool(std::string name) override { return only("bool", name, true); }
  int64_t GetAttrInt(std::string name) override { return only("int", name, int64_t{7}); }
  float GetAttrFloat(std::string name) override { return only("float", name, 0.1F); }
  std::string GetAttrStr(std::string name) override {
    keep(name);
    if (name.empty()) {
      return {};
    }
    if (name == "name of 15 long") {
      return std::string(15, 'x');
    }
    if (name == "name of 16 chars") {
      return std::string(16, 'y');
    }
    if (name == "shared") {
      return long_text_;
    }
    if (name == "null inside") {
      return std::string("a\0b", 3);
    }
    return only(long_text_.c_str(), name, std::string(100, 'z'));
  }
  Ints GetAttrIntVec(std::string name) override { return only("ints", name, Ints{1, 2}); }
  Floats GetAttrFloatVec(std::string name) override { return only("floats", name, Floats{0.5F}); }
  std::vector<Ints> GetAttrInt2DVec(std::string name) override {
    return only("int lists", name, std::vector<Ints>{{1}, {}, {2, 3}});
  }
  std::vector<Floats> GetAttrFloat2DVec(std::string name) override {
    return only("float lists", name, std::vector<Floats>{{0.5F}, {}});
  }

  const char* names() {
    names_.clear();
    for (int i = 0; i < kKept; ++i) {
      names_ += kept_[(next_ + i) % kKept] + ';';
    }
    return names_.c_str();
  }

 private:
  static constexpr int kKept = 3;

  // Copies: what was passed may be gone afterwards.
  void keep(const std::string& name) {
    kept_[next_] = name;
    next_ = (next_ + 1) % kKept;
  }

  template <class T>
  T only(const char* expected, const std::string& name, const T& value) {
    keep(name);
    if (name != expected) {
      throw std::runtime_error("For 'Custom, there is no such attribute called " + name + '!');
    }
    return value;
  }

  std::string long_text_ = std::string(40, 'a');
  std::string kept_[kKept];
  int next_ = 0;
  std::string names_;
};

}  // namespace

extern "C" void* ABI_NAME(make_host_)() { return static_cast<AotExtra*>(new Host); }
extern "C" void ABI_NAME(delete_host_)(void* extra) { delete static_cast<AotExtra*>(extra); }
extern "C" const char* ABI_NAME(names_of_host_)(void* extra) {
  return static_cast<Host*>(static_cast<AotExtra*>(extra))->names();
}
