// The search of the site runs in a worker, which browsers do not start for pages that are opened as files. Here a hidden
// frame stands in for it: the same script, the same messages. The theme would fetch one from a server in place of this.
window.IFrameWorker = class extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    this.frame.title = "search";
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.answer = data => this.dispatchEvent(new MessageEvent("message", { data }));
    this.ready = new Promise(resolve => { inside.started = resolve; });
    inside.document.open();
    inside.document.write(
      "<!doctype html><script>postMessage = data => answer(data); importScripts = () => {}</script>" +
      `<script src="${url}" onload="started()"></script>`
    );
    inside.document.close();
  }
  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }
  terminate() {
    this.frame.remove();
  }
};
if (location.protocol === "file:") window.Worker = window.IFrameWorker;
