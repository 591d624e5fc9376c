// A page that is read as a file may start no worker, in which Material searches: here a frame is one.
// (Named so that Material's plugin `offline` does not name a script of another site.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const worker = frame.contentWindow;
      worker.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      const loaded = new Promise((resolve) => (script.onload = resolve));
      frame.contentDocument.head.append(script);
      this.postMessage = (data) =>
        loaded.then(() => worker.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
