// A fake CUDA runtime, for machines without a GPU (LD_PRELOAD): three devices, whose
// memory is the CPU's, and streams, each a thread that does what is launched on it in order. It
// runs copies, host functions, graphs of these, and the kernels of which it has a twin; ATen's
// operators are in fake_cuda_operators.cpp. What a kernel library does around its kernels can be
// tested with it, on every machine. The functions have the meaning that CUDA's documentation gives
// them; what it leaves open is chosen so that mistakes show.
//
// As libcuda.so.1, its name, it is also the part of the driver that says where memory lies.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
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
std::atomic<bool> has_context[kDevices] = {};  // before CUDA 12, cudaSetDevice() is no first use

cudaError_t done(cudaError_t error) {
  if (error != cudaSuccess) {
    last_error = error;
  }
  return error;
}

//===--- captures ---===//

struct Stream;
using Work = std::function<void()>;
using Clock = std::map<const Stream*, std::size_t>;  // how much of each stream's work

/// A capture of a stream, and of those that join by waiting for an event of it.
struct Capture {
  std::vector<Work> works;    // in the order of the launches, which is one that the events allow
  unsigned long long id = 0;  // NOLINT: CUDA's type
  bool is_invalid = false;
  std::vector<Stream*> streams;
  std::map<const Stream*, Clock> behind;  // what the next work of each stream comes after
};

thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
thread_local std::vector<std::shared_ptr<Capture>> captures_of_thread;

/// False in a thread that captures; the captures are lost then.
bool captures_nothing() {
  for (const auto& capture : captures_of_thread) {
    capture->is_invalid = true;
  }
  return captures_of_thread.empty();
}

/// Allocating, and asking whether work is over, is an error in a thread that captures, unless the
/// thread has said that it knows what it does.
bool may_disturb_captures() {
  return capture_mode == cudaStreamCaptureModeRelaxed || captures_nothing();
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
  if (!may_disturb_captures()) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  const std::lock_guard<std::mutex> lock(memory_mutex());
  auto* block = static_cast<char*>(aligned_alloc(256, (bytes + 511) / 256 * 256));
  std::memset(block, 0x5a, bytes);
  blocks()[block] = {bytes, type, current_device};
  has_context[current_device] = true;
  *memory = block;
  return done(cudaSuccess);
}

cudaError_t release(void* memory) {
  if (!may_disturb_captures()) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  const std::lock_guard<std::mutex> lock(memory_mutex());
  if (memory != nullptr && blocks().erase(static_cast<char*>(memory)) == 0) {
    return done(cudaErrorInvalidValue);
  }
  std::free(memory);  // NOLINT
  return done(cudaSuccess);
}

/// The block; for memory that was not allocated here, type Unregistered.
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

/// All that there are. Never destroyed.
struct Streams {
  std::mutex mutex;
  std::vector<Stream*> all;
};
Streams& streams() {
  static auto* streams = new Streams;
  return *streams;
}

/// Whether it is blocking makes no difference: no stream is ordered with the default one.
struct Stream {
  explicit Stream(int of_device) : device(of_device), worker([this] { serve(); }) {
    worker.detach();
    const std::lock_guard<std::mutex> lock(streams().mutex);
    streams().all.push_back(this);
  }

  cudaError_t launch(Work work) {
    if (capture != nullptr) {
      if (capture->is_invalid) {
        return cudaErrorStreamCaptureInvalidated;
      }
      capture->works.push_back(std::move(work));
      ++capture->behind[this][this];
      return cudaSuccess;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(work));
    changed.notify_all();
    return cudaSuccess;
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
  std::shared_ptr<Capture> capture;
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

/// Until all streams of the device have done their work.
void wait_for_device(int device) {
  std::vector<Stream*> all;
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    all = streams().all;
  }
  for (Stream* stream : all) {
    if (stream->device == device) {
      stream->wait();
    }
  }
}

cudaError_t make_stream(cudaStream_t* handle) {
  *handle = reinterpret_cast<cudaStream_t>(new Stream(current_device));
  has_context[current_device] = true;
  return done(cudaSuccess);
}

//===--- events ---===//

/// Recorded `records` times, of which `reached` are done.
struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<std::uint64_t> records = 0;
  std::uint64_t reached = 0;
  std::weak_ptr<Capture> capture;  // the capture that recorded it last
  bool is_captured = false;
  Clock clock;  // what it comes after there

  void wait_for(std::uint64_t record) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return reached >= record; });
  }
};
/// Work that is under way keeps an event that is destroyed.
std::shared_ptr<Event>& event_of(cudaEvent_t handle) {
  return *reinterpret_cast<std::shared_ptr<Event>*>(handle);
}

