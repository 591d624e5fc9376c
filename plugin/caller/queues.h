// MindSpore's queues: what may wait there, whether anything does, and tasks of the bridge's own.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_QUEUES_H_
#define ATEN_BRIDGE_CALLER_QUEUES_H_

#include "interpreter.h"

#if __has_include(<include/pynative/utils/runtime/pynative_async_task.h>)
#include <include/pynative/utils/runtime/pynative_async_task.h>
#else
#include <runtime/pipeline/task/task.h>
#define ATEN_BRIDGE_SETTINGS_OF_THE_PROCESS
#endif
#include <include/runtime/pipeline/pipeline.h>
#include <include/runtime/utils/runtime_conf/runtime_conf.h>
#include <utils/ms_context.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#ifdef ATEN_BRIDGE_SETTINGS_OF_THE_PROCESS
namespace mindspore::pynative {

/// Stands for MindSpore 2.10's class of this name. In 2.8 and 2.9 all threads have the same
/// settings.
class PyNativeAsyncTask : public runtime::AsyncTask {
 public:
  using AsyncTask::AsyncTask;

 protected:
  template <typename Function>
  void RunWithPyNativeContext(const Function& function) {
    function();
  }
};

}  // namespace mindspore::pynative
#endif

namespace aten_bridge::caller {

/// Something that MindSpore's queues run, with the settings of the thread that puts it there. Its
/// own classes for that need four times the headers (2.10).
class Task final : public mindspore::pynative::PyNativeAsyncTask {
 public:
  using Function = std::function<void()>;
  using Failed = std::function<void(const std::exception_ptr&)>;

  Task(mindspore::runtime::TaskType type, Function function, Failed failed = nullptr)
      : PyNativeAsyncTask(type), function_(std::move(function)), failed_(std::move(failed)) {}

  void Run() override {
    RunWithPyNativeContext(function_);
    function_ = nullptr;  // and the tensors in it: the queue may have the task for longer
  }

  void SetException(const std::exception_ptr& exception) override {
    if (failed_ != nullptr) {
      failed_(exception);
    }
  }

 private:
  Function function_;
  Failed failed_;
};

/// Whether calls may wait in MindSpore's queue. Where all threads have the same settings, a call
/// that waits would be recorded, or not, by what the program does when its turn comes.
#ifdef ATEN_BRIDGE_SETTINGS_OF_THE_PROCESS
inline constexpr bool kMayQueue = false;
#else
inline constexpr bool kMayQueue = true;
#endif

/// Whether MindSpore runs each operator at once, in the thread that calls it: as
/// OpExecutor::NeedSync (2.10), whose header takes twelve seconds to compile.
inline bool is_blocking() {
  return mindspore::runtime::RuntimeConf::GetInstance()->launch_blocking() ||
         mindspore::MsContext::GetInstance()->get_param<bool>(
             mindspore::MS_CTX_ENABLE_PYNATIVE_SYNCHRONIZE);
}

/// Waits until nothing is in MindSpore's queues: graphs are there even where it runs operators at
/// once.
inline void wait_for_queued() {
  const py::gil_scoped_release released;
  mindspore::runtime::Pipeline::Get().WaitForward();
}

/// Waits until MindSpore has recorded a call. It records in a thread of its own if it had queues
/// when it ran its first operator. Once pynative_synchronize is set, it records its own operators
/// at once, before a kernel's record that is still queued, and that kernel's gradient would be
/// zeros (2.10).
inline void wait_for_record() {
  const auto& queue = mindspore::runtime::Pipeline::Get().bprop_stage();
  if (is_blocking() && !queue->Empty()) {
    const Unlocked unlocked;
    queue->Wait();
  }
}

/// Puts a task into one of MindSpore's queues, which take those of one thread at a time (2.10).
inline void push(const mindspore::AsyncRQueuePtr& queue, std::mutex& mutex,
                 const std::shared_ptr<Task>& task) {
  const Unlocked unlocked;  // a full queue may wait for the lock
  const std::lock_guard<std::mutex> guard(mutex);
  queue->Push(task);
}

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_QUEUES_H_
