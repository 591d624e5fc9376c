// A stand-in for the CUDA runtime, for machines without a GPU (LD_PRELOAD): three devices, whose
// memory is the CPU's, and streams, each a thread that does what is launched on it in order. It
// runs copies, host functions and graphs of these, and no kernels: what a kernel library does
// around its kernels can be tested with it, on every machine. The functions have the meaning that
// CUDA's documentation gives them; what it leaves open is chosen so that mistakes show.
//
// As libcuda.so.1, its name, it is also the part of the driver that says where memory lies.
#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr int kDevices = 3;

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
bool has_context[kDevices] = {};  // after the first use of a device, which cudaSetDevice() is not

cudaError_t done(cudaError_t error) {
  if (error != cudaSuccess) {
    last_error = error;
  }
  return error;
}

//===--- memory ---===//

struct Block {
  std::size_t bytes;
  cudaMemoryType type;
  int device;
};

// Never destroyed: threads outlive main().
std::mutex& memory_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::map<const char*, Block>& blocks() {
  static auto* blocks = new std::map<const char*, Block>;
  return *blocks;
}

cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type) {
  const std::lock_guard<std::mutex> lock(memory_mutex());
  auto* block = static_cast<char*>(aligned_alloc(256, (bytes + 511) / 256 * 256));
  std::memset(block, 0x5a, bytes);
  blocks()[block] = {bytes, type, current_device};
  has_context[current_device] = true;
  *memory = block;
  return done(cudaSuccess);
}

cudaError_t release(void* memory) {
  const std::lock_guard<std::mutex> lock(memory_mutex());
  if (memory != nullptr && blocks().erase(static_cast<char*>(memory)) == 0) {
    return done(cudaErrorInvalidValue);
  }
  std::free(memory);  // NOLINT
  return done(cudaSuccess);
}

/// Of memory that nobody allocated here, type Unregistered.
Block find(const void* memory) {
  const std::lock_guard<std::mutex> lock(memory_mutex());
  auto next = blocks().upper_bound(static_cast<const char*>(memory));
  if (next != blocks().begin()) {
    --next;
    if (static_cast<const char*>(memory) < next->first + next->second.bytes) {
      return next->second;
    }
  }
  return {0, cudaMemoryTypeUnregistered, -2};
}

//===--- streams ---===//

using Work = std::function<void()>;

struct Stream {
  explicit Stream(int of_device) : device(of_device), worker([this] { serve(); }) {
    worker.detach();
  }

  void launch(Work work) {
    if (capture != nullptr) {
      capture->push_back(std::move(work));
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(work));
    changed.notify_all();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return queue.empty(); });
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !queue.empty(); });
      const Work work = queue.front();
      lock.unlock();
      work();
      lock.lock();
      queue.pop_front();  // now it is done
      changed.notify_all();
    }
  }

  int device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  std::unique_ptr<std::vector<Work>> capture;
  unsigned long long capture_id = 0;  // NOLINT: CUDA's type
  bool is_invalid = false;
  std::thread worker;
};

/// The stream that a handle stands for.
Stream& resolve(cudaStream_t handle) {
  static auto* defaults = new std::map<int, Stream*>;
  static auto* mutex = new std::mutex;
  thread_local std::map<int, Stream*> of_thread;
  if (handle == nullptr || handle == cudaStreamLegacy) {
    const std::lock_guard<std::mutex> lock(*mutex);
    Stream*& stream = (*defaults)[current_device];
    stream = stream == nullptr ? new Stream(current_device) : stream;
    return *stream;
  }
  if (handle == cudaStreamPerThread) {
    Stream*& stream = of_thread[current_device];
    stream = stream == nullptr ? new Stream(current_device) : stream;
    return *stream;
  }
  return *reinterpret_cast<Stream*>(handle);
}

std::vector<Stream*>& made() {
  static auto* streams = new std::vector<Stream*>;
  return *streams;
}

cudaError_t make_stream(cudaStream_t* handle) {
  auto* stream = new Stream(current_device);
  has_context[current_device] = true;
  made().push_back(stream);
  *handle = reinterpret_cast<cudaStream_t>(stream);
  return done(cudaSuccess);
}

