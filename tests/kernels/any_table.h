// The table of a library that another bridge, or nobody, has made: a test defines DESCRIPTION, what
// it says, and other things that it says.
#include "../unit/table.h"

#ifndef INTERFACE
#define INTERFACE 8
#endif
#ifndef ANSWER
#define ANSWER ""
#endif

extern "C" const LibraryTable* aten_bridge_library() {
  static const LibraryTable table = {INTERFACE,
                                     "0.0.9",
                                     nullptr,
                                     [] { return static_cast<const char*>(DESCRIPTION); },
                                     [](int, const PythonQuestion*, int* status) {
                                       *status = 1;
                                       return ANSWER;
                                     },
                                     nullptr,
                                     [] { return "[]"; }};
  return &table;
}