//===--- kernels ---===//

/// What a launch over these arguments does on the CPU; `threads` in all.
using Twin = Work (*)(std::int64_t threads, void** arguments);

/// The work of y = value(x), elementwise, with the arguments x, y and how many there are.
template <float (*value)(float)>
Work elementwise(std::int64_t threads, void** arguments) {
  const auto* x = *static_cast<const float**>(arguments[0]);
  auto* y = *static_cast<float**>(arguments[1]);
  const std::int64_t count = std::min(threads, *static_cast<std::int64_t*>(arguments[2]));
  return [=] { std::transform(x, x + count, y, value); };
}

float one_more(float x) { return x + 1; }
float square_of_positive(float x) { return x > 0 ? x * x : 0; }

Twin find_twin(const char* name) {
  return std::strstr(name, "add_one") != nullptr           ? elementwise<one_more>
         : std::strstr(name, "square_positive") != nullptr ? elementwise<square_of_positive>
                                                           : nullptr;
}

/// By the function that stands for the kernel on the host.
std::map<const void*, Twin>& twins() {
  static auto* twins = new std::map<const void*, Twin>;
  return *twins;
}

/// False if nothing can wait for the stream: it is captured, and the capture is now invalid.
bool can_wait(Stream& stream) {
  if (stream.capture != nullptr) {
    stream.capture->is_invalid = true;
  }
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
  std::strcpy(properties->name, "fake");  // NOLINT
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
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int /*flags*/) {
  return allocate(memory, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned int /*flags*/) {
  return allocate(memory, bytes, cudaMemoryTypeManaged);
}
cudaError_t cudaFree(void* memory) {
  if (captures_of_thread.empty()) {
    for (int device = 0; device < kDevices; ++device) {
      wait_for_device(device);
    }
  }
  return release(memory);
}
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
  if (!captures_nothing()) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  wait_for_device(current_device);
  return done(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  if (bytes == 0) {
    return done(cudaSuccess);
  }
  Stream& stream = resolve(handle);
  const cudaMemoryType source = find(from).type;
  const cudaMemoryType target = find(to).type;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  const auto is_other = [](cudaMemoryType type, bool of_host) {
    return type != cudaMemoryTypeManaged && (type == cudaMemoryTypeDevice) == of_host;
  };
  if (kind != cudaMemcpyDefault && (is_other(source, from_host) || is_other(target, to_host))) {
    return done(cudaErrorInvalidValue);
  }
  if (source == cudaMemoryTypeUnregistered && stream.capture == nullptr) {  // read at once
    const auto* begin = static_cast<const char*>(from);
    return done(stream.launch([to, values = std::vector<char>(begin, begin + bytes)] {
      std::memcpy(to, values.data(), values.size());
    }));
  }
  const bool waits = target == cudaMemoryTypeUnregistered;
  if (waits && !can_wait(stream)) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  const cudaError_t error = stream.launch([=] { std::memcpy(to, from, bytes); });
  if (waits) {
    stream.wait();
  }
  return done(error);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return done(resolve(stream).launch([=] { std::memset(memory, value, bytes); }));
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  if (!may_disturb_captures()) {
    return done(cudaErrorStreamCaptureImplicit);
  }
  cudaMemsetAsync(memory, value, bytes, nullptr);
  return cudaStreamSynchronize(nullptr);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return done(resolve(stream).launch([=] { function(data); }));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Stream& stream = resolve(handle);
  *status = stream.capture == nullptr    ? cudaStreamCaptureStatusNone
            : stream.capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
  return done(cudaSuccess);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* /*graph*/,  // NOLINT
                                     const cudaGraphNode_t** /*dependencies*/,
                                     const cudaGraphEdgeData** /*edges*/, std::size_t* /*count*/) {
  const Stream& stream = resolve(handle);
  *id = stream.capture == nullptr ? 0 : stream.capture->id;
  return cudaStreamIsCapturing(handle, status);
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Stream& stream = resolve(handle);
  if (!can_wait(stream)) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  const std::lock_guard<std::mutex> lock(stream.mutex);
  return done(stream.queue.empty() ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode /*mode*/) {
  static std::atomic<unsigned long long> captures = 0;  // NOLINT: CUDA's type
  if (handle == nullptr || handle == cudaStreamLegacy) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  Stream& stream = resolve(handle);
  if (stream.capture != nullptr) {
    return done(cudaErrorIllegalState);
  }
  stream.capture = std::make_shared<Capture>();
  stream.capture->id = ++captures;  // no two have the same, not even one after the other
  stream.capture->streams.push_back(&stream);
  captures_of_thread.push_back(stream.capture);
  return done(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  const auto capture = resolve(handle).capture;
  auto& captures = captures_of_thread;
  const auto found = std::find(captures.begin(), captures.end(), capture);
  if (found == captures.end()) {
    return done(cudaErrorIllegalState);
  }
  captures.erase(found);
  bool is_joined = true;
  for (Stream* stream : capture->streams) {
    const std::size_t count = capture->behind[stream][stream];
    is_joined &= capture->behind[capture->streams[0]][stream] == count;
    stream->capture = nullptr;
  }
  if (capture->is_invalid) {
    return done(cudaErrorStreamCaptureInvalidated);
  }
  if (!is_joined) {
    return done(cudaErrorStreamCaptureUnjoined);
  }
  *graph = reinterpret_cast<cudaGraph_t>(new std::vector<Work>(std::move(capture->works)));
  return done(cudaSuccess);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
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
    resolve(stream).launch(work);  // one after the other, also those of several streams
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

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int /*flags*/) {
  *event = reinterpret_cast<cudaEvent_t>(new std::shared_ptr<Event>(new Event));
  return done(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return done(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t of) {
  const auto event = event_of(handle);
  Stream& stream = resolve(of);
  event->capture = stream.capture;
  event->is_captured = stream.capture != nullptr;
  if (event->is_captured) {
    event->clock = stream.capture->behind[&stream];
    return done(cudaSuccess);
  }
  const std::uint64_t record = ++event->records;
  return done(stream.launch([event, record] {
    const std::lock_guard<std::mutex> lock(event->mutex);
    event->reached = std::max(event->reached, record);
    event->changed.notify_all();
  }));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned int /*flags*/) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  if (!may_disturb_captures()) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  const auto event = event_of(handle);
  if (event->is_captured) {
    return done(cudaErrorCapturedEvent);
  }
  const std::lock_guard<std::mutex> lock(event->mutex);
  return done(event->reached == event->records ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event_of(event)->is_captured) {
    return done(cudaErrorCapturedEvent);
  }
  event_of(event)->wait_for(event_of(event)->records);
  return done(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t of, unsigned int /*flags*/) {
  const auto event = event_of(of);
  Stream& stream = resolve(handle);
  if (!event->is_captured) {
    if (stream.capture != nullptr) {
      stream.capture->is_invalid = true;
      return done(cudaErrorStreamCaptureIsolation);
    }
    return done(
        stream.launch([event, record = event->records.load()] { event->wait_for(record); }));
  }
  const auto capture = event->capture.lock();
  if (capture == nullptr || capture->streams.front()->capture != capture) {
    return done(cudaErrorCapturedEvent);  // that capture is over
  }
  if (stream.capture == nullptr) {
    stream.capture = capture;
    capture->streams.push_back(&stream);
  }
  if (stream.capture != capture) {
    stream.capture->is_invalid = capture->is_invalid = true;
    return done(cudaErrorStreamCaptureMerge);
  }
  for (const auto& [other, count] : event->clock) {
    std::size_t& known = capture->behind[&stream][other];
    known = std::max(known, count);
  }
  return done(cudaSuccess);
}

//===--- what nvcc's code calls to launch a kernel ---===//
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): CUDA's names

void __cudaRegisterFunction(void** binary, const char* host, char* device, const char* name,
                            int threads, uint3* thread, uint3* block, dim3* block_size,
                            dim3* grid_size, int* warp_size) {
  static const auto next = reinterpret_cast<decltype(&__cudaRegisterFunction)>(
      dlsym(RTLD_NEXT, "__cudaRegisterFunction"));
  if (const Twin twin = find_twin(name); twin != nullptr) {
    twins()[host] = twin;
  }
  next(binary, host, device, name, threads, thread, block, block_size, grid_size, warp_size);
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return done(cudaSuccess);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t /*shared_memory*/, cudaStream_t stream) {
  const std::int64_t threads = std::int64_t{block.x} * block.y * block.z;
  const std::int64_t blocks = std::int64_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > 1024 || blocks == 0) {
    return done(cudaErrorInvalidValue);  // as CUDA 13.0 with driver 580 on an H200
  }
  if (resolve(stream).device != current_device) {
    return done(cudaErrorInvalidResourceHandle);
  }
  const auto twin = twins().find(reinterpret_cast<const void*>(kernel));
  if (twin == twins().end()) {
    return done(cudaErrorNoKernelImageForDevice);
  }
  return done(resolve(stream).launch(twin->second(threads * blocks, arguments)));
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

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