/// False if nothing can wait for the stream: it is captured, and the capture is now invalid.
bool can_wait(Stream& stream) {
  stream.is_invalid = stream.capture != nullptr;
  return stream.capture == nullptr;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return done(cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return done(cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) {
    return done(cudaErrorInvalidDevice);
  }
  current_device = device;
  return done(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");  // NOLINT
  properties->major = 9;
  properties->totalGlobalMem = std::size_t{1} << 30;
  return done(cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return done(cudaSuccess);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return done(cudaSuccess);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 0;
  return done(cudaSuccess);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30;
  return done(cudaSuccess);
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(memory, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return allocate(memory, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned int /*flags*/) {
  return allocate(memory, bytes, cudaMemoryTypeManaged);
}
cudaError_t cudaFree(void* memory) { return release(memory); }
cudaError_t cudaFreeHost(void* memory) { return release(memory); }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const Block block = find(memory);
  *attributes = {};
  attributes->type = block.type;
  attributes->device = block.device;
  return done(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int /*flags*/) {
  return make_stream(stream);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int /*flags*/,
                                         int /*priority*/) {
  return make_stream(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  resolve(stream).wait();
  return done(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Stream& stream = resolve(handle);
  if (!can_wait(stream)) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  stream.wait();
  return done(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() {
  for (Stream* stream : made()) {
    if (stream->device == current_device) {
      stream->wait();
    }
  }
  resolve(nullptr).wait();
  return done(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t handle) {
  Stream& stream = resolve(handle);
  if (find(from).type == cudaMemoryTypeUnregistered) {  // read at once
    const auto* begin = static_cast<const char*>(from);
    stream.launch([to, values = std::vector<char>(begin, begin + bytes)] {
      std::memcpy(to, values.data(), values.size());
    });
    return done(cudaSuccess);
  }
  const bool waits = find(to).type == cudaMemoryTypeUnregistered;
  if (waits && !can_wait(stream)) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  stream.launch([=] { std::memcpy(to, from, bytes); });
  if (waits) {
    stream.wait();
  }
  return done(cudaSuccess);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  resolve(stream).launch([=] { std::memset(memory, value, bytes); });
  return done(cudaSuccess);
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  cudaMemsetAsync(memory, value, bytes, nullptr);
  return cudaStreamSynchronize(nullptr);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  resolve(stream).launch([=] { function(data); });
  return done(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Stream& stream = resolve(handle);
  *status = stream.capture == nullptr ? cudaStreamCaptureStatusNone
            : stream.is_invalid       ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return done(cudaSuccess);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* /*graph*/,  // NOLINT
                                     const cudaGraphNode_t** /*dependencies*/,
                                     const cudaGraphEdgeData** /*edges*/, std::size_t* /*count*/) {
  *id = resolve(handle).capture_id;
  return cudaStreamIsCapturing(handle, status);
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Stream& stream = resolve(handle);
  const std::lock_guard<std::mutex> lock(stream.mutex);
  return done(stream.queue.empty() ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode /*mode*/) {
  Stream& stream = resolve(handle);
  static std::atomic<unsigned long long> captures = 0;  // NOLINT: CUDA's type
  stream.capture = std::make_unique<std::vector<Work>>();
  stream.capture_id = ++captures;  // no two have the same, not even one after the other
  stream.is_invalid = false;
  return done(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  Stream& stream = resolve(handle);
  auto* works = stream.capture.release();
  if (stream.is_invalid) {
    delete works;
    *graph = nullptr;
    return done(cudaErrorStreamCaptureInvalidated);
  }
  *graph = reinterpret_cast<cudaGraph_t>(works);
  return done(cudaSuccess);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  *mode = cudaStreamCaptureModeThreadLocal;
  return done(cudaSuccess);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long /*flags*/) {  // NOLINT: CUDA's type
  *exec = reinterpret_cast<cudaGraphExec_t>(
      new std::vector<Work>(*reinterpret_cast<std::vector<Work>*>(graph)));
  return done(cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const Work& work : *reinterpret_cast<std::vector<Work>*>(exec)) {
    resolve(stream).launch(work);
  }
  return done(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<std::vector<Work>*>(graph);
  return done(cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete reinterpret_cast<std::vector<Work>*>(exec);
  return done(cudaSuccess);
}

/// By this a test knows where it runs.
extern const int aten_bridge_cuda_stand_in;
const int aten_bridge_cuda_stand_in = 1;

//===--- the driver ---===//

int cuPointerGetAttributes(unsigned int count, const int* attributes, void** values,
                           unsigned long long pointer) {  // NOLINT: the driver's type
  const Block block = find(reinterpret_cast<const void*>(pointer));
  for (unsigned int i = 0; i < count; ++i) {
    // As the driver's: 0 of memory that it does not know.
    const bool is_known = block.type != cudaMemoryTypeUnregistered;
    const int value = attributes[i] == 2   ? (block.type == cudaMemoryTypeHost ? 1 : 2)
                      : attributes[i] == 8 ? (block.type == cudaMemoryTypeManaged ? 1 : 0)
                                           : block.device;
    *static_cast<int*>(values[i]) = is_known ? value : 0;
  }
  return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned int* flags, int* is_active) {
  *flags = 0;
  *is_active = has_context[device] ? 1 : 0;
  return 0;
}

}  // extern "C"
