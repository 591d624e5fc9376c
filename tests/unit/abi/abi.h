// C functions between core_test and sources that are compiled for one of the two C++ ABIs, in which
// std::string is another class each.
#ifndef ATEN_BRIDGE_TESTS_UNIT_ABI_ABI_H_
#define ATEN_BRIDGE_TESTS_UNIT_ABI_ABI_H_

#define ABI_CONCATENATED(a, b) a##b
#define ABI_EXPANDED(a, b) ABI_CONCATENATED(a, b)
// In a source for one ABI, `make_host` is make_host_0 or make_host_1.
#define ABI_NAME(name) ABI_EXPANDED(name, _GLIBCXX_USE_CXX11_ABI)

#define ABI_DECLARE(abi)                                                                    \
  void* make_host_##abi();                                                                  \
  void delete_host_##abi(void* extra);                                                      \
  /* "a;b;c;": the names of attributes that the host was asked for last. */                 \
  const char* names_of_host_##abi(void* extra);                                             \
  /* A line of text for each attribute of the host, and for some that are not there. */     \
  const char* read_all_##abi(void* extra);                                                  \
  /* Reads an attribute of each kind and one that is not there so many times; how many were \
     not as expected. */                                                                    \
  int read_often_##abi(void* extra, int times);

extern "C" {
ABI_DECLARE(0)
ABI_DECLARE(1)
}

#endif  // ATEN_BRIDGE_TESTS_UNIT_ABI_ABI_H_
